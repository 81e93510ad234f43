//! Reservations, their answers, and rests that are handed back.

use keywright_core::TagExhausted;
use keywright_core::residue::Residue;
use keywright_store::reserve::{
    Ask, LastReservation, Reservation, Returned, TagRow, choose_returned, has_gone_back,
    number_past_rest, plan_reservation,
};

use crate::world::{Fate, Rules, World};

/// A range that was granted.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    pub start: u64,
    pub end: u64,
    pub row: TagRow,
    pub server: u32,
    pub was_returned: bool,
}

impl World {
    /// Takes ids of the tag, or asks for more.
    pub fn take_tag(&mut self, at: usize) {
        let count = 1 + self.random.u64(..9);
        let first = if self.rules == Rules::FetchAdd {
            self.take_mutant(at, count)
        } else {
            self.issuers[at].buffer.take(count)
        };
        match first {
            Some(first) => (first..first + count).for_each(|id| self.issue_tag(at, id)),
            None => self.reserve(at, count),
        }
        if self.issuers[at].buffer.is_low() {
            self.reserve(at, 0);
        }
    }

    /// The addition is done first and compared afterwards, and publication only raises the bound.
    fn take_mutant(&mut self, at: usize, count: u64) -> Option<u64> {
        let (next, hi) = &mut self.issuers[at].mutant;
        let first = *next;
        *next += count;
        (*next <= *hi).then_some(first)
    }

    /// Sends a reservation, unless one is under way.
    fn reserve(&mut self, at: usize, need: u64) {
        if self.issuers[at].tag_reply.is_some() {
            return;
        }
        let fate = self.fate();
        let before = self.store.clone();
        let granted = self.transact(at, need);
        let known = match fate {
            Fate::Answered => granted,
            Fate::AnswerLost => None,
            Fate::NeverDone => {
                self.store = before.clone();
                None
            }
        };
        if self.is_verbose() {
            let range = granted.map(|grant| (grant.start, grant.end, grant.was_returned));
            println!(
                "  reserves {range:?} on server {}: {fate:?}",
                self.store.server
            );
        }
        if fate != Fate::NeverDone {
            self.lagging = Some((before, granted.filter(|grant| !grant.was_returned)));
        }
        // The mutant believes what it sent.
        let believed = if self.rules == Rules::PublishUnknown {
            granted
        } else {
            known
        };
        self.issuers[at].tag_reply = Some(believed);
    }

    fn transact(&mut self, at: usize, need: u64) -> Option<Grant> {
        let issuer = &self.issuers[at];
        let row = self.row();
        let floor = issuer.buffer.hi();
        let server = self.store.server;
        if self.store.last.0 != server
            && !matches!(
                self.rules,
                Rules::KeepForeignRests | Rules::KeepUnlessLookedFor
            )
        {
            self.store.returned.clear();
        }
        if issuer.look_for_returned {
            if self.rules != Rules::KeepForeignRests {
                self.store.returned.retain(|(_, on)| *on == server);
            }
            let ranges: Vec<Returned> = self
                .store
                .returned
                .iter()
                .map(|(range, _)| *range)
                .collect();
            if let Some(range) = choose_returned(&ranges, floor) {
                self.store
                    .returned
                    .retain(|(other, _)| other.key != range.key);
                self.store.number = number_past_rest(&row).unwrap_or(row.number);
                return Some(Grant {
                    start: range.start,
                    end: range.end,
                    row,
                    server,
                    was_returned: true,
                });
            }
        }
        let uptime_ms = self.now_ms.unsigned_abs();
        let ask = Ask {
            residue: Residue::ALL,
            want: issuer.steps.want(&row, uptime_ms),
            need,
            floor,
            now_ms: self.now_ms,
        };
        if has_gone_back(&row, floor, self.now_ms) {
            return None;
        }
        let planned: Result<Reservation, TagExhausted> = plan_reservation(&row, &ask);
        let planned = planned.ok()?;
        self.store.number = planned.number;
        self.store.last = (
            server,
            planned.recorded.at_ms,
            planned.recorded.ids,
            planned.recorded.rate_per_s,
        );
        Some(Grant {
            start: planned.start,
            end: planned.end,
            row,
            server,
            was_returned: false,
        })
    }

    fn row(&self) -> TagRow {
        let row = self.store.row();
        let forgiving = |last: LastReservation| LastReservation {
            same_server: last.same_server || self.rules == Rules::NoGap,
            ..last
        };
        TagRow {
            last: row.last.map(forgiving),
            ..row
        }
    }

    /// The answer to a reservation arrives, or it is clear that it will not.
    pub fn hear_of_tag(&mut self, at: usize) {
        let uptime_ms = self.now_ms.unsigned_abs();
        let issuer = &mut self.issuers[at];
        let Some(Some(grant)) = issuer.tag_reply.take() else {
            return;
        };
        if !issuer.origins.contains(&grant.server) {
            issuer.origins.push(grant.server);
        }
        if self.rules == Rules::FetchAdd {
            if issuer.mutant.1 == 0 {
                issuer.mutant.0 = grant.start;
            }
            issuer.mutant = (issuer.mutant.0, grant.end);
            return;
        }
        issuer.buffer.publish(grant.start, grant.end, 50);
        if grant.was_returned {
            self.returned_used += 1;
        } else {
            issuer.look_for_returned = false;
            issuer.steps.reserved(&grant.row, uptime_ms);
        }
    }

    /// A clean stop: the rest goes back, if it was reserved where it is handed back; the process ends and another begins.
    pub fn stop(&mut self, at: usize) {
        let issuer = &self.issuers[at];
        let origins = issuer.origins.clone();
        let rests = issuer.buffer.take_rest();
        if origins == [self.store.server] && self.fate() != Fate::NeverDone {
            for (start, end) in &rests {
                self.store.keys += 1;
                let range = Returned {
                    key: self.store.keys,
                    start: *start,
                    end: *end,
                };
                self.store.returned.push((range, self.store.server));
            }
        }
        if self.rules == Rules::HandBackAndKeep
            && let Some((start, end)) = rests.last()
        {
            // It had been promised to a statement already.
            for id in *start..(*start + 3).min(*end) {
                self.issue_tag(at, id);
            }
        }
        self.release_lease(at);
        self.crash(at);
    }
}
