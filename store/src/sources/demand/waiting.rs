//! Who waits, for how much, and which requests are put off because they are too large at the moment.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::failure::Failure;

/// So many sizes are put off apart from each other.
const PUT_OFFS_MAX: usize = 64;

/// The requests that wait now. One that is answered, gives up or is dropped is not counted any more.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Waiters>);

#[derive(Debug, Default)]
struct Waiters {
    all: u32,
    /// How many want so many keys.
    by_need: BTreeMap<u64, u32>,
}

impl Waiting {
    /// A place for one more; `None` when there are as many as may wait already.
    pub(super) fn enter(&self, need: u64, waiters_max: u32) -> Option<WaiterSlot<'_>> {
        let mut waiters = self.waiters();
        if waiters.all >= waiters_max {
            return None;
        }
        waiters.all += 1;
        *waiters.by_need.entry(need).or_default() += 1;
        Some(WaiterSlot {
            waiting: self,
            need,
        })
    }

    /// The most that somebody waits for, of what is less than `limit`; 0 when nobody does.
    pub(super) fn most_below(&self, limit: u64) -> u64 {
        let waiters = self.waiters();
        let most = waiters.by_need.range(..limit).next_back();
        most.map_or(0, |(need, _)| *need)
    }

    /// Whether nobody does.
    pub(super) fn is_empty(&self) -> bool {
        self.waiters().all == 0
    }

    fn leave(&self, need: u64) {
        let mut waiters = self.waiters();
        waiters.all = waiters.all.saturating_sub(1);
        if let Some(count) = waiters.by_need.get_mut(&need) {
            *count -= 1;
            if *count == 0 {
                waiters.by_need.remove(&need);
            }
        }
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those who wait, given back also when the waiting statement is dropped.
pub(super) struct WaiterSlot<'a> {
    waiting: &'a Waiting,
    need: u64,
}

impl Drop for WaiterSlot<'_> {
    fn drop(&mut self) {
        self.waiting.leave(self.need);
    }
}

/// Whether waiting may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// It may pass by itself: statements wait.
    MayPass,
    /// Somebody must do something: statements fail at once.
    Stays,
}

/// Requests that are not served for some time, because they are too large, while smaller ones are.
#[derive(Debug, Clone)]
pub(crate) struct PutOff {
    /// Requests for so many keys or more.
    pub(crate) need: u64,
    /// They are not tried again before.
    pub(crate) until: Instant,
    /// Their error.
    pub(crate) failure: Failure,
    /// Whether they may be served then.
    pub(crate) outlook: Outlook,
}

impl PutOff {
    /// Whether waiting until then does not help.
    pub(super) fn outlasts(&self, deadline: Instant) -> bool {
        match self.outlook {
            Outlook::Stays => true,
            Outlook::MayPass => self.until > deadline,
        }
    }
}

/// All that is put off. What is over stays until the task has looked at it.
#[derive(Debug, Default)]
pub(super) struct PutOffs(Mutex<Vec<PutOff>>);

impl PutOffs {
    /// Puts requests off. True when nothing was before.
    pub(super) fn add(&self, put_off: PutOff) -> bool {
        let mut all = self.all();
        // What was put off longer includes what is put off for less time.
        all.retain(|old| old.need < put_off.need || old.until > put_off.until);
        all.push(put_off);
        // The largest are put off with those that are smaller, if for less time.
        if all.len() > PUT_OFFS_MAX
            && let Some((largest, _)) = all.iter().enumerate().max_by_key(|(_, old)| old.need)
        {
            all.swap_remove(largest);
        }
        all.len() == 1
    }

    pub(super) fn clear(&self) {
        self.all().clear();
    }

    /// Forgets what is over.
    pub(super) fn expire(&self, now: Instant) {
        self.all().retain(|put_off| put_off.until > now);
    }

    /// When the first one is over, or was.
    pub(super) fn first_end(&self) -> Option<Instant> {
        self.all().iter().map(|put_off| put_off.until).min()
    }

    /// The smallest request that is put off.
    pub(super) fn smallest(&self, now: Instant) -> Option<PutOff> {
        let all = self.all();
        let active = all.iter().filter(|put_off| put_off.until > now);
        active.min_by_key(|put_off| put_off.need).cloned()
    }

    /// What concerns a request for so many the longest.
    pub(super) fn of(&self, need: u64, now: Instant) -> Option<PutOff> {
        let all = self.all();
        all.iter()
            .filter(|put_off| put_off.need <= need && put_off.until > now)
            .max_by_key(|put_off| (put_off.outlook == Outlook::Stays, put_off.until))
            .cloned()
    }

    fn all(&self) -> MutexGuard<'_, Vec<PutOff>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use keywright_core::Cause;
    use tokio::time::Instant;

    use super::{Outlook, PUT_OFFS_MAX, PutOff, PutOffs, Waiting};
    use crate::failure::Failure;

    #[test]
    fn who_is_gone_is_not_counted() {
        let waiting = Waiting::default();
        let small = waiting.enter(3, 3).unwrap();
        let large = waiting.enter(800_000, 3).unwrap();
        let other = waiting.enter(800_000, 3).unwrap();
        assert!(waiting.enter(1, 3).is_none());
        assert_eq!(waiting.most_below(u64::MAX), 800_000);
        assert_eq!(waiting.most_below(800_000), 3);
        drop(large);
        assert_eq!(waiting.most_below(u64::MAX), 800_000);
        drop(other);
        assert_eq!(waiting.most_below(u64::MAX), 3);
        assert_eq!(waiting.most_below(3), 0);
        assert!(!waiting.is_empty());
        assert!(waiting.enter(1, 3).is_some());
        drop(small);
        assert_eq!(waiting.most_below(u64::MAX), 0);
        assert!(waiting.is_empty());
    }

    #[test]
    fn only_what_is_as_large_is_put_off() {
        let now = Instant::now();
        let put_off = |need, ms| PutOff {
            need,
            until: now + Duration::from_millis(ms),
            failure: Failure::new(Cause::LeadExceeded, format!("{need}")),
            outlook: Outlook::MayPass,
        };
        let all = PutOffs::default();
        assert!(all.add(put_off(1_000, 50)));
        assert!(!all.add(put_off(10, 20)));
        assert!(all.of(9, now).is_none());
        assert_eq!(all.of(10, now).unwrap().need, 10);
        assert_eq!(all.of(2_000, now).unwrap().need, 1_000);
        assert_eq!(all.smallest(now).unwrap().need, 10);
        assert_eq!(all.first_end(), Some(now + Duration::from_millis(20)));
        let later = now + Duration::from_millis(20);
        assert!(all.of(999, later).is_none());
        all.expire(later);
        assert_eq!(all.first_end(), Some(now + Duration::from_millis(50)));
        // Put off for longer from less on: that is all there is to know.
        all.add(put_off(1, 60));
        assert_eq!(all.of(2_000, now).unwrap().need, 1);
        all.clear();
        assert!(all.smallest(now).is_none());
        // Each smaller than the one before, and for less time.
        for need in (1..=1_000).rev() {
            all.add(put_off(need, need));
        }
        assert_eq!(all.all().len(), PUT_OFFS_MAX);
        assert_eq!(all.smallest(now).unwrap().need, 1);
        assert!(all.of(1_000, now).is_some());
    }
}
