//! Clocks that lie: set back, set far ahead, a little behind.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Biz, Cause, Layout, Preset};
use keywright_store::{Clock, KeySpec, RawSnowflakeSettings};
use keywright_testkit::Result;

use crate::common::{Engine, IssuedLog, Schema, on_engines, open, runtime, until};
use crate::manual_clock::{ManualClock, NOW_MS, on_worker, open_at};

on_engines!(
    a_clock_set_back_and_a_restart_repeat_nothing,
    a_clock_set_back_is_counted_though_nobody_wants_keys,
    a_clock_set_far_ahead_does_not_poison_the_bound,
    keys_are_refused_while_the_clock_is_behind_where_the_policy_says_so,
    keys_wait_for_a_clock_that_is_a_little_behind_where_the_policy_says_so,
    keys_come_by_themselves_when_a_clock_of_1970_is_set_right,
    a_layout_that_begins_in_the_future_gives_no_key_twice,
);

fn a_clock_set_back_is_counted_though_nobody_wants_keys(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_clock_counted")?;
    runtime()?.block_on(async {
        let clock = ManualClock::at(NOW_MS);
        open(&schema.raw())?.init().await?;
        let keys = open_at(&schema.raw(), &on_worker(3), &clock)?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        let steps = || keys.stats().iter().map(|its| its.clock_steps).sum::<u64>();
        assert_eq!(steps(), 0);
        for expected in [1, 2] {
            clock.step(-3_600_000);
            until("the step to be counted", || steps() == expected).await;
        }
        Ok(())
    })
}

fn a_clock_set_back_and_a_restart_repeat_nothing(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_clock")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let clock = ManualClock::at(NOW_MS);
        open(&schema.raw())?.init().await?;
        let mut last = 0;
        for life in 0..6 {
            // Stopped hard each time: the lease expires, or is another worker's; here the same one is insisted on.
            schema.sql(&format!(
                "UPDATE keywright_worker SET expires_at = {}",
                schema.long_ago()
            ))?;
            let keys = open_at(&schema.raw(), &on_worker(3), &clock)?;
            let source = keys.source(&KeySpec::Snowflake)?;
            for round in 0..30 {
                let taken = source.take(40, true).await?;
                assert!(taken.number(0).unwrap() > last, "life {life} round {round}");
                last = taken.number(39).unwrap();
                log.add_all("clock", &taken);
                clock.step(if round == 10 { -3_600_000 } else { 0 });
                clock.pass(1);
            }
            clock.step(-7_200_000);
        }
        Ok(())
    })
}

/// The clock jumps ahead by a year: not followed, and the durable bound stays where it was.
fn a_clock_set_far_ahead_does_not_poison_the_bound(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_ahead")?;
    runtime()?.block_on(async {
        let clock = ManualClock::at(NOW_MS);
        let keys = open_at(&schema.raw(), &on_worker(3), &clock)?;
        keys.init().await?;
        let source = keys.source(&KeySpec::Snowflake)?;
        let before = source.take(1, true).await?.number(0).unwrap();
        clock.step(365 * 86_400_000);
        let after = source.take(1, true).await?.number(0).unwrap();
        assert!(after > before);
        let hi_ms = schema.number("SELECT hi_ms FROM keywright_worker")?;
        assert!(hi_ms < NOW_MS.unsigned_abs() + 60_000, "{hi_ms}");
        Ok(())
    })
}

pub fn with_policy(policy: &str) -> RawSnowflakeSettings {
    RawSnowflakeSettings {
        clock_policy: policy.to_owned(),
        clock_wait_ms_max: 10_000,
        ..on_worker(3)
    }
}

fn keys_are_refused_while_the_clock_is_behind_where_the_policy_says_so(
    engine: Engine,
) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_refuse")?;
    runtime()?.block_on(async {
        let clock = ManualClock::at(NOW_MS);
        let keys = open_at(&schema.raw(), &with_policy("refuse"), &clock)?;
        keys.init().await?;
        let source = keys.source(&KeySpec::Snowflake)?;
        let first = source.take(1, true).await?.number(0).unwrap();
        clock.step(-3_600_000);
        for count in [1, 5] {
            assert!(source.try_take(count, true).is_err());
            let refused = source.take(count, true).await.unwrap_err();
            assert_eq!(refused.cause(), Cause::ClockBehind);
            assert_eq!(
                refused.message(),
                "the clock reads 3600000 ms earlier than it did, and clock_policy refuse issues no keys then"
            );
        }
        clock.step(3_600_000);
        let after = source.take(1, true).await?.number(0).unwrap();
        assert!(after > first);
        // A step that is not followed, and mended. Meanwhile keys were dated as far ahead as a takeover leaves out.
        clock.step(365 * 86_400_000);
        let ahead = source.take(1, true).await?.number(0).unwrap();
        assert!(ahead > after);
        clock.step(-365 * 86_400_000);
        clock.pass(20_001);
        let mended = source.take(1, true).await?.number(0).unwrap();
        assert!(mended > ahead);
        let hi_ms = schema.number("SELECT hi_ms FROM keywright_worker")?;
        assert!(hi_ms < NOW_MS.unsigned_abs() + 120_000, "{hi_ms}");
        Ok(())
    })
}

