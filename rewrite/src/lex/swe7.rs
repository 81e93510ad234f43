//! swe7, the only character set of a client's in which bytes below 0x80 are not always what they are in ASCII.

use crate::lex::cursor::Cursor;
use crate::lex::token::Kind;
use crate::modes::Modes;
use crate::refusal::Unread;

/// What servers (MariaDB 10.11, MySQL 9.7) take for letters outside of quotes.
const LETTERS: &[u8] = b"[\\]^{}~";
/// What stands for other characters in a quoted name.
const OTHERS: &[u8] = b"@[\\]^`{|}~";

/// Whether a name would be another one in swe7.
pub fn is_other_in_swe7(name: &[u8]) -> bool {
    name.iter().any(|byte| OTHERS.contains(byte))
}

/// Whether a text would name other things in swe7, or begin and end words elsewhere.
pub fn reads_otherwise_in_swe7(text: &[u8], modes: &Modes) -> bool {
    let mut cursor = Cursor::new(text, modes);
    loop {
        let token = match cursor.token() {
            Ok(token) => token,
            // What quotes and comments hold is the same there: the server refuses it, too.
            Err(Unread::Refused) => return false,
            Err(Unread::Unsupported(_)) => return true,
        };
        let of = token.of(text);
        let is_other = match token.kind {
            Kind::End => return false,
            Kind::Text | Kind::National => false,
            Kind::Name => match of {
                [_, name @ .., _] => is_other_in_swe7(name),
                _ => true,
            },
            _ => is_letter(of),
        };
        if is_other {
            return true;
        }
    }
}

/// Whether a byte of a text would be a letter in swe7.
pub(crate) fn is_letter(text: &[u8]) -> bool {
    text.iter().any(|byte| LETTERS.contains(byte))
}

#[cfg(test)]
mod tests {
    use super::reads_otherwise_in_swe7;
    use crate::modes::{Flavour, Modes, Server};

    #[test]
    fn what_stands_in_strings_is_the_same() {
        let modes = Modes::plain(Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        });
        for (text, is_other) in [
            ("INSERT INTO t (a) VALUES (1)", false),
            ("INSERT INTO `t` (a) VALUES ('[{\\'}]') -- {", false),
            ("INSERT INTO t[ (a) VALUES (1)", true),
            ("INSERT INTO[t (a) VALUES (1)", true),
            ("INSERT INTO `t[` (a) VALUES (1)", true),
            ("INSERT INTO `t@` (a) VALUES (1)", true),
            ("INSERT INTO t (a) VALUES (~1)", true),
            ("INSERT INTO t (a) VALUES (@a || 1)", false),
            ("INSERT INTO t (a) VALUES ('", false),
        ] {
            let found = reads_otherwise_in_swe7(text.as_bytes(), &modes);
            assert_eq!(found, is_other, "{text}");
        }
    }
}
