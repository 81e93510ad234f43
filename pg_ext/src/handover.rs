//! How a word passes from one owner to the next: the sequences behind it, the words whose ids could meet its own, and what must
//! be durable before a worker id or a layout changes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::incarnation::Note;
use pgrx::pg_sys;

use crate::failure::Failure;
use crate::shm::TimeSlot;
use crate::store::{self, Urgency};
use crate::words::{TimeEntry, TimeKind};
use crate::{catalog, clock, settings, shm, sys};

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
                bound: catalog::sequence("snowflake_bound")?,
                spare_bound: Some(catalog::sequence("snowflake_spare_bound")?),
                note: catalog::sequence("snowflake_note")?,
            },
            TimeKind::Readable => Self {
                bound: catalog::sequence("readable_bound")?,
                spare_bound: None,
                note: catalog::sequence("readable_note")?,
            },
        })
    }

    /// The bound of the normal or the spare word.
    pub fn track(&self, spare: bool) -> Result<pg_sys::Oid, Failure> {
        if spare {
            self.spare_bound
                .ok_or_else(|| catalog::damaged("readable ids have no spare bound"))
        } else {
            Ok(self.bound)
        }
    }

    /// All of them, to lock.
    pub fn all(&self) -> Vec<pg_sys::Oid> {
        [Some(self.bound), self.spare_bound, Some(self.note)]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// The same worker id under another layout has a word of its own, and its ids could equal ours. Whoever extends it now
/// looked up the layout before it changed: let it finish, so that the bound we take over from is the last it wrote. Whoever
/// extends it later looks the layout up again and finds it changed.
pub fn wait_for_siblings(entry: &TimeEntry, urgency: Urgency) -> Result<bool, Failure> {
    for sibling in siblings(entry) {
        let figures = (&sibling.waits, &sibling.wait_us);
        if store::enter(&sibling.gate, urgency, figures, || false)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Words whose ids could meet this one's: of the same worker under another layout, or bounded by another sequence.
pub fn siblings(entry: &TimeEntry) -> impl Iterator<Item = &'static TimeSlot> {
    let ours = entry.slot;
    shm::time_slots()
        .iter()
        .filter(move |slot| slot.key().shares_ids_with(ours.key()) && !std::ptr::eq(*slot, ours))
}

/// The first state that begins after all that siblings may have issued. With either of their words: what is a spare bit in one
/// layout may be a worker's or a sequence's in another.
pub fn above_siblings(entry: &TimeEntry) -> u64 {
    let layout = entry.layout();
    let above = |sibling: &TimeSlot| {
        let theirs = &sibling.key().layout;
        let hi = sibling.main.word.hi().max(sibling.spare.word.hi());
        let end_ms = theirs.unix_ms_of(hi >> theirs.sequence_bits());
        let state = layout.state_at(end_ms);
        if layout.unix_ms_of(state >> layout.sequence_bits()) < end_ms {
            state + (1 << layout.sequence_bits())
        } else {
            state
        }
    };
    siblings(entry)
        .filter(|sibling| sibling.taken_over.load(Ordering::Relaxed))
        .map(above)
        .max()
        .unwrap_or(0)
}

/// They are not in force any more; if one comes back it must not go on where it stopped.
pub fn drain_siblings(entry: &TimeEntry) {
    for sibling in siblings(entry) {
        sibling.main.word.drain();
        sibling.spare.word.drain();
    }
}

fn snowflake_deadline() -> Urgency {
    Urgency::Needed {
        deadline: Instant::now() + Duration::from_millis(settings::refill_wait_ms_max()),
    }
}

/// Keeps every other session from extending the snowflake bounds until this transaction ends, and returns the higher one.
///
/// # Errors
/// Another transaction extended one and is still open.
pub fn hold_bounds() -> Result<Option<i64>, Failure> {
    let sequences = Sequences::of(TimeKind::Snowflake)?;
    let mut highest_ms = None;
    for spare in [false, true] {
        let sequence = sequences.track(spare)?;
        store::lock_alone(
            sequence,
            snowflake_deadline(),
            TimeKind::Snowflake.bound_name(),
        )?;
        highest_ms = highest_ms.max(sys::sequence_last(sequence));
    }
    Ok(highest_ms)
}

/// Raises both snowflake bounds to `bound_ms`, durably: the bits of one layout's spare worker may be another's own.
///
/// # Errors
/// A synchronous standby does not confirm in time.
pub fn level_bounds(bound_ms: Option<i64>) -> Result<(), Failure> {
    let Some(bound_ms) = bound_ms else {
        return Ok(());
    };
    let sequences = Sequences::of(TimeKind::Snowflake)?;
    for spare in [false, true] {
        let sequence = sequences.track(spare)?;
        if sys::sequence_last(sequence) < Some(bound_ms) {
            sys::sequence_set(sequence, bound_ms);
        }
    }
    store::make_durable(snowflake_deadline(), &|| {
        TimeKind::Snowflake.bound_name().to_owned()
    })
}

/// Below which moment the words of a worker id in shared memory issue, or issued.
pub fn used_up_to(worker: u32) -> Option<i64> {
    let used = |slot: &TimeSlot| {
        let layout = &slot.key().layout;
        let hi = slot.main.word.hi().max(slot.spare.word.hi());
        (hi > 0).then(|| layout.unix_ms_of(hi >> layout.sequence_bits()))
    };
    let slots = shm::time_slots().iter();
    slots
        .filter(|slot| slot.key().is_of_worker(worker))
        .filter_map(used)
        .max()
}

/// A worker id that comes to this database may have been another's, which issued below a bound of its own: everything up to
/// there (`floor_ms` if the register knows it), and as far ahead of the clock as ids may run, counts as used here too, durably,
/// before the first id. Returns the moment above which it starts, if there is one.
///
/// # Errors
/// Another session holds a gate or the sequences for too long.
pub fn inherit(worker: u32, floor_ms: Option<i64>) -> Result<Option<i64>, Failure> {
    let urgency = snowflake_deadline();
    let name = || TimeKind::Snowflake.bound_name().to_owned();
    for slot in shm::time_slots()
        .iter()
        .filter(|slot| slot.key().is_of_worker(worker))
    {
        // Whoever extends it now looked the worker id up before it moved: let it finish.
        let _held = store::enter(&slot.gate, urgency, (&slot.waits, &slot.wait_us), || false)?;
        // This database issued greater ids with another worker id since: no going on where this one stopped.
        for spare in [false, true] {
            slot.track(spare).word.drain();
        }
    }
    let floor_ms = floor_ms.max(used_up_to(worker));
    let mut bound_ms = floor_ms;
    let sequences = Sequences::of(TimeKind::Snowflake)?;
    store::lock_sequences(&sequences.all(), urgency, &name)?;
    if sys::sequence_last(sequences.bound).is_some() {
        // Without a bound the takeover starts that far ahead by itself.
        let lead_ms = i64::try_from(settings::lead_ms_max()).unwrap_or(i64::MAX);
        bound_ms = bound_ms.max(Some(
            clock::wall_ms().saturating_add(lead_ms).saturating_add(1),
        ));
    }
    level_bounds(bound_ms)?;
    if sys::sequence_last(sequences.note).is_none() {
        let note = Note::new(store::incarnation(), clock::wall_ms(), 1, 0);
        sys::sequence_set(sequences.note, note.pack());
    }
    store::make_durable(urgency, &name)?;
    Ok(floor_ms)
}
