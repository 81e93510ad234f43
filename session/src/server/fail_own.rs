//! A question of the session's own that the server refuses: the client's command ends with that.

use keywright_core::Cause;
use keywright_wire::bytes::HEADER_BYTES;
use keywright_wire::packets::error_of;

use crate::answer::errors::write_error;
use crate::connection::Connection;
use crate::job::Job;

impl Connection {
    /// The server refused a question of ours, so it would refuse the client's statement too. The client gets that error as its answer.
    pub(crate) fn fail_own(&mut self, answer: &[u8]) -> Job {
        let start = self.down.len();
        if error_of(answer).is_some() {
            self.down.extend_from_slice(answer);
        } else {
            let message = "keywright cannot read the state of the session";
            write_error(Cause::StatementUnsupported, message, 1, &mut self.down);
        }
        // The client's command may have come in more packets than the question.
        if let Some(number) = self.table_report.answer_sequence
            && let Some(sequence) = self.down.get_mut(start + HEADER_BYTES - 1)
        {
            *sequence = number;
        }
        let executed = self.table_report.executed;
        self.shown_row_count = None;
        self.forget_command();
        self.context.known = false;
        if let Some(id) = executed {
            self.forget_long_data_of_any(id);
        }
        Job::Answered
    }
}
