//! The character set of the client's results, in which the server tells names of columns, and which need not be that of its texts: pure.

use keywright_rewrite::CharsetClass;

/// What stands in place of a character that the character set has not.
const REPLACEMENT: u8 = b'?';

/// The character set of the client's results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResultsCharset {
    /// UTF-8, also where the server converts nothing: it has names so.
    Utf8,
    /// UTF-16 and ucs2, which has the same names.
    Utf16 { is_little_endian: bool },
    /// Four bytes for each character.
    Utf32,
    /// Another one, of this name.
    Other(Vec<u8>),
}

impl ResultsCharset {
    /// By its name; `None`: the server converts nothing.
    pub(super) fn of_name(name: Option<&[u8]>) -> Self {
        let Some(name) = name else {
            return Self::Utf8;
        };
        match name.to_ascii_lowercase().as_slice() {
            b"utf16" | b"ucs2" => Self::Utf16 {
                is_little_endian: false,
            },
            b"utf16le" => Self::Utf16 {
                is_little_endian: true,
            },
            b"utf32" => Self::Utf32,
            name if CharsetClass::of_name(name) == CharsetClass::Safe => Self::Utf8,
            name => Self::Other(name.to_vec()),
        }
    }

    /// A name as it stands in texts of that character set and class; `None`: that cannot be told.
    pub(super) fn in_texts(
        &self,
        name: &[u8],
        charset: &[u8],
        class: CharsetClass,
    ) -> Option<Vec<u8>> {
        let is_utf8 = class == CharsetClass::Safe;
        let decoded = match self {
            Self::Utf8 => return (is_utf8 || name.is_ascii()).then(|| name.to_vec()),
            Self::Other(results) => {
                let is_plain = name.is_ascii() && !name.contains(&REPLACEMENT);
                let is_same = results.eq_ignore_ascii_case(charset);
                return (is_same || is_plain).then(|| name.to_vec());
            }
            Self::Utf16 { is_little_endian } => {
                let (pairs, []) = name.as_chunks::<2>() else {
                    return None;
                };
                let units = pairs.iter().map(|pair| match is_little_endian {
                    true => u16::from_le_bytes(*pair),
                    false => u16::from_be_bytes(*pair),
                });
                char::decode_utf16(units)
                    .collect::<Result<String, _>>()
                    .ok()
            }
            Self::Utf32 => {
                let (fours, []) = name.as_chunks::<4>() else {
                    return None;
                };
                let characters = fours.iter().map(|four| u32::from_be_bytes(*four));
                characters.map(char::from_u32).collect::<Option<String>>()
            }
        };
        let name = decoded.filter(|name| is_utf8 || name.is_ascii())?;
        Some(name.into_bytes())
    }
}

/// Whether a name that the server has told may be another one in texts.
pub(super) fn may_differ(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii() && *byte != 0 && *byte != REPLACEMENT;
    !name.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use keywright_rewrite::CharsetClass;

    use super::{ResultsCharset, may_differ};

    /// What a name becomes that comes in the results' character set, in texts of the client's.
    fn in_texts(results: Option<&str>, client: &str, name: &[u8]) -> Option<Vec<u8>> {
        let results = ResultsCharset::of_name(results.map(str::as_bytes));
        let class = CharsetClass::of_name(client.as_bytes());
        results.in_texts(name, client.as_bytes(), class)
    }

    #[test]
    fn names_are_those_of_the_table_in_any_character_set() {
        const UTF8: &[u8] = "pré".as_bytes();
        const LATIN1: &[u8] = b"pr\xE9";
        const UTF16: &[u8] = b"\0p\0r\0\xE9";
        const UTF16LE: &[u8] = b"p\0r\0\xE9\0";
        const UTF32: &[u8] = b"\0\0\0p\0\0\0r\0\0\0\xE9";
        for (results, client, name, becomes) in [
            (Some("utf8mb4"), "utf8mb4", UTF8, Some(UTF8)),
            (Some("utf8mb3"), "utf8mb4", UTF8, Some(UTF8)),
            (Some("binary"), "utf8mb4", UTF8, Some(UTF8)),
            (None, "utf8mb4", UTF8, Some(UTF8)),
            (None, "binary", UTF8, Some(UTF8)),
            (Some("utf16"), "utf8mb4", UTF16, Some(UTF8)),
            (Some("ucs2"), "utf8mb4", UTF16, Some(UTF8)),
            (Some("utf16le"), "utf8mb4", UTF16LE, Some(UTF8)),
            (Some("utf32"), "utf8mb4", UTF32, Some(UTF8)),
            (Some("latin1"), "latin1", LATIN1, Some(LATIN1)),
            (None, "latin1", UTF8, None),
            (Some("utf8mb4"), "latin1", UTF8, None),
            (Some("utf16"), "latin1", UTF16, None),
            (Some("latin1"), "utf8mb4", LATIN1, None),
            (Some("latin1"), "latin2", LATIN1, None),
            (Some("ascii"), "utf8mb4", b"pr?", None),
            (Some("utf16"), "utf8mb4", b"\0p\0", None),
            (Some("utf16"), "latin1", b"\0i\0d", Some(b"id")),
            (Some("utf32"), "sjis", b"\0\0\0a", Some(b"a")),
            // As it stands in UTF-16 it looks like ASCII.
            (Some("utf16"), "utf8mb4", b"Na", Some("乡".as_bytes())),
            (Some("ascii"), "utf8mb4", b"id", Some(b"id")),
            (None, "latin1", b"really?", Some(b"really?")),
            (Some("latin1"), "latin1", b"really?", Some(b"really?")),
        ] {
            let told = in_texts(results, client, name);
            let place = format!("{results:?} {client} {}", name.escape_ascii());
            assert_eq!(told.as_deref(), becomes, "{place}");
        }
    }

    #[test]
    fn plain_names_need_no_question() {
        assert!(!may_differ(b"id") && !may_differ(b"a b`c"));
        for name in [&b"\0i\0d"[..], b"pr\xE9", "pré".as_bytes(), b"pr?"] {
            assert!(may_differ(name), "{}", name.escape_ascii());
        }
    }
}
