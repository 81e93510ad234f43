//! Leases of worker ids in a store that was put back to an older state under programs that run: a holder may not have found out yet, and somebody
//! else has its worker id.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use keywright_core::Cause;
use keywright_store::switch::{Committed, Reached, Switchboard};
use keywright_store::{Clock, KeySpec, RawSnowflakeSettings, Source, SystemClock};
use keywright_testkit::Result;

use crate::common::{Engine, IssuedLog, open_with, runtime, until};
use crate::forwarder::Forwarder;
use crate::manual_clock::{ManualClock, NOW_MS, on_worker, open_at};
use crate::put_back::OwnServer;
use crate::rewound::{take, take_until_refused};
use crate::switched_snowflake::go_over_to_snowflake_ids;
use crate::switches::{change, here};

/// Longer than a server takes to start and to be asked, on machines that do much else: clocks that stand still do not show that time.
const SKEW_MS_MAX: u64 = 600_000;
/// Beyond that, and beyond how far ids may run ahead.
const PAST_SKEW_MS: u32 = 700_000;
/// Longer than that, too.
const LONG_AFTER_START_MS: i64 = 3_600_000;
/// A lease that is not renewed during a test unless there is a reason. The server's clock does not go with those of programs: a lease that has expired by
/// theirs only is in doubt.
const LONG_LEASE_MS: u64 = 3_000_000;

/// A holder looks within half a second.
const FOUND_OUT_MAX: Duration = Duration::from_secs(90);

/// Insists on worker id 7.
fn insists(lease_ms: u64) -> RawSnowflakeSettings {
    RawSnowflakeSettings {
        lease_ms,
        skew_ms_max: SKEW_MS_MAX,
        ..on_worker(7)
    }
}

/// What is left below its bound.
fn take_rest(source: &Source, log: &IssuedLog, by: &str) -> usize {
    const ENOUGH: usize = 1_000;
    let mut taken = 0;
    while taken < ENOUGH
        && let Ok(keys) = source.try_take(3, true)
    {
        log.add_all(by, &keys);
        taken += 1;
    }
    taken
}

