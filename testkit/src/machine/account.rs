//! Whom a server runs as: PostgreSQL refuses to run as root, and a test should not need to.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use nix::unistd::{User, geteuid};

use crate::Result;

/// Whom PostgreSQL servers run as when we are root.
pub(crate) const POSTGRES: &[&str] = &["postgres", "nobody"];

/// Whom MariaDB and MySQL servers run as when we are root.
pub(crate) const MYSQL: &[&str] = &["mysql", "nobody"];

/// Whom members of etcd run as when we are root.
pub(crate) const ETCD: &[&str] = &["nobody"];

/// The unprivileged account that servers run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    /// We are not root: servers run as we do.
    Ourselves,
    /// We are root: servers run as this user and group.
    Other {
        /// Numeric user id.
        uid: u32,
        /// Numeric group id.
        gid: u32,
    },
}

impl Account {
    /// Ourselves when we are not root, else the first of `names` that the system knows.
    ///
    /// # Errors
    /// We are root and there is none of them.
    pub fn for_servers(names: &[&str]) -> Result<Account> {
        if !geteuid().is_root() {
            return Ok(Account::Ourselves);
        }
        for name in names {
            let user =
                User::from_name(name).with_context(|| format!("looking up user {name:?}"))?;
            if let Some(User { uid, gid, .. }) = user {
                return Ok(Account::Other {
                    uid: uid.as_raw(),
                    gid: gid.as_raw(),
                });
            }
        }
        bail!("we are root, and there is no unprivileged user of {names:?} to run a server as");
    }

    /// Whom the system knows us as.
    ///
    /// # Errors
    /// It does not know us.
    pub fn user_name() -> Result<String> {
        let user = User::from_uid(geteuid()).context("looking us up")?;
        Ok(user.context("the system does not know us")?.name)
    }

    /// A command that runs as this account; supplementary groups are dropped with root's rights.
    #[must_use]
    pub fn command(self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        match self {
            Account::Ourselves => {}
            Account::Other { uid, gid } => {
                command.uid(uid).gid(gid);
            }
        }
        // The caller's directory may be closed to the account.
        command.current_dir("/");
        command
    }

    /// Gives the file or directory to this account.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        match self {
            Account::Ourselves => Ok(()),
            Account::Other { uid, gid } => std::os::unix::fs::chown(path, Some(uid), Some(gid))
                .with_context(|| format!("giving {} to uid {uid}", path.display())),
        }
    }
}
