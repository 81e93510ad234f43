//! Asks the server for the state of its session.

use keywright_wire::answer::Shape;
use keywright_wire::packets::write_command;
use keywright_wire::protocol::COM_SET_OPTION;

use crate::connection::Connection;
use crate::server::context::probe;
use crate::server::probe::Probe;
use crate::step::Step;

impl Connection {
    /// Asks the server for its state.
    pub(crate) fn ask_context(&mut self) -> Step {
        if let Some(step) = self.ask_temporary() {
            return step;
        }
        let text = probe(self.context.modes.server);
        self.ask_by_text(text, Probe::Context)
    }

    /// Asks for status flags, by setting what is in force already: unlike others' its answer leaves ROW_COUNT() as it is after an error,
    /// and warnings.
    pub(crate) fn ask_status(&mut self) {
        let option = u16::from(!self.allows_several());
        write_command(COM_SET_OPTION, &option.to_le_bytes(), &mut self.up);
        self.answer.expect(Shape::Simple);
        self.probe = Some(Probe::Status);
    }
}
