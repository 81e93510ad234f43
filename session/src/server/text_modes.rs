//! By what the server reads the text of a statement when it is prepared. A statement that it has keeps what was read; another text of
//! it is read anew.

use std::sync::Arc;

/// Any text.
const ANY: &[&[u8]] = &[b""];

/// The modes of sql_mode that change how a text is read, and what a text without which it reads the same has none of.
const SQL_MODES: [(&[u8], &[&[u8]]); 12] = [
    (b"ANSI_QUOTES", &[b"\""]),
    (b"EMPTY_STRING_IS_NULL", &[b"''", b"\"\""]),
    (b"HIGH_NOT_PRECEDENCE", &[b"not"]),
    (b"IGNORE_SPACE", ANY),
    (b"MSSQL", &[b"["]),
    (b"NO_BACKSLASH_ESCAPES", &[b"\\"]),
    (b"NO_UNSIGNED_SUBTRACTION", &[b"-"]),
    (b"ORACLE", ANY),
    (b"PIPES_AS_CONCAT", &[b"||"]),
    (b"REAL_AS_FLOAT", &[b"real"]),
    (b"TIME_ROUND_FRACTIONAL", &[b"time"]),
    (b"TIME_TRUNCATE_FRACTIONAL", &[b"time"]),
];

/// Character sets with more than one byte for each digit: of the client's strings, and not of its texts.
const WIDE: [&[u8]; 4] = [b"utf16", b"utf16le", b"utf32", b"ucs2"];

/// The only character set of a client's that is not ASCII below 0x80.
const NO_ASCII: &[u8] = b"swe7";

/// The only character set of a client's whose backslash becomes another character in others: texts that are converted from it have none.
const WITHOUT_BACKSLASH: &[u8] = b"sjis";

/// How the server reads text at one moment, as far as that was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextModes {
    /// One bit for each of [`SQL_MODES`].
    sql_mode: u16,
    /// The character sets of the client and of its strings.
    charsets: Arc<[u8]>,
}

impl TextModes {
    /// Takes in the variables' values.
    pub(crate) fn learn(&mut self, sql_mode: &[u8], charsets: &[u8]) {
        self.sql_mode = 0;
        for name in sql_mode.split(|byte| *byte == b',') {
            for (bit, _) in bits().filter(|(_, (known, _))| *known == name) {
                self.sql_mode |= bit;
            }
        }
        if *self.charsets != *charsets {
            self.charsets = Arc::from(charsets);
        }
    }

    /// The character set of the client's texts; empty before it was asked for.
    pub(crate) fn client_charset(&self) -> &[u8] {
        let mut charsets = self.charsets.split(|byte| *byte == b' ');
        charsets.next().unwrap_or_default()
    }

    /// Whether the server takes the client's strings for others than ASCII where they look like it: `SET collation_connection`.
    pub(crate) fn has_wide_texts(&self) -> bool {
        let charset = self.charsets.split(|byte| *byte == b' ').nth(1);
        charset.is_some_and(|charset| WIDE.contains(&charset))
    }

    /// Whether the server may take a backslash of a text that it prepares for another character: PREPARE converts it from the client's character set to that of
    /// its strings, and back.
    pub(crate) fn loses_backslashes(&self, text: &[u8]) -> bool {
        let is = |charset: &[u8]| charset.eq_ignore_ascii_case(WITHOUT_BACKSLASH);
        let of_strings = self.charsets.split(|byte| *byte == b' ').nth(1);
        text.contains(&b'\\') && is(self.client_charset()) && !of_strings.is_some_and(is)
    }

    /// Whether a text may be read otherwise in that state.
    pub(crate) fn reads_otherwise(&self, in_state: &Self, text: &[u8]) -> bool {
        let changed = self.sql_mode ^ in_state.sql_mode;
        let has_any = |of: &[&[u8]]| of.iter().any(|part| has(text, part));
        let by_mode = bits().any(|(bit, (_, of))| changed & bit != 0 && has_any(of));
        by_mode || (self.charsets != in_state.charsets && self.depends_on_charset(in_state, text))
    }

    fn depends_on_charset(&self, in_state: &Self, text: &[u8]) -> bool {
        let of_either = [self, in_state];
        !text.is_ascii()
            || of_either.iter().any(|modes| has(&modes.charsets, NO_ASCII))
            || of_either.iter().any(|modes| modes.loses_backslashes(text))
    }
}

