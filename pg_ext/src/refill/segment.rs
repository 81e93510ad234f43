//! Refilling a tag: its next segment is made durable and published by the backend that needs it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::clock::Readings;
use keywright_core::segment::{RefillPlan, refill_at};
use keywright_core::step::{RateWindow, Step, StepPolicy};
use keywright_core::tag::Tag;
use keywright_core::unused::{Now, may_be_issued};
use keywright_core::writer::{Note, Writer};

use crate::cache;
use crate::cache::tag_entry::{self, TagEntry};
use crate::catalog::damage;
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::durable::turn::{self, Urgency};
use crate::failure::Failure;
use crate::identity::{promotion, writer};
use crate::refill::segment_plan::{self, end_of};
use crate::refill::tag_siblings;
use crate::server::role::AsOwner;
use crate::server::{clock, log, sequence, wal};
use crate::shmem::gate::Held;
use crate::shmem::reuse;
use crate::{arguments, guard, settings};

/// Reserves the next segment unless somebody else just did, or is doing so and it is early.
pub fn refill(entry: &TagEntry, need: u64, urgency: Urgency) -> Result<(), Failure> {
    let slot = entry.slot();
    let enough = || match urgency {
        Urgency::Early => slot.word.cursor() <= slot.refill_at.load(Ordering::Relaxed),
        Urgency::Needed { .. } => slot.word.remaining() >= entry.class.width_of(need),
    };
    let Some(held) = turn::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), enough)? else {
        return Ok(());
    };
    if enough() {
        return Ok(());
    }
    if !entry.at.is_current() {
        return Ok(());
    }
    let wanted = wanted(entry);
    if wanted.try_lock().is_none() {
        drop(held);
        return wait_for_locks(entry, &wanted, urgency);
    }
    if !tag_entry::is_known(&arguments::parse_tag(entry.key.tag_bytes())?, entry) {
        // The tag may have become another; the caller looks it up again, outside the gate.
        return Ok(());
    }
    match (reserve(entry, need, urgency, &held), urgency) {
        (Err(failure), Urgency::Early) if failure.cause() == Cause::TagExhausted => {
            // The rest of the range is reserved already; whoever finds it empty is told.
            slot.refill_at.store(u64::MAX, Ordering::Relaxed);
            Ok(())
        }
        (Err(failure), Urgency::Early) if failure.cause() == Cause::RefillTimeout => {
            postpone(entry);
            Ok(())
        }
        (outcome, Urgency::Early | Urgency::Needed { .. }) => outcome,
    }
}

/// Waits for the locks that a refill needs, outside the gate: who has them may be waiting for it. They are kept until the
/// transaction ends, so that the next attempt finds them free.
fn wait_for_locks(entry: &TagEntry, wanted: &Wanted, urgency: Urgency) -> Result<(), Failure> {
    match urgency {
        Urgency::Early => {
            postpone(entry);
            Ok(())
        }
        Urgency::Needed { deadline } => {
            let figures = (&entry.slot().waits, &entry.slot().wait_us);
            turn::counted(figures, || wanted.lock(deadline, &|| name(entry)))
        }
    }
}

fn wanted(entry: &TagEntry) -> Wanted {
    Wanted::to_change(&[entry.sequence, entry.note])
}

/// What to call the tag in messages.
fn name(entry: &TagEntry) -> String {
    format!("tag \"{}\"", entry.key.tag())
}

/// Makes the next early attempt come when half of what is left now is gone.
fn postpone(entry: &TagEntry) {
    let word = &entry.slot().word;
    let at = word.cursor().saturating_add(word.remaining() / 2 + 1);
    entry.slot().refill_at.store(at, Ordering::Relaxed);
}

