//! `SELECT NEXT VALUE FOR table` and `SELECT NEXT n VALUES FOR table`: keys that an application asks for before its INSERT. The first form is
//! that of the SQL standard and MariaDB for sequences, the second that of Vitess.

use keywright_core::KeyBatch;

use crate::lex::cursor::Cursor;
use crate::lex::name::TableName;
use crate::lex::quote::{quote_name, quote_string};
use crate::lex::token::Kind as TokenKind;
use crate::modes::Modes;
use crate::read::key_wanted::KeyForm;
use crate::read::statement_kind::Kind;
use crate::refusal::Unread;

/// Most values that one statement may ask for: the server gets a SELECT for each.
pub const NEXT_VALUES_MAX: u64 = 1_000;
/// The longest name of the result's column that is taken from the statement, bytes: servers allow 256 characters.
const NAME_BYTES_MAX: usize = 255;

/// What a statement asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextValue {
    /// The table whose rule gives the keys.
    pub table: TableName,
    /// How many; the result has a row for each. More than [`NEXT_VALUES_MAX`] are to be refused.
    pub count: u64,
    /// The name of the result's column.
    name: Vec<u8>,
}

/// Reads one. `None`: it is something else, and the server's.
pub fn next_value(text: &[u8], modes: &Modes) -> Option<NextValue> {
    Cursor::new(text, modes).next_value().ok()
}

impl NextValue {
    /// The statement whose result the keys are.
    pub fn text(&self, keys: &KeyBatch, modes: &Modes) -> Vec<u8> {
        let mut out = Vec::new();
        for index in 0..keys.len() {
            self.begin_row(index, &mut out);
            let at = usize::try_from(index).unwrap_or(usize::MAX);
            match keys {
                KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => {
                    if let Some(number) = keys.number(index) {
                        out.extend_from_slice(number.to_string().as_bytes());
                    }
                }
                KeyBatch::Texts(texts) => {
                    let text = texts.get(at).map(String::as_bytes).unwrap_or_default();
                    quote_string(text, !modes.no_backslash_escapes, &mut out);
                }
                KeyBatch::Bytes(bytes) => {
                    out.extend_from_slice(b"x'");
                    for byte in bytes.get(at).map(|key| &key[..]).unwrap_or_default() {
                        out.extend_from_slice(format!("{byte:02x}").as_bytes());
                    }
                    out.push(b'\'');
                }
            }
            self.end_row(index, &mut out);
        }
        out
    }

    /// The same to be prepared: each key is a parameter.
    pub fn prepared(&self, form: KeyForm) -> Vec<u8> {
        let value: &[u8] = match form {
            // A BIGINT already before it is executed: of a parameter alone MariaDB makes an INT then.
            KeyForm::Integer => b"CAST(?&9223372036854775807 AS SIGNED)",
            KeyForm::Text => b"CAST(? AS CHAR)",
            KeyForm::Bytes => b"CAST(? AS BINARY)",
        };
        let mut out = Vec::new();
        for index in 0..self.count {
            self.begin_row(index, &mut out);
            out.extend_from_slice(value);
            self.end_row(index, &mut out);
        }
        out
    }

    fn begin_row(&self, index: u64, out: &mut Vec<u8>) {
        if index > 0 {
            out.extend_from_slice(b" UNION ALL ");
        }
        out.extend_from_slice(b"SELECT ");
    }

    fn end_row(&self, index: u64, out: &mut Vec<u8>) {
        if index == 0 {
            out.extend_from_slice(b" AS ");
            quote_name(&self.name, out);
        }
    }
}

