//! Temporary directories that a server's account can reach.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::TempDir;

use crate::{Account, Result};

/// A directory that the account can enter, removed when dropped. The path is short: a socket's may have 107 bytes.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: TempDir,
}

impl Scratch {
    pub(crate) fn new(purpose: &str, account: Account) -> Result<Scratch> {
        let base = match account {
            Account::Ourselves => std::env::temp_dir(),
            // TMPDIR of root may be closed to everybody else.
            Account::Other { .. } => PathBuf::from("/tmp"),
        };
        let dir = tempfile::Builder::new()
            .prefix(&format!("keywright-{purpose}-"))
            .tempdir_in(&base)
            .with_context(|| format!("making a temporary directory in {}", base.display()))?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))
            .context("opening a temporary directory")?;
        account.own(dir.path())?;
        Ok(Scratch { dir })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}
