//! Whether a table that no schema refresh has shown gets keys: only one that the program's own account may see.

use std::sync::Arc;

use keywright_rewrite::{KeyForm, TableName, Unsupported};

use crate::connection::Connection;
use crate::rules::{KeyColumnState, Mode};
use crate::server::met::Standing;
use crate::server::met_table::MetTable;
use crate::server::question::{Described, KeyThere, Question};

impl Connection {
    /// What keeps a table from getting keys: that the program's own account may not see it, or that this is not known. No temporary one: so the server
    /// is asked what it is. One that is not there may be a moment later, under the name of another that has ids: so the client gets the server's word
    /// for that, and nothing is forwarded.
    pub(crate) fn unshown(
        &self,
        table: &TableName,
        index: usize,
    ) -> Result<Option<Unsupported>, Question> {
        let (schema, name) = self.named(table);
        // Of tables that a schema refresh has shown nothing is asked, as a rule.
        if self.table_report.key.is_none() && !self.context.has_key(schema, name) {
            return Ok(None);
        }
        let Some(met) = self.met_table(schema, name, index) else {
            return Ok(None);
        };
        if self.table_report.missing {
            return Err(Question::Missing(table.clone()));
        }
        let described = self.table_report.described.as_ref();
        let described = described.filter(|((of, its), _)| of == schema && its == name);
        if let Some((_, Described::Temporary)) = described {
            return Ok(None);
        }
        let changes = self.rules.schema();
        // An account that may not insert takes no room from others' tables, nor has the program ask.
        let is_untold = self.table_report.key == Some(KeyThere::Untold);
        if is_untold && !self.table_report.may_insert && !changes.has_met(&met) {
            return Err(Question::Insert(table.clone()));
        }
        // Before the table is met: an answer that comes meanwhile counts as new.
        let answers = changes.answers();
        let what = match changes.meet(&met) {
            Standing::Shown => return Ok(None),
            Standing::Unshown => Unsupported::TableUnshown,
            Standing::Unanswered if self.table_report.is_unanswered => Unsupported::TableUnanswered,
            Standing::Unanswered => return Err(Question::Shown(met, answers)),
        };
        match described {
            None => Err(Question::Hidden(table.clone())),
            Some(_) => Ok(Some(what)),
        }
    }

    /// Whether the command at the front still waits for what the program's own account may see of its table: [`crate::SchemaChanges::answers`] so far.
    /// If nobody asks any more, the program is to ask again.
    pub(crate) fn still_awaits(&self) -> Option<u64> {
        let (table, _) = self.table_report.awaited.as_ref()?;
        let changes = self.rules.schema();
        // Before the table is met, as above.
        let answers = changes.answers();
        match changes.meet(table) {
            Standing::Unanswered => Some(answers),
            Standing::Unshown | Standing::Shown => None,
        }
    }

    /// A table of a rule that gives keys, if this connection's rules do not know it with its column. None on a server that nobody has looked at, as where
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
