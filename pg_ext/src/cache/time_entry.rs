//! The snowflake and the readable word that this session uses: looked up once, and trusted until something changes.

use std::cell::RefCell;

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use pgrx::pg_sys;

use crate::catalog::extension::Extension;
use crate::catalog::stamped::{Stamped, fresh, remember};
use crate::catalog::{cached, node, sequences};
use crate::failure::Failure;
use crate::guard;
use crate::identity::{numbers, uncommitted};
use crate::server::backend::BackendCell;
use crate::server::{process, relation};
use crate::shmem::key::{Source, TimeKey, TimeKind};
use crate::shmem::slot::Attached;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::{area, directory, reuse};

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
pub fn of(kind: TimeKind) -> Result<TimeEntry, Failure> {
    guard::require_preload()?;
    match kind {
        TimeKind::Snowflake => remember(&SNOWFLAKE, || look_up(kind)),
        TimeKind::Readable => remember(&READABLE, || look_up(kind)),
    }
}

fn look_up(kind: TimeKind) -> Result<TimeEntry, Failure> {
    let key = key(kind)?;
    let found = match key.is_fed() {
        true => reuse::fed_slot(&key),
        false => reuse::time_slot(&key).map(|found| found.map(|at| (at, key))),
    };
    let (at, key) = found
        .ok_or_else(guard::not_preloaded)?
        .map_err(|full| words_full(full.room))?;
    Ok(TimeEntry {
        at,
        key: interned(key),
        kind,
        owner: cached::extension()?.owner,
    })
}

/// Gives the words of this database's own numbers their places in shared memory before the numbers are taken from it, so that whoever takes the first id
/// meanwhile finds that noted, too. Where a word cannot have a place, nobody begins with it.
pub fn attach_own() {
    if !area::is_there() {
        return;
    }
    for kind in [TimeKind::Snowflake, TimeKind::Readable] {
        if let Ok(key) = key(kind)
            && !key.is_fed()
        {
            let _ = reuse::time_slot(&key);
        }
    }
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
/// As [`of`], but takes no room in shared memory.
pub fn key(kind: TimeKind) -> Result<TimeKey, Failure> {
    let extension = cached::extension()?;
    match kind {
        TimeKind::Snowflake => snowflake_key(&extension),
        TimeKind::Readable => readable_key(&extension),
    }
}

/// The same with the worker id that was handed over, where it is fed and there is one.
pub fn in_memory(key: &TimeKey) -> Option<TimeKey> {
    let found = directory::find_as::<TimeSlot>(|its| its.is_fed_like(key));
    found.map(|(_, key)| key)
}

/// What the label of the database tells, in messages.
const LABEL: &str = "the worker id or readable bucket";

/// And what the row of keywright.node does.
const NODE: &str = "the layout, the time zone, the readable bucket or the source of snowflake ids";

fn readable_key(extension: &Extension) -> Result<TimeKey, Failure> {
    let node = node::read(extension)?;
    // The label may be newer than the row, where a change of both committed in between: looked at once more.
    let bucket =
        numbers::bucket(node.bucket).or_else(|_| numbers::bucket(node::read(extension)?.bucket))?;
    let bound = sequences::named("readable_bound")?;
    require_committed(bound, &node)?;
    Ok(TimeKey::readable(
        bucket,
        node.zone,
        process::database(),
        bound,
    ))
}

fn snowflake_key(extension: &Extension) -> Result<TimeKey, Failure> {
    let node = node::read(extension)?;
    let bound = sequences::named("snowflake_bound")?;
    let worker = match node.source {
        Source::Native => numbers::worker(&node.layout)?,
        Source::Fed => {
            uncommitted::require_committed(&[
                (relation::is_created_here(bound), "the extension"),
                (node.is_uncommitted, NODE),
            ])?;
            let database = process::database();
            return Ok(TimeKey::fed(None, node.layout, database, bound));
        }
    };
    require_committed(bound, &node)?;
    Ok(TimeKey::snowflake(
        worker,
        node.layout,
        process::database(),
        bound,
    ))
}

/// Of a word of the database's own.
fn require_committed(bound: pg_sys::Oid, node: &node::NodeRow) -> Result<(), Failure> {
    uncommitted::require_committed(&[
        (relation::is_created_here(bound), "the extension"),
        (relation::is_rewritten_here(bound), "the bound"),
        (numbers::is_uncommitted(), LABEL),
        (node.is_uncommitted, NODE),
    ])
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
