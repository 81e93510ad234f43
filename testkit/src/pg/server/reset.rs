//! pg_resetwal.

use anyhow::ensure;

use super::PgServer;
use crate::Result;
use crate::machine::process::run;

impl PgServer {
    /// Throws the write-ahead log away, however the server was stopped.
    ///
    /// # Errors
    /// The server is running, or was killed and left its `postmaster.pid`.
    pub fn reset_wal(&self) -> Result<()> {
        ensure!(self.process.is_none(), "the server is running");
        let mut command = self.account.command(self.install.program("pg_resetwal"));
        command.arg("--force").arg("--pgdata").arg(self.data_dir());
        run(&mut command)
    }
}
