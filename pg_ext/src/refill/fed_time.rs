//! Refilling the snowflake word of a database that is fed: whoever needs room publishes more of the time that was handed over, or takes over the
//! next, or asks for some and waits.
//!
//! As with fed tags nothing is made durable: what was handed over lives in shared memory, for this life of it. The word is published in windows
//! all the same, so that ids run no further ahead of the clock than others do. The database keeps the store's key space, flushed before the
//! first id, and, without a flush, which worker id it was handed until when: that tells a store that has gone back.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::bound::{BoundRequest, plan_bound};
use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, WorkerId};
use keywright_core::register::Number;
use pgrx::pg_sys;

use crate::cache;
use crate::cache::time_entry::{self, TimeEntry};
use crate::catalog::sequences;
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::durable::turn::{self, Urgency};
use crate::failure::Failure;
use crate::identity::{numbers, register};
use crate::refill::fed;
use crate::refill::time_bound::{self, Extended};
use crate::server::role::AsOwner;
use crate::server::{clock, sequence};
use crate::shmem::area::Feeding;
use crate::shmem::directory;
use crate::shmem::fed_time::HandedTime;
use crate::shmem::gate::Held;
use crate::shmem::slot::Slot as _;
use crate::{guard, settings};

/// The sequence that holds the key space.
pub const KEY_SPACE: &str = "snowflake_key_space";
/// The one that holds which worker id was handed over last, and until when.
pub const MARK: &str = "snowflake_handed";

/// What fed snowflake ids are called.
const NAME: &str = "the time of snowflake ids";

/// How many bits of the mark are the worker id; the others are the moment, in seconds.
const MARK_WORKER_BITS: u32 = 30;

/// What the database keeps of a hand-over; the moment is the second in which it lies.
pub fn mark_of(worker: u32, until_ms: i64) -> i64 {
    (until_ms.max(0) / 1_000) << MARK_WORKER_BITS | i64::from(worker)
}

/// The worker id of a mark, and the moment, unix milliseconds.
pub fn read_mark(mark: i64) -> Option<(u32, i64)> {
    let worker = u32::try_from(mark & ((1 << MARK_WORKER_BITS) - 1)).ok()?;
    let until_ms = (mark >> MARK_WORKER_BITS).checked_mul(1_000)?;
    (until_ms > 0).then_some((worker, until_ms))
}

/// Makes room for `n` states in the word, unless somebody else just did, or is doing so and it is early.
///
/// # Errors
/// Nothing was handed over in time; what was is of another key space, or not to be used; ids are too far ahead of the clock.
pub fn extend(
    entry: &TimeEntry,
    spare: bool,
    n: u64,
    urgency: Urgency,
) -> Result<Extended, Failure> {
    let slot = entry.slot();
    let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
    let figures = (&slot.waits, &slot.wait_us);
    let enough = || time_bound::is_enough(entry, spare, n, urgency) || !entry.at.is_current();
    let Some(held) = turn::enter(&slot.gate, urgency, figures, enough)? else {
        return Ok(Extended::Yes);
    };
    if !entry.at.is_current() {
        cache::forget();
        return Ok(Extended::Yes);
    }
    if enough() {
        return Ok(Extended::Yes);
    }
    let now_ms = time_bound::observe(entry, clock::readings(), &held);
    let has = wanted_end(entry, spare, n) <= slot.fed.limit_state.load(Ordering::Relaxed);
    let next = slot.fed.next();
    let goes_on = |time: &HandedTime| Some(time.worker) == entry.key.fed_worker();
    if let Some(time) = next.filter(|time| !has || goes_on(time)) {
        let taken = match take_over(entry, time, urgency, &held) {
            Ok(taken) => taken,
            // The caller has its id.
            Err(_) if urgency.is_early() => Taken::LookAgain,
            Err(failure) => return Err(failure),
        };
        match taken {
            Taken::Yes => {}
            // The slot goes on under another key, or the locks are to be waited for first.
            Taken::LookAgain => return Ok(Extended::Yes),
            Taken::Locked(wanted) => {
                drop(held);
                return wait_for_locks(entry, &wanted, urgency, spare);
            }
        }
    }
    if wanted_end(entry, spare, n) <= slot.fed.limit_state.load(Ordering::Relaxed) {
        return publish(entry, (spare, n), now_ms, urgency, feeding, &held);
    }
    ask(entry, feeding, &held)?;
    drop(held);
    let Urgency::Needed { deadline } = urgency else {
        slot.track(spare)
            .extend_at
            .store(u64::MAX, Ordering::Relaxed);
        return Ok(Extended::Yes);
    };
    let is_missing = || slot.fed.next().is_none() && !enough();
    turn::counted(figures, || {
        while is_missing() && Instant::now() < deadline {
            feeding.hand_overs().wait(deadline, is_missing);
        }
    });
    match is_missing() {
        true => Err(fed::not_fed(
            format!(
                "no snowflake ids are left of the time that was handed over, and none was within {} ms",
                settings::refill_wait_ms_max()
            ),
            "snowflake = true not be said in its [[feed]] section",
            feeding,
        )),
        false => Ok(Extended::Yes),
    }
}

