//! `keywright`, as the demo and the benchmarks build, run and kill it.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use keywright_testkit::{WAIT_MAX, wait_until, workspace_root};
use tempfile::TempDir;

use crate::shell::{cargo, run};

/// A configuration and a process. The process is killed when it is dropped.
pub(crate) struct Program {
    ports: Vec<u16>,
    process: Option<Child>,
    // Dropped last: configuration and log lie in it.
    dir: TempDir,
}

impl Program {
    /// Builds the program.
    ///
    /// # Errors
    /// It does not build.
    pub(crate) fn build() -> Result<()> {
        run(&mut cargo([
            "build",
            "--release",
            "--package",
            "keywright-proxy",
        ]))
    }

    /// One that is to listen on these ports, and has no configuration yet.
    ///
    /// # Errors
    /// There is no room for its files.
    pub(crate) fn new(ports: &[u16]) -> Result<Program> {
        Ok(Program {
            ports: ports.to_vec(),
            process: None,
            dir: TempDir::new().context("making a temporary directory")?,
        })
    }

    /// A file of its directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes its configuration.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn configure(&self, text: &str) -> Result<()> {
        fs::write(self.file("keywright.toml"), text).context("writing the configuration")
    }

    /// One of its commands.
    pub(crate) fn command(&self, what: &str) -> Command {
        let mut command = Command::new(workspace_root().join("target/release/keywright"));
        command
            .arg(what)
            .arg("--config")
            .arg(self.file("keywright.toml"));
        command
    }

    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// It ends, or does not listen.
    pub(crate) fn start(&mut self) -> Result<()> {
        let log_file = self.file("log");
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(&log_file)?;
        let mut process = self
            .command("run")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting keywright")?;
        let accepts = |port: &u16| TcpStream::connect(("127.0.0.1", *port)).is_ok();
        wait_until("keywright", WAIT_MAX, || {
            if let Some(status) = process.try_wait()? {
                bail!("keywright ended ({status}):\n{}", self.log());
            }
            Ok(self.ports.iter().all(accepts))
        })?;
        self.process = Some(process);
        Ok(())
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    /// Has it read its configuration again.
    ///
    /// # Errors
    /// It does not run.
    pub(crate) fn reload(&self) -> Result<()> {
        let process = self.process.as_ref().context("keywright does not run")?;
        run(Command::new("kill")
            .arg("-HUP")
            .arg(process.id().to_string()))
    }

    /// Kills it, if it runs.
    ///
    /// # Errors
    /// It does not end.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill().context("killing keywright")?;
            process.wait().context("waiting for its end")?;
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // There is nobody to tell, and the process may have ended by itself.
        let _ = self.kill();
    }
}
