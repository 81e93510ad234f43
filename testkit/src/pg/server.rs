//! A private PostgreSQL server.

mod builder;
mod dump;
mod life;
mod replica;
mod reset;
mod upgrade;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use postgres::{Client, Config, NoTls};

pub use builder::PgServerBuilder;
pub use life::Stop;
pub use replica::Replication;

use crate::machine::scratch::Scratch;
use crate::{Account, FakeClock, PgInstall, Result};

/// The superuser that `initdb` makes; every connection is trusted.
const SUPERUSER: &str = "postgres";

/// A server with its data directory. It is stopped and removed when dropped.
#[derive(Debug)]
pub struct PgServer {
    install: Arc<PgInstall>,
    account: Account,
    /// Lines of the configuration, in the order in which they were asked for: the last one of a name counts.
    settings: Vec<(String, String)>,
    env: Vec<(String, String)>,
    port: u16,
    clock: Option<FakeClock>,
    process: Option<Child>,
    // Dropped last: the directory that data, socket and log lie in.
    scratch: Scratch,
}

impl PgServer {
    /// The installation that it runs from.
    #[must_use]
    pub fn install(&self) -> &PgInstall {
        &self.install
    }

    /// The port on 127.0.0.1; it may change at a restart when another process has taken it.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// The directory of the UNIX socket.
    #[must_use]
    pub fn socket_dir(&self) -> PathBuf {
        self.scratch.path().join("socket")
    }

    /// The clock that [`PgServerBuilder::fake_clock`] gave it.
    ///
    /// # Errors
    /// The server goes by the real clock.
    pub fn clock(&self) -> Result<&FakeClock> {
        self.clock
            .as_ref()
            .context("this server was started without a fake clock")
    }

    /// How to connect over the UNIX socket; further options (`options`, `notice_callback`, …) can be set on it.
    #[must_use]
    pub fn config(&self, database: &str, user: &str) -> Config {
        let mut config = Config::new();
        config
            .host_path(self.socket_dir())
            .port(self.port)
            .user(user)
            .dbname(database)
            .connect_timeout(Duration::from_secs(30));
        config
    }

    /// Connects as that user.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub fn connect(&self, database: &str, user: &str) -> Result<Client> {
        let client = self.config(database, user).connect(NoTls);
        client.with_context(|| format!("connecting to database {database:?} as {user:?}"))
    }

    /// Connects as superuser.
    ///
    /// # Errors
    /// The server refuses, or is not there.
    pub fn client(&self, database: &str) -> Result<Client> {
        self.connect(database, SUPERUSER)
    }

    /// How to connect over TCP as superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!(
            "postgresql://{SUPERUSER}@127.0.0.1:{}/{database}",
            self.port
        )
    }

    /// One of the installation's client programs (`psql`, `pg_dump`, `pgbench`), set up to reach this server as
    /// superuser over the UNIX socket.
    #[must_use]
    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.install.program(name));
        command
            .env("PGHOST", self.socket_dir())
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", SUPERUSER)
            .env("PGDATABASE", "postgres")
            .env_remove("PGOPTIONS");
        command
    }

    /// Everything the server has written so far.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(self.log_file()).context("reading the server's log")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether the log has the fragment.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log_contains(&self, fragment: &str) -> Result<bool> {
        Ok(self.log()?.contains(fragment))
    }

    /// Has this setting in force from the next start on; it wins over what was said before.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    fn log_file(&self) -> PathBuf {
        self.scratch.path().join("log")
    }

    fn conf_file(&self) -> PathBuf {
        self.data_dir().join("keywright_test.conf")
    }

    /// Writes what `postgresql.conf` includes.
    fn write_conf(&self) -> Result<()> {
        let mut text = String::from("# written at every start\n");
        let socket_dir = self.socket_dir();
        let own = [
            ("port", self.port.to_string()),
            ("unix_socket_directories", socket_dir.display().to_string()),
        ];
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let asked = self
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in asked.chain(own) {
            let quoted = value.replace('\'', "''");
            text.push_str(&format!("{name} = '{quoted}'\n"));
        }
        let file = self.conf_file();
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        self.account.own(&file)
    }

    /// The lines of `postmaster.pid`; empty when there is none.
    fn pid_file(&self) -> Vec<String> {
        let text = fs::read_to_string(self.data_dir().join("postmaster.pid")).unwrap_or_default();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

/// Makes a directory that belongs to the account.
fn make_dir(account: Account, dir: &Path) -> Result<()> {
    fs::create_dir(dir).with_context(|| format!("making {}", dir.display()))?;
    account.own(dir)
}
