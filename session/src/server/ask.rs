//! How the session asks the server something of its own.

use keywright_wire::answer::Shape;
use keywright_wire::packets::{write_command, write_query};
use keywright_wire::protocol::{COM_STMT_PREPARE, COM_STMT_RESET};

use crate::connection::Connection;
use crate::server::probe::Probe;
use crate::step::Step;

impl Connection {
    /// Sends a text of the session's own.
    pub(crate) fn send_own(&mut self, text: &[u8]) {
        write_query(self.no_attributes(), text, &mut self.up);
        self.answer.expect(Shape::Results);
    }

    /// Asks by a text.
    pub(crate) fn ask_by_text(&mut self, text: &[u8], probe: Probe) -> Step {
        self.send_own(text);
        self.probe = Some(probe);
        Step::Blocked
    }

    /// Asks by preparing a text.
    pub(crate) fn ask_by_preparing(&mut self, text: &[u8], probe: Probe) -> Step {
        write_command(COM_STMT_PREPARE, text, &mut self.up);
        self.answer.expect(Shape::Prepare);
        self.probe = Some(probe);
        Step::Blocked
    }

    /// Has the server forget what was sent as long data for a statement.
    pub(crate) fn ask_to_forget(&mut self, id: u32) {
        write_command(COM_STMT_RESET, &id.to_le_bytes(), &mut self.up);
        self.answer.expect(Shape::Simple);
        self.probe = Some(Probe::Reset);
    }
}
