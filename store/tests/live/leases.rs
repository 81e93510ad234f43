//! Worker ids: leased, taken over, lost.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::{Cause, KeyBatch, Preset};
use keywright_store::{KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings, Source};
use keywright_testkit::{Flavour, Result, Upstream};

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, open_with, raw, runtime, segment, small_steps,
    tag, take_by_each, until,
};
use crate::forwarder::Forwarder;
use crate::manual_clock::{ManualClock, NOW_MS, on_worker, open_at};

on_engines!(
    proxies_lease_worker_ids_of_their_own,
    copies_that_start_together_have_a_worker_id_each,
    a_worker_id_insisted_on_is_leased_too,
    many_keys_of_one_statement,
    a_layout_that_could_repeat_ids_is_refused,
);

async fn take_in_order(source: &Source, log: &IssuedLog, by: &str, rounds: u64) {
    let mut last = 0;
    for round in 0..rounds {
        let taken = source.take(1 + round % 5, true).await.unwrap();
        assert!(taken.number(0).unwrap() > last, "ids of one source ascend");
        last = taken.number(taken.len() - 1).unwrap();
        log.add_all(by, &taken);
    }
}

fn proxies_lease_worker_ids_of_their_own(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_own")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        open(&schema.raw())?.init().await?;
        let issuers = [
            open(&schema.raw())?,
            open(&schema.raw())?,
            open(&schema.raw())?,
        ];
        let mut tasks = Vec::new();
        for keys in &issuers {
            let (source, log) = (keys.source(&KeySpec::Snowflake)?, log.clone());
            tasks.push(tokio::spawn(async move {
                take_in_order(&source, &log, "leased", 2_000).await
            }));
        }
        for task in tasks {
            task.await?;
        }
        let mut workers: Vec<_> = issuers.iter().filter_map(Keys::worker_id).collect();
        workers.sort_unstable();
        assert_eq!(workers, [0, 1, 2]);
        let layout = Preset::Twitter.layout();
        let last = issuers[0]
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await?
            .number(0)
            .unwrap();
        let decoded = layout.decode(last.cast_signed())?;
        let datacenter = decoded.datacenter_id.unwrap_or(0);
        assert_eq!(
            datacenter << layout.worker_bits() | decoded.worker_id,
            issuers[0].worker_id().unwrap()
        );
        // Given up at a clean stop, had by the next.
        let freed = issuers[1].worker_id();
        issuers[1].hand_back().await;
        let next = open(&schema.raw())?;
        take_in_order(&next.source(&KeySpec::Snowflake)?, &log, "next", 50).await;
        assert_eq!(next.worker_id(), freed);
        let leased = next.workers().await?;
        assert_eq!(leased.iter().filter(|row| row.is_leased).count(), 3);
        Ok(())
    })
}

/// All of one configuration, on a store in which nothing was leased before.
fn copies_that_start_together_have_a_worker_id_each(engine: Engine) -> Result<()> {
    const COPIES: usize = 50;
    let schema = Schema::of(engine, "kw_lease_copies")?;
    let settings = RawStoreSettings {
        connections_max: 1,
        ..schema.raw()
    };
    runtime()?.block_on(async {
        open(&settings)?.init().await?;
        let log = IssuedLog::default();
        let copies = (0..COPIES).map(|_| open(&settings));
        let copies = copies.collect::<Result<Vec<_>>>()?;
        take_by_each(&copies, &KeySpec::Snowflake, &log, 20).await?;
        let leased = "SELECT COUNT(DISTINCT owner) FROM keywright_worker WHERE owner IS NOT NULL";
        assert_eq!(schema.number(leased)?, u64::try_from(COPIES)?);
        Ok(())
    })
}

fn a_worker_id_insisted_on_is_leased_too(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_wanted")?;
    runtime()?.block_on(async {
        let first = open_with(&schema.raw(), &on_worker(7))?;
        first.init().await?;
        first.source(&KeySpec::Snowflake)?.take(1, true).await?;
        assert_eq!(first.worker_id(), Some(7));
        let second = open_with(&schema.raw(), &on_worker(7))?;
        let refused = second
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await
            .unwrap_err();
        assert_eq!(refused.cause(), Cause::WorkerIdInUse, "{refused}");
        assert_eq!(second.worker_id(), None);
        Ok(())
    })
}

/// All refills hang, and there are more of them than connections.
#[test]
fn a_lease_stands_behind_no_refill() -> Result<()> {
    const TAGS: usize = 20;
    const STORE_MS_MAX: u64 = 10_000;
    let schema = Schema::new("kw_lease_crowd")?;
    let mut locker = Upstream::shared(Flavour::MariaDb)?.wire(&schema.name)?;
    runtime()?.block_on(async {
        let names: Vec<String> = (0..TAGS).map(|number| format!("orders{number}")).collect();
        let maker = open(&schema.raw())?;
        maker.init().await?;
        for name in &names {
            maker.create_tag(&tag(name), &small_steps(100)).await?;
        }
        locker.run("LOCK TABLES keywright_segment WRITE")?;
        let settings = RawStoreSettings {
            connections_max: 2,
            store_ms_max: STORE_MS_MAX,
            ..schema.raw()
        };
        let keys = open(&settings)?;
        for name in &names {
            keys.source(&segment(name))?;
        }
        let waiting = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{}' AND state LIKE 'Waiting for table%'",
            schema.name
        );
        until("a refill that hangs", || {
            schema.number(&waiting).is_ok_and(|count| count > 0)
        })
        .await;
        let began = Instant::now();
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        let took = began.elapsed();
        assert!(took < Duration::from_millis(STORE_MS_MAX), "{took:?}");
        locker.run("UNLOCK TABLES")?;
        // And none of the others is left behind.
        for name in &names {
            keys.source(&segment(name))?.take(1, true).await?;
        }
        Ok(())
    })
}

