//! Ranges of an ordered tag: one in use, the next already there. Ids are taken in ascending order, so whoever moves on gives the rest up.

/// What one program has of an ordered tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderedRanges {
    /// In which all of it was reserved.
    epoch: u64,
    current: Range,
    following: Range,
    /// The last id that was issued, in this epoch or before; 0: none.
    last: u64,
    /// A refill is due when so few are left.
    refill_left: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Range {
    next: u64,
    end: u64,
}

impl Range {
    fn left(self) -> u64 {
        self.end.saturating_sub(self.next)
    }
}

impl OrderedRanges {
    /// Takes `count` consecutive ids in an epoch, and returns the first.
    pub fn take(&mut self, epoch: u64, count: u64) -> Option<u64> {
        if self.epoch != epoch || count == 0 {
            return None;
        }
        if self.current.left() < count {
            if self.following.left() < count {
                return None;
            }
            self.current = std::mem::take(&mut self.following);
        }
        let first = self.current.next;
        self.current.next = first.checked_add(count)?;
        self.last = self.current.next.saturating_sub(1);
        Some(first)
    }

    /// The last id that was issued, whoever did; 0: none can have been. `None`: nothing was reserved in this epoch yet.
    #[must_use]
    pub fn last(&self, epoch: u64) -> Option<u64> {
        (self.epoch == epoch && self.current.end > 0).then_some(self.last)
    }

    /// Adds a range that was reserved in an epoch. What is left of older epochs is given up. False: it lies below what is there.
    pub fn publish(&mut self, epoch: u64, (start, end): (u64, u64), refill_percent: u32) -> bool {
        if epoch < self.epoch || start >= end {
            return false;
        }
        if epoch > self.epoch {
            *self = Self {
                epoch,
                // Whoever issued before can have come so far.
                last: start.saturating_sub(1),
                ..Self::default()
            };
        }
        let added = Range { next: start, end };
        let hi = self.current.end.max(self.following.end);
        if start < hi {
            return false;
        }
        if self.current.end == 0 {
            self.current = added;
        } else if self.following.end > 0 && self.following.end == start {
            self.following.end = end;
        } else if self.following.end == 0 && self.current.end == start {
            self.current.end = end;
        } else {
            if self.following.left() > 0 {
                self.current = self.following;
            }
            self.following = added;
        }
        let percent = u64::from(refill_percent.min(100));
        self.refill_left = end.saturating_sub(start).saturating_mul(percent) / 100;
        true
    }

    /// Gives up what is left. Whether there was something.
    pub fn give_up(&mut self) -> bool {
        let had_some = self.remaining(self.epoch) > 0;
        self.current.next = self.current.end;
        self.following.next = self.following.end;
        had_some
    }

    /// Whether so few are left in an epoch that a refill is due.
    #[must_use]
    pub fn is_low(&self, epoch: u64) -> bool {
        self.remaining(epoch) <= self.refill_left
    }

    /// Ids left in an epoch.
    #[must_use]
    pub fn remaining(&self, epoch: u64) -> u64 {
        match self.epoch == epoch {
            true => self.current.left().saturating_add(self.following.left()),
            false => 0,
        }
    }

    /// The most that one request can have in an epoch.
    #[must_use]
    pub fn longest(&self, epoch: u64) -> u64 {
        match self.epoch == epoch {
            true => self.current.left().max(self.following.left()),
            false => 0,
        }
    }

    /// The first id above all that was ever reserved here.
    #[must_use]
    pub fn hi(&self) -> u64 {
        self.current.end.max(self.following.end)
    }
}

#[cfg(test)]
mod tests {
    use super::OrderedRanges;

    #[test]
    fn who_moves_on_gives_the_rest_up() {
        let mut ranges = OrderedRanges::default();
        assert!(ranges.publish(1, (1, 11), 50));
        assert_eq!(ranges.take(1, 8), Some(1));
        assert!(ranges.publish(1, (50, 60), 50));
        assert_eq!(ranges.take(1, 5), Some(50));
        // 9 and 10 are left, and lie below.
        assert_eq!(ranges.take(1, 1), Some(55));
        assert_eq!(ranges.last(1), Some(55));
    }

    #[test]
    fn nothing_is_taken_in_another_epoch() {
        let mut ranges = OrderedRanges::default();
        assert!(ranges.publish(3, (1, 11), 50));
        assert_eq!(ranges.take(3, 1), Some(1));
        assert_eq!(ranges.take(4, 1), None);
        assert_eq!(ranges.take(2, 1), None);
        assert_eq!(ranges.last(4), None);
        assert!(ranges.publish(5, (100, 110), 50));
        assert_eq!(ranges.last(5), Some(99));
        assert_eq!(ranges.take(3, 1), None);
        assert!(!ranges.publish(3, (200, 210), 50));
        assert_eq!(ranges.take(5, 10), Some(100));
        assert_eq!(ranges.take(5, 1), None);
    }

    #[test]
    fn what_is_given_up_is_not_taken() {
        let mut ranges = OrderedRanges::default();
        assert!(!ranges.give_up());
        assert!(ranges.publish(1, (1, 11), 50));
        assert!(ranges.publish(1, (50, 60), 50));
        assert_eq!(ranges.take(1, 1), Some(1));
        assert!(ranges.give_up());
        assert_eq!(ranges.take(1, 1), None);
        assert_eq!((ranges.last(1), ranges.hi()), (Some(1), 60));
        assert!(!ranges.publish(1, (55, 65), 50));
        assert!(ranges.publish(1, (60, 70), 50));
        assert_eq!(ranges.take(1, 1), Some(60));
    }

    #[test]
    fn ranges_that_continue_are_one() {
        let mut ranges = OrderedRanges::default();
        assert!(ranges.publish(1, (1, 11), 50));
        assert!(ranges.publish(1, (11, 21), 50));
        assert_eq!(ranges.take(1, 15), Some(1));
        assert!(!ranges.publish(1, (5, 9), 50));
        assert_eq!((ranges.remaining(1), ranges.longest(1)), (5, 5));
        assert!(ranges.is_low(1));
    }
}
