//! Whether a table that no schema refresh has shown gets keys: not one that the program's own account may not see.

use std::sync::Arc;

use keywright_rewrite::{KeyForm, TableName};

use crate::connection::Connection;
use crate::rules::{KeyColumnState, Mode};
use crate::server::met::MetTable;
use crate::server::question::{Described, Question};

impl Connection {
    /// Whether a table gets no keys since the program's own account may not see it. Not one that is not there by now, of which the server says so
    /// itself, and no temporary one: so the server is asked what it is.
    pub(crate) fn is_unshown(&self, table: &TableName, index: usize) -> Result<bool, Question> {
        let (schema, name) = self.named(table);
        // Of tables that a schema refresh has shown nothing is asked, as a rule.
        if self.table_report.key.is_none() && !self.context.has_key(schema, name) {
            return Ok(false);
        }
        let Some(met) = self.met_table(schema, name, index) else {
            return Ok(false);
        };
        let all = self.rules.schema().met();
        if self.table_report.missing || !all.meet(&met) {
            return Ok(false);
        }
        let described = self.table_report.described.as_ref();
        match described.filter(|((of, its), _)| of == schema && its == name) {
            None => Err(Question::Hidden(table.clone())),
            Some((_, Described::Temporary)) => Ok(false),
            Some((_, Described::NoTable)) => {
                all.forget(&met);
                Ok(false)
            }
            Some((_, Described::Other)) => Ok(true),
        }
    }

    /// A table of a rule that gives keys, if no schema refresh has shown it with its column. None on a server that nobody has looked at, as where
    /// the listener has no `admin`: its tables are taken to have the column, and nobody would answer.
    fn met_table(&self, schema: &[u8], name: &[u8], index: usize) -> Option<MetTable> {
        let rule = self.rules.rules().get(index)?;
        let is_listed = match self.rules.key_column_state(schema, name) {
            KeyColumnState::Present | KeyColumnState::TooNarrow => true,
            // A view of a rule's table is listed elsewhere.
            KeyColumnState::Missing | KeyColumnState::NoTable => self.rules.view(index).is_some(),
        };
        if is_listed
            || rule.mode != Mode::Rewrite
            // The server makes no others, so none of them can meet.
            || rule.form != KeyForm::Integer
            || self.is_unread(schema)
            || self.is_unread(name)
        {
            return None;
        }
        Some(MetTable {
            server: Arc::clone(self.context.identity.as_ref()?),
            schema: str::from_utf8(schema).ok()?.to_owned(),
            name: str::from_utf8(name).ok()?.to_owned(),
            column: rule.column.clone(),
        })
    }
}
