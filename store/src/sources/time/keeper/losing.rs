//! When a lease is compared with the store though nobody wants anything of it, and what becomes of one that is lost.

use std::time::Duration;

use keywright_core::Cause;
use tokio::time::Instant;

use super::{Keeper, RENEWALS_PER_LEASE};
use crate::failure::Failure;
use crate::lease::HeldLease;
use crate::sources::demand::Outlook;
use crate::store::look_back::LOOK_MS;

impl Keeper {
    /// When to look whether there is something to do, though nobody asks for anything.
    pub(super) fn look_at(&self, renew_at: Instant) -> Instant {
        let own = match self.store.words.uptime_s() {
            Some(_) => renew_at.min(Instant::now() + Duration::from_millis(LOOK_MS)),
            None => renew_at,
        };
        let rests_soon = !self.supply.demand.is_wanted() && self.rest_from > Instant::now();
        let own = match rests_soon {
            true => own.min(self.rest_from),
            false => own,
        };
        self.supply.demand.look_at(own)
    }

    /// Whether a worker id that nobody wants is given up now: not soon after it was had, or waited for. Whoever has it next begins a whole window further
    /// on, and somebody who still takes keys now and then would have the bound run away from the clock.
    pub(super) fn may_rest(&self) -> bool {
        self.held.is_none() || self.is_dropped() || Instant::now() >= self.rest_from
    }

    /// At least as much time passes before the worker id is given up as taking it anew has the bound go on: a window, and the tick it ends in.
    pub(super) fn rest_later(&mut self) {
        let settings = &self.supply.settings;
        let renew_ms = settings.lease_ms / RENEWALS_PER_LEASE;
        let tick_ms = u64::from(self.supply.layout.tick_ms());
        let rest_ms = settings
            .bound_window_ms
            .max(renew_ms)
            .saturating_add(tick_ms);
        self.rest_from = Instant::now() + Duration::from_millis(rest_ms);
    }

    /// Whether the lease is to be renewed, though nobody waits for anything: it is time, or the store's server was restarted and may say something else
    /// of it. Who looks for restarts does so as often.
    pub(super) fn is_due(&self, renew_at: Instant) -> bool {
        Instant::now() >= renew_at || self.store.losses.restarts() != self.restarts
    }

    /// The lease is another's: nothing is taken from its word any more.
    pub(super) fn suspend(&mut self, held: &HeldLease) {
        self.drain();
        self.suspended = true;
        self.last = Some(held.clone());
        let supply = &self.supply;
        let failure = Failure::new(
            Cause::Suspended,
            format!(
                "the lease of {} worker id {} was taken over, or the store is on another server now",
                supply.space.name(),
                held.worker_id
            ),
        );
        supply.demand.failed(failure, 0, Outlook::MayPass);
    }

    /// Nothing is taken from the lease any more, nor below what was taken from it.
    pub(super) fn drain(&mut self) {
        if let Some(lease) = self.supply.lease.swap(None) {
            // A taker that still holds the words finds them drained or is below their bound.
            self.floor_state = self.floor_state.max(lease.words.drain());
        }
    }
}