/// The modes, and a bit for each.
fn bits() -> impl Iterator<Item = (u16, (&'static [u8], &'static [&'static [u8]]))> {
    let bits = std::iter::successors(Some(1_u16), |bit| bit.checked_shl(1));
    bits.zip(SQL_MODES)
}

/// Whether a text has this part, in upper or lower case.
pub(crate) fn has(text: &[u8], part: &[u8]) -> bool {
    let at_once = part.len().max(1);
    part.is_empty()
        || text
            .windows(at_once)
            .any(|here| here.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::TextModes;

    fn modes(sql_mode: &str, charsets: &str) -> TextModes {
        let mut modes = TextModes::default();
        modes.learn(sql_mode.as_bytes(), charsets.as_bytes());
        modes
    }

    #[test]
    fn a_text_depends_on_what_it_has() {
        for (mode, has_it, has_not) in [
            ("ANSI_QUOTES", "a = \"b\"", "a = 'b'"),
            ("PIPES_AS_CONCAT", "'x'||'y'", "'x' OR 'y'"),
            ("NO_BACKSLASH_ESCAPES", "'\\n'", "'n'"),
            ("HIGH_NOT_PRECEDENCE", "Not 1 = 2", "1 = 2"),
            ("EMPTY_STRING_IS_NULL", "('')", "('a')"),
            ("MSSQL", "[a]", "a"),
            ("REAL_AS_FLOAT", "CAST(1 AS REAL)", "1"),
            ("NO_UNSIGNED_SUBTRACTION", "a - 1", "a + 1"),
            ("TIME_ROUND_FRACTIONAL", "TIME'1:00'", "'1:00'"),
            (
                "STRICT_TRANS_TABLES",
                "",
                "anything: \"' || \\ [not] -real time",
            ),
        ] {
            let (before, now) = (modes("", "utf8mb4"), modes(mode, "utf8mb4"));
            let depends = |text: &str| before.reads_otherwise(&now, text.as_bytes());
            assert!(has_it.is_empty() || depends(has_it), "{mode}");
            assert!(!depends(has_not), "{mode}");
            assert!(!now.reads_otherwise(&now, has_it.as_bytes()), "{mode}");
        }
        for mode in ["ORACLE", "IGNORE_SPACE"] {
            assert!(modes(mode, "").reads_otherwise(&modes("", ""), b"x"));
        }
    }

    #[test]
    fn strings_may_be_wide_where_texts_are_not() {
        for (charsets, is_wide) in [
            ("utf8mb4 utf8mb4", false),
            ("utf8mb4 ucs2", true),
            ("latin1 utf16le", true),
            ("utf8mb4", false),
            ("", false),
        ] {
            assert_eq!(modes("", charsets).has_wide_texts(), is_wide, "{charsets}");
        }
    }

    #[test]
    fn a_backslash_is_lost_on_its_way_out_of_sjis() {
        for (charsets, text, is_lost) in [
            ("sjis utf8mb4", r"'x\'", true),
            ("SJIS latin1", r"'x\'", true),
            ("sjis cp932", r"'x\'", true),
            // What is not known.
            ("sjis", r"'x\'", true),
            ("sjis utf8mb4", "'x'", false),
            ("sjis sjis", r"'x\'", false),
            ("utf8mb4 sjis", r"'x\'", false),
            ("cp932 utf8mb4", r"'x\'", false),
            ("", r"'x\'", false),
        ] {
            let modes = modes("", charsets);
            let found = modes.loses_backslashes(text.as_bytes());
            assert_eq!(found, is_lost, "{charsets} {text}");
        }
    }

    #[test]
    fn ascii_is_the_same_in_all_character_sets_but_one() {
        let utf8 = modes("", "utf8mb4 utf8mb4");
        for (other, text, differs) in [
            ("latin1 latin1", "é", true),
            ("utf8mb4 latin1", "é", true),
            ("latin1 latin1", "e", false),
            ("swe7 swe7", "e", true),
            ("utf8mb4 utf8mb4", "é", false),
            ("sjis utf8mb4", r"\", true),
            ("sjis utf8mb4", "e", false),
            ("sjis sjis", r"\", false),
        ] {
            let read = utf8.reads_otherwise(&modes("", other), text.as_bytes());
            assert_eq!(read, differs, "{other} {text}");
            let read = modes("", other).reads_otherwise(&utf8, text.as_bytes());
            assert_eq!(read, differs, "{text} {other}");
        }
    }
}
