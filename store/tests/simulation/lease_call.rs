//! Leases: taken over, extended, lost.

use keywright_core::{
    BoundRequest, ClockDecision, ClockPolicy, TakeoverPlan, WorkerId, decide, plan_bound,
};
use keywright_store::lease::{
    Claim, Claimant, Era, HeldLease, Standing, TakeoverLimits, Words, plan_claim, standing,
};
use keywright_store::worker_ids::Leasable;

use crate::world::{Fate, Rules, START_MS, World};

/// What became of a transaction about a lease.
#[derive(Debug, Clone)]
pub enum LeaseReply {
    Taken { claim: Claim, held: HeldLease },
    Extended { bound_ms: i64, hi_state: u64 },
    Lost,
}

const LEAD_MS_MAX: u64 = 2_000;
pub const WINDOW_MS: u64 = 500;
const LEASE_MS: i64 = 400;
/// More than all clocks of the simulation can differ.
const SKEW_MS_MAX: u64 = 5_000;
/// Fewer worker ids than issuers: they are fought for.
const WORKER_ID_MAX: u32 = 1;

impl World {
    /// Takes snowflake ids, or sees to the lease.
    pub fn take_snowflakes(&mut self, at: usize) {
        let count = 1 + self.random.u64(..6);
        match self.try_snowflakes(at, count) {
            Some(ids) => ids.into_iter().for_each(|id| self.issue_snowflake(at, id)),
            None => self.see_to_lease(at, count),
        }
    }

    /// As the service does: the clock says of which word.
    fn try_snowflakes(&mut self, at: usize, count: u64) -> Option<Vec<i64>> {
        let layout = self.store.layout;
        let issuer = &mut self.issuers[at];
        issuer.held.as_ref()?;
        let wall_ms = issuer.readings(self.now_ms).wall_ms;
        let decision = decide(
            ClockPolicy::SpareWorker,
            wall_ms,
            issuer.highest_ms,
            0,
            layout.spare_state(),
        );
        let words = match (self.rules, decision) {
            (Rules::SpareBeginsAnew, ClockDecision::IssueSpare) => issuer.spare_anew.as_ref(),
            _ => issuer.words.as_ref(),
        };
        let its = words?.of(decision)?;
        let now = layout.state_at(wall_ms);
        let bits = layout.sequence_bits();
        let first = its.word.take_in_tick(now, count, bits).ok()?;
        issuer.highest_ms = issuer.highest_ms.max(wall_ms);
        if decision == ClockDecision::IssueSpare {
            self.spare_ids += count;
        }
        let ids = (first..first + count).map(|state| layout.compose(state, its.part));
        Some(ids.collect())
    }

    /// Sends a takeover or an extension, unless one is under way.
    pub fn see_to_lease(&mut self, at: usize, need: u64) {
        if self.issuers[at].lease_reply.is_some() {
            return;
        }
        let fate = self.fate();
        let before = self.store.clone();
        let done = match self.issuers[at].held.clone() {
            None => self.take_over(at),
            Some(held) => Some(self.extend(at, held, need)),
        };
        if fate == Fate::NeverDone {
            self.store = before;
        }
        let known = done.filter(|_| fate == Fate::Answered);
        self.issuers[at].lease_reply = Some(known);
    }

    fn take_over(&mut self, at: usize) -> Option<LeaseReply> {
        let layout = self.store.layout;
        let claimant = Claimant {
            owner: self.issuers[at].owner.clone(),
            wanted: self.random.bool().then_some(0),
            worker_id_max: WORKER_ID_MAX,
            leasable: Leasable::ANY,
            layout,
            server: self.store.name(),
            // Words of that mutant have no bound.
            floor_state: if self.rules == Rules::TimeToLiveOnly {
                0
            } else {
                self.issuers[at].next()
            },
            // Nobody brings a store back from the past here.
            last: None,
            gone_back_from_ms: None,
            generation: None,
        };
        let limits = TakeoverLimits {
            now_ms: self.issuers[at].readings(self.now_ms).wall_ms,
            lead_ms_max: LEAD_MS_MAX,
            skew_ms_max: SKEW_MS_MAX,
            window_ms: WINDOW_MS,
        };
        let claim = plan_claim(
            &self.store.lease_rows(self.now_ms),
            &claimant,
            &limits,
            &Era::default(),
        )
        .ok()?;
        let expires_ms = self.now_ms + LEASE_MS;
        let server = self.store.name();
        let lease = self.store.lease_mut(claim.worker_id);
        lease.row.owner = Some(claimant.owner.clone());
        lease.row.epoch = claim.epoch;
        lease.row.hi_ms = claim.plan.bound_ms;
        lease.row.server.clone_from(&server);
        lease.expires_ms = expires_ms;
        Some(LeaseReply::Taken {
            claim,
            held: HeldLease {
                worker_id: claim.worker_id,
                owner: claimant.owner,
                epoch: claim.epoch,
                published_ms: claim.plan.bound_ms,
                attempted_ms: claim.plan.bound_ms,
                server,
                generation: 0,
            },
        })
    }

