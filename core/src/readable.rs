//! Readable ids: 27 characters that sort by time and that people can read.
//!
//! `yyMMddHHmmssSSS` in UTC or another fixed [`Zone`], four characters of business code, eight digits of `bucket << 18 | sequence`: the format
//! of the Redis-buckets article. Its counters live in Redis and wrap; here a bucket is a snowflake word whose
//! sequence carries into the milliseconds, so nothing wraps. Short codes are filled up with `_`, which no code may
//! contain: two codes never meet, and ids have one width.

use thiserror::Error;

use crate::civil::{Civil, Moment};
use crate::layout::{BeforeEpoch, Layout};
pub use crate::zone::SEQUENCE_BITS;
use crate::zone::Zone;

/// Number of buckets.
pub const BUCKETS: u32 = 256;
/// Length of an id, characters (all ASCII).
pub const ID_BYTES: usize = 27;
/// The layout of a bucket's word in UTC.
pub const LAYOUT: Layout = Zone::UTC.layout();

const TIME_DIGITS: usize = 15;
const NUMBER_DIGITS: usize = 8;
/// 2000-01-01 and 2100-01-01 as written, in milliseconds: the year has two digits.
const FIRST_MS: i64 = 946_684_800_000;
const END_MS: i64 = 4_102_444_800_000;

/// A business code: 1 to 4 ASCII letters and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Biz {
    /// Filled up with `_`.
    padded: [u8; Biz::BYTES_MAX],
}

/// Why a text is not a business code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BizError {
    /// Empty, or more than [`Biz::BYTES_MAX`] characters.
    #[error(
        "a business code must have 1 to {} characters, not {characters}",
        Biz::BYTES_MAX
    )]
    Length {
        /// Its characters.
        characters: usize,
    },
    /// A character outside `[A-Za-z0-9]`.
    #[error("a business code must not contain {character:?}")]
    Character {
        /// The first refused character.
        character: char,
    },
}

impl Biz {
    /// Longest business code, bytes.
    pub const BYTES_MAX: usize = 4;
    const FILL: u8 = b'_';

    /// A business code out of what a caller wrote.
    ///
    /// # Errors
    /// [`BizError`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, BizError> {
        if text.is_empty() || text.len() > Self::BYTES_MAX {
            // A long text is not counted to its end: the message needs no exact number of 10,000.
            return Err(BizError::Length {
                characters: text.chars().take(1000).count(),
            });
        }
        if let Some(character) = text
            .chars()
            .find(|character| !character.is_ascii_alphanumeric())
        {
            return Err(BizError::Character { character });
        }
        let mut padded = [Self::FILL; Self::BYTES_MAX];
        for (place, byte) in padded.iter_mut().zip(text.bytes()) {
            *place = byte;
        }
        Ok(Self { padded })
    }

    /// The code's text, without what fills it up.
    pub fn as_str(&self) -> &str {
        let text = str::from_utf8(&self.padded).unwrap_or_default();
        text.trim_end_matches(char::from(Self::FILL))
    }
}

/// What a readable id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadableParts {
    /// When it was issued, unix milliseconds.
    pub unix_ms: i64,
    /// For which business.
    pub biz: Biz,
    /// In which bucket.
    pub bucket: u8,
    /// The number within millisecond and bucket.
    pub sequence: u32,
}

/// Why there is no such readable id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadableError {
    /// Two digits of year stand for 2000 to 2099.
    #[error("time {written_ms} (milliseconds, as written) is not in the years 2000 to 2099")]
    Year {
        /// The moment as written, milliseconds.
        written_ms: i64,
    },
    /// More characters than 27, or fewer.
    #[error("a readable id has {ID_BYTES} characters, not {characters}")]
    Length {
        /// Its characters, at most 1000 counted.
        characters: usize,
    },
    /// One of them is not ASCII.
    #[error("a readable id has {ID_BYTES} ASCII characters, and U+{:04X} is none", u32::from(*character))]
    NotAscii {
        /// The first that is not.
        character: char,
    },
    /// The first 15 characters are not a moment.
    #[error("{text:?} is not a moment of the form yyMMddHHmmssSSS")]
    Time {
        /// Those characters.
        text: String,
    },
    /// The next 4 are not a business code.
    #[error("{text:?} is not a business code")]
    Biz {
        /// Those characters.
        text: String,
    },
    /// The last 8 are not a bucket and a sequence.
    #[error("{text:?} is not a number from 0 to {}", (BUCKETS << SEQUENCE_BITS) - 1)]
    Number {
        /// Those characters, or the sequence that is too large.
        text: String,
    },
}

