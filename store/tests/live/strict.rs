//! Strict tags: clocks may do what they want, and a store that may lose what it has acknowledged has none.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use keywright_core::{Cause, Readings};
use keywright_store::{
    Clock, Failure, Keys, OrderSettings, Ordered, RawSnowflakeSettings, RawStoreSettings, Severity,
    Source, StoreSettings, TagOptions, TagOrder,
};
use keywright_testkit::{Flavour, PgServer, Replication, Result, Stop, Upstream, WAIT_MAX};
use tokio::time::sleep;

use crate::common::{
    Engine, Schema, in_postgres, open, raw, raw_postgres, runtime, segment, small_steps, tag, until,
};

const TTL_MS: u64 = 500;
const PROGRAMS: usize = 3;
const CLIENTS: usize = 16;
/// So much happens at least.
const REPLIES: usize = 3_000;
const TAKEOVERS: u64 = 6;

fn strict() -> TagOptions {
    TagOptions {
        order: TagOrder::Strict,
        ..small_steps(1_000)
    }
}

fn stand(keys: &Keys, address: &str) {
    keys.stand_for_order(OrderSettings {
        address: address.to_owned(),
        ttl_ms: TTL_MS,
    });
}

/// An issuer that is active, and has a strict tag.
pub async fn active(settings: &RawStoreSettings) -> Result<(Keys, Source)> {
    let keys = open(settings)?;
    keys.init().await?;
    keys.create_tag(&tag("orders"), &strict()).await?;
    stand(&keys, "one:1");
    let source = keys.source(&segment("orders"))?;
    first(&source).await?;
    Ok((keys, source))
}

/// The next id, once there is one.
pub async fn first(source: &Source) -> Result<u64> {
    let end = Instant::now() + WAIT_MAX;
    loop {
        match source.take_ordered(1).await {
            Ok(Ordered::Have(keys)) => return Ok(keys.number(0).unwrap_or_default()),
            Ok(_) => sleep(Duration::from_millis(5)).await,
            Err(failure) if failure.cause().retryable() => {}
            Err(failure) => return Err(failure.into()),
        }
        anyhow::ensure!(Instant::now() < end, "nobody issues");
    }
}

pub async fn refusal(source: &Source) -> Result<Failure> {
    match source.take_ordered(1).await {
        Ok(told) => anyhow::bail!("told {told:?}"),
        Err(failure) => Ok(failure),
    }
}

/// Waits until it is refused because the store may lose what it acknowledges. What is on its way when that begins is told, or refused otherwise.
pub async fn may_lose(source: &Source) -> Result<()> {
    let end = Instant::now() + WAIT_MAX;
    loop {
        let taken = source.take_ordered(1).await;
        if taken.is_err_and(|failure| failure.cause() == Cause::StoreMayLose) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < end, "it is not refused");
        sleep(Duration::from_millis(5)).await;
    }
}

