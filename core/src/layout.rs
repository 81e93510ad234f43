//! Layouts: how the bits of an id are divided among time, datacenter, worker and sequence.
//!
//! A layout is data: any split of at most 63 bits, in any order, with any epoch and tick. The names of the fields
//! are Twitter's; the presets are the splits that are in use.

mod parse;
mod preset;
mod time;

use thiserror::Error;

pub use parse::{LayoutError, LayoutProblem};
pub use preset::Preset;
pub use time::{BeforeEpoch, FloorError, LayoutTimeError, TimeLeft};

use crate::policy::SpareState;

/// One field of an id. Zero bits: the layout does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
struct Field {
    bits: u8,
    shift: u8,
}

impl Field {
    const fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    const fn get(self, id: u64) -> u64 {
        (id >> self.shift) & self.mask()
    }

    const fn put(self, value: u64) -> u64 {
        (value & self.mask()) << self.shift
    }
}

/// The names of the fields, as written in a layout's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldName {
    Time,
    Datacenter,
    Worker,
    Sequence,
    Spare,
    Unused,
}

impl FieldName {
    const ALL: [Self; 6] = [
        Self::Time,
        Self::Datacenter,
        Self::Worker,
        Self::Sequence,
        Self::Spare,
        Self::Unused,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Datacenter => "datacenter",
            Self::Worker => "worker",
            Self::Sequence => "sequence",
            Self::Spare => "spare",
            Self::Unused => "unused",
        }
    }
}

/// How the bits of an id are divided.
///
/// ```
/// use keywright_core::Layout;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let twitter = Layout::parse("twitter")?;
/// assert_eq!((twitter.worker_id_max(), twitter.sequence_bits()), (1023, 12));
/// // The smallest id of a moment finds rows by their key: WHERE id >= …
/// let moment = 1_795_478_400_000;
/// assert_eq!(twitter.decode(twitter.floor(moment)?)?.issued_at_ms, moment);
/// // An id that JavaScript's numbers hold exactly.
/// assert_eq!(Layout::parse("js53")?.id_bits(), 53);
/// assert!(Layout::parse("twiter").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Layout {
    epoch_ms: i64,
    tick_ms: u32,
    time: Field,
    datacenter: Field,
    worker: Field,
    sequence: Field,
    spare: Field,
}

/// What an id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// The start of the id's tick, unix milliseconds.
    pub issued_at_ms: i64,
    /// `None` in layouts without a datacenter field.
    pub datacenter_id: Option<u32>,
    /// The worker field alone: 0 to 31 in Twitter's layout.
    pub worker_id: u32,
    /// The number within tick and worker.
    pub sequence: u64,
    /// Whether the spare worker issued it.
    pub spare: bool,
}

/// Why a number is not an id of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Ids are never negative.
    #[error("id {id} is negative")]
    Negative {
        /// The refused number.
        id: i64,
    },
    /// A bit is set that the layout leaves unused.
    #[error("id {id} has bits set that the layout does not use")]
    UnusedBits {
        /// The refused number.
        id: i64,
    },
}

/// Datacenter and worker field in one number: `datacenter << worker_bits | worker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct WorkerId(u32);

/// The number is no worker id of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("worker id {worker_id} is not between 0 and {worker_id_max}")]
pub struct WorkerIdError {
    /// The refused number.
    pub worker_id: i64,
    /// The layout's largest.
    pub worker_id_max: u32,
}