    fn extend(&mut self, at: usize, held: HeldLease, need: u64) -> LeaseReply {
        let layout = self.store.layout;
        let rows = self.store.lease_rows(self.now_ms);
        let row = rows.iter().find(|row| row.worker_id == held.worker_id);
        let standing = match self.rules {
            Rules::ExtendBlindly => Standing::Ours {
                hi_ms: held.published_ms,
            },
            _ => standing(row, &held, &self.store.name()),
        };
        let Standing::Ours { hi_ms } = standing else {
            return LeaseReply::Lost;
        };
        let issuer = &mut self.issuers[at];
        let readings = issuer.readings(self.now_ms);
        let seen = issuer.clock.observe(readings, 60_000);
        let wall_state = layout.state_at(readings.wall_ms - seen.skew_ms);
        let planned = plan_bound(&BoundRequest {
            layout,
            need_state_end: issuer.next().max(wall_state) + need + (1 << layout.sequence_bits()),
            now_ms: seen.now_ms,
            bound_ms: Some(hi_ms),
            window_ms: WINDOW_MS,
            lead_ms_max: LEAD_MS_MAX,
        });
        let (bound_ms, hi_state) =
            planned.map_or((hi_ms, 0), |plan| (plan.bound_ms, plan.hi_state));
        if let Some(held) = &mut issuer.held {
            held.attempted_ms = bound_ms;
        }
        let expires_ms = self.now_ms + LEASE_MS;
        let lease = self.store.lease_mut(held.worker_id);
        lease.row.hi_ms = bound_ms;
        lease.expires_ms = expires_ms;
        LeaseReply::Extended { bound_ms, hi_state }
    }

    /// The answer arrives, or it is clear that it will not.
    pub fn hear_of_lease(&mut self, at: usize) {
        let (now_ms, layout) = (self.now_ms, self.store.layout);
        let issuer = &mut self.issuers[at];
        match issuer.lease_reply.take() {
            None | Some(None) => {}
            Some(Some(LeaseReply::Lost)) => {
                if let Some(words) = &issuer.words {
                    words.drain();
                }
                issuer.held = None;
            }
            Some(Some(LeaseReply::Extended { bound_ms, hi_state })) => {
                if let Some(held) = &mut issuer.held {
                    held.published_ms = bound_ms;
                }
                let words = issuer.words.iter().chain(&issuer.spare_anew);
                words.for_each(|words| words.publish(0, hi_state));
            }
            Some(Some(LeaseReply::Taken { claim, held })) => {
                self.takeovers += 1;
                if self.is_verbose() {
                    println!(
                        "  takes worker id {} epoch {} from {} to {}: {:?}",
                        claim.worker_id,
                        claim.epoch,
                        claim.plan.start_ms - START_MS,
                        claim.plan.bound_ms - START_MS,
                        claim.plan.reason
                    );
                }
                let issuer = &mut self.issuers[at];
                let readings = issuer.readings(now_ms);
                let worker = WorkerId::new(i64::from(held.worker_id), &layout).ok();
                issuer.held = Some(held);
                issuer
                    .clock
                    .start_past_gap(readings, claim.plan.start_ms, LEAD_MS_MAX);
                let plan = match self.rules {
                    // No bound: from now on, until told that the lease is gone.
                    Rules::TimeToLiveOnly => TakeoverPlan {
                        start_state: layout.state_at(readings.wall_ms),
                        hi_state: u64::MAX >> 1,
                        ..claim.plan
                    },
                    _ => claim.plan,
                };
                issuer.words = Some(Words::new(worker, &layout, &plan));
                let anew = TakeoverPlan {
                    start_state: 0,
                    ..plan
                };
                issuer.spare_anew = Some(Words::new(worker, &layout, &anew));
            }
        }
    }

    /// A clean stop gives the lease up.
    pub fn release_lease(&mut self, at: usize) {
        let Some(held) = self.issuers[at].held.clone() else {
            return;
        };
        let lease = self.store.lease_mut(held.worker_id);
        if lease.row.owner.as_ref() == Some(&held.owner) && lease.row.epoch == held.epoch {
            lease.row.owner = None;
        }
    }
}
