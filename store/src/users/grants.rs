//! What users of key ports may do with names, and patterns of names.

use std::fmt;

use keywright_core::Cause;
use wildmatch::WildMatch;

use crate::failure::Failure;

/// Longest pattern of names, characters.
const PATTERN_CHARS_MAX: usize = 255;
/// Longest name that can be given keys, bytes: no pattern matches a longer one.
const MATCHED_BYTES_MAX: usize = 512;
/// The pattern of all names.
const ALL_NAMES: &str = "*";

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Cause::UserInvalid, message)
}

/// What a user may do with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Take keys of it, and look at it.
    Use,
    /// Make its tag.
    Create,
    /// Raise its tag.
    Manage,
    /// Add, change and remove users; that is for all names.
    Administer,
}

impl Right {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Use, Self::Create, Self::Manage, Self::Administer];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Create => "create",
            Self::Manage => "manage",
            Self::Administer => "administer",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Use => 1,
            Self::Create => 2,
            Self::Manage => 4,
            Self::Administer => 8,
        }
    }
}

/// Some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Reads `use,create`.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`].
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut rights = Self::default();
        for word in text.split(',').map(str::trim) {
            let right = Right::ALL.into_iter().find(|right| right.name() == word);
            let right = right.ok_or_else(|| {
                invalid("rights are use, create, manage and administer, with commas between them")
            })?;
            rights.0 |= right.bit();
        }
        Ok(rights)
    }

    /// Whether one is among them.
    pub fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These and those.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without those.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

/// With commas.
impl fmt::Display for Rights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for right in Right::ALL.into_iter().filter(|right| self.has(*right)) {
            if !std::mem::take(&mut is_first) {
                formatter.write_str(",")?;
            }
            formatter.write_str(right.name())?;
        }
        Ok(())
    }
}

/// Names: `*` stands for any characters, `?` for one, as in the tables of a rule.
#[derive(Debug, Clone)]
pub struct NamePattern {
    text: String,
    matcher: WildMatch,
}

impl NamePattern {
    /// Reads one.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`].
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let is_pattern = (1..=PATTERN_CHARS_MAX).contains(&text.chars().count())
            && !text.chars().any(char::is_control)
            // MySQL takes texts for the same that differ in blanks at their ends.
            && text.trim() == text;
        match is_pattern {
            true => Ok(Self {
                matcher: WildMatch::new(text),
                text: text.to_owned(),
            }),
            false => Err(invalid(format!(
                "a pattern of names has 1 to {PATTERN_CHARS_MAX} characters, none that controls and no blanks at its ends: shop.* or *"
            ))),
        }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is for all names.
    pub fn is_all(&self) -> bool {
        self.text == ALL_NAMES
    }

    /// Whether a name is one of these. One that is not UTF-8 is nobody's.
    pub fn matches(&self, name: &[u8]) -> bool {
        name.len() <= MATCHED_BYTES_MAX
            && std::str::from_utf8(name).is_ok_and(|name| self.matcher.matches(name))
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

/// What a user may do with some names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The names.
    pub pattern: NamePattern,
    /// What he may do.
    pub rights: Rights,
}

impl Grant {
    /// Puts both together.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`]: users are not administered for some names, since whoever could give rights would have them all.
    pub fn new(pattern: NamePattern, rights: Rights) -> Result<Self, Failure> {
        match rights.has(Right::Administer) && !pattern.is_all() {
            true => Err(invalid("administer is for all names: give it on *")),
            false => Ok(Self { pattern, rights }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_their_pattern_says() {
        for (pattern, name, is_its) in [
            ("*", "orders", true),
            ("*", "", true),
            ("orders", "orders", true),
            ("orders", "orders2", false),
            ("orders", "Orders", false),
            ("shop.*", "shop.orders", true),
            ("shop.*", "shop.", true),
            ("shop.*", "shop", false),
            ("shop.*", "shopXorders", false),
            ("*.orders", "shop.orders", true),
            ("s*p.o*s", "shop.orders", true),
            ("s*p.o*s", "shop.order", false),
            ("order?", "orders", true),
            ("order?", "order", false),
            ("?", "ü", true),
            ("**", "orders", true),
            ("[a-z]*", "orders", false),
            ("\\*", "*", false),
            ("(.*)", "orders", false),
        ] {
            let matches = NamePattern::parse(pattern)
                .unwrap()
                .matches(name.as_bytes());
            assert_eq!(matches, is_its, "{pattern} {name}");
        }
        let all = NamePattern::parse("*").unwrap();
        assert!(!all.matches(b"\xff"));
        assert!(all.matches(&[b'a'; MATCHED_BYTES_MAX]));
        assert!(!all.matches(&[b'a'; MATCHED_BYTES_MAX + 1]));
    }

    #[test]
    fn patterns_and_rights_that_are_none_are_refused() {
        let long = "a".repeat(PATTERN_CHARS_MAX + 1);
        for pattern in ["", "a\n", "\0", "a ", " a", " ", long.as_str()] {
            assert!(NamePattern::parse(pattern).is_err(), "{pattern:?}");
        }
        for rights in ["", "all", "use,", "use;create", "USE"] {
            assert!(Rights::parse(rights).is_err(), "{rights:?}");
        }
        let administer = Rights::parse("use,administer").unwrap();
        let some = NamePattern::parse("shop.*").unwrap();
        assert!(Grant::new(some, administer).is_err());
    }

    #[test]
    fn rights_are_written_as_they_are_read() {
        let rights = Rights::parse("administer, use").unwrap();
        assert_eq!(rights.to_string(), "use,administer");
        let rest = rights.without(Rights::parse("use,create").unwrap());
        assert_eq!(rest.to_string(), "administer");
        assert!(rest.without(rest).is_empty());
        assert_eq!(rest.and(Rights::parse("use").unwrap()), rights);
    }
}