/// The next id, once nothing is refused any more.
pub async fn goes_on(source: &Source) -> Result<u64> {
    let end = Instant::now() + WAIT_MAX;
    loop {
        match first(source).await {
            Ok(id) => return Ok(id),
            Err(failure) => anyhow::ensure!(Instant::now() < end, "{failure}"),
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// A clock that is set, and runs, as nobody expects.
#[derive(Debug)]
struct WildClock {
    began: Instant,
    offset_ms: AtomicI64,
    per_mille: AtomicU64,
}

impl WildClock {
    fn new() -> WildClock {
        WildClock {
            began: Instant::now(),
            offset_ms: AtomicI64::new(1_000_000),
            per_mille: AtomicU64::new(1_000),
        }
    }

    fn step(&self, rng: &mut fastrand::Rng) {
        match rng.bool() {
            true => self
                .offset_ms
                .store(rng.i64(0..2_000_000), Ordering::Relaxed),
            false => self.per_mille.store(rng.u64(10..5_000), Ordering::Relaxed),
        }
    }
}

impl Clock for WildClock {
    fn wall_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Relaxed)
    }

    fn readings(&self) -> Readings {
        let ran_ms = self.began.elapsed().as_millis() as u64;
        let ran_ms = ran_ms * self.per_mille.load(Ordering::Relaxed) / 1_000;
        Readings {
            wall_ms: self.wall_ms(),
            boot_ms: (self.wall_ms() as u64).saturating_add(ran_ms),
        }
    }
}

/// What clients have seen.
#[derive(Debug, Default)]
struct Seen {
    highest: AtomicU64,
    replies: AtomicUsize,
    inversions: AtomicUsize,
}

async fn ask(sources: Vec<Source>, mut at: usize, seen: Arc<Seen>) {
    loop {
        let floor = seen.highest.load(Ordering::SeqCst);
        match sources[at].take_ordered(1).await {
            Ok(Ordered::Have(keys)) => {
                let id = keys.number(0).unwrap_or_default();
                if id <= floor {
                    eprintln!("{id} was given, and {floor} had been read before");
                    seen.inversions.fetch_add(1, Ordering::Relaxed);
                }
                seen.highest.fetch_max(id, Ordering::SeqCst);
                seen.replies.fetch_add(1, Ordering::Relaxed);
                // Now and then somebody else is asked.
                if id % 64 == 0 {
                    at = (at + 1) % sources.len();
                }
            }
            Ok(Ordered::Elsewhere(address)) => at = address.parse().unwrap_or(at),
            Ok(_) | Err(_) => at = (at + 1) % sources.len(),
        }
    }
}

/// Programs whose clocks are set and run as they like: more than one of them takes itself for the active one, and nobody gets an id below one
/// that was read before.
fn no_clock_matters(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_wild_clocks")?;
    let runtime = runtime()?;
    let clocks: Vec<Arc<WildClock>> = (0..PROGRAMS).map(|_| Arc::new(WildClock::new())).collect();
    let settings = RawStoreSettings {
        wait_ms_max: 1_000,
        ..schema.raw()
    };
    runtime.block_on(async {
        let maker = open(&settings)?;
        maker.init().await?;
        maker.create_tag(&tag("orders"), &strict()).await?;
        let mut programs = Vec::new();
        for (at, clock) in clocks.iter().enumerate() {
            let settings = StoreSettings::new(&settings, &RawSnowflakeSettings::default())?;
            let clock: Arc<dyn Clock> = Arc::<WildClock>::clone(clock);
            let keys = Keys::open_with_clock(settings, clock)?;
            stand(&keys, &at.to_string());
            programs.push(keys);
        }
        let sources = programs.iter().map(|keys| keys.source(&segment("orders")));
        let sources: Vec<Source> = sources.collect::<std::result::Result<_, _>>()?;
        let seen = Arc::new(Seen::default());
        let clients: Vec<_> = (0..CLIENTS)
            .map(|at| tokio::spawn(ask(sources.clone(), at % PROGRAMS, Arc::clone(&seen))))
            .collect();
        let mut rng = fastrand::Rng::with_seed(1);
        let takeovers = || {
            let stats = programs.iter().filter_map(Keys::order_stats);
            let groups = stats.flat_map(|its| its.groups);
            groups.map(|its| its.epoch).max().unwrap_or(0)
        };
        let end = Instant::now() + WAIT_MAX * 3;
        while seen.replies.load(Ordering::Relaxed) < REPLIES || takeovers() < TAKEOVERS {
            anyhow::ensure!(Instant::now() < end, "{seen:?}, {} takeovers", takeovers());
            sleep(Duration::from_millis(15)).await;
            clocks[rng.usize(0..PROGRAMS)].step(&mut rng);
        }
        for client in clients {
            client.abort();
        }
        println!("{seen:?}, {} takeovers", takeovers());
        assert_eq!(seen.inversions.load(Ordering::Relaxed), 0);
        Ok(())
    })
}

/// One commit of the store lets go of all that waits for it, and of what was read while the one before was under way.
fn one_commit_confirms_many(engine: Engine) -> Result<()> {
    const ASKING: usize = 64;
    const EACH: usize = 40;
    let schema = Schema::of(engine, "kw_group_commit")?;
    runtime()?.block_on(async {
        let (keys, source) = active(&schema.raw()).await?;
        let before = keys.order_stats().unwrap().confirmations;
        let renewals = "SELECT renewal FROM keywright_order_lease";
        let written = schema.number(renewals)?;
        let asking = (0..ASKING).map(|_| {
            let source = source.clone();
            tokio::spawn(async move {
                let mut last = 0;
                for _ in 0..EACH {
                    let id = first(&source).await?;
                    anyhow::ensure!(id > last, "{id} behind {last}");
                    last = id;
                }
                Ok(())
            })
        });
        let asking: Vec<_> = asking.collect();
        for task in asking {
            task.await??;
        }
        let stats = keys.order_stats().unwrap();
        let confirmations = stats.confirmations - before;
        println!("{} replies by {confirmations} confirmations", ASKING * EACH);
        assert!(
            confirmations * 8 < (ASKING * EACH) as u64,
            "{confirmations}"
        );
        // That is all that was written, but for renewals of the lease.
        let written = schema.number(renewals)? - written;
        assert!(written <= confirmations + 100, "{written}");
        Ok(())
    })
}

/// Whoever has lost the lease, by whatever hand, tells nobody of what he took.
fn who_has_lost_the_lease_confirms_nothing(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_strict_lost")?;
    runtime()?.block_on(async {
        let (_keys, source) = active(&schema.raw()).await?;
        let Ordered::Unconfirmed(_, _) = source.try_ordered(1) else {
            anyhow::bail!("it is told at once");
        };
        schema.sql(
            "UPDATE keywright_order_lease SET owner = 'third', address = 'three:3', epoch = epoch + 1",
        )?;
        assert_eq!(
            source.take_ordered(1).await?,
            Ordered::Elsewhere("three:3".to_owned())
        );
        assert_eq!(
            source.last_ordered().await?,
            Ordered::Elsewhere("three:3".to_owned())
        );
        Ok(())
    })
}

mod etcd {
    use super::{Engine, Result};

    #[test]
    fn no_clock_matters() -> Result<()> {
        super::no_clock_matters(Engine::Etcd)
    }

    #[test]
    fn one_commit_confirms_many() -> Result<()> {
        super::one_commit_confirms_many(Engine::Etcd)
    }

    #[test]
    fn who_has_lost_the_lease_confirms_nothing() -> Result<()> {
        super::who_has_lost_the_lease_confirms_nothing(Engine::Etcd)
    }
}

mod file {
    use super::{Engine, Result};

    #[test]
    fn no_clock_matters() -> Result<()> {
        super::no_clock_matters(Engine::File)
    }

    #[test]
    fn one_commit_confirms_many() -> Result<()> {
        super::one_commit_confirms_many(Engine::File)
    }

    #[test]
    fn who_has_lost_the_lease_confirms_nothing() -> Result<()> {
        super::who_has_lost_the_lease_confirms_nothing(Engine::File)
    }
}

/// A server without replicas, or with ones that it does not wait for.
async fn is_refused(settings: &RawStoreSettings, why: &str) -> Result<()> {
    let keys = open(settings)?;
    keys.init().await?;
    let failure = keys.create_tag(&tag("orders"), &strict()).await;
    let failure = failure.expect_err("it was made");
    assert_eq!(failure.cause(), Cause::StoreMayLose, "{failure}");
    assert!(failure.to_string().contains(why), "{failure}");
    Ok(())
}

#[test]
fn a_server_that_waits_for_no_replica_has_no_strict_tags() -> Result<()> {
    let runtime = runtime()?;
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
        let options = ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"];
        let server = Upstream::start_with(flavour, &options)?;
        server.run("", "CREATE DATABASE keywright")?;
        let settings = raw(server.port(), "keywright");
        runtime.block_on(is_refused(&settings, "semi-synchronous"))?;
    }
    let server = pg_server()?;
    let settings = raw_postgres(&server, "keywright");
    runtime.block_on(is_refused(&settings, "synchronous_standby_names"))?;
    // And one that does not keep what it says to have kept.
    let schema = Schema::of(Engine::Postgres, "kw_strict_fsync")?;
    runtime.block_on(is_refused(&schema.raw(), "fsync is off"))
}

