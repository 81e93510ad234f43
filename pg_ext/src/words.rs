//! Which time word this database's snowflake and readable ids come from.

use std::cell::RefCell;

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::register::Number;
use pgrx::pg_sys;

use crate::backend::BackendCell;
use crate::failure::Failure;
use crate::keys::TimeKey;
use crate::session::{self, Extension, Stamped, fresh, remember};
use crate::shm::{Attached, TimeSlot};
use crate::{catalog, identity, reuse, sys};

/// A snowflake or readable word as this session uses it.
#[derive(Clone, Copy)]
pub struct TimeEntry {
    /// Its place in shared memory, while it is this key's.
    pub at: Attached<TimeSlot>,
    /// What it belongs to.
    pub key: &'static TimeKey,
    /// Which of the two kinds it is.
    pub kind: TimeKind,
    /// The extension's owner, as whom the bound is changed.
    pub owner: pg_sys::Oid,
}

impl TimeEntry {
    /// Its place in shared memory.
    #[inline]
    pub fn slot(&self) -> &'static TimeSlot {
        self.at.slot
    }

    /// The layout of the word's states.
    #[inline]
    pub fn layout(&self) -> &'static Layout {
        &self.key.layout
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
    /// What a number is given for.
    pub fn of(number: Number) -> Self {
        match number {
            Number::Worker(_) => Self::Snowflake,
            Number::Bucket(_) => Self::Readable,
        }
    }

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
/// Not preloaded, no room, an identity that is not committed; no worker id or no bucket, or one of another server or database.
pub fn entry(kind: TimeKind) -> Result<TimeEntry, Failure> {
    session::require_preload()?;
    match kind {
        TimeKind::Snowflake => remember(&SNOWFLAKE, || look_up(kind)),
        TimeKind::Readable => remember(&READABLE, || look_up(kind)),
    }
}

fn look_up(kind: TimeKind) -> Result<TimeEntry, Failure> {
    let key = interned(key(kind)?);
    let at = reuse::time_slot(key)
        .ok_or_else(session::not_preloaded)?
        .map_err(|full| words_full(full.room))?;
    Ok(TimeEntry {
        at,
        key,
        kind,
        owner: session::extension()?.owner,
    })
}

/// A copy of the key that lives as long as this backend: one of each that it ever uses.
fn interned(key: TimeKey) -> &'static TimeKey {
    thread_local! {
        static KEYS: RefCell<Vec<&'static TimeKey>> = const { RefCell::new(Vec::new()) };
    }
    KEYS.with_borrow_mut(|keys| {
        if let Some(known) = keys.iter().find(|known| ***known == key) {
            return *known;
        }
        let kept: &'static TimeKey = Box::leak(Box::new(key));
        keys.push(kept);
        kept
    })
}

/// What the word of one kind belongs to now, as somebody about to extend its bound must ask.
///
/// # Errors
/// As [`entry`], but takes no room in shared memory.
pub fn key(kind: TimeKind) -> Result<TimeKey, Failure> {
    let extension = session::extension()?;
    match kind {
        TimeKind::Snowflake => snowflake_key(&extension),
        TimeKind::Readable => readable_key(&extension),
    }
}

/// What the label of the database tells, in messages.
const LABEL: &str = "the worker id or readable bucket";

/// And what the row of keywright.node does.
const NODE: &str = "the layout or the time zone";

fn readable_key(extension: &Extension) -> Result<TimeKey, Failure> {
    let node = catalog::node(extension)?;
    let bucket = catalog::bucket()?;
    let bound = catalog::sequence("readable_bound")?;
    identity::require_committed(&[
        (sys::is_created_here(bound), "the extension"),
        (sys::is_rewritten_here(bound), "the bound"),
        (node.is_uncommitted, NODE),
        (catalog::label_is_uncommitted(), LABEL),
    ])?;
    Ok(TimeKey::readable(bucket, node.zone, sys::database(), bound))
}

fn snowflake_key(extension: &Extension) -> Result<TimeKey, Failure> {
    let node = catalog::node(extension)?;
    let worker = catalog::worker(&node.layout)?;
    let bound = catalog::sequence("snowflake_bound")?;
    identity::require_committed(&[
        (sys::is_created_here(bound), "the extension"),
        (sys::is_rewritten_here(bound), "the bound"),
        (node.is_uncommitted, NODE),
        (catalog::label_is_uncommitted(), LABEL),
    ])?;
    Ok(TimeKey::snowflake(
        worker,
        node.layout,
        sys::database(),
        bound,
    ))
}

fn words_full(room: usize) -> Failure {
    Failure::new(
        Cause::WorkersFull,
        "no room in shared memory for another worker id",
    )
    .detail(format!(
        "All {room} places are taken by worker ids whose ids are recorded nowhere else."
    ))
    .hint("Raise keywright.workers_max in postgresql.conf and restart the server.")
}

/// Forgets what was looked up.
pub fn forget() {
    SNOWFLAKE.set(None);
    READABLE.set(None);
}