/// The moment as written, in milliseconds, and the sequence of a bucket's state, in any zone.
pub fn parts_of_state(state: u64) -> (i64, u32) {
    let tick = i64::try_from(state >> SEQUENCE_BITS).unwrap_or(i64::MAX);
    let sequence = u32::try_from(state & ((1 << SEQUENCE_BITS) - 1)).unwrap_or(0);
    (Zone::written_ms_of_tick(tick), sequence)
}

/// The first moment, in unix milliseconds, that no readable id of a zone can carry.
pub const fn end_ms(zone: Zone) -> i64 {
    zone.unix_ms(END_MS)
}

/// Whether the years have begun that ids of a zone can tell: whoever begins to issue by the clock asks first.
///
/// # Errors
/// [`BeforeEpoch`] when they have not.
pub fn check_begun(now_ms: i64, zone: Zone) -> Result<(), BeforeEpoch> {
    let first_ms = zone.unix_ms(FIRST_MS);
    if now_ms < first_ms {
        return Err(BeforeEpoch {
            now: Moment(now_ms),
            epoch: Moment(first_ms),
        });
    }
    Ok(())
}

/// Whether a moment, as a clock shows it, can be written: two digits of year stand for 2000 to 2099.
pub fn can_write(written_ms: i64) -> bool {
    (FIRST_MS..END_MS).contains(&written_ms)
}

/// Writes a readable id. The moment is what a clock of its zone shows: [`Zone::written_ms`].
///
/// # Errors
/// [`ReadableError::Year`] outside 2000 to 2099; [`ReadableError::Number`] for a sequence of more than 18 bits.
pub fn format(
    written_ms: i64,
    biz: &Biz,
    bucket: u8,
    sequence: u32,
) -> Result<String, ReadableError> {
    if !can_write(written_ms) {
        return Err(ReadableError::Year { written_ms });
    }
    if sequence >> SEQUENCE_BITS != 0 {
        return Err(ReadableError::Number {
            text: sequence.to_string(),
        });
    }
    let civil = Civil::of_unix_ms(written_ms);
    let number = u32::from(bucket) << SEQUENCE_BITS | sequence;
    Ok(format!(
        "{:02}{:02}{:02}{:02}{:02}{:02}{:03}{}{number:08}",
        civil.year - 2000,
        civil.month,
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        civil.millisecond,
        str::from_utf8(&biz.padded).unwrap_or_default(),
    ))
}

/// Takes a readable id apart that was written in a zone.
///
/// # Errors
/// [`ReadableError`] for anything that [`fn@format`] does not write.
pub fn parse(text: &str, zone: Zone) -> Result<ReadableParts, ReadableError> {
    let characters = text.chars().take(1000).count();
    if characters != ID_BYTES {
        return Err(ReadableError::Length { characters });
    }
    if let Some(character) = text.chars().find(|character| !character.is_ascii()) {
        return Err(ReadableError::NotAscii { character });
    }
    let (time, rest) = text.split_at(TIME_DIGITS);
    let (biz, number) = rest.split_at(Biz::BYTES_MAX);
    let written_ms = parse_time(time).ok_or_else(|| ReadableError::Time {
        text: time.to_owned(),
    })?;
    let biz = Biz::parse(biz.trim_end_matches(char::from(Biz::FILL))).map_err(|_| {
        ReadableError::Biz {
            text: biz.to_owned(),
        }
    })?;
    let (bucket, sequence) = parse_number(number).ok_or_else(|| ReadableError::Number {
        text: number.to_owned(),
    })?;
    Ok(ReadableParts {
        unix_ms: zone.unix_ms(written_ms),
        biz,
        bucket,
        sequence,
    })
}

fn parse_time(text: &str) -> Option<i64> {
    let two = |at: usize| text.get(at..at + 2).and_then(digits);
    Civil {
        year: 2000 + two(0)?,
        month: two(2)?,
        day: two(4)?,
        hour: two(6)?,
        minute: two(8)?,
        second: two(10)?,
        millisecond: text.get(12..TIME_DIGITS).and_then(digits)?,
    }
    .unix_ms()
}

fn parse_number(text: &str) -> Option<(u8, u32)> {
    let number = u32::try_from(digits(text)?).ok()?;
    let bucket = u8::try_from(number >> SEQUENCE_BITS).ok()?;
    Some((bucket, number & ((1 << SEQUENCE_BITS) - 1)))
}

fn digits(text: &str) -> Option<i64> {
    debug_assert!(text.len() <= NUMBER_DIGITS);
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}
