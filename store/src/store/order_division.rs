//! How the number of slot groups becomes another one in the store, as `order::dividing` argues.

use keywright_core::slot::{SLOT_GROUPS_MAX, SlotGroups};

use super::order_rows::{DIVISION, make_leases};
use super::{Link, StoreError, Transaction, values};
use crate::order::Renewal;

/// Makes all leases that there can ever be: what is made later would be unseen by a change.
#[derive(Debug)]
pub(crate) struct MakeLeases {
    /// How long those are looked at that are made, milliseconds.
    pub(crate) ttl_ms: u64,
}

impl Transaction<()> for MakeLeases {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let most = SlotGroups::new(u64::from(SLOT_GROUPS_MAX));
        make_leases(link, most.unwrap_or(SlotGroups::ONE), self.ttl_ms).await
    }
}

/// Divides the slots into so many groups, if all leases still stand as they were seen. Whether it did.
#[derive(Debug)]
pub(crate) struct Divide {
    pub(crate) groups: SlotGroups,
    /// Each with the number of its group.
    pub(crate) seen: Vec<(u64, Renewal)>,
}

impl Transaction<bool> for Divide {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        link.begin().await?;
        for (number, seen) in &self.seen {
            let update = "UPDATE keywright_order_lease SET owner = NULL, epoch = epoch + 1, renewal = renewal + 1 \
                          WHERE id = ? AND epoch = ? AND renewal = ?";
            let values = values![*number, seen.epoch, seen.number];
            let stands = seen.server == link.server.identity;
            if !stands || link.change(update, values).await? != 1 {
                link.rollback().await?;
                return Ok(false);
            }
        }
        let write = format!(
            "INSERT INTO keywright_order_lease (id, epoch, renewal, ttl_ms) VALUES (?, ?, 0, 0) {} epoch = ?",
            link.words().or_update("id")
        );
        let count = u64::from(self.groups.count());
        link.change(write, values![DIVISION, count, count]).await?;
        link.commit().await?;
        Ok(true)
    }
}
