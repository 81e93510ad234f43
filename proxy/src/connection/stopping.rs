//! The wait of a connection for the proxy's end.

use std::task::Context;

use tokio::sync::watch;

use crate::connection::changes::Changes;

/// That the program is stopping.
pub(crate) struct Stopping {
    said: Changes<bool>,
    is_said: bool,
}

impl Stopping {
    pub(crate) fn new(said: watch::Receiver<bool>) -> Self {
        let said = Changes::new(said);
        let is_said = *said.value().borrow();
        Self { said, is_said }
    }

    /// Whether it is; if not, the task is woken when it is.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if !self.is_said && self.said.poll(context) {
            self.is_said = *self.said.value().borrow();
        }
        self.is_said
    }
}
