//! Layouts out of text: all mistakes in it are reported at once.

use thiserror::Error;

use super::{FieldName, Layout, Preset};
use crate::civil::Civil;
use crate::nearest::nearest;

/// Longest layout text, bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Latest epoch: the end of year 9999, unix milliseconds.
const EPOCH_MS_MAX: i64 = 253_402_300_799_999;

/// Why a text is not a layout: every problem found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", .problems.iter().map(LayoutProblem::to_string).collect::<Vec<_>>().join("; "))]
pub struct LayoutError {
    /// At least one.
    pub problems: Vec<LayoutProblem>,
}

/// One thing wrong with a layout's text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayoutProblem {
    /// More than 256 bytes.
    #[error("the text has {bytes} bytes, at most {TEXT_BYTES_MAX} are read")]
    TooLong {
        /// Length of the text.
        bytes: usize,
    },
    /// Neither a preset's name nor `field=value`.
    #[error("{text:?} is neither a preset ({}) nor field=value", preset_names())]
    Unknown {
        /// The part in question.
        text: String,
    },
    /// A number of bits that is none.
    #[error("{field}={value} is not a number of bits from 0 to 63")]
    Bits {
        /// The field's name.
        field: &'static str,
        /// What was written.
        value: String,
    },
    /// An epoch that is none.
    #[error(
        "epoch={value} is neither unix milliseconds, a date (2025-01-01) nor a UTC time (2025-01-01T00:00:00Z) from 1970 to 9999"
    )]
    Epoch {
        /// What was written.
        value: String,
    },
    /// A tick that is none.
    #[error("tick={value} is not a length like 1ms, 10ms or 1s, from 1ms to 3600s")]
    Tick {
        /// What was written.
        value: String,
    },
    /// The same thing twice.
    #[error("{name} is given twice")]
    Twice {
        /// What is given twice.
        name: &'static str,
    },
    /// `unused` after a preset: where would it go?
    #[error("unused bits cannot be added to a preset: write all fields")]
    UnusedInPreset,
    /// A field without which there are no ids.
    #[error("{field} needs at least 1 bit")]
    Missing {
        /// The field's name.
        field: &'static str,
    },
    /// A spare field of more than one bit.
    #[error("spare={bits} is more than 1 bit")]
    SpareTooWide {
        /// Its bits.
        bits: u8,
    },
    /// Datacenter and worker take too many bits.
    #[error(
        "datacenter and worker have {bits} bits together, more than {}",
        Layout::WORKER_BITS_MAX
    )]
    WorkerTooWide {
        /// Their bits.
        bits: u32,
    },
    /// All fields take too many bits.
    #[error("all fields have {bits} bits together, more than {}", Layout::BITS_MAX)]
    TooManyBits {
        /// Their bits.
        bits: u32,
    },
    /// A full field list without an epoch: a default would be a guess.
    #[error("epoch is missing")]
    EpochMissing,
}

impl LayoutError {
    /// What was probably meant by the first part that is neither a preset nor a field.
    pub fn meant(&self) -> Option<&'static str> {
        let unknown = self.problems.iter().find_map(|problem| match problem {
            LayoutProblem::Unknown { text } => Some(text.as_str()),
            LayoutProblem::TooLong { .. }
            | LayoutProblem::Bits { .. }
            | LayoutProblem::Epoch { .. }
            | LayoutProblem::Tick { .. }
            | LayoutProblem::Twice { .. }
            | LayoutProblem::UnusedInPreset
            | LayoutProblem::Missing { .. }
            | LayoutProblem::SpareTooWide { .. }
            | LayoutProblem::WorkerTooWide { .. }
            | LayoutProblem::TooManyBits { .. }
            | LayoutProblem::EpochMissing => None,
        })?;
        let near = match unknown.split_once('=') {
            Some((name, _)) => nearest(name.trim(), field_names()),
            None => nearest(unknown, Preset::ALL.map(Preset::name)),
        };
        near.first().copied()
    }
}

