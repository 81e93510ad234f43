//! Feeding: ranges of the store are handed over to PostgreSQL servers, which issue them out of their shared memory.
//!
//! A server says what it wants; the range is reserved, and only when that commit is known is it handed over, once, for the incarnation that
//! asked. Whatever becomes of the hand-over, the range counts as used: it is never handed back, and never sent a second time. So it does
//! not matter how many programs feed a server, nor when they end. Nothing is reserved where it is known that nobody would take it: by a user who
//! may not feed, or of another key space than the database has.

mod demand;
mod feeder;
mod server;
mod time;
mod trouble;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keywright_core::residue::Residue;
use keywright_core::{Cause, Tag, TagExhausted};
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::reserve::StepTrack;
use crate::settings::{FeedSettings, Limits, SnowflakeSettings};
use crate::store::Store;
use crate::store::fed_ids::{HandedIds, JudgeHanded, ReportBehind};
use crate::store::tag_request::{Granted, Receiver, ReservationRequest};
use demand::Demand;
pub use feeder::FeedStats;
pub(crate) use feeder::Feeder;
use server::{Refused, Server};
use trouble::Subject;

/// Who wants something is told of again within seconds; who was not for so long wants nothing any more.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// What is known of one tag.
#[derive(Debug)]
struct Known {
    key_space: Option<Arc<str>>,
    pause: Pause,
}

/// After a failure nothing is reserved for a while.
#[derive(Debug)]
struct Pause {
    until: Option<Instant>,
    backoff: Backoff,
}

impl Pause {
    fn new(limits: &Limits) -> Self {
        Self {
            until: None,
            backoff: Backoff::new(limits.backoff_ms_min, limits.backoff_ms_max),
        }
    }

    fn is_over(&self) -> bool {
        self.until.is_none_or(|moment| Instant::now() >= moment)
    }

    /// Whether nobody has asked again since.
    fn is_forgotten(&self) -> bool {
        self.until
            .is_none_or(|moment| Instant::now() >= moment + FORGOTTEN)
    }

    /// What became of what was tried for the subject.
    fn note(&mut self, served: Result<(), Failure>, subject: &Subject, feeder: &Feeder) {
        match served {
            Ok(()) => {
                self.until = None;
                self.backoff.succeeded();
                feeder.succeeded(subject);
            }
            Err(failure) => {
                self.until = Some(Instant::now() + Duration::from_millis(self.backoff.failed()));
                feeder.failed(subject, &failure);
            }
        }
    }
}

/// Feeds a server for as long as the program runs.
pub(crate) async fn run(
    feeder: Arc<Feeder>,
    store: Arc<Store>,
    limits: Limits,
    snowflake: SnowflakeSettings,
) {
    let mut backoff = Backoff::new(limits.backoff_ms_min, limits.backoff_ms_max);
    let tags = feeder.settings.tags.iter().map(|tag| {
        let known = Known {
            key_space: None,
            pause: Pause::new(&limits),
        };
        (tag.clone(), known)
    });
    let mut feeding = Feeding {
        store,
        tags: tags.collect(),
        snowflake,
        databases: HashMap::new(),
        limits,
        feeder,
    };
    while !feeding.is_closed() {
        let failure = match feeding.feed(&mut backoff).await {
            Ok(()) => return,
            Err(failure) => failure,
        };
        feeding.feeder.is_up.store(false, Ordering::Relaxed);
        feeding.feeder.failed(&Subject::Connection, &failure);
        sleep(Duration::from_millis(backoff.failed())).await;
    }
}

/// How far a server was handed ids. It goes on with those in its memory, whatever became of the store: one that reserved less has gone back,
/// and nothing more is reserved of it.
pub(crate) async fn handed_over(
    settings: &FeedSettings,
    store: &Store,
) -> Result<Vec<(Tag, u64)>, Failure> {
    let server = Server::connect(settings).await?;
    let all = note_handed_over(&server, store).await?.into_iter();
    Ok(all.map(|its| (its.tag, its.last)).collect())
}

/// The same before a program gives anything, which has all others know where the store has gone back.
pub(crate) async fn learn(settings: &FeedSettings, store: &Arc<Store>) -> Result<(), Failure> {
    let server = Server::connect(settings).await?;
    learn_from(&server, store).await
}

/// This program goes by all of it, also where nobody knows of which key space it is, or it is of another: of a store that was made anew it gives nothing
/// before somebody has raised the tag above.
async fn note_handed_over(server: &Server, store: &Store) -> Result<Vec<HandedIds>, Failure> {
    for (key_space, handed) in server.handed_time().await? {
        store.note_handed(key_space, handed);
    }
    let all = server.handed_over().await?;
    for handed in &all {
        store.note_seen(&handed.tag, handed.bound());
    }
    Ok(all)
}

/// Other programs are told of what is of the tag's own key space.
async fn learn_from(server: &Server, store: &Arc<Store>) -> Result<(), Failure> {
    let mut tags = Vec::new();
    for handed in note_handed_over(server, store).await? {
        if let Some(mark) = handed.key_space {
            store.note_fed(&handed.tag, (mark, handed.bound()));
            tags.push(handed.tag);
        }
    }
    // A store that is away is asked when it is back.
    if !tags.is_empty() && store.is_up() != Some(false) {
        let report = ReportBehind {
            store: Arc::clone(store),
            tags,
        };
        let _ = store.run(report).await;
    }
    Ok(())
}

/// What is in the way of feeding a server; the store is told nothing.
pub(crate) async fn check(
    settings: &FeedSettings,
    store: &Arc<Store>,
) -> Result<Vec<Failure>, Failure> {
    let server = Server::connect(settings).await?;
    server.may_feed().await?;
    let judge = JudgeHanded {
        store: Arc::clone(store),
        handed: server.handed_over().await?,
    };
    // That it cannot be asked is told elsewhere.
    Ok(store.run(judge).await.unwrap_or_default())
}

