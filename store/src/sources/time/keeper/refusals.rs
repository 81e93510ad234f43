//! Refusals, and the errors for statements that wait: a worker id that cannot be had, a bound that may not go so far.

use std::time::Duration;

use keywright_core::{BoundRefusal, BoundRequest, Cause, plan_bound};
use tokio::time::Instant;

use super::{Keeper, PauseMs, SUPERSEDED_HINT};
use crate::failure::Failure;
use crate::lease::space::Space;
use crate::lease::{BEFORE_EPOCH_HINT, NoLease};
use crate::sources::demand::{Outlook, PutOff};
use crate::sources::time::supply::BULK_HINT;

/// After that long what was put off is looked at again, whatever it was put off for.
const PUT_OFF_MS_MAX: u64 = 60_000;

/// After that long a clock is read again that reads a moment before all ids.
const CLOCK_LOOK_MS: u64 = 1_000;

impl Keeper {
    /// The lease is ours, and the bound may not go so far now. Requests as large as this one are put off; smaller ones, and
    /// ids below the bound, go on.
    pub(super) fn refused(&self, refusal: BoundRefusal, request: &BoundRequest, need: u64) {
        let space = self.supply.space.name();
        let refusal = self.until_the_clock_goes(refusal);
        let (failure, outlook, ms) = match refusal {
            BoundRefusal::TooFarAhead {
                lead_ms: _,
                retry_after_ms,
            } if self.is_too_large(request, need) => {
                let failure = Failure::new(
                    Cause::LeadExceeded,
                    format!(
                        "{need} {space} keys at once would run further ahead of the clock than the {} ms that are allowed",
                        request.lead_ms_max
                    ),
                );
                (failure.hint(BULK_HINT), Outlook::Stays, retry_after_ms)
            }
            BoundRefusal::TooFarAhead {
                lead_ms: _,
                retry_after_ms,
            } => {
                let failure = Failure::new(Cause::LeadExceeded, format!("{space} keys: {refusal}"));
                (failure, Outlook::MayPass, retry_after_ms)
            }
            BoundRefusal::LayoutRanOut => {
                let failure = Failure::new(Cause::LayoutRanOut, format!("{space} keys: {refusal}"));
                (failure, Outlook::Stays, PUT_OFF_MS_MAX)
            }
            BoundRefusal::BeforeEpoch(before) => {
                let failure = self.no_lease(&NoLease::BeforeEpoch(before));
                (failure, Outlook::Stays, CLOCK_LOOK_MS)
            }
        };
        let until = Instant::now() + Duration::from_millis(ms.clamp(1, PUT_OFF_MS_MAX));
        self.supply.demand.put_off(PutOff {
            need: need.max(1),
            until,
            failure,
            outlook,
        });
    }

    /// Past a gap the clock stands still at first, and catches nothing up.
    fn until_the_clock_goes(&self, refusal: BoundRefusal) -> BoundRefusal {
        match refusal {
            BoundRefusal::TooFarAhead {
                lead_ms,
                retry_after_ms,
            } => {
                let stands_for_ms = self
                    .virtual_clock
                    .stands_for_ms(self.supply.clock.readings());
                BoundRefusal::TooFarAhead {
                    lead_ms,
                    retry_after_ms: retry_after_ms.saturating_add(stands_for_ms),
                }
            }
            BoundRefusal::LayoutRanOut | BoundRefusal::BeforeEpoch(_) => refusal,
        }
    }

    /// Whether so many would be too many even if no id ran ahead of the clock. (Within one tick that may depend on how much
    /// of it has passed.)
    fn is_too_large(&self, request: &BoundRequest, need: u64) -> bool {
        let supply = &self.supply;
        let at_best = BoundRequest {
            need_state_end: supply.now_state().saturating_add(self.states_for(need)),
            ..*request
        };
        match plan_bound(&at_best) {
            Err(BoundRefusal::TooFarAhead {
                lead_ms: _,
                retry_after_ms,
            }) => retry_after_ms >= u64::from(supply.layout.tick_ms()),
            Err(BoundRefusal::LayoutRanOut | BoundRefusal::BeforeEpoch(_)) | Ok(_) => false,
        }
    }

