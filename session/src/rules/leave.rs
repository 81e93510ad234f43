//! What a connection has under way ends.

use keywright_wire::protocol::{AUTOCOMMIT, IN_TRANSACTION};

use crate::connection::Connection;

impl Connection {
    /// An answer has ended, or a command was refused: what it had under way ends with it, unless its transaction goes on.
    pub(crate) fn leave(&mut self) {
        if !self.may_be_open() {
            self.under_way.clear();
            self.goes_on = None;
        }
    }

    fn may_be_open(&self) -> bool {
        self.last_status & IN_TRANSACTION != 0
            || (self.is_status_old && self.last_status & AUTOCOMMIT == 0)
    }
}
