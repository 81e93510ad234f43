//! Refilling a tag that is fed: whoever needs ids takes the range that a program handed over, or asks for one and waits.
//!
//! Ranges live in shared memory only, each handed over once, for this incarnation of it, after the store's commit. So there is no bound to
//! make durable: what is lost with the memory is a gap. Two things are kept in the database, in the sequences that a native tag has for
//! bound and note: the largest id that was handed over, written without a flush, which tells a store that has gone back; and the key space,
//! flushed before the first of its ids is issued, which tells another store.

use std::sync::atomic::Ordering;
use std::time::Instant;

use keywright_core::cause::Cause;
use keywright_core::step::Step;

use crate::cache::tag_entry::{self, TagEntry};
use crate::catalog::sequences;
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::durable::turn::{self, Urgency};
use crate::failure::Failure;
use crate::refill::tag_siblings;
use crate::server::role::AsOwner;
use crate::server::{clock, process, sequence};
use crate::shmem::area::Feeding;
use crate::shmem::gate::Held;
use crate::shmem::key::Source;
use crate::shmem::tag_slot::{HandedOver, TagSlot};
use crate::shmem::{directory, reuse};
use crate::{arguments, guard, settings};

/// Where it stands what to do when the store of before is lost.
pub const LOST_STORE: &str = "\"Databases that were fed\" in docs/operations/store.md";

/// A program that has not asked what is wanted for so long is probably away, milliseconds.
pub const ASKED_MS_MAX: u64 = 10_000;

/// Takes the range that was handed over into use, unless somebody else just did. Without one, asks for one and waits until there is.
///
/// # Errors
/// None came in time, or what came is not of the tag's key space, or was handed over before.
pub fn refill(entry: &TagEntry, need: u64, deadline: Instant) -> Result<(), Failure> {
    let slot = entry.slot();
    let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
    let urgency = Urgency::Needed { deadline };
    let figures = (&slot.waits, &slot.wait_us);
    let enough = || slot.word.remaining() >= need || !entry.at.is_current();
    let Some(held) = turn::enter(&slot.gate, urgency, figures, enough)? else {
        return Ok(());
    };
    if enough() {
        return Ok(());
    }
    let wanted = Wanted::to_change(&[entry.sequence, entry.note]);
    let name = || format!("tag \"{}\"", entry.key.tag());
    if wanted.try_lock().is_none() {
        drop(held);
        // Outside the gate: who has them may be waiting for it.
        return turn::counted(figures, || wanted.lock(deadline, &name));
    }
    if !tag_entry::is_known(&arguments::parse_tag(entry.key.tag_bytes())?, entry) {
        // The tag may have become another; the caller looks it up again, outside the gate.
        return Ok(());
    }
    refuse_before_it_is_opened(entry)?;
    if let Some(range) = slot.fed.next() {
        return take_over(entry, range, urgency, feeding, &held);
    }
    ask(entry, entry.step.get().max(need), feeding, &held);
    drop(held);
    let is_missing = || slot.fed.next().is_none() && !enough();
    turn::counted(figures, || {
        while is_missing() && Instant::now() < deadline {
            feeding.hand_overs().wait(deadline, is_missing);
        }
    });
    match is_missing() {
        true => {
            let tag = entry.key.tag();
            Err(not_fed(
                format!(
                    "tag \"{tag}\" has no ids left, and was handed none within {} ms",
                    settings::refill_wait_ms_max()
                ),
                &format!(
                    "have closed the tag, or \"{tag}\" not be among the tags of its [[feed]] section"
                ),
                feeding,
            ))
        }
        false => Ok(()),
    }
}