/// Waiting for replicas is turned off for all when it takes too long, and nobody is told but those who ask.
#[test]
fn a_server_that_waits_for_a_replica_no_more_has_no_strict_tags() -> Result<()> {
    let options = [
        "--innodb-flush-log-at-trx-commit=1",
        "--sync-binlog=1",
        "--log-bin=binlog",
        "--server-id=1",
        "--rpl-semi-sync-master-enabled=ON",
        "--rpl-semi-sync-master-timeout=300",
    ];
    let server = Upstream::start_with(Flavour::MariaDb, &options)?;
    let set = "SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_master_enabled'";
    assert_eq!(server.run("", set)?[0][1], "ON");
    // No replica comes.
    server.run("", "CREATE DATABASE keywright")?;
    let settings = raw(server.port(), "keywright");
    runtime()?.block_on(is_refused(&settings, "semi-synchronous"))
}

fn pg_server() -> Result<PgServer> {
    let server = PgServer::builder().preload(false).fsync(true).start()?;
    in_postgres(&server, "postgres", "CREATE DATABASE keywright")?;
    Ok(server)
}

/// Nothing is let go while the standby is away, and nothing once nobody waits for it.
#[test]
fn a_synchronous_standby_confirms() -> Result<()> {
    let server = pg_server()?;
    let mut standby = server.standby("other", Replication::Synchronous)?;
    let settings = RawStoreSettings {
        wait_ms_max: 1_000,
        store_ms_max: 1_000,
        ..raw_postgres(&server, "keywright")
    };
    let runtime = runtime()?;
    let (keys, source) = runtime.block_on(active(&settings))?;
    let mut last = runtime.block_on(first(&source))?;
    standby.stop(Stop::Fast)?;
    let failure = runtime.block_on(refusal(&source))?;
    assert_eq!(failure.cause(), Cause::NobodyActive, "{failure}");
    standby.start()?;
    let id = runtime.block_on(first(&source))?;
    assert!(id > last, "{id} behind {last}");
    last = id;
    let standbys = |names: &str| {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        in_postgres(&server, "postgres", &set)?;
        in_postgres(&server, "postgres", "SELECT pg_reload_conf()")
    };
    standbys("")?;
    runtime.block_on(until("a refusal", || {
        let stats = keys.order_stats();
        stats.is_some_and(|its| its.groups.iter().any(|of| of.is_active))
    }));
    let end = Instant::now() + WAIT_MAX;
    loop {
        // The server tells its sessions in its own time.
        match runtime.block_on(source.take_ordered(1)) {
            Err(failure) if failure.cause() == Cause::StoreMayLose => break,
            Ok(_) | Err(_) => anyhow::ensure!(Instant::now() < end, "it is not refused"),
        }
    }
    assert!(keys.order_stats().is_some_and(|its| its.unconfirmed > 0));
    let found = runtime.block_on(keys.check(&[tag("orders")]));
    assert!(
        found.iter().any(|its| its.severity == Severity::Error
            && its.message.contains("synchronous_standby_names")),
        "{found:?}"
    );
    standbys("other")?;
    let id = runtime.block_on(async {
        loop {
            if let Ok(Ordered::Have(keys)) = source.take_ordered(1).await {
                return keys.number(0).unwrap_or_default();
            }
        }
    });
    assert!(id > last, "{id} behind {last}");
    Ok(())
}
