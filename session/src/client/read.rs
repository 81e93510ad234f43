//! Reads one statement sent as text: what it is, and what it changes where it is passed on.

use keywright_rewrite::{
    Kind, NextValue, RowsFrom, StateChange, TableName, load_target, named_statement, next_value,
    prepare_source, tables_touched, unread_kind, unread_load_target, use_target,
};

use crate::answer::after::{After, Texts};
use crate::client::reading::Reading;
use crate::connection::Connection;
use crate::server::context::{Named, is_harmless_set};

impl Connection {
    /// Reads one statement. It may never be executed, so nothing is noted yet. `Err`: the server's modes must be known first.
    pub(crate) fn read_statement(&self, text: &[u8]) -> Result<Reading, ()> {
        self.read_kind(self.statement_kind(text), text)
    }

    pub(super) fn read_kind(&self, kind: Kind, text: &[u8]) -> Result<Reading, ()> {
        let modes = self.context.modes;
        if kind == Kind::NextValue
            && let Some(next) = self.read_next_value(text)?
        {
            return Ok(Reading::NextValue(next));
        }
        if kind == Kind::Other
            && let Some(what) = unread_kind(text, &modes)
        {
            return Ok(Reading::Hidden(what));
        }
        let facts = kind.facts();
        Ok(match facts.rows {
            // Where the server's modes are known its table is read once, when it is planned.
            RowsFrom::Written if self.context.known => Reading::Insert,
            RowsFrom::Written if self.may_be_ruled(text) => return Err(()),
            RowsFrom::File | RowsFrom::BehindSet if !self.context.known => return Err(()),
            RowsFrom::File => match load_target(text, &modes) {
                Some(table) => Reading::Load(table),
                None => match unread_load_target(text, &modes) {
                    Some(what) => Reading::Hidden(what),
                    None => Reading::Pass(After::Nothing),
                },
            },
            RowsFrom::BehindSet => self.behind_set(text),
            RowsFrom::OfText => self.read_source(prepare_source(text, &modes))?,
            // Whether its name is in quotes depends on the modes.
            RowsFrom::Prepared if !self.context.known && self.context.has_texts() => {
                return Err(());
            }
            RowsFrom::Prepared => self.read_execute(text),
            RowsFrom::Written
            | RowsFrom::Never
            | RowsFrom::Block
            | RowsFrom::Unseen
            | RowsFrom::Blank => Reading::Pass(self.after_text(text, facts.changes)),
        })
    }

    /// The keys that a statement of this kind asks for, if its table may have a rule. `Err`: the server's modes must be known first.
    pub(crate) fn read_next_value(&self, text: &[u8]) -> Result<Option<NextValue>, ()> {
        if !self.context.known {
            return Err(());
        }
        let next = next_value(text, &self.context.modes);
        Ok(next.filter(|next| self.rule_behind(&next.table).is_some()))
    }

    /// What a statement sent as text changes.
    fn after_text(&self, text: &[u8], changes: StateChange) -> After {
        let modes = &self.context.modes;
        match changes {
            StateChange::Nothing => After::Nothing,
            StateChange::Database => {
                use_target(text, modes).map_or(After::Unknown, After::Database)
            }
            StateChange::Variables if is_harmless_set(text) => After::Nothing,
            StateChange::Variables => After::Unknown,
            StateChange::TemporaryMade => match self.tables_named(text) {
                Some(made) => After::Tables {
                    dropped: Vec::new(),
                    made,
                },
                None => After::ANYTHING,
            },
            StateChange::TablesDropped => match self.tables_named(text) {
                Some(dropped) => After::Tables {
                    dropped,
                    made: Vec::new(),
                },
                None => After::Unknown,
            },
            StateChange::Definitions => After::Defined,
            StateChange::Texts => {
                let name = named_statement(text, modes).map(|name| name.to_ascii_lowercase());
                After::Texts {
                    texts: name.map_or(Texts::Doubtful, Texts::Gone),
                    unknown: false,
                }
            }
            StateChange::Anything => After::ANYTHING,
        }
    }

    /// The tables that a statement makes, changes or drops; `None`: it does not say.
    pub(crate) fn tables_named(&self, text: &[u8]) -> Option<Vec<Named>> {
        let database = self.context.database.as_deref().unwrap_or_default();
        let full = |name: TableName| {
            let schema = name.schema.unwrap_or_else(|| database.to_vec());
            (schema, name.table)
        };
        let tables = tables_touched(text, &self.context.modes)?;
        let is_unread = |name: &TableName| {
            let mut parts = name.schema.iter().chain([&name.table]);
            parts.any(|part| self.is_unread(part))
        };
        if self.context.known && tables.iter().any(is_unread) {
            return None;
        }
        Some(tables.into_iter().map(full).collect())
    }

    fn read_execute(&self, text: &[u8]) -> Reading {
        let name = named_statement(text, &self.context.modes).map(|name| name.to_ascii_lowercase());
        match name.filter(|name| self.context.may_execute(name)) {
            Some(name) => Reading::Execute(name),
            // It may be a CALL.
            None => Reading::Pass(After::ANYTHING),
        }
    }
}
