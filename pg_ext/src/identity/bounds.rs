//! The bounds of this database's numbers: the sequences behind them, and what must be durable before a worker id, a layout or a
//! time zone changes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::layout::Layout;
use keywright_core::register::{Floor, Number};
use keywright_core::writer::Note;
use pgrx::pg_sys;

use crate::catalog::{damage, sequences};
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::durable::turn::{self, Urgency};
use crate::failure::Failure;
use crate::identity::{promotion, writer};
use crate::server::transaction::{self, Outcome};
use crate::server::{clock, process, sequence};
use crate::settings;
use crate::shmem::key::TimeKind;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::{directory, reuse};

/// The sequences behind a word.
pub struct Sequences {
    /// The bound of the normal word.
    pub bound: pg_sys::Oid,
    spare_bound: Option<pg_sys::Oid>,
    /// The note beside both.
    pub note: pg_sys::Oid,
}

impl Sequences {
    /// Those of one kind of word.
    pub fn of(kind: TimeKind) -> Result<Self, Failure> {
        Ok(match kind {
            TimeKind::Snowflake => Self {
                bound: sequences::named("snowflake_bound")?,
                spare_bound: Some(sequences::named("snowflake_spare_bound")?),
                note: sequences::named("snowflake_note")?,
            },
            TimeKind::Readable => Self {
                bound: sequences::named("readable_bound")?,
                spare_bound: None,
                note: sequences::named("readable_note")?,
            },
        })
    }

    /// The bound of the normal or the spare word.
    pub fn track(&self, spare: bool) -> Result<pg_sys::Oid, Failure> {
        if spare {
            self.spare_bound
                .ok_or_else(|| damage::damaged("readable ids have no spare bound"))
        } else {
            Ok(self.bound)
        }
    }

