//! How the number of slot groups becomes another one. Pure.
//!
//! It is one number in the store. A program takes a lease only if it has read, with the lease or behind it, that the number is its own. The change
//! is a compare-and-swap on *all* leases, each as it was read, which raises the epoch of each and writes the number. Why two programs with
//! other numbers are never both active for one tag:
//! 1. Whoever changes the number waits for each lease as a program does that wants to take it: until it was released, or was looked at for its whole
//!    time to live. So when the change stands nobody is active, by [`super`]'s argument, and no confirmation of an epoch before it can
//!    stand.
//! 2. All leases that there can ever be are there before they are read: none is made later, unseen by the change.
//! 3. A takeover is a compare-and-swap, too. Between its read of the number and its success the lease has not changed, so neither has the
//!    number: whoever is active has the number that the store has, and that stays so as long as he is.
//! 4. Epochs of a lease only grow, also over changes there and back; so ranges of a tag that were granted by another lease, or by this one before, are
//!    of other epochs, or of none that comes again in a program that keeps one number while it runs.

use super::{Action, Candidate, Holder, LeaseRow, Renewal};

/// Whoever changes the number, and what he has seen of all leases.
#[derive(Debug)]
pub struct Dividing {
    candidates: Vec<Candidate>,
    first: Vec<Renewal>,
    ttl_ms: u64,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read them again.
    Wait,
    /// Change the number, if all of these still stand.
    Change(Vec<Renewal>),
    /// Nothing: a program is active by the lease at this place.
    IsActive(usize),
}

impl Dividing {
    /// Of whoever begins. `ttl_ms`: how long leases are looked at that say nothing themselves.
    #[must_use]
    pub fn new(ttl_ms: u64) -> Self {
        Self {
            candidates: Vec::new(),
            first: Vec::new(),
            ttl_ms,
        }
    }

    /// All leases were read, in their order; the clock, behind that.
    pub fn has_read(&mut self, rows: &[LeaseRow], now_ms: u64) -> Step {
        if self.first.len() != rows.len() {
            self.first = rows.iter().map(|row| row.renewal.clone()).collect();
            let candidates = rows.iter().map(|_| Candidate::new(self.ttl_ms));
            self.candidates = candidates.collect();
        }
        let mut seen = Vec::new();
        let first = self.candidates.iter_mut().zip(&self.first);
        for (at, (row, (candidate, first))) in rows.iter().zip(first).enumerate() {
            let is_held = match row.holder {
                Holder::Program { .. } => true,
                Holder::Nobody => false,
            };
            if is_held && row.renewal != *first {
                return Step::IsActive(at);
            }
            if let Some(Action::TakeOver { seen: its, .. }) = candidate.has_read(row, now_ms) {
                seen.push(its);
            }
        }
        match seen.len() == rows.len() {
            true => Step::Change(seen),
            false => Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Holder, LeaseRow, Renewal};
    use super::{Dividing, Step};

    const TTL_MS: u64 = 1_000;

    fn row(number: u64, holder: Holder) -> LeaseRow {
        LeaseRow {
            renewal: Renewal {
                server: "one".to_owned(),
                epoch: 1,
                number,
            },
            holder,
        }
    }

    fn held(number: u64, ttl_ms: u64) -> LeaseRow {
        let program = Holder::Program {
            owner: "other".to_owned(),
            address: "other:1".to_owned(),
            ttl_ms,
        };
        row(number, program)
    }

    #[test]
    fn leases_that_were_released_are_waited_for_by_nobody() {
        let rows = [row(3, Holder::Nobody), row(8, Holder::Nobody)];
        let seen = rows.iter().map(|row| row.renewal.clone()).collect();
        let mut dividing = Dividing::new(TTL_MS);
        assert_eq!(dividing.has_read(&rows, 5), Step::Change(seen));
    }

    #[test]
    fn each_lease_is_waited_for_as_long_as_it_lives() {
        let rows = [row(3, Holder::Nobody), held(8, 3 * TTL_MS)];
        let mut dividing = Dividing::new(TTL_MS);
        assert_eq!(dividing.has_read(&rows, 0), Step::Wait);
        assert_eq!(dividing.has_read(&rows, 3 * TTL_MS - 1), Step::Wait);
        let Step::Change(seen) = dividing.has_read(&rows, 3 * TTL_MS) else {
            panic!("it was looked at long enough");
        };
        assert_eq!(seen[1], rows[1].renewal);
    }

    #[test]
    fn who_renews_is_active() {
        let mut dividing = Dividing::new(TTL_MS);
        let free = row(3, Holder::Nobody);
        assert_eq!(
            dividing.has_read(&[free.clone(), held(8, TTL_MS)], 0),
            Step::Wait
        );
        let renewed = [free, held(9, TTL_MS)];
        assert_eq!(dividing.has_read(&renewed, 10), Step::IsActive(1));
        // One that is taken meanwhile, too.
        let mut dividing = Dividing::new(TTL_MS);
        let taken = [held(4, TTL_MS), held(8, TTL_MS)];
        let before = [row(3, Holder::Nobody), held(8, TTL_MS)];
        assert_eq!(dividing.has_read(&before, 0), Step::Wait);
        assert_eq!(dividing.has_read(&taken, 10), Step::IsActive(0));
    }
}
