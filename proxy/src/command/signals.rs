//! What the process is told from outside, and what it tells the service manager.

use anyhow::Result;
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A file has reached the largest size that the process may give it (`RLIMIT_FSIZE`); the number on Linux, MIPS apart.
const SIGXFSZ: i32 = 25;

/// Signals that do not end the process by themselves.
pub(super) struct Signals {
    pub(super) stop: Stop,
    /// The configuration is to be read again.
    pub(super) hangup: Signal,
    /// A new program is to take over.
    pub(super) take_over: Signal,
}

impl Signals {
    /// Inside a runtime.
    pub(super) fn awaited() -> Result<Signals> {
        // A store's file that may not grow any more is told as an error where it is written; unless somebody has asked for the signal, it
        // ends the process.
        drop(signal(SignalKind::from_raw(SIGXFSZ))?);
        Ok(Signals {
            stop: Stop {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            },
            hangup: signal(SignalKind::hangup())?,
            take_over: signal(SignalKind::user_defined2())?,
        })
    }
}

/// SIGTERM and Ctrl-C.
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(super) async fn said(&mut self) {
        let signal = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal, "told to stop");
    }
}

/// Where systemd started the program and waits to hear of it.
pub(super) fn tell_systemd(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(false, &[state]) {
        tracing::warn!(%error, "systemd cannot be told");
    }
}
