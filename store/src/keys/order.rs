//! Who issues keys of ordered tags, as one program knows it: it stands for the leases of all slot groups, gives them up, and says who has them.

mod confirmer;
mod dividing;
mod keeper;
mod reader;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keywright_core::Cause;
use keywright_core::slot::{SlotGroup, SlotGroups};
use tokio::time::{Instant, timeout_at};
use tracing::warn;
use uuid::Uuid;

use super::Keys;
use crate::failure::Failure;
use crate::order::Candidate;
use crate::seat::seats::Seats;
use crate::seat::{OrderSettings, Seat, Standing, Where};
use crate::store::order_rows::Release;
use crate::store::tag_request::OrderRight;
use confirmer::Confirmer;
pub use dividing::SlotGroupsRecorded;
use keeper::{Keeper, Register, Trouble};
use reader::Reader;

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
    /// The slot groups for which it is the active one, in their order.
    pub groups: Vec<SlotGroup>,
}

impl OrderNode {
    /// Whether it is the active one for any slot group.
    pub fn is_active(&self) -> bool {
        !self.groups.is_empty()
    }
}

/// How a program stands for the lease of those who issue keys of ordered tags of a slot group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupStats {
    /// The group.
    pub group: SlotGroup,
    /// Whether it issues them at this moment.
    pub is_active: bool,
    /// The largest epoch that it has seen: how often the lease was taken.
    pub epoch: u64,
}

/// How a program stands for the leases of those who issue keys of ordered tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderStats {
    /// Each slot group, in their order.
    pub groups: Vec<GroupStats>,
    /// Confirmations for strict tags that stood.
    pub confirmations: u64,
    /// How long they took in the store, all together, microseconds.
    pub confirm_us: u64,
    /// Requests, or what was read of a connection at once, that waited for them and were let go.
    pub confirmed: u64,
    /// Confirmations that the store did not give: it did not answer, or may lose what it acknowledges.
    pub unconfirmed: u64,
}

