//! Which expressions come to no NULL, whatever they come to: constants, UUIDs that the server makes, and what is made of these. An
//! application's own UUID is one of them as a rule.

use crate::lex::builtins::is_built_in;
use crate::lex::cursor::Cursor;
use crate::lex::token::{Kind, Token};
use crate::modes::Flavour;
use crate::refusal::Unread;

/// Parentheses within each other that are read.
const NESTED_MAX: u32 = 16;

/// Functions without arguments that make a UUID as text.
const UUIDS: [&str; 3] = ["UUID", "UUID_V4", "UUID_V7"];
/// Others without arguments that never come to NULL.
const NUMBERS: [&str; 2] = ["UUID_SHORT", "CONNECTION_ID"];
/// Those that change nothing but the case of letters.
const OF_CASE: [&str; 4] = ["LOWER", "LCASE", "UPPER", "UCASE"];

/// The others that are read.
const OTHERS: [&str; 5] = ["SYS_GUID", "HEX", "UNHEX", "REPLACE", "UUID_TO_BIN"];

/// Whether a name may be that of a function of whose calls it can be known that they come to no NULL.
pub(super) fn may_be_known(name: &str) -> bool {
    let known = [&UUIDS[..], &NUMBERS[..], &OF_CASE[..], &OTHERS[..]];
    let mut names = known.into_iter().flatten();
    names.any(|known| known.eq_ignore_ascii_case(name))
}

/// What is known of a value that is not NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing more.
    Value,
    /// A text of hexadecimal digits and hyphens.
    Uuid,
    /// A text of hexadecimal digits.
    Digits,
}

