//! Dumps of databases, and other databases that are made of them.

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, ensure};

use super::PgServer;
use crate::Result;

impl PgServer {
    /// A dump of a database, as a script, by `pg_dump` with further arguments.
    ///
    /// # Errors
    /// `pg_dump` fails.
    pub fn dump(&self, database: &str, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = self.tool("pg_dump");
        let output = command.args(arguments).arg(database).output()?;
        ensure!(
            output.status.success(),
            "pg_dump: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }

    /// Runs the script of a dump in a database, up to its first error.
    ///
    /// # Errors
    /// There was one.
    pub fn restore(&self, database: &str, script: &[u8]) -> Result<()> {
        let mut psql = self.tool("psql");
        psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", database])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut psql = psql.spawn()?;
        let mut input = psql.stdin.take().context("psql has no standard input")?;
        let written = input.write_all(script);
        drop(input);
        let output = psql.wait_with_output()?;
        // Behind an error psql reads no more: what it says of that comes first.
        ensure!(
            output.status.success(),
            "psql: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        written.context("handing psql the script")
    }
}