/// The holder reaches nobody, and goes on below the bound that it was granted.
#[test]
fn who_takes_a_worker_id_behind_a_restart_begins_above_all_that_its_holder_may_issue() -> Result<()>
{
    for engine in OwnServer::ENGINES {
        let mut server = OwnServer::start(engine)?;
        runtime()?.block_on(async {
            let line = Forwarder::start(server.port()).await?;
            // Clocks that agree and stand still: without bounds every id would repeat.
            let (early, late) = (ManualClock::at(NOW_MS), ManualClock::at(NOW_MS));
            let holder = open_at(&server.through(line.port), &insists(LONG_LEASE_MS), &early)?;
            holder.init().await?;
            let source = holder.source(&KeySpec::Snowflake)?;
            let log = IssuedLog::default();
            take(&source, &log, "holder", 20).await?;
            early.pass(PAST_SKEW_MS);
            late.pass(PAST_SKEW_MS);
            take(&source, &log, "holder", 20).await?;
            line.stalled.store(true, Ordering::Relaxed);
            server.restart()?;
            let update = format!(
                "UPDATE keywright_worker SET hi_ms = {NOW_MS}, expires_at = {}",
                server.long_ago()
            );
            server.sql(&update)?;
            let heir = open_at(&server.raw(), &insists(LONG_LEASE_MS), &late)?;
            let next = heir.source(&KeySpec::Snowflake)?;
            take(&next, &log, "heir", 500).await?;
            assert_eq!(heir.worker_id(), Some(7));
            assert!(take_rest(&source, &log, "holder") > 0);
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// Nobody wants anything of it, and its lease is not to be renewed for long.
#[test]
fn a_holder_finds_out_behind_a_restart_that_its_lease_was_put_back() -> Result<()> {
    for engine in OwnServer::ENGINES {
        let mut server = OwnServer::start(engine)?;
        runtime()?.block_on(async {
            let snowflake = RawSnowflakeSettings {
                lease_ms: LONG_LEASE_MS,
                ..RawSnowflakeSettings::default()
            };
            let holder = open_with(&server.raw(), &snowflake)?;
            holder.init().await?;
            let source = holder.source(&KeySpec::Snowflake)?;
            let log = IssuedLog::default();
            take(&source, &log, "holder", 20).await?;
            server.sql("UPDATE keywright_worker SET hi_ms = hi_ms - 1000")?;
            server.restart()?;
            // The first thing that is said of it, which the log has, too, is what has happened: nobody took its lease over.
            let since = Instant::now();
            loop {
                let mut sources = holder.stats().into_iter();
                let said = sources
                    .find_map(|source| source.trouble)
                    .unwrap_or_default();
                if said.contains("the store has gone back") {
                    break;
                }
                assert!(!said.contains("was taken over"), "{said}");
                assert!(
                    since.elapsed() < FOUND_OUT_MAX,
                    "it has not found out: {said}"
                );
                thread::yield_now();
            }
            assert_eq!(holder.worker_id(), None);
            let refused = take_until_refused(&source, &log, "holder").await;
            assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// What was put back is the lease of a program that was suspended, after which another one had the worker id: the row says what the first one wrote.
/// When it expires is no evidence: it may say a moment that is to come.
#[test]
fn who_was_suspended_does_not_go_on_with_a_lease_that_was_put_back() -> Result<()> {
    for engine in OwnServer::ENGINES {
        for has_expired in [true, false] {
            goes_on_elsewhere(engine, has_expired)?;
        }
    }
    Ok(())
}

fn goes_on_elsewhere(engine: Engine, has_expired: bool) -> Result<()> {
    const LEASE_MS: u64 = 1_000;
    let mut server = OwnServer::start(engine)?;
    runtime()?.block_on(async {
        let line = Forwarder::start(server.port()).await?;
        let (early, late) = (ManualClock::at(NOW_MS), ManualClock::at(NOW_MS));
        let first = open_at(&server.through(line.port), &insists(LEASE_MS), &early)?;
        first.init().await?;
        let source = first.source(&KeySpec::Snowflake)?;
        let log = IssuedLog::default();
        take(&source, &log, "first", 20).await?;
        line.stalled.store(true, Ordering::Relaxed);
        let row = "SELECT owner, epoch, hi_ms FROM keywright_worker";
        let second = open_at(&server.raw(), &insists(LONG_LEASE_MS), &late)?;
        let written = server.sql(row)?;
        let between = second.source(&KeySpec::Snowflake)?;
        until("the lease to expire", || between.try_take(1, true).is_ok()).await;
        early.pass(2 * PAST_SKEW_MS);
        late.pass(2 * PAST_SKEW_MS);
        take(&between, &log, "second", 500).await?;
        // The first is to find nobody who renews the lease meanwhile.
        second.hand_back().await;
        server.restart()?;
        let [of_first] = written.as_slice() else {
            panic!("{written:?}");
        };
        let update = format!(
            "UPDATE keywright_worker SET owner = '{}', epoch = {}, hi_ms = {}, expires_at = {}",
            of_first[0],
            of_first[1],
            of_first[2],
            match has_expired {
                true => server.long_ago(),
                false => server.far_ahead(),
            }
        );
        server.sql(&update)?;
        line.stalled.store(false, Ordering::Relaxed);
        take(&source, &log, "first", 500).await?;
        assert_eq!(first.worker_id(), Some(7));
        Ok::<(), anyhow::Error>(())
    })
}

/// The holder reaches nobody, and goes on below the bound that it was granted. Of its worker id the rows say less, or nothing.
#[test]
fn tables_leave_snowflake_ids_above_all_that_was_granted() -> Result<()> {
    for engine in OwnServer::ENGINES {
        for is_gone in [false, true] {
            for is_restarted in [false, true] {
                leave(engine, is_gone, is_restarted)?;
            }
        }
    }
    Ok(())
}

fn leave(engine: Engine, is_gone: bool, is_restarted: bool) -> Result<()> {
    let mut server = OwnServer::start(engine)?;
    runtime()?.block_on(async {
        let line = Forwarder::start(server.port()).await?;
        let now_ms = match is_restarted {
            true => NOW_MS,
            // What was granted before the server was started is no measure of it.
            false => SystemClock.wall_ms() + LONG_AFTER_START_MS,
        };
        let (early, late) = (ManualClock::at(now_ms), ManualClock::at(now_ms));
        let holder = open_at(&server.through(line.port), &insists(LONG_LEASE_MS), &early)?;
        holder.init().await?;
        go_over_to_snowflake_ids(&Switchboard::new(&holder)).await?;
        let source = holder.source(&KeySpec::Snowflake)?;
        let log = IssuedLog::default();
        take(&source, &log, "holder", 20).await?;
        early.pass(PAST_SKEW_MS);
        late.pass(PAST_SKEW_MS);
        take(&source, &log, "holder", 20).await?;
        line.stalled.store(true, Ordering::Relaxed);
        if is_restarted {
            server.restart()?;
        }
        let put_back = match is_gone {
            true => "DELETE FROM keywright_worker".to_owned(),
            false => format!(
                "UPDATE keywright_worker SET hi_ms = {now_ms}, expires_at = {}",
                server.long_ago()
            ),
        };
        server.sql(&put_back)?;
        let next = open_at(&server.raw(), &insists(LONG_LEASE_MS), &late)?;
        let board = Switchboard::new(&next);
        let off = board.begin(&[change(Some("snowflake"), None)]).await?;
        let committed = board.commit(off.unwrap(), Reached::default(), here());
        assert_eq!(committed.await?, Committed::Done);
        let above = board.standing().await?.rules[0].above.unwrap();
        assert!(take_rest(&source, &log, "holder") > 0);
        assert!(log.max() < above, "{} {above}", log.max());
        Ok::<(), anyhow::Error>(())
    })
}
