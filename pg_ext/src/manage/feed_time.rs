//! Feeding the time of snowflake ids: which databases have it fed, what they want, and the hand-over. Who may call what programs call is decided by
//! GRANT EXECUTE; whoever may, is believed that what he hands over is nobody else's.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::key_space::key_space_mark;
use keywright_core::layout::{Layout, WorkerId};
use pgrx::iter::TableIterator;
use pgrx::{name, pg_extern, pg_sys};

use crate::cache;
use crate::catalog::{cached, node, sequences, tables};
use crate::durable::turn::{self, Urgency};
use crate::failure::{Failure, OrRaise};
use crate::identity::register;
use crate::manage::hand_over::{TOLD_MS_MAX, hex, known_key_space};
use crate::refill::{fed, fed_mark};
use crate::server::role::AsOwner;
use crate::server::{changes, clock, cluster, sequence, text};
use crate::shmem::area::Feeding;
use crate::shmem::directory;
use crate::shmem::fed_time::HandedTime;
use crate::shmem::key::{Source, TimeKey};
use crate::shmem::reuse;
use crate::shmem::slot::Attached;
use crate::shmem::time_slot::TimeSlot;
use crate::{arguments, guard, settings};

const WHAT: &str = "snowflake ids";
/// The first moment that no tick of ours can reach, unix milliseconds: a mistake, and no time.
const MS_MAX: i64 = 1 << 43;

#[pg_extern(sql = false)]
fn keywright_set_snowflake_source(source: Option<&[u8]>) {
    let set = || {
        guard::may_manage("set_snowflake_source")?;
        let source = arguments::required(source, "the source")?;
        let source = text::read(source).ok().and_then(Source::parse);
        let source = source.ok_or_else(|| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                "the source of snowflake ids is native or fed",
            )
            .hint("For instance SELECT keywright.set_snowflake_source('fed').")
        })?;
        let extension = cached::extension()?;
        // The table comes before the register. Who has that changes the row, and waits for nobody else who does: all databases would wait with it.
        tables::lock(extension.node_table)?;
        register::lock()?;
        node::set("snowflake_source", source.name())?;
        changes::announce(extension.node_table);
        cache::forget();
        Ok(())
    };
    set().or_raise();
}

/// Whether this database was ever handed time, so that its layout must stay.
///
/// # Errors
/// The extension's sequences are not there.
pub fn was_fed() -> Result<bool, Failure> {
    let key_space = sequences::named(fed_mark::KEY_SPACE)?;
    // Whoever may change the layout need not be allowed to read it.
    let _owner = AsOwner::new(cached::extension()?.owner);
    Ok(sequence::last(key_space).is_some())
}

/// Whether a database of this server has this worker id by a hand-over.
pub fn is_handed(worker: u32) -> bool {
    let with_it = directory::slots::<TimeSlot>(|_, key| key.fed_worker() == Some(worker));
    with_it.iter().any(|(word, _)| !reuse::is_closed(word.slot))
}

fn all_untold(boot_ms: u64) -> impl Iterator<Item = (Attached<TimeSlot>, TimeKey, u64)> {
    let wanting = directory::slots::<TimeSlot>(|slot, key| {
        key.is_fed() && slot.fed.wanted.load(Ordering::Acquire) > 0
    });
    wanting.into_iter().filter_map(move |(word, key)| {
        let told_ms = word.slot.fed.told_boot_ms.load(Ordering::Acquire);
        // Once more: whoever has handed time over has cleared both.
        let is_wanted = word.slot.fed.wanted.load(Ordering::Acquire) > 0
            && boot_ms.saturating_sub(told_ms) > TOLD_MS_MAX
            && !reuse::is_closed(word.slot);
        is_wanted.then_some((word, key, told_ms))
    })
}

/// Whether a database wants time of which no program was told of late.
pub fn is_anything_untold() -> bool {
    let mut all = all_untold(clock::readings().boot_ms);
    all.next().is_some()
}

type Demands = TableIterator<
    'static,
    (
        name!(incarnation, String),
        name!(system, String),
        name!(database, pg_sys::Oid),
        name!(sequence, pg_sys::Oid),
        name!(layout, String),
        name!(ask, i64),
        name!(worker_id, Option<i32>),
        name!(until_ms, Option<i64>),
        name!(handed, bool),
        name!(key_space, Option<i64>),
        name!(now_ms, i64),
    ),
>;

