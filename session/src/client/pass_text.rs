//! Statements sent as text that are passed on: what they see of LAST_INSERT_ID() is put right before.

use keywright_rewrite::Kind;
use keywright_wire::answer::Shape;

use crate::answer::after::After;
use crate::answer::reply::names_row_count;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::leaves_out::Native;
use crate::job::Next;

impl Connection {
    /// Passes a statement on, after LAST_INSERT_ID() was brought up to date if it could see it.
    pub(crate) fn pass_query(&mut self, query: Query<'_>, after: After) -> Next {
        self.pass_kind(self.statement_kind(query.text), query, after)
    }

    /// The same, where its kind is known.
    pub(crate) fn pass_kind(&mut self, kind: Kind, query: Query<'_>, after: After) -> Next {
        if !self.needs_effect(kind, query.text) {
            if let Some(step) = self.restore_row_count(|| names_row_count(query.text)) {
                return step.into();
            }
            return self.pass(query.header, query.bytes, Shape::Results, after);
        }
        let effect = self.effect_of(kind, query.text);
        if let Some(step) = self.restore_row_count(|| names_row_count(query.text)) {
            return step.into();
        }
        // Another of several statements may see it.
        let counts = effect.counts
            || (self.pending_last_insert_id.is_some()
                && effect.sees
                && !self.is_several(query.text)
                && names_row_count(query.text));
        if let Some(step) = self.update_before(&effect, counts) {
            return step.into();
        }
        let after = self.note_effect(effect, after);
        self.pass(query.header, query.bytes, Shape::Results, after)
    }

    /// The same of an INSERT for whose rule the server makes the keys, unless it returns its rows.
    pub(crate) fn pass_native_query(&mut self, query: Query<'_>, native: Native) -> Next {
        let effect = self.effect(query.text);
        if self.pending_last_insert_id.is_some() && effect.sees {
            return self.update_last_insert_id(effect.counts).into();
        }
        let after = self.note_effect(effect, After::Nothing);
        self.pass_native(query.header, query.bytes, (Shape::Results, after), native)
    }
}
