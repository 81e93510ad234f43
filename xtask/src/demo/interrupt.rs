//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How soon Ctrl-C, or the server's end, is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Whether the user asked to stop.
pub(crate) struct Interrupt {
    seen: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on Ctrl-C (and SIGTERM, SIGHUP) does not end the process but is seen here.
    pub(crate) fn watch() -> Result<Interrupt> {
        let seen = Arc::new(AtomicBool::new(false));
        let seen_by_handler = Arc::clone(&seen);
        ctrlc::set_handler(move || seen_by_handler.store(true, Ordering::SeqCst))
            .context("watching for Ctrl-C")?;
        Ok(Interrupt { seen })
    }

    pub(crate) fn seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }

    /// Waits for it while `alive` says true.
    pub(crate) fn wait(&self, mut alive: impl FnMut() -> bool) -> Result<()> {
        while !self.seen() {
            if !alive() {
                bail!("the server ended by itself");
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}
