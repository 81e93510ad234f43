//! What is asked of a store, whatever engine it runs on: connections, time limits, and each transaction once.

pub(crate) mod advance;
pub(crate) mod assigned_admin;
pub(crate) mod assigned_rows;
mod bounds;
pub(crate) mod bucket_admin;
mod bucket_rows;
pub(crate) mod fed_ids;
mod fed_look;
mod fed_recorded;
pub(crate) mod fed_rows;
mod fence_records;
pub(crate) mod fenced;
mod former;
pub(crate) mod gone_back;
pub(crate) mod home_rows;
pub(crate) mod late;
pub(crate) mod lease_list;
pub(crate) mod lease_marks;
pub(crate) mod lease_rows;
pub(crate) mod lifted;
pub(crate) mod look_back;
pub(crate) mod moved_rows;
pub(crate) mod native;
pub(crate) mod number_table;
pub(crate) mod order_division;
pub(crate) mod order_rows;
pub(crate) mod ranges;
pub(crate) mod restored;
pub(crate) mod returned;
pub(crate) mod schema;
mod seen;
pub(crate) mod switch_commit;
pub(crate) mod switch_left;
pub(crate) mod switch_rows;
pub(crate) mod switch_snowflakes;
pub(crate) mod tag_admin;
pub(crate) mod tag_change;
pub(crate) mod tag_denied;
pub(crate) mod tag_hiding;
pub(crate) mod tag_left;
pub(crate) mod tag_read;
pub(crate) mod tag_request;
pub(crate) mod tag_rows;
pub(crate) mod turns;
mod uptime;
pub(crate) mod user_admin;
pub(crate) mod user_rows;
pub(crate) mod wanted;
pub(crate) mod worker_id_admin;
pub(crate) mod worker_id_rows;
mod worker_row;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use keywright_core::Tag;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use bounds::Bounds;
use turns::Turns;

pub(crate) use crate::engine::Link;
pub(crate) use crate::engine::error::StoreError;
pub(crate) use crate::engine::value::{Row, Value, column, values};

use crate::dialect::{Dialect, TableName};
use crate::engine::etcd::AgainPauses;
use crate::engine::file::Made;
use crate::engine::words::Words;
use crate::engine::{Engine, EngineSettings};
use crate::failure::Failure;
use crate::home::OtherStore;
use crate::losses::Losses;
use crate::settings::{HiddenTags, Limits, StoreSettings, TagDefaults};

/// How long it may take to change a store that was restored: all its tags and leases in one transaction.
const RESTORED_MS_MAX: u64 = 60_000;

/// The part of a limit that is left to the transaction, however long it had to wait for one of the store's connections: this divides it.
const LEFT_DIVISOR: u64 = 4;

/// The store, and connections to it. Every transaction runs on the store's own thread.
#[derive(Debug)]
pub(crate) struct Store {
    engine: Mutex<Engine>,
    pub(crate) words: Words,
    /// The largest id that a tag can have.
    pub(crate) id_max: u64,
    address: String,
    pub(crate) dialect: Dialect,
    pub(crate) segment_table: TableName,
    pub(crate) tags: TagDefaults,
    /// The tags whose numbers are sent through a permutation.
    pub(crate) hidden: HiddenTags,
    /// The other stores of the configuration.
    pub(crate) others: Vec<OtherStore>,
    limits: Limits,
    idle: Mutex<Vec<Link>>,
    /// Connections that may be used or begun.
    free: Semaphore,
    /// Whose turn it is, of those of whom there may be as many as tags.
    pub(crate) turns: Turns,
    /// The largest bound of each tag that this program has seen, whoever in it reserved: as the first id that was not.
    seen: Mutex<HashMap<Tag, u64>>,
    /// The same with the key space of which it is, also by what a file of this machine says, and servers that are fed.
    bounds: Mutex<Bounds>,
    pub(crate) losses: Losses,
    /// Whether this program ever had a lease of a worker id.
    has_leased: AtomicBool,
    /// Until when each worker id of a key space was handed to databases that are fed, as far as this program has seen, unix milliseconds.
    handed: Mutex<HashMap<(u64, u32), i64>>,
    /// Whether it answered when it was last spoken to; not set before.
    is_up: OnceLock<AtomicBool>,
}

