//! Tags: named key spaces (`biz_tag` and `biz_key` in other systems).

use std::fmt;

use thiserror::Error;

/// The name of a key space: 1 to 128 ASCII letters, digits and `_ - . : / @ # $`.
///
/// ```
/// use keywright_core::{Tag, TagError};
///
/// assert_eq!(Tag::parse("orders").unwrap().as_str(), "orders");
/// let refused = Tag::parse("two words").unwrap_err();
/// assert_eq!(refused, TagError::Character { character: ' ', at_byte: 3 });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(String);

/// Why a text is not a tag.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TagError {
    /// No characters.
    #[error("a tag must not be empty")]
    Empty,
    /// More than [`Tag::BYTES_MAX`] bytes.
    #[error("a tag must not exceed {} bytes, this one has {bytes}", Tag::BYTES_MAX)]
    TooLong {
        /// Length of the refused text.
        bytes: usize,
    },
    /// A character outside the allowed set.
    #[error("a tag must not contain {character:?} (at byte {at_byte})")]
    Character {
        /// The first refused character.
        character: char,
        /// Where it starts, in bytes from the beginning.
        at_byte: usize,
    },
}

impl Tag {
    /// Longest tag, bytes: the `varchar(128)` of `leaf_alloc`.
    pub const BYTES_MAX: usize = 128;

    /// A tag out of what a caller wrote.
    ///
    /// # Errors
    /// [`TagError`] says what is wrong with the text; length is checked first, so a refusal costs nothing.
    pub fn parse(text: &str) -> Result<Self, TagError> {
        if text.is_empty() {
            return Err(TagError::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(TagError::TooLong { bytes: text.len() });
        }
        match text
            .char_indices()
            .find(|(_, character)| !is_allowed(*character))
        {
            Some((at_byte, character)) => Err(TagError::Character { character, at_byte }),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The tag's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tag's text as bytes, at most [`Tag::BYTES_MAX`].
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn is_allowed(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '_' | '-' | '.' | ':' | '/' | '@' | '#' | '$')
}
