//! Why a statement is passed on as it is.

use keywright_rewrite::{Insert, InsertHead, KeyColumn, Kind, Plan, Unread, Unsupported, kind};
use keywright_session::imagine::{Columns, Imagine};

use super::Explainer;

impl Explainer<'_> {
    /// In words, for people.
    pub(super) fn why_untouched(
        &self,
        rule: Option<usize>,
        text: &[u8],
        database: Option<&[u8]>,
    ) -> &'static str {
        let modes = self.modes();
        let is_insert = matches!(kind(text, &modes), Kind::Insert | Kind::Replace);
        let Ok(head) = InsertHead::read(text, &modes) else {
            return if is_insert {
                "the server refuses it by itself"
            } else {
                "it is no INSERT or REPLACE, or none of a form that would get keys"
            };
        };
        let Some(rule) = rule else {
            return if head.table.schema.is_none() && database.is_none() {
                "no database is chosen; name one with --database"
            } else {
                "no rule matches its table"
            };
        };
        match self.plan(rule, head, text, database) {
            Ok(plan) if plan.explicit() => "every row brings its own key",
            Ok(plan) if !plan.key_parameters().is_empty() => {
                "its key is a parameter: an execution gets a key if the value asks for one"
            }
            Ok(_) => "no row needs a key",
            // Planned elsewhere: it would have got keys.
            Err(Unread::Unsupported(Unsupported::Select)) => "every row brings its own key",
            Err(Unread::Unsupported(_) | Unread::Refused) => "the server refuses it by itself",
        }
    }

    fn plan(
        &self,
        rule: usize,
        head: InsertHead,
        text: &[u8],
        database: Option<&[u8]>,
    ) -> Result<Plan, Unread> {
        let rule = self.rules.rules().get(rule).ok_or(Unread::Refused)?;
        let modes = self.modes();
        let schema = head
            .table
            .schema
            .as_deref()
            .or(database)
            .unwrap_or_default();
        let live = match self.examples().columns(schema, &head.table.table) {
            Columns::Known(names) => names,
            Columns::NoTable | Columns::NotKnown => Vec::new(),
        };
        let key = KeyColumn {
            name: rule.column.as_bytes(),
            form: rule.form,
            live: &live,
            watched: rule.watched,
        };
        Insert::read(head, text, &modes)?.plan(text, &modes, &key)
    }
}
