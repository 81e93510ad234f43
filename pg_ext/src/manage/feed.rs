//! Feeding: fed tags (the time of snowflake ids: [`feed_time`]), and what programs that hand ranges over see: what is wanted, and the
//! hand-over. They are connected to one database of the server, and feed the tags of all. Who may call these is decided by GRANT EXECUTE; whoever may, is believed that his ranges are nobody else's.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::key_space::key_space_mark;
use keywright_core::step::Step;
use pgrx::iter::TableIterator;
use pgrx::{Array, name, pg_extern, pg_sys};

use crate::durable::turn::{self, Urgency};
use crate::failure::{Failure, OrRaise};
use crate::manage::definition::{Definition, ID_MAX};
use crate::manage::feed_time;
use crate::manage::hand_over::{TOLD_MS_MAX, hex, known_key_space};
use crate::manage::tags::{self, Kind};
use crate::refill::fed;
use crate::server::clock;
use crate::shmem::area::Feeding;
use crate::shmem::directory;
use crate::shmem::key::{Source, TagKey};
use crate::shmem::reuse;
use crate::shmem::slot::Attached;
use crate::shmem::tag_slot::{HandedOver, TagSlot};
use crate::{arguments, guard, settings};

const TAGS: &str = "the array of tags";
/// How long a call waits for something to be wanted.
const DEMAND_MS_MAX: u64 = 1_000;

#[pg_extern(sql = false)]
fn keywright_create_fed_tag(
    tag: Option<&[u8]>,
    step: Option<i64>,
    step_min: Option<i64>,
    step_max: Option<i64>,
    forget_issued: Option<bool>,
) {
    let make = || {
        guard::may_manage("create_fed_tag")?;
        let tag = arguments::tag_of(tag)?;
        let step = arguments::required(step, "step")?;
        let definition = Definition::new(None, step, (step_min, step_max), None, None)?;
        tags::create(&tag, &definition, Kind::Fed, forget_issued.unwrap_or(false))
    };
    make().or_raise();
}

type Demands = TableIterator<
    'static,
    (
        name!(incarnation, String),
        name!(database, pg_sys::Oid),
        name!(extension, pg_sys::Oid),
        name!(generation, i32),
        name!(sequence, pg_sys::Oid),
        name!(tag, String),
        name!(wanted, i64),
        name!(above, i64),
        name!(key_space, Option<i64>),
    ),
>;

/// Those of the tags named, of whatever database, that want a range: at once if there are any, else after a second at most; also at once where
/// `snowflake` is said and a database wants time. Each is told to one caller.
#[pg_extern(sql = false)]
fn keywright_await_demand(tags: Option<Array<'_, &str>>, snowflake: Option<bool>) -> Demands {
    let found = || {
        guard::require_preload()?;
        guard::require_writable("await_demand")?;
        let named = arguments::required(tags, TAGS)?;
        let tags: HashSet<&str> = named.iter().flatten().collect();
        let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
        let snowflake = arguments::required(snowflake, "whether time is fed")?;
        let is_time_wanted = || snowflake && feed_time::is_anything_untold();
        let deadline = Instant::now() + Duration::from_millis(DEMAND_MS_MAX);
        loop {
            feeding.note_asked(clock::readings().boot_ms);
            let untold = untold(&tags);
            if !untold.is_empty() || is_time_wanted() || Instant::now() >= deadline {
                return Ok((feeding, untold));
            }
            feeding
                .demands()
                .wait(deadline, || !is_anything_untold(&tags) && !is_time_wanted());
        }
    };
    let found: Result<_, Failure> = found();
    let (feeding, demands) = found.or_raise();
    let incarnation = format!("{:032x}", feeding.incarnation());
    TableIterator::new(demands.into_iter().map(move |(tag, key)| {
        let fed = &tag.slot.fed;
        (
            incarnation.clone(),
            key.database(),
            key.extension(),
            key.generation().cast_signed(),
            key.sequence(),
            key.tag(),
            fed.wanted.load(Ordering::Relaxed).cast_signed(),
            fed.floor
                .load(Ordering::Relaxed)
                .saturating_sub(1)
                .cast_signed(),
            known_key_space(fed.key_space.load(Ordering::Relaxed)),
        )
    }))
}

/// Fed tags that want a range of which no program was told of late.
fn all_untold(
    tags: &HashSet<&str>,
    boot_ms: u64,
) -> impl Iterator<Item = (Attached<TagSlot>, TagKey, u64)> {
    let wanting = directory::slots::<TagSlot>(|slot, key| {
        key.source() == Source::Fed && slot.fed.wanted.load(Ordering::Acquire) > 0
    });
    wanting.into_iter().filter_map(move |(tag, key)| {
        let told_ms = tag.slot.fed.told_boot_ms.load(Ordering::Acquire);
        // Once more: whoever has handed a range over has cleared both.
        let is_wanted = tag.slot.fed.wanted.load(Ordering::Acquire) > 0
            && boot_ms.saturating_sub(told_ms) > TOLD_MS_MAX
            && tags.contains(key.tag().as_str())
            && !reuse::is_closed(tag.slot);
        is_wanted.then_some((tag, key, told_ms))
    })
}

fn is_anything_untold(tags: &HashSet<&str>) -> bool {
    let mut all = all_untold(tags, clock::readings().boot_ms);
    all.next().is_some()
}

