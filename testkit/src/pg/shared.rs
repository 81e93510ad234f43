//! One server for the tests of a file, a database of its own for each: starting a server takes longer than most tests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::Context;
use postgres::{Client, Config, NoTls};

use crate::{PgServer, PgServerBuilder, Result};

/// A server that is started for the first test that asks for it and ends with the last one that holds it.
///
/// A plain static would outlive all tests, and the server with it: nothing drops a static.
#[derive(Debug)]
pub struct SharedServer {
    server: Mutex<Weak<PgServer>>,
    databases: AtomicU32,
}

impl SharedServer {
    /// Not started yet.
    #[must_use]
    pub const fn new() -> SharedServer {
        SharedServer {
            server: Mutex::new(Weak::new()),
            databases: AtomicU32::new(0),
        }
    }

    /// A new database with the extension, and a worker id that no other database has.
    ///
    /// # Errors
    /// The server does not start, or refuses.
    pub fn database(&self, builder: impl FnOnce() -> PgServerBuilder) -> Result<TestDatabase> {
        let server = self.server(builder)?;
        let worker_id = 1 + self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{worker_id}");
        let mut admin = server.client("postgres")?;
        admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
        let database = TestDatabase { server, name };
        // A worker id begins as far ahead of the clock as ids may run; nobody had this one, and tests need not wait for it.
        database.client()?.batch_execute(&format!(
            "CREATE EXTENSION keywright; SET keywright.lead_ms_max = 100; SELECT keywright.set_worker_id({worker_id})"
        ))?;
        Ok(database)
    }

    fn server(&self, builder: impl FnOnce() -> PgServerBuilder) -> Result<Arc<PgServer>> {
        let mut shared = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(builder().start()?);
        *shared = Arc::downgrade(&server);
        Ok(server)
    }
}

impl Default for SharedServer {
    fn default() -> SharedServer {
        SharedServer::new()
    }
}

/// A database of a [`SharedServer`].
#[derive(Debug)]
pub struct TestDatabase {
    server: Arc<PgServer>,
    name: String,
}

impl TestDatabase {
    /// The server it is on, shared with other tests.
    #[must_use]
    pub fn server(&self) -> &PgServer {
        &self.server
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect to it as superuser.
    #[must_use]
    pub fn config(&self) -> Config {
        self.server.config(&self.name, "postgres")
    }

    /// Connects to it as superuser.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub fn client(&self) -> Result<Client> {
        self.server.client(&self.name)
    }

    /// As [`TestDatabase::client`], with settings for the session: `-c name=value …`.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub fn client_with(&self, options: &str) -> Result<Client> {
        let client = self.config().options(options).connect(NoTls);
        client.with_context(|| format!("connecting with options {options:?}"))
    }
}
