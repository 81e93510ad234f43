//! Everything Keywright decides about ids, and nothing else.
//!
//! Pure: no I/O, no clock, no randomness, no threads. Time is an argument; the answer is an id, or what must be
//! made durable before there can be one. The types that live in shared memory ([`SnowflakeWord`], [`SegmentWord`],
//! [`VirtualClock`], [`Layout`]) are `#[repr(C)]`, free of pointers, and valid when all their bytes are zero.
//!
//! The argument that no id is issued twice, in the order of the modules:
//! 1. [`snowflake`] and [`segment`]: ids come from one atomic word that only grows, and only below its bound.
//! 2. [`bound`] and [`segment::plan_refill`]: what to make durable before that bound may be raised.
//! 3. [`writer`]: what is recorded beside a bound, so that a copy or a promoted replica is recognised.
//! 4. [`evidence`]: how long the original may have gone on after what reached a promoted standby.
//! 5. [`clock`] and [`policy`]: a clock that lies in either direction changes how fresh ids are, never whether
//!    they are unique.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// A panic in the server would end the transaction, in the program the connection.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

pub mod age;
pub mod bound;
pub mod buffer;
pub mod cause;
pub mod clock;
pub mod evidence;
pub mod gate;
pub mod generation;
pub mod hiding;
pub mod key;
pub mod key_space;
pub mod layout;
pub mod mark;
pub mod nearest;
pub mod policy;
pub mod readable;
pub mod register;
pub mod resets;
pub mod residue;
pub mod segment;
pub mod slot;
pub mod snowflake;
pub mod source;
pub mod step;
pub mod tag;
pub mod unused;
pub mod uuids;
pub mod writer;
pub mod zone;

mod civil;
mod sync;

pub use age::Age;
pub use bound::{
    BoundPlan, BoundRefusal, BoundRequest, Recorded, Takeover, TakeoverPlan, TakeoverReason,
    plan_bound, plan_takeover,
};
pub use buffer::Buffer;
pub use cause::Cause;
pub use civil::Moment;
pub use clock::{ClockEvent, Observation, Readings, VirtualClock};
pub use evidence::{LastMessage, Loss, Promotion, Received, Word, lost_ms};
pub use generation::Generation;
pub use hiding::{Fingerprint, HideBits, HideError, HideKey, Hiding};
pub use key::KeyBatch;
pub use key_space::{key_space_mark, written_key_space_mark};
pub use layout::{
    BeforeEpoch, DecodeError, Decoded, FloorError, Layout, LayoutError, LayoutProblem,
    LayoutTimeError, Preset, TimeLeft, WorkerId, WorkerIdError,
};
pub use mark::Mark;
pub use policy::{ClockDecision, ClockPolicy, SpareState, decide};
pub use readable::{Biz, BizError, ReadableError, ReadableParts};
pub use register::{AssignedRange, Floor, Held, Number, Register, Use};
pub use resets::{Checkpoint, Resets};
pub use residue::{Residue, ResidueError};
pub use segment::{
    Exhausted, RefillPlan, RefillRequest, SegmentWord, TagExhausted, plan_refill, refill_at,
};
pub use snowflake::{BoundReached, SnowflakeWord, TickError};
pub use source::{SourceSetting, SourceSettingError};
pub use step::{RateWindow, Step, StepError, StepPolicy, rate_per_s};
pub use tag::{Tag, TagError};
pub use writer::{Note, Writer};
pub use zone::{Zone, ZoneError};
