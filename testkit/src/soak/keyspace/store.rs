//! Where the bounds of the key space are.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::etcd::EtcdCluster;
use crate::{PgServer, Stop};

/// Members of the etcd cluster.
const MEMBERS: usize = 3;

/// Kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// A cluster of three.
    Etcd,
    /// A server.
    Postgres,
    /// A file of this machine.
    File,
}

/// A store that runs.
#[derive(Debug)]
pub(super) enum Store {
    Etcd {
        cluster: Box<EtcdCluster>,
        backup: Option<(PathBuf, Instant)>,
        restored: u32,
    },
    Postgres(Box<PgServer>),
    File(TempDir),
}

impl Store {
    /// Starts one.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn start(kind: StoreKind) -> Result<Store> {
        Ok(match kind {
            StoreKind::Etcd => Store::Etcd {
                cluster: Box::new(EtcdCluster::start(MEMBERS)?),
                backup: None,
                restored: 0,
            },
            StoreKind::Postgres => {
                let server = PgServer::builder().preload(false).start()?;
                let mut client = server.client("postgres")?;
                client.batch_execute("CREATE ROLE keywright LOGIN")?;
                client.batch_execute("CREATE DATABASE keywright OWNER keywright")?;
                Store::Postgres(Box::new(server))
            }
            StoreKind::File => Store::File(crate::scratch_dir()?),
        })
    }

    /// As programs name it, and further lines of their section.
    pub(super) fn section(&self) -> (String, &'static str) {
        match self {
            Store::Etcd { cluster, .. } => (format!("etcd://{}/keywright", cluster.hosts()), ""),
            Store::Postgres(server) => {
                let port = server.port();
                (
                    format!("postgres://keywright@127.0.0.1:{port}/keywright"),
                    "",
                )
            }
            Store::File(dir) => {
                let file = dir.path().join("store.db");
                (
                    format!("file:{}", file.display()),
                    "any_file_system = true\n",
                )
            }
        }
    }

    /// Kills a part of it, and starts that again after what is to happen meanwhile. A file has no process.
    ///
    /// # Errors
    /// It does not start again.
    pub(super) fn kill(
        &mut self,
        which: usize,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        match self {
            Store::Etcd { cluster, .. } => {
                let member = which % cluster.members();
                cluster.kill9(member)?;
                meanwhile()?;
                cluster.restart(member)?;
                cluster.wait()?;
            }
            Store::Postgres(server) => {
                match which % 2 {
                    0 => server.kill9()?,
                    _ => server.stop(Stop::Immediate)?,
                }
                meanwhile()?;
                server.start()?;
            }
            Store::File(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Lets a part of it stand still meanwhile.
    ///
    /// # Errors
    /// It does not run.
    pub(super) fn pause(
        &self,
        which: usize,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        match self {
            Store::Etcd { cluster, .. } => {
                let member = which % cluster.members();
                cluster.signal(member, Signal::SIGSTOP)?;
                meanwhile()?;
                cluster.signal(member, Signal::SIGCONT)?;
            }
            Store::Postgres(server) => {
                server.pause()?;
                meanwhile()?;
                server.resume()?;
            }
            Store::File(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Backs it up, if it is of a kind that a backup may take the place of.
    ///
    /// # Errors
    /// That fails.
    pub(super) fn back_up(&mut self) -> Result<bool> {
        match self {
            Store::Etcd {
                cluster, backup, ..
            } => {
                if let Some((old, _)) = backup.take() {
                    fs::remove_file(old).context("removing the last backup")?;
                }
                let began = Instant::now();
                *backup = Some((cluster.save("backup")?, began));
                Ok(true)
            }
            Store::Postgres(_) | Store::File(_) => Ok(false),
        }
    }

    /// Whether there is a backup.
    pub(super) fn has_backup(&self) -> bool {
        match self {
            Store::Etcd { backup, .. } => backup.is_some(),
            Store::Postgres(_) | Store::File(_) => false,
        }
    }

    /// Has the backup take its place; how long ago it was made, in minutes that have begun, as the operator says it.
    ///
    /// # Errors
    /// That fails, or there is none.
    pub(super) fn restore(&mut self) -> Result<u64> {
        match self {
            Store::Etcd {
                cluster,
                backup,
                restored,
            } => {
                let (file, made) = backup.take().context("no backup")?;
                *restored += 1;
                cluster.restore(&file, Some(&format!("restored-{restored}")))?;
                fs::remove_file(file).context("removing the backup")?;
                Ok(made.elapsed().as_secs() / 60 + 1)
            }
            Store::Postgres(_) | Store::File(_) => bail!("no backup"),
        }
    }
}
