//! COM_STMT_PREPARE of an INSERT on a table with a rule: it is prepared with room for its keys.

use keywright_rewrite::{Kind, RowsFrom, StateChange, Unsupported, kind_of_beginning, unread_kind};
use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, Header, Joined, joined};

use crate::answer::after::After;
use crate::client::attributes::beginning_end;
use crate::client::query::{Query, Whole};
use crate::connection::Connection;
use crate::insert::plan::Planned;
use crate::job::Next;
use crate::prepared::passed_statement::{Changes, Observed, ObservedInsert, Passed};
use crate::prepared::statements::LAST_PREPARED;
use crate::step::Step;

impl Connection {
    pub(crate) fn prepare(&mut self, header: Header, bytes: &[u8]) -> Next {
        let whole = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => Whole::new(header, bytes, payload),
            Joined::More(at_least) => return Step::More { at_least }.into(),
            Joined::TooLong if self.memory_full => return self.refuse_long("").into(),
            Joined::TooLong => return self.long_prepare(header, bytes),
        };
        let query = whole.to_prepare();
        // Until it has succeeded: a statement that is refused, or fails, also counts as the last one.
        self.statements.last = LAST_PREPARED;
        match self.is_beyond_reading(query.text, false) {
            Ok(None) => {}
            Ok(Some(what)) => return self.unsupported_prepare(query, None, what),
            Err(step) => return step.into(),
        }
        let kind = self.statement_kind(query.text);
        if kind == Kind::NextValue {
            match self.read_next_value(query.text) {
                Err(()) => return self.ask_context().into(),
                Ok(Some(next)) => return self.prepare_next_value(query, &next),
                Ok(None) => {}
            }
        }
        let facts = kind.facts();
        match facts.rows {
            RowsFrom::Written if !self.may_be_ruled(query.text) => {
                self.prepare_passed(query, Changes::Nothing)
            }
            RowsFrom::Written | RowsFrom::File | RowsFrom::BehindSet if !self.context.known => {
                self.ask_context().into()
            }
            RowsFrom::Written => self.prepare_insert(query),
            RowsFrom::Never
            | RowsFrom::File
            | RowsFrom::BehindSet
            | RowsFrom::OfText
            | RowsFrom::Prepared
            | RowsFrom::Block
            | RowsFrom::Unseen
            | RowsFrom::Blank => self.prepare_other(query, facts.changes),
        }
    }

    /// COM_STMT_PREPARE of a statement that is no INSERT, but may have one in it.
    fn prepare_other(&mut self, query: Query<'_>, changes: StateChange) -> Next {
        let unread = || Some((None, unread_kind(query.text, &self.context.modes)?));
        let hidden = self
            .prepared_load(query.text)
            .or_else(|| self.hidden_behind_set(query.text))
            .or_else(unread);
        match hidden {
            Some((rule, what)) => self.unsupported_prepare(query, rule, what),
            None => {
                let change = self.changes(query.text, changes);
                self.prepare_passed(query, change)
            }
        }
    }

    fn prepare_insert(&mut self, query: Query<'_>) -> Next {
        self.table_report.is_prepared = true;
        match self.plan(query.text) {
            Ok(Planned::Plan(index, plan)) => self.prepare_rows(query, (index, plan), None),
            Ok(Planned::Query(index, plan)) => self.prepare_select(query, index, plan),
            Ok(Planned::Pass) => self.prepare_passed(query, Changes::Nothing),
            // It may be there once the server prepares this, and the rule may give keys once this is executed.
            Ok(Planned::Missing(rule)) => {
                let insert = ObservedInsert::Unsupported(Unsupported::ColumnsUnknown);
                self.note_observed(query, Observed { rule, insert })
            }
            Ok(Planned::Keyless(keyless)) => {
                let noted = Passed {
                    keyless: Some(keyless),
                    ..self.passed(query.text, Changes::Nothing)
                };
                self.prepare_noted(query, noted)
            }
            Ok(Planned::Ask(question)) => self.ask(&question).into(),
            Err((rule, what)) => self.prepare_computed(query, rule, what),
        }
    }

    /// A statement that is too long to gather: it is passed on unless it may be for a table with a rule.
    fn long_prepare(&mut self, header: Header, bytes: &[u8]) -> Next {
        let at_least = beginning_end(header);
        if bytes.len() < at_least {
            return Step::More { at_least }.into();
        }
        let head = bytes.get(HEADER_BYTES + 1..at_least).unwrap_or_default();
        let begins_with_blanks = self.begins_with_blanks(head);
        if begins_with_blanks && !self.context.known {
            return self.ask_context().into();
        }
        let may_bring_rows = match kind_of_beginning(head, &self.context.modes).facts().rows {
            RowsFrom::Written => !self.begins_for_no_rule(head),
            RowsFrom::File | RowsFrom::BehindSet | RowsFrom::Blank => true,
            // The server prepares none of these.
            RowsFrom::OfText | RowsFrom::Prepared => false,
            RowsFrom::Never | RowsFrom::Unseen | RowsFrom::Block => false,
        };
        if (may_bring_rows || begins_with_blanks) && self.rewrites_any() {
            return self.refuse_long(
                "keywright: statement to be prepared on a table with a rule is longer than rewrite_bytes_max",
            ).into();
        }
        let after = After::Prepared(Box::default());
        self.pass(header, bytes, Shape::Prepare, after)
    }
}
