//! Segments: reserved ranges of a tag's ids, and the plan of the next reservation.
//!
//! Leaf's segment mode with one word instead of two buffers: a reservation that continues the last one is
//! published by raising the bound, early, so the switch of buffers (and its races) does not exist.

use thiserror::Error;

use crate::residue::Residue;
use crate::sync::{AtomicU64, Ordering};

/// A tag's reserved range: ids from `cursor` up to (not including) `hi` may be issued.
///
/// All zero is the valid empty value. Ids are taken by compare-and-swap below `hi`, never by an addition that could
/// overshoot: an overshot cursor would skip, or worse repeat, ids of the range published next. The memory order is
/// argued at [`crate::SnowflakeWord`]; the protocol is the same.
///
/// ```
/// use keywright_core::SegmentWord;
///
/// let word = SegmentWord::new();
/// assert!(word.take(1).is_err(), "nothing is durable yet");
/// // Ids below 1003 are durable now.
/// word.publish(1000, 1003);
/// assert_eq!(word.take(2), Ok(1000));
/// assert_eq!(word.take(2).unwrap_err().remaining, 1);
/// // A range that continues the last one: nothing is lost.
/// word.publish(1003, 1010);
/// assert_eq!(word.take(2), Ok(1002));
/// // One that does not: the cursor moves first, so that no id between them is issued.
/// word.publish(5000, 5010);
/// assert_eq!(word.take(1), Ok(5000));
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct SegmentWord {
    cursor: AtomicU64,
    hi: AtomicU64,
}

/// Fewer ids are left than were asked for; none were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("only {remaining} ids are left in the segment")]
pub struct Exhausted {
    /// Ids left below the bound.
    pub remaining: u64,
}

impl SegmentWord {
    /// The empty word: nothing may be issued.
    pub const fn new() -> Self {
        Self {
            cursor: AtomicU64::new(0),
            hi: AtomicU64::new(0),
        }
    }

    /// Takes `n` consecutive ids and returns the first. `n` of 0 is taken for 1.
    ///
    /// # Errors
    /// [`Exhausted`] when fewer than `n` are left; nothing was taken.
    #[inline]
    pub fn take(&self, n: u64) -> Result<u64, Exhausted> {
        let n = n.max(1);
        self.take_next(|cursor, hi| (hi.saturating_sub(cursor) >= n).then(|| (cursor, cursor + n)))
    }

    /// Takes `n` ids of a class, one after the other, and returns the first; those of other classes among them are left out. `n` of 0 is
    /// taken for 1.
    ///
    /// # Errors
    /// [`Exhausted`] when fewer than `n` are left, with how many ids are left of all classes; nothing was taken.
    #[inline]
    pub fn take_of(&self, n: u64, class: &Residue) -> Result<u64, Exhausted> {
        let behind_first = class.width_of(n.max(1) - 1);
        self.take_next(|cursor, hi| {
            let first = class.first_from(cursor)?;
            let last = first.checked_add(behind_first)?;
            (last < hi).then(|| (first, last + 1))
        })
    }

