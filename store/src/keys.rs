//! All sources of one store, and the thread that talks to it.

mod assignments;
mod buckets;
mod check;
mod feeding;
mod followed_users;
mod generations;
mod hand_back;
mod homes;
mod issued;
mod kept;
mod manage;
mod moved;
mod order;
pub(crate) mod relocation;
mod several;
mod source_of;
mod use_only;
mod users;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use keywright_core::residue::Residue;
use keywright_core::{Cause, Tag};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

use crate::clock::{Clock, SystemClock};
use crate::elsewhere::Elsewhere;
use crate::failure::{Failure, broken_off};
use crate::feed::Feeder;
use crate::kept::keeper::Keeper;
use crate::lease::TakeoverLimits;
use crate::lease::space::Space;
use crate::seat::seats::Seats;
use crate::settings::{FurtherStore, StoreSettings};
use crate::sources::demand::StoreNews;
use crate::sources::segment::SegmentSupply;
use crate::sources::source::Source;
use crate::sources::stats::SourceStats;
use crate::sources::time::supply::TimeSupply;
use crate::sources::uuids::UuidMaker;
use crate::spec::KeySpec;
use crate::store::look_back::watch;
use crate::store::{Store, Transaction};
use crate::switch::commit::SnowflakeStart;

pub(crate) use assignments::not_assigned;
pub use buckets::StoreBuckets;
pub use check::{Finding, Severity};
pub use followed_users::FollowedUsers;
use followed_users::Following;

pub use order::{GroupStats, OrderNode, OrderStats, SlotGroupsRecorded};
pub use several::StoreUp;

fn draining() -> Failure {
    Failure::new(
        Cause::Draining,
        "no keys are issued any more: shutting down",
    )
}

/// All sources of one store. Cheap to clone, shared by all threads. When the last clone is dropped the store's thread
/// ends; what was reserved is lost then, unless [`Keys::hand_back`] was called.
#[derive(Debug, Clone)]
pub struct Keys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: StoreSettings,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    uuids: Arc<UuidMaker>,
    /// Of which slot groups this program issues keys of ordered tags.
    seats: Arc<Seats>,
    /// Keeps a part of what is reserved in a file.
    keeper: Option<Arc<Keeper>>,
    sources: Mutex<Sources>,
    runtime: Handle,
    /// The stores that hold some tags.
    further: Vec<Further>,
    /// How the other stores are asked, where there are several.
    elsewhere: OnceLock<Arc<Elsewhere>>,
    /// Dropped with the last clone: the store's thread ends.
    end: Arc<oneshot::Sender<()>>,
}

/// A store that holds some tags.
#[derive(Debug)]
struct Further {
    its: FurtherStore,
    keys: Keys,
}

/// Sources by what was asked for, and what they draw from: all sources of one tag draw from one supply.
#[derive(Debug, Default)]
struct Sources {
    by_spec: HashMap<KeySpec, Source>,
    /// Those of readable keys that come from several stores.
    over_buckets: HashMap<KeySpec, Source>,
    segments: HashMap<(Tag, Residue), Arc<SegmentSupply>>,
    /// First ids that are given of tags, where tables have ids of their own below.
    left_out: HashMap<Tag, u64>,
    times: Vec<Arc<TimeSupply>>,
    /// What was said of the store by those that draw ranges from it.
    news: Arc<StoreNews>,
    feeders: Vec<Arc<Feeder>>,
    /// Who follows the users.
    followings: Vec<Arc<Following>>,
    /// Notified when the task of a supply has ended.
    tasks: Vec<watch::Receiver<()>>,
    closed: bool,
}

impl Sources {
    fn of_tag(&self, tag: &Tag) -> Vec<Arc<SegmentSupply>> {
        let segments = self.segments.iter();
        let its = segments.filter(|((name, _), _)| name == tag);
        its.map(|(_, supply)| Arc::clone(supply)).collect()
    }
}

