//! Which time word this database's snowflake and readable ids come from.

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::readable;
use pgrx::pg_sys;

use crate::backend::BackendCell;
use crate::failure::Failure;
use crate::keys::TimeKey;
use crate::session::{self, Extension, Stamped, fresh, remember};
use crate::shm::{self, Full, TimeSlot};
use crate::{catalog, sys};

/// A snowflake or readable word as this session uses it.
#[derive(Clone, Copy)]
pub struct TimeEntry {
    /// Its place in shared memory.
    pub slot: &'static TimeSlot,
    /// Which of the two kinds it is.
    pub kind: TimeKind,
    /// The extension's owner, as whom the bound is changed.
    pub owner: pg_sys::Oid,
}

impl TimeEntry {
    /// The layout of the word's states.
    #[inline]
    pub fn layout(&self) -> &'static Layout {
        &self.slot.key().layout
    }
}

/// What a time word is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// snowflake_id()
    Snowflake,
    /// readable_id(biz)
    Readable,
}

impl TimeKind {
    /// What to call the bound in messages.
    pub fn bound_name(self) -> &'static str {
        match self {
            Self::Snowflake => "the snowflake bound",
            Self::Readable => "the bound of readable ids",
        }
    }
}

static SNOWFLAKE: BackendCell<Option<Stamped<TimeEntry>>> = BackendCell::new(None);
static READABLE: BackendCell<Option<Stamped<TimeEntry>>> = BackendCell::new(None);

/// The snowflake word of this database if nothing about it changed since it was looked up.
#[inline]
pub fn hot_snowflake() -> Option<TimeEntry> {
    fresh(&SNOWFLAKE)
}

/// The word of one kind.
///
/// # Errors
/// Not preloaded, no room; for snowflake ids also: no worker id, or one of another server or database.
pub fn entry(kind: TimeKind) -> Result<TimeEntry, Failure> {
    session::require_preload()?;
    match kind {
        TimeKind::Snowflake => remember(&SNOWFLAKE, || look_up(kind)),
        TimeKind::Readable => remember(&READABLE, || look_up(kind)),
    }
}

/// Looks the word up again, as somebody about to extend its bound must.
///
/// # Errors
/// As [`entry`].
pub fn look_up(kind: TimeKind) -> Result<TimeEntry, Failure> {
    let slot = shm::time_slot(&key(kind)?)
        .ok_or_else(session::not_preloaded)?
        .map_err(|full| words_full(&full))?;
    Ok(TimeEntry {
        slot,
        kind,
        owner: session::extension()?.owner,
    })
}

/// What the word of one kind belongs to.
///
/// # Errors
/// As [`entry`], but takes no room in shared memory.
pub fn key(kind: TimeKind) -> Result<TimeKey, Failure> {
    let extension = session::extension()?;
    match kind {
        TimeKind::Snowflake => snowflake_key(&extension),
        TimeKind::Readable => Ok(TimeKey::readable(
            readable::LAYOUT,
            sys::database(),
            catalog::sequence("readable_bound")?,
        )),
    }
}

/// The word with this key, if it was used since the server started. For looking at it: that must not take room from those
/// who issue.
pub fn find(key: &TimeKey) -> Option<&'static TimeSlot> {
    shm::time_slots().iter().find(|slot| slot.key() == key)
}

fn snowflake_key(extension: &Extension) -> Result<TimeKey, Failure> {
    let layout = catalog::layout(extension)?;
    let worker = catalog::worker(&layout)?;
    let bound = catalog::sequence("snowflake_bound")?;
    Ok(TimeKey::snowflake(worker, layout, sys::database(), bound))
}

fn words_full(full: &Full) -> Failure {
    Failure::new(
        Cause::WorkersFull,
        "no room in shared memory for another worker id",
    )
    .detail(format!(
        "All {} places are taken by worker ids used since the server started.",
        full.room
    ))
    .hint("Raise keywright.workers_max in postgresql.conf and restart the server.")
}

/// Forgets what was looked up.
pub fn forget() {
    SNOWFLAKE.set(None);
    READABLE.set(None);
}