/// The first state after those that are needed.
fn wanted_end(entry: &TimeEntry, spare: bool, n: u64) -> u64 {
    let slot = entry.slot();
    let now_ms = clock::wall_ms().saturating_sub(slot.skew_ms.load(Ordering::Relaxed));
    let next = slot.track(spare).word.next();
    next.max(entry.layout().state_at(now_ms)).saturating_add(n)
}

/// Lets more of the time be issued that was handed over; asks for the next when half of it is.
fn publish(
    entry: &TimeEntry,
    (spare, n): (bool, u64),
    now_ms: i64,
    urgency: Urgency,
    feeding: Feeding,
    held: &Held<'_>,
) -> Result<Extended, Failure> {
    let slot = entry.slot();
    let track = slot.track(spare);
    let request = BoundRequest {
        layout: *entry.layout(),
        need_state_end: wanted_end(entry, spare, n),
        now_ms,
        bound_ms: None,
        window_ms: settings::bound_window_ms(),
        lead_ms_max: settings::lead_ms_max(),
    };
    let plan = match plan_bound(&request) {
        Ok(plan) => plan,
        Err(refusal) => return time_bound::refused(entry, track, refusal, urgency),
    };
    let limit_state = slot.fed.limit_state.load(Ordering::Relaxed);
    let hi_state = plan.hi_state.min(limit_state);
    let layout = entry.layout();
    let window_ticks = settings::bound_window_ms() / u64::from(layout.tick_ms().max(1));
    let half = (window_ticks << layout.sequence_bits()) / 2;
    track.word.publish(0, hi_state);
    // At the limit there is nothing to do before somebody needs more.
    let extend_at = match hi_state < limit_state {
        true => hi_state.saturating_sub(half),
        false => u64::MAX,
    };
    track.extend_at.store(extend_at, Ordering::Relaxed);
    track.bound_ms.store(
        layout.unix_ms_of(hi_state >> layout.sequence_bits()),
        Ordering::Relaxed,
    );
    if hi_state >= slot.fed.ask_state.load(Ordering::Relaxed) && slot.fed.next().is_none() {
        ask(entry, feeding, held)?;
    }
    Ok(Extended::Yes)
}

/// Asks for time. What the database knows of it goes with it, so that a store which has gone back, or is another one, is found before it gives
/// any.
fn ask(entry: &TimeEntry, feeding: Feeding, _held: &Held<'_>) -> Result<(), Failure> {
    let fed = &entry.slot().fed;
    if fed.taken.load(Ordering::Relaxed) == 0 {
        let sequences = [KEY_SPACE, MARK].map(sequences::named);
        let [key_space, mark] = sequences;
        let (key_space, mark) = (key_space?, mark?);
        let (key_space, mark) = {
            let _owner = AsOwner::new(entry.owner);
            (sequence::last(key_space), sequence::last(mark))
        };
        let key_space = key_space.and_then(|known| u64::try_from(known).ok());
        fed.key_space
            .store(key_space.unwrap_or(0), Ordering::Relaxed);
        if let Some((worker, until_ms)) = mark.and_then(read_mark) {
            fed.floor_worker.store(worker.into(), Ordering::Relaxed);
            fed.floor_ms.store(until_ms, Ordering::Relaxed);
        }
    }
    if fed.wanted.swap(1, Ordering::Release) == 0 {
        fed.told_boot_ms.store(0, Ordering::Relaxed);
        feeding.demands().tell();
    }
    Ok(())
}

enum Taken {
    Yes,
    LookAgain,
    Locked(Wanted),
}

fn wait_for_locks(
    entry: &TimeEntry,
    wanted: &Wanted,
    urgency: Urgency,
    spare: bool,
) -> Result<Extended, Failure> {
    let slot = entry.slot();
    match urgency {
        Urgency::Early => slot
            .track(spare)
            .extend_at
            .store(u64::MAX, Ordering::Relaxed),
        Urgency::Needed { deadline } => {
            let figures = (&slot.waits, &slot.wait_us);
            turn::counted(figures, || wanted.lock(deadline, &|| NAME.to_owned()))?;
        }
    }
    Ok(Extended::Yes)
}

