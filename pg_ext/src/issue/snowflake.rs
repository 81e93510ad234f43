//! snowflake_id and readable_id: states of a time word, below a bound that is durable before it is used.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::policy::{ClockDecision, ClockPolicy, decide};

use crate::cache;
use crate::cache::time_entry::{self, TimeEntry};
use crate::durable::turn::Urgency;
use crate::failure::Failure;
use crate::refill::room::Extended;
use crate::refill::time_bound;
use crate::server::backend::BackendCell;
use crate::server::transaction::{self, Outcome};
use crate::server::{changes, clock, latch, process};
use crate::shmem::key::{TimeKey, TimeKind};
use crate::shmem::time_slot::{TimeSlot, TimeTrack};
use crate::{guard, settings};

/// A clock that is not followed and falls back by more than this was set.
const MENDED_MS: i64 = 1_000;

/// States that were taken: `first` and the following, of one word.
#[derive(Clone, Copy)]
pub struct Taken {
    /// First state.
    pub first: u64,
    /// What their word belongs to.
    key: &'static TimeKey,
    /// Whether they belong to the spare worker.
    pub spare: bool,
}

impl Taken {
    /// The bucket of a readable id.
    pub fn bucket(&self) -> u8 {
        self.key.bucket()
    }

    /// The snowflake id of the state `offset` after the first.
    #[inline]
    pub fn id(&self, offset: u64) -> i64 {
        self.key
            .layout
            .compose(self.first + offset, self.key.worker_part(self.spare))
    }
}

/// Takes `n` consecutive states of this database's snowflake word.
///
/// # Errors
/// Any of the causes of snowflake ids.
#[inline(always)]
pub fn take(n: u64) -> Result<Taken, Failure> {
    if let Some(entry) = time_entry::hot_snowflake()
        && settings::carries()
        && !process::is_read_only()
    {
        let (slot, key) = (entry.slot(), entry.key);
        let now_ms = clock::wall_ms();
        // A clock that is not followed is watched where there is time for it. Taken from a word that was passed on meanwhile,
        // states are another's; left out.
        if slot.skew_ms.load(Ordering::Relaxed) == 0
            && slot.left_by.load(Ordering::Relaxed) == 0
            && let Some(first) = take_states(&slot.main, &key.layout, now_ms, n)
            && entry.at.is_current()
        {
            count(slot, n);
            if first + n > slot.main.extend_at.load(Ordering::Relaxed) {
                extend_early(TimeKind::Snowflake, false)?;
            }
            return Ok(Taken {
                first,
                key,
                spare: false,
            });
        }
    }
    take_slowly(TimeKind::Snowflake, n)
}

/// Takes one state of this database's readable ids.
///
/// # Errors
/// As [`take`], of a readable bucket.
pub fn take_readable() -> Result<Taken, Failure> {
    take_slowly(TimeKind::Readable, 1)
}

/// States below the bound, if there are `n`: in one tick where one holds so many, so that the ids are consecutive.
#[inline(always)]
fn take_states(track: &TimeTrack, layout: &Layout, now_ms: i64, n: u64) -> Option<u64> {
    let now = layout.state_at(now_ms);
    if n == 1 || n > 1 << layout.sequence_bits() {
        track.word.take(now, n).ok()
    } else {
        track.word.take_in_tick(now, n, layout.sequence_bits()).ok()
    }
}

#[cold]
fn take_slowly(kind: TimeKind, n: u64) -> Result<Taken, Failure> {
    guard::require_preload()?;
    guard::require_writable(match kind {
        TimeKind::Snowflake => "snowflake_id",
        TimeKind::Readable => "readable_id",
    })?;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    loop {
        let entry = time_entry::of(kind)?;
        let slot = entry.slot();
        if is_left(&entry)? {
            continue;
        }
        refuse_if_wider_than_lead(entry.layout(), n)?;
        // Looked at before the clock is: a later reading that another session adds meanwhile is no step back.
        let highest_ms = slot.highest_ms.load(Ordering::Acquire);
        let now_ms = watched_ms(&entry, highest_ms)?;
        let Some(spare) = choose_word(&entry, now_ms, highest_ms)? else {
            continue;
        };
        let track = slot.track(spare);
        let taken = take_states(track, entry.layout(), now_ms, n);
        if !entry.at.is_current() {
            cache::forget();
            continue;
        }
        if let Some(first) = taken {
            slot.highest_ms.fetch_max(now_ms, Ordering::Release);
            count(slot, n);
            if first + n > track.extend_at.load(Ordering::Relaxed) {
                extend_early(kind, spare)?;
            }
            let key = entry.key;
            return Ok(Taken { first, key, spare });
        }
        match time_bound::extend(&entry, spare, n, Urgency::Needed { deadline })? {
            Extended::Yes => {}
            Extended::TooFarAhead {
                lead_ms,
                retry_after_ms,
            } => wait_for_clock(lead_ms, retry_after_ms, deadline)?,
        }
    }
}

/// Whether the number was given up, or taken from the database, since the word was looked up. Within a transaction the server need not have said so, and
/// another server may have the number by now.
fn is_left(entry: &TimeEntry) -> Result<bool, Failure> {
    let left_by = &entry.slot().left_by;
    let transaction = left_by.load(Ordering::Acquire);
    if transaction == 0 || transaction::outcome(transaction) == Outcome::Open {
        return Ok(false);
    }
    changes::hear();
    cache::forget();
    if time_entry::key(entry.kind)? != *entry.key {
        return Ok(true);
    }
    // It failed, or the number has come back since. Whoever gives it up meanwhile says so anew.
    let _ = left_by.compare_exchange(transaction, 0, Ordering::AcqRel, Ordering::Relaxed);
    Ok(false)
}

