//! The task that renews a program's lease of a slot group, or looks whether another's is renewed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keywright_core::Cause;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::reader::Reader;
use crate::failure::Failure;
use crate::host::holder;
use crate::order::{Action, Holder, LeaseRow, Renewal, Written, read_ms};
use crate::seat::seats::Seats;
use crate::seat::{OrderSettings, Seat, divided_otherwise, gone_back};
use crate::store::order_rows::{ForgetNode, Leases, NoteNode, Release, Renew, TakeOver};
use crate::store::tag_request::OrderRight;
use crate::store::{Store, StoreError};

/// Nodes that were not seen for so many times to live are not shown.
const SILENT_TTLS: u64 = 3;

/// A program of the same address that is active for so many times to live is not one whose place this one takes.
const NAMESAKE_TTLS: u32 = 5;

/// Another program of the same address, which is active.
pub(super) struct Namesake {
    since: Instant,
    /// The lease as it was when it was seen first. What a program left that ended is not renewed.
    first: Renewal,
    is_told: bool,
}

/// What is done once per program, whatever groups there are: it notes itself, and who else is there.
#[derive(Default)]
pub(super) struct Register {
    noted_at: Option<Instant>,
}

/// What does not succeed at the moment. A store that is full is read all the same.
#[derive(Default)]
pub(super) struct Trouble {
    reads: bool,
    writes: bool,
}

/// The task.
pub(super) struct Keeper {
    pub(super) seat: Arc<Seat>,
    pub(super) seats: Arc<Seats>,
    pub(super) store: Arc<Store>,
    pub(super) reader: Arc<Reader>,
    pub(super) settings: OrderSettings,
    /// How long the store may take, milliseconds.
    pub(super) ms_max: u64,
    /// One task of the program has it.
    pub(super) register: Option<Register>,
    pub(super) trouble: Trouble,
    /// It was told that the store has gone back.
    pub(super) has_gone_back: bool,
    pub(super) namesake: Option<Namesake>,
}

impl Keeper {
    pub(super) async fn run(mut self) {
        while !self.seat.is_closed.load(Ordering::Acquire) {
            let Some(now_ms) = self.seat.now_ms() else {
                warn!(
                    "this machine has no CLOCK_BOOTTIME, so this program issues no keys of ordered tags"
                );
                return;
            };
            let Some(next) = self.seat.with(|standing| match standing.leaves {
                // Only so that clients can be told who is active.
                true => Action::Read,
                false => standing.candidate.next(now_ms),
            }) else {
                return;
            };
            self.note_node().await;
            match next {
                Action::Wait { until_ms } => self.pause(until_ms.saturating_sub(now_ms)).await,
                Action::Read => self.read().await,
                Action::TakeOver { seen, epoch } => self.take_over(&seen, epoch).await,
                Action::Renew { epoch } => self.renew(epoch).await,
            }
        }
        self.forget_node().await;
    }

    async fn pause(&self, ms: u64) {
        tokio::select! {
            () = sleep(Duration::from_millis(ms.min(self.settings.ttl_ms))) => {}
            () = self.seat.wake.notified() => {}
        }
    }

    fn owner(&self) -> Option<Arc<str>> {
        self.seat.with(|standing| Arc::clone(&standing.owner))
    }

