//! Starting, stopping and killing a server.

use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use super::Upstream;
use super::initialised::initialise;
use super::programs::Programs;
use crate::machine::account;
use crate::machine::process::send;
use crate::machine::scratch::Scratch;
use crate::{Account, Flavour, Result, WAIT_MAX, free_port, wait_until};

/// How often a start is tried again on another port.
const PORT_TRIES: usize = 5;

fn first_start(
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
        scratch: Scratch::for_data(flavour.name(), account)?,
    };
    let tmp_dir = server.tmp_dir();
    fs::create_dir(&tmp_dir).context("making the server's temporary directory")?;
    account.own(&tmp_dir)?;
    initialise(
        &server.programs,
        account,
        &server.data_dir(),
        &tmp_dir,
        &server.options,
    )?;
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

/// Servers that tests of one process share; a plain static would outlive them all, and the server with it.
static SHARED: [Mutex<Weak<Upstream>>; 2] = [Mutex::new(Weak::new()), Mutex::new(Weak::new())];

impl Upstream {
    /// Initialises a data directory and starts a server on it.
    ///
    /// # Errors
    /// The server is missing, cannot be fetched or does not start; the error shows its log.
    pub fn start(flavour: Flavour) -> Result<Upstream> {
        Upstream::start_with(flavour, &[])
    }

    /// As [`Upstream::start`], with options added to the server's command line, at this and at every later start.
    ///
    /// # Errors
    /// As [`Upstream::start`].
    pub fn start_with(flavour: Flavour, options: &[&str]) -> Result<Upstream> {
        let account = Account::for_servers(account::MYSQL)?;
        let programs = Programs::of(flavour, account)?;
        first_start(flavour, account, programs, options)
    }

    /// A server that the tests of this process share; it ends with the last that holds it. Its tests use schemas of
    /// their own and leave global settings alone.
    ///
    /// # Errors
    /// As [`Upstream::start`].
    pub fn shared(flavour: Flavour) -> Result<Arc<Upstream>> {
        let [mariadb, mysql] = &SHARED;
        let shared = match flavour {
            Flavour::MariaDb => mariadb,
            Flavour::MySql => mysql,
        };
        // Under the lock on purpose: the others want the same.
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Upstream::start(flavour)?);
        *shared = Arc::downgrade(&server);
        Ok(server)
    }

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

    /// MySQL makes root for `localhost` only, which TCP connections do not match without name lookups. No replica is told.
    fn write_init_file(&self) -> Result<()> {
        let sql = "SET sql_log_bin = 0;\nCREATE USER IF NOT EXISTS root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n";
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
        match self.flavour {
            // What is killed here is the server, not the machine: definitions of tables need no disk, which is most of what DDL waits for.
            Flavour::MariaDb => command.arg("--sync-frm=OFF"),
            Flavour::MySql => command.arg(format!(
                "--init-file={}",
                self.dir().join("init.sql").display()
            )),
        };
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
