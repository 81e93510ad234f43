//! What the proxy sends a client unasked: that it is stopping, or that the connection cannot follow the rules.

use keywright_core::Cause;

use crate::answer::errors::write_error;
use crate::session::Session;

impl Session {
    /// Tells a client between two commands that the proxy is stopping. It is numbered as the answer to the next command, which
    /// is on its way already, or meets a closed connection otherwise.
    pub fn tell_stopping(&mut self) {
        let why = "Server shutdown in progress: the proxy is stopping";
        write_error(Cause::Draining, why, 1, &mut self.down);
    }

    /// The same, where the rules have changed and the connection cannot follow them.
    pub fn tell_outdated(&mut self) {
        let why = "Server shutdown in progress: the rules have changed, and what this connection has prepared goes by the old ones: connect again";
        write_error(Cause::Draining, why, 1, &mut self.down);
    }
}
