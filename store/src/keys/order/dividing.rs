//! Having the store divide slots into another number of groups.

use std::time::Duration;

use keywright_core::Cause;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::keys::Keys;
use crate::order::dividing::{Dividing, Step};
use crate::order::{LeaseRow, read_ms};
use crate::seat::divided_otherwise;
use crate::store::order_division::{Divide, MakeLeases};
use crate::store::order_rows::{GroupLease, LookAtLeases};

/// Leases are waited for so long at most, seconds: more than twice as long as any program may set for its own.
const WAIT_S_MAX: u64 = 150;

/// What became of a configuration's number of slot groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotGroupsRecorded {
    /// It is in force already.
    AsBefore,
    /// It is from now on.
    Now,
}

impl Keys {
    /// Has the store divide slots into as many groups as the configuration says; where programs have had leases by another number, only if
    /// `may_change`. That takes as long as `ttl_ms`, or longer where a program had a lease and did not give it back.
    ///
    /// # Errors
    /// Another number is in force; a program is active; the store cannot be used.
    pub async fn record_slot_groups(
        &self,
        may_change: bool,
        ttl_ms: u64,
    ) -> Result<SlotGroupsRecorded, Failure> {
        let groups = self.slot_groups();
        let leases = self.run(LookAtLeases).await?;
        if leases.groups == u64::from(groups.count()) {
            return Ok(SlotGroupsRecorded::AsBefore);
        }
        let was_taken = |lease: &GroupLease| lease.row.renewal.epoch > 0;
        let is_used = leases.is_recorded || leases.rows.iter().any(was_taken);
        if is_used && !may_change {
            return Err(divided_otherwise(groups, leases.groups));
        }
        self.run(MakeLeases { ttl_ms }).await?;
        self.divide(ttl_ms).await
    }

    /// Waits until no program is active, as one does that wants to be.
    async fn divide(&self, ttl_ms: u64) -> Result<SlotGroupsRecorded, Failure> {
        let groups = self.slot_groups();
        let end = Instant::now() + Duration::from_secs(WAIT_S_MAX);
        let mut dividing = Dividing::new(ttl_ms);
        loop {
            let leases = self.run(LookAtLeases).await?;
            if leases.groups == u64::from(groups.count()) {
                return Ok(SlotGroupsRecorded::AsBefore);
            }
            let rows: Vec<LeaseRow> = leases.rows.iter().map(|its| its.row.clone()).collect();
            let now_ms = self.0.clock.boot_ms().ok_or_else(without_clock)?;
            match dividing.has_read(&rows, now_ms) {
                Step::Wait => {}
                Step::IsActive(at) => return Err(is_active(leases.rows.get(at))),
                Step::Change(seen) => {
                    let numbers = leases.rows.iter().map(|its| its.number);
                    let seen = numbers.zip(seen).collect();
                    if self.run(Divide { groups, seen }).await? {
                        return Ok(SlotGroupsRecorded::Now);
                    }
                    // Somebody came first: he is active, or has changed the number.
                    dividing = Dividing::new(ttl_ms);
                }
            }
            if Instant::now() >= end {
                return Err(is_active(None));
            }
            sleep(Duration::from_millis(read_ms(ttl_ms))).await;
        }
    }

    /// Why this program would give no keys of ordered tags: the store divides slots otherwise.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(in crate::keys) async fn other_slot_groups(&self) -> Result<Option<Failure>, Failure> {
        let groups = self.slot_groups();
        let leases = self.run(LookAtLeases).await?;
        let is_own = leases.groups == u64::from(groups.count());
        Ok((!is_own).then(|| divided_otherwise(groups, leases.groups)))
    }
}

fn without_clock() -> Failure {
    let message =
        "this machine has no CLOCK_BOOTTIME, by which leases of ordered tags are waited for";
    Failure::new(Cause::SlotGroupsDiffer, message)
}

/// Why the number stays.
fn is_active(lease: Option<&GroupLease>) -> Failure {
    let message = match lease {
        Some(lease) => format!(
            "the program at {} gives keys of ordered tags of slot group {}, so the number of groups stays",
            lease.address, lease.number
        ),
        None => "programs take the leases of ordered tags again and again, so the number of slot groups stays".to_owned(),
    };
    let failure = Failure::new(Cause::SlotGroupsDiffer, message);
    failure.hint(
        "end all programs that have another slot_groups than this configuration, then run it again",
    )
}
