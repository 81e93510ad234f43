//! What is known of a name of which some characters are not, and whether it may match a pattern.

use crate::rules::names::OF_FILE;

/// The longest name that servers take, bytes: 64 characters, in UTF-8.
const NAME_BYTES_MAX: usize = 256;

/// What is known of a name: its characters, and `None` for any number of any characters.
pub(super) struct Outline(Vec<Option<char>>);

impl Outline {
    /// Of a name of which some bytes are read. `ends`: nothing is known behind the first that is not.
    pub(super) fn new(
        name: &[u8],
        is_read: impl Fn(u8) -> bool,
        ends: bool,
        lower_case: bool,
    ) -> Self {
        let mut parts = Vec::new();
        // A file's name stands for another; the server refuses a longer one.
        let front = name.get(..OF_FILE.len()).unwrap_or_default();
        if name.len() > NAME_BYTES_MAX || front.eq_ignore_ascii_case(OF_FILE) {
            return Self(vec![None]);
        }
        for byte in name {
            let byte = match lower_case {
                true => byte.to_ascii_lowercase(),
                false => *byte,
            };
            let part = is_read(byte).then(|| char::from(byte));
            parts.push(part);
            if part.is_none() && ends {
                break;
            }
        }
        Self(parts)
    }

    /// Of a name that is known.
    pub(super) fn of_whole(name: &str) -> Self {
        Self(name.chars().map(Some).collect())
    }

    /// Whether a name of which this is known may match a pattern with `*` and `?`.
    pub(super) fn may_match(&self, pattern: &str) -> bool {
        // Up to each place of the name: whether that may be the same as the pattern up to where it was read.
        let mut reached = vec![true];
        let mut last = true;
        for part in &self.0 {
            last &= part.is_none();
            reached.push(last);
        }
        for sign in pattern.chars() {
            let mut next = Vec::with_capacity(reached.len());
            let mut before = reached.into_iter();
            let mut diagonal = before.next().unwrap_or(false);
            let mut last = diagonal && sign == '*';
            next.push(last);
            for (part, above) in self.0.iter().zip(before) {
                last = match (sign, part) {
                    ('*', _) | (_, None) => above || last,
                    ('?', Some(_)) => diagonal,
                    (sign, Some(letter)) => diagonal && sign == *letter,
                };
                diagonal = above;
                next.push(last);
            }
            reached = next;
        }
        reached.last() == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::Outline;

    #[test]
    fn a_name_may_be_what_its_known_characters_leave() {
        let is_read = |byte: u8| byte.is_ascii();
        for (name, ends, pattern, may) in [
            (&b"gr\xF6\xDFe"[..], false, "größe", true),
            (b"gr\xF6\xDFe", false, "gr*", true),
            (b"gr\xF6\xDFe", false, "*_?e", true),
            (b"gr\xF6\xDFe", false, "*_", false),
            (b"gr\xF6\xDFe", false, "*?e", true),
            (b"gr\xF6\xDFe", false, "order*", false),
            (b"gr\xF6\xDFe", false, "größer", false),
            (b"gr\xF6\xDFe", true, "größer", true),
            (b"\x95\\a", true, "表a", true),
            (b"a\x95\\", true, "表a", false),
            (b"plain", false, "plain", true),
            (b"plain", false, "pl?in", true),
            (b"plain", false, "pl?", false),
            (b"plain", false, "*", true),
            (b"", false, "*", true),
            (b"", false, "?", false),
            (b"#mysql50#x", false, "anything", true),
        ] {
            let outline = Outline::new(name, is_read, ends, false);
            let found = outline.may_match(pattern);
            assert_eq!(found, may, "{} {pattern}", name.escape_ascii());
        }
        let whole = Outline::of_whole("größe");
        assert!(whole.may_match("*ö?e") && !whole.may_match("*öe"));
        let folded = Outline::new(b"GR\xD6\xDFE", is_read, false, true);
        assert!(folded.may_match("größe") && !folded.may_match("GRÖßE"));
    }
}
