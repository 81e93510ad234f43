//! The bound of a lease that is held is extended before it is reached, and the lease renewed with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use keywright_core::{BoundPlan, BoundRequest, Cause, ClockEvent, Observation};
use tracing::warn;

use super::{Keeper, PauseMs, SUPERSEDED_HINT};
use crate::failure::Failure;
use crate::lease::HeldLease;
use crate::lease::space::Space;
use crate::sources::demand::Outlook;
use crate::store::lease_rows::{ExtendLease, Extension};

fn superseded(space: Space) -> Failure {
    let failure = Failure::new(
        Cause::Suspended,
        format!(
            "leases of {} worker ids are of another generation now than this program follows",
            space.name()
        ),
    );
    failure.hint(SUPERSEDED_HINT)
}

impl Keeper {
    /// How many keys the bound is to be extended for, if it is: 0 when nobody waits, but few are left.
    pub(super) fn wanted(&self, in_any_case: bool) -> Option<u64> {
        let demand = &self.supply.demand;
        let need = demand.need();
        let is_low = self.supply.is_low() && !demand.is_all_put_off();
        (in_any_case || need > 0 || is_low).then_some(need)
    }

    /// Extends the bound for so many keys that somebody waits for, if it is wanted; renews the lease in any case.
    pub(super) async fn extend(
        &mut self,
        mut held: HeldLease,
        need: Option<u64>,
    ) -> Result<(), PauseMs> {
        let supply = Arc::clone(&self.supply);
        let request = need.map(|need| self.request(need));
        let attempted_ms = AtomicI64::new(held.attempted_ms);
        let boot_ms = supply.clock.readings().boot_ms;
        self.restarts = self.store.losses.restarts();
        let transaction = ExtendLease {
            space: supply.space,
            held: &held,
            written_boot_ms: self.written_boot_ms,
            clock: &*supply.clock,
            request,
            attempted_ms: &attempted_ms,
            lease_ms: supply.settings.lease_ms,
        };
        let result = self.store.run(transaction).await;
        held.attempted_ms = attempted_ms.into_inner();
        match result {
            Ok(Extension::Extended(plan)) => {
                self.written_boot_ms = boot_ms;
                held.published_ms = plan.bound_ms;
                self.held = Some(held);
                if let Some(request) = request {
                    self.publish(&request, &plan);
                }
                Ok(())
            }
            Ok(Extension::Refused { refusal, bound_ms }) => {
                self.written_boot_ms = boot_ms;
                held.published_ms = bound_ms;
                self.held = Some(held);
                if let (Some(request), Some(need)) = (request, need) {
                    self.refused(refusal, &request, need);
                }
                Ok(())
            }
            // What is left below the bound goes on, as with ranges of tags.
            Ok(Extension::Superseded) => {
                self.held = Some(held);
                supply
                    .demand
                    .failed(superseded(supply.space), 0, Outlook::MayPass);
                Err(None)
            }
            Ok(Extension::Lost) => {
                self.suspend(&held);
                Err(Some(0))
            }
            // Whoever asks for it anew is told why there is none.
            Ok(Extension::Doubtful | Extension::GoneBack) => {
                self.drain();
                self.last = Some(held);
                self.take_over().await
            }
            // Nothing is published. The lease is looked at again before anything else is done with it.
            Err(error) => {
                self.held = Some(held);
                Err(self.store_failed(self.store.failure(&error)))
            }
        }
    }

    fn publish(&self, request: &BoundRequest, plan: &BoundPlan) {
        let guard = self.supply.lease.load();
        if let Some(lease) = guard.as_deref() {
            lease.words.publish(0, plan.hi_state);
            let extend_at = self.extend_at(request.need_state_end, plan.hi_state);
            lease.extend_at.store(extend_at, Ordering::Relaxed);
        }
        let figures = &self.supply.demand.figures;
        figures.refills.fetch_add(1, Ordering::Relaxed);
    }

    /// While ids are ahead of the clock, nothing is wanted by which it would be read. One that was set forward is only followed when it is needed.
    pub(super) fn tell_if_set_back(&mut self) {
        if self.virtual_clock.is_set_back(self.supply.clock.readings()) {
            self.read_clock();
        }
    }

    /// Reads the clock through what was seen of it so far.
    fn read_clock(&mut self) -> Observation {
        let supply = &self.supply;
        let readings = supply.clock.readings();
        let seen = self
            .virtual_clock
            .observe(readings, supply.settings.clock_jump_ms_max);
        supply.skew_ms.store(seen.skew_ms, Ordering::Relaxed);
        let steps = &supply.demand.figures.clock_steps;
        match seen.event {
            ClockEvent::Steady => {}
            ClockEvent::SteppedBack { ms } => {
                steps.fetch_add(1, Ordering::Relaxed);
                warn!(ms, "the clock was set back; ids go on");
            }
            ClockEvent::SteppedForward { ms, followed } => {
                steps.fetch_add(1, Ordering::Relaxed);
                warn!(ms, followed, "the clock was set forward");
            }
        }
        seen
    }

    /// The bound is filled in when it has been read.
    fn request(&mut self, need: u64) -> BoundRequest {
        let seen = self.read_clock();
        let supply = &self.supply;
        let next = supply
            .lease
            .load()
            .as_deref()
            .map_or(0, |lease| lease.words.next());
        BoundRequest {
            layout: supply.layout,
            need_state_end: next
                .max(supply.now_state())
                .saturating_add(self.states_for(need)),
            now_ms: seen.now_ms,
            bound_ms: None,
            window_ms: supply.settings.bound_window_ms,
            lead_ms_max: supply.settings.lead_ms_max,
        }
    }

    pub(super) fn states_for(&self, need: u64) -> u64 {
        // Several in one tick may have to begin in the next one.
        if need > 1 {
            need.saturating_add(self.supply.tick_ids())
        } else {
            1
        }
    }

    /// Halfway through the window, or through what the maximum lead leaves of it.
    pub(super) fn extend_at(&self, from_state: u64, hi_state: u64) -> u64 {
        let layout = &self.supply.layout;
        let window_ticks =
            self.supply.settings.bound_window_ms / u64::from(layout.tick_ms().max(1));
        let window_states = window_ticks << layout.sequence_bits();
        let states = window_states.min(hi_state.saturating_sub(from_state));
        hi_state.saturating_sub(states / 2)
    }
}
