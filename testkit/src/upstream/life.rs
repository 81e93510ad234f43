//! Starting, stopping and killing a server.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use super::programs::Programs;
use super::{Flavour, Upstream};
use crate::process::send;
use crate::scratch::Scratch;
use crate::server::{free_port, run};
use crate::{Account, Result, WAIT_MAX, wait_until};

/// How often a start is tried again on another port.
const PORT_TRIES: usize = 5;

pub(super) fn first_start(
    flavour: Flavour,
    account: Account,
    programs: Programs,
    options: &[&str],
) -> Result<Upstream> {
    let mut server = Upstream {
        flavour,
        account,
        programs,
        options: options.iter().map(|&option| option.to_owned()).collect(),
        port: free_port()?,
        process: None,
        scratch: Scratch::new(flavour.name(), account)?,
    };
    let tmp_dir = server.tmp_dir();
    fs::create_dir(&tmp_dir).context("making the server's temporary directory")?;
    account.own(&tmp_dir)?;
    run(&mut server.programs.initialise(
        account,
        &server.data_dir(),
        &tmp_dir,
        &server.options,
    )?)?;
    if flavour == Flavour::MySql {
        server.write_init_file()?;
    }
    for _ in 0..PORT_TRIES {
        if server.try_start()? {
            return Ok(server);
        }
        server.port = free_port()?;
    }
    bail!("somebody else took the port {PORT_TRIES} times in a row");
}

impl Upstream {
    /// Starts the server again after [`Upstream::stop`] or [`Upstream::kill9`], on the same port.
    ///
    /// # Errors
    /// It does not start, or it runs.
    pub fn restart(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("the server runs already");
        }
        if !self.try_start()? {
            bail!("somebody else took port {} meanwhile", self.port);
        }
        Ok(())
    }

    /// Stops the server, and starts it again where another one was reached, which has ended: as after a failover.
    ///
    /// # Errors
    /// It does not end or start, or somebody else took the port.
    pub fn move_to(&mut self, port: u16) -> Result<()> {
        self.stop()?;
        self.port = port;
        self.restart()
    }

    /// Stops the server in order and waits for its end.
    ///
    /// # Errors
    /// It does not end, or does not run.
    pub fn stop(&mut self) -> Result<()> {
        self.end(Signal::SIGTERM)
    }

    /// Kills the server and waits for its end.
    ///
    /// # Errors
    /// It does not end, or does not run.
    pub fn kill9(&mut self) -> Result<()> {
        self.end(Signal::SIGKILL)
    }

    /// Sends the server's process a signal, such as SIGSTOP and SIGCONT.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let process = self.process.as_ref().context("the server does not run")?;
        send(process.id(), signal)
    }

    fn end(&mut self, signal: Signal) -> Result<()> {
        let mut process = self.process.take().context("the server does not run")?;
        send(process.id(), signal)?;
        wait_until("the end of the server", WAIT_MAX, || {
            Ok(process.try_wait()?.is_some())
        })
    }

    /// MySQL makes root for `localhost` only, which TCP connections do not match without name lookups.
    fn write_init_file(&self) -> Result<()> {
        let sql = "CREATE USER IF NOT EXISTS root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n";
        fs::write(self.dir().join("init.sql"), sql).context("writing the server's first statements")
    }

    fn spawn(&self) -> Result<Child> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_file())?;
        let mut command = self.programs.server(self.account)?;
        command
            .arg(format!("--datadir={}", self.data_dir().display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--pid-file={}", self.pid_file().display()))
            .arg(format!("--tmpdir={}", self.tmp_dir().display()))
            .arg(format!("--port={}", self.port))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args(["--innodb-flush-log-at-trx-commit=0", "--local-infile=ON"])
            // A machine that is busy makes statements slow, and their status flags would say so.
            .arg("--long-query-time=3600");
        if self.flavour == Flavour::MySql {
            command.arg(format!(
                "--init-file={}",
                self.dir().join("init.sql").display()
            ));
        }
        command
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", self.flavour.name()))
    }

    /// False when the port was taken.
    fn try_start(&mut self) -> Result<bool> {
        // A log of its own for each start: the last one's says "ready" too.
        if self.log_file().exists() {
            fs::rename(self.log_file(), self.dir().join("log.before"))?;
        }
        let mut process = self.spawn()?;
        let started = Instant::now();
        loop {
            let log = fs::read_to_string(self.log_file()).unwrap_or_default();
            if let Some(status) = process.try_wait()? {
                if log.contains("Address already in use") {
                    return Ok(false);
                }
                bail!("{} did not start ({status}):\n{log}", self.flavour.name());
            }
            if log.contains("ready for connections") {
                self.process = Some(process);
                return Ok(true);
            }
            if started.elapsed() > WAIT_MAX {
                process.kill()?;
                process.wait()?;
                bail!(
                    "{} was not ready in {} s:\n{log}",
                    self.flavour.name(),
                    WAIT_MAX.as_secs()
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if self.process.is_none() {
            return;
        }
        if let Err(error) = self.kill9() {
            eprintln!("{} could not be ended: {error:#}", self.flavour.name());
        }
    }
}
