//! A program that runs: started here, or by one that was.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use anyhow::Context;
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::process::{is_dead, send};
use super::wait::{WAIT_MAX, wait_until};
use crate::Result;

/// A program that runs. It is killed when dropped, unless its end was seen.
#[derive(Debug)]
pub struct Program {
    pid: u32,
    ended: Option<ExitStatus>,
}

impl Program {
    /// Started here.
    pub(crate) fn of(child: &Child) -> Program {
        Program {
            pid: child.id(),
            ended: None,
        }
    }

    /// Started by one that was started here: it becomes ours when that ends.
    #[must_use]
    pub fn adopted(pid: u32) -> Program {
        Program { pid, ended: None }
    }

    /// Has this process become the parent of whatever its children leave behind.
    pub(crate) fn adopt_what_is_left() -> Result<()> {
        set_child_subreaper(true).context("becoming the parent of orphans")
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its exit status, if it has ended. One that was adopted is seen to end when its own parent has.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let pid = Pid::from_raw(i32::try_from(self.pid)?);
        self.ended = match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => Some(ExitStatus::from_raw(code << 8)),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(ExitStatus::from_raw(signal as i32)),
            // Another's child still.
            Ok(_) | Err(Errno::ECHILD) => None,
            Err(errno) => return Err(errno).context(format!("waiting for process {}", self.pid)),
        };
        Ok(self.ended)
    }

    /// Waits for its end; kills it if that does not come.
    ///
    /// # Errors
    /// It does not end by itself.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let mut ended = None;
        let waited = wait_until("the end of the program", WAIT_MAX, || {
            ended = self.try_wait()?;
            Ok(ended.is_some())
        });
        if waited.is_err() {
            self.kill()?;
        }
        waited?;
        ended.context("the program's exit status")
    }

    /// Kills it and waits for its end.
    ///
    /// # Errors
    /// It cannot be killed.
    pub(crate) fn kill(&mut self) -> Result<()> {
        send(self.pid, Signal::SIGKILL)?;
        wait_until("the end of the killed program", WAIT_MAX, || {
            Ok(self.try_wait()?.is_some() || is_dead(self.pid))
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.ended.is_none()
            && let Err(error) = send(self.pid, Signal::SIGKILL)
        {
            eprintln!("the program could not be ended: {error:#}");
        }
        let _reaped = self.try_wait();
    }
}
