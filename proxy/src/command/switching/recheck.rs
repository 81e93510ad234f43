//! Tables are looked at again while nothing is switched: fences that a failover lost, or brought back.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::Switching;

/// How often the servers are looked at because statements have met a fence or a server that is not known, or because the switch cannot
/// be repeated yet, milliseconds at least: a table whose column is full meets the fence at every INSERT.
const RECHECK_MS_MIN: u64 = 1_000;

impl Switching {
    /// Puts right what a failover may have changed, now and then and when statements have met it.
    pub(super) async fn recheck(&mut self, now: Instant) -> Result<()> {
        let traffic = self.conductor.connections().traffic();
        let met = (traffic.on_unknown_server(), traffic.at_fence());
        let is_asked_for = met != self.rechecked && now >= self.no_fence_before;
        if now < self.next_fence && !is_asked_for {
            return Ok(());
        }
        self.no_fence_before = now + Duration::from_millis(RECHECK_MS_MIN);
        self.next_fence = now + Duration::from_secs(self.config.schema_refresh_s);
        self.rechecked = met;
        self.is_due = true;
        let limits = self.conductor.limits();
        let mut has_lifted = false;
        let lifted = self.conductor.lift_left(&mut has_lifted);
        let lifted = limits.in_time(lifted).await;
        if has_lifted {
            self.conductor.connections().renew();
        }
        // Whatever keeps a fence from being lifted: those that are missing let ids be made past the programs.
        let fenced = limits.in_time(self.conductor.fence_missing()).await;
        lifted.and(fenced)
    }

    /// An attempt cannot begin: meanwhile tables with ids of their own get the fence that they lack.
    pub(super) async fn fence_ahead(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.conductor.has_ahead() && now >= self.no_fence_before {
            self.no_fence_before = now + Duration::from_millis(RECHECK_MS_MIN);
            let limits = self.conductor.limits();
            limits.in_time(self.conductor.fence_missing()).await?;
        }
        Ok(())
    }
}
