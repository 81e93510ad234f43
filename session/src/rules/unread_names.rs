//! Names that only the server can tell: they stand in a statement in another character set than UTF-8, in which rules and servers have them.

use keywright_rewrite::{
    CharsetClass, InsertHead, PrepareSource, RowsFrom, TableName, behind_set_statement,
    doubtful_quotes_end, is_other_in_swe7, kind, load_target, prepare_source, split,
};

use crate::connection::Connection;
use crate::rules::Rules;
use crate::rules::names::in_lower_case;
use crate::rules::outline::Outline;

/// Texts up to this length are looked through before their beginning is read, bytes.
pub(crate) const SHORT_BYTES_MAX: usize = 4 << 10;

impl Rules {
    /// Whether a rule, or a view's, may be for a table of which this is known; `schema`: `None` where it may be any.
    fn may_match_outline(&self, schema: Option<&Outline>, table: &Outline) -> bool {
        let fold = |name: &str| match self.lower_case {
            true => in_lower_case(name),
            false => name.to_owned(),
        };
        let mut matchers = self.matchers.iter();
        let mut views = self.views.iter();
        matchers.any(|matcher| {
            matcher.may_match_table(table)
                && schema.is_none_or(|schema| matcher.may_match_schema(schema))
        }) || views.any(|view| {
            table.may_match(&fold(&view.name))
                && schema.is_none_or(|schema| schema.may_match(&fold(&view.schema)))
        })
    }
}

impl Connection {
    /// Whether a statement of a text fills a table whose name only the server can tell, and that a rule may be for. Where the character set
    /// is not known any name beyond ASCII is such a one.
    pub(crate) fn fills_unread(&self, text: &[u8], is_several: bool) -> bool {
        let is_utf8 = self.context.known && self.context.modes.charset == CharsetClass::Safe;
        // Of a long one it costs less to read the beginning, up to the name.
        let is_looked_through = !is_utf8 || is_several || text.len() <= SHORT_BYTES_MAX;
        if is_looked_through && (text.is_ascii() || (is_utf8 && str::from_utf8(text).is_ok())) {
            return false;
        }
        let modes = &self.context.modes;
        match is_several {
            true => split(text, modes).into_iter().any(|piece| {
                let statement = text.get(piece.range).unwrap_or_default();
                self.target_is_unread(statement)
            }),
            false => self.target_is_unread(text),
        }
    }

    fn target_is_unread(&self, statement: &[u8]) -> bool {
        if let Some(table) = self.target_of(statement) {
            return self.may_match_unread(&table);
        }
        // What looks like the quote at the end of a name may be a part of a character.
        let (is_known, modes) = (self.context.known, &self.context.modes);
        let may_be_part = !is_known || modes.charset == CharsetClass::TrailByteMayBeBackslash;
        may_be_part
            && kind(statement, modes).facts().rows == RowsFrom::Written
            && doubtful_quotes_end(statement) > 0
    }

    /// The table that rows come into by a statement, or by one that it prepares.
    fn target_of(&self, statement: &[u8]) -> Option<TableName> {
        let modes = &self.context.modes;
        let of_text = |text: &[u8]| match InsertHead::read(text, modes) {
            Ok(head) => Some(head.table),
            Err(_) => load_target(text, modes),
        };
        match kind(statement, modes).facts().rows {
            RowsFrom::Written | RowsFrom::File => of_text(statement),
            RowsFrom::BehindSet => load_target(behind_set_statement(statement, modes)?, modes),
            RowsFrom::OfText => match prepare_source(statement, modes) {
                PrepareSource::Text { text, .. } => of_text(&text),
                PrepareSource::Computed { .. } | PrepareSource::Unreadable => None,
            },
            RowsFrom::Never
            | RowsFrom::Prepared
            | RowsFrom::Block
            | RowsFrom::Unseen
            | RowsFrom::Blank => None,
        }
    }

    /// Whether a table's name, or that of its schema, can be told by the server alone, and a rule may be for it.
    pub(crate) fn may_match_unread(&self, table: &TableName) -> bool {
        let schema = table.schema.as_deref();
        if !schema.is_some_and(|schema| self.is_unread(schema)) && !self.is_unread(&table.table) {
            return false;
        }
        let (is_known, charset) = (self.context.known, self.context.modes.charset);
        let is_ascii = is_known && charset != CharsetClass::NoAscii;
        let is_read = |byte: u8| byte.is_ascii() && (is_ascii || !is_other_in_swe7(&[byte]));
        // What follows may be the end of a character.
        let ends = !is_known || charset == CharsetClass::TrailByteMayBeBackslash;
        let outline = |name: &[u8]| Outline::new(name, is_read, ends, self.rules.lower_case);
        let schema = schema.map(outline).or_else(|| self.chosen());
        self.rules
            .may_match_outline(schema.as_ref(), &outline(&table.table))
    }

    /// The database that is chosen, which the server has told in UTF-8; `None`: that is not known.
    fn chosen(&self) -> Option<Outline> {
        let name = self.context.database.as_deref();
        let name = std::str::from_utf8(name.filter(|_| self.context.known)?).ok()?;
        Some(match self.rules.lower_case {
            true => Outline::of_whole(&in_lower_case(name)),
            false => Outline::of_whole(name),
        })
    }

    /// Whether only the server can tell which name that is.
    pub(crate) fn is_unread(&self, name: &[u8]) -> bool {
        let is_beyond_ascii = !name.is_ascii();
        if !self.context.known {
            return is_beyond_ascii || is_other_in_swe7(name);
        }
        match self.context.modes.charset {
            // MySQL 9.7 leaves out what is no character at its end; MariaDB refuses it.
            CharsetClass::Safe => str::from_utf8(name).is_err(),
            CharsetClass::Letters
            | CharsetClass::Blanks(_)
            | CharsetClass::TrailByteMayBeBackslash => is_beyond_ascii,
            CharsetClass::NoAscii => is_beyond_ascii || is_other_in_swe7(name),
        }
    }
}
