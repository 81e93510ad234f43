//! pg_upgrade.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::{PgServer, SUPERUSER};
use crate::{Result, free_port};

impl PgServer {
    /// Runs `pg_upgrade` from this server, which was stopped, to one that was initialised and not started.
    ///
    /// # Errors
    /// It fails; the error shows what it printed and its list of libraries that did not load.
    pub fn upgrade_to(&self, new: &PgServer, arguments: &[&str]) -> Result<()> {
        ensure!(self.process.is_none(), "the old server is running");
        new.write_conf()?;
        let mut command = new.account.command(new.install.program("pg_upgrade"));
        let ports = [free_port()?, free_port()?].map(|port| port.to_string());
        command
            .current_dir(new.scratch.path())
            .arg("--old-bindir")
            .arg(self.bindir()?)
            .arg("--new-bindir")
            .arg(new.bindir()?)
            .arg("--old-datadir")
            .arg(self.data_dir())
            .arg("--new-datadir")
            .arg(new.data_dir())
            .arg("--socketdir")
            .arg(new.socket_dir())
            .args(["--old-port", &ports[0], "--new-port", &ports[1]])
            .args(["--username", SUPERUSER])
            .args(arguments);
        let output = command.output().context("running pg_upgrade")?;
        ensure!(
            output.status.success(),
            "pg_upgrade: {}{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            found_below(new.scratch.path(), "loadable_libraries.txt")?,
        );
        Ok(())
    }

    fn bindir(&self) -> Result<PathBuf> {
        let program = self.install.program("postgres");
        let bindir = program.parent().context("a program without a directory")?;
        Ok(bindir.to_path_buf())
    }
}

/// What the files of that name hold; versions put them into different places.
fn found_below(dir: &Path, name: &str) -> Result<String> {
    let mut text = String::new();
    for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            text.push_str(&found_below(&path, name)?);
        } else if path.file_name().is_some_and(|file| file == name) {
            text.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(text)
}
