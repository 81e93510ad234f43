//! What a statement that is passed on sees of LAST_INSERT_ID() and ROW_COUNT(), and makes of them.

use keywright_rewrite::{
    Kind, LastInsertIdChange, LastInsertIdUse, RowsFrom, last_insert_id_change,
    last_insert_id_use_of,
};

use crate::answer::after::After;
use crate::answer::reply::{Effect, PendingLastInsertId, names_row_count};
use crate::client::one_by_one::plain_from;
use crate::connection::Connection;
use crate::step::Step;

impl Connection {
    /// Whether anything follows from what such a statement sees of LAST_INSERT_ID(), and makes of it. Of most nothing does: the server shows what
    /// the client must see, no temporary table may be dropped by a function, and the text has no name by which it could be set, in whatever modes.
    pub(crate) fn needs_effect(&self, kind: Kind, text: &[u8]) -> bool {
        let facts = kind.facts();
        self.pending_last_insert_id.is_some()
            || !self.context.temporary.is_empty()
            || facts.may_set_last_insert_id
            || facts.rows == RowsFrom::Written
            || may_name_it(text)
    }

    /// What a statement that is passed on may see and change.
    pub(crate) fn effect(&self, text: &[u8]) -> Effect {
        self.effect_of(self.statement_kind(text), text)
    }

    /// The same, where its kind is known.
    pub(crate) fn effect_of(&self, kind: Kind, text: &[u8]) -> Effect {
        let modes = &self.context.modes;
        let facts = kind.facts();
        // In other modes what looks like a string may be no string.
        let is_doubtful = !self.context.known && plain_from(text) > 0;
        let used = match is_doubtful {
            true => LastInsertIdUse::Sees,
            false => last_insert_id_use_of(kind, text, modes),
        };
        let inserts = facts.rows == RowsFrom::Written;
        let may_set = match kind {
            // Without rows they set nothing.
            Kind::CreateTemporary | Kind::Ddl => may_make_rows(text),
            _ => facts.may_set_last_insert_id,
        };
        let change = if may_set || (is_doubtful && may_name_it(text)) {
            LastInsertIdChange::Unknown
        } else if is_doubtful {
            LastInsertIdChange::Keeps
        } else if used == LastInsertIdUse::Sees {
            last_insert_id_change(text, modes)
        } else {
            LastInsertIdChange::Keeps
        };
        Effect {
            sees: used != LastInsertIdUse::Nothing,
            calls: used == LastInsertIdUse::Sees,
            fires: match kind {
                _ if inserts => !self.is_into_temporary(text) || may_have_query(text, 0),
                // What is prepared is not carried out.
                Kind::DropTable | Kind::Prepare => false,
                // The table that is made may get rows of a query.
                Kind::CreateTemporary | Kind::Ddl => may_have_query(text, 1),
                _ => fires_triggers(kind) || used == LastInsertIdUse::Perhaps,
            },
            counts: used == LastInsertIdUse::Sees && names_row_count(text),
            change,
            inserts,
        }
    }

    /// A statement is passed on; what follows from that, unless something else does.
    pub(crate) fn note_effect(&mut self, effect: Effect, after: After) -> After {
        let before = self.last_insert_id;
        // So may a trigger, or a function behind a view; what the answer changes stays.
        if effect.fires && !self.context.temporary.is_empty() {
            self.context.doubt();
        }
        let after = match after {
            // A function may drop a temporary table.
            After::Nothing if effect.calls && !self.context.temporary.is_empty() => After::Unknown,
            other => other,
        };
        match effect.change {
            LastInsertIdChange::Keeps if effect.inserts => {
                self.last_insert_id = None;
                return match after {
                    After::Nothing => After::Inserted(before),
                    other => other,
                };
            }
            LastInsertIdChange::Keeps => {}
            LastInsertIdChange::To(id) => self.last_insert_id = Some(id),
            LastInsertIdChange::Unknown => self.last_insert_id = None,
        }
        after
    }

    /// What brings LAST_INSERT_ID() up to date before a statement that is passed on, if it could see it. `None` too where that would
    /// lose a ROW_COUNT() for which its text asks, and nothing but a view or a trigger could see LAST_INSERT_ID().
    pub(crate) fn update_before(&mut self, effect: &Effect, counts: bool) -> Option<Step> {
        let pending = self.pending_last_insert_id.filter(|_| effect.sees)?;
        let is_lost = counts && self.row_count.is_some_and(|count| count > 1);
        if is_lost && !effect.calls && effect.change == LastInsertIdChange::Keeps {
            match (pending.id(), self.last_insert_id) {
                (_, _) if !effect.inserts => return None,
                (Some(id), Some(server)) => {
                    self.pending_last_insert_id = Some(PendingLastInsertId::ToWhile { server, id });
                    return None;
                }
                (Some(_) | None, Some(_) | None) => {}
            }
        }
        Some(self.update_last_insert_id(counts))
    }
}

/// Whether statements of a kind may change rows, or call functions, although nothing in their texts shows it.
fn fires_triggers(kind: Kind) -> bool {
    // WITH may stand before UPDATE, and ANALYZE carries out what it analyzes.
    matches!(
        kind,
        Kind::Insert
            | Kind::Replace
            | Kind::LoadData
            | Kind::Update
            | Kind::Delete
            | Kind::With
            | Kind::Analyze
    )
}

/// Whether there may be a query in a text: what it reads may be a view that calls a function. `tables`: how often the text has TABLE in
/// any case, which is a query elsewhere.
fn may_have_query(text: &[u8], tables: usize) -> bool {
    found(text, b"select") > 0 || found(text, b"table") > tables
}

/// Whether a statement that defines tables may put rows into one.
fn may_make_rows(text: &[u8]) -> bool {
    may_have_query(text, 1) || found(text, b"values") > 0
}

/// How often a text has this, in any case.
fn found(text: &[u8], word: &[u8]) -> usize {
    let parts = text.windows(word.len());
    parts.filter(|part| part.eq_ignore_ascii_case(word)).count()
}

/// Whether a text has the name of LAST_INSERT_ID(), or of a variable that shows it, anywhere in it. At memory speed: it may be long.
fn may_name_it(text: &[u8]) -> bool {
    let is_behind = |word: &[u8], at: usize| {
        let part = at
            .checked_sub(word.len())
            .and_then(|start| text.get(start..at));
        part.is_some_and(|part| part.eq_ignore_ascii_case(word))
    };
    memchr::memchr3_iter(b'_', b'y', b'Y', text)
        .any(|at| is_behind(b"last_insert", at) || is_behind(b"identit", at))
}