    async fn read(&mut self) {
        let leases = match self.reader.read().await {
            Ok(leases) => leases,
            Err(failure) => {
                self.failed(|trouble| &mut trouble.reads, &failure);
                return self.has_not_read(&failure).await;
            }
        };
        self.succeeded(|trouble| &mut trouble.reads);
        let Some(now_ms) = self.seat.now_ms() else {
            return;
        };
        if self.is_divided_otherwise(&leases).await {
            return self.pause(self.settings.ttl_ms / 20).await;
        }
        let Some(lease) = leases.of(self.seat.group) else {
            // It was taken away by hand since: the next read makes it.
            return self.pause(read_ms(self.settings.ttl_ms)).await;
        };
        let row = &lease.row;
        self.look_for_namesake(row);
        let left_by = Some(lease.address.as_str()).filter(|address| !address.is_empty());
        self.seat.with(|standing| standing.note(row));
        let ttl_ms = self.settings.ttl_ms;
        let courtesy_ms = self.seats.courtesy_ms(&self.seat, left_by, now_ms);
        let next = self.seat.with(|standing| {
            standing.candidate.leave_to_others(courtesy_ms);
            let next = standing.candidate.has_read(row, now_ms);
            standing.is_taking = next.is_some();
            next
        });
        self.tell_gone_back();
        match next.flatten() {
            Some(Action::TakeOver { seen, epoch }) => self.take_over(&seen, epoch).await,
            Some(Action::Read | Action::Renew { .. } | Action::Wait { .. }) | None => {
                self.pause(read_ms(ttl_ms)).await;
            }
        }
    }

    /// Whether the number of slot groups is another one in the store. Then this program knows of no lease whose it is, and takes none.
    async fn is_divided_otherwise(&mut self, leases: &Leases) -> bool {
        let own = self.seat.group.groups();
        let divided = Some(leases.groups).filter(|its| *its != u64::from(own.count()));
        let now_ms = self.seat.now_ms();
        let before = self.seat.with(|standing| {
            if divided.is_some() {
                standing.holder = None;
                // Once the number is its own, it is so for all others at the same moment: they share as if they began then.
                standing.began_ms = now_ms.unwrap_or(standing.began_ms);
            }
            std::mem::replace(&mut standing.divided, divided)
        });
        if let Some(recorded) = divided
            && before.flatten().is_none()
            && self.register.is_some()
        {
            let failure = divided_otherwise(own, recorded);
            warn!(%failure, "no keys of ordered tags are given");
            // It was noted before that was known, and is again when the number is its own.
            self.register = Some(Register::default());
            self.seats.note_nodes(Vec::new());
            self.forget_node().await;
        }
        divided.is_some()
    }

    /// Once, until it is over.
    fn tell_gone_back(&mut self) {
        let epoch = self
            .seat
            .with(|standing| standing.candidate.gone_back_from());
        let epoch = epoch.flatten();
        if let Some(epoch) = epoch.filter(|_| !self.has_gone_back) {
            let failure = gone_back(epoch);
            warn!(%failure, "no keys of ordered tags are given");
        }
        self.has_gone_back = epoch.is_some();
    }

    /// It is asked again soon. But of a store that says what cannot be nothing is taken for a while.
    async fn has_not_read(&mut self, failure: &Failure) {
        let now_ms = self.seat.now_ms();
        if let Some(now_ms) = now_ms.filter(|_| failure.cause() == Cause::BoundDamaged) {
            self.seat.with(|standing| standing.candidate.rest(now_ms));
        }
        self.pause(self.settings.ttl_ms / 20).await;
    }

    /// Clients that this program sends to one of the same address come back to it. A program whose place this one takes has the same for a moment.
    fn look_for_namesake(&mut self, row: &LeaseRow) {
        let own = self.owner();
        let is_namesake = match &row.holder {
            Holder::Nobody => false,
            Holder::Program { owner, address, .. } => {
                *address == self.settings.address && Some(&**owner) != own.as_deref()
            }
        };
        if !is_namesake {
            self.namesake = None;
            return;
        }
        let namesake = self.namesake.get_or_insert_with(|| Namesake {
            since: Instant::now(),
            first: row.renewal.clone(),
            is_told: false,
        });
        let ttl = Duration::from_millis(self.settings.ttl_ms);
        let is_long = namesake.since.elapsed() >= ttl.saturating_mul(NAMESAKE_TTLS);
        if is_long && namesake.first != row.renewal && !namesake.is_told {
            namesake.is_told = true;
            warn!(
                address = self.settings.address,
                "another program has the same cluster_address and gives keys of ordered tags, so this one cannot send clients there: write in each where it alone is reached"
            );
        }
    }

