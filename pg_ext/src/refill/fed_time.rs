//! Refilling the snowflake word of a database that is fed: whoever needs room publishes more of the time that was handed over, or takes over the
//! next, or asks for some and waits.
//!
//! As with fed tags nothing is made durable: what was handed over lives in shared memory, for this life of it. The word is published in windows
//! all the same, so that ids run no further ahead of the clock than others do. The database keeps the store's key space, flushed before the
//! first id, and, without a flush, which worker id it was handed until when: that tells a store that has gone back.

use std::sync::atomic::Ordering;
use std::time::Instant;

use keywright_core::bound::{BoundRequest, plan_bound};
use keywright_core::layout::{Layout, WorkerId};

use crate::cache;
use crate::cache::time_entry::{self, TimeEntry};
use crate::catalog::sequences;
use crate::durable::locks::Wanted;
use crate::durable::turn::{self, Urgency};
use crate::failure::Failure;
use crate::identity::register;
use crate::refill::fed;
use crate::refill::fed_mark::{self, KEY_SPACE, MARK, mark_of, read_mark};
use crate::refill::room::{self, Extended};
use crate::server::role::AsOwner;
use crate::server::{clock, sequence};
use crate::shmem::area::Feeding;
use crate::shmem::directory;
use crate::shmem::fed_time::HandedTime;
use crate::shmem::gate::Held;
use crate::{guard, settings};

/// What fed snowflake ids are called.
const NAME: &str = "the time of snowflake ids";

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
    let enough = || room::is_enough(entry, spare, n, urgency) || !entry.at.is_current();
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
    refuse_to_begin_early(entry)?;
    let now_ms = room::observe(entry, clock::readings(), &held);
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
            Taken::HeldUp(by) => {
                drop(held);
                return wait_outside(entry, &by, urgency, spare);
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

/// Before the first time is taken over, the word's own clock has not begun, and it would begin by the wall clock.
fn refuse_to_begin_early(entry: &TimeEntry) -> Result<(), Failure> {
    match entry.slot().taken_over.load(Ordering::Relaxed) {
        true => Ok(()),
        false => room::refuse_before_epoch(entry, clock::wall_ms()),
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
        Err(refusal) => return room::refused(entry, track, refusal, urgency),
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
    HeldUp(HeldBy),
}

/// What others hold.
enum HeldBy {
    Locks(Wanted),
    /// Somebody may be giving the worker id to a database.
    Register,
}

/// Waits for it outside the gate: who holds it may be waiting for that.
fn wait_outside(
    entry: &TimeEntry,
    by: &HeldBy,
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
            turn::counted(figures, || match by {
                HeldBy::Locks(wanted) => wanted.lock(deadline, &|| NAME.to_owned()),
                HeldBy::Register => register::wait_until_free(deadline),
            })?;
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
        return Ok(Taken::HeldUp(HeldBy::Locks(wanted)));
    }
    // Behind the lock: this session may not have heard yet that the database is fed no more.
    if !time_entry::key(entry.kind)?.is_fed_like(entry.key) {
        cache::forget();
        return Ok(Taken::LookAgain);
    }
    let is_same = entry.key.fed_worker() == Some(time.worker);
    // Whoever sets a worker id looks here while he holds the register, which others see changed once he has committed: so one after the other.
    let _register = if is_same {
        None
    } else {
        let Some(register) = register::try_lock() else {
            return Ok(Taken::HeldUp(HeldBy::Register));
        };
        Some(register)
    };
    let (noted, known) = {
        let _owner = AsOwner::new(entry.owner);
        (sequence::last(key_space), sequence::last(mark))
    };
    let noted = noted.and_then(|noted| u64::try_from(noted).ok());
    if let Some(failure) = fed_mark::refusal(&time, noted, known.and_then(read_mark))? {
        slot.fed.clear(held);
        return Err(failure);
    }
    let is_kept = slot.fed.kept_key_space.load(Ordering::Relaxed) == time.key_space;
    if noted != Some(time.key_space) || !is_kept {
        fed_mark::keep_key_space(entry, key_space, &time, urgency)?;
    }
    {
        let _owner = AsOwner::new(entry.owner);
        sequence::set(mark, mark_of(time.worker, time.until_ms));
    }
    slot.fed.clear(held);
    let layout = *entry.layout();
    // A later worker id goes on above the earlier one: so one that comes back does not repeat what it issued in this life, whatever its store says.
    let mut above_state = 0;
    if !is_same {
        // Whoever took a state from the word before finds that it is another's, and throws it away.
        let worker = WorkerId::new(i64::from(time.worker), &layout)
            .map_err(|error| fed::refused("snowflake ids", &error.to_string()))?;
        let kept = slot.kept();
        above_state = slot.main.word.drain().max(slot.spare.word.drain());
        directory::renew(slot, &entry.key.fed_with(worker), held);
        slot.keep(&kept, held);
        cache::forget();
    }
    begin(entry, &layout, &time, above_state);
    Ok(match is_same {
        true => Taken::Yes,
        false => Taken::LookAgain,
    })
}

/// The word begins at the first moment, at a state, or where it was, whichever is last. Nothing is published yet.
fn begin(entry: &TimeEntry, layout: &Layout, time: &HandedTime, above_state: u64) {
    let slot = entry.slot();
    let readings = clock::readings();
    let start_state = layout.ticks_from(time.from_ms) << layout.sequence_bits();
    let limit_state = whole_ticks(layout, time.until_ms);
    // What is left of the time before is issued first, if this follows it.
    let follows = slot.fed.limit_state.load(Ordering::Relaxed) == start_state;
    for track in [&slot.main, &slot.spare] {
        if !follows {
            let first_state = start_state.max(above_state);
            track.word.publish(first_state, first_state);
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