/// A tag that was moved here takes nothing before the store has said that it begins above: its key space is noted then.
fn refuse_before_it_is_opened(entry: &TagEntry) -> Result<(), Failure> {
    if entry.key.moves() == 0 {
        return Ok(());
    }
    let noted = {
        let _owner = AsOwner::new(entry.owner);
        sequence::last(entry.note)
    };
    match noted {
        Some(_) => Ok(()),
        None => {
            let tag = entry.key.tag();
            Err(Failure::new(
                Cause::TagMoved,
                format!("tag \"{tag}\" is on its way to a store, which has not opened it yet"),
            )
            .hint(format!(
                "Run keywright tag move {tag} --to fed once more, where the store is."
            )))
        }
    }
}

/// Asks for so many ids. What the database knows of the tag goes with it, so that a store which has gone back, or is another one, is found
/// before it gives any.
fn ask(entry: &TagEntry, ids: u64, feeding: Feeding, _held: &Held<'_>) {
    let fed = &entry.slot().fed;
    let (last, key_space) = {
        let _owner = AsOwner::new(entry.owner);
        let key_space = sequence::last(entry.note).unwrap_or(0);
        (sequence::last(entry.sequence), key_space)
    };
    fed.key_space
        .store(u64::try_from(key_space).unwrap_or(0), Ordering::Relaxed);
    // What the tag issued before its creation was rolled back and done again counts, too.
    let had = end_of(last).max(tag_siblings::highest(entry.key));
    fed.floor.fetch_max(had, Ordering::Release);
    let before = fed.wanted.fetch_max(ids, Ordering::Release);
    if before < ids {
        fed.told_boot_ms.store(0, Ordering::Relaxed);
    }
    feeding.demands().tell();
}

/// The first id above the last that was handed over.
fn end_of(last: Option<i64>) -> u64 {
    let last = last.and_then(|last| u64::try_from(last).ok());
    last.map_or(0, |last| last.saturating_add(1))
}

/// Takes a range into use, and asks for the one after it.
fn take_over(
    entry: &TagEntry,
    range: HandedOver,
    urgency: Urgency,
    feeding: Feeding,
    held: &Held<'_>,
) -> Result<(), Failure> {
    let slot = entry.slot();
    let (last, noted) = {
        let _owner = AsOwner::new(entry.owner);
        (sequence::last(entry.sequence), sequence::last(entry.note))
    };
    let noted = noted.and_then(|noted| u64::try_from(noted).ok());
    if let Some(failure) = refusal(entry, range, end_of(last), noted) {
        slot.fed.clear(held);
        return Err(failure);
    }
    let is_kept = slot.fed.kept_key_space.load(Ordering::Relaxed) == range.key_space;
    if noted != Some(range.key_space) || !is_kept {
        {
            let _owner = AsOwner::new(entry.owner);
            sequence::set(entry.note, range.key_space.cast_signed());
        }
        flush::make_durable(urgency, &|| {
            format!("the key space of tag \"{}\"", entry.key.tag())
        })?;
        let fed = &slot.fed;
        fed.key_space.store(range.key_space, Ordering::Relaxed);
        fed.kept_key_space.store(range.key_space, Ordering::Relaxed);
    }
    {
        let _owner = AsOwner::new(entry.owner);
        sequence::set(entry.sequence, flush::last_of(range.end)?);
    }
    slot.fed.clear(held);
    let next = publish(entry, range, held);
    ask(entry, next, feeding, held);
    Ok(())
}

/// Why a range cannot be used. The database may have learnt of it after it was handed over.
fn refusal(entry: &TagEntry, range: HandedOver, floor: u64, noted: Option<u64>) -> Option<Failure> {
    let tag = entry.key.tag();
    if noted.is_some_and(|noted| noted != range.key_space) {
        return Some(another_key_space(&tag));
    }
    (range.start < floor).then(|| {
        Failure::new(
            Cause::BoundDamaged,
            format!(
                "the store has gone back: tag \"{tag}\" was handed ids up to {}, and now from {}",
                floor.saturating_sub(1),
                range.start
            ),
        )
        .hint(format!(
            "Is it an old backup? Run keywright advance {tag} --above {}, or the highest id in use anywhere if that is higher.",
            floor.saturating_sub(1)
        ))
    })
}