    async fn take_over(&mut self, seen: &Renewal, epoch: u64) {
        let (Some(owner), Some(sent_ms)) = (self.owner(), self.seat.now_ms()) else {
            return;
        };
        let right = OrderRight {
            group: self.seat.group,
            owner: &owner,
            epoch,
        };
        let holder = holder();
        let take_over = TakeOver {
            right,
            seen,
            holder: &holder,
            address: &self.settings.address,
            ttl_ms: self.settings.ttl_ms,
        };
        let taken = self.store.run_within(self.ms_max, take_over).await;
        let written = self.written(taken);
        let now_ms = self.seat.now_ms().unwrap_or(u64::MAX);
        let is_active = self.seat.with(|standing| {
            standing.is_taking = false;
            standing
                .candidate
                .took_over(epoch, written, sent_ms, now_ms);
            let is_active = standing.candidate.tenure().is_some();
            if is_active {
                standing.holder = None;
            }
            is_active
        });
        // It began to leave meanwhile.
        if written == Written::Yes && is_active == Some(false) {
            let _ = self.store.run(Release { right }).await;
        }
    }

    async fn renew(&mut self, epoch: u64) {
        let (Some(owner), Some(sent_ms)) = (self.owner(), self.seat.now_ms()) else {
            return;
        };
        let right = OrderRight {
            group: self.seat.group,
            owner: &owner,
            epoch,
        };
        // Nobody waits longer for it than it is of use.
        let renewed = self.store.run_within(self.ms_max, Renew { right }).await;
        let written = self.written(renewed);
        let now_ms = self.seat.now_ms().unwrap_or(u64::MAX);
        self.seat
            .with(|standing| standing.candidate.renewed(epoch, written, sent_ms, now_ms));
    }

    fn written(&mut self, result: Result<bool, StoreError>) -> Written {
        match result {
            Ok(is_written) => {
                self.succeeded(|trouble| &mut trouble.writes);
                match is_written {
                    true => Written::Yes,
                    false => Written::No,
                }
            }
            Err(error) => {
                let failure = self.store.failure(&error);
                self.failed(|trouble| &mut trouble.writes, &failure);
                Written::Unknown
            }
        }
    }

    /// The first is news.
    fn failed(&mut self, of: fn(&mut Trouble) -> &mut bool, failure: &Failure) {
        if !std::mem::replace(of(&mut self.trouble), true) {
            let group = self.seat.group.number();
            warn!(group, %failure, "the lease of ordered tags cannot be followed");
        }
    }

    fn succeeded(&mut self, of: fn(&mut Trouble) -> &mut bool) {
        let was_trouble = std::mem::take(of(&mut self.trouble));
        if was_trouble && !self.trouble.reads && !self.trouble.writes {
            let group = self.seat.group.number();
            info!(group, "the lease of ordered tags is followed again");
        }
    }

    /// Once per time to live: that this program is there, and which others are. One that divides slots otherwise than the store is not among them.
    async fn note_node(&mut self) {
        let ttl = Duration::from_millis(self.settings.ttl_ms);
        let Some(register) = &mut self.register else {
            return;
        };
        let is_due = register.noted_at.is_none_or(|at| at.elapsed() >= ttl);
        let noting = self.seat.with(|standing| {
            let owner = Arc::clone(&standing.owner);
            standing.divided.is_none().then_some(owner)
        });
        let Some(owner) = noting.flatten().filter(|_| is_due) else {
            return;
        };
        register.noted_at = Some(Instant::now());
        let holder = holder();
        let note = NoteNode {
            program: &owner,
            holder: &holder,
            address: &self.settings.address,
            silent_ms_max: self.settings.ttl_ms.saturating_mul(SILENT_TTLS),
        };
        // What is in the way is told by what is done about the lease.
        if let Ok(nodes) = self.store.run_within(self.ms_max / 4, note).await {
            self.seats.note_nodes(nodes);
        }
    }

    async fn forget_node(&self) {
        if let (Some(_), Some(owner)) = (&self.register, self.owner()) {
            let _ = self.store.run(ForgetNode { program: &owner }).await;
        }
    }
}