/// Takes time over that was handed over.
fn take_over(
    entry: &TimeEntry,
    time: HandedTime,
    urgency: Urgency,
    held: &Held<'_>,
) -> Result<Taken, Failure> {
    let slot = entry.slot();
    let (key_space, mark) = (sequences::named(KEY_SPACE)?, sequences::named(MARK)?);
    let wanted = Wanted::to_change(&[key_space, mark]);
    if wanted.try_lock().is_none() {
        return Ok(Taken::Locked(wanted));
    }
    // Behind the lock: this session may not have heard yet that the database is fed no more.
    if !time_entry::key(entry.kind)?.is_fed_like(entry.key) {
        cache::forget();
        return Ok(Taken::LookAgain);
    }
    let (noted, known) = {
        let _owner = AsOwner::new(entry.owner);
        (sequence::last(key_space), sequence::last(mark))
    };
    let noted = noted.and_then(|noted| u64::try_from(noted).ok());
    if let Some(failure) = refusal(&time, noted, known.and_then(read_mark))? {
        slot.fed.clear(held);
        return Err(failure);
    }
    if noted != Some(time.key_space) {
        keep_key_space(entry, key_space, &time, urgency)?;
    }
    {
        let _owner = AsOwner::new(entry.owner);
        sequence::set(mark, mark_of(time.worker, time.until_ms));
    }
    slot.fed.clear(held);
    let layout = *entry.layout();
    let is_same = entry.key.fed_worker() == Some(time.worker);
    if !is_same {
        // Whoever took a state from the word before finds that it is another's, and throws it away.
        let worker = WorkerId::new(i64::from(time.worker), &layout)
            .map_err(|error| fed::refused("snowflake ids", &error.to_string()))?;
        let kept = slot.kept();
        slot.drain();
        directory::renew(slot, &entry.key.fed_with(worker), held);
        slot.keep(&kept, held);
        cache::forget();
    }
    begin(entry, &layout, &time);
    Ok(match is_same {
        true => Taken::Yes,
        false => Taken::LookAgain,
    })
}

/// Why time cannot be used. The database may have learnt of it after it was handed over.
fn refusal(
    time: &HandedTime,
    noted: Option<u64>,
    known: Option<(u32, i64)>,
) -> Result<Option<Failure>, Failure> {
    if noted.is_some_and(|noted| noted != time.key_space) {
        return Ok(Some(another_key_space()));
    }
    if let Some((worker, until_ms)) = known
        && worker == time.worker
        && time.from_ms < until_ms
    {
        return Ok(Some(gone_back(worker, until_ms)));
    }
    let number = Number::Worker(time.worker);
    Ok(register::read()?.find(number).map(|_| {
        Failure::new(
            Cause::WorkerIdInUse,
            format!(
                "{} was handed over, and a database of this server has it, or had it",
                numbers::name_of(number)
            ),
        )
        .hint("Have other numbers in fed_worker_ids than those that are set by hand or assigned.")
    }))
}

/// The failure of a store that hands over what it handed over before.
pub fn gone_back(worker: u32, until_ms: i64) -> Failure {
    Failure::new(
        Cause::BoundDamaged,
        format!(
            "the store has gone back: worker id {worker} was handed over until {until_ms}, unix milliseconds, and now from an earlier moment"
        ),
    )
    .hint("Is it an old backup? Run keywright store restored where the store is.")
}

/// The failure of a database that was fed from one store and is handed time of another.
pub fn another_key_space() -> Failure {
    Failure::new(
        Cause::HandOverRefused,
        "snowflake ids were handed time of another key space than before",
    )
    .detail("The store is another one, or was made anew; its ids may repeat those that were issued here.")
    .hint("Feed this database from the store of before.")
}

/// Before the first id is published the database knows for good of which key space it is.
fn keep_key_space(
    entry: &TimeEntry,
    sequence: pg_sys::Oid,
    time: &HandedTime,
    urgency: Urgency,
) -> Result<(), Failure> {
    {
        let _owner = AsOwner::new(entry.owner);
        sequence::set(sequence, time.key_space.cast_signed());
    }
    let urgency = match urgency {
        Urgency::Early => Urgency::Needed {
            deadline: Instant::now() + Duration::from_millis(settings::refill_wait_ms_max()),
        },
        Urgency::Needed { deadline } => Urgency::Needed { deadline },
    };
    flush::make_durable(urgency, &|| "the key space of snowflake ids".to_owned())?;
    entry
        .slot()
        .fed
        .key_space
        .store(time.key_space, Ordering::Relaxed);
    Ok(())
}

/// The word begins at the first moment, or where it was. Nothing is published yet.
fn begin(entry: &TimeEntry, layout: &Layout, time: &HandedTime) {
    let slot = entry.slot();
    let readings = clock::readings();
    let start_state = layout.ticks_from(time.from_ms) << layout.sequence_bits();
    let limit_state = whole_ticks(layout, time.until_ms);
    // What is left of the time before is issued first, if this follows it.
    let follows = slot.fed.limit_state.load(Ordering::Relaxed) == start_state;
    for track in [&slot.main, &slot.spare] {
        if !follows {
            track.word.publish(start_state, start_state);
        }
        track.extend_at.store(0, Ordering::Relaxed);
    }
    let begin_ms = time.from_ms.max(readings.wall_ms);
    let half_ms = time.until_ms.saturating_sub(begin_ms).max(0) / 2;
    let ask_state = whole_ticks(layout, begin_ms.saturating_add(half_ms));
    slot.fed.ask_state.store(ask_state, Ordering::Relaxed);
    slot.fed.limit_state.store(limit_state, Ordering::Relaxed);
    slot.refills.fetch_add(1, Ordering::Relaxed);
    slot.last_refill_ms
        .store(readings.wall_ms, Ordering::Relaxed);
    slot.taken_over.store(true, Ordering::Release);
}

/// The states of all ticks that end before a moment.
fn whole_ticks(layout: &Layout, unix_ms: i64) -> u64 {
    let bits = layout.sequence_bits();
    (layout.state_at(unix_ms) >> bits) << bits
}
