//! The wait of a connection for the proxy's end.

use std::pin::{Pin, pin};
use std::task::Context;

use tokio::sync::watch;
use tokio::task::unconstrained;

/// That the proxy is stopping: the wait for it is entered once, and asked again only when something has changed.
pub(crate) struct Stopping {
    said: watch::Receiver<bool>,
    wait: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_awaited: bool,
    is_said: bool,
}

impl Stopping {
    pub(crate) fn new(said: watch::Receiver<bool>) -> Self {
        let mut receiver = said.clone();
        let wait = async move {
            // The sender lives until the process ends.
            let _ = receiver.wait_for(|stopping| *stopping).await;
        };
        Self {
            said,
            wait: Box::pin(wait),
            is_awaited: false,
            is_said: false,
        }
    }

    /// Whether it is; if not, the task is woken when it is.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if !self.is_said && (!self.is_awaited || self.said.has_changed().unwrap_or(true)) {
            self.is_awaited = true;
            // A task that has used its turn up is to wait for it all the same.
            let wait = pin!(unconstrained(self.wait.as_mut()));
            self.is_said = wait.poll(context).is_ready();
        }
        self.is_said
    }
}
