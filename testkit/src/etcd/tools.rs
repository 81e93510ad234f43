//! Debian's packages of etcd, unpacked below `target/`.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::machine::account;
use crate::{Account, Result, unpack_packages, workspace_root};

const PACKAGES: [&str; 2] = ["etcd-server", "etcd-client"];

/// `etcd` and `etcdctl`.
#[derive(Debug, Clone)]
pub struct EtcdTools {
    dir: PathBuf,
    account: Account,
}

impl EtcdTools {
    /// Fetched, if they are not there yet.
    ///
    /// # Errors
    /// They cannot be had.
    pub fn get() -> Result<EtcdTools> {
        let target = workspace_root().join("target");
        fs::create_dir_all(&target)?;
        let lock = File::create(target.join("etcd.lock")).context("making a lock")?;
        lock.lock().context("locking target/etcd")?;
        let dir = target.join("etcd");
        let whole = dir.join("whole");
        if !whole.exists() {
            if dir.exists() {
                fs::remove_dir_all(&dir).context("removing what is not whole")?;
            }
            fs::create_dir(&dir)?;
            unpack_packages(&PACKAGES, &dir)?;
            fs::write(whole, "")?;
        }
        Ok(EtcdTools {
            dir,
            account: Account::for_servers(account::ETCD)?,
        })
    }

    /// Whom servers run as.
    pub(super) fn account(&self) -> Account {
        self.account
    }

    /// One of the programs, run by the unprivileged account.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = self.account.command(self.dir.join("usr/bin").join(program));
        command.env("ETCDCTL_API", "3");
        command
    }
}