impl Layout {
    /// A layout out of its text: a preset's name, optionally with overrides (`baidu,epoch=2024-05-20`), or all
    /// fields from the high bits to the low (`time=41,datacenter=5,worker=5,sequence=12,epoch=1288834974657,tick=1ms`).
    ///
    /// Fields: `time`, `datacenter`, `worker`, `sequence`, `spare` (one bit), and `unused` bits, as often as needed.
    /// The tick is `1ms` unless given. A datacenter or spare field that a preset lacks goes directly above its worker
    /// field, which is where the clock-rollback article puts its spare worker (w + 512).
    ///
    /// # Errors
    /// [`LayoutError`] with everything that is wrong.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        if text.len() > TEXT_BYTES_MAX {
            let problems = vec![LayoutProblem::TooLong { bytes: text.len() }];
            return Err(LayoutError { problems });
        }
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let mut draft = match Preset::of_name(first) {
            Some(preset) => Draft::of_preset(preset),
            None => {
                let mut draft = Draft::default();
                draft.read(first);
                draft
            }
        };
        for part in parts {
            draft.read(part);
        }
        draft.finish()
    }
}

/// What was read so far.
#[derive(Default)]
struct Draft {
    /// High to low.
    fields: Vec<(FieldName, u8)>,
    epoch_ms: Option<i64>,
    tick_ms: Option<u32>,
    is_preset: bool,
    given: Vec<&'static str>,
    problems: Vec<LayoutProblem>,
}

impl Draft {
    fn of_preset(preset: Preset) -> Self {
        let layout = preset.layout();
        Self {
            fields: layout.fields(),
            epoch_ms: Some(layout.epoch_ms()),
            tick_ms: Some(layout.tick_ms()),
            is_preset: true,
            ..Self::default()
        }
    }

    fn read(&mut self, part: &str) {
        let Some((name, value)) = part.split_once('=') else {
            return self.problems.push(LayoutProblem::Unknown {
                text: part.to_owned(),
            });
        };
        let (name, value) = (name.trim(), value.trim());
        match (
            name,
            FieldName::ALL
                .into_iter()
                .find(|field| field.name() == name),
        ) {
            ("epoch", _) => {
                self.note_given("epoch");
                match parse_epoch(value) {
                    Some(epoch_ms) => self.epoch_ms = Some(epoch_ms),
                    None => self.problems.push(LayoutProblem::Epoch {
                        value: value.to_owned(),
                    }),
                }
            }
            ("tick", _) => {
                self.note_given("tick");
                match parse_tick(value) {
                    Some(tick_ms) => self.tick_ms = Some(tick_ms),
                    None => self.problems.push(LayoutProblem::Tick {
                        value: value.to_owned(),
                    }),
                }
            }
            (_, Some(field)) => self.read_field(field, value),
            (_, None) => self.problems.push(LayoutProblem::Unknown {
                text: part.to_owned(),
            }),
        }
    }

    fn read_field(&mut self, field: FieldName, value: &str) {
        let bits = match parse_digits(value).and_then(|bits| u8::try_from(bits).ok()) {
            Some(bits) if u32::from(bits) <= Layout::BITS_MAX => bits,
            Some(_) | None => {
                let (field, value) = (field.name(), value.to_owned());
                return self.problems.push(LayoutProblem::Bits { field, value });
            }
        };
        if field == FieldName::Unused {
            if self.is_preset {
                self.problems.push(LayoutProblem::UnusedInPreset);
            }
            return self.fields.push((field, bits));
        }
        self.note_given(field.name());
        match self
            .fields
            .iter_mut()
            .find(|(present, _)| *present == field)
        {
            Some((_, present_bits)) => *present_bits = bits,
            None => {
                let at = if self.is_preset {
                    self.worker_at()
                } else {
                    self.fields.len()
                };
                self.fields.insert(at, (field, bits));
            }
        }
    }

    fn worker_at(&self) -> usize {
        let worker_at = self
            .fields
            .iter()
            .position(|(field, _)| *field == FieldName::Worker);
        worker_at.unwrap_or(self.fields.len())
    }

    fn note_given(&mut self, name: &'static str) {
        if self.given.contains(&name) {
            self.problems.push(LayoutProblem::Twice { name });
        }
        self.given.push(name);
    }