/// The same, each for this caller alone.
fn untold(tags: &HashSet<&str>) -> Vec<(Attached<TagSlot>, TagKey)> {
    let boot_ms = clock::readings().boot_ms;
    let all = all_untold(tags, boot_ms).filter(|(tag, _, told_ms)| {
        let told = &tag.slot.fed.told_boot_ms;
        told.compare_exchange(*told_ms, boot_ms, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    all.map(|(tag, key, _)| (tag, key)).collect()
}

type LastIds = TableIterator<
    'static,
    (
        name!(tag, String),
        name!(last, i64),
        name!(key_space, Option<i64>),
    ),
>;

/// The largest id that each of the tags named was handed, over all databases of the server, needed or not: in this life of its memory, or
/// before it as far as a database that has asked knows. Of each key space by itself: databases may have had ids of several stores.
#[pg_extern(sql = false)]
fn keywright_handed_over(tags: Option<Array<'_, &str>>) -> LastIds {
    let found = || {
        guard::require_preload()?;
        let named = arguments::required(tags, TAGS)?;
        let tags: HashSet<&str> = named.iter().flatten().collect();
        let mut last_ids = BTreeMap::new();
        for (tag, key) in directory::slots::<TagSlot>(|_, key| key.source() == Source::Fed) {
            let name = key.tag();
            if !tags.contains(name.as_str()) || reuse::is_closed(tag.slot) {
                continue;
            }
            // Else its place went to another tag meanwhile.
            if let Some((handed, key_space)) = tag.slot.fed.handed().filter(|_| tag.is_current()) {
                let last: &mut u64 = last_ids.entry((name, key_space)).or_default();
                *last = handed.max(*last);
            }
        }
        Ok::<_, Failure>(last_ids)
    };
    let last_ids = found().or_raise().into_iter();
    TableIterator::new(
        last_ids
            .map(|((tag, key_space), last)| (tag, last.cast_signed(), known_key_space(key_space))),
    )
}

/// A range that a store reserved for good, and for which tag of which incarnation.
struct HandOver {
    incarnation: u128,
    key: TagKey,
    range: HandedOver,
}

#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn keywright_feed_tag(
    incarnation: Option<&[u8]>,
    database: Option<pg_sys::Oid>,
    extension: Option<pg_sys::Oid>,
    generation: Option<i32>,
    sequence: Option<pg_sys::Oid>,
    tag: Option<&[u8]>,
    key_space: Option<&[u8]>,
    first: Option<i64>,
    last: Option<i64>,
) {
    let feed = || {
        guard::require_preload()?;
        guard::require_writable("feed_tag")?;
        let generation = arguments::required(generation, "the generation")?;
        let key = TagKey::new(
            arguments::required(database, "the database")?,
            arguments::required(extension, "the extension")?,
            (
                generation.cast_unsigned(),
                arguments::required(sequence, "the sequence")?,
            ),
            // Whoever feeds need not know how often it was moved: a range is nobody else's all the same.
            (Source::Fed, 0),
            &arguments::tag_of(tag)?,
            None,
        );
        take(&HandOver {
            incarnation: hex(incarnation, "the incarnation")?,
            key,
            range: range(key_space, first, last)?,
        })
    };
    feed().or_raise();
}

fn range(
    key_space: Option<&[u8]>,
    first: Option<i64>,
    last: Option<i64>,
) -> Result<HandedOver, Failure> {
    let first = arguments::required(first, "the first id")?;
    let last = arguments::required(last, "the last id")?;
    let ids = last.saturating_sub(first).saturating_add(1);
    if first < 1 || last > ID_MAX || !(1..=Step::MAX).contains(&ids) {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("{first} to {last} is no range of ids"),
        )
        .hint(format!(
            "Ids go from 1 to {ID_MAX}, and 1 to {} are handed over at once.",
            Step::MAX
        )));
    }
    Ok(HandedOver {
        start: first.cast_unsigned(),
        end: last.cast_unsigned().saturating_add(1),
        key_space: key_space_mark(hex(key_space, "the key space")?),
    })
}

/// Keeps the range until somebody needs it.
///
/// # Errors
/// It is not for here, or not to be used: nobody will get it.
fn take(hand_over: &HandOver) -> Result<(), Failure> {
    let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
    let HandOver { key, range, .. } = hand_over;
    if hand_over.incarnation != feeding.incarnation() {
        return Err(refused(
            key,
            "the server has started anew since the ids were asked for",
        ));
    }
    let tag = directory::slots::<TagSlot>(|_, its| its.is_fed_like(key))
        .into_iter()
        .find(|(tag, _)| !reuse::is_closed(tag.slot))
        .map(|(tag, _)| tag)
        .ok_or_else(|| refused(key, "nobody asked for them here"))?;
    let slot = tag.slot;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let urgency = Urgency::Needed { deadline };
    let figures = (&slot.waits, &slot.wait_us);
    let held = turn::enter(&slot.gate, urgency, figures, || false)?
        .ok_or_else(|| turn::held_up(&slot.gate))?;
    if !tag.is_current() {
        return Err(refused(key, "its place went to another tag"));
    }
    if slot.fed.next().is_some() {
        return Err(refused(
            key,
            "others were handed over that nobody needed yet",
        ));
    }
    let floor = slot.fed.floor.load(Ordering::Relaxed).max(slot.word.hi());
    if range.start < floor {
        return Err(refused(
            key,
            &format!(
                "ids up to {} were handed over before",
                floor.saturating_sub(1)
            ),
        ));
    }
    let known = slot.fed.key_space.load(Ordering::Relaxed);
    if known != 0 && known != range.key_space {
        return Err(fed::another_key_space(&key.tag()));
    }
    slot.fed.keep(*range, &held);
    drop(held);
    feeding.hand_overs().tell();
    Ok(())
}

fn refused(key: &TagKey, why: &str) -> Failure {
    Failure::new(
        Cause::HandOverRefused,
        format!("these ids of tag \"{}\" are not taken: {why}", key.tag()),
    )
    .hint("Ask keywright.await_demand again, and hand over others.")
}
