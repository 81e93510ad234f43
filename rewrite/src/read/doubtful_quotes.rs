//! Backslashes and backquotes that may be the second byte of a character: the lexers of this crate go by bytes.

use memchr::memchr2_iter;

use crate::lex::cursor::Cursor;
use crate::modes::{CharsetClass, Flavour, Modes};
use crate::read::kind_facts::RowsFrom;
use crate::read::statement_kind::Kind;
use crate::refusal::Unread;

/// Behind the last backslash or backquote that may be a part of a character, in one of those character sets; 0: there is none.
pub fn doubtful_quotes_end(text: &[u8]) -> usize {
    let is_doubtful = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        before.is_some_and(|byte| !byte.is_ascii())
    };
    let found = memchr2_iter(b'\\', b'`', text).rev().find(is_doubtful);
    found.map_or(0, |at| at + 1)
}

/// Whether it cannot be told where the statements of a text end, or what one does whose strings and names decide it, since the second
/// byte of a character may look like a quote. `is_several`: there may be several, if a `;` in it ends one.
pub fn has_doubtful_quotes(text: &[u8], modes: &Modes, is_several: bool) -> bool {
    if modes.charset != CharsetClass::TrailByteMayBeBackslash || doubtful_quotes_end(text) == 0 {
        return false;
    }
    let mut cursor = Cursor::new(text, modes);
    let begins_set_statement = { cursor }.begins_set_statement() == Ok(true);
    let kind = cursor.kind().unwrap_or(Kind::Other);
    // A body is passed on to its end, whatever is in it.
    let has_body = matches!(kind, Kind::CreateRoutine | Kind::Compound);
    let is_read_on = match kind.facts().rows {
        RowsFrom::File | RowsFrom::BehindSet | RowsFrom::OfText | RowsFrom::Prepared => true,
        RowsFrom::Never
        | RowsFrom::Written
        | RowsFrom::Block
        | RowsFrom::Unseen
        | RowsFrom::Blank => false,
    };
    begins_set_statement || is_read_on || (is_several && !has_body)
}

impl Cursor<'_> {
    /// Whether MariaDB's `SET STATEMENT` starts here, readable or not.
    fn begins_set_statement(&mut self) -> Result<bool, Unread> {
        let is_known = self.modes.server.flavour == Flavour::MariaDb;
        Ok(is_known && self.accept("SET")? && self.accept("STATEMENT")?)
    }
}

#[cfg(test)]
mod tests {
    use super::{doubtful_quotes_end, has_doubtful_quotes};
    use crate::modes::{CharsetClass, Flavour, Modes, Server};

    #[test]
    fn only_what_the_server_may_read_otherwise_counts() {
        let modes = |charset: &[u8]| Modes {
            charset: CharsetClass::of_name(charset),
            ..Modes::plain(Server {
                flavour: Flavour::MariaDb,
                version: 101_119,
            })
        };
        for (text, several, one) in [
            (
                &b"SELECT '\x95\\' -- '; INSERT INTO t(a) VALUES ('x')"[..],
                true,
                false,
            ),
            (
                b"SELECT `\x83`` -- `; INSERT INTO t(a) VALUES ('x')",
                true,
                false,
            ),
            (b"SELECT '\x82\xA0'; SELECT 'a\\'b', `c`", false, false),
            (b"LOAD DATA INFILE '\x95\\' INTO TABLE t", true, true),
            (b"LOAD DATA INFILE '\x82\xA0' INTO TABLE t", false, false),
            (
                b"PREPARE s FROM 'INSERT INTO t VALUES (''\x95\\'')'",
                true,
                true,
            ),
            (b"EXECUTE IMMEDIATE 'SELECT ''\x95\\'''", true, true),
            (b"EXECUTE `\x83``", true, true),
            (
                b"SET STATEMENT a='\x95\\' FOR INSERT INTO t VALUES (1)",
                true,
                true,
            ),
            (b"SET @a = '\x95\\'", true, false),
            (
                b"CREATE PROCEDURE p() BEGIN SELECT '\x95\\'; END",
                false,
                false,
            ),
            (b"UPDATE other SET a = '\x95\\'", true, false),
        ] {
            let found = [true, false].map(|many| has_doubtful_quotes(text, &modes(b"sjis"), many));
            assert_eq!(found, [several, one], "{}", text.escape_ascii());
            assert!(!has_doubtful_quotes(text, &modes(b"utf8mb4"), true));
        }
    }

    #[test]
    fn the_last_of_them_is_found() {
        for (text, end) in [
            (&b""[..], 0),
            (b"\\`a", 0),
            (b"\x95\\ \x95` \\", 5),
            (b"\x95 \\", 0),
        ] {
            assert_eq!(doubtful_quotes_end(text), end, "{}", text.escape_ascii());
        }
    }
}