/// The largest id that a tag of this database was handed, needed or not, or is known to have had before; `None` for one that is not fed, or
/// was not asked for since the server started.
pub fn handed_over_to(id: i32) -> Option<i64> {
    let sequence = sequences::of_tag(id).ok()?;
    let ours = process::database();
    let fed = directory::slots::<TagSlot>(|_, key| {
        key.source() == Source::Fed && key.database() == ours && key.sequence() == sequence
    });
    let (tag, _) = fed
        .into_iter()
        .find(|(tag, _)| !reuse::is_closed(tag.slot))?;
    let (last, _) = tag.slot.fed.handed()?;
    Some(last.cast_signed())
}

/// The failure of a tag that was fed from one store and is handed ids of another.
pub fn another_key_space(tag: &str) -> Failure {
    Failure::new(
        Cause::HandOverRefused,
        format!("tag \"{tag}\" was handed ids of another key space than it had before"),
    )
    .detail("The store is another one, or the tag was made anew in it; its ids may repeat those that were issued here.")
    .hint(format!(
        "Feed it from the store of before. If that is lost: {LOST_STORE}. If no id of before is kept anywhere, run SELECT keywright.drop_tag('{tag}') and \
         SELECT keywright.create_fed_tag('{tag}', forget_issued => true)."
    ))
}

/// Lets a range be issued; how many ids the next should have.
fn publish(entry: &TagEntry, range: HandedOver, held: &Held<'_>) -> u64 {
    let slot = entry.slot();
    let readings = clock::readings();
    let is_first = !slot.taken_over.load(Ordering::Relaxed);
    let step = match is_first {
        true => entry.step.get(),
        false => next_step(entry, readings.boot_ms),
    };
    // The next one is asked for here, not when ids run low.
    slot.publish((range.start, range.end), (u64::MAX, step), &readings, held);
    slot.refills.fetch_add(1, Ordering::Relaxed);
    slot.taken_over.store(true, Ordering::Release);
    step
}

/// Follows how long the last range lasted. Where it was smaller than the step is by now, as it is while ranges grow, it says how long one of the
/// step would last.
fn next_step(entry: &TagEntry, boot_ms: u64) -> u64 {
    let slot = entry.slot();
    let previous = Step::new(slot.step.load(Ordering::Relaxed).cast_signed()).unwrap_or(entry.step);
    let lasted_ms = boot_ms.saturating_sub(slot.last_refill_boot_ms.load(Ordering::Relaxed));
    let size = slot
        .last_size
        .load(Ordering::Relaxed)
        .clamp(1, previous.get());
    let would_last_ms = lasted_ms.saturating_mul(previous.get()) / size;
    entry.policy.next(previous, Some(would_last_ms)).get()
}

/// The failure of whoever got nothing in time; `missing` is what the program's configuration may lack.
pub fn not_fed(message: String, missing: &str, feeding: Feeding) -> Failure {
    let failure = Failure::new(Cause::NotFed, message);
    let now_ms = clock::readings().boot_ms;
    match feeding.asked_boot_ms() {
        None => failure
            .detail("No program has asked this server what is wanted since it started.")
            .hint("Start keywright with a [[feed]] section for this server."),
        Some(boot_ms) if now_ms.saturating_sub(boot_ms) > ASKED_MS_MAX => failure
            .detail(format!(
                "The last program asked this server what is wanted {} s ago.",
                now_ms.saturating_sub(boot_ms) / 1_000
            ))
            .hint("Start keywright again, or see why it does not reach this server; keywright check says it."),
        Some(_) => failure
            .detail("A program asks this server what is wanted, and does not hand this over.")
            .hint(format!(
                "See the program's log: its store may be away, or {missing}."
            )),
    }
}

/// The failure of a hand-over that is not taken.
pub fn refused(of: &str, why: &str) -> Failure {
    Failure::new(
        Cause::HandOverRefused,
        format!("what was handed over for {of} is not taken: {why}"),
    )
    .hint("Ask keywright.await_demand again, and hand over others.")
}
