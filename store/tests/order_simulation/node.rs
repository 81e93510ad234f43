//! A program: its candidate, its ranges, and the loop that serves clients, one step at a time, so that it can be stopped between any two.

mod confirming;

use std::collections::VecDeque;

use fastrand::Rng;
use keywright_store::order::ranges::OrderedRanges;
use keywright_store::order::{Action, Candidate, Tenure, Written};

use crate::store::{Answer, Ask};
use confirming::Confirming;

/// A rule with a known fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Whether the program is active is looked at when a loop begins, and then requests are read and answered.
    CheckOncePerLoop,
    /// The deadline is compared with the clock as it was before the request was read.
    ClockBeforeRequest,
    /// Whoever takes over names the epoch that he has seen, and not the renewal.
    TakeOverWithoutRenewal,
    /// The deadline counts from the answer to the renewal.
    DeadlineFromAnswer,
    /// A standby counts the time to live from when it asked.
    WatchedSinceAsked,
    /// What is left of ranges is used when the program is active again.
    RangesOfAnyEpoch,
    /// The store reserves for whoever asks.
    ReserveInAnyEpoch,
    /// A range counts as one of the epoch in which its answer came.
    RangesOfWhenTheyCome,
    /// A program that gives up stops when the store has answered.
    ReleaseBeforeStopping,
    /// A reply is let go by a confirmation that was under way when its request was read.
    JoinUnderWay,
    /// A confirmation is written whoever has the lease, and in whichever epoch.
    ConfirmWithoutEpoch,
    /// Replies go when nobody knows whether the confirmation stands.
    LetGoOnUnknown,
    /// Any server of the store may confirm.
    ConfirmOnAnyServer,
    /// A program takes the lease by its own number of groups, whatever the store's is.
    NumberNotRead,
    /// The number of groups is changed while a program may be active.
    DivideWithoutWaiting,
    /// The number of groups is changed, and the leases are left as they are.
    DivideWithoutEpoch,
}

/// A request of a client.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub client: usize,
    pub number: u64,
    /// The largest id that anybody had read when it was sent.
    pub floor: u64,
}

/// What a program tells a client; no id: it should ask another.
#[derive(Debug, Clone, Copy)]
pub struct Reply {
    pub request: Request,
    pub id: Option<u64>,
}

/// Where the loop that serves is.
#[derive(Debug, Clone, Copy)]
enum Serving {
    Idle,
    Began(Seen),
    Read(Seen, Request),
    /// Of which epoch, too.
    Taken(Seen, Reply, u64),
}

/// What it has seen when it began.
#[derive(Debug, Clone, Copy)]
struct Seen {
    clock_ms: u64,
    tenure: Option<Tenure>,
    /// Whether it began with this request.
    is_first: bool,
}

/// Something that was asked of the store and is not answered.
#[derive(Debug, Clone)]
struct Pending {
    number: u64,
    ask: Ask,
    sent_ms: u64,
}

/// Longer no answer about the lease is waited for, milliseconds.
const LEASE_MS_MAX: u64 = 60;
/// Nor one with a range.
const RESERVE_MS_MAX: u64 = 400;
/// Ids of a range.
const RANGE: u64 = 40;
/// Percent that are left when the next one is reserved.
const REFILL_PERCENT: u32 = 50;

pub struct Node {
    pub owner: String,
    /// Into how many groups it divides slots.
    pub groups: usize,
    pub stopped_until: u64,
    pub cut_off_until: u64,
    pub inbox: VecDeque<Request>,
    candidate: Candidate,
    ranges: OrderedRanges,
    serving: Serving,
    lease: Option<Pending>,
    reserving: Option<Pending>,
    asks: u64,
    /// Of its clock, per thousand, and where it began.
    rate: u64,
    offset_ms: u64,
    /// Whether the tag is strict: then clocks are wild.
    is_strict: bool,
    confirming: Confirming,
    flaws: &'static [Flaw],
    pub late: u64,
    /// How often it was told that another has the lease while its own time was not over, and when last.
    pub robbed: u64,
    robbed_at: Option<u64>,
    ttl_ms: u64,
    /// It took the lease sooner after that than it should.
    pub too_soon: Option<String>,
}

