//! The database that was chosen when a statement was prepared: the server looks there for what its text names without one, whatever
//! is chosen when it is executed. So a statement is judged there, and no other text of it is prepared elsewhere.

use keywright_rewrite::{InsertHead, Unsupported};

use crate::connection::Connection;
use crate::insert::plan::{NotPlanned, Planned};
use crate::prepared::statements::ClientText;
use crate::server::question::Question;

impl Connection {
    /// Reads a statement that was prepared where that database was chosen. What it asks names the database.
    pub(crate) fn plan_in(
        &mut self,
        database: Option<&[u8]>,
        text: &[u8],
    ) -> Result<Planned, NotPlanned> {
        self.table_report.is_prepared = true;
        if self.context.database.as_deref() == database {
            return self.plan(text);
        }
        let chosen = self.context.database.take();
        self.context.database = database.map(<[u8]>::to_vec);
        let planned = self.plan(text);
        self.context.database = chosen;
        // That name is in UTF-8, and the question would not be.
        let is_unread = |name: &[u8]| self.context.known && self.is_unread(name);
        match planned {
            Ok(Planned::Ask(_)) if database.is_some_and(is_unread) => {
                Err((None, Unsupported::Elsewhere))
            }
            // It would be prepared where its names mean other tables.
            Ok(Planned::Ask(Question::Result(_))) => Err((None, Unsupported::Elsewhere)),
            Ok(Planned::Ask(question)) => Ok(Planned::Ask(question.within(database))),
            other => other,
        }
    }

    /// Whether a statement's text means other tables, or may, where it is prepared now.
    pub(super) fn means_others(&self, of: &ClientText<'_>) -> bool {
        let is_same = match (self.context.database.as_deref(), of.database) {
            (Some(one), Some(other)) => self.rules.same_name(one, other),
            (one, other) => one == other,
        };
        if is_same {
            return false;
        }
        let head = InsertHead::read(of.text, &self.context.modes);
        of.has_names || !head.is_ok_and(|head| head.table.schema.is_some())
    }
}