    /// The bounds of the normal and the spare word.
    fn bounds(&self) -> Vec<pg_sys::Oid> {
        [Some(self.bound), self.spare_bound]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The higher of the bounds.
    fn highest_ms(&self) -> Option<i64> {
        let bounds = self.bounds().into_iter();
        bounds.filter_map(sequence::last).max()
    }

    /// All of them, to lock.
    pub fn all(&self) -> Vec<pg_sys::Oid> {
        [Some(self.bound), self.spare_bound, Some(self.note)]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Drains a word and says which states it may have issued: those below the answer. Should it come into force again, others may
/// have issued its ids meanwhile: it is taken over then.
pub fn used_up_to(slot: &TimeSlot) -> u64 {
    slot.forget_bounds();
    slot.main.word.drain().max(slot.spare.word.drain())
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_millis(settings::refill_wait_ms_max())
}

/// Keeps every other session from extending the bounds of one kind of word until this transaction ends, and returns the highest.
/// What another writer wrote need not be the last that it wrote: then it is as far as that one may have come.
///
/// # Errors
/// Another transaction extended one and is still open.
pub fn hold(kind: TimeKind) -> Result<Option<i64>, Failure> {
    let sequences = Sequences::of(kind)?;
    let name = || kind.bound_name().to_owned();
    Wanted::alone(&sequences.bounds()).lock(deadline(), &name)?;
    match lost(&sequences)? {
        Some(lost_ms) => Ok(Some(lost_ms)),
        None => Ok(sequences.highest_ms()),
    }
}

/// Whether anything says that a bound of this kind was written here, or may have been.
pub fn is_noted(kind: TimeKind) -> Result<bool, Failure> {
    let sequences = Sequences::of(kind)?;
    Ok(sequence::last(sequences.note).is_some() || sequences.highest_ms().is_some())
}

/// How far the bounds may have come that another writer wrote, and of which the last did not arrive; none where this one
/// wrote them. Without a note nobody wrote any, unless `pg_resetwal` may have lost it.
pub fn lost(sequences: &Sequences) -> Result<Option<i64>, Failure> {
    let note = sequence::last(sequences.note).and_then(Note::unpack);
    let writer = writer::current();
    let is_vouched = match note {
        Some(note) => note.is_of(&writer),
        None => !writer.may_have_lost(None),
    };
    if is_vouched {
        return Ok(None);
    }
    let ahead_ms = settings::lead_ms_max().saturating_add(1);
    let past_lead_ms = add_ms(clock::wall_ms(), ahead_ms);
    let past_both_ms = past_lead_ms.max(sequences.highest_ms().unwrap_or(0));
    Ok(Some(add_ms(past_both_ms, promotion::skew_ms_max(note)?)))
}

fn add_ms(unix_ms: i64, ms: u64) -> i64 {
    unix_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// Raises the bounds of this database's ids with a number to a moment, durably, because its owner says that ids below were
/// issued. Words find another bound than they wrote, and take it over.
///
/// # Errors
/// Another session holds a gate or the sequences for too long; a synchronous standby does not confirm in time.
pub fn raise(number: Number, bound_ms: i64) -> Result<(), Failure> {
    let (kind, deadline) = (TimeKind::of(number), deadline());
    let name = || kind.bound_name().to_owned();
    stop_words(number)?;
    let sequences = Sequences::of(kind)?;
    Wanted::to_change(&sequences.all()).lock(deadline, &name)?;
    for sequence in sequences.bounds() {
        if sequence::last(sequence) < Some(bound_ms) {
            sequence::set(sequence, bound_ms);
        }
    }
    flush::make_durable(Urgency::Needed { deadline }, &name)
}

/// Drains the words of a number in shared memory, and says how far they came.
///
/// # Errors
/// Another session holds a gate for too long.
pub fn stop_words(number: Number) -> Result<Option<Floor>, Failure> {
    let urgency = Urgency::Needed {
        deadline: deadline(),
    };
    let mut highest: Option<Floor> = None;
    for (word, key) in directory::slots::<TimeSlot>(|_, key| key.number() == Some(number)) {
        let slot = word.slot;
        // Whoever extends it now looked the number up before it moved: let it finish.
        let _held = turn::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), || {
            !word.is_current()
        })?;
        // Who dropped it or lowered its bound noted in the register what counts of it.
        let is_noted = reuse::is_closed(slot);
        if !word.is_current() || is_noted || !slot.taken_over.load(Ordering::Relaxed) {
            continue;
        }
        // This database issued greater ids with another number since, or another database with this one: no going on where
        // this word stopped.
        let floor = Floor::below_state(key.layout, used_up_to(slot));
        highest = Some(floor.higher(highest));
    }
    Ok(highest)
}

/// Has every session look anew by which number it issues, also within a transaction or a statement that runs, once this transaction has committed: the words of
/// this one say that it gives the number up.
pub fn leave_words(number: Number) {
    leave(process::database().to_u32(), |its| its == number);
}

/// The same of all numbers that a database has, perhaps another than this session's.
pub fn leave_all_words(database: u32) {
    leave(database, |_| true);
}

fn leave(database: u32, is_meant: impl Fn(Number) -> bool) {
    let transaction = transaction::subtransaction_number();
    let words = directory::slots::<TimeSlot>(|_, key| {
        key.is_in(database) && key.number().is_some_and(&is_meant)
    });
    for (word, _) in words {
        let left_by = &word.slot.left_by;
        // What an earlier part of this transaction has noted stays: should this part be undone, that one still commits.
        let earlier = left_by.load(Ordering::Acquire);
        if earlier == 0 || transaction::outcome(earlier) != Outcome::Open {
            left_by.store(transaction, Ordering::Release);
        }
    }
}

/// How far words of a number came that are not in force, because their layout is not: those of a savepoint that was rolled back
/// are known to nobody else.
pub fn used_in_other_layouts(number: Number, layout: &Layout) -> Option<Floor> {
    let others = directory::slots::<TimeSlot>(|_, key| {
        key.number() == Some(number) && key.layout != *layout
    });
    others
        .into_iter()
        .fold(None, |highest: Option<Floor>, (word, key)| {
            let slot = word.slot;
            let hi = slot.main.word.hi().max(slot.main.word.next());
            let is_used = slot.taken_over.load(Ordering::Acquire) && !reuse::is_closed(slot);
            if !is_used || !word.is_current() {
                return highest;
            }
            Some(Floor::below_state(key.layout, hi).higher(highest))
        })
}

/// Leaves a note beside a bound that was never written, durably: a standby that is promoted without the first bound then
/// knows that there may have been one.
///
/// # Errors
/// Another session holds the sequence for too long; a synchronous standby does not confirm in time.
pub fn leave_note(kind: TimeKind) -> Result<(), Failure> {
    let deadline = deadline();
    let name = || kind.bound_name().to_owned();
    let sequences = Sequences::of(kind)?;
    if sequence::last(sequences.note).is_some() {
        return Ok(());
    }
    Wanted::to_change(&sequences.all()).lock(deadline, &name)?;
    let note = Note::new(writer::current(), clock::wall_ms(), 1, 0);
    sequence::set(sequences.note, note.pack());
    flush::make_durable(Urgency::Needed { deadline }, &name)
}
