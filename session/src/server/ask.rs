//! How the session asks the server something of its own, and what it makes of the answer.

use keywright_core::Cause;
use keywright_wire::answer::{End, Shape};
use keywright_wire::packets::{error_of, only_row, write_command, write_query};
use keywright_wire::protocol::{COM_SET_OPTION, COM_STMT_PREPARE, COM_STMT_RESET};

use crate::answer::errors::write_error;
use crate::connection::Connection;
use crate::job::Job;
use crate::server::context::{PROBE_COLUMNS, probe};
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

    /// Asks the server for its state.
    pub(crate) fn ask_context(&mut self) -> Step {
        if let Some(step) = self.ask_temporary() {
            return step;
        }
        let text = probe(self.context.modes.server);
        self.ask_by_text(text, Probe::Context)
    }

    /// Has the server forget what was sent as long data for a statement.
    pub(crate) fn ask_to_forget(&mut self, id: u32) {
        write_command(COM_STMT_RESET, &id.to_le_bytes(), &mut self.up);
        self.answer.expect(Shape::Simple);
        self.probe = Some(Probe::Reset);
    }

    /// Asks for status flags, by setting what is in force already: unlike others' its answer leaves ROW_COUNT() as it is after an error,
    /// and warnings.
    pub(crate) fn ask_status(&mut self) {
        let option = u16::from(!self.allows_several());
        write_command(COM_SET_OPTION, &option.to_le_bytes(), &mut self.up);
        self.answer.expect(Shape::Simple);
        self.probe = Some(Probe::Status);
    }

    /// The answer has come whole: the command at the front is looked at again, or was answered.
    pub(crate) fn answer_probe(&mut self, probe: Probe, end: Option<End>, answer: &[u8]) -> Job {
        match probe {
            Probe::Context => {
                let row = only_row(answer, PROBE_COLUMNS, self.deprecates_eof());
                if !row.is_some_and(|row| self.context.learn(row, &self.rules)) {
                    return self.fail_own(answer);
                }
            }
            Probe::Temporary(table) => self.answer_temporary(&table, answer),
            Probe::Columns => self.answer_columns(answer),
            Probe::Result | Probe::KeyType => self.answer_result(answer),
            Probe::Computed { count, tells } => {
                return self.answer_computed((count, tells), end, answer);
            }
            Probe::KeyOfQuery(after) => return self.answer_key_of_query(after, end, answer),
            Probe::Key(table, index) => return self.answer_key(table, index, answer),
            Probe::SetLastInsertId => return self.answer_last_insert_id(end, answer),
            Probe::RestoreRowCount if end == Some(End::Error) => return self.fail_own(answer),
            Probe::RestoreRowCount => self.row_count = self.shown_row_count,
            Probe::ReadLastInsertId => return self.learn_last_insert_id(answer),
            Probe::Variant(id, made) => return self.answer_variant(id, *made, end, answer),
            Probe::AsIs(id) => return self.answer_as_is(id, end, answer),
            Probe::Reset => {}
            // It is asked once, whatever the answer is.
            Probe::Status => self.is_status_old = false,
        }
        Job::Idle
    }

    /// The server refused a question of ours, so it would refuse the client's statement too. The client gets that error as its answer.
    pub(crate) fn fail_own(&mut self, answer: &[u8]) -> Job {
        if error_of(answer).is_some() {
            self.down.extend_from_slice(answer);
        } else {
            let message = "keywright cannot read the state of the session";
            write_error(Cause::StatementUnsupported, message, 1, &mut self.down);
        }
        self.shown_row_count = None;
        self.forget_command();
        self.context.known = false;
        Job::Answered
    }
}
