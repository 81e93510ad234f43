//! Debian's packages of etcd, unpacked below `target/`.

use std::path::PathBuf;
use std::process::Command;

use crate::machine::account;
use crate::machine::apt::unpacked;
use crate::{Account, Result};

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
        let dir = unpacked("etcd", &PACKAGES)?;
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