impl Node {
    pub fn new(
        owner: String,
        ttl_ms: u64,
        is_strict: bool,
        rng: &mut Rng,
        flaws: &'static [Flaw],
    ) -> Node {
        let rate = match is_strict && rng.bool() {
            true => rng.u64(50..=5_000),
            false => rng.u64(970..=1_030),
        };
        Node {
            candidate: Candidate::new(ttl_ms),
            owner,
            groups: 1,
            stopped_until: 0,
            cut_off_until: 0,
            inbox: VecDeque::new(),
            ranges: OrderedRanges::default(),
            serving: Serving::Idle,
            lease: None,
            reserving: None,
            asks: 0,
            rate,
            offset_ms: rng.u64(0..100_000),
            is_strict,
            confirming: Confirming::default(),
            flaws,
            late: 0,
            robbed: 0,
            robbed_at: None,
            ttl_ms,
            too_soon: None,
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }

    pub fn clock_ms(&self, now: u64) -> u64 {
        self.offset_ms + now * self.rate / 1_000
    }

    /// Its clock is set, or runs otherwise from now on.
    pub fn step_clock(&mut self, rng: &mut Rng) {
        match rng.bool() {
            true => self.offset_ms = rng.u64(0..100_000),
            false => self.rate = rng.u64(50..=5_000),
        }
    }

    fn ask(&mut self, ask: Ask, now: u64) -> Pending {
        self.asks += 1;
        Pending {
            number: self.asks,
            ask,
            sent_ms: self.clock_ms(now),
        }
    }

    /// What it asks of the store now, each with its number.
    pub fn asks(&mut self, now: u64) -> Vec<(u64, Ask)> {
        let clock = self.clock_ms(now);
        let late = |its: &Pending, most_ms: u64| clock >= its.sent_ms.saturating_add(most_ms);
        if let Some(late) = self.lease.take_if(|its| late(its, LEASE_MS_MAX)) {
            self.wrote(&late, Written::Unknown, clock);
        }
        let _ = self.reserving.take_if(|its| late(its, RESERVE_MS_MAX));
        let mut asks = Vec::from_iter(self.ask_to_confirm(now));
        if self.lease.is_none() {
            let ask = match self.candidate.next(clock) {
                Action::Read => Some(Ask::Read),
                Action::Renew { epoch } => Some(Ask::Renew { epoch }),
                Action::TakeOver { seen, epoch } => Some(Ask::TakeOver { seen, epoch }),
                Action::Wait { .. } => None,
            };
            asks.extend(ask.map(|ask| self.ask_for_lease(ask, now)));
        }
        let tenure = self.candidate.tenure();
        if let Some(Tenure { epoch, .. }) = tenure
            && self.reserving.is_none()
            && self.ranges.is_low(self.label(epoch))
        {
            let pending = self.ask(Ask::Reserve { epoch, ids: RANGE }, now);
            asks.push((pending.number, pending.ask.clone()));
            self.reserving = Some(pending);
        }
        asks
    }

    fn ask_for_lease(&mut self, ask: Ask, now: u64) -> (u64, Ask) {
        let clock = self.clock_ms(now);
        if let (Ask::TakeOver { .. }, Some(robbed_at)) = (&ask, self.robbed_at)
            && !self.is_strict
            && clock < robbed_at + 2 * self.ttl_ms
        {
            self.too_soon = Some(format!("robbed at {robbed_at}, and takes at {clock}"));
        }
        let pending = self.ask(ask, now);
        let asked = (pending.number, pending.ask.clone());
        self.lease = Some(pending);
        asked
    }

    fn label(&self, epoch: u64) -> u64 {
        match self.has(Flaw::RangesOfAnyEpoch) {
            true => 1,
            false => epoch,
        }
    }

    /// The store has answered; what is asked of it now.
    pub fn answered(&mut self, number: u64, answer: &Answer, now: u64) -> Option<(u64, Ask)> {
        let clock = self.clock_ms(now);
        if let Some(reserving) = self.reserving.take_if(|its| its.number == number) {
            self.reserved(&reserving.ask, answer, clock);
            return None;
        }
        let confirming = &mut self.confirming.pending;
        if let Some(confirming) = confirming.take_if(|its| its.number == number) {
            self.confirmed(&confirming, *answer == Answer::Written(true), now);
            return None;
        }
        let lease = self.lease.take_if(|its| its.number == number)?;
        match answer {
            Answer::Row(_, groups) if *groups != self.groups && !self.has(Flaw::NumberNotRead) => {}
            Answer::Row(row, _) => {
                let read_ms = match self.has(Flaw::WatchedSinceAsked) {
                    true => lease.sent_ms,
                    false => clock,
                };
                if let Some(Action::TakeOver { seen, epoch }) =
                    self.candidate.has_read(row, read_ms)
                {
                    return Some(self.ask_for_lease(Ask::TakeOver { seen, epoch }, now));
                }
            }
            Answer::Written(true) => self.wrote(&lease, Written::Yes, clock),
            Answer::Written(false) => self.wrote(&lease, Written::No, clock),
            Answer::Granted(_, _) | Answer::Denied => {}
        }
        None
    }

    /// Another has the lease of an epoch.
    fn is_told_of_another(&mut self, epoch: u64, clock: u64) {
        let tenure = self.candidate.tenure();
        if tenure.is_some_and(|its| its.allows(epoch, clock)) {
            self.robbed += 1;
            self.robbed_at = Some(clock);
        }
    }

    fn wrote(&mut self, pending: &Pending, written: Written, clock: u64) {
        let sent_ms = match self.has(Flaw::DeadlineFromAnswer) {
            true => clock,
            false => pending.sent_ms,
        };
        match pending.ask {
            Ask::TakeOver { epoch, .. } => {
                self.candidate.took_over(epoch, written, sent_ms, clock);
            }
            Ask::Renew { epoch } => {
                if written == Written::No {
                    self.is_told_of_another(epoch, clock);
                }
                self.candidate.renewed(epoch, written, sent_ms, clock);
            }
            Ask::Release { .. } if self.has(Flaw::ReleaseBeforeStopping) => {
                let _ = self.candidate.demote(clock);
            }
            Ask::Read | Ask::Release { .. } | Ask::Reserve { .. } | Ask::Confirm { .. } => {}
        }
    }

    fn reserved(&mut self, ask: &Ask, answer: &Answer, clock: u64) {
        let (Ask::Reserve { epoch, .. }, tenure) = (ask, self.candidate.tenure()) else {
            return;
        };
        match answer {
            Answer::Granted(start, end) => {
                let epoch = match (self.has(Flaw::RangesOfWhenTheyCome), tenure) {
                    (true, Some(now)) => now.epoch,
                    (true, None) | (false, _) => *epoch,
                };
                let label = self.label(epoch);
                self.ranges.publish(label, (*start, *end), REFILL_PERCENT);
            }
            Answer::Denied => {
                self.is_told_of_another(*epoch, clock);
                self.candidate.lost(*epoch, clock);
            }
            Answer::Row(_, _) | Answer::Written(_) => {}
        }
    }

    /// It is told to let another one be active; what it asks of the store.
    pub fn demote(&mut self, now: u64) -> Option<(u64, Ask)> {
        let clock = self.clock_ms(now);
        let epoch = match self.has(Flaw::ReleaseBeforeStopping) {
            true => self.candidate.tenure().map(|its| its.epoch),
            false => self.candidate.demote(clock),
        };
        Some(self.ask_for_lease(Ask::Release { epoch: epoch? }, now))
    }

    /// One step of the loop that serves.
    pub fn serve(&mut self, now: u64) -> Option<Reply> {
        if let Some(freed) = self.freed() {
            return Some(freed);
        }
        let clock_ms = self.clock_ms(now);
        let seen = Seen {
            clock_ms,
            tenure: self.candidate.tenure(),
            is_first: true,
        };
        match self.serving {
            Serving::Idle => self.serving = Serving::Began(seen),
            Serving::Began(seen) => match self.inbox.pop_front() {
                Some(request) => self.serving = Serving::Read(seen, request),
                // What it waits in wakes up with the next request.
                None if seen.is_first => {}
                None => self.serving = Serving::Idle,
            },
            Serving::Read(seen, request) => {
                let id = self.take(seen, clock_ms);
                let epoch = self.candidate.tenure().map_or(0, |its| its.epoch);
                let reply = Reply { request, id };
                self.serving = Serving::Taken(seen, reply, epoch);
            }
            Serving::Taken(seen, reply, epoch) => {
                self.serving = match self.has(Flaw::CheckOncePerLoop) {
                    true => Serving::Began(Seen {
                        is_first: false,
                        ..seen
                    }),
                    false => Serving::Idle,
                };
                if !self.is_strict || reply.id.is_none() {
                    return Some(reply);
                }
                self.hold(reply, epoch, now);
            }
        }
        None
    }

    fn take(&mut self, seen: Seen, clock_ms: u64) -> Option<u64> {
        let (tenure, clock_ms) = if self.has(Flaw::CheckOncePerLoop) && !seen.is_first {
            (seen.tenure?, seen.clock_ms)
        } else if self.has(Flaw::ClockBeforeRequest) {
            (self.candidate.tenure()?, seen.clock_ms)
        } else {
            (self.candidate.tenure()?, clock_ms)
        };
        if !tenure.allows(tenure.epoch, clock_ms) {
            self.late += 1;
            return None;
        }
        self.ranges.take(self.label(tenure.epoch), 1)
    }
}
