//! What to start, and how it is initialised.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use anyhow::Context;

use super::{PgServer, SUPERUSER, make_dir};
use crate::machine::account;
use crate::machine::process::run;
use crate::machine::scratch::Scratch;
use crate::{Account, FakeClock, PgInstall, PgVersion, Result, free_port};

/// What a server is started with.
#[derive(Debug)]
pub struct PgServerBuilder {
    version: Option<PgVersion>,
    install: Option<Arc<PgInstall>>,
    preload: bool,
    fsync: bool,
    fake_clock: bool,
    settings: Vec<(String, String)>,
    env: Vec<(String, String)>,
}

impl Default for PgServerBuilder {
    fn default() -> PgServerBuilder {
        PgServerBuilder {
            version: None,
            install: None,
            preload: true,
            fsync: false,
            fake_clock: false,
            settings: Vec::new(),
            env: Vec::new(),
        }
    }
}

impl PgServerBuilder {
    /// Another version than [`PgVersion::under_test`].
    #[must_use]
    pub fn version(mut self, version: PgVersion) -> PgServerBuilder {
        self.version = Some(version);
        self
    }

    /// An installation other than the shared one.
    #[must_use]
    pub fn install(mut self, install: Arc<PgInstall>) -> PgServerBuilder {
        self.install = Some(install);
        self
    }

    /// Whether keywright is in `shared_preload_libraries`; it is unless told otherwise.
    #[must_use]
    pub fn preload(mut self, preload: bool) -> PgServerBuilder {
        self.preload = preload;
        self
    }

    /// Whether the server flushes to disk. Off unless told otherwise: what a killed process wrote, the system keeps.
    #[must_use]
    pub fn fsync(mut self, fsync: bool) -> PgServerBuilder {
        self.fsync = fsync;
        self
    }

    /// Gives the server a clock that can be stepped: [`PgServer::clock`].
    #[must_use]
    pub fn fake_clock(mut self) -> PgServerBuilder {
        self.fake_clock = true;
        self
    }

    /// A line of the configuration.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> PgServerBuilder {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A variable of the server's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> PgServerBuilder {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Initialises a data directory and starts the server.
    ///
    /// # Errors
    /// PostgreSQL is missing, the extension does not build, or the server does not start; the error shows its log.
    pub fn start(self) -> Result<PgServer> {
        let mut server = self.initialise()?;
        server.start()?;
        Ok(server)
    }

    /// As [`PgServerBuilder::start`], but the server is not started yet.
    ///
    /// # Errors
    /// PostgreSQL is missing, the extension does not build, or `initdb` fails.
    pub fn initialise(self) -> Result<PgServer> {
        let install = match (self.install, self.version) {
            (Some(install), _) => install,
            (None, Some(version)) => PgInstall::shared(version)?,
            (None, None) => PgInstall::shared(PgVersion::under_test()?)?,
        };
        let account = Account::for_servers(account::POSTGRES)?;
        let mut settings = default_settings(self.preload, self.fsync);
        settings.extend(self.settings);
        let server = PgServer::bare(install, account, settings, self.env, self.fake_clock)?;
        server.initdb()?;
        Ok(server)
    }
}

impl PgServer {
    /// What to start.
    #[must_use]
    pub fn builder() -> PgServerBuilder {
        PgServerBuilder::default()
    }

    /// A server without data: its directory, its socket's, and a port.
    pub(super) fn bare(
        install: Arc<PgInstall>,
        account: Account,
        settings: Vec<(String, String)>,
        env: Vec<(String, String)>,
        fake_clock: bool,
    ) -> Result<PgServer> {
        let scratch = Scratch::for_data("server", account)?;
        make_dir(account, &scratch.path().join("socket"))?;
        let clock = if fake_clock {
            Some(FakeClock::new(scratch.path(), account)?)
        } else {
            None
        };
        Ok(PgServer {
            install,
            account,
            settings,
            env,
            port: free_port()?,
            clock,
            process: None,
            scratch,
        })
    }

    fn initdb(&self) -> Result<()> {
        let mut command = self.account.command(self.install.program("initdb"));
        command
            .arg("--pgdata")
            .arg(self.data_dir())
            .args([
                "--username",
                SUPERUSER,
                "--auth",
                "trust",
                "--encoding",
                "UTF8",
            ])
            .args(["--locale", "C", "--no-sync", "--no-instructions"]);
        run(&mut command)?;
        let mut conf = fs::OpenOptions::new()
            .append(true)
            .open(self.data_dir().join("postgresql.conf"))
            .context("opening postgresql.conf")?;
        writeln!(conf, "include 'keywright_test.conf'").context("adding to postgresql.conf")
    }
}

fn default_settings(preload: bool, fsync: bool) -> Vec<(String, String)> {
    let fsync = if fsync { "on" } else { "off" };
    let mut settings = vec![
        ("listen_addresses", "127.0.0.1"),
        ("fsync", fsync),
        // Files below the data directory, removed with it; POSIX shared memory would outlive a killed server.
        ("dynamic_shared_memory_type", "mmap"),
        // A standby that was just copied finds the log it needs.
        ("wal_keep_size", "256MB"),
        ("log_line_prefix", "%m [%p] "),
    ];
    if preload {
        settings.push(("shared_preload_libraries", "keywright"));
    }
    settings
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
