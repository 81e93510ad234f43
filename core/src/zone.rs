//! Time zones of readable ids: fixed offsets from UTC.
//!
//! What must not come twice is the moment as it is written. So a zone is to a bucket what a layout with another epoch is to a
//! worker id: ticks count from the same written moment in every zone, and between zones ids are compared, not moments.

use std::fmt;

use thiserror::Error;

use crate::civil::DAY_MS;
use crate::layout::{FieldName, Layout};

/// Bits of the sequence within one millisecond and bucket.
pub const SEQUENCE_BITS: u32 = 18;
const MINUTE_MS: i64 = 60_000;
/// What a clock shows when ticks begin: the second of January 1970, so that in no zone they begin before 1970 in UTC.
const FIRST_WRITTEN_MS: i64 = DAY_MS;

/// A fixed offset from UTC, in which readable ids are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// How far its clocks are ahead of UTC.
    minutes: i16,
}

/// Why a text is not a zone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ZoneError {
    /// Not an offset: the name of a zone, say.
    #[error("{text:?} is not a fixed offset from UTC")]
    NoOffset {
        /// The text, at most 64 characters of it.
        text: String,
    },
    /// Further from UTC than any clock, or 60 minutes and more behind the colon.
    #[error("offset {text:?} is not between -14:00 and +14:00")]
    Range {
        /// The text.
        text: String,
    },
}

impl Zone {
    /// No offset.
    pub const UTC: Self = Self { minutes: 0 };
    /// Most minutes east or west of UTC.
    pub const MINUTES_MAX: i16 = 14 * 60;
    /// Most characters of a text that a message repeats.
    const CHARACTERS_SHOWN_MAX: usize = 64;

    /// A zone out of what a user wrote: `UTC`, or an offset as in ISO 8601 (`+08:00`, `-0330`, `+8`), east of Greenwich positive.
    ///
    /// # Errors
    /// [`ZoneError`] says what is wrong.
    pub fn parse(text: &str) -> Result<Self, ZoneError> {
        if ["utc", "z"].contains(&text.to_ascii_lowercase().as_str()) {
            return Ok(Self::UTC);
        }
        let (sign, digits) = match text.split_at_checked(1) {
            Some(("+", digits)) => (1, digits),
            Some(("-", digits)) => (-1, digits),
            Some((_, _)) | None => return Err(no_offset(text)),
        };
        let (hours, minutes) = match digits.split_once(':') {
            Some(parts) => parts,
            None if digits.len() == 4 => digits.split_at_checked(2).unwrap_or((digits, "")),
            None => (digits, "00"),
        };
        let number = |part: &str| {
            let is_number =
                (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse::<i16>().ok()).flatten()
        };
        let (Some(hours), Some(minutes), 2) = (number(hours), number(minutes), minutes.len())
        else {
            return Err(no_offset(text));
        };
        let offset = hours * 60 + minutes;
        if minutes >= 60 || offset > Self::MINUTES_MAX {
            return Err(ZoneError::Range {
                text: text.to_owned(),
            });
        }
        Ok(Self {
            minutes: sign * offset,
        })
    }

    /// The zone with that layout of a bucket's word; `None` if it is not one.
    pub fn of_layout(layout: &Layout) -> Option<Self> {
        let ahead_ms = FIRST_WRITTEN_MS.saturating_sub(layout.epoch_ms());
        let zone = Self {
            minutes: i16::try_from(ahead_ms / MINUTE_MS).ok()?,
        };
        (zone.layout() == *layout).then_some(zone)
    }

    /// The layout of a bucket's word in this zone: milliseconds as written, above the sequence. Only its states are used, and its
    /// ids to compare zones.
    pub const fn layout(self) -> Layout {
        Layout::from_fields(
            &[
                (FieldName::Time, 42),
                (FieldName::Worker, 1),
                (FieldName::Sequence, SEQUENCE_BITS as u8),
            ],
            FIRST_WRITTEN_MS - self.ahead_ms(),
            1,
        )
    }

    /// What a clock of the zone shows, as if it were UTC, in unix milliseconds.
    pub const fn written_ms(self, unix_ms: i64) -> i64 {
        unix_ms.saturating_add(self.ahead_ms())
    }

    /// When a clock of the zone shows that.
    pub const fn unix_ms(self, written_ms: i64) -> i64 {
        written_ms.saturating_sub(self.ahead_ms())
    }

    /// The written milliseconds of a tick, in every zone.
    pub(crate) const fn written_ms_of_tick(tick: i64) -> i64 {
        tick.saturating_add(FIRST_WRITTEN_MS)
    }

    const fn ahead_ms(self) -> i64 {
        self.minutes as i64 * MINUTE_MS
    }
}

fn no_offset(text: &str) -> ZoneError {
    ZoneError::NoOffset {
        text: text.chars().take(Zone::CHARACTERS_SHOWN_MAX).collect(),
    }
}

/// The text that [`Zone::parse`] takes back: `UTC`, or `+08:00`.
impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.minutes {
            0 => return formatter.write_str("UTC"),
            1.. => '+',
            _ => '-',
        };
        let minutes = self.minutes.unsigned_abs();
        write!(formatter, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}
