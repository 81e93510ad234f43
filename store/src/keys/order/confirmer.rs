//! The task that confirms: one write in the store for all whose requests were read before it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::order::{Written, read_ms};
use crate::seat::Seat;
use crate::seat::confirming::Verdict;
use crate::store::Store;
use crate::store::order_rows::{Confirm, Confirmed, may_lose};
use crate::store::tag_request::OrderRight;

/// The task.
pub(super) struct Confirmer {
    pub(super) seat: Arc<Seat>,
    pub(super) store: Arc<Store>,
    pub(super) ttl_ms: u64,
    /// How long the store may take, milliseconds.
    pub(super) ms_max: u64,
    pub(super) has_trouble: bool,
}

impl Confirmer {
    pub(super) async fn run(mut self) {
        let seat = Arc::clone(&self.seat);
        while !seat.is_closed.load(Ordering::Acquire) {
            let Some(epoch) = seat.confirming.begin() else {
                seat.confirming.wake.notified().await;
                continue;
            };
            let verdict = self.confirm(epoch).await;
            seat.confirming.end(&verdict);
            self.note(&verdict);
            if matches!(verdict, Verdict::Unknown(_)) {
                sleep(Duration::from_millis(read_ms(self.ttl_ms))).await;
            }
        }
        seat.confirming.close();
    }

    async fn confirm(&self, epoch: u64) -> Verdict {
        let (granted, sent_ms) = (self.seat.granted(epoch), self.seat.now_ms());
        let (Some((owner, server)), Some(sent_ms)) = (granted, sent_ms) else {
            return Verdict::GivenUp;
        };
        let right = OrderRight {
            group: self.seat.group,
            owner: &owner,
            epoch,
        };
        let confirm = Confirm {
            right,
            server: &server,
        };
        let began = Instant::now();
        match self.store.run_within(self.ms_max, confirm).await {
            Ok(Confirmed::Stands) => {
                let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.seat.confirming.count(took_us);
                let now_ms = self.seat.now_ms().unwrap_or(u64::MAX);
                self.seat.with(|standing| {
                    standing
                        .candidate
                        .renewed(epoch, Written::Yes, sent_ms, now_ms);
                });
                Verdict::Stands
            }
            Ok(Confirmed::Lost) => {
                self.seat.lost(epoch);
                Verdict::GivenUp
            }
            Ok(Confirmed::MayLose(why)) => Verdict::Refused(may_lose(&why)),
            Err(error) => Verdict::Unknown(self.store.failure(&error)),
        }
    }

    /// The first is news.
    fn note(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Stands if std::mem::take(&mut self.has_trouble) => {
                info!("replies with keys of strict tags are confirmed again");
            }
            Verdict::Stands | Verdict::GivenUp => {}
            Verdict::Unknown(failure) | Verdict::Refused(failure) => {
                if !std::mem::replace(&mut self.has_trouble, true) {
                    warn!(%failure, "replies with keys of strict tags are not confirmed");
                }
            }
        }
    }
}