impl Cursor<'_> {
    /// Past an expression that comes to no NULL, or is an error. False: that is not known, and the place is anywhere.
    pub(super) fn never_null(&mut self) -> Result<bool, Unread> {
        Ok(self.known_value(NESTED_MAX)?.is_some())
    }

    fn known_value(&mut self, nested_max: u32) -> Result<Option<Known>, Unread> {
        let Some(nested_max) = nested_max.checked_sub(1) else {
            return Ok(None);
        };
        let token = self.token()?;
        match token.kind {
            Kind::Mark(b'(') => {
                let found = self.known_value(nested_max)?;
                self.closed(found)
            }
            Kind::Mark(b'+' | b'-') => {
                let is_number = matches!(self.token()?.kind, Kind::Decimal | Kind::Float);
                Ok(is_number.then_some(Known::Value))
            }
            Kind::Decimal | Kind::Float | Kind::Hex | Kind::Bits => Ok(Some(Known::Value)),
            Kind::Text | Kind::National => self.known_text(token),
            Kind::Word if is_introducer(token.of(self.text)) => self.introduced(),
            Kind::Word if token.is(self.text, "TRUE") || token.is(self.text, "FALSE") => {
                Ok(Some(Known::Value))
            }
            Kind::Word => self.known_call(token, nested_max),
            Kind::Name
            | Kind::Null
            | Kind::Parameter
            | Kind::Variable
            | Kind::Assign
            | Kind::Mark(_)
            | Kind::End => Ok(None),
        }
    }

    /// Past the parenthesis behind a value.
    fn closed(&mut self, found: Option<Known>) -> Result<Option<Known>, Unread> {
        Ok(match found {
            Some(found) => self.accept_mark(b')')?.then_some(found),
            None => None,
        })
    }

    /// Past what stands behind the name of a character set.
    fn introduced(&mut self) -> Result<Option<Known>, Unread> {
        let token = self.token()?;
        let found = match token.kind {
            Kind::Text => self.known_text(token)?,
            Kind::Hex | Kind::Bits => Some(Known::Value),
            Kind::Word
            | Kind::Name
            | Kind::National
            | Kind::Decimal
            | Kind::Float
            | Kind::Null
            | Kind::Parameter
            | Kind::Variable
            | Kind::Assign
            | Kind::Mark(_)
            | Kind::End => None,
        };
        // Its bytes may be other characters than they look like.
        Ok(found.map(|_| Known::Value))
    }

    /// A string that was passed, and those that stand right behind it.
    fn known_text(&mut self, token: Token) -> Result<Option<Known>, Unread> {
        let mut content = self.content_of(token);
        let mut is_empty = content.is_empty();
        while self.peek()?.kind == Kind::Text {
            let next = self.token()?;
            let part = self.content_of(next);
            is_empty |= part.is_empty();
            content.extend(part);
        }
        // There it is NULL.
        if is_empty && self.modes.empty_is_null {
            return Ok(None);
        }
        let is_digits = content.iter().all(u8::is_ascii_hexdigit);
        let mut bytes = content.iter();
        let is_uuid = bytes.all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
        Ok(Some(match (is_digits, is_uuid) {
            (true, _) => Known::Digits,
            (false, true) => Known::Uuid,
            (false, false) => Known::Value,
        }))
    }

    /// What a string, `'…'` or `N'…'`, has between its quotes.
    fn content_of(&self, token: Token) -> Vec<u8> {
        match token.of(self.text) {
            [b'n' | b'N', quoted @ ..] => self.unescaped(quoted),
            quoted => self.unescaped(quoted),
        }
    }

    /// Past a call, behind the name of what is called.
    fn known_call(&mut self, token: Token, nested_max: u32) -> Result<Option<Known>, Unread> {
        let (text, server) = (self.text, self.modes.server);
        // A stored function cannot take the place of a built-in one whose parenthesis follows at once.
        if self.byte(0) != b'(' || !is_built_in(token.of(text), server) {
            return Ok(None);
        }
        self.token()?;
        let is = |name: &str| token.is(text, name);
        let made = if UUIDS.into_iter().any(is) {
            Some(Known::Uuid)
        } else if NUMBERS.into_iter().any(is) {
            Some(Known::Value)
        } else {
            is("SYS_GUID").then_some(Known::Digits)
        };
        if made.is_some() {
            return self.closed(made);
        }
        let Some(argument) = self.known_value(nested_max)? else {
            return Ok(None);
        };
        let found = if OF_CASE.into_iter().any(is) {
            Some(argument)
        } else if is("HEX") {
            // As the connection's character set has digits: UNHEX of them may be NULL.
            Some(Known::Value)
        } else if is("UNHEX") {
            // Of anything else it may be NULL.
            (argument == Known::Digits).then_some(Known::Value)
        } else if is("REPLACE") {
            self.takes_hyphens_out()?.then_some(match argument {
                Known::Uuid | Known::Digits => Known::Digits,
                Known::Value => Known::Value,
            })
        } else if is("UUID_TO_BIN") && server.flavour == Flavour::MySql {
            // What is no UUID is an error.
            self.may_swap()?.then_some(Known::Value)
        } else {
            None
        };
        self.closed(found)
    }

    /// Past `,'-',''`, by which a text becomes no longer than it may be.
    fn takes_hyphens_out(&mut self) -> Result<bool, Unread> {
        for wanted in [&b"-"[..], b""] {
            if !self.accept_mark(b',')? {
                return Ok(false);
            }
            let token = self.token()?;
            if token.kind != Kind::Text || self.content_of(token) != wanted {
                return Ok(false);
            }
        }
        // There `''` is NULL, and so is what comes of it.
        Ok(!self.modes.empty_is_null)
    }

    /// Past `,1` and the like, if that stands here.
    fn may_swap(&mut self) -> Result<bool, Unread> {
        if !self.accept_mark(b',')? {
            return Ok(true);
        }
        let token = self.token()?;
        let is_truth = token.is(self.text, "TRUE") || token.is(self.text, "FALSE");
        Ok(token.kind == Kind::Decimal || is_truth)
    }
}

/// Character sets of both flavours, sorted. Any other name behind `_` is that of a column, and a string behind it its alias.
#[rustfmt::skip]
const CHARACTER_SETS: &[&str] = &[
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932",
    "dec8", "eucjpms", "euckr", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u",
    "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16",
    "utf16le", "utf32", "utf8", "utf8mb3", "utf8mb4",
];

