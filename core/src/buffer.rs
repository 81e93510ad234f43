//! The two slots of a tag: one range in use, the next already there.
//!
//! Several issuers share a tag, so the next range need not continue the last one, and one word cannot hold both. Each
//! slot is a [`SegmentWord`] of its own, and every id taken comes from one compare-and-swap below one slot's bound.
//!
//! **Why no id comes twice, whatever a taker has read before.** Which slot is looked at first is a matter of order, not of
//! safety: a taker with an outdated idea of the current slot takes from a slot that holds a range of its own, or none. A
//! slot that is filled again could only be harmed by a taker that paired the old range's cursor with the new range's
//! bound. Ranges are published in ascending order ([`Buffer::publish`] refuses any other), so in each slot both numbers
//! only grow: an equal cursor is an unchanged one, there is no ABA. The publisher moves the cursor to the new range's
//! start before it raises the bound (release), and a taker reads the bound (acquire) after the cursor: one that saw the
//! new bound with the old cursor fails its swap, because the cursor has moved since.

use crate::segment::{SegmentWord, refill_at};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Ranges of indices of one tag in one process.
#[derive(Debug, Default)]
pub struct Buffer {
    slots: [SegmentWord; 2],
    /// Whether the second slot is looked at first.
    second_first: AtomicBool,
    /// A refill is due when so few are left.
    refill_left: AtomicU64,
}

impl Buffer {
    /// No range, nothing to take.
    pub const fn new() -> Self {
        Self {
            slots: [SegmentWord::new(), SegmentWord::new()],
            second_first: AtomicBool::new(false),
            refill_left: AtomicU64::new(0),
        }
    }

    fn in_order(&self) -> [(&SegmentWord, bool); 2] {
        let [first, second] = &self.slots;
        if self.second_first.load(Ordering::Relaxed) {
            [(second, true), (first, false)]
        } else {
            [(first, false), (second, true)]
        }
    }

    /// Takes `count` consecutive indices and returns the first; `None` when no slot holds so many.
    ///
    /// What is left of a slot after a longer request went to the other one serves shorter ones.
    #[inline]
    pub fn take(&self, count: u64) -> Option<u64> {
        let [(first, _), (second, is_second)] = self.in_order();
        match first.take(count) {
            Ok(index) => Some(index),
            Err(exhausted) => {
                let index = second.take(count).ok()?;
                if exhausted.remaining == 0 {
                    self.second_first.store(is_second, Ordering::Relaxed);
                }
                Some(index)
            }
        }
    }

    /// Allows the indices from `start` up to `end`, which must be durable. False, and nothing is allowed, when the range is
    /// empty or begins below one that was published before. One publisher at a time: the tag's refill task.
    ///
    /// A range that continues a slot's lengthens it; any other goes into the slot that has the fewest left, and those are
    /// given up.
    pub fn publish(&self, start: u64, end: u64, refill_percent: u32) -> bool {
        if start >= end || start < self.hi() {
            return false;
        }
        let [first, second] = &self.slots;
        let slot = if first.hi() == start && first.hi() > 0 {
            first
        } else if second.hi() == start && second.hi() > 0 {
            second
        } else if first.remaining() <= second.remaining() {
            first
        } else {
            second
        };
        slot.publish(start, end);
        self.refill_left.store(
            end.saturating_sub(refill_at(start, end, refill_percent)),
            Ordering::Relaxed,
        );
        true
    }

    /// Whether so few are left that a refill is due.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.remaining() <= self.refill_left.load(Ordering::Relaxed)
    }

    /// Indices left, in both slots.
    #[inline]
    pub fn remaining(&self) -> u64 {
        let [first, second] = &self.slots;
        first.remaining().saturating_add(second.remaining())
    }

    /// The most that one request can have.
    pub fn longest(&self) -> u64 {
        let [first, second] = &self.slots;
        first.remaining().max(second.remaining())
    }

    /// The lowest index that is left.
    pub fn lowest(&self) -> Option<u64> {
        let slots = self.slots.iter();
        let left = slots.filter(|slot| slot.remaining() > 0);
        left.map(SegmentWord::cursor).min()
    }

    /// First index above everything published.
    pub fn hi(&self) -> u64 {
        let [first, second] = &self.slots;
        first.hi().max(second.hi())
    }

    /// Takes everything that is left: ranges that nobody else can take any more, to be handed back.
    pub fn take_rest(&self) -> Vec<(u64, u64)> {
        let rest = |slot: &SegmentWord| {
            loop {
                let remaining = slot.remaining();
                if remaining == 0 {
                    return None;
                }
                if let Ok(start) = slot.take(remaining) {
                    return Some((start, start + remaining));
                }
            }
        };
        self.slots.iter().filter_map(rest).collect()
    }
}
