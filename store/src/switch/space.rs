//! Where the keys of a rule come from, as far as tables can go over to it and leave it.

use std::fmt;

use keywright_core::Tag;

use crate::spec::KeySpec;

const SEGMENT: &str = "segment:";
const SNOWFLAKE: &str = "snowflake";

/// Keys that may be in the tables of several rules, and are unique among them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeySpace {
    /// The numbers of a tag.
    Tag(Tag),
    /// Snowflake ids, of all worker ids.
    Snowflake,
}

impl KeySpace {
    /// That of a rule's keys. Keys of other kinds cannot be switched: those of a stride are a part of a tag's, and the rest are not the
    /// server's to number.
    pub fn of(spec: &KeySpec) -> Option<Self> {
        match spec {
            KeySpec::Segment(tag) => Some(Self::Tag(tag.clone())),
            KeySpec::Snowflake => Some(Self::Snowflake),
            KeySpec::Uuid {
                version: _,
                form: _,
            }
            | KeySpec::Stride(_)
            | KeySpec::Readable(_) => None,
        }
    }

    /// What gives its keys.
    pub fn spec(&self) -> KeySpec {
        match self {
            Self::Tag(tag) => KeySpec::Segment(tag.clone()),
            Self::Snowflake => KeySpec::Snowflake,
        }
    }

    /// The tag, where it is one.
    pub fn tag(&self) -> Option<&Tag> {
        match self {
            Self::Tag(tag) => Some(tag),
            Self::Snowflake => None,
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(SEGMENT) {
            Some(tag) => Tag::parse(tag).ok().map(Self::Tag),
            None => (text == SNOWFLAKE).then_some(Self::Snowflake),
        }
    }
}

/// As in the configuration.
impl fmt::Display for KeySpace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => write!(out, "{SEGMENT}{tag}"),
            Self::Snowflake => out.write_str(SNOWFLAKE),
        }
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;

    use super::KeySpace;

    #[test]
    fn it_is_written_as_it_is_configured() {
        for text in ["segment:orders", "segment:snowflake", "snowflake"] {
            let space = KeySpace::parse(text).unwrap();
            assert_eq!(space.to_string(), text);
        }
        let tag = Tag::parse("snowflake").unwrap();
        assert_eq!(
            KeySpace::parse("segment:snowflake"),
            Some(KeySpace::Tag(tag))
        );
        for text in ["orders", "segment:", "snowflake:1", ""] {
            assert_eq!(KeySpace::parse(text), None, "{text}");
        }
    }
}
