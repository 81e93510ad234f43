//! What a rule can ask for: `segment:orders`, `snowflake`, `uuid_v7:text32`, `stride:orders`, `readable:ORD`.

use std::fmt;

use keywright_core::{Biz, BizError, Tag, TagError};
use thiserror::Error;

use keywright_core::residue::{Residue, ResidueError};

/// What a key may be, but for `stride:TAG`, which rules alone may have.
pub const KEY_SPECS: &str = "segment:TAG, snowflake, uuid_v1, uuid_v4, uuid_v7 (with :text36, :text32 or :bytes16), readable:BIZ";

/// Where the keys of a rule come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeySpec {
    /// Numbers of a tag.
    Segment(Tag),
    /// Numbers that say when and where they were issued.
    Snowflake,
    /// UUIDs.
    Uuid {
        /// How they are made.
        version: UuidVersion,
        /// How they are written.
        form: UuidForm,
    },
    /// Those numbers of a tag that leave a certain remainder.
    Stride(Stride),
    /// Text that says when it was issued and for which business.
    Readable(Biz),
}

/// How a UUID is made (RFC 9562).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UuidVersion {
    /// Time, and a random node.
    V1,
    /// Random.
    V4,
    /// Time first, then random: in the order of time, also within one process.
    V7,
}

/// How a UUID is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UuidForm {
    /// 36 characters with hyphens: `CHAR(36)`, MariaDB's `UUID`.
    Text36,
    /// 32 hexadecimal digits: `CHAR(32)`.
    Text32,
    /// `BINARY(16)`.
    Bytes16,
}

/// MySQL's `auto_increment_offset` and `auto_increment_increment` over a tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stride {
    tag: Tag,
    residue: Residue,
}

/// What the keys of a source are, for checking a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Positive numbers of at most 63 bits.
    Number,
    /// ASCII text of a fixed length.
    Text {
        /// Characters.
        chars: u32,
    },
    /// 16 bytes.
    Bytes16,
}

/// Why a text is not a source of keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeySpecError {
    /// None of the names.
    #[error("key \"{text}\" is none of {}, stride:TAG", KEY_SPECS)]
    Unknown {
        /// What was written.
        text: String,
    },
    /// The tag is none.
    #[error("key \"{text}\": {error}")]
    Tag {
        /// What was written.
        text: String,
        /// What is wrong with it.
        error: TagError,
    },
    /// The business code is none.
    #[error("key \"{text}\": {error}")]
    Biz {
        /// What was written.
        text: String,
        /// What is wrong with it.
        error: BizError,
    },
    /// A stride without its numbers.
    #[error("key \"{text}\" needs offset and increment")]
    StrideNumbers {
        /// What was written.
        text: String,
    },
    /// Numbers that only a stride has.
    #[error("offset and increment belong to key stride:TAG, not to \"{text}\"")]
    NumbersWithoutStride {
        /// What was written.
        text: String,
    },
    /// The increment is out of range.
    #[error("key \"{text}\": {error}")]
    Increment {
        /// What was written.
        text: String,
        /// What is wrong with it.
        error: ResidueError,
    },
    /// The offset is out of range.
    #[error(
        "key \"{text}\": an offset must be between 1 and the increment {increment}, not {offset}"
    )]
    Offset {
        /// What was written.
        text: String,
        /// The refused number.
        offset: i64,
        /// The increment.
        increment: i64,
    },
}

impl Stride {
    /// Ids `offset`, `offset + increment`, … of a tag.
    ///
    /// # Errors
    /// [`KeySpecError`] unless 1 ≤ offset ≤ increment ≤ 65535. (MySQL ignores an offset above the increment.)
    pub fn new(tag: Tag, offset: i64, increment: i64) -> Result<Self, KeySpecError> {
        let text = || format!("stride:{tag}");
        let check = Residue::new(increment, 0);
        check.map_err(|error| KeySpecError::Increment {
            text: text(),
            error,
        })?;
        if !(1..=increment).contains(&offset) {
            return Err(KeySpecError::Offset {
                text: text(),
                offset,
                increment,
            });
        }
        let residue = Residue::new(increment, offset % increment).map_err(|error| {
            KeySpecError::Increment {
                text: text(),
                error,
            }
        })?;
        Ok(Self { tag, residue })
    }

    /// The tag.
    pub fn tag(&self) -> &Tag {
        &self.tag
    }

    /// Which of its ids.
    pub fn residue(&self) -> Residue {
        self.residue
    }
}