struct Feeding {
    feeder: Arc<Feeder>,
    store: Arc<Store>,
    tags: HashMap<Tag, Known>,
    snowflake: SnowflakeSettings,
    /// By the owner of the lease: those in trouble.
    databases: HashMap<String, Pause>,
    limits: Limits,
}

impl Feeding {
    fn is_closed(&self) -> bool {
        self.feeder.is_closed.load(Ordering::Acquire)
    }

    /// Feeds over one connection.
    ///
    /// # Errors
    /// It failed, or did not answer.
    async fn feed(&mut self, backoff: &mut Backoff) -> Result<(), Failure> {
        let feeder = Arc::clone(&self.feeder);
        let server = Server::connect(&feeder.settings).await?;
        learn_from(&server, &self.store).await?;
        server.may_feed().await?;
        while !self.is_closed() {
            let demands = server.await_demand().await?;
            feeder.is_up.store(true, Ordering::Relaxed);
            backoff.succeeded();
            let times = server.time_demand().await?;
            self.databases.retain(|_, pause| !pause.is_forgotten());
            let tags = demands
                .iter()
                .flat_map(|demand| [Subject::Tag(demand.tag.clone()), demand.subject()]);
            let databases = times.iter().map(|demand| demand.subject(None));
            feeder.wanted_by(tags.chain(databases));
            for demand in demands {
                self.serve(&server, &demand).await?;
            }
            for demand in times {
                self.serve_time(&server, &demand).await?;
            }
            // It has answered all through a round.
            feeder.succeeded(&Subject::Connection);
        }
        Ok(())
    }

    /// Reserves and hands over what one tag wants, unless that failed a moment ago.
    async fn serve(&mut self, server: &Server, demand: &Demand) -> Result<(), Failure> {
        let feeder = Arc::clone(&self.feeder);
        // No other was asked for.
        let Some(known) = self.tags.get_mut(&demand.tag) else {
            return Ok(());
        };
        if !known.pause.is_over() {
            return Ok(());
        }
        let of_database = demand.subject();
        let served = match reserve(&self.store, known, demand).await {
            Ok(granted) => {
                let taken = hand_over(&feeder, server, demand, &granted).await?;
                match taken {
                    Ok(()) => feeder.succeeded(&of_database),
                    // Else ranges would be lost, one after the other, to a user who may not feed any more.
                    Err(_) => server.may_feed().await?,
                }
                taken
            }
            // Nothing was reserved, and other databases may have the tag.
            Err(failure) if failure.cause() == Cause::HandOverRefused => {
                feeder.failed(&of_database, &failure);
                return Ok(());
            }
            Err(failure) => Err(failure),
        };
        let subject = Subject::Tag(demand.tag.clone());
        known.pause.note(served, &subject, &feeder);
        Ok(())
    }
}

/// Makes a range durably ours, of as many ids as are wanted, or of what the tag has left.
async fn reserve(store: &Store, known: &mut Known, demand: &Demand) -> Result<Granted, Failure> {
    if let Ok(granted) = reserve_of(store, known, demand, demand.wanted).await? {
        return Ok(granted);
    }
    let rest = reserve_of(store, known, demand, 0).await?;
    rest.map_err(|exhausted| {
        Failure::new(
            Cause::TagExhausted,
            format!("tag \"{}\" is {exhausted}", demand.tag),
        )
    })
}

/// The same, of `need` ids at least. Inside: there are not so many.
async fn reserve_of(
    store: &Store,
    known: &mut Known,
    demand: &Demand,
    need: u64,
) -> Result<Result<Granted, TagExhausted>, Failure> {
    let seen = match demand.above {
        0 => 0,
        above => above.saturating_add(1),
    };
    if let Some(mark) = demand.key_space.filter(|_| seen > 0) {
        store.note_fed(&demand.tag, (mark, seen));
    }
    let request = ReservationRequest {
        store,
        tag: &demand.tag,
        residue: Residue::ALL,
        need,
        floor: seen,
        seen,
        steps: StepTrack::default(),
        uptime_ms: 0,
        // What others handed back may lie below what this server had.
        returned: false,
        generation: None,
        key_space: known.key_space.clone(),
        right: None,
        // The databases would need the key as well.
        hiding: None,
        receiver: Some(Receiver {
            mark: demand.key_space,
        }),
    };
    let answer = store.run(request).await;
    match answer.map_err(|error| store.failure(&error))? {
        Ok(granted) => {
            known.key_space = Some(Arc::clone(&granted.key_space));
            Ok(Ok(granted))
        }
        Err(denied) => match denied.failure() {
            Ok(failure) => Err(failure),
            Err(exhausted) => Ok(Err(exhausted)),
        },
    }
}

/// Hands a range over. Inside: the server did not take it.
///
/// # Errors
/// The server did not answer: nobody knows whether it took it.
async fn hand_over(
    feeder: &Feeder,
    server: &Server,
    demand: &Demand,
    granted: &Granted,
) -> Result<Result<(), Failure>, Failure> {
    let answer = server.feed_tag(demand, granted).await;
    match &answer {
        Ok(Ok(())) => {
            let ids = granted.end.saturating_sub(granted.start);
            feeder.ranges.fetch_add(1, Ordering::Relaxed);
            feeder.ids.fetch_add(ids, Ordering::Relaxed);
            debug!(server = feeder.settings.address, tag = %demand.tag, first = granted.start, ids, "handed over");
        }
        Ok(Err(_)) | Err(_) => {
            feeder.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(answer?.map_err(|Refused(failure)| failure))
}