impl Keys {
    /// Starts the store's thread. Nothing is connected to yet: a proxy must be able to start while its store is away.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn open(settings: StoreSettings) -> Result<Self, Failure> {
        Self::open_with_clock(settings, Arc::new(SystemClock))
    }

    /// As [`Keys::open`], with a clock of the caller's.
    ///
    /// # Errors
    /// As [`Keys::open`].
    pub fn open_with_clock(
        settings: StoreSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        let further = settings.further().iter().map(|store| {
            let keys = Self::open_one(store.settings().clone(), Arc::clone(&clock), Vec::new())?;
            Ok(Further {
                its: store.clone(),
                keys,
            })
        });
        let further: Vec<Further> = further.collect::<Result<_, Failure>>()?;
        let keys = Self::open_one(settings, clock, further)?;
        keys.meet_each_other();
        Ok(keys)
    }

    fn open_one(
        settings: StoreSettings,
        clock: Arc<dyn Clock>,
        further: Vec<Further>,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(
                Cause::StoreUnavailable,
                format!("the store's thread cannot be started: {error}"),
            )
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new()
            .name("keywright-store".to_owned())
            .spawn(move || {
                // Ends when the sender is dropped; tasks still under way are dropped with the runtime.
                let _ = runtime.block_on(ended);
            })
            .map_err(failed)?;
        let store = Arc::new(Store::new(&settings));
        handle.spawn(watch(Arc::downgrade(&store)));
        Ok(Self(Arc::new(Inner {
            store,
            uuids: Arc::new(UuidMaker::new(Arc::clone(&clock))),
            seats: Arc::new(Seats::new(settings.slot_groups, &clock)),
            keeper: (settings.kept.clone())
                .map(|kept| Arc::new(Keeper::new(kept, Arc::clone(&clock)))),
            clock,
            settings,
            sources: Mutex::new(Sources::default()),
            runtime: handle,
            further,
            elsewhere: OnceLock::new(),
            end: Arc::new(end),
        })))
    }

    /// Runs a task on the store's thread; the receiver sees the sender go when it has ended.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> watch::Receiver<()> {
        let (running, ended) = watch::channel(());
        self.0.runtime.spawn(async move {
            task.await;
            drop(running);
        });
        ended
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.0
            .sources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A transaction on the store's thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        transaction: impl Transaction<T> + 'static,
    ) -> Result<T, Failure> {
        let store = Arc::clone(&self.0.store);
        let transaction = self.0.runtime.spawn(async move {
            let result = store.run(transaction).await;
            result.map_err(|error| store.failure(&error))
        });
        transaction.await.unwrap_or_else(broken_off)
    }

    /// The same within so many milliseconds.
    async fn run_within<T: Send + 'static>(
        &self,
        ms: u64,
        transaction: impl Transaction<T> + 'static,
    ) -> Result<T, Failure> {
        let store = Arc::clone(&self.0.store);
        let transaction = self.0.runtime.spawn(async move {
            let result = store.run_within(ms, transaction).await;
            result.map_err(|error| store.failure(&error))
        });
        transaction.await.unwrap_or_else(broken_off)
    }

    pub(crate) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.0.store)
    }

    /// Where the store is, without user and password.
    pub fn store_address(&self) -> &str {
        self.0.settings.address()
    }

    /// Whether tags are in Keywright's own table.
    pub fn has_own_tags(&self) -> bool {
        self.0.settings.has_own_tags()
    }

    /// Where snowflake ids may begin.
    pub(crate) fn snowflakes(&self) -> SnowflakeStart {
        self.0.settings.snowflakes()
    }

    /// How a worker id would be taken over now.
    pub(crate) fn takeover(&self) -> TakeoverLimits {
        self.0.settings.snowflake.takeover(self.0.clock.wall_ms())
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.0.clock)
    }

    /// Figures of everything that sources draw from.
    pub fn stats(&self) -> Vec<SourceStats> {
        let mut stats: Vec<SourceStats> = self.all().flat_map(Self::stats_here).collect();
        stats.sort_by(|one, other| (&one.name, &one.store).cmp(&(&other.name, &other.store)));
        stats.dedup_by(|one, other| one.name == other.name && one.store == other.store);
        stats
    }

    fn stats_here(&self) -> Vec<SourceStats> {
        let sources: Vec<Source> = self.sources().by_spec.values().cloned().collect();
        let stats = sources.iter().filter_map(Source::stats);
        let of_store = |stats| SourceStats {
            store: self.store_name().to_owned(),
            ..stats
        };
        stats.map(of_store).collect()
    }

    /// The worker id that snowflake keys carry now.
    pub fn worker_id(&self) -> Option<u32> {
        let sources = self.sources();
        let mut times = sources.times.iter();
        times
            .find(|supply| supply.space == Space::Snowflake)
            .and_then(|supply| supply.worker_id())
    }
}
