//! What the requests of one connection draw on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use keywright_core::Cause;
use keywright_store::Failure;
use tokio::sync::watch;

use crate::config::port::http::HttpLimits;
use crate::connection::memory::Memory;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::http::socket::Activity;
use crate::users::turns::Line;

/// Wrong passwords on one connection, behind which it ends.
const LOGIN_FAILURES_MAX: u32 = 4;

/// What requests draw on.
pub(super) struct HttpContext {
    /// The port's place in the configuration.
    pub(super) port: usize,
    /// Where the client waits until a password is looked at.
    pub(super) line: Line,
    /// What is in force.
    pub(super) snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
    /// What is bounded.
    pub(super) limits: HttpLimits,
    /// What long answers take their room of.
    pub(super) memory: Arc<Memory>,
    /// What happens on the connection.
    pub(super) activity: Arc<Activity>,
    /// Wrong passwords that came on it.
    pub(super) login_failures: AtomicU32,
}

impl HttpContext {
    /// Whether that was one wrong password too many on this connection.
    pub(super) fn is_guessing(&self, failure: &Failure) -> bool {
        failure.cause() == Cause::PasswordWrong
            && self.login_failures.fetch_add(1, Ordering::Relaxed) >= LOGIN_FAILURES_MAX
    }
}
