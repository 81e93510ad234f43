//! Private MariaDB and MySQL servers: what the proxy stands in front of, and where it keeps its bounds.

mod fetch;
mod initialised;
mod life;
mod programs;

use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::Context;

use super::client;
use crate::machine::scratch::Scratch;
use crate::{Account, Flavour, Login, Result, Wire};
use programs::Programs;

pub use fetch::mysql_tree;

/// A server with its data directory. It is stopped and removed when dropped. The user `root` needs no password, over the
/// socket and over TCP from this machine.
#[derive(Debug)]
pub struct Upstream {
    flavour: Flavour,
    account: Account,
    programs: Programs,
    options: Vec<String>,
    port: u16,
    process: Option<Child>,
    // Dropped last: the directory that data, socket and log lie in.
    scratch: Scratch,
}

impl Upstream {
    /// MariaDB or MySQL.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The UNIX socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.scratch.path().join("socket")
    }

    /// Where the server keeps its data; MySQL also puts the certificates there that it makes for itself.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// What the server logged.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.scratch.path().join("log")
    }

    /// Runs statements with the `mariadb` client, as a user would load a file (so `DELIMITER` works), and returns the
    /// rows of what they select; SQL's NULL comes as the text `NULL`.
    ///
    /// # Errors
    /// A [`crate::MariaError`] when the server refused a statement; others when there is no server or no client.
    pub fn run(&self, database: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        client::run_file(&self.socket(), database, sql)
    }

    /// How long it has run by its own word, seconds.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn up_s(&self) -> Result<u64> {
        let status = self.run("", "SHOW GLOBAL STATUS LIKE 'Uptime'")?;
        let up_s = status.first().and_then(|row| row.get(1));
        Ok(up_s.context("no uptime")?.parse()?)
    }

    /// Connects over TCP as root and shows everything on the wire.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub fn wire(&self, database: &str) -> Result<Wire> {
        Wire::connect_tcp(self.port, &Login::root(database))
    }

    fn pid_file(&self) -> PathBuf {
        self.scratch.path().join("pid")
    }

    fn tmp_dir(&self) -> PathBuf {
        self.scratch.path().join("tmp")
    }

    fn dir(&self) -> &Path {
        self.scratch.path()
    }
}
