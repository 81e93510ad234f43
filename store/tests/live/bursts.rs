//! Requests so large that ids would run too far ahead of the clock, and the small ones beside them.

use std::time::{Duration, Instant};

use keywright_core::Cause;
use keywright_store::{KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings, Source};
use keywright_testkit::{Result, WAIT_MAX};

use crate::common::{Engine, IssuedLog, Schema, on_engines, open_with, runtime, until};

on_engines!(
    what_can_never_be_had_is_refused_at_once_and_stops_nobody,
    what_cannot_be_had_in_time_is_refused_and_smaller_requests_go_on,
    what_can_be_had_soon_is_waited_for_and_small_requests_go_on,
    nothing_is_reserved_for_a_request_that_was_dropped,
);

/// 8192 ids a second, 81,920 of which may run ahead of the clock, and a bound that has to be extended every second.
fn slow_layout() -> RawSnowflakeSettings {
    RawSnowflakeSettings {
        layout: "baidu,epoch=2024-01-01".to_owned(),
        lead_ms_max: 10_000,
        bound_window_ms: 1_000,
        lease_ms: 3_000,
        ..RawSnowflakeSettings::default()
    }
}

async fn open_slow(schema: &Schema, wait_ms_max: u64) -> Result<(Keys, Source)> {
    let settings = RawStoreSettings {
        wait_ms_max,
        ..schema.raw()
    };
    let keys = open_with(&settings, &slow_layout())?;
    keys.init().await?;
    let source = keys.source(&KeySpec::Snowflake)?;
    // The first lease of all begins where the lead and the skew of a lost one may have ended.
    let end = Instant::now() + WAIT_MAX;
    while let Err(failure) = source.take(1, true).await {
        let may_come = failure.cause().retryable() && Instant::now() < end;
        anyhow::ensure!(may_come, "{failure}");
    }
    Ok((keys, source))
}

/// Takes one key after the other, all of which must be had, until so much time has passed.
async fn take_singly(source: &Source, log: &IssuedLog, for_ms: u64) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(for_ms) {
        let taken = source.take(1, true).await.unwrap();
        log.add_all("single", &taken);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn expires_ms(schema: &Schema) -> u64 {
    let expires_ms = schema.unix_ms("expires_at");
    let select = format!("SELECT {expires_ms} FROM keywright_worker");
    schema.number(&select).unwrap()
}

fn what_can_never_be_had_is_refused_at_once_and_stops_nobody(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_burst_never")?;
    runtime()?.block_on(async {
        let (_keys, source) = open_slow(&schema, 10_000).await?;
        let log = IssuedLog::default();
        for _ in 0..2 {
            let began = Instant::now();
            let refused = source.take(1_000_000, false).await.unwrap_err();
            assert_eq!(refused.cause(), Cause::LeadExceeded, "{refused}");
            assert!(
                refused.hint_text().unwrap().contains("segment"),
                "{refused}"
            );
            assert!(
                began.elapsed() < Duration::from_secs(5),
                "{:?}",
                began.elapsed()
            );
        }
        take_singly(&source, &log, 3_000).await;
        // Nobody takes any more, and the lease is renewed all the same.
        for _ in 0..2 {
            let before = expires_ms(&schema);
            until("the lease to be renewed", || expires_ms(&schema) > before).await;
        }
        log.add_all("large", &source.take(20_000, false).await?);
        Ok(())
    })
}

fn what_cannot_be_had_in_time_is_refused_and_smaller_requests_go_on(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_burst_late")?;
    runtime()?.block_on(async {
        let (_keys, source) = open_slow(&schema, 1_000).await?;
        let log = IssuedLog::default();
        log.add_all("large", &source.take(30_000, false).await?);
        let refused = source.take(80_000, false).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::LeadExceeded, "{refused}");
        // More than lies below the bound.
        log.add_all("smaller", &source.take(25_000, false).await?);
        Ok(())
    })
}

fn what_can_be_had_soon_is_waited_for_and_small_requests_go_on(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_burst_soon")?;
    runtime()?.block_on(async {
        let (_keys, source) = open_slow(&schema, 60_000).await?;
        let log = IssuedLog::default();
        log.add_all("large", &source.take(60_000, false).await?);
        let later = tokio::spawn({
            let source = source.clone();
            async move { source.take(30_000, false).await }
        });
        while !later.is_finished() {
            take_singly(&source, &log, 10).await;
        }
        log.add_all("later", &later.await??);
        Ok(())
    })
}

/// A statement that was given up is forgotten: the bound does not run ahead of the clock for it.
fn nothing_is_reserved_for_a_request_that_was_dropped(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_burst_dropped")?;
    runtime()?.block_on(async {
        let (keys, source) = open_slow(&schema, 60_000).await?;
        source.take(60_000, false).await?;
        let waiting = tokio::spawn({
            let source = source.clone();
            async move { source.take(40_000, false).await }
        });
        until("it to be put off", || {
            keys.stats()
                .first()
                .is_some_and(|stats| stats.refill_failures > 0)
        })
        .await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        let bound_ms = || schema.number("SELECT hi_ms FROM keywright_worker");
        let before = bound_ms()?;
        // Longer than it would have had to wait.
        let until_ms = expires_ms(&schema) + 5_000;
        until("the lease to be renewed", || expires_ms(&schema) > until_ms).await;
        assert_eq!(bound_ms()?, before);
        Ok(())
    })
}
