//! Conversations with the store: connections, time limits, errors, and which server it is.

pub(crate) mod advance;
pub(crate) mod error;
pub(crate) mod identity;
pub(crate) mod late;
pub(crate) mod lease_rows;
pub(crate) mod native;
mod privileges;
pub(crate) mod returned;
pub(crate) mod schema;
pub(crate) mod switch_commit;
pub(crate) mod switch_rows;
pub(crate) mod tag_admin;
mod tag_read;
pub(crate) mod tag_request;
pub(crate) mod tag_rows;
pub(crate) mod wanted;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use keywright_core::Cause;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub(crate) use error::{StoreError, column, is_missing_table};
pub(crate) use identity::ServerFacts;

use crate::dialect::{Dialect, TableName};
use crate::failure::Failure;
use crate::settings::{Limits, StoreSettings, TagDefaults};

/// The store, and connections to it. Every transaction runs on the store's own thread.
#[derive(Debug)]
pub(crate) struct Store {
    opts: Mutex<Opts>,
    address: String,
    pub(crate) dialect: Dialect,
    pub(crate) segment_table: TableName,
    pub(crate) tags: TagDefaults,
    limits: Limits,
    idle: Mutex<Vec<Link>>,
    free: Semaphore,
    /// Whether it answered when it was last spoken to; not set before.
    is_up: OnceLock<AtomicBool>,
}

/// A connection, and whom it leads to.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) conn: Conn,
    pub(crate) server: Arc<ServerFacts>,
}

impl Store {
    pub(crate) fn new(settings: &StoreSettings) -> Self {
        Self {
            opts: Mutex::new(settings.opts.clone()),
            address: settings.address.clone(),
            dialect: settings.dialect,
            segment_table: settings.segment_table.clone(),
            tags: settings.tags,
            limits: settings.limits,
            idle: Mutex::new(Vec::new()),
            free: Semaphore::new(settings.limits.connections_max),
            is_up: OnceLock::new(),
        }
    }

    /// Runs one transaction, within the time limit. A connection on which anything failed is not used again: what it was
    /// told last may still be under way.
    pub(crate) async fn run<T>(&self, transaction: impl Transaction<T>) -> Result<T, StoreError> {
        self.run_within(self.limits.store_ms_max, transaction).await
    }

    /// The same within so many milliseconds.
    pub(crate) async fn run_within<T>(
        &self,
        ms: u64,
        transaction: impl Transaction<T>,
    ) -> Result<T, StoreError> {
        let mut let_in = false;
        let run = async {
            let _permit = self.free.acquire().await;
            let mut link = self.link().await?;
            let_in = true;
            let result = transaction.run(&mut link).await?;
            self.keep(link);
            Ok(result)
        };
        let result = match timeout(Duration::from_millis(ms), run).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::TimedOut { ms }),
        };
        self.note(match &result {
            Ok(_) => true,
            // What the server refuses behind the login it has answered.
            Err(error) => let_in && error.is_answer(),
        });
        result
    }

    fn note(&self, is_up: bool) {
        let known = self.is_up.get_or_init(|| AtomicBool::new(is_up));
        known.store(is_up, Ordering::Relaxed);
    }

    /// Whether it let the program in and answered when it was last spoken to; `None` before.
    pub(crate) fn is_up(&self) -> Option<bool> {
        Some(self.is_up.get()?.load(Ordering::Relaxed))
    }

    /// A connection that answers.
    async fn link(&self) -> Result<Link, StoreError> {
        while let Some(mut link) = self.pop() {
            // One that was closed while it was idle is no failure of the store.
            if link.conn.ping().await.is_ok() {
                return Ok(link);
            }
        }
        let opts = self.opts().clone();
        let mut conn = Conn::new(opts).await?;
        let server = Arc::new(identity::server_facts(&mut conn).await?);
        Ok(Link { conn, server })
    }

    /// Makes a connection by other settings, and closes it.
    pub(crate) async fn log_in_by(&self, settings: &StoreSettings) -> Result<(), StoreError> {
        let ms = self.limits.store_ms_max;
        let login = async {
            let conn = Conn::new(settings.opts.clone()).await?;
            conn.disconnect().await
        };
        match timeout(Duration::from_millis(ms), login).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(StoreError::TimedOut { ms }),
        }
    }

    /// New connections are made by these settings. Those that are there have logged in already.
    pub(crate) fn connect_by(&self, settings: &StoreSettings) {
        *self.opts() = settings.opts.clone();
    }

    fn opts(&self) -> MutexGuard<'_, Opts> {
        self.opts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Link> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    fn keep(&self, link: Link) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(link);
    }

    /// The message for a client.
    pub(crate) fn failure(&self, error: &StoreError) -> Failure {
        let message = format!("the store at {} cannot be used: {error}", self.address);
        match error {
            StoreError::Client(mysql_async::Error::Server(server)) => {
                let failure = Failure::new(Cause::StoreUnavailable, message);
                match server.code {
                    1146 | 1054 => failure.hint("run keywright init"),
                    1044 | 1045 | 1142 | 1143 => failure
                        .hint("check url of [store], its password, and the grants of its account"),
                    _ => failure,
                }
            }
            StoreError::Column {
                column: _,
                value: _,
            } => Failure::new(Cause::BoundDamaged, message),
            StoreError::TimedOut { ms: _ } | StoreError::Client(_) => {
                let failure = Failure::new(Cause::StoreUnavailable, message);
                failure.hint("is the server there, and the address in url of [store] right?")
            }
            StoreError::NotLocked => Failure::new(Cause::StoreUnavailable, message),
        }
    }
}

/// What is done on one connection, as a whole. (A trait, because futures of closures that borrow the connection cannot be told to be
/// `Send`.)
pub(crate) trait Transaction<T>: Send {
    fn run(self, link: &mut Link) -> impl Future<Output = Result<T, StoreError>> + Send;
}
