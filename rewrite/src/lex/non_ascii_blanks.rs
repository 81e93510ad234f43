//! Blanks beyond ASCII: the lexers of this crate take every byte above 0x7F for a letter.

use memchr::{memchr, memmem};

use crate::lex::cursor::Cursor;
use crate::lex::token::Kind;
use crate::modes::{CharsetClass, Modes};
use crate::refusal::Unread;

/// Whether outside of quotes and comments there are bytes that are blanks to the server, in a text that has a word in it by which
/// rows come into tables. Where such a text's statements begin and end, and what they are, cannot be told.
pub fn has_blanks_beyond_ascii(text: &[u8], modes: &Modes) -> bool {
    may_have(text, modes) && brings_rows(text) && reads_blanks_beyond_ascii(text, modes)
}

/// The same, whatever its words are: of any text.
pub fn reads_blanks_beyond_ascii(text: &[u8], modes: &Modes) -> bool {
    let blanks = blanks(modes);
    // What cannot be read may have one.
    may_have(text, modes) && has_blanks(text, modes, |byte| blanks.contains(byte)).unwrap_or(true)
}

/// Whether there may be one in a text whose character set is not known, nor with it what a backslash is: each byte beyond ASCII may be one
/// that is outside of quotes and comments.
pub fn may_have_blanks_beyond_ascii(text: &[u8], modes: &Modes) -> bool {
    if text.is_ascii() {
        return false;
    }
    // What cannot be read may have one.
    let is_outside = || has_blanks(text, modes, |byte| !byte.is_ascii()).unwrap_or(true);
    memchr(b'\\', text).is_some() || is_outside()
}

/// Whether the beginning of a text has one outside of quotes and comments, as far as it can be read: of a name that has, and of a
/// statement that begins with one, it cannot be told which they are. Where the character set is not known each byte beyond ASCII may be one.
pub fn begins_with_blanks_beyond_ascii(
    beginning: &[u8],
    modes: &Modes,
    is_charset_known: bool,
) -> bool {
    let blanks = blanks(modes);
    let is_blank = |byte: &u8| match is_charset_known {
        true => blanks.contains(byte),
        false => !byte.is_ascii(),
    };
    beginning.iter().any(is_blank) && has_blanks(beginning, modes, is_blank).unwrap_or(false)
}

/// Whether one of these bytes is in a text, be it in quotes.
fn may_have(text: &[u8], modes: &Modes) -> bool {
    blanks(modes)
        .iter()
        .any(|blank| memchr(*blank, text).is_some())
}

fn blanks(modes: &Modes) -> &'static [u8] {
    match modes.charset {
        CharsetClass::Blanks(blanks) => blanks,
        CharsetClass::Safe
        | CharsetClass::Letters
        | CharsetClass::NoAscii
        | CharsetClass::TrailByteMayBeBackslash => &[],
    }
}

/// Whether one is outside of quotes and comments.
fn has_blanks(text: &[u8], modes: &Modes, is_blank: impl Fn(&u8) -> bool) -> Result<bool, Unread> {
    let mut cursor = Cursor::new(text, modes);
    loop {
        let token = cursor.token()?;
        match token.kind {
            Kind::End => return Ok(false),
            Kind::Text | Kind::Name | Kind::National => {}
            _ if token.of(text).iter().any(&is_blank) => return Ok(true),
            _ => {}
        }
    }
}

/// Whether one of the words is in a text by which rows come into tables.
pub fn brings_rows(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    ["insert", "replace", "load", "prepare", "execute"]
        .into_iter()
        .any(|word| memmem::find(&lower, word.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::{has_blanks_beyond_ascii, may_have_blanks_beyond_ascii};
    use crate::modes::{CharsetClass, Flavour, Modes, Server};

    #[test]
    fn only_what_the_server_reads_otherwise_counts() {
        let modes = |charset: &[u8]| Modes {
            charset: CharsetClass::of_name(charset),
            ..Modes::plain(Server {
                flavour: Flavour::MariaDb,
                version: 101_119,
            })
        };
        for (text, counts) in [
            (&b"INSERT INTO\xA0t VALUES (1)"[..], true),
            (b"insert\xA0into t values (1)", true),
            (b"INSERT INTO t VALUES (1 --\xA0,'it's\n)", true),
            (b"SELECT 1; --\xA0 x; INSERT INTO t VALUES (1)", true),
            (b"INSERT INTO t VALUES ('\xA0')", false),
            (
                b"INSERT INTO t (`\xA0`) VALUES (1) /* \xA0 */ -- \xA0",
                false,
            ),
            (b"INSERT INTO t\xE9 VALUES (1)", false),
            (b"SELECT\xA01", false),
        ] {
            assert_eq!(has_blanks_beyond_ascii(text, &modes(b"Latin1")), counts);
            assert!(!has_blanks_beyond_ascii(text, &modes(b"utf8mb4")));
        }
    }

    #[test]
    fn where_the_character_set_is_not_known_any_byte_may_be_one() {
        let modes = Modes::plain(Server {
            flavour: Flavour::MySql,
            version: 90_704,
        });
        for (text, may) in [
            (&b"INSERT\x81INTO t VALUES (1)"[..], true),
            (b"SELECT 1 --\xCB'", true),
            (b"SELECT '\xE9\\', 1", true),
            (b"SELECT '\xE9", true),
            (b"SELECT '\xC3\xA0', `\xA0`, \"\xFF\" -- \xA0", false),
            (b"SELECT '\\'", false),
        ] {
            let found = may_have_blanks_beyond_ascii(text, &modes);
            assert_eq!(found, may, "{}", text.escape_ascii());
        }
    }
}
