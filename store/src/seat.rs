//! What one program knows of the leases of those who issue keys of ordered tags, shared by all that issues: a seat for each slot group.

pub(crate) mod confirming;
pub(crate) mod seats;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keywright_core::Cause;
use keywright_core::slot::{SlotGroup, SlotGroups};
use tokio::sync::{Notify, watch};
use tracing::info;

use crate::clock::Clock;
use crate::failure::Failure;
use crate::order::{Candidate, Holder, LeaseRow, Tenure};
use confirming::Confirming;

/// How a program stands for the leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderSettings {
    /// Where clients reach it, `host:port`.
    pub address: String,
    /// How long the lease may go without renewal, milliseconds.
    pub ttl_ms: u64,
}

/// What a program knows of the ordered tags of one slot group, shared by all that issues.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) group: SlotGroup,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Another number whenever another program is active, or this one is or is not any more.
    changed: watch::Sender<u64>,
    pub(crate) wake: Notify,
    pub(crate) is_closed: AtomicBool,
    /// Replies with ids of strict tags that are not let go yet.
    pub(crate) confirming: Confirming,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Nothing: this program does not stand.
    pub(crate) standing: Option<Standing>,
}

#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) settings: OrderSettings,
    pub(crate) owner: Arc<str>,
    pub(crate) candidate: Candidate,
    /// Who has the lease, as it was read last.
    pub(crate) holder: Option<(String, String)>,
    /// When it began to stand, by its clock, or the store's number of slot groups became its own.
    pub(crate) began_ms: u64,
    /// It has asked for the lease, and nobody has answered.
    pub(crate) is_taking: bool,
    /// Into how many groups the store divides slots, where that is another number than this program's.
    pub(crate) divided: Option<u64>,
    /// It ends.
    pub(crate) leaves: bool,
}

/// Where keys of ordered tags are issued at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Where {
    /// Here, until then.
    Here(Tenure),
    /// By another program.
    Elsewhere(String),
    /// By the program that has taken this one's place, and its address.
    BySuccessor,
    /// Nobody knows.
    Nowhere,
}

impl Seat {
    pub(crate) fn new(clock: Arc<dyn Clock>, group: SlotGroup) -> Self {
        Self {
            group,
            clock,
            state: Mutex::default(),
            changed: watch::channel(0).0,
            wake: Notify::new(),
            is_closed: AtomicBool::new(false),
            confirming: Confirming::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock that deadlines are compared with.
    pub(crate) fn now_ms(&self) -> Option<u64> {
        self.clock.boot_ms()
    }

    /// Where keys of ordered tags are issued.
    pub(crate) fn is_where(&self) -> Where {
        match &self.state().standing {
            None => Where::Nowhere,
            Some(standing) => standing.is_where(),
        }
    }

    /// By which right ranges of ordered tags are reserved now: owner and epoch.
    pub(crate) fn right(&self) -> Option<(Arc<str>, u64)> {
        let state = self.state();
        let standing = state.standing.as_ref()?;
        let tenure = standing.candidate.tenure()?;
        Some((Arc::clone(&standing.owner), tenure.epoch))
    }

    /// Whether this program is active and its time is up by the clock: a renewal is under way, and ends without a change that anybody is
    /// told of.
    pub(crate) fn is_overdue(&self) -> bool {
        let tenure = match &self.state().standing {
            Some(standing) => standing.candidate.tenure(),
            None => None,
        };
        let now_ms = self.now_ms();
        tenure.is_some_and(|its| now_ms.is_none_or(|now_ms| !its.allows(its.epoch, now_ms)))
    }

    /// Owner, and the server that granted the epoch, while this program is active in it.
    pub(crate) fn granted(&self, epoch: u64) -> Option<(Arc<str>, Arc<str>)> {
        let state = self.state();
        let standing = state.standing.as_ref()?;
        let (its, server) = standing.candidate.granted_by()?;
        (its == epoch).then(|| (Arc::clone(&standing.owner), server))
    }

    /// The run of the program that has the lease, as far as is known, or of this one if it is about to.
    fn holder(&self) -> Option<Arc<str>> {
        let state = self.state();
        let standing = state.standing.as_ref()?;
        match standing.candidate.tenure().is_some() || standing.is_taking {
            true => Some(Arc::clone(&standing.owner)),
            false => standing
                .holder
                .as_ref()
                .map(|(owner, _)| owner.as_str().into()),
        }
    }

    /// Why this program issues nothing and does not know who does, where that does not pass by itself.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        let state = self.state();
        let standing = state.standing.as_ref()?;
        let gone_back = standing.candidate.gone_back_from().map(gone_back);
        gone_back.or_else(|| Some(divided_otherwise(self.group.groups(), standing.divided?)))
    }

    /// Whether this program stands.
    pub(crate) fn stands(&self) -> bool {
        self.state().standing.is_some()
    }

    /// Sees when another program is active, or this one is or is not any more.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The store reserves nothing more in an epoch.
    pub(crate) fn lost(&self, epoch: u64) {
        let now_ms = self.now_ms().unwrap_or(u64::MAX);
        self.with(|standing| standing.candidate.lost(epoch, now_ms));
        self.wake.notify_one();
    }

    /// Changes what is known, and tells of it where keys are issued elsewhere then.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Standing) -> T) -> Option<T> {
        let mut state = self.state();
        let standing = state.standing.as_mut()?;
        let before = standing.place();
        let result = change(standing);
        let after = standing.place();
        drop(state);
        if before != after {
            let group = self.group.number();
            match &after {
                Place::Here(epoch) => {
                    info!(group, epoch, "this program issues keys of ordered tags now");
                }
                Place::Elsewhere(address) => {
                    info!(
                        group,
                        address, "another program issues keys of ordered tags"
                    );
                }
                Place::Otherwise | Place::GoneBack | Place::Nowhere => {
                    info!(group, "it is not known who issues keys of ordered tags");
                }
            }
            self.changed
                .send_modify(|count| *count = count.wrapping_add(1));
        }
        Some(result)
    }

