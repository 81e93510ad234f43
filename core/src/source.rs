//! Which tags of a server are fed from a store, by the server's own setting: `keywright.source`.
//!
//! A catalogue can be an old one: a backup that was restored, a standby that was promoted before it had all. What it says of a tag that was
//! moved to a store may be long over. So the setting says how often tags were moved, and a tag issues ids of its own only where its row has
//! the very number: `returned`, when it was moved back, or 0, if it never was.

use thiserror::Error;

use crate::tag::Tag;

/// How many tags the setting may name.
const NAMED_MAX: usize = 1_000;

/// What `keywright.source` says: `native`; `fed:1` for all tags of the server; `orders=fed:1, parcels=fed:2` for those that it names.
///
/// ```
/// use keywright_core::{SourceSetting, Tag};
///
/// let setting = SourceSetting::parse("orders=fed:2").unwrap();
/// assert_eq!(setting.number_of(&Tag::parse("orders").unwrap()), 2);
/// assert_eq!(setting.number_of(&Tag::parse("parcels").unwrap()), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceSetting {
    all: u32,
    named: Vec<(Tag, u32)>,
}

/// Why a text says no source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SourceSettingError {
    /// Neither `native` nor `fed:` with a number.
    #[error(
        "\"{0}\" is neither native nor fed:N nor TAG=fed:N, where N is 1 or more and counts moves"
    )]
    Item(String),
    /// What stands before `=` is no tag.
    #[error("\"{0}\" names no tag")]
    Tag(String),
    /// A tag, or all, twice.
    #[error("\"{0}\" is said twice")]
    Twice(String),
    /// There are too many.
    #[error("more than {NAMED_MAX} tags are named")]
    TooMany,
}

impl SourceSetting {
    /// Reads the setting.
    ///
    /// # Errors
    /// [`SourceSettingError`] says what is wrong: a server must not start with less than was meant.
    pub fn parse(text: &str) -> Result<Self, SourceSettingError> {
        if matches!(text.trim(), "" | "native") {
            return Ok(Self::default());
        }
        let mut setting = Self::default();
        for item in text.split(',').map(str::trim) {
            let (name, source) = match item.rsplit_once('=') {
                Some((name, source)) => (Some(name.trim()), source.trim()),
                None => (None, item),
            };
            let number =
                number_of(source).ok_or_else(|| SourceSettingError::Item(item.to_owned()))?;
            let twice = || SourceSettingError::Twice(item.to_owned());
            match name {
                None if setting.all > 0 => return Err(twice()),
                None => setting.all = number,
                Some(name) => {
                    let tag =
                        Tag::parse(name).map_err(|_| SourceSettingError::Tag(name.to_owned()))?;
                    if setting.named.iter().any(|(named, _)| *named == tag) {
                        return Err(twice());
                    }
                    setting.named.push((tag, number));
                }
            }
        }
        match setting.named.len() > NAMED_MAX {
            true => Err(SourceSettingError::TooMany),
            false => Ok(setting),
        }
    }

    /// How often a tag of this name was moved to a store, as far as the server was told; 0: never.
    pub fn number_of(&self, tag: &Tag) -> u32 {
        let mut named = self.named.iter();
        let found = named.find(|(named, _)| named == tag);
        found.map_or(self.all, |(_, number)| *number)
    }
}

/// Fits an integer of PostgreSQL, in which rows have it.
fn number_of(source: &str) -> Option<u32> {
    let digits = source.strip_prefix("fed:")?;
    let number: u32 = digits.parse().ok()?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain && (1..=i32::MAX.unsigned_abs()).contains(&number)).then_some(number)
}
