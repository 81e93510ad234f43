//! Standbys, promotion, copies.

use std::fs;
use std::sync::Arc;

use anyhow::{Context, bail};

use super::{PgServer, SUPERUSER};
use crate::machine::process::run;
use crate::{Result, WAIT_MAX, query_text, wait_until};

/// Whether commits wait for the standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// They do not: what was acknowledged may be lost with the primary.
    Asynchronous,
    /// They do.
    Synchronous,
}

impl PgServer {
    /// Makes a streaming standby of this server with `pg_basebackup`, starts it, and waits until it streams.
    ///
    /// The standby has a clock of its own if this server has one.
    ///
    /// # Errors
    /// The copy fails, the standby does not start, or it does not come to stream.
    pub fn standby(&self, name: &str, replication: Replication) -> Result<PgServer> {
        let mut standby = self.sibling()?;
        let mut command = self.account.command(self.install.program("pg_basebackup"));
        command
            .arg("--pgdata")
            .arg(standby.data_dir())
            .arg("--host")
            .arg(self.socket_dir())
            .args(["--port", &self.port.to_string(), "--username", SUPERUSER])
            .args([
                "--wal-method",
                "stream",
                "--checkpoint",
                "fast",
                "--no-sync",
            ]);
        run(&mut command)?;
        let signal = standby.data_dir().join("standby.signal");
        fs::write(&signal, "").context("marking a standby")?;
        self.account.own(&signal)?;
        let primary = format!(
            "host={} port={} user={SUPERUSER} application_name={name}",
            self.socket_dir().display(),
            self.port
        );
        standby.set("primary_conninfo", &primary);
        // What the primary waits for is not what the standby, once promoted, should wait for.
        standby.set("synchronous_standby_names", "");
        standby.start()?;
        self.wait_for_replication(name, replication)?;
        Ok(standby)
    }

    fn wait_for_replication(&self, name: &str, replication: Replication) -> Result<()> {
        let mut client = self.client("postgres")?;
        let wanted = match replication {
            Replication::Asynchronous => "async",
            Replication::Synchronous => {
                client.batch_execute(&format!(
                    "ALTER SYSTEM SET synchronous_standby_names = '{name}'"
                ))?;
                client.batch_execute("SELECT pg_reload_conf()")?;
                "sync"
            }
        };
        wait_until("a standby that streams", WAIT_MAX, || {
            let row = client.query_opt(
                "SELECT 1 FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming' AND sync_state = $2",
                &[&name, &wanted],
            )?;
            Ok(row.is_some())
        })
    }

    /// Waits until the standby has replayed what this server has written up to now.
    ///
    /// # Errors
    /// It does not get there, or one of them does not answer.
    pub fn wait_replayed(&self, standby: &PgServer) -> Result<()> {
        let written = query_text(
            &mut self.client("postgres")?,
            "SELECT pg_current_wal_flush_lsn()::text",
        )?;
        let mut client = standby.client("postgres")?;
        let sql = format!("SELECT 1 WHERE pg_last_wal_replay_lsn() >= '{written}'");
        wait_until("the standby's replay", WAIT_MAX, || {
            Ok(client.query_opt(sql.as_str(), &[])?.is_some())
        })
    }

    /// Makes a standby the primary and waits until it accepts writes.
    ///
    /// # Errors
    /// It is no standby, or promotion fails.
    pub fn promote(&self) -> Result<()> {
        let mut client = self.client("postgres")?;
        let promoted: bool = client
            .query_one("SELECT pg_promote(true, 60)", &[])
            .context("promoting a standby")?
            .get(0);
        if !promoted {
            bail!("the standby was not promoted within 60 s");
        }
        wait_until("writes after promotion", WAIT_MAX, || {
            Ok(query_text(&mut client, "SELECT pg_is_in_recovery()::text")? == "false")
        })
    }

    /// A server on a copy of this one's data directory, not started; this one must be stopped or killed.
    ///
    /// # Errors
    /// This server is running, or the copy fails.
    pub fn copy(&self) -> Result<PgServer> {
        if self.process.is_some() {
            bail!("the data directory of a running server cannot be copied");
        }
        let copy = self.sibling()?;
        let mut command = self.account.command("cp");
        command.arg("-a").arg(self.data_dir()).arg(copy.data_dir());
        run(&mut command)?;
        let pid_file = copy.data_dir().join("postmaster.pid");
        if pid_file.exists() {
            fs::remove_file(&pid_file).context("removing the copy's pid file")?;
        }
        Ok(copy)
    }

    /// A server with the same settings and no data.
    fn sibling(&self) -> Result<PgServer> {
        PgServer::bare(
            Arc::clone(&self.install),
            self.account,
            self.settings.clone(),
            self.env.clone(),
            self.clock.is_some(),
        )
    }
}