/// Databases that want time, each told to this caller alone.
#[pg_extern(sql = false)]
fn keywright_time_demand() -> Demands {
    let found = || {
        guard::require_preload()?;
        guard::require_writable("time_demand")?;
        let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
        let readings = clock::readings();
        let mut rows = Vec::new();
        for (word, key, told_ms) in all_untold(readings.boot_ms) {
            let fed = &word.slot.fed;
            let told = fed.told_boot_ms.compare_exchange(
                told_ms,
                readings.boot_ms,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if told.is_err() {
                continue;
            }
            let taken = fed.taken.load(Ordering::Relaxed);
            let floor = fed.floor();
            rows.push((
                format!("{:032x}", feeding.incarnation()),
                cluster::system_identifier().to_string(),
                key.database(),
                pg_sys::Oid::from(key.sequence()),
                key.layout.to_string(),
                taken.cast_signed(),
                floor.map(|(worker, _)| worker.cast_signed()),
                floor.map(|(_, until_ms)| until_ms),
                taken > 0,
                known_key_space(fed.key_space.load(Ordering::Relaxed)),
                readings.wall_ms,
            ));
        }
        Ok::<_, Failure>(rows)
    };
    TableIterator::new(found().or_raise())
}

type Untils = TableIterator<
    'static,
    (
        name!(worker_id, i32),
        name!(until_ms, i64),
        name!(key_space, Option<i64>),
    ),
>;

/// Until when each worker id was handed over, over all databases of the server, needed or not: in this life of its memory, or before it as far as
/// a database that has asked knows.
#[pg_extern(sql = false)]
fn keywright_handed_time() -> Untils {
    let found = || {
        guard::require_preload()?;
        let mut words = directory::slots::<TimeSlot>(|_, key| key.is_fed());
        words.retain(|(word, _)| !reuse::is_closed(word.slot));
        let floors = words.into_iter().filter_map(|(word, _)| {
            let fed = &word.slot.fed;
            let (worker, until_ms) = fed.floor()?;
            Some((
                worker.cast_signed(),
                until_ms,
                known_key_space(fed.handed_key_space()),
            ))
        });
        Ok::<Vec<_>, Failure>(floors.collect())
    };
    TableIterator::new(found().or_raise())
}

/// Time that a store reserved for good, and for which database of which incarnation.
struct HandOver {
    incarnation: u128,
    key: TimeKey,
    ask: u64,
    time: HandedTime,
}

#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn keywright_feed_time(
    incarnation: Option<&[u8]>,
    database: Option<pg_sys::Oid>,
    sequence: Option<pg_sys::Oid>,
    layout: Option<&[u8]>,
    ask: Option<i64>,
    key_space: Option<&[u8]>,
    worker_id: Option<i32>,
    from_ms: Option<i64>,
    until_ms: Option<i64>,
) {
    let feed = || {
        guard::require_preload()?;
        guard::require_writable("feed_time")?;
        let layout = arguments::layout(arguments::required(layout, "the layout")?)?;
        let database = arguments::required(database, "the database")?;
        let sequence = arguments::required(sequence, "the sequence")?;
        let key_space = hex(key_space, "the key space")?;
        take(&HandOver {
            incarnation: hex(incarnation, "the incarnation")?,
            key: TimeKey::fed(None, layout, database, sequence),
            ask: arguments::required(ask, "the number of the ask")?.cast_unsigned(),
            time: HandedTime {
                key_space: key_space_mark(key_space),
                ..time(&layout, worker_id, from_ms, until_ms)?
            },
        })
    };
    feed().or_raise();
}

fn time(
    layout: &Layout,
    worker_id: Option<i32>,
    from_ms: Option<i64>,
    until_ms: Option<i64>,
) -> Result<HandedTime, Failure> {
    let worker_id = arguments::required(worker_id, "the worker id")?;
    let from_ms = arguments::required(from_ms, "the first moment")?;
    let until_ms = arguments::required(until_ms, "the moment after the last")?;
    let worker = WorkerId::new(i64::from(worker_id), layout).map_err(|error| {
        Failure::new(Cause::ArgumentOutOfRange, error.to_string())
            .hint("Hand over one that fits the layout of the database.")
    })?;
    if from_ms < 0 || until_ms <= from_ms || until_ms >= MS_MAX {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("from {from_ms} until {until_ms} is no time"),
        )
        .hint("Both are unix milliseconds, and the second is later."));
    }
    Ok(HandedTime {
        worker: worker.get(),
        from_ms,
        until_ms,
        key_space: 0,
    })
}

/// Keeps the time until somebody needs it.
///
/// # Errors
/// It is not for here, or not to be used: nobody will get it.
fn take(hand_over: &HandOver) -> Result<(), Failure> {
    let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
    let time = hand_over.time;
    let refused = |why: &str| Err(fed::refused(WHAT, why));
    if hand_over.incarnation != feeding.incarnation() {
        return refused("the server has started anew since it was asked for");
    }
    let is_meant = |its: &TimeKey| its.is_fed_like(&hand_over.key);
    let found =
        directory::find_as::<TimeSlot>(is_meant).filter(|(word, _)| !reuse::is_closed(word.slot));
    let Some((word, _)) = found else {
        return refused("nobody asked for it here");
    };
    let slot = word.slot;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let urgency = Urgency::Needed { deadline };
    let figures = (&slot.waits, &slot.wait_us);
    let held = turn::enter(&slot.gate, urgency, figures, || false)?
        .ok_or_else(|| turn::held_up(&slot.gate))?;
    if !word.is_current() {
        return refused("its place went to another database, or another worker id");
    }
    let fed = &slot.fed;
    if fed.next().is_some() {
        return refused("other time was handed over that nobody needed yet");
    }
    if hand_over.ask != fed.taken.load(Ordering::Relaxed) {
        return refused("what was asked for was handed over before");
    }
    if let Some((worker, until_ms)) = fed.floor()
        && worker == time.worker
        && time.from_ms < until_ms
    {
        return Err(fed_mark::gone_back(worker, until_ms));
    }
    let its = fed.key_space.load(Ordering::Relaxed);
    if its != 0 && its != time.key_space {
        return Err(fed_mark::another_key_space());
    }
    fed.keep(time, &held);
    drop(held);
    feeding.hand_overs().tell();
    Ok(())
}
