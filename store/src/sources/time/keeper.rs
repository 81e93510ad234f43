//! The task that keeps a lease: takes one over, extends its bound before it is reached, renews it, and gives it up.

mod extending;
mod losing;
mod refusals;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keywright_core::{Cause, VirtualClock, WorkerId};
use tokio::time::Instant;
use tracing::{info, warn};

use super::supply::{Leased, TimeSupply};
use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::host::holder;
use crate::lease::space::Space;
use crate::lease::{Claimant, HeldLease, NoLease, Words};
use crate::settings::Limits;
use crate::sources::demand::Outlook;
use crate::sources::left::cannot_follow;
use crate::store::Store;
use crate::store::lease_rows::{ReleaseLease, TakeLease, TakenLease};

/// What to do about an older generation.
pub(super) const SUPERSEDED_HINT: &str =
    "it goes on when it has read which tables the keys are for now";

/// Renewals per lease: two may fail before others may try to take it.
const RENEWALS_PER_LEASE: u64 = 3;

/// After that long another number is taken from a table whose last one could not be used, milliseconds.
const NUMBER_PAUSE_MS: u64 = 600_000;

/// What only this task knows.
struct Keeper {
    supply: Arc<TimeSupply>,
    store: Arc<Store>,
    owner: String,
    holder: String,
    virtual_clock: VirtualClock,
    held: Option<HeldLease>,
    /// The lease it had last.
    last: Option<HeldLease>,
    /// The bound that the store has gone back behind, unix milliseconds, until that is made up for.
    gone_back_from_ms: Option<i64>,
    /// The largest bound of all words that were lost: what is issued after it lies above, whatever the store says.
    floor_state: u64,
    /// Whether a lease was lost since the start, and none was had since.
    suspended: bool,
    /// When the lease was written last, by the clock that counts time in which the machine was suspended.
    written_boot_ms: u64,
    /// How many restarts of the store's server had been found when it was compared with the store last.
    restarts: u64,
    /// A worker id that nobody wants any more is not given up before.
    rest_from: Instant,
}

/// Keeps a lease until the source is closed, then gives it up. So it does while nobody uses the source.
pub(crate) async fn run(supply: Arc<TimeSupply>, store: Arc<Store>, limits: Limits) {
    let mut backoff = Backoff::new(limits.backoff_ms_min, limits.backoff_ms_max);
    let renew = Duration::from_millis(supply.settings.lease_ms / RENEWALS_PER_LEASE);
    let mut keeper = Keeper::new(supply, store);
    keeper.supply.demand.ask();
    let mut renew_at = Instant::now() + renew;
    // After a failure it is tried again, whether anybody still waits or not.
    let mut failed = false;
    while !keeper.supply.demand.is_closed() {
        let until = keeper.held.is_some();
        let until = until.then(|| keeper.look_at(renew_at));
        keeper.supply.demand.asked(until).await;
        if keeper.supply.demand.is_closed() {
            break;
        }
        keeper.supply.demand.end_put_offs();
        keeper.tell_if_set_back();
        if keeper.supply.demand.rests() && keeper.may_rest() {
            keeper.release().await;
            failed = false;
            continue;
        }
        let result = match keeper.held.take() {
            None => keeper.take_over().await,
            Some(held) if keeper.is_dropped() => {
                keeper.last = Some(held);
                keeper.take_over().await
            }
            Some(held) => {
                let need = keeper.wanted(failed);
                if need.is_none() && !keeper.is_due(renew_at) {
                    keeper.held = Some(held);
                    continue;
                }
                if need.is_some_and(|need| need > 0) {
                    keeper.rest_later();
                }
                keeper.extend(held, need).await
            }
        };
        failed = result.is_err();
        match result {
            Ok(()) => {
                backoff.succeeded();
                renew_at = Instant::now() + renew;
                keeper.supply.demand.succeeded();
            }
            Err(pause_ms) => {
                // Somebody may still wait for what was not had.
                keeper.supply.demand.ask();
                let pause_ms = pause_ms.unwrap_or_else(|| backoff.failed());
                keeper.supply.demand.pause(pause_ms).await;
            }
        }
    }
    keeper.release().await;
}

/// How long to pause before the next attempt, milliseconds; `None`: as the backoff says.
type PauseMs = Option<u64>;

impl Keeper {
    /// It has no lease yet.
    fn new(supply: Arc<TimeSupply>, store: Arc<Store>) -> Self {
        Self {
            owner: uuid::Uuid::new_v4().simple().to_string(),
            holder: holder(),
            virtual_clock: VirtualClock::default(),
            held: None,
            last: None,
            gone_back_from_ms: None,
            floor_state: 0,
            suspended: false,
            written_boot_ms: 0,
            restarts: 0,
            rest_from: Instant::now(),
            supply,
            store,
        }
    }