/// Whether a word before a string says its character set.
fn is_introducer(word: &[u8]) -> bool {
    word.strip_prefix(b"_").is_some_and(|name| {
        let mut sets = CHARACTER_SETS.iter();
        sets.any(|set| set.as_bytes().eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use crate::lex::cursor::Cursor;
    use crate::modes::{Flavour, Modes, Server};

    fn modes(flavour: Flavour) -> Modes {
        let version = match flavour {
            Flavour::MariaDb => 101_119,
            Flavour::MySql => 90_704,
        };
        Modes::plain(Server { flavour, version })
    }

    /// Whether all of a text is an expression that is not NULL.
    fn never_null(text: &str, modes: Modes) -> bool {
        let mut cursor = Cursor::new(text.as_bytes(), &modes);
        cursor.never_null() == Ok(true) && cursor.ended()
    }

    #[test]
    fn constants_and_uuids_of_the_servers_are_never_null() {
        for text in [
            "5",
            "-5",
            "(+1.5e3)",
            "'a'",
            "''",
            "'a' 'b'",
            "N'a'",
            "TRUE",
            "x'6ccd'",
            "0b1",
            "_binary'\\0abc'",
            "_utf8mb4 'a'",
            "_binary x'00'",
            "UUID()",
            "( uuid( ) )",
            "UUID_SHORT()",
            "LOWER(UPPER(UUID()))",
            "REPLACE(UUID(), '-', '')",
            "UNHEX(REPLACE(UUID(),'-',''))",
            "UNHEX(REPLACE(LOWER('6CCD780C-BABA-1026-9564-5B8C656024DB'), \"-\", \"\"))",
            "UNHEX('6ccd')",
            "HEX('a')",
        ] {
            for flavour in [Flavour::MariaDb, Flavour::MySql] {
                assert!(never_null(text, modes(flavour)), "{text} {flavour:?}");
            }
        }
        for text in [
            "UUID_TO_BIN(UUID())",
            "UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db', 1)",
            "UUID_TO_BIN(UUID(), TRUE)",
        ] {
            assert!(never_null(text, modes(Flavour::MySql)), "{text}");
            // There it is a stored function, if it is one.
            assert!(!never_null(text, modes(Flavour::MariaDb)), "{text}");
        }
        assert!(never_null("SYS_GUID()", modes(Flavour::MariaDb)));
        assert!(!never_null("SYS_GUID()", modes(Flavour::MySql)));
        // MariaDB has it from 11.7 on.
        assert!(!never_null("UUID_V7()", modes(Flavour::MariaDb)));
    }

    #[test]
    fn what_may_be_null_is_not_taken_for_a_value() {
        for text in [
            "NULL",
            "@a",
            "?",
            "a",
            "f()",
            "d.uuid()",
            "(SELECT 'a')",
            "NULLIF('a','a')",
            "COALESCE(@a,@b)",
            "CAST(NULL AS CHAR)",
            "LOWER(@a)",
            "LOWER(?)",
            "UNHEX('xy')",
            "UNHEX(UUID())",
            "UNHEX(HEX('a'))",
            "UNHEX(_utf16'6ccd')",
            // A column and its alias.
            "_id 'k'",
            "REPLACE(UUID(),'-',NULL)",
            "REPLACE(UUID(),'-','aaaa')",
            "REPLACE(UUID(),@a,'')",
            "UUID_TO_BIN(UUID(),NULL)",
            "UUID_TO_BIN(?)",
            "'a'+1",
            "-'a'",
            "'a' COLLATE utf8mb4_bin",
            "UUID",
            "UUID ()",
            "_latin1",
            "",
        ] {
            for flavour in [Flavour::MariaDb, Flavour::MySql] {
                assert!(!never_null(text, modes(flavour)), "{text} {flavour:?}");
            }
        }
    }

    #[test]
    fn an_empty_text_may_be_null() {
        let modes = Modes {
            empty_is_null: true,
            ..modes(Flavour::MariaDb)
        };
        for text in [
            "''",
            "N''",
            "_latin1''",
            "'' 'a'",
            "'a' ''",
            "REPLACE(UUID(),'-','')",
        ] {
            assert!(!never_null(text, modes), "{text}");
        }
        assert!(never_null("'a'", modes) && never_null("LOWER(UUID())", modes));
    }

    #[test]
    fn parentheses_within_each_other_have_an_end() {
        let nested = |count: usize| format!("{}'a'{}", "(".repeat(count), ")".repeat(count));
        assert!(never_null(&nested(15), modes(Flavour::MySql)));
        assert!(!never_null(&nested(16), modes(Flavour::MySql)));
    }
}
