//! A client that takes its leave: COM_QUIT, then the end of its connection.
//!
//! The server has no answer to that. Where nothing else is under way, its connection is closed as the client's was, and nobody waits for
//! the server's own end: a client that talks to the server itself does the same. COM_QUIT and the end go out in one segment.

use std::task::Context;

use keywright_session::Rest;

use super::Relay;

/// COM_QUIT, whole.
const QUIT: &[u8] = &[1, 0, 0, 0, 1];

impl Relay {
    /// Reads on to the client's end where it has said that it leaves: that is often there already.
    pub(super) fn read_to_end(&mut self, context: &mut Context<'_>) {
        if self.client.input.there() != QUIT {
            return;
        }
        // Where it breaks, what the client has said is still to go out.
        if self.client.stream.is_at_end(context) || self.client.poll_read(context).is_err() {
            self.client.input.end();
        }
    }

    /// Whether the client's bytes say that it leaves, in the midst of nothing. A connection with TLS has a goodbye of its own.
    pub(super) fn says_goodbye(&self) -> bool {
        self.client.input.there() == QUIT && !self.upstream.stream.has_tls() && self.rests()
    }

    /// Whether the client has taken its leave.
    pub(super) fn has_left(&self) -> bool {
        self.has_said_goodbye && self.client.input.has_ended()
    }

    /// Whether the server owes no answer, and no transaction is open.
    fn rests(&self) -> bool {
        match self.session.is_passthrough() {
            true => self.session.rest() == Rest::Yes,
            false => self.session.is_between_commands(),
        }
    }
}