    fn bits_of(&self, field: FieldName) -> u8 {
        self.fields
            .iter()
            .find(|(present, _)| *present == field)
            .map_or(0, |(_, bits)| *bits)
    }

    fn finish(mut self) -> Result<Layout, LayoutError> {
        for field in [FieldName::Time, FieldName::Worker, FieldName::Sequence] {
            if self.bits_of(field) == 0 {
                self.problems.push(LayoutProblem::Missing {
                    field: field.name(),
                });
            }
        }
        let spare_bits = self.bits_of(FieldName::Spare);
        if spare_bits > 1 {
            self.problems
                .push(LayoutProblem::SpareTooWide { bits: spare_bits });
        }
        let worker_bits = u32::from(self.bits_of(FieldName::Datacenter))
            + u32::from(self.bits_of(FieldName::Worker));
        if worker_bits > Layout::WORKER_BITS_MAX {
            self.problems
                .push(LayoutProblem::WorkerTooWide { bits: worker_bits });
        }
        let all_bits = self.fields.iter().map(|(_, bits)| u32::from(*bits)).sum();
        if all_bits > Layout::BITS_MAX {
            self.problems
                .push(LayoutProblem::TooManyBits { bits: all_bits });
        }
        if self.epoch_ms.is_none() && !self.given.contains(&"epoch") {
            self.problems.push(LayoutProblem::EpochMissing);
        }
        match self.epoch_ms {
            Some(epoch_ms) if self.problems.is_empty() => Ok(Layout::from_fields(
                &self.fields,
                epoch_ms,
                self.tick_ms.unwrap_or(1),
            )),
            Some(_) | None => Err(LayoutError {
                problems: self.problems,
            }),
        }
    }
}

fn parse_epoch(text: &str) -> Option<i64> {
    let unix_ms = match parse_digits(text) {
        Some(unix_ms) => unix_ms,
        None => parse_moment(text)?,
    };
    (0..=EPOCH_MS_MAX).contains(&unix_ms).then_some(unix_ms)
}

/// `2025-01-01`, `2025-01-01T00:00:00Z` or `2025-01-01T00:00:00.000Z` (RFC 3339, UTC only).
fn parse_moment(text: &str) -> Option<i64> {
    let (date, time) = match text.strip_suffix('Z') {
        Some(moment) => moment.split_once('T')?,
        None => (text, "00:00:00"),
    };
    let (clock, millisecond) = match time.split_once('.') {
        Some((clock, fraction)) => (clock, digits(fraction, 3)?),
        None => (time, 0),
    };
    let [year, month, day] = three(date, '-')?;
    let [hour, minute, second] = three(clock, ':')?;
    Civil {
        year: digits(year, 4)?,
        month: digits(month, 2)?,
        day: digits(day, 2)?,
        hour: digits(hour, 2)?,
        minute: digits(minute, 2)?,
        second: digits(second, 2)?,
        millisecond,
    }
    .unix_ms()
}

fn three(text: &str, separator: char) -> Option<[&str; 3]> {
    let parts: Vec<&str> = text.split(separator).collect();
    parts.try_into().ok()
}

fn digits(text: &str, width: usize) -> Option<i64> {
    if text.len() == width {
        parse_digits(text)
    } else {
        None
    }
}

fn parse_tick(text: &str) -> Option<u32> {
    let (number, unit_ms) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s')?, 1000),
    };
    let tick_ms = u32::try_from(parse_digits(number)?.checked_mul(unit_ms)?).ok()?;
    (1..=Layout::TICK_MS_MAX)
        .contains(&tick_ms)
        .then_some(tick_ms)
}

/// Digits only: `i64::from_str` would take a sign.
fn parse_digits(text: &str) -> Option<i64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

fn preset_names() -> String {
    Preset::ALL.map(Preset::name).join(", ")
}

/// What may stand before `=`.
fn field_names() -> impl Iterator<Item = &'static str> {
    let fields = FieldName::ALL.map(FieldName::name);
    fields.into_iter().chain(["epoch", "tick"])
}