impl KeySpec {
    /// A source out of what a rule says.
    ///
    /// # Errors
    /// [`KeySpecError`] says what is wrong.
    pub fn parse(
        text: &str,
        offset: Option<i64>,
        increment: Option<i64>,
    ) -> Result<Self, KeySpecError> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let owned = || text.to_owned();
        if name != "stride" && (offset.is_some() || increment.is_some()) {
            return Err(KeySpecError::NumbersWithoutStride { text: owned() });
        }
        let tag = |argument| {
            Tag::parse(argument).map_err(|error| KeySpecError::Tag {
                text: owned(),
                error,
            })
        };
        match (name, argument) {
            ("segment", Some(argument)) => tag(argument).map(Self::Segment),
            ("snowflake", None) => Ok(Self::Snowflake),
            ("stride", Some(argument)) => match (offset, increment) {
                (Some(offset), Some(increment)) => {
                    Stride::new(tag(argument)?, offset, increment).map(Self::Stride)
                }
                (Some(_) | None, Some(_) | None) => {
                    Err(KeySpecError::StrideNumbers { text: owned() })
                }
            },
            ("readable", Some(argument)) => {
                Biz::parse(argument)
                    .map(Self::Readable)
                    .map_err(|error| KeySpecError::Biz {
                        text: owned(),
                        error,
                    })
            }
            (name, argument) => match (UuidVersion::parse(name), UuidForm::parse(argument)) {
                (Some(version), Some(form)) => Ok(Self::Uuid { version, form }),
                (Some(_) | None, Some(_) | None) => Err(KeySpecError::Unknown { text: owned() }),
            },
        }
    }

    /// The tag whose numbers they are.
    pub fn tag(&self) -> Option<&Tag> {
        match self {
            Self::Segment(tag) => Some(tag),
            Self::Stride(stride) => Some(stride.tag()),
            Self::Snowflake | Self::Uuid { .. } | Self::Readable(_) => None,
        }
    }

    /// What its keys are.
    pub fn kind(&self) -> KeyKind {
        match self {
            Self::Segment(_) | Self::Snowflake | Self::Stride(_) => KeyKind::Number,
            Self::Uuid { version: _, form } => match form {
                UuidForm::Text36 => KeyKind::Text { chars: 36 },
                UuidForm::Text32 => KeyKind::Text { chars: 32 },
                UuidForm::Bytes16 => KeyKind::Bytes16,
            },
            Self::Readable(_) => KeyKind::Text { chars: 27 },
        }
    }
}

/// As a rule writes it.
impl fmt::Display for KeySpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(tag) => write!(formatter, "segment:{tag}"),
            Self::Snowflake => formatter.write_str("snowflake"),
            Self::Uuid { version, form } => {
                write!(formatter, "{}:{}", version.name(), form.name())
            }
            Self::Stride(stride) => write!(formatter, "stride:{}", stride.tag),
            Self::Readable(biz) => write!(formatter, "readable:{}", biz.as_str()),
        }
    }
}

impl UuidVersion {
    const ALL: [Self; 3] = [Self::V1, Self::V4, Self::V7];

    fn name(self) -> &'static str {
        match self {
            Self::V1 => "uuid_v1",
            Self::V4 => "uuid_v4",
            Self::V7 => "uuid_v7",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

impl UuidForm {
    const ALL: [Self; 3] = [Self::Text36, Self::Text32, Self::Bytes16];

    fn name(self) -> &'static str {
        match self {
            Self::Text36 => "text36",
            Self::Text32 => "text32",
            Self::Bytes16 => "bytes16",
        }
    }

    fn parse(name: Option<&str>) -> Option<Self> {
        match name {
            None => Some(Self::Text36),
            Some(name) => Self::ALL.into_iter().find(|form| form.name() == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyKind, KeySpec};

    #[test]
    fn rules_are_read_and_written() {
        for text in [
            "segment:orders",
            "snowflake",
            "uuid_v1:text36",
            "uuid_v4:text32",
            "uuid_v7:bytes16",
            "readable:ORD",
        ] {
            let spec = KeySpec::parse(text, None, None).unwrap();
            assert_eq!(spec.to_string(), text);
        }
        let short = KeySpec::parse("uuid_v7", None, None).unwrap();
        assert_eq!(short.kind(), KeyKind::Text { chars: 36 });
        let stride = KeySpec::parse("stride:orders", Some(3), Some(3)).unwrap();
        assert_eq!(stride.to_string(), "stride:orders");
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for (text, offset, increment) in [
            ("", None, None),
            ("segment", None, None),
            ("segment:", None, None),
            ("segment:a b", None, None),
            ("snowflake:1", None, None),
            ("snowflake", Some(1), None),
            ("uuid_v5", None, None),
            ("uuid_v7:text16", None, None),
            ("stride:orders", None, Some(3)),
            ("stride:orders", Some(4), Some(3)),
            ("stride:orders", Some(0), Some(3)),
            ("stride:orders", Some(1), Some(65_536)),
            ("readable:LONGER", None, None),
        ] {
            assert!(
                KeySpec::parse(text, offset, increment).is_err(),
                "{text} {offset:?} {increment:?}"
            );
        }
    }
}