    async fn take_over(&mut self) -> Result<(), PauseMs> {
        let settings = &self.supply.settings;
        let readings = self.supply.clock.readings();
        let (generation, floor_state) = {
            let followed = self.supply.followed();
            if followed.is_left {
                // Said while that is held: whoever follows a generation clears it.
                let failure = cannot_follow(&format!("{} keys", self.supply.space.name()));
                self.supply.demand.failed(failure, 0, Outlook::Stays);
                return Err(None);
            }
            (followed.generation, followed.floor_state)
        };
        self.floor_state = self.floor_state.max(floor_state);
        self.restarts = self.store.losses.restarts();
        self.wait_until_begun(readings.wall_ms)?;
        let limits = settings.takeover(readings.wall_ms);
        let request = TakeLease {
            space: self.supply.space,
            claimant: Claimant {
                owner: self.owner.clone(),
                wanted: self.supply.wanted.map(WorkerId::get),
                worker_id_max: self.supply.worker_id_max,
                leasable: settings.worker_ids.leasable(self.supply.space),
                layout: self.supply.layout,
                server: String::new(),
                floor_state: self.floor_state,
                last: self.last.clone(),
                gone_back_from_ms: self.gone_back_from_ms,
                generation,
            },
            limits,
            clock: &*self.supply.clock,
            worker_ids: settings.worker_ids.clone(),
            must_be_divided: self.supply.must_be_divided,
            holder: &self.holder,
            lease_ms: settings.lease_ms,
        };
        let taken = match self.store.run(request).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(no_lease)) => {
                if let NoLease::GoneBack {
                    worker_id: _,
                    bound_ms,
                } = no_lease
                {
                    self.gone_back_from_ms = Some(bound_ms);
                }
                let failure = self.no_lease(&no_lease);
                self.supply.demand.failed(failure, 0, Outlook::Stays);
                return Err(no_lease.uses_a_number_up().then_some(NUMBER_PAUSE_MS));
            }
            // It may have been written: the next attempt finds it under our name, and takes it over once more.
            Err(error) => return Err(self.store_failed(self.store.failure(&error))),
        };
        self.store.note_lease();
        self.written_boot_ms = readings.boot_ms;
        let worker = self.worker_of(&taken)?;
        let start_ms = taken.claim.plan.start_ms;
        // For as long as ids may run ahead of it: then nothing is granted further ahead than what an heir leaves out, and no keys are refused for it.
        let stands_ms = limits.lead_ms_max.max(limits.window_ms);
        self.virtual_clock
            .start_past_gap(readings, start_ms, stands_ms);
        self.publish_new(taken, worker);
        Ok(())
    }

    /// The worker id of a lease, as the layout has it; none in readable ids. Never another one in its place: that one's ids may be given elsewhere.
    fn worker_of(&self, taken: &TakenLease) -> Result<Option<WorkerId>, PauseMs> {
        let supply = &self.supply;
        let worker_id = i64::from(taken.claim.worker_id);
        let worker = match supply.space {
            Space::Snowflake => WorkerId::new(worker_id, &supply.layout).map(Some),
            Space::Readable => Ok(None),
        };
        worker.map_err(|error| {
            let name = supply.space.name();
            let message = format!("{name} keys: the layout does not have what was leased: {error}");
            let failure = Failure::new(Cause::LayoutOverlap, message);
            supply.demand.failed(failure, 0, Outlook::Stays);
            None
        })
    }

    /// Whether nothing is taken from the lease that is held: another generation is followed, or tables have left these keys.
    fn is_dropped(&self) -> bool {
        self.supply.lease.load().is_none()
    }

    fn publish_new(&mut self, taken: TakenLease, worker: Option<WorkerId>) {
        let supply = &self.supply;
        let plan = &taken.claim.plan;
        let worker_id = taken.claim.worker_id;
        let lease = Leased {
            worker_id,
            words: Words::new(worker, &supply.layout, plan),
            extend_at: AtomicU64::new(self.extend_at(plan.start_state, plan.hi_state)),
        };
        supply.skew_ms.store(0, Ordering::Relaxed);
        // Ids begin with no lead again.
        supply.demand.put_off_nothing();
        {
            // Held until the word is published: another generation may be followed meanwhile, and then it is taken anew.
            let mut followed = supply.followed();
            let generation = *followed.generation.get_or_insert(taken.held.generation);
            if generation == taken.held.generation && !followed.is_left {
                supply.lease.store(Some(Arc::new(lease)));
            } else {
                supply.demand.ask();
            }
        }
        supply
            .demand
            .figures
            .refills
            .fetch_add(1, Ordering::Relaxed);
        info!(
            space = supply.space.name(),
            worker_id,
            epoch = taken.claim.epoch,
            starts_ms = plan.start_ms,
            gap_ms = plan.gap_ms,
            because = taken.claim.reason(),
            "took over a worker id"
        );
        self.rest_later();
        self.suspended = false;
        self.last = None;
        self.gone_back_from_ms = None;
        self.held = Some(taken.held);
    }

    fn store_failed(&self, failure: Failure) -> PauseMs {
        // A suspended source reports that, rather than that the store could not be asked for another lease.
        let suspended = self.supply.demand.last_failure().filter(|_| self.suspended);
        let failure = suspended.unwrap_or(failure);
        self.supply.demand.failed(failure, 0, Outlook::MayPass);
        None
    }

    async fn release(&mut self) {
        self.drain();
        let Some(held) = self.held.take() else {
            return;
        };
        // Whoever takes one later still knows how far this one came.
        self.last = Some(held.clone());
        let release = ReleaseLease {
            space: self.supply.space.name(),
            held: &held,
        };
        if let Err(error) = self.store.run(release).await {
            warn!(worker_id = held.worker_id, %error, "a lease could not be given up; it expires");
        }
    }
}
