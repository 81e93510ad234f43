//! Which INSERTs the server may be asked about before it carries them out.

use crate::lex::cursor::Cursor;
use crate::modes::Modes;
use crate::read::insert::Insert;

impl Insert {
    /// The place before the values of an INSERT for which the server may compute some of them first. `None`: the statement has none of its own,
    /// or sees what the question changes. `takes_parameters`: what is bound changes nothing of it.
    pub(super) fn values_to_ask_for<'t>(
        &self,
        text: &'t [u8],
        modes: &Modes,
        takes_parameters: bool,
    ) -> Option<Cursor<'t>> {
        if self.head.prefixed || self.head.delayed || self.is_query() || self.names_empty_rows {
            return None;
        }
        let mut cursor = Cursor::new(text, modes);
        (cursor.at, cursor.inside) = (self.rows, self.inside);
        let leaves = { cursor }.leaves_values(takes_parameters);
        (leaves == Ok(true)).then_some(cursor)
    }
}
