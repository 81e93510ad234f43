//! The task that renews a program's lease, or looks whether another's is renewed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::host::holder;
use crate::order::{Action, Renewal, Written, read_ms};
use crate::seat::{OrderSettings, Seat};
use crate::store::order_rows::{ForgetNode, NoteNode, ReadLease, Release, Renew, TakeOver};
use crate::store::tag_request::OrderRight;
use crate::store::{Store, StoreError};

/// Nodes that were not seen for so many times to live are not shown.
const SILENT_TTLS: u64 = 3;

/// The task.
pub(super) struct Keeper {
    pub(super) seat: Arc<Seat>,
    pub(super) store: Arc<Store>,
    pub(super) settings: OrderSettings,
    /// How long the store may take, milliseconds.
    pub(super) ms_max: u64,
    pub(super) noted_at: Option<Instant>,
    pub(super) has_trouble: bool,
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
        let ttl_ms = self.settings.ttl_ms;
        let read = self
            .store
            .run_within(self.ms_max, ReadLease { ttl_ms })
            .await;
        let row = match read {
            Ok(row) => row,
            Err(error) => {
                self.failed(&error);
                return self.pause(ttl_ms / 20).await;
            }
        };
        self.succeeded();
        let Some(now_ms) = self.seat.now_ms() else {
            return;
        };
        let next = self.seat.with(|standing| {
            standing.note(&row);
            standing.candidate.has_read(&row, now_ms)
        });
        match next.flatten() {
            Some(Action::TakeOver { seen, epoch }) => self.take_over(&seen, epoch).await,
            Some(Action::Read | Action::Renew { .. } | Action::Wait { .. }) | None => {
                self.pause(read_ms(ttl_ms)).await;
            }
        }
    }

    async fn take_over(&mut self, seen: &Renewal, epoch: u64) {
        let (Some(owner), Some(sent_ms)) = (self.owner(), self.seat.now_ms()) else {
            return;
        };
        let right = OrderRight {
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
                self.succeeded();
                match is_written {
                    true => Written::Yes,
                    false => Written::No,
                }
            }
            Err(error) => {
                self.failed(&error);
                Written::Unknown
            }
        }
    }

    /// The first is news.
    fn failed(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.has_trouble, true) {
            let failure = self.store.failure(error);
            warn!(%failure, "the lease of ordered tags can be neither read nor renewed");
        }
    }

    fn succeeded(&mut self) {
        if std::mem::take(&mut self.has_trouble) {
            info!("the lease of ordered tags is followed again");
        }
    }

    /// Once per time to live: that this program is there, and which others are.
    async fn note_node(&mut self) {
        let ttl = Duration::from_millis(self.settings.ttl_ms);
        let is_due = self.noted_at.is_none_or(|at| at.elapsed() >= ttl);
        let Some(owner) = self.owner().filter(|_| is_due) else {
            return;
        };
        self.noted_at = Some(Instant::now());
        let holder = holder();
        let note = NoteNode {
            program: &owner,
            holder: &holder,
            address: &self.settings.address,
            silent_ms_max: self.settings.ttl_ms.saturating_mul(SILENT_TTLS),
        };
        // What is in the way is told by what is done about the lease.
        if let Ok(nodes) = self.store.run_within(self.ms_max / 4, note).await {
            self.seat.with(|standing| standing.nodes = nodes);
        }
    }

    async fn forget_node(&self) {
        if let Some(owner) = self.owner() {
            let _ = self.store.run(ForgetNode { program: &owner }).await;
        }
    }
}