impl Store {
    pub(crate) fn new(settings: &StoreSettings) -> Self {
        let engine = Engine::new(&settings.engine, settings.limits.store_ms_max);
        let connections_max = engine.connections_max(settings.limits.connections_max);
        Self {
            words: engine.words(),
            id_max: engine.id_max(),
            engine: Mutex::new(engine),
            address: settings.address.clone(),
            dialect: settings.dialect,
            segment_table: settings.segment_table.clone(),
            tags: settings.tags,
            hidden: settings.hidden.clone(),
            others: settings.others.clone(),
            limits: settings.limits,
            idle: Mutex::new(Vec::new()),
            free: Semaphore::new(connections_max),
            turns: Turns::new(connections_max, settings.limits.store_ms_max),
            seen: Mutex::default(),
            bounds: Mutex::default(),
            losses: Losses::default(),
            has_leased: AtomicBool::new(false),
            handed: Mutex::default(),
            is_up: OnceLock::new(),
        }
    }

    /// Runs one transaction as [`Store::run`] does, in a turn: one of those that come with refills, however many these are.
    pub(crate) async fn run_in_turn<T>(
        &self,
        transaction: impl Transaction<T>,
    ) -> Result<T, StoreError> {
        let ms = self.turns.ms_max;
        let asking = timeout(Duration::from_millis(ms), self.turns.asking.acquire()).await;
        let Ok(Ok(asking)) = asking else {
            return Err(StoreError::Crowded { ms });
        };
        let _turn = self.turns.begin(asking, None);
        self.run(transaction).await
    }

    /// Runs one transaction, within the time limit; again, where nothing was done because others came first. A connection on which anything failed is not used again: what it was
    /// told last may still be under way.
    ///
    /// It waits for one of the store's connections first, no longer than a transaction may last. Its own time begins then.
    pub(crate) async fn run<T>(&self, transaction: impl Transaction<T>) -> Result<T, StoreError> {
        let ms = self.limits.store_ms_max;
        let permit = self.permit(ms, ms).await?;
        let time = Duration::from_millis(ms);
        self.run_on(permit, (time, ms), transaction).await
    }

    /// The same within so many milliseconds, with the wait for a connection.
    pub(crate) async fn run_within<T>(
        &self,
        ms: u64,
        transaction: impl Transaction<T>,
    ) -> Result<T, StoreError> {
        let end = Instant::now() + Duration::from_millis(ms);
        // Whoever begins a connection has time for it.
        let permit = self.permit(ms - ms / LEFT_DIVISOR, ms).await?;
        let time = end.saturating_duration_since(Instant::now());
        if time.is_zero() {
            return Err(StoreError::Crowded { ms });
        }
        self.run_on(permit, (time, ms), transaction).await
    }