impl Keys {
    /// Stands for the leases of those who issue keys of ordered tags, from now on. Once per program.
    pub fn stand_for_order(&self, settings: OrderSettings) {
        let (one, other) = (Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let owner: String = format!("{one}{other}").chars().take(40).collect();
        let owner: Arc<str> = owner.into();
        let seats = &self.0.seats;
        if seats.all().iter().any(|seat| seat.stands()) {
            return;
        }
        for seat in seats.all() {
            seat.state().standing = Some(Standing {
                candidate: Candidate::new(settings.ttl_ms),
                owner: Arc::clone(&owner),
                settings: settings.clone(),
                holder: None,
                began_ms: seat.now_ms().unwrap_or(0),
                is_taking: false,
                divided: None,
                leaves: false,
            });
        }
        let ms_max = self.0.settings.limits.store_ms_max.min(settings.ttl_ms);
        let store = || Arc::clone(&self.0.store);
        let reader = Arc::new(Reader::new(
            store(),
            seats.groups(),
            settings.ttl_ms,
            ms_max,
        ));
        // What is done once per program goes with the first group.
        let mut register = Some(Register::default());
        let mut tasks = Vec::new();
        for seat in seats.all() {
            let confirmer = Confirmer {
                seat: Arc::clone(seat),
                store: store(),
                ttl_ms: settings.ttl_ms,
                ms_max,
                has_trouble: false,
            };
            let keeper = Keeper {
                seat: Arc::clone(seat),
                seats: Arc::clone(seats),
                store: store(),
                reader: Arc::clone(&reader),
                settings: settings.clone(),
                ms_max,
                register: register.take(),
                trouble: Trouble::default(),
                has_gone_back: false,
                namesake: None,
            };
            tasks.extend([self.spawn(keeper.run()), self.spawn(confirmer.run())]);
        }
        self.sources().tasks.extend(tasks);
    }

    /// Into how many groups slots are divided for this program.
    pub fn slot_groups(&self) -> SlotGroups {
        self.0.seats.groups()
    }

    /// The programs that stand, this one among them, in order of their ids; nothing where it does not.
    pub fn order_nodes(&self) -> Option<Vec<OrderNode>> {
        let seats = &self.0.seats;
        let mut nodes = Vec::new();
        for (at, seat) in seats.all().iter().enumerate() {
            let now_ms = seat.now_ms();
            let state = seat.state();
            let standing = state.standing.as_ref()?;
            if at == 0 {
                nodes = known_nodes(seats, standing);
            }
            if standing.is_active(now_ms) {
                let own = nodes.iter_mut().filter(|node| node.is_self);
                own.for_each(|node| node.groups.push(seat.group));
            }
            let Some((owner, address)) = &standing.holder else {
                continue;
            };
            if !standing.is_holder(owner) {
                continue;
            }
            match nodes.iter_mut().find(|node| node.id == *owner) {
                Some(node) => node.groups.push(seat.group),
                // The one that is active is known before it was noted.
                None => nodes.push(OrderNode {
                    id: owner.clone(),
                    address: address.clone(),
                    is_self: false,
                    groups: vec![seat.group],
                }),
            }
        }
        nodes.sort_by(|one, other| one.id.cmp(&other.id));
        Some(nodes)
    }

    /// How this program stands for the leases; nothing where it does not.
    pub fn order_stats(&self) -> Option<OrderStats> {
        let all = self.0.seats.all();
        let groups = all.iter().map(|seat| {
            let now_ms = seat.now_ms();
            let state = seat.state();
            let standing = state.standing.as_ref()?;
            Some(GroupStats {
                group: seat.group,
                is_active: standing.is_active(now_ms),
                epoch: standing.candidate.epoch(),
            })
        });
        let groups: Vec<GroupStats> = groups.collect::<Option<_>>()?;
        let sum = |figure: fn(&Seat) -> &AtomicU64| {
            let counts = all.iter().map(|seat| figure(seat).load(Ordering::Relaxed));
            counts.fold(0, u64::saturating_add)
        };
        Some(OrderStats {
            groups,
            confirmations: sum(|seat| &seat.confirming.figures.confirmations),
            confirm_us: sum(|seat| &seat.confirming.figures.confirm_us),
            confirmed: sum(|seat| &seat.confirming.figures.confirmed),
            unconfirmed: sum(|seat| &seat.confirming.figures.unconfirmed),
        })
    }

    /// Lets another program be the one that issues keys of ordered tags, of all slot groups or of the one with this number: this program issues none of
    /// them from now on, then gives the leases back.
    ///
    /// # Errors
    /// It is not active; there is no such group.
    pub async fn demote(&self, number: Option<u64>) -> Result<(), Failure> {
        let groups = self.0.seats.groups();
        let only = match number.map(|number| groups.group(number)) {
            None => None,
            Some(Some(group)) => Some(group),
            Some(None) => {
                let message = format!("slot groups are 1 to {groups}");
                return Err(Failure::new(Cause::ArgumentOutOfRange, message));
            }
        };
        let mut released = Vec::new();
        for seat in self.0.seats.all() {
            if only.is_some_and(|only| only != seat.group) {
                continue;
            }
            let now_ms = seat.now_ms().unwrap_or(u64::MAX);
            let epoch = seat.with(|standing| {
                let epoch = standing.candidate.demote(now_ms)?;
                standing.holder = None;
                Some((Arc::clone(&standing.owner), epoch))
            });
            if let Some((owner, epoch)) = epoch.flatten() {
                // It reads from now on who follows, and not when it would have renewed: clients wait for that.
                seat.wake.notify_one();
                released.push((seat.group, owner, epoch));
            }
        }
        if released.is_empty() {
            let of_group = only.map(|group| format!(" of slot group {}", group.number()));
            let of_group = of_group.unwrap_or_default();
            let message = format!(
                "this program does not issue keys of ordered tags{of_group} now, so another one can"
            );
            return Err(Failure::new(Cause::CommandRefused, message));
        }
        self.release_all(released).await;
        Ok(())
    }

    /// The same for good, at a clean stop; waits a little until other programs are active, if there are any, so that clients can be told which.
    /// Whether there are clients to be told: it issued keys, and others do now.
    pub async fn leave_order(&self) -> bool {
        let mut released = Vec::new();
        let mut left = Vec::new();
        let mut own = None;
        for seat in self.0.seats.all() {
            let changes = seat.changes();
            let leaving = seat.with(|standing| {
                standing.leaves = true;
                let epoch = standing.candidate.leave();
                if epoch.is_some() {
                    standing.holder = None;
                }
                (Arc::clone(&standing.owner), epoch)
            });
            let Some((owner, epoch)) = leaving else {
                return false;
            };
            seat.wake.notify_one();
            if let Some(epoch) = epoch {
                released.push((seat.group, Arc::clone(&owner), epoch));
                left.push((seat, changes));
            }
            own = Some(owner);
        }
        if released.is_empty() {
            return false;
        }
        self.release_all(released).await;
        let nodes = self.0.seats.nodes();
        if nodes
            .iter()
            .all(|node| Some(&*node.program) == own.as_deref())
        {
            return false;
        }
        let limit = Instant::now() + Duration::from_millis(SUCCESSOR_MS_MAX);
        let mut are_known = true;
        for (seat, mut changes) in left {
            let known = async {
                while seat.is_where() == Where::Nowhere {
                    if changes.changed().await.is_err() {
                        return false;
                    }
                }
                true
            };
            are_known &= timeout_at(limit, known).await.unwrap_or(false);
        }
        are_known
    }

    /// Nobody asks what became of it: whoever gave a lease back issues nothing.
    async fn release_all(&self, all: Vec<(SlotGroup, Arc<str>, u64)>) {
        let releases = all.into_iter().map(|(group, owner, epoch)| {
            let store = Arc::clone(&self.0.store);
            self.0.runtime.spawn(async move {
                let right = OrderRight {
                    group,
                    owner: &owner,
                    epoch,
                };
                if let Err(error) = store.run(Release { right }).await {
                    let failure = store.failure(&error);
                    warn!(%failure, "the lease of ordered tags could not be given back: another program takes it when it has run out");
                }
            })
        });
        let releases: Vec<_> = releases.collect();
        for release in releases {
            let _ = release.await;
        }
    }
}

/// The programs that were noted, and this one, as if none were active.
fn known_nodes(seats: &Seats, standing: &Standing) -> Vec<OrderNode> {
    let noted = seats.nodes().into_iter();
    let others = noted.filter(|node| node.program != *standing.owner);
    let mut nodes: Vec<OrderNode> = others
        .map(|node| OrderNode {
            id: node.program,
            address: node.address,
            is_self: false,
            groups: Vec::new(),
        })
        .collect();
    nodes.push(OrderNode {
        id: standing.owner.to_string(),
        address: standing.settings.address.clone(),
        is_self: true,
        groups: Vec::new(),
    });
    nodes
}
