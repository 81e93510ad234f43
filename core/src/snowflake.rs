//! The snowflake state: one atomic word that only grows.
//!
//! A state is `ticks << sequence_bits | sequence`. The next one is `max(last + 1, now << sequence_bits)`: a full
//! sequence carries into the ticks and a clock step back needs no branch. This is March's rule (the etcd and
//! Redis-protocol sequencer); Keywright adds the bound `hi`, durable before any state below it is issued.

use thiserror::Error;

use crate::sync::{AtomicU64, Ordering};

/// The states of one worker: `word` is the lowest state neither issued nor given up, `hi` the bound.
///
/// All zero is the valid empty value: nothing may be issued.
///
/// **Why relaxed order is enough for `word`.** A taker may pair an old `word` with a `hi` published later. It read
/// `hi` with acquire order and the publisher raised `hi` with release order *after* moving `word`, so the taker's
/// compare-and-swap, which always acts on the newest value of `word`, meets the publisher's move: either `word`
/// was already past it, or the swap fails and both are read again. `word` only grows, so an equal value means an
/// unchanged one. A taker with a new `word` and an old `hi` is only refused too early.
///
/// ```
/// use keywright_core::{Layout, SnowflakeWord, WorkerId};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let layout = Layout::parse("twitter")?;
/// let worker = layout.worker_part(WorkerId::new(7, &layout)?, false);
/// let now_ms = 1_795_478_400_000;
/// let now = layout.state_at(now_ms);
///
/// let word = SnowflakeWord::new();
/// assert!(word.take(now, 1).is_err(), "the bound is not durable yet");
/// // Five seconds ahead of the clock were made durable.
/// word.publish(now, layout.state_at(now_ms + 5_000));
/// let first = layout.compose(word.take(now, 1)?, worker);
/// // The clock was set back by an hour: ids go on from where they were.
/// let second = layout.compose(word.take(layout.state_at(now_ms - 3_600_000), 1)?, worker);
/// assert!(second > first);
///
/// let decoded = layout.decode(second)?;
/// assert_eq!((decoded.worker_id, decoded.sequence), (7, 1));
/// assert_eq!(decoded.issued_at_ms, now_ms);
/// # Ok(())
/// # }
/// ```
///
/// **Another owner.** A word may be given to another owner ([`crate::Generation`]): a taker's swap acquires, so one that
/// took from the new owner's word also sees the new owner's generation.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SnowflakeWord {
    word: AtomicU64,
    hi: AtomicU64,
}

/// The states wanted are not all below the bound: extend it up to `end` at least, then try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("states up to {end} are needed and the bound is {hi}")]
pub struct BoundReached {
    /// First state after those wanted; what to pass on as [`crate::BoundRequest::need_state_end`].
    pub end: u64,
    /// The bound that stood in the way.
    pub hi: u64,
}

/// Why states of one tick could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TickError {
    /// The bound must be extended first.
    #[error(transparent)]
    Bound(#[from] BoundReached),
    /// No tick holds so many.
    #[error("{n} consecutive ids do not fit into one tick, which holds {tick_ids}")]
    TooMany {
        /// Ids asked for.
        n: u64,
        /// Ids of one tick.
        tick_ids: u64,
    },
}

impl SnowflakeWord {
    /// The empty word: nothing may be issued.
    pub const fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            hi: AtomicU64::new(0),
        }
    }

    /// Takes `n` consecutive states, none below `now_state`, and returns the first.
    ///
    /// `n` of 0 is taken for 1, so that a state returned is always the caller's own.
    ///
    /// # Errors
    /// [`BoundReached`] when they would not all lie below the bound; nothing was taken.
    #[inline]
    pub fn take(&self, now_state: u64, n: u64) -> Result<u64, BoundReached> {
        self.take_from(n, |next| next.max(now_state))
    }

    /// As [`SnowflakeWord::take`], with all `n` states in one tick: skips to the next tick when fewer are left in this.
    ///
    /// # Errors
    /// [`TickError::TooMany`] when no tick holds `n`; [`TickError::Bound`] as for `take`.
    pub fn take_in_tick(
        &self,
        now_state: u64,
        n: u64,
        sequence_bits: u32,
    ) -> Result<u64, TickError> {
        let tick_ids = 1u64.checked_shl(sequence_bits).unwrap_or(u64::MAX);
        if n > tick_ids {
            return Err(TickError::TooMany { n, tick_ids });
        }
        let sequence_mask = tick_ids - 1;
        let first = self.take_from(n, |next| {
            let first = next.max(now_state);
            let left = tick_ids - (first & sequence_mask);
            if left < n {
                (first | sequence_mask).saturating_add(1)
            } else {
                first
            }
        })?;
        Ok(first)
    }

    #[inline]
    fn take_from(&self, n: u64, first_after: impl Fn(u64) -> u64) -> Result<u64, BoundReached> {
        let n = n.max(1);
        loop {
            let next = self.word.load(Ordering::Relaxed);
            let hi = self.hi.load(Ordering::Acquire);
            let first = first_after(next);
            let end = match first.checked_add(n) {
                Some(end) if end <= hi => end,
                Some(end) => return Err(BoundReached { end, hi }),
                None => return Err(BoundReached { end: u64::MAX, hi }),
            };
            let swapped =
                self.word
                    .compare_exchange_weak(next, end, Ordering::Acquire, Ordering::Relaxed);
            if swapped.is_ok() {
                return Ok(first);
            }
        }
    }

    /// Allows states up to `hi`, which must be durable, none below `start`. Monotone: neither word nor bound goes back.
    ///
    /// The word moves before the bound, or a taker could be given states between the old bound and `start`.
    pub fn publish(&self, start: u64, hi: u64) {
        self.word.fetch_max(start, Ordering::Relaxed);
        self.hi.fetch_max(hi, Ordering::Release);
    }

    /// Gives up everything below the bound: nothing is issued until the next [`SnowflakeWord::publish`]. Returns the first
    /// state that was not issued before.
    pub fn drain(&self) -> u64 {
        self.word
            .fetch_max(self.hi.load(Ordering::Acquire), Ordering::Relaxed)
    }

    /// First step of giving the word to another owner; see [`crate::Generation::pass_on`].
    pub(crate) fn forbid(&self) {
        self.hi.store(0, Ordering::Relaxed);
    }

    /// Last step of giving the word to another owner: empty again.
    pub(crate) fn empty(&self) {
        self.word.store(0, Ordering::Release);
    }

    /// The lowest state neither issued nor given up.
    pub fn next(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// The bound: states below may be issued.
    pub fn hi(&self) -> u64 {
        self.hi.load(Ordering::Acquire)
    }
}
