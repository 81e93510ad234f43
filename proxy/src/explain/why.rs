//! Why a statement is passed on as it is.

use keywright_rewrite::{
    Insert, InsertHead, KeyColumn, Plan, RowsFrom, TableName, Unread, Unsupported, kind,
    load_target,
};
use keywright_session::imagine::{Columns, Imagine};

use super::Explainer;

fn no_rule(table: &TableName, database: Option<&[u8]>) -> &'static str {
    if table.schema.is_none() && database.is_none() {
        "no database is chosen; name one with --database"
    } else {
        "no rule matches its table"
    }
}

impl Explainer<'_> {
    /// In words, for people.
    pub(super) fn why_untouched(
        &self,
        rule: Option<usize>,
        text: &[u8],
        database: Option<&[u8]>,
    ) -> &'static str {
        let modes = self.modes();
        let rows = kind(text, &modes).facts().rows;
        let is_insert = rows == RowsFrom::Written;
        let load = load_target(text, &modes).filter(|_| rows == RowsFrom::File);
        if let (Some(table), None) = (load, rule) {
            return no_rule(&table, database);
        }
        if rule.is_some() && self.has_table(text, database) == Some(false) {
            return "the server that was asked has no such table; --listener names another";
        }
        let Ok(head) = InsertHead::read(text, &modes) else {
            return if is_insert {
                "the server refuses it by itself"
            } else {
                "it is no INSERT, REPLACE or LOAD DATA, or none of a form that would get keys"
            };
        };
        let Some(rule) = rule else {
            return no_rule(&head.table, database);
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
        let is_not_null = self.rules.is_not_null(schema, &head.table.table);
        let live = match self.examples().columns(schema, &head.table.table) {
            Columns::Known(names) => names,
            Columns::NoTable | Columns::NotKnown => Vec::new(),
        };
        let key = KeyColumn {
            name: rule.column.as_bytes(),
            form: rule.form,
            live: &live,
            watched: rule.watched,
            is_signed: rule.is_signed,
            is_strict: rule.repeatable,
        };
        let insert = Insert::read(head, text, &modes)?;
        match is_not_null {
            Some(true) => insert.plan_for_not_null(text, &modes, &key),
            Some(false) | None => insert.plan(text, &modes, &key),
        }
    }
}
