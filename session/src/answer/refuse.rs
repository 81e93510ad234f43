//! A command that is refused: the client gets an error, and the upstream never sees it.

use keywright_core::Cause;
use keywright_wire::bytes::{Header, write_packet};
use keywright_wire::packets::error_payload;

use crate::answer::errors::write_error;
use crate::connection::Connection;
use crate::step::{KeyFailure, Step};

/// The servers' error for a packet that ends too early, or too late.
const MALFORMED: u16 = 1835;

impl Connection {
    /// The server's error for an execution whose values do not fit its statement.
    pub(crate) fn tell_malformed(&mut self, header: Header) -> Step {
        self.forget_command();
        self.leave();
        let payload = error_payload(MALFORMED, "HY000", "Malformed communication packet");
        let sequence = header.sequence.wrapping_add(1);
        write_packet(&payload, sequence, &mut self.down);
        Step::Consumed(header.total())
    }

    /// Answers the command at the front with an error; the upstream never sees it.
    pub(crate) fn refuse(&mut self, header: Header, cause: Cause, message: &str) -> Step {
        self.forget_command();
        self.leave();
        write_error(
            cause,
            message,
            header.sequence.wrapping_add(1),
            &mut self.down,
        );
        Step::Consumed(header.total())
    }

    /// The same of one for which there are no keys.
    pub(crate) fn refuse_without_keys(&mut self, header: Header, failure: &KeyFailure) -> Step {
        self.refuse(header, failure.cause, &failure.message)
    }
}
