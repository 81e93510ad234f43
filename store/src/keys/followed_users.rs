//! Users of key ports as the store has them: whoever follows them hears of a change soon.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::store::Store;
use crate::store::user_rows::ReadUsers;
use crate::users::UserTable;

/// How often the store is asked whether users have changed, milliseconds.
const POLL_MS: u64 = 250;

/// So many rows that cannot be read are told in one line of the log.
const ROWS_TOLD_MAX: usize = 10;

/// The users as the store had them when it last answered. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FollowedUsers {
    table: watch::Receiver<Option<Arc<UserTable>>>,
    shared: Arc<Following>,
}

/// What those who follow and the task that asks the store share.
#[derive(Debug, Default)]
pub(super) struct Following {
    /// The table is no older than this; nothing before the store has answered.
    confirmed_at: Mutex<Option<Instant>>,
    asked_for: Notify,
    is_closed: AtomicBool,
}

impl FollowedUsers {
    /// Those that a task follows which has the other two.
    pub(super) fn new() -> (Self, watch::Sender<Option<Arc<UserTable>>>, Arc<Following>) {
        let (give, table) = watch::channel(None);
        let shared = Arc::new(Following::default());
        let followed = Self {
            table,
            shared: Arc::clone(&shared),
        };
        (followed, give, shared)
    }

    /// The users; `None` before the store has answered.
    pub fn table(&self) -> Option<Arc<UserTable>> {
        self.table.borrow().clone()
    }

    /// Waits until the store has answered.
    pub async fn known(&self) {
        // The sender lives as long as the store's thread.
        let _ = self.table.clone().wait_for(Option::is_some).await;
    }

    /// What there is now counts as seen.
    pub fn seen(&mut self) {
        self.table.mark_unchanged();
    }

    /// Waits until there is something that was not seen.
    pub async fn changed(&mut self) {
        let _ = self.table.changed().await;
    }

    /// How long ago the store said that these are the users; `None` before it has answered.
    pub fn age(&self) -> Option<Duration> {
        let confirmed_at = self.shared.confirmed_at.lock();
        let confirmed_at = *confirmed_at.unwrap_or_else(PoisonError::into_inner);
        confirmed_at.map(|at| at.elapsed())
    }

    /// Has the store asked at once, because something has changed.
    pub fn ask(&self) {
        self.shared.asked_for.notify_one();
    }
}

impl Following {
    /// The store is asked no more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.asked_for.notify_one();
    }

    fn confirm(&self, at: Instant) {
        let confirmed_at = self.confirmed_at.lock();
        *confirmed_at.unwrap_or_else(PoisonError::into_inner) = Some(at);
    }
}

/// Asks the store, for as long as somebody follows.
pub(super) async fn follow(
    store: Arc<Store>,
    give: watch::Sender<Option<Arc<UserTable>>>,
    shared: Arc<Following>,
) {
    let mut known = None;
    let mut left_out: Vec<String> = Vec::new();
    let mut has_trouble = false;
    while !give.is_closed() && !shared.is_closed.load(Ordering::Acquire) {
        // Before it is asked: what is read is no older than this.
        let at = Instant::now();
        let read = ReadUsers {
            known: known.clone(),
        };
        match store.run(read).await {
            Ok(rows) => {
                if let Some(rows) = rows {
                    known = Some(rows.version);
                    tell_left_out(&left_out, rows.table.left_out());
                    left_out = rows.table.left_out().to_vec();
                    give.send_replace(Some(Arc::new(rows.table)));
                }
                shared.confirm(at);
                if std::mem::take(&mut has_trouble) {
                    info!("users are followed again");
                }
            }
            Err(error) if !has_trouble => {
                has_trouble = true;
                let failure = store.failure(&error);
                warn!(%failure, "users cannot be read: those that were known last stay in force");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = sleep(Duration::from_millis(POLL_MS)) => {}
            () = shared.asked_for.notified() => {}
        }
    }
}

/// Says which rows of users cannot be read, where these are others than `before`.
fn tell_left_out(before: &[String], now: &[String]) {
    if before == now {
        return;
    }
    if now.is_empty() {
        info!("all users and their rights can be read again");
        return;
    }
    let (count, shown) = (now.len(), now.iter().take(ROWS_TOLD_MAX));
    let rows = shown.map(String::as_str).collect::<Vec<_>>().join("; ");
    warn!(count, %rows, "users or rights cannot be read: nobody has these, all others are in force");
}