/// The owner's line to the store stops for longer than its lease; another takes the worker id over; the owner wakes up.
#[test]
fn an_owner_that_was_paused_is_fenced_and_repeats_nothing() -> Result<()> {
    let schema = Schema::new("kw_lease_paused")?;
    runtime()?.block_on(async {
        let line = Forwarder::start(schema.port()).await?;
        let log = IssuedLog::default();
        let settings = RawStoreSettings {
            wait_ms_max: 10_000,
            store_ms_max: 2_000,
            ..raw(line.port, &schema.name)
        };
        // Clocks that agree and hardly move: without bounds every id would repeat.
        let (early, late) = (ManualClock::at(NOW_MS), ManualClock::at(NOW_MS));
        let owner = open_at(&settings, &on_worker(7), &early)?;
        let direct = open_at(&schema.raw(), &on_worker(7), &late)?;
        direct.init().await?;
        let source = owner.source(&KeySpec::Snowflake)?;
        take_in_order(&source, &log, "owner", 20).await;
        line.stalled.store(true, Ordering::Relaxed);
        let heir = direct.source(&KeySpec::Snowflake)?;
        until("the lease to expire", || {
            heir.try_take(1, true).is_ok_and(|taken| {
                log.add_all("heir", &taken);
                true
            })
        })
        .await;
        take_in_order(&heir, &log, "heir", 500).await;
        // The owner knows of nothing and goes on below its own bound, which the heir started above.
        for _ in 0..500 {
            if let Ok(taken) = source.try_take(3, true) {
                log.add_all("paused owner", &taken);
            }
        }
        early.pass(60_000);
        late.pass(60_000);
        line.stalled.store(false, Ordering::Relaxed);
        let fenced = loop {
            match source.take(1, true).await {
                Ok(taken) => log.add_all("woken owner", &taken),
                Err(failure) if failure.cause() == Cause::Suspended => break failure,
                Err(failure) => assert_eq!(failure.cause(), Cause::StoreUnavailable, "{failure}"),
            }
        };
        assert_eq!(fenced.cause().mysql_errno(), 1467);
        take_in_order(&heir, &log, "heir", 500).await;
        Ok(())
    })
}

#[test]
fn lost_answers_to_commit_repeat_no_snowflake_id() -> Result<()> {
    let schema = Schema::new("kw_lease_lossy")?;
    runtime()?.block_on(async {
        let line = Forwarder::start(schema.port()).await?;
        open(&schema.raw())?.init().await?;
        line.every.store(2, Ordering::Relaxed);
        let log = IssuedLog::default();
        let clock = ManualClock::at(NOW_MS);
        let settings = raw(line.port, &schema.name);
        // The server's clock does not go with this one, by which the lease is not to expire.
        let on_worker = RawSnowflakeSettings {
            lease_ms: 600_000,
            ..on_worker(5)
        };
        let keys = open_at(&settings, &on_worker, &clock)?;
        let source = keys.source(&KeySpec::Snowflake)?;
        for _ in 0..400 {
            log.add_all("lossy", &source.take(9, true).await?);
            clock.pass(500);
        }
        assert!(line.lost.load(Ordering::Relaxed) > 10);
        // Its own lease, each time: an outcome that was not known is recognised afterwards.
        assert!(schema.number("SELECT epoch FROM keywright_worker")? < 5);
        Ok(())
    })
}

fn many_keys_of_one_statement(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_many")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        let source = keys.source(&KeySpec::Snowflake)?;
        let log = IssuedLog::default();
        let tick = source.take(4_096, true).await?;
        let KeyBatch::Numbers {
            first,
            spacing: 1,
            count: 4_096,
        } = tick
        else {
            panic!("{tick:?}");
        };
        assert_eq!(first % 4_096, 0, "a whole tick");
        log.add_all("tick", &tick);
        let refused = source.take(4_097, true).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::ArgumentOutOfRange);
        assert!(refused.hint_text().unwrap().contains("segment"));
        let listed = source.take(20_000, false).await?;
        assert_eq!(listed.len(), 20_000);
        log.add_all("listed", &listed);
        Ok(())
    })
}

fn a_layout_that_could_repeat_ids_is_refused(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_layout")?;
    runtime()?.block_on(async {
        let first = open(&schema.raw())?;
        first.init().await?;
        let before = first
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await?
            .number(0)
            .unwrap();
        let with = |layout: &str| RawSnowflakeSettings {
            layout: layout.to_owned(),
            ..RawSnowflakeSettings::default()
        };
        // While somebody issues with another layout, none other will do.
        let later = open_with(&schema.raw(), &with("instagram"))?;
        let refused = later
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await
            .unwrap_err();
        assert_eq!(refused.cause(), Cause::LayoutOverlap, "{refused}");
        later.hand_back().await;
        first.hand_back().await;
        // A later epoch gives smaller ids.
        let smaller = open_with(&schema.raw(), &with("shardingsphere"))?;
        let refused = smaller
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await
            .unwrap_err();
        assert_eq!(refused.cause(), Cause::LayoutOverlap, "{refused}");
        smaller.hand_back().await;
        // An earlier one gives greater ids.
        let greater = open_with(&schema.raw(), &with("twitter,epoch=2001-01-01"))?;
        let after = greater
            .source(&KeySpec::Snowflake)?
            .take(1, true)
            .await?
            .number(0)
            .unwrap();
        assert!(after > before);
        Ok(())
    })
}
