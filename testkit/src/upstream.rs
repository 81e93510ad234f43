//! Private MariaDB and MySQL servers: what the proxy stands in front of, and where it keeps its bounds.

mod fetch;
mod life;
mod programs;

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::scratch::Scratch;
use crate::{Account, Login, Result, Wire, maria};
use programs::Programs;

/// Which of the two families a server is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    /// MariaDB, Debian's.
    MariaDb,
    /// Oracle's MySQL, from Debian's unstable suite, kept below `target/`; nothing of it is installed.
    MySql,
}

/// How servers refuse to make a key of their own where the fence stands: MariaDB says 167 for most types.
pub const AT_FENCE: [u16; 2] = [1467, 167];

impl Flavour {
    /// Both.
    pub const ALL: [Flavour; 2] = [Flavour::MariaDb, Flavour::MySql];

    /// The variable that restricts tests to one flavour, for a machine that cannot have the other.
    pub const VARIABLE: &'static str = "KEYWRIGHT_UPSTREAM";

    /// As the variable and files spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Flavour::MariaDb => "mariadb",
            Flavour::MySql => "mysql",
        }
    }

    /// The flavour of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Flavour> {
        Flavour::ALL
            .into_iter()
            .find(|flavour| flavour.name() == name)
    }

    /// Whether tests on this flavour are wanted: they are unless [`Flavour::VARIABLE`] names the other one, and then it is
    /// said that they did not run. A server that is wanted and cannot be had is an error, never a test that passes.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        let Ok(only) = std::env::var(Flavour::VARIABLE) else {
            return true;
        };
        let wanted = only == self.name();
        if !wanted {
            eprintln!(
                "NOT RUN on {}: {} is {only:?}",
                self.name(),
                Flavour::VARIABLE
            );
        }
        wanted
    }
}

/// Makes of each function `fn name(flavour: Flavour) -> Result<()>` a test on MariaDB and one on MySQL.
#[macro_export]
macro_rules! on_both_flavours {
    ($($name:ident),* $(,)?) => {
        mod mariadb {
            $(#[test] fn $name() -> $crate::Result<()> { super::run_on($crate::Flavour::MariaDb, super::$name) })*
        }
        mod mysql {
            $(#[test] fn $name() -> $crate::Result<()> { super::run_on($crate::Flavour::MySql, super::$name) })*
        }
        fn run_on(
            flavour: $crate::Flavour,
            test: fn($crate::Flavour) -> $crate::Result<()>,
        ) -> $crate::Result<()> {
            if flavour.is_wanted() { test(flavour) } else { Ok(()) }
        }
    };
}

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

/// Servers that tests of one process share; a plain static would outlive them all, and the server with it.
static SHARED: [Mutex<Weak<Upstream>>; 2] = [Mutex::new(Weak::new()), Mutex::new(Weak::new())];

impl Upstream {
    /// Initialises a data directory and starts a server on it.
    ///
    /// # Errors
    /// The server is missing, cannot be fetched or does not start; the error shows its log.
    pub fn start(flavour: Flavour) -> Result<Upstream> {
        Upstream::start_with(flavour, &[])
    }

    /// As [`Upstream::start`], with options added to the server's command line, at this and at every later start.
    ///
    /// # Errors
    /// As [`Upstream::start`].
    pub fn start_with(flavour: Flavour, options: &[&str]) -> Result<Upstream> {
        let account = Account::for_servers(maria::ACCOUNTS)?;
        let programs = Programs::of(flavour, account)?;
        life::first_start(flavour, account, programs, options)
    }

    /// A server that the tests of this process share; it ends with the last that holds it. Its tests use schemas of
    /// their own and leave global settings alone.
    ///
    /// # Errors
    /// As [`Upstream::start`].
    pub fn shared(flavour: Flavour) -> Result<Arc<Upstream>> {
        let [mariadb, mysql] = &SHARED;
        let shared = match flavour {
            Flavour::MariaDb => mariadb,
            Flavour::MySql => mysql,
        };
        // Under the lock on purpose: the others want the same.
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Upstream::start(flavour)?);
        *shared = Arc::downgrade(&server);
        Ok(server)
    }

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
        maria::run_file(&self.socket(), database, sql)
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
