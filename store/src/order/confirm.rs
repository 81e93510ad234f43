//! Which replies with ids of `strict` tags are let go. Pure.
//!
//! The promise is that of [`super`], without its condition on clocks: a request that was sent after a reply had been read gets a larger id.
//! The active program reads a request, takes ids of its epoch, and only then sends a *confirmation* to the store: a compare-and-swap on owner and
//! epoch of the lease, durable before it is answered, on the server that granted the epoch. The reply goes when that has succeeded. Why it holds:
//! 1. Within an epoch ids are taken in ascending order, behind the reading of each request.
//! 2. What a later epoch issues lies above all that an earlier one was granted before it. An id that is told was granted before: its range was
//!    published before it was taken, so before the confirmation was sent, and in the store the confirmation stands before the next takeover.
//! 3. So only a request that comes late to the program of an earlier epoch could get a smaller id than one that was read before. But any reply of a newer
//!    epoch was sent after its takeover, and where a confirmation of the older epoch stands, no takeover had been yet. It was sent
//!    after the request had been read; so was each reply of a newer epoch, and whoever read one sent nothing before.
//! 4. A server that was promoted may lack a takeover and say that an older epoch stands. It is another server, and cannot confirm.
//!
//! A clock is in none of that. What it decides is who may try, and how soon. (A store that loses what it has acknowledged while it says that it is
//! the same server breaks it; so the confirmation also fails where the store could.)
//!
//! A confirmation counts as a renewal of the lease: it is written after the program had looked at its clock, and a standby that has
//! read the number before reads another one, so all that is argued of renewals holds of it. A program that confirms is active, and nobody
//! should take its place; one that is stopped confirms nothing.
//!
//! One confirmation is under way at a time, and lets go of all that joined before it was sent. What comes meanwhile joins the next.

use std::collections::VecDeque;

/// Requests that one confirmation lets go at most.
pub const GROUP_REQUESTS_MAX: usize = 4_096;

/// Those who wait for a confirmation.
#[derive(Debug)]
pub struct Confirmations<T> {
    /// In the order in which they came, each with the epoch of its ids.
    waiting: VecDeque<(u64, T)>,
    under_way: Vec<T>,
}

impl<T> Default for Confirmations<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: Vec::new(),
        }
    }
}

impl<T> Confirmations<T> {
    /// Somebody whose request was read, and whose ids of this epoch were taken.
    pub fn join(&mut self, epoch: u64, who: T) {
        self.waiting.push_back((epoch, who));
    }

    /// The epoch that is to be confirmed now, by something that is sent behind this call; nothing while another confirmation is under way, or nobody
    /// waits for one.
    pub fn begin(&mut self) -> Option<u64> {
        if !self.under_way.is_empty() {
            return None;
        }
        let epoch = self.waiting.front()?.0;
        while self.under_way.len() < GROUP_REQUESTS_MAX
            && let Some((_, who)) = self.waiting.pop_front_if(|(its, _)| *its == epoch)
        {
            self.under_way.push(who);
        }
        Some(epoch)
    }

    /// It is known, or nobody will know, whether it stands; for whom it was.
    pub fn end(&mut self) -> Vec<T> {
        std::mem::take(&mut self.under_way)
    }

    /// Nothing more is confirmed; who waits.
    pub fn close(&mut self) -> Vec<T> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut all = self.end();
        all.extend(waiting.into_iter().map(|(_, who)| who));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{Confirmations, GROUP_REQUESTS_MAX};

    #[test]
    fn who_comes_while_one_is_under_way_waits_for_the_next() {
        let mut confirmations = Confirmations::default();
        assert_eq!(confirmations.begin(), None);
        confirmations.join(3, 'a');
        confirmations.join(3, 'b');
        assert_eq!(confirmations.begin(), Some(3));
        confirmations.join(3, 'c');
        assert_eq!(confirmations.begin(), None);
        assert_eq!(confirmations.end(), ['a', 'b']);
        assert_eq!(confirmations.begin(), Some(3));
        assert_eq!(confirmations.end(), ['c']);
    }

    #[test]
    fn a_confirmation_is_of_one_epoch() {
        let mut confirmations = Confirmations::default();
        for (epoch, who) in [(3, 'a'), (4, 'b'), (4, 'c'), (3, 'd')] {
            confirmations.join(epoch, who);
        }
        assert_eq!(confirmations.begin(), Some(3));
        assert_eq!(confirmations.end(), ['a']);
        assert_eq!(confirmations.begin(), Some(4));
        assert_eq!(confirmations.close(), ['b', 'c', 'd']);
        assert_eq!(confirmations.begin(), None);
    }

    #[test]
    fn a_group_has_an_end() {
        let mut confirmations = Confirmations::default();
        (0..=GROUP_REQUESTS_MAX).for_each(|who| confirmations.join(1, who));
        assert_eq!(confirmations.begin(), Some(1));
        assert_eq!(confirmations.end().len(), GROUP_REQUESTS_MAX);
        assert_eq!(confirmations.begin(), Some(1));
        assert_eq!(confirmations.end().len(), 1);
    }
}
