//! Who issues keys of ordered tags, as one program knows it: it stands for the lease, gives it up, and says who has it.

mod confirmer;
mod keeper;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keywright_core::Cause;
use tokio::time::timeout;
use tracing::warn;
use uuid::Uuid;

use super::Keys;
use crate::failure::Failure;
use crate::order::Candidate;
use crate::seat::{OrderSettings, Standing, Where};
use crate::store::order_rows::Release;
use crate::store::tag_request::OrderRight;
use confirmer::Confirmer;
use keeper::Keeper;

/// How long a program that ends waits until another is active, milliseconds: then its clients can be told which.
const SUCCESSOR_MS_MAX: u64 = 1_000;

/// A program that may issue keys of ordered tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderNode {
    /// 40 hexadecimal digits, unique to one run of it.
    pub id: String,
    /// Where clients reach it.
    pub address: String,
    /// Whether it is this program.
    pub is_self: bool,
    /// Whether it is the active one.
    pub is_active: bool,
}

/// How a program stands for the lease of those who issue keys of ordered tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderStats {
    /// Whether it issues them at this moment.
    pub is_active: bool,
    /// The largest epoch that it has seen: how often the lease was taken.
    pub epoch: u64,
    /// Confirmations for strict tags that stood.
    pub confirmations: u64,
    /// How long they took in the store, all together, microseconds.
    pub confirm_us: u64,
    /// Requests, or what was read of a connection at once, that waited for them and were let go.
    pub confirmed: u64,
}

impl Keys {
    /// Stands for the lease of those who issue keys of ordered tags, from now on. Once per program.
    pub fn stand_for_order(&self, settings: OrderSettings) {
        let (one, other) = (Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let owner: String = format!("{one}{other}").chars().take(40).collect();
        let seat = Arc::clone(&self.0.seat);
        {
            let mut state = seat.state();
            if state.standing.is_some() {
                return;
            }
            state.standing = Some(Standing {
                candidate: Candidate::new(settings.ttl_ms),
                owner: owner.into(),
                settings: settings.clone(),
                holder: None,
                nodes: Vec::new(),
                leaves: false,
            });
        }
        let ms_max = self.0.settings.limits.store_ms_max.min(settings.ttl_ms);
        let confirmer = Confirmer {
            seat: Arc::clone(&seat),
            store: Arc::clone(&self.0.store),
            ttl_ms: settings.ttl_ms,
            ms_max,
            has_trouble: false,
        };
        let keeper = Keeper {
            ms_max,
            seat,
            store: Arc::clone(&self.0.store),
            settings,
            noted_at: None,
            has_trouble: false,
            namesake: None,
        };
        let tasks = [self.spawn(keeper.run()), self.spawn(confirmer.run())];
        self.sources().tasks.extend(tasks);
    }

    /// The programs that stand, this one among them, in order of their ids; nothing where it does not.
    pub fn order_nodes(&self) -> Option<Vec<OrderNode>> {
        let now_ms = self.0.seat.now_ms();
        let state = self.0.seat.state();
        let standing = state.standing.as_ref()?;
        let mut nodes: Vec<OrderNode> = standing
            .nodes
            .iter()
            .filter(|node| node.program != *standing.owner)
            .map(|node| OrderNode {
                id: node.program.clone(),
                address: node.address.clone(),
                is_self: false,
                is_active: standing.is_holder(&node.program),
            })
            .collect();
        nodes.push(OrderNode {
            id: standing.owner.to_string(),
            address: standing.settings.address.clone(),
            is_self: true,
            is_active: standing.is_active(now_ms),
        });
        // The one that is active is known before it was noted.
        if let Some((owner, address)) = &standing.holder
            && standing.is_holder(owner)
            && nodes.iter().all(|node| node.id != *owner)
        {
            nodes.push(OrderNode {
                id: owner.clone(),
                address: address.clone(),
                is_self: false,
                is_active: true,
            });
        }
        nodes.sort_by(|one, other| one.id.cmp(&other.id));
        Some(nodes)
    }

    /// How this program stands for the lease; nothing where it does not.
    pub fn order_stats(&self) -> Option<OrderStats> {
        let now_ms = self.0.seat.now_ms();
        let figures = &self.0.seat.confirming.figures;
        let state = self.0.seat.state();
        let standing = state.standing.as_ref()?;
        Some(OrderStats {
            is_active: standing.is_active(now_ms),
            epoch: standing.candidate.epoch(),
            confirmations: figures.confirmations.load(Ordering::Relaxed),
            confirm_us: figures.confirm_us.load(Ordering::Relaxed),
            confirmed: figures.confirmed.load(Ordering::Relaxed),
        })
    }

    /// Lets another program be the one that issues keys of ordered tags: this one issues none from now on, then gives the lease back.
    ///
    /// # Errors
    /// It is not active.
    pub async fn demote(&self) -> Result<(), Failure> {
        let now_ms = self.0.seat.now_ms().unwrap_or(u64::MAX);
        let epoch = self.0.seat.with(|standing| {
            standing.holder = None;
            Some((
                Arc::clone(&standing.owner),
                standing.candidate.demote(now_ms)?,
            ))
        });
        let Some((owner, epoch)) = epoch.flatten() else {
            return Err(Failure::new(
                Cause::CommandRefused,
                "this program does not issue keys of ordered tags now, so another one can",
            ));
        };
        // It reads from now on who follows, and not when it would have renewed: clients wait for that.
        self.0.seat.wake.notify_one();
        self.release(owner, epoch).await;
        Ok(())
    }

    /// The same for good, at a clean stop; waits a little until another program is active, if there is one, so that clients can be told which.
    /// Whether there are clients to be told: it issued keys, and another does now.
    pub async fn leave_order(&self) -> bool {
        let mut changes = self.0.seat.changes();
        let left = self.0.seat.with(|standing| {
            standing.leaves = true;
            let epoch = standing.candidate.leave();
            if epoch.is_some() {
                standing.holder = None;
            }
            let is_alone = standing
                .nodes
                .iter()
                .all(|node| node.program == *standing.owner);
            (Arc::clone(&standing.owner), epoch, is_alone)
        });
        let Some((owner, epoch, is_alone)) = left else {
            return false;
        };
        self.0.seat.wake.notify_one();
        let Some(epoch) = epoch else {
            return false;
        };
        self.release(Arc::clone(&owner), epoch).await;
        if is_alone {
            return false;
        }
        let limit = Duration::from_millis(SUCCESSOR_MS_MAX);
        let known = async {
            while self.0.seat.is_where() == Where::Nowhere {
                if changes.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        timeout(limit, known).await.unwrap_or(false)
    }

    /// Nobody asks what became of it: whoever gave the lease back issues nothing.
    async fn release(&self, owner: Arc<str>, epoch: u64) {
        let store = Arc::clone(&self.0.store);
        let release = self.0.runtime.spawn(async move {
            let right = OrderRight {
                owner: &owner,
                epoch,
            };
            if let Err(error) = store.run(Release { right }).await {
                let failure = store.failure(&error);
                warn!(%failure, "the lease of ordered tags could not be given back: another program takes it when it has run out");
            }
        });
        let _ = release.await;
    }
}