fn reserve(entry: &TagEntry, need: u64, urgency: Urgency, held: &Held<'_>) -> Result<(), Failure> {
    let slot = entry.slot();
    let readings = clock::readings();
    let first = !slot.taken_over.load(Ordering::Relaxed);
    let before = wal::last_record();
    let (step, want) = next_size(entry, first, readings.boot_ms);
    let plan = {
        let _owner = AsOwner::new(entry.owner);
        let bound = sequence::last(entry.sequence);
        let note = sequence::last(entry.note).and_then(Note::unpack);
        refuse_if_lower(entry, bound, slot.word.hi())?;
        let writer = writer::current();
        let gap = if first {
            tag_siblings::refuse_if_hidden_otherwise(entry.key)?;
            let is_own_bound = note.is_some_and(|note| note.is_of(&writer));
            // First, for what was left puts back a bound that is gone; whoever's the note is, which came with a dump perhaps.
            if let Some((_, end, _)) = slot.left.get() {
                refuse_if_lower(entry, bound, end)?;
            }
            let step = entry.class.width_of(entry.step.get());
            let tag = (entry.key.tag(), step, entry.hiding.is_some());
            let gap = gap_of(&tag, (bound, note), &writer)?;
            if go_on_with_left(entry, (bound, is_own_bound), &readings, held) {
                return Ok(());
            }
            gap
        } else {
            0
        };
        let want = entry.class.width_of(want);
        let plan = segment_plan::plan(entry, bound, (need, want), gap)?;
        promotion::count_left_out(gap)?;
        slot.attempted_start.store(plan.start, Ordering::Relaxed);
        slot.attempted_end.store(plan.end, Ordering::Relaxed);
        let rate = rate(entry, readings.boot_ms);
        sequence::set(entry.sequence, flush::last_of(plan.end)?);
        sequence::set(
            entry.note,
            Note::new(
                writer,
                readings.wall_ms,
                entry.class.width_of(step).max(want),
                rate,
            )
            .at_peak_since(note.as_ref())
            .pack(),
        );
        plan
    };
    flush::make_refill_durable(before, urgency, &|| name(entry))?;
    publish(entry, &plan, (step, &readings), held);
    slot.refills.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Goes on with what was left when the server was stopped, if nobody has reserved since: it is durable already. Whoever needs more than
/// that comes again.
fn go_on_with_left(
    entry: &TagEntry,
    (bound, is_own_bound): (Option<i64>, bool),
    readings: &Readings,
    held: &Held<'_>,
) -> bool {
    let slot = entry.slot();
    let Some((start, end, step)) = slot.left.get() else {
        return false;
    };
    slot.left.clear();
    let now = Now {
        bound_end: end_of(bound),
        is_own_bound,
        start_min: entry.start.max(tag_siblings::highest(entry.key)),
        end_max: entry.end_max,
    };
    if !may_be_issued(start, end, &now) {
        return false;
    }
    publish(entry, &RefillPlan { start, end }, (step, readings), held);
    true
}

/// A sequence of ours only grows. One that reads lower than what was published, now or before a clean stop, was set by somebody else. What is
/// known is written back, or it would be forgotten when the server stops.
fn refuse_if_lower(entry: &TagEntry, bound: Option<i64>, published: u64) -> Result<(), Failure> {
    let found = end_of(bound);
    if found >= published {
        return Ok(());
    }
    sequence::set(entry.sequence, flush::last_of(published)?);
    wal::flush();
    Err(Failure::new(
        Cause::BoundDamaged,
        format!(
            "the bound of tag \"{}\" is at {found}, lower than the {published} that was written last",
            entry.key.tag()
        ),
    )
    .detail("Something other than keywright changed its sequence, for instance setval or ALTER SUBSCRIPTION ... REFRESH SEQUENCES.")
    .hint("It is put back: run the statement again. Find what set it, and keep it from doing so."))
}

/// The step in force and what to reserve now: a tenth of the step first, because many tags are used little.
fn next_size(entry: &TagEntry, first: bool, boot_ms: u64) -> (u64, u64) {
    let slot = entry.slot();
    // Whoever was to drop the tag, and failed, emptied its word: how long the last reservation lasted says nothing of the load then.
    let is_emptied = reuse::reopen_tag(slot);
    if first {
        return (entry.step.get(), StepPolicy::first_load(entry.step));
    }
    let previous = Step::new(slot.step.load(Ordering::Relaxed).cast_signed()).unwrap_or(entry.step);
    // The first, short reservation says nothing about how long a full one lasts.
    let full = entry.class.width_of(previous.get());
    let is_measured = !is_emptied && slot.last_size.load(Ordering::Relaxed) >= full;
    let lasted_ms = is_measured
        .then(|| boot_ms.saturating_sub(slot.last_refill_boot_ms.load(Ordering::Relaxed)));
    let step = entry.policy.next(previous, lasted_ms).get();
    (step, step)
}

/// Ids to leave out because another writer wrote the bound and may have issued beyond what reached us. A note is written
/// when the tag is created, so also a first bound that never reached us is told from a tag that was never used. Later notes are written
/// behind a bound: if that is not there, it was left out by a dump, or reset.
///
/// # Errors
/// Nothing says how far the tag was used.
pub fn gap_of(
    (tag, step, is_hidden): &(String, u64, bool),
    (bound, note): (Option<i64>, Option<Note>),
    writer: &Writer,
) -> Result<u64, Failure> {
    if bound.is_none() && note.is_none_or(|note| !note.is_first) {
        return Err(damage::bound_unknown(tag, *is_hidden));
    }
    if writer.may_have_lost(note.as_ref()) {
        return Err(damage::bound_before_reset(tag, *is_hidden));
    }
    let gap = match note {
        Some(note) if note.is_of(writer) => return Ok(0),
        Some(note) => promotion::tag_gap(&note, writer)?,
        // The bound came back from a dump without it.
        None => *step,
    };
    log::tell(&format!(
        "tag \"{tag}\" was last reserved by another server or timeline; leaving out {gap} ids"
    ));
    Ok(gap)
}

/// Ids per second of late, rounded up; the last reservation counts as used.
fn rate(entry: &TagEntry, boot_ms: u64) -> u64 {
    let slot = entry.slot();
    let window = RateWindow {
        since_boot_ms: slot.rate_since_boot_ms.load(Ordering::Relaxed),
        ids: slot.rate_ids.load(Ordering::Relaxed),
    };
    let (next, rate_per_s) = window.add(slot.last_size.load(Ordering::Relaxed), boot_ms);
    slot.rate_since_boot_ms
        .store(next.since_boot_ms, Ordering::Relaxed);
    slot.rate_ids.store(next.ids, Ordering::Relaxed);
    rate_per_s
}

fn publish(
    entry: &TagEntry,
    plan: &RefillPlan,
    (step, readings): (u64, &Readings),
    held: &Held<'_>,
) {
    let slot = entry.slot();
    let percent = entry.refill_threshold_percent;
    let percent = percent.unwrap_or_else(settings::refill_threshold_percent);
    let early = refill_at(plan.start, plan.end, percent);
    slot.publish((plan.start, plan.end), (early, step), readings, held);
    slot.taken_over.store(true, Ordering::Release);
}

/// Makes every later id of the tag greater than `above`; returns the first id not reserved then.
///
/// # Errors
/// As for taking an id; also when `above` is not below the end of the range.
pub fn advance(tag: &Tag, above: u64) -> Result<u64, Failure> {
    guard::require_preload()?;
    guard::require_writable("advance_tag")?;
    let (entry, _) = tag_entry::find(tag)?;
    let slot = entry.slot();
    if above >= entry.end_max {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("{above} is beyond the end of tag \"{}\"", entry.key.tag()),
        )
        .detail(format!("The tag ends at {}.", entry.end_max - 1))
        .hint(match segment_plan::furthest_end(&entry) {
            Some(end) => format!("Name the largest id in use: this tag {end}."),
            None => {
                format!("Raise its end first with SELECT keywright.alter_tag('{tag}', max => n).")
            }
        }));
    }
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let urgency = Urgency::Needed { deadline };
    wanted(&entry).lock(deadline, &|| name(&entry))?;
    if !tag_entry::is_known(tag, &entry) {
        return advance(tag, above);
    }
    let Some(held) = turn::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), || false)?
    else {
        return Err(turn::held_up(&slot.gate));
    };
    if !entry.at.is_current() {
        drop(held);
        cache::forget();
        return advance(tag, above);
    }
    let target = above + 1;
    if !slot.taken_over.load(Ordering::Relaxed) {
        reserve(&entry, 1, urgency, &held)?;
    }
    let hi = slot.word.hi();
    let needed_end = target.max(hi);
    let bound = {
        let _owner = AsOwner::new(entry.owner);
        sequence::last(entry.sequence)
    };
    // Lower than what was published: damaged, and mended by this.
    if end_of(bound) < needed_end {
        let _owner = AsOwner::new(entry.owner);
        sequence::set(entry.sequence, flush::last_of(needed_end)?);
    }
    // A bound that is high enough may be a refill's that gave up waiting for a standby.
    flush::make_durable(urgency, &|| name(&entry))?;
    if target > hi {
        slot.word.publish(target, target);
        slot.refill_at.store(target, Ordering::Relaxed);
    } else {
        slot.word.advance(target);
    }
    drop(held);
    Ok(slot.word.cursor())
}