    /// It asks for nothing any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.wake.notify_one();
        self.confirming.wake.notify_one();
    }
}

/// Where keys are issued, but for how long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Here(u64),
    Elsewhere(String),
    /// The store divides slots otherwise.
    Otherwise,
    /// Nobody knows, since the store has gone back.
    GoneBack,
    Nowhere,
}

/// Why a program issues no keys of ordered tags whose number of slot groups is not the store's.
pub(crate) fn divided_otherwise(own: SlotGroups, recorded: u64) -> Failure {
    let groups = if recorded == 1 { "group" } else { "groups" };
    let message =
        format!("the store has {recorded} slot {groups}, and this program slot_groups = {own}");
    Failure::new(Cause::SlotGroupsDiffer, message).hint(
        "have the same slot_groups in the [store] of all programs; keywright init --change-slot-groups makes it the store's once none of them is active",
    )
}

/// Why a program issues no keys of ordered tags whose store has gone back behind an epoch.
pub(crate) fn gone_back(epoch: u64) -> Failure {
    let message = format!(
        "the store says less of who issues keys of ordered tags than it said before (epoch {epoch}): its data was put back, and what was issued since is not known to it"
    );
    Failure::new(Cause::BoundDamaged, message).hint(
        "run keywright store restored --lost TIME; or raise the tags above all that they have issued by keywright advance, and start the programs again",
    )
}

impl Standing {
    pub(crate) fn place(&self) -> Place {
        match (self.candidate.tenure(), &self.holder) {
            (None, _) if self.candidate.gone_back_from().is_some() => Place::GoneBack,
            (None, _) if self.divided.is_some() => Place::Otherwise,
            (Some(tenure), _) => Place::Here(tenure.epoch),
            (None, Some((owner, address))) if **owner != *self.owner && !address.is_empty() => {
                Place::Elsewhere(address.clone())
            }
            (None, Some(_) | None) => Place::Nowhere,
        }
    }

    /// Whether this program is the active one at a moment of its clock.
    pub(crate) fn is_active(&self, now_ms: Option<u64>) -> bool {
        match (self.candidate.tenure(), now_ms) {
            (Some(tenure), Some(now_ms)) => tenure.allows(tenure.epoch, now_ms),
            (Some(_) | None, _) => false,
        }
    }

    /// Whether another program is the active one.
    pub(crate) fn is_holder(&self, program: &str) -> bool {
        match self.place() {
            Place::Elsewhere(_) => self
                .holder
                .as_ref()
                .is_some_and(|(owner, _)| owner == program),
            Place::Here(_) | Place::Otherwise | Place::GoneBack | Place::Nowhere => false,
        }
    }

    fn is_where(&self) -> Where {
        match self.candidate.tenure() {
            Some(tenure) => Where::Here(tenure),
            None => match self.place() {
                Place::Elsewhere(address) if address != self.settings.address => {
                    Where::Elsewhere(address)
                }
                // Where this program still is, unless that is one of its earlier lives: then it will be its turn.
                Place::Elsewhere(_) if self.leaves => Where::BySuccessor,
                Place::Elsewhere(_)
                | Place::Here(_)
                | Place::Otherwise
                | Place::GoneBack
                | Place::Nowhere => Where::Nowhere,
            },
        }
    }
}

impl Standing {
    pub(crate) fn note(&mut self, row: &LeaseRow) {
        self.holder = match &row.holder {
            Holder::Nobody => None,
            Holder::Program { owner, address, .. } => Some((owner.clone(), address.clone())),
        };
    }
}