impl WorkerId {
    /// A worker id of `layout`. One made for another layout must be made anew: it could lose bits.
    ///
    /// # Errors
    /// [`WorkerIdError`] when the layout's datacenter and worker fields cannot hold it.
    pub fn new(worker_id: i64, layout: &Layout) -> Result<Self, WorkerIdError> {
        let worker_id_max = layout.worker_id_max();
        match u32::try_from(worker_id) {
            Ok(id) if id <= worker_id_max => Ok(Self(id)),
            Ok(_) | Err(_) => Err(WorkerIdError {
                worker_id,
                worker_id_max,
            }),
        }
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Layout {
    /// Most bits all fields may have together: an id is a non-negative 64-bit number.
    pub const BITS_MAX: u32 = 63;
    /// Most bits datacenter and worker may have together (Baidu's 22).
    pub const WORKER_BITS_MAX: u32 = 22;
    /// Longest tick, milliseconds.
    pub const TICK_MS_MAX: u32 = 3_600_000;

    /// A layout out of its fields from the high end to the low. For presets, and for lists that were checked.
    pub(crate) const fn from_fields(
        fields: &[(FieldName, u8)],
        epoch_ms: i64,
        tick_ms: u32,
    ) -> Self {
        const NONE: Field = Field { bits: 0, shift: 0 };
        let mut layout = Self {
            epoch_ms,
            tick_ms,
            time: NONE,
            datacenter: NONE,
            worker: NONE,
            sequence: NONE,
            spare: NONE,
        };
        let mut shift = 0;
        let mut rest = fields;
        while let Some(((name, bits), higher)) = rest.split_last() {
            let field = Field { bits: *bits, shift };
            match name {
                FieldName::Time => layout.time = field,
                FieldName::Datacenter => layout.datacenter = field,
                FieldName::Worker => layout.worker = field,
                FieldName::Sequence => layout.sequence = field,
                FieldName::Spare => layout.spare = field,
                FieldName::Unused => {}
            }
            shift += *bits;
            rest = higher;
        }
        layout
    }

    /// The fields from high to low, with unused bits between and below them, without those above.
    fn fields(&self) -> Vec<(FieldName, u8)> {
        let mut present: Vec<(FieldName, Field)> = [
            (FieldName::Time, self.time),
            (FieldName::Datacenter, self.datacenter),
            (FieldName::Worker, self.worker),
            (FieldName::Sequence, self.sequence),
            (FieldName::Spare, self.spare),
        ]
        .into_iter()
        .filter(|(_, field)| field.bits > 0)
        .collect();
        present.sort_by_key(|(_, field)| field.shift);
        let mut from_low = Vec::new();
        let mut used = 0;
        for (name, field) in present {
            if field.shift > used {
                from_low.push((FieldName::Unused, field.shift - used));
            }
            from_low.push((name, field.bits));
            used = field.shift + field.bits;
        }
        from_low.reverse();
        from_low
    }

    /// Bits of the time field.
    pub const fn time_bits(&self) -> u32 {
        self.time.bits as u32
    }

    /// Bits of the datacenter field; 0 without one.
    pub const fn datacenter_bits(&self) -> u32 {
        self.datacenter.bits as u32
    }

    /// Bits of the worker field.
    pub const fn worker_bits(&self) -> u32 {
        self.worker.bits as u32
    }

    /// Bits of the sequence field: how far the time of a state is shifted.
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence.bits as u32
    }

    /// Distance of neighbouring ids of one tick.
    pub const fn apart(&self) -> u64 {
        1 << self.sequence.shift
    }

    /// Whether there is a spare bit.
    pub const fn has_spare(&self) -> bool {
        self.spare.bits > 0
    }

    /// Whether a clock policy can fall back on a spare word.
    pub const fn spare_state(&self) -> SpareState {
        if self.has_spare() {
            SpareState::Available
        } else {
            SpareState::Absent
        }
    }

    /// Bits of the largest id.
    pub const fn id_bits(&self) -> u32 {
        u64::BITS - self.used_bits().leading_zeros()
    }

    /// Largest worker id, datacenter and worker field together.
    pub const fn worker_id_max(&self) -> u32 {
        (1 << (self.datacenter.bits + self.worker.bits)) - 1
    }

    /// Whether ids grow when states do: the time field stands above the sequence.
    pub const fn ids_grow(&self) -> bool {
        self.time.shift > self.sequence.shift
    }

    /// The bits of an id that tell who issued it, in place.
    ///
    /// `spare` only in layouts that have the bit ([`Layout::has_spare`]): in others there would be nothing to tell the
    /// spare word's ids from the worker's own.
    pub fn worker_part(&self, worker_id: WorkerId, spare: bool) -> u64 {
        debug_assert!(!spare || self.has_spare(), "no spare bit to set");
        let worker_id = u64::from(worker_id.0);
        self.datacenter.put(worker_id >> self.worker.bits)
            | self.worker.put(worker_id)
            | self.spare.put(u64::from(spare))
    }

    /// The id of a state: shifts and masks only. `worker_part` comes from [`Layout::worker_part`].
    #[inline]
    pub fn compose(&self, state: u64, worker_part: u64) -> i64 {
        let sequence = state & self.sequence.mask();
        let ticks = state >> self.sequence.bits;
        let id = ticks << self.time.shift | sequence << self.sequence.shift | worker_part;
        // The fields together have at most 63 bits.
        id as i64
    }

    /// Takes an id apart.
    ///
    /// # Errors
    /// [`DecodeError`] when the number is negative or has bits set outside the layout's fields.
    pub fn decode(&self, id: i64) -> Result<Decoded, DecodeError> {
        let bits = u64::try_from(id).map_err(|_| DecodeError::Negative { id })?;
        if bits & !self.used_bits() != 0 {
            return Err(DecodeError::UnusedBits { id });
        }
        let narrow = |field: Field| u32::try_from(field.get(bits)).unwrap_or(u32::MAX);
        Ok(Decoded {
            issued_at_ms: self.unix_ms_of(self.time.get(bits)),
            datacenter_id: (self.datacenter.bits > 0).then(|| narrow(self.datacenter)),
            worker_id: narrow(self.worker),
            sequence: self.sequence.get(bits),
            spare: self.spare.get(bits) != 0,
        })
    }

    const fn used_bits(&self) -> u64 {
        self.time.put(u64::MAX)
            | self.datacenter.put(u64::MAX)
            | self.worker.put(u64::MAX)
            | self.sequence.put(u64::MAX)
            | self.spare.put(u64::MAX)
    }
}