fn keys_wait_for_a_clock_that_is_a_little_behind_where_the_policy_says_so(
    engine: Engine,
) -> Result<()> {
    let schema = Schema::of(engine, "kw_lease_wait")?;
    runtime()?.block_on(async {
        let clock = ManualClock::at(NOW_MS);
        let keys = open_at(&schema.raw(), &with_policy("wait"), &clock)?;
        keys.init().await?;
        let source = keys.source(&KeySpec::Snowflake)?;
        let first = source.take(1, true).await?.number(0).unwrap();
        clock.step(-40);
        // The clock is read again after the wait: it has gone on by half of it only, and then by the rest.
        let passing = Arc::clone(&clock);
        let passes = tokio::spawn(async move {
            for _ in 0..40 {
                tokio::time::sleep(Duration::from_millis(2)).await;
                passing.pass(1);
            }
        });
        let waited = source.take(1, true).await?.number(0).unwrap();
        assert!(waited > first);
        assert!(clock.wall_ms() >= NOW_MS, "it was waited for");
        passes.await?;
        clock.step(-10_001);
        let refused = source.take(1, true).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::ClockBehind);
        Ok(())
    })
}

/// As on a machine without a battery, until it has heard the time. No restart is needed.
fn keys_come_by_themselves_when_a_clock_of_1970_is_set_right(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_clock_1970")?;
    runtime()?.block_on(async {
        let clock = ManualClock::at(12_345);
        let keys = open_at(&schema.raw(), &RawSnowflakeSettings::default(), &clock)?;
        keys.init().await?;
        let readable = KeySpec::Readable(Biz::parse("ORD")?);
        let sources = [keys.source(&KeySpec::Snowflake)?, keys.source(&readable)?];
        for (source, ids_begin) in sources
            .iter()
            .zip(["2010-11-04T01:42:54.657Z", "2000-01-01"])
        {
            let refused = source.take(1, true).await.unwrap_err();
            assert_eq!(refused.cause(), Cause::ClockBehind, "{refused}");
            let told = format!("the clock reads 1970-01-01, and ids begin at {ids_begin}");
            assert!(refused.message().contains(&told), "{refused}");
        }
        let leases = "SELECT count(*) FROM keywright_worker";
        assert_eq!(schema.number(leases)?, 0, "nobody has a worker id");
        clock.step(NOW_MS);
        for source in &sources {
            let taken = loop {
                match source.take(1, true).await {
                    Ok(taken) => break taken,
                    Err(failure) => assert_eq!(failure.cause(), Cause::ClockBehind, "{failure}"),
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            assert_eq!(taken.len(), 1);
        }
        let id = sources[0].take(1, true).await?.number(0).unwrap();
        let issued_at_ms = Preset::Twitter
            .layout()
            .decode(i64::try_from(id)?)?
            .issued_at_ms;
        assert!(
            issued_at_ms.abs_diff(clock.wall_ms()) < 60_000,
            "{issued_at_ms}"
        );
        Ok(())
    })
}

/// All moments before the epoch were its first tick, so that whoever had lost the store began there again.
fn a_layout_that_begins_in_the_future_gives_no_key_twice(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_clock_epoch")?;
    let ahead = RawSnowflakeSettings {
        layout: "leaf,epoch=2027-01-01".to_owned(),
        ..RawSnowflakeSettings::default()
    };
    let epoch_ms = Layout::parse(&ahead.layout)?.epoch_ms();
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        // 2026-11-21, and when it has begun.
        for (clock, has_begun) in [
            (ManualClock::at(NOW_MS), false),
            (ManualClock::at(epoch_ms + 60_000), true),
        ] {
            for life in ["first", "store lost"] {
                let keys = open_at(&schema.raw(), &ahead, &clock)?;
                keys.init().await?;
                match keys.source(&KeySpec::Snowflake)?.take(3, true).await {
                    Ok(taken) => {
                        assert!(has_begun, "{life}");
                        assert_ne!(taken.number(0), Some(0));
                        log.add_all(life, &taken);
                    }
                    Err(failure) => {
                        assert!(!has_begun, "{failure}");
                        assert_eq!(failure.cause(), Cause::ClockBehind, "{failure}");
                    }
                }
                drop(keys);
                // What the lost store knew of leases is lost; the clock has gone on meanwhile.
                schema.sql("DELETE FROM keywright_worker")?;
                clock.pass(120_000);
            }
        }
        Ok(())
    })
}
