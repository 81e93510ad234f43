//! What the server has answered to a question of the session's own.

use keywright_wire::answer::End;
use keywright_wire::packets::only_row;

use crate::connection::Connection;
use crate::job::Job;
use crate::server::context::PROBE_COLUMNS;
use crate::server::probe::Probe;

impl Connection {
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
            Probe::Columns(index) => return self.answer_columns(index, answer),
            Probe::Missing => return self.answer_missing(answer),
            Probe::ResultsCharset => return self.answer_results_charset(answer),
            Probe::Result => self.answer_result(answer),
            Probe::KeyType => self.answer_key_type(answer),
            Probe::Insert => return self.answer_may_insert(answer),
            Probe::Computed { count, tells } => {
                return self.answer_computed((count, tells), end, answer);
            }
            Probe::KeyOfQuery(rule, after) => {
                return self.answer_key_of_query((rule, after), end, answer);
            }
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
}