impl Cursor<'_> {
    /// Whether what stands behind SELECT may begin one.
    #[inline(always)]
    pub(crate) fn begins_next_value(&self) -> Result<bool, Unread> {
        match self.byte(usize::from(self.byte(0) == b' ')) {
            // Blanks and comments may stand before it.
            b'n' | b'N' | b' ' | b'\t'..=b'\r' | b'/' | b'#' | b'-' => self.is_next_value(),
            b'*' if self.inside => self.is_next_value(),
            _ => Ok(false),
        }
    }

    fn is_next_value(&self) -> Result<bool, Unread> {
        let mut ahead = *self;
        Ok(ahead.accept("NEXT")?
            && (ahead.accept("VALUE")? || ahead.peek()?.kind == TokenKind::Decimal))
    }

    fn next_value(&mut self) -> Result<NextValue, Unread> {
        let mut look = *self;
        if look.kind()? != Kind::NextValue {
            return Err(Unread::Refused);
        }
        self.token()?;
        let start = self.token()?.start;
        let count = match self.accept("VALUE")? {
            true => 1,
            false => self.count()?,
        };
        if !self.accept("FOR")? {
            return Err(Unread::Refused);
        }
        let table = self.table_name()?;
        let shown = self.since(start);
        let has_as = self.accept("AS")?;
        let name = match self.peek()?.kind {
            TokenKind::Word | TokenKind::Name => self.name_part()?,
            _ if has_as => return Err(Unread::Refused),
            _ if shown.len() <= NAME_BYTES_MAX && shown.is_ascii() => shown.to_vec(),
            _ => b"NEXT VALUE".to_vec(),
        };
        self.accept_mark(b';')?;
        match self.token()?.kind {
            TokenKind::End => Ok(NextValue { table, count, name }),
            _ => Err(Unread::Refused),
        }
    }

    /// The number before VALUES.
    fn count(&mut self) -> Result<u64, Unread> {
        let number = self.token()?;
        let digits = std::str::from_utf8(number.of(self.text)).map_err(|_| Unread::Refused)?;
        let count = digits.parse().map_err(|_| Unread::Refused)?;
        match self.accept("VALUES")? && count > 0 {
            true => Ok(count),
            false => Err(Unread::Refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NextValue, next_value};
    use crate::lex::name::TableName;
    use crate::modes::{Flavour, Modes, Server};
    use crate::read::key_wanted::KeyForm;
    use crate::read::statement_kind::{Kind, kind};
    use keywright_core::KeyBatch;

    fn modes() -> Modes {
        Modes {
            no_auto_value_on_zero: Some(false),
            strict: Some(true),
            ..Modes::plain(Server {
                flavour: Flavour::MariaDb,
                version: 101_114,
            })
        }
    }

    fn read(text: &str) -> Option<NextValue> {
        next_value(text.as_bytes(), &modes())
    }

    #[test]
    fn the_forms_that_ask_for_keys_are_read() {
        for (text, schema, table, count, name) in [
            (
                "SELECT NEXT VALUE FOR orders",
                None,
                "orders",
                1,
                "NEXT VALUE FOR orders",
            ),
            (
                " select next value for `shop`.`or``ders`;",
                Some("shop"),
                "or`ders",
                1,
                "next value for `shop`.`or``ders`",
            ),
            (
                "SELECT NEXT 5 VALUES FOR shop.orders AS id",
                Some("shop"),
                "orders",
                5,
                "id",
            ),
            (
                "SELECT /* app */ NEXT VALUE FOR orders id -- here",
                None,
                "orders",
                1,
                "id",
            ),
            (
                "SELECT NEXT VALUE FOR `größe`",
                None,
                "größe",
                1,
                "NEXT VALUE",
            ),
        ] {
            assert_eq!(kind(text.as_bytes(), &modes()), Kind::NextValue, "{text}");
            let table = TableName {
                schema: schema.map(|name| name.as_bytes().to_vec()),
                table: table.as_bytes().to_vec(),
            };
            let expected = NextValue {
                table,
                count,
                name: name.as_bytes().to_vec(),
            };
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_the_servers() {
        for text in [
            "SELECT NEXT",
            "SELECT next FROM t",
            "SELECT next, value FROM t",
            "SELECT NEXT VALUE FOR a, NEXT VALUE FOR b",
            "SELECT NEXT VALUE FOR a + 1",
            "SELECT NEXT VALUE FOR a FROM t",
            "SELECT NEXT VALUE FOR a.b.c",
            "SELECT NEXT VALUE FOR a AS",
            "SELECT NEXT VALUES FOR a",
            "SELECT NEXT 0 VALUES FOR a",
            "SELECT NEXT 1.5 VALUES FOR a",
            "SELECT NEXT 99999999999999999999 VALUES FOR a",
            "SELECT NEXT 2 VALUE FOR a",
            "SELECT NEXT ? VALUES FOR a",
            "SELECT NEXTVAL(a)",
            "INSERT INTO t VALUES (NEXT VALUE FOR a)",
            "SELECT NEXT VALUE FOR a; SELECT 1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_servers_statement_has_a_row_for_each_key() {
        let write = |text, keys: &KeyBatch| {
            let sent = read(text).map(|next| next.text(keys, &modes()));
            sent.and_then(|sent| String::from_utf8(sent).ok())
        };
        let numbers = KeyBatch::Numbers {
            first: 7,
            spacing: 2,
            count: 3,
        };
        assert_eq!(
            write("SELECT NEXT 3 VALUES FOR t AS id", &numbers).as_deref(),
            Some("SELECT 7 AS `id` UNION ALL SELECT 9 UNION ALL SELECT 11")
        );
        let texts = KeyBatch::Texts(vec!["a'b".into()]);
        assert_eq!(
            write("SELECT NEXT VALUE FOR t", &texts).as_deref(),
            Some("SELECT 'a''b' AS `NEXT VALUE FOR t`")
        );
        let bytes = KeyBatch::Bytes(vec![[0xAB; 16]]);
        assert_eq!(
            write("SELECT NEXT VALUE FOR t id", &bytes).as_deref(),
            Some("SELECT x'abababababababababababababababab' AS `id`")
        );
        let prepared = read("SELECT NEXT 2 VALUES FOR t AS `i``d`")
            .map(|next| String::from_utf8_lossy(&next.prepared(KeyForm::Integer)).into_owned());
        assert_eq!(
            prepared.as_deref(),
            Some(
                "SELECT CAST(?&9223372036854775807 AS SIGNED) AS `i``d` \
                 UNION ALL SELECT CAST(?&9223372036854775807 AS SIGNED)"
            )
        );
    }
}