    /// Nothing is asked of the store by a clock that reads a moment before all ids: what began by it would be where others begin, the clock of the lease
    /// would not follow the wall clock when that is set right, and a table of numbers would use one up.
    pub(super) fn wait_until_begun(&self, wall_ms: i64) -> Result<(), PauseMs> {
        self.supply.check_begun(wall_ms).map_err(|before| {
            let failure = self.no_lease(&NoLease::BeforeEpoch(before));
            self.supply.demand.failed(failure, 0, Outlook::Stays);
            Some(CLOCK_LOOK_MS)
        })
    }

    fn before_epoch_hint(&self) -> &'static str {
        match self.supply.space {
            Space::Snowflake => BEFORE_EPOCH_HINT,
            Space::Readable => "set the clock",
        }
    }

    pub(super) fn no_lease(&self, no_lease: &NoLease) -> Failure {
        let message = format!("{} keys: {no_lease}", self.supply.space.name());
        match no_lease {
            NoLease::InUse {
                worker_id: _,
                holder: _,
            } if self.suspended => {
                Failure::new(Cause::Suspended, message).hint("two programs insist on one worker id")
            }
            NoLease::InUse {
                worker_id: _,
                holder: _,
            } => Failure::new(Cause::WorkerIdInUse, message).hint(
                "choose another worker_id, or leave it out; if that program was killed, wait until its lease has expired (lease_ms)",
            ),
            NoLease::NumbersUsedUp {
                table: _,
                number: _,
                worker_id_max: _,
            } => Failure::new(Cause::WorkersFull, message)
                .hint("choose a layout with more worker bits, for the generators beside this program, too"),
            NoLease::NumberKnown {
                table: _,
                worker_id: _,
            } => Failure::new(Cause::BoundDamaged, message).hint(
                "was it made anew, or brought back from a backup? Raise its AUTO_INCREMENT above every number that generators and programs have had",
            ),
            NoLease::NoneFree { worker_id_max: _ } => Failure::new(Cause::WorkersFull, message)
                .hint("choose a layout with more worker bits, or a wider range in leased_worker_ids"),
            NoLease::BucketsClosed => Failure::new(Cause::WorkerIdUnset, message)
                .hint("keywright init divides the buckets among the stores"),
            NoLease::NoBuckets => Failure::new(Cause::WorkersFull, message)
                .hint("say in readable_buckets of this store which it leases, and run keywright init"),
            NoLease::OtherWorkerIds {
                recorded: _,
                configured: _,
            } => Failure::new(Cause::WorkerIdInUse, message).hint(
                "say in [snowflake] what the store has recorded; keywright init --change-worker-ids records other ranges",
            ),
            NoLease::OtherLayout {
                worker_id: _,
                layout: _,
            } => Failure::new(Cause::LayoutOverlap, message)
                .hint("give all programs of one store the same layout; if the one that has that lease was killed, wait until it has expired (lease_ms)"),
            NoLease::LayoutOverlap {
                worker_id: _,
                old: _,
                new: _,
            } => Failure::new(Cause::LayoutOverlap, message)
                .hint("choose a layout whose ids are greater, for instance with an earlier epoch"),
            NoLease::GoneBack {
                worker_id: _,
                bound_ms,
            } => Failure::new(Cause::BoundDamaged, message).hint(format!(
                "is it an old backup? keywright advance {} --above-ms {bound_ms}, or a later moment if ids carry one",
                self.supply.space.name()
            )),
            NoLease::Superseded {
                followed: _,
                generation: _,
            } => Failure::new(Cause::Suspended, message).hint(SUPERSEDED_HINT),
            NoLease::BeforeEpoch(_) => {
                Failure::new(Cause::ClockBehind, message).hint(self.before_epoch_hint())
            }
            NoLease::LayoutRanOut { layout: _ } => Failure::new(Cause::LayoutRanOut, message)
                .hint("choose a layout with a later epoch"),
        }
    }
}
