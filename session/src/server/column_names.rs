//! Names of columns as the server tells them: in the character set of the client's results, which need not be that of its texts. Which one it is
//! is asked for only where a name may be another one in the texts.

use keywright_rewrite::ResultColumn;
use keywright_wire::bytes::Reader;
use keywright_wire::packets::only_row;
use keywright_wire::protocol::NULL;

use crate::connection::Connection;
use crate::job::Job;
use crate::server::results_charset::{ResultsCharset, may_differ};

/// Asks for it. One row of text, in no character set of the client's choice.
pub(crate) const ASK_RESULTS_CHARSET: &[u8] =
    b"SELECT CAST(@@session.character_set_results AS BINARY) r LIMIT 1";
/// The columns of the answer.
const COLUMNS: usize = 1;

impl Connection {
    /// The columns of a table by their names in texts: none where that cannot be told of all. `None`: the character set must be asked for first.
    pub(super) fn columns_in_texts(&self, names: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
        if !names.iter().any(|name| may_differ(name)) {
            return Some(names);
        }
        let results = self.context.results.as_ref()?;
        let in_texts = names.iter().map(|name| self.name_in_texts(results, name));
        Some(in_texts.collect::<Option<Vec<_>>>().unwrap_or_default())
    }

    /// The same of a query's result, where a column whose name cannot be told has none. Names that go beyond ASCII are put into no text.
    pub(super) fn result_in_texts(&self, result: Vec<ResultColumn>) -> Option<Vec<ResultColumn>> {
        // No name has this byte, unless each of its characters has several.
        if !result.iter().any(|column| column.name.contains(&0)) {
            return Some(result);
        }
        let results = self.context.results.as_ref()?;
        let in_texts = result.into_iter().map(|column| ResultColumn {
            name: self
                .name_in_texts(results, &column.name)
                .unwrap_or_default(),
            ..column
        });
        Some(in_texts.collect())
    }

    fn name_in_texts(&self, results: &ResultsCharset, name: &[u8]) -> Option<Vec<u8>> {
        let context = &self.context;
        results.in_texts(
            name,
            context.text_modes.client_charset(),
            context.modes.charset,
        )
    }

    /// The answer to [`Question::ResultsCharset`](crate::server::question::Question::ResultsCharset).
    pub(crate) fn answer_results_charset(&mut self, answer: &[u8]) -> Job {
        let Some(row) = only_row(answer, COLUMNS, self.deprecates_eof()) else {
            return self.fail_own(answer);
        };
        let name = match row.first().copied() {
            Some(NULL) => None,
            Some(_) | None => match Reader(row).text() {
                Some(name) => Some(name),
                None => return self.fail_own(answer),
            },
        };
        self.context.results = Some(ResultsCharset::of_name(name));
        self.table_report.are_names_unread = false;
        Job::Idle
    }
}
