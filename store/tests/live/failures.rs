//! The store fails: killed, stopped, unreachable, replies lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use keywright_core::Cause;
use keywright_store::RawStoreSettings;
use keywright_testkit::Result;
use nix::sys::signal::Signal;
use tokio::net::TcpListener;

use crate::common::{
    Engine, IssuedLog, Schema, open, own_server, raw, runtime, segment, small_steps, tag,
    take_by_each, take_many, until,
};
use crate::forwarder::Forwarder;

#[test]
fn a_store_that_is_away_is_told_after_the_wait_and_comes_back() -> Result<()> {
    let mut server = own_server()?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let settings = RawStoreSettings {
            wait_ms_max: 3_000,
            store_ms_max: 2_000,
            ..raw(server.port(), "keywright")
        };
        let keys = open(&settings)?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(1_000)).await?;
        let source = keys.source(&segment("orders"))?;
        log.add_all("before", &source.take(1, true).await?);
        server.kill9()?;
        // Keys go on from what is in memory, then there are none.
        let failure = loop {
            match source.take(1, true).await {
                Ok(taken) => log.add_all("without a store", &taken),
                Err(failure) => break failure,
            }
        };
        assert!(
            log.len() >= 100,
            "the first reservation of 100 was not used up"
        );
        assert_eq!(failure.cause(), Cause::StoreUnavailable, "{failure}");
        assert_eq!(failure.cause().mysql_errno(), 1467);
        // Known to be away: nobody waits for it any more.
        until("the trouble to last", || keys.stats()[0].trouble.is_some()).await;
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        let began = Instant::now();
        assert!(source.take(1, true).await.is_err());
        assert!(
            began.elapsed() < Duration::from_millis(1_500),
            "{:?}",
            began.elapsed()
        );
        server.restart()?;
        until("keys after the restart", || {
            source.try_take(1, true).is_ok_and(|taken| {
                log.add_all("after", &taken);
                true
            })
        })
        .await;
        take_many(source, log, "after".to_owned(), 300).await;
        Ok(())
    })
}

/// A server that answers nothing and closes nothing.
#[test]
fn a_stopped_server_hangs_nobody() -> Result<()> {
    let server = own_server()?;
    runtime()?.block_on(async {
        let settings = RawStoreSettings {
            wait_ms_max: 4_000,
            store_ms_max: 2_000,
            ..raw(server.port(), "keywright")
        };
        let keys = open(&settings)?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let source = keys.source(&segment("orders"))?;
        source.take(1, true).await?;
        server.signal(Signal::SIGSTOP)?;
        // The signal reaches a busy server's threads a little later.
        let (refused, took) = loop {
            let began = Instant::now();
            if let Err(refused) = source.take(10_000, true).await {
                break (refused, began.elapsed());
            }
        };
        let handed_back = Instant::now();
        keys.hand_back().await;
        let handing_back = handed_back.elapsed();
        server.signal(Signal::SIGCONT)?;
        assert_eq!(refused.cause(), Cause::StoreUnavailable, "{refused}");
        assert!(took < Duration::from_secs(15), "{took:?}");
        assert!(handing_back < Duration::from_secs(15), "{handing_back:?}");
        Ok(())
    })
}

/// A server counts connections that break off before the login, and shuts the host out when there are too many in a row. Each tag made one, all at the same moment.
#[test]
fn many_tags_begin_no_more_connections_than_may_be_there() -> Result<()> {
    const TAGS: usize = 300;
    const STORE_MS_MAX: u64 = 500;
    runtime()?.block_on(async {
        let mute = TcpListener::bind("127.0.0.1:0").await?;
        let port = mute.local_addr()?.port();
        let begun = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&begun);
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((client, _)) = mute.accept().await {
                kept.push(client);
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let settings = RawStoreSettings {
            connections_max: 1,
            store_ms_max: STORE_MS_MAX,
            ..raw(port, "keywright")
        };
        let keys = open(&settings)?;
        let started = Instant::now();
        for number in 0..TAGS {
            keys.source(&segment(&format!("orders{number}")))?;
        }
        until("the trouble of all", || {
            let stats = keys.stats();
            stats.len() == TAGS && stats.iter().all(|of| of.trouble.is_some())
        })
        .await;
        let begun = begun.load(Ordering::Relaxed);
        let most = 1 + u64::try_from(started.elapsed().as_millis())? / STORE_MS_MAX;
        assert!(
            (1..=most).contains(&begun),
            "{begun} connections, of {most}"
        );
        for of in keys.stats() {
            let trouble = of.trouble.unwrap_or_default();
            let is_told = trouble.contains("no answer within 500 ms")
                || trouble.contains("too many transactions wait for the store's connections");
            assert!(is_told, "{trouble}");
        }
        let stopped = Instant::now();
        keys.hand_back().await;
        let stopping = stopped.elapsed();
        assert!(stopping < Duration::from_secs(15), "{stopping:?}");
        Ok(())
    })
}

/// Killed at random moments while three issuers refill all the time.
#[test]
fn kill_9_in_the_middle_of_refills_repeats_nothing() -> Result<()> {
    let mut server = own_server()?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let settings = raw(server.port(), "keywright");
        let issuers = [open(&settings)?, open(&settings)?, open(&settings)?];
        issuers[0].init().await?;
        issuers[0]
            .create_tag(&tag("orders"), &small_steps(20))
            .await?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for (n, keys) in issuers.iter().enumerate() {
            let (source, log, stop) = (
                keys.source(&segment("orders"))?,
                log.clone(),
                Arc::clone(&stop),
            );
            tasks.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(taken) = source.take(3, true).await {
                        log.add_all(&format!("issuer {n}"), &taken);
                    }
                }
            }));
        }
        for round in 0..5 {
            let before = log.len();
            until("keys to be issued", || {
                log.len() > before + 500 + round * 37
            })
            .await;
            server.kill9()?;
            server.restart()?;
        }
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await?;
        }
        Ok(())
    })
}

#[test]
fn a_lost_answer_to_commit_repeats_nothing() -> Result<()> {
    lose_answers_to_commit(Engine::MariaDb)?;
    lose_answers_to_commit(Engine::Postgres)?;
    lose_answers_to_commit(Engine::Etcd)
}

/// The server has committed and nobody learns of it: the ids count as used.
fn lose_answers_to_commit(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_lossy")?;
    runtime()?.block_on(async {
        let forwarder = Forwarder::start(schema.port()).await?;
        let direct = open(&schema.raw())?;
        direct.init().await?;
        direct.create_tag(&tag("orders"), &small_steps(40)).await?;
        let settings = schema.through(forwarder.port);
        let log = IssuedLog::default();
        forwarder.every.store(3, Ordering::Relaxed);
        let issuers = [open(&settings)?, open(&settings)?, direct];
        take_by_each(&issuers, &segment("orders"), &log, 150).await?;
        let lost = forwarder.lost.load(Ordering::Relaxed);
        assert!(lost > 10, "only {lost} answers were lost");
        // What was committed without our knowing is a gap.
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        assert!(u64::try_from(log.len())? + lost * 4 < hi);
        // Handing back with a lost answer: gone, or handed back, but not both.
        forwarder.every.store(1, Ordering::Relaxed);
        for keys in &issuers {
            keys.hand_back().await;
        }
        let next = open(&schema.raw())?;
        take_many(
            next.source(&segment("orders"))?,
            log.clone(),
            "next".to_owned(),
            150,
        )
        .await;
        Ok(())
    })
}