    /// Takes what `choose` finds between cursor and bound: the first id, and where the cursor is to be.
    #[inline(always)]
    fn take_next(&self, choose: impl Fn(u64, u64) -> Option<(u64, u64)>) -> Result<u64, Exhausted> {
        loop {
            let cursor = self.cursor.load(Ordering::Relaxed);
            let hi = self.hi.load(Ordering::Acquire);
            let Some((first, next)) = choose(cursor, hi) else {
                return Err(Exhausted {
                    remaining: hi.saturating_sub(cursor),
                });
            };
            let swapped = self.cursor.compare_exchange_weak(
                cursor,
                next,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if swapped.is_ok() {
                return Ok(first);
            }
        }
    }

    /// Allows the ids from `start` up to `end`, which must be durable. Monotone: cursor and bound only grow.
    ///
    /// A range that continues the last one (`start` is the bound) leaves the cursor where it is, so nothing is lost;
    /// before any other the cursor moves to `start`, and only then the bound. One publisher at a time: whoever
    /// holds the tag's refill flag.
    pub fn publish(&self, start: u64, end: u64) {
        if start > self.hi.load(Ordering::Acquire) {
            self.cursor.fetch_max(start, Ordering::Relaxed);
        }
        self.hi.fetch_max(end, Ordering::Release);
    }

    /// Gives up every id below `to`. Ids from there on need the durable bound moved at least as far first.
    pub fn advance(&self, to: u64) {
        self.cursor.fetch_max(to, Ordering::Relaxed);
    }

    /// Gives up everything below the bound: nothing is issued until the next [`SegmentWord::publish`].
    pub fn drain(&self) {
        self.advance(self.hi());
    }

    /// First step of giving the word to another owner; see [`crate::Generation::pass_on`].
    pub(crate) fn forbid(&self) {
        self.hi.store(0, Ordering::Relaxed);
    }

    /// Last step of giving the word to another owner: empty again.
    pub(crate) fn empty(&self) {
        self.cursor.store(0, Ordering::Release);
    }

    /// Ids left below the bound.
    pub fn remaining(&self) -> u64 {
        // Cursor first: a refill in between makes the answer larger, never wraps it.
        let cursor = self.cursor();
        self.hi().saturating_sub(cursor)
    }

    /// The next id to be issued, if it is below the bound.
    pub fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Relaxed)
    }

    /// The bound: ids below may be issued.
    pub fn hi(&self) -> u64 {
        self.hi.load(Ordering::Acquire)
    }
}

/// What is known when a tag needs ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefillRequest {
    /// First id not reserved durably; `None` when nothing ever was.
    pub bound_end: Option<u64>,
    /// The tag's first id.
    pub start: u64,
    /// First id the tag may not issue: its largest plus one.
    pub end_max: u64,
    /// Bound of the word in memory; 0 for an empty one.
    pub word_hi: u64,
    /// Ids left in the word, counted where a continuing range would join them.
    pub remaining: u64,
    /// Ids the waiting call needs; 0 for a refill made early.
    pub need: u64,
    /// Ids to reserve: the step.
    pub want: u64,
    /// Ids to skip first: see [`crate::Note::tag_gap`]; 0 within one writer.
    pub gap: u64,
}

impl RefillRequest {
    /// The first id of the next range: after everything durable and everything in memory, past the gap.
    fn next_start(&self) -> u64 {
        let after_all = self.bound_end.unwrap_or(0).max(self.start);
        after_all.max(self.word_hi).saturating_add(self.gap)
    }

    /// How many ids one call could have at most.
    pub fn available(&self) -> u64 {
        let start = self.next_start();
        let behind = self.end_max.saturating_sub(start);
        match start == self.word_hi {
            true => behind.saturating_add(self.remaining),
            false => behind.max(self.remaining),
        }
    }
}

/// The range to make durable, then to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefillPlan {
    /// First id of the range.
    pub start: u64,
    /// First id after it.
    pub end: u64,
}

/// The tag has not enough ids left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("exhausted at {at}")]
pub struct TagExhausted {
    /// The largest id the tag may issue.
    pub at: u64,
}

/// Plans the next reservation, within the tag.
///
/// The last range of a tag is shorter than the step.
///
/// # Errors
/// [`TagExhausted`] when the waiting call cannot be served, or nothing at all is left to reserve.
pub fn plan_refill(request: &RefillRequest) -> Result<RefillPlan, TagExhausted> {
    let exhausted = TagExhausted {
        at: request.end_max.saturating_sub(1),
    };
    let start = request.next_start();
    let missing = if start == request.word_hi {
        request.need.saturating_sub(request.remaining)
    } else {
        request.need
    };
    let available = request.end_max.saturating_sub(start);
    if available == 0 || available < missing {
        return Err(exhausted);
    }
    let size = request.want.max(missing).max(1).min(available);
    Ok(RefillPlan {
        start,
        end: start + size,
    })
}

/// The id at which the refill after the range `[start, end)` should start: when at most `threshold_percent` of it is left.
///
/// March refills at 50 % left; other services at 85 to 90 %.
pub fn refill_at(start: u64, end: u64, threshold_percent: u32) -> u64 {
    let size = end.saturating_sub(start);
    let left = u128::from(size) * u128::from(threshold_percent.min(100)) / 100;
    end.saturating_sub(u64::try_from(left).unwrap_or(size))
}