/// What the clock reads, less what it reads too much. One that is not followed and falls back was mended: that is looked at
/// anew at once, not when the reservation ends.
fn watched_ms(entry: &TimeEntry, highest_ms: i64) -> Result<i64, Failure> {
    let slot = entry.slot();
    let skew_ms = slot.skew_ms.load(Ordering::Relaxed);
    let now_ms = clock::wall_ms() - skew_ms;
    if skew_ms == 0 || now_ms.saturating_add(MENDED_MS) >= highest_ms {
        return Ok(now_ms);
    }
    slot.main.extend_at.store(0, Ordering::Relaxed);
    extend_early(entry.kind, false)?;
    Ok(clock::wall_ms() - slot.skew_ms.load(Ordering::Relaxed))
}

/// Which word the clock policy says to use; `None` after a wait, when the clock must be read again.
fn choose_word(entry: &TimeEntry, now_ms: i64, highest_ms: i64) -> Result<Option<bool>, Failure> {
    let slot = entry.slot();
    let policy = match entry.kind {
        TimeKind::Snowflake => settings::clock_policy(),
        TimeKind::Readable => ClockPolicy::Carry,
    };
    if policy == ClockPolicy::SpareWorker && !entry.layout().has_spare() {
        return Err(Failure::new(
            Cause::LayoutInvalid,
            format!("clock policy spare_worker needs a layout with a spare bit, not \"{}\"", entry.layout()),
        )
        .hint("Choose another keywright.clock_policy, or a layout with spare=1 through keywright.set_layout."));
    }
    match decide(policy, now_ms, highest_ms, settings::clock_wait_ms_max(), entry.layout().spare_state()) {
        ClockDecision::Issue => Ok(Some(false)),
        ClockDecision::IssueSpare => Ok(Some(true)),
        ClockDecision::WaitMs(wait_ms) => {
            slot.waits.fetch_add(1, Ordering::Relaxed);
            slot.wait_us.fetch_add(wait_ms.saturating_mul(1_000), Ordering::Relaxed);
            latch::sleep(Duration::from_millis(wait_ms));
            Ok(None)
        }
        ClockDecision::Refuse { behind_ms } => Err(Failure::new(
            Cause::ClockBehind,
            format!("the clock reads {behind_ms} ms earlier than it did, and clock policy {} issues no ids then", policy.name()),
        )
        .hint("Retry when the clock has caught up, or set keywright.clock_policy to carry.")),
    }
}

/// What never fits between the clock and the maximum lead is not worth waiting for.
fn refuse_if_wider_than_lead(layout: &Layout, n: u64) -> Result<(), Failure> {
    let ticks = n >> layout.sequence_bits();
    let width_ms = ticks.saturating_mul(u64::from(layout.tick_ms()));
    if width_ms <= settings::lead_ms_max() {
        return Ok(());
    }
    Err(Failure::new(
        Cause::LeadExceeded,
        format!(
            "{n} snowflake ids take {width_ms} ms and may not run more than {} ms ahead of the clock",
            settings::lead_ms_max()
        ),
    )
    .hint("Ask for fewer ids per call, or raise keywright.lead_ms_max."))
}

/// Ids ran ahead of the clock as far as they may: wait until it has moved on.
fn wait_for_clock(lead_ms: u64, retry_after_ms: u64, deadline: Instant) -> Result<(), Failure> {
    let pause = Duration::from_millis(retry_after_ms.max(1));
    if Instant::now() + pause > deadline {
        return Err(Failure::new(
            Cause::LeadExceeded,
            format!(
                "snowflake ids are {lead_ms} ms ahead of the clock and may not be more than {} ms",
                settings::lead_ms_max()
            ),
        )
        .hint("Retry later, ask for fewer ids, or raise keywright.lead_ms_max."));
    }
    latch::sleep(pause);
    Ok(())
}

/// The caller's id crossed the threshold: extend the bound before anybody has to wait for it.
#[cold]
fn extend_early(kind: TimeKind, spare: bool) -> Result<(), Failure> {
    if process::is_parallel() {
        return Ok(());
    }
    let entry = time_entry::of(kind)?;
    time_bound::extend(&entry, spare, 1, Urgency::Early).map(|_| ())
}

/// Ids issued by this transaction and not yet added to the shared figure, which would cost every id a second atomic.
static ISSUED: BackendCell<(Option<&'static TimeSlot>, u64)> = BackendCell::new((None, 0));
static COUNTING: BackendCell<bool> = BackendCell::new(false);

#[inline]
fn count(slot: &'static TimeSlot, n: u64) {
    let (counted, issued) = ISSUED.get();
    match counted {
        Some(counted) if std::ptr::eq(counted, slot) => ISSUED.set((Some(slot), issued + n)),
        Some(_) | None => start_counting(slot, n),
    }
}

#[cold]
fn start_counting(slot: &'static TimeSlot, n: u64) {
    if !COUNTING.replace(true) {
        transaction::at_end(settle);
    }
    settle();
    ISSUED.set((Some(slot), n));
}

/// Adds what this backend issued to the shared figure.
pub fn settle() {
    if let (Some(slot), issued) = ISSUED.replace((None, 0)) {
        slot.issued.fetch_add(issued, Ordering::Relaxed);
    }
}
