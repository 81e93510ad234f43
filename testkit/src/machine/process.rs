//! Programs that run to their end, and processes of a server, found and ended by id.

use std::fs;
use std::process::Command;

use anyhow::{Context, ensure};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Result;

/// Runs a command to its end and shows its output when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    Ok(())
}

/// Sends the signal; a process that is already gone is no error.
pub(crate) fn send(pid: u32, signal: Signal) -> Result<()> {
    let raw = i32::try_from(pid).with_context(|| format!("process id {pid}"))?;
    match kill(Pid::from_raw(raw), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno).with_context(|| format!("sending {signal} to process {pid}")),
    }
}

/// The ids of the processes whose parent is `parent`.
pub(crate) fn children(parent: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("listing /proc")? {
        let name = entry.context("listing /proc")?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if stat(pid).is_some_and(|stat| stat.parent == parent) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Whether the process is gone, or dead and only waits for its parent to notice.
pub(crate) fn is_dead(pid: u32) -> bool {
    stat(pid).is_none_or(|stat| matches!(stat.state, 'Z' | 'X'))
}

/// Whether the process is stopped by a signal.
pub(crate) fn is_stopped(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state == 'T')
}

struct Stat {
    state: char,
    parent: u32,
}

/// `/proc/PID/stat`: `pid (name) state parent …`; the name may hold blanks and parentheses.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Stat { state, parent })
}
