//! Starting, stopping, killing.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use super::PgServer;
use crate::machine::process::{children, is_dead, is_stopped, send};
use crate::pg::clock::FakeClock;
use crate::{Result, WAIT_MAX, free_port, wait_until};

/// How a server is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Waits until all clients have gone.
    Smart,
    /// Ends the sessions, writes a checkpoint.
    Fast,
    /// Ends everything at once; the next start recovers.
    Immediate,
}

impl Stop {
    fn signal(self) -> Signal {
        match self {
            Stop::Smart => Signal::SIGTERM,
            Stop::Fast => Signal::SIGINT,
            Stop::Immediate => Signal::SIGQUIT,
        }
    }
}

/// How often a start is tried again on another port.
const PORT_TRIES: usize = 5;

/// What the server logs when it accepts connections, at a start and after a crash of one of its processes.
const READY: &str = "database system is ready to accept";

enum Start {
    Ready(Child),
    PortTaken,
}

impl PgServer {
    /// Starts it and waits until it accepts connections (a standby: reading ones).
    ///
    /// # Errors
    /// It is running, or does not start; the error shows its log.
    pub fn start(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("the server is running");
        }
        for _ in 0..PORT_TRIES {
            self.write_conf()?;
            match self.try_start()? {
                Start::Ready(process) => {
                    self.process = Some(process);
                    return Ok(());
                }
                Start::PortTaken => self.port = free_port()?,
            }
        }
        bail!("somebody else took the port {PORT_TRIES} times in a row");
    }

    fn try_start(&self) -> Result<Start> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_file())
            .context("opening the server's log")?;
        let log_before = self.log()?.len();
        let mut process = self.command(&log)?.spawn().context("starting the server")?;
        let started = Instant::now();
        loop {
            if self.says_ready(process.id()) {
                return Ok(Start::Ready(process));
            }
            if let Some(status) = process.try_wait()? {
                let log = self.log()?.split_off(log_before);
                if log.contains("Address already in use") {
                    return Ok(Start::PortTaken);
                }
                bail!("the server did not start ({status}):\n{log}");
            }
            if started.elapsed() > WAIT_MAX {
                kill_all(&mut process)?;
                let log = self.log()?.split_off(log_before);
                bail!(
                    "the server was not ready in {} s:\n{log}",
                    WAIT_MAX.as_secs()
                );
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn command(&self, log: &File) -> Result<Command> {
        let mut command = self.account.command(self.install.program("postgres"));
        command
            .arg("-D")
            .arg(self.data_dir())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .env_remove("PGOPTIONS")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(clock) = &self.clock {
            clock.apply(&mut command)?;
        }
        Ok(command)
    }

    /// As `pg_ctl` does it: the eighth line of `postmaster.pid`, if the first has this process.
    fn says_ready(&self, pid: u32) -> bool {
        let lines = self.pid_file();
        lines.first().is_some_and(|line| *line == pid.to_string())
            && lines.get(7).is_some_and(|line| line == "ready")
    }

    /// Stops it and waits until it is gone.
    ///
    /// # Errors
    /// It is not running, or does not stop.
    pub fn stop(&mut self, how: Stop) -> Result<()> {
        let process = self.process.as_mut().context("the server is not running")?;
        let pid = process.id();
        send(pid, how.signal())?;
        wait_until("stopping the server", WAIT_MAX, || {
            Ok(process.try_wait()?.is_some())
        })?;
        self.process = None;
        FakeClock::clean_up_after(pid);
        Ok(())
    }

    /// Stops it that way and starts it again.
    ///
    /// # Errors
    /// As [`PgServer::stop`] and [`PgServer::start`].
    pub fn restart(&mut self, how: Stop) -> Result<()> {
        self.stop(how)?;
        self.start()
    }

    /// Kills the postmaster and all its children at once, as a power loss would, and waits until they are gone.
    ///
    /// # Errors
    /// It is not running, or a process cannot be killed.
    pub fn kill9(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the server is not running")?;
        kill_all(&mut process)?;
        FakeClock::clean_up_after(process.id());
        Ok(())
    }

    /// Kills one backend, so that the server restarts all others with empty shared memory, and waits until it accepts
    /// connections again.
    ///
    /// # Errors
    /// The process cannot be killed, or the server does not come back.
    pub fn kill9_backend(&self, pid: i32) -> Result<()> {
        let times_ready = || -> Result<usize> { Ok(self.log()?.matches(READY).count()) };
        let before = times_ready()?;
        send(
            u32::try_from(pid).context("a negative process id")?,
            Signal::SIGKILL,
        )?;
        wait_until("the restart after a backend's crash", WAIT_MAX, || {
            Ok(times_ready()? > before)
        })
    }

    /// Stops all its processes where they are (SIGSTOP), as a paused machine would.
    ///
    /// # Errors
    /// It is not running, or a process cannot be stopped.
    pub fn pause(&self) -> Result<()> {
        let postmaster = self.postmaster()?;
        freeze(postmaster)?;
        for pid in children(postmaster)? {
            send(pid, Signal::SIGSTOP)?;
        }
        Ok(())
    }

    /// Lets them go on.
    ///
    /// # Errors
    /// It is not running, or a process cannot be continued.
    pub fn resume(&self) -> Result<()> {
        let postmaster = self.postmaster()?;
        for pid in children(postmaster)? {
            send(pid, Signal::SIGCONT)?;
        }
        send(postmaster, Signal::SIGCONT)
    }

    /// Whether the postmaster is there; false also when it ended by itself.
    pub fn is_running(&mut self) -> bool {
        matches!(self.process.as_mut().map(Child::try_wait), Some(Ok(None)))
    }

    fn postmaster(&self) -> Result<u32> {
        let process = self.process.as_ref().context("the server is not running")?;
        Ok(process.id())
    }

    /// A killed server leaves its System V segment, which only a restart would remove.
    fn remove_shared_memory(&self) {
        let lines = self.pid_file();
        let id = lines.get(6).and_then(|line| line.split_whitespace().nth(1));
        if let Some(id) = id {
            // Best effort: it may have gone with the server.
            let _ = Command::new("ipcrm")
                .args(["-m", id])
                .stderr(Stdio::null())
                .status();
        }
    }
}

impl Drop for PgServer {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // A paused server would not see the request to stop; and nothing of it will be needed again.
            let killed = kill_all(&mut process);
            FakeClock::clean_up_after(process.id());
            if let Err(error) = killed {
                eprintln!("a server could not be ended: {error:#}");
            }
        }
        self.remove_shared_memory();
        if std::env::var_os("KEYWRIGHT_KEEP_LOGS").is_some() {
            let kept = std::env::temp_dir().join(format!("keywright-{}.log", self.port));
            // Only a help for whoever looks for the cause of a failure.
            if fs::copy(self.log_file(), &kept).is_ok() {
                eprintln!("the server's log is kept in {}", kept.display());
            }
        }
    }
}

/// Stops the postmaster from forking and from noticing, then kills its children and itself.
fn kill_all(postmaster: &mut Child) -> Result<()> {
    freeze(postmaster.id())?;
    let children = children(postmaster.id())?;
    for &pid in &children {
        send(pid, Signal::SIGKILL)?;
    }
    postmaster.kill().context("killing the postmaster")?;
    postmaster
        .wait()
        .context("waiting for the postmaster's end")?;
    wait_until("the end of the server's processes", WAIT_MAX, || {
        Ok(children.iter().all(|&pid| is_dead(pid)))
    })
}

fn freeze(pid: u32) -> Result<()> {
    send(pid, Signal::SIGSTOP)?;
    wait_until("stopping a process in its tracks", WAIT_MAX, || {
        Ok(is_stopped(pid) || is_dead(pid))
    })
}