    /// The right to one connection. Whoever has none has begun none: servers that count connections which break off before the login shut out the host.
    /// Nothing is known of the store by it. `limit_ms`: what the error says.
    async fn permit(&self, ms: u64, limit_ms: u64) -> Result<SemaphorePermit<'_>, StoreError> {
        match timeout(Duration::from_millis(ms), self.free.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            // Nobody closes it.
            Ok(Err(_)) | Err(_) => Err(StoreError::Crowded { ms: limit_ms }),
        }
    }

    /// Runs one transaction within a time. What is said of one that takes longer names a limit, milliseconds.
    async fn run_on<T>(
        &self,
        _permit: SemaphorePermit<'_>,
        (time, ms): (Duration, u64),
        transaction: impl Transaction<T>,
    ) -> Result<T, StoreError> {
        let mut let_in = false;
        let run = async {
            let mut link = self.link().await?;
            let_in = true;
            let result = until_done(&transaction, &mut link).await?;
            self.keep(link);
            Ok(result)
        };
        let result = match timeout(time, run).await {
            Ok(result) => result,
            Err(_) => Err(self.engine().late(ms)),
        };
        let has_answered = match &result {
            Ok(_) => true,
            // What the server refuses behind the login it has answered.
            Err(error) => let_in && error.is_answer(),
        };
        if has_answered {
            self.losses.note_answer();
        }
        if result.is_err() {
            // Its connection is not used again.
            self.losses.lose();
        }
        self.note(has_answered);
        result
    }

    /// The same on a store that was restored, by the word of somebody who says so.
    pub(crate) async fn run_restored<T>(
        &self,
        transaction: impl Transaction<T>,
    ) -> Result<T, StoreError> {
        let ms = RESTORED_MS_MAX;
        let engine = self.engine().clone();
        let run = async {
            let mut link = Link::connect_to_restored(&engine).await?;
            until_done(&transaction, &mut link).await
        };
        match timeout(Duration::from_millis(ms), run).await {
            Ok(result) => result,
            Err(_) => Err(engine.late(ms)),
        }
    }

    /// Closes the connections that are idle. A file is whole then: what was committed is in it, and not beside it.
    pub(crate) async fn close(&self) {
        while let Some(link) = self.pop() {
            drop(link);
        }
        let engine = self.engine().clone();
        let ms = Duration::from_millis(self.limits.store_ms_max);
        match engine {
            Engine::MySql(_) | Engine::Postgres(_) | Engine::Etcd(_) | Engine::Redis(_) => {}
            Engine::File(file) => drop(timeout(ms, file.closed()).await),
        }
    }

    fn note(&self, is_up: bool) {
        let known = self.is_up.get_or_init(|| AtomicBool::new(is_up));
        known.store(is_up, Ordering::Relaxed);
    }

    /// Whether it let the program in and answered when it was last spoken to; `None` before.
    pub(crate) fn is_up(&self) -> Option<bool> {
        Some(self.is_up.get()?.load(Ordering::Relaxed))
    }

    /// A connection that answers. Behind one that was lost the server may have been restarted, with older data.
    async fn link(&self) -> Result<Link, StoreError> {
        while let Some(mut link) = self.pop() {
            // One that was closed while it was idle is no failure of the store.
            if link.answers().await {
                return Ok(link);
            }
            self.losses.lose();
        }
        let engine = self.engine().clone();
        Link::connect(&engine).await
    }

    /// Makes the file of a store that is one, or what says in etcd that there is one; whatever else there is to make, is made by transactions.
    pub(crate) async fn make(&self, accept_moved: bool) -> Result<Made, StoreError> {
        let engine = self.engine().clone();
        match engine {
            // What gives ranges only says so to whoever makes more.
            Engine::MySql(_) | Engine::Postgres(_) | Engine::Redis(_) => Ok(Made::Nothing),
            Engine::Etcd(engine) => Ok(match engine.create().await? {
                true => Made::New,
                false => Made::Nothing,
            }),
            Engine::File(file) => Ok(file.create(accept_moved).await?),
        }
    }

    /// Makes a connection by other settings, and closes it.
    pub(crate) async fn log_in_by(&self, settings: &StoreSettings) -> Result<(), StoreError> {
        let ms = self.limits.store_ms_max;
        let engine = Engine::new(&settings.engine, ms);
        let login = Link::connect(&engine);
        match timeout(Duration::from_millis(ms), login).await {
            Ok(result) => result.map(|_| ()),
            Err(_) => Err(engine.late(ms)),
        }
    }

    /// New connections are made by these settings. Those that are there have logged in already.
    pub(crate) fn connect_by(&self, settings: &StoreSettings) {
        match (&mut *self.engine(), &settings.engine) {
            (Engine::MySql(opts), EngineSettings::MySql(new)) => opts.clone_from(new),
            (Engine::Postgres(its), EngineSettings::Postgres(new)) => its.clone_from(new),
            (Engine::Etcd(its), EngineSettings::Etcd(new)) => its.connect_by(new),
            (Engine::Redis(its), EngineSettings::Redis(new)) => its.clone_from(new),
            // There is no login to a file; another engine is another store.
            (
                Engine::MySql(_)
                | Engine::Postgres(_)
                | Engine::Etcd(_)
                | Engine::File(_)
                | Engine::Redis(_),
                _,
            ) => {}
        }
    }

    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Reads a tag's row, locked until the transaction ends.
    pub(crate) fn select_row(&self) -> String {
        self.dialect.select_row(&self.segment_table, self.words)
    }

    /// The message for a client.
    pub(crate) fn failure(&self, error: &StoreError) -> Failure {
        let message = format!("the store at {} cannot be used: {error}", self.address);
        let failure = Failure::new(error.cause(), message);
        let of_others = error
            .not_found()
            .and_then(|name| self.dialect.hint(&self.segment_table, name));
        match (of_others, error.hint()) {
            (Some(hint), _) => failure.hint(hint),
            (None, Some(hint)) => failure.hint(hint),
            (None, None) => failure,
        }
    }
}

/// What is done on one connection, as a whole. (A trait, because futures of closures that borrow the connection cannot be told to be
/// `Send`.)
pub(crate) trait Transaction<T>: Send + Sync {
    fn run(&self, link: &mut Link) -> impl Future<Output = Result<T, StoreError>> + Send;
}

/// Runs a transaction again, where nothing was done because others came first.
async fn until_done<T>(
    transaction: &impl Transaction<T>,
    link: &mut Link,
) -> Result<T, StoreError> {
    let mut pauses = AgainPauses::default();
    loop {
        match transaction.run(link).await {
            Err(error) if error.is_again() => {
                if error.is_deadlock() {
                    link.rollback().await?;
                }
                pauses.wait().await;
            }
            result => return result,
        }
    }
}
