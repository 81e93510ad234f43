//! What everybody who takes part in a soak shares.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use postgres::Config;

use super::findings::Findings;

/// What may happen to a database, and so what its ids must differ from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Keeps its extension and a layout whose bits all of this role and of [`Role::Reborn`] share.
    Lasting,
    /// Its extension, and itself, are dropped and made again.
    Reborn,
    /// Its layout changes for good. Its snowflake ids need differ only from each other, and nobody else gets its worker ids.
    Bent,
}

/// A database.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) role: Role,
    state: Mutex<PlaceState>,
    open: AtomicBool,
}

#[derive(Debug)]
struct PlaceState {
    /// The tag in force, and how often there was another life of the extension.
    tag: String,
    lives: u32,
    /// The worker id that it was given last.
    worker: u32,
    /// The layout's epoch, for [`Role::Bent`].
    epoch_ms: i64,
    /// The time zone of readable ids, in minutes east of UTC.
    zone: i16,
    /// When its sessions leave for good.
    leave: Option<Instant>,
    /// When ids came last: of the tag, and of the worker.
    came: [Instant; 2],
}

impl Place {
    pub(super) fn new(name: &str, role: Role, tag: &str, worker: u32) -> Place {
        let now = Instant::now();
        Place {
            name: name.to_owned(),
            role,
            state: Mutex::new(PlaceState {
                tag: tag.to_owned(),
                lives: 1,
                worker,
                epoch_ms: TWITTER_EPOCH_MS,
                zone: 0,
                leave: None,
                came: [now, now],
            }),
            open: AtomicBool::new(true),
        }
    }

    fn state(&self) -> MutexGuard<'_, PlaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag that sessions draw from.
    pub(super) fn tag(&self) -> String {
        self.state().tag.clone()
    }

    /// The worker id that it was given last.
    pub(super) fn worker(&self) -> u32 {
        self.state().worker
    }

    pub(super) fn set_worker(&self, worker: u32) {
        self.state().worker = worker;
    }

    /// Another name for the tag of the next life of the extension: what it issues is told apart from what the last one did.
    pub(super) fn next_tag(&self) -> String {
        let mut state = self.state();
        state.lives += 1;
        format!("tag_{}", state.lives)
    }

    pub(super) fn set_tag(&self, tag: &str) {
        self.state().tag = tag.to_owned();
    }

    pub(super) fn epoch_ms(&self) -> i64 {
        self.state().epoch_ms
    }

    pub(super) fn set_epoch_ms(&self, epoch_ms: i64) {
        self.state().epoch_ms = epoch_ms;
    }

    pub(super) fn zone(&self) -> i16 {
        self.state().zone
    }

    pub(super) fn set_zone(&self, minutes: i16) {
        self.state().zone = minutes;
    }

    /// Whether new sessions may come.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::Relaxed);
    }

    /// Its sessions end in a while; no new ones come.
    pub(super) fn leave_in(&self, while_: Duration) {
        self.set_open(false);
        self.state().leave = Some(Instant::now() + while_);
    }

    /// Whether its sessions should end.
    pub(super) fn is_left(&self) -> bool {
        self.state()
            .leave
            .is_some_and(|when| Instant::now() >= when)
    }

    pub(super) fn came(&self, kind: Kind) {
        let now = Instant::now();
        let mut state = self.state();
        match kind {
            Kind::Tag => state.came[0] = now,
            Kind::Snowflake => state.came[1] = now,
            Kind::Readable => {}
        }
    }

    /// How long no tag id and no snowflake id came, whichever is longer.
    pub(super) fn dry_for(&self) -> Duration {
        let came = self.state().came;
        came.iter().map(Instant::elapsed).max().unwrap_or_default()
    }

    /// The key space of one kind of its ids. Tags of different lives have different names.
    pub(super) fn space(&self, kind: Kind, tag: &str) -> String {
        match (kind, self.role) {
            (Kind::Tag, _) => format!("{} of {}", tag, self.name),
            (Kind::Snowflake, Role::Lasting | Role::Reborn) => "snowflake".to_owned(),
            (Kind::Snowflake, Role::Bent) => format!("snowflake of {}", self.name),
            // Whatever the database, its bucket is in the id.
            (Kind::Readable, _) => "readable".to_owned(),
        }
    }
}

/// The epoch of layout `twitter`.
pub(super) const TWITTER_EPOCH_MS: i64 = 1_288_834_974_657;

/// A kind of id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tag,
    Snowflake,
    Readable,
}

/// Shared by the conductor and all who draw.
#[derive(Debug)]
pub(super) struct World {
    pub(super) findings: Findings,
    config: Mutex<Config>,
    places: Mutex<Vec<Arc<Place>>>,
    /// Where most of the sessions go now.
    focus: Mutex<Option<Arc<Place>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn new(config: Config) -> World {
        World {
            findings: Findings::default(),
            config: Mutex::new(config),
            places: Mutex::default(),
            focus: Mutex::default(),
        }
    }

    /// How to reach the server as it is now.
    pub(super) fn config(&self) -> Config {
        lock(&self.config).clone()
    }

    pub(super) fn set_config(&self, config: Config) {
        *lock(&self.config) = config;
    }

    /// The databases that there are.
    pub(super) fn places(&self) -> Vec<Arc<Place>> {
        lock(&self.places).clone()
    }

    pub(super) fn add(&self, place: Arc<Place>) {
        lock(&self.places).push(place);
    }

    pub(super) fn remove(&self, place: &Place) {
        lock(&self.places).retain(|other| other.name != place.name);
        self.focus_on(None);
    }

    pub(super) fn focus_on(&self, place: Option<&Arc<Place>>) {
        *lock(&self.focus) = place.cloned();
    }

    pub(super) fn focus(&self) -> Option<Arc<Place>> {
        lock(&self.focus).clone()
    }
}
