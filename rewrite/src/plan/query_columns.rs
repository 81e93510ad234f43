//! A key that a query takes out of a column, or out of `*`. Whether each row brings one, the text does not say; what the server says of
//! the query's result does, where a 0 is a key (`NO_AUTO_VALUE_ON_ZERO`): an integer that is not NULL is one then.
//!
//! Tools that copy tables row by row work like that: pt-online-schema-change, gh-ost.

use std::ops::Range;

use crate::lex::cursor::Cursor;
use crate::modes::Modes;
use crate::plan::key_column::KeyColumn;
use crate::plan::row_sites::KeyPosition;
use crate::read::insert::{Insert, Source};
use crate::read::key_value::KeyForm;
use crate::read::query::clause::Clause;
use crate::read::query::outline::{Outline, Tail};
use crate::refusal::{KeyExpression, SelectConstruct, Unread, Unsupported};

/// What the server says of a column of a query's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultColumn {
    /// It holds integers.
    pub is_integer: bool,
    /// It is never NULL.
    pub is_not_null: bool,
}

impl Insert {
    /// The statement's query, if what the server says of its result may decide that every row brings its key.
    pub fn query_to_ask(
        &self,
        text: &[u8],
        modes: &Modes,
        key: &KeyColumn<'_>,
    ) -> Option<Range<usize>> {
        let is_asked = self.source == Source::Query
            && key.form == KeyForm::Integer
            && modes.no_auto_value_on_zero == Some(true);
        if !is_asked {
            return None;
        }
        let KeyPosition::At { index, .. } = self.place(text, key).ok()? else {
            return None;
        };
        let mut cursor = Cursor::new(text, modes);
        (cursor.at, cursor.inside) = (self.rows, self.inside);
        let outline = cursor.outline().ok()?;
        let is_plain = outline.parts.len() == 1
            && outline.tail == Tail::None
            && !outline.clauses.has(Clause::Rollup);
        let wanted = self.wanted(modes, key);
        let given = outline.given(index, Cursor::new(text, modes), wanted);
        let is_column = matches!(
            given,
            Err(Unread::Unsupported(
                Unsupported::Key(KeyExpression::Column)
                    | Unsupported::SelectWith(SelectConstruct::KeysOfStar)
            ))
        );
        (is_plain && is_column).then_some(outline.start..outline.end)
    }
}

impl Outline {
    /// Whether every row brings its key, by what the server says of the result.
    pub(super) fn brings_keys(&self, place: KeyPosition, columns: &[ResultColumn]) -> bool {
        let KeyPosition::At { index, values } = place else {
            return false;
        };
        let key = columns.get(index);
        values == columns.len() && key.is_some_and(|key| key.is_integer && key.is_not_null)
    }
}
