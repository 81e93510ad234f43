//! Users of key ports: read, changed, and followed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::Keys;
use crate::failure::Failure;
use crate::store::Store;
use crate::store::user_admin::ChangeUser;
use crate::store::user_rows::ReadUsers;
use crate::users::{UserChange, UserName, UserTable};

/// How often the store is asked whether users have changed, milliseconds.
const POLL_MS: u64 = 250;

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

impl Keys {
    /// All users.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn users(&self) -> Result<UserTable, Failure> {
        let read = self.run(ReadUsers { known: None }).await?;
        Ok(read.map(|rows| rows.table).unwrap_or_default())
    }

    /// Changes a user. Programs hear of it within a second.
    ///
    /// # Errors
    /// There is no such user, or there is one already; the store cannot be used.
    pub async fn change_user(&self, name: UserName, change: UserChange) -> Result<(), Failure> {
        self.run(ChangeUser { name, change }).await?
    }

    /// Follows the users from now on, for as long as somebody has what this returns.
    pub fn follow_users(&self) -> FollowedUsers {
        let (give, table) = watch::channel(None);
        let shared = Arc::new(Following::default());
        let followed = FollowedUsers {
            table,
            shared: Arc::clone(&shared),
        };
        let mut sources = self.sources();
        if !sources.closed {
            let task = follow(Arc::clone(&self.0.store), give, Arc::clone(&shared));
            sources.followings.push(shared);
            sources.tasks.push(self.spawn(task));
        }
        drop(sources);
        followed
    }
}

async fn follow(
    store: Arc<Store>,
    give: watch::Sender<Option<Arc<UserTable>>>,
    shared: Arc<Following>,
) {
    let mut known = None;
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
