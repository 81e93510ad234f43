//! Where the programs of a flavour lie and how they are called.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context, bail};

use super::fetch;
use crate::machine::process::run;
use crate::machine::scratch::Scratch;
use crate::{Account, Flavour, Result};

const MARIADB: &str = "/usr/sbin/mariadbd";

/// The programs of one flavour.
#[derive(Debug)]
pub(super) enum Programs {
    /// Debian's, installed.
    MariaDb,
    /// An unpacked tree that brings its own loader and libraries.
    MySql(Arc<Tree>),
}

/// An unpacked tree (`usr/…`) that the servers' account can reach.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    // Only when the tree in the cache is out of the account's reach.
    _copy: Option<Scratch>,
}

static TREE: Mutex<Weak<Tree>> = Mutex::new(Weak::new());

impl Programs {
    pub(super) fn of(flavour: Flavour, account: Account) -> Result<Programs> {
        match flavour {
            Flavour::MariaDb if Path::new(MARIADB).exists() => Ok(Programs::MariaDb),
            Flavour::MariaDb => bail!(
                "MariaDB is missing: install the packages `mariadb-server-core` and `mariadb-client-core`"
            ),
            Flavour::MySql => Ok(Programs::MySql(Tree::shared(account)?)),
        }
    }

    /// The command that makes an empty data directory for a server with these options.
    pub(super) fn initialise(
        &self,
        account: Account,
        data_dir: &Path,
        tmp_dir: &Path,
        options: &[String],
    ) -> Result<Command> {
        let data_dir = format!("--datadir={}", data_dir.display());
        let mut command = match self {
            Programs::MariaDb => account.command("mariadb-install-db"),
            Programs::MySql(tree) => tree.mysqld(account)?,
        };
        match self {
            Programs::MariaDb => command
                .args(["--no-defaults", &data_dir])
                .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
                .args(["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"]),
            Programs::MySql(_) => command
                .args(["--initialize-insecure", &data_dir])
                .arg("--innodb-flush-log-at-trx-commit=0"),
        };
        command.args(Programs::kept_option(options));
        // Several at once would take each other's files for their own.
        command.arg(format!("--tmpdir={}", tmp_dir.display()));
        Ok(command)
    }

    /// The option that stays with a data directory of MySQL's.
    pub(super) fn kept_option(options: &[String]) -> Option<&str> {
        let mut all = options.iter().map(String::as_str);
        all.find(|option| option.starts_with("--lower-case-table-names="))
    }

    /// The file that the server is.
    pub(super) fn server_file(&self) -> PathBuf {
        match self {
            Programs::MariaDb => PathBuf::from(MARIADB),
            Programs::MySql(tree) => tree.root.join("usr/sbin/mysqld"),
        }
    }

    /// The server's command, without the options that are the same for both flavours.
    pub(super) fn server(&self, account: Account) -> Result<Command> {
        match self {
            Programs::MariaDb => {
                let mut command = account.command(MARIADB);
                command.arg("--no-defaults");
                Ok(command)
            }
            Programs::MySql(tree) => {
                let mut command = tree.mysqld(account)?;
                // The X plugin would want a port of its own, files of the server a directory of the system's.
                command.args(["--mysqlx=OFF", "--skip-log-bin", "--secure-file-priv="]);
                Ok(command)
            }
        }
    }
}

impl Tree {
    /// The tree that all servers of this process use.
    fn shared(account: Account) -> Result<Arc<Tree>> {
        let mut shared = TREE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = shared.upgrade() {
            return Ok(tree);
        }
        let cached = fetch::mysql_tree()?;
        let tree = Arc::new(Tree::reachable(cached, account)?);
        *shared = Arc::downgrade(&tree);
        Ok(tree)
    }

    fn reachable(cached: PathBuf, account: Account) -> Result<Tree> {
        let probe = account
            .command("test")
            .arg("-x")
            .arg(cached.join("usr/sbin/mysqld"))
            .status()
            .context("asking whether the account can reach MySQL")?;
        if probe.success() {
            return Ok(Tree {
                root: cached,
                _copy: None,
            });
        }
        let scratch = Scratch::new("mysql-tree", account)?;
        run(Command::new("cp")
            .args(["-r", "--"])
            .arg(cached.join("usr"))
            .arg(scratch.path()))?;
        Ok(Tree {
            root: scratch.path().to_owned(),
            _copy: Some(scratch),
        })
    }

    /// The server, through the loader that belongs to its libraries: they are newer than this system's.
    fn mysqld(&self, account: Account) -> Result<Command> {
        let usr = self.root.join("usr");
        let libraries = usr.join(format!("lib/{}-linux-gnu", std::env::consts::ARCH));
        let loader = std::fs::read_dir(&libraries)
            .with_context(|| format!("listing {}", libraries.display()))?
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("ld-linux-"))
            .with_context(|| format!("no dynamic loader in {}", libraries.display()))?;
        let mut command = account.command(loader.path());
        command
            .arg("--library-path")
            .arg(&libraries)
            .arg(usr.join("sbin/mysqld"))
            .arg("--no-defaults")
            .arg(format!("--basedir={}", usr.display()))
            .arg(format!(
                "--lc-messages-dir={}",
                usr.join("share/mysql").display()
            ))
            .arg(format!(
                "--plugin-dir={}",
                usr.join("lib/mysql/plugin").display()
            ));
        Ok(command)
    }
}
