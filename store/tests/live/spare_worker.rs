//! Keys of the spare worker, while a clock is behind.

use std::time::Duration;

use anyhow::Context as _;
use keywright_core::{Decoded, KeyBatch, Layout};
use keywright_store::{Clock as _, KeySpec, Keys, RawSnowflakeSettings, Source};
use keywright_testkit::Result;

use crate::clocks::with_policy;
use crate::common::{Engine, IssuedLog, Schema, on_engines, open, runtime, until};
use crate::manual_clock::{ManualClock, NOW_MS, open_at};

on_engines!(
    they_tell_the_time_of_a_clock_that_is_behind,
    a_step_that_was_not_followed_and_is_mended_needs_none,
);

const LAYOUT: &str = "time=41,worker=9,spare=1,sequence=12,epoch=1288834974657";
const HOUR_MS: i64 = 3_600_000;
const YEAR_MS: i64 = 365 * 86_400_000;

/// A program begins where another was stopped hard.
fn begin(schema: &Schema, clock: &std::sync::Arc<ManualClock>) -> Result<(Keys, Source)> {
    schema.sql(&format!(
        "UPDATE keywright_worker SET expires_at = {}",
        schema.long_ago()
    ))?;
    let settings = RawSnowflakeSettings {
        layout: LAYOUT.to_owned(),
        // The server's clock does not go with the program's, by which the lease is not to expire.
        lease_ms: HOUR_MS.unsigned_abs(),
        ..with_policy("spare_worker")
    };
    let keys = open_at(&schema.raw(), &settings, clock)?;
    let source = keys.source(&KeySpec::Snowflake)?;
    Ok((keys, source))
}

fn parts(taken: &KeyBatch) -> Result<Decoded> {
    let id = taken.number(0).context("a number")?;
    Ok(Layout::parse(LAYOUT)?.decode(id.cast_signed())?)
}

/// Back, back again, forward a little, home; and once more after a hard stop each time.
fn they_tell_the_time_of_a_clock_that_is_behind(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_spare_behind")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let clock = ManualClock::at(NOW_MS);
        open(&schema.raw())?.init().await?;
        for life in 0..4 {
            let (keys, source) = begin(&schema, &clock)?;
            log.add_all("spare", &source.take(1, true).await?);
            // What is before the lease may be anybody's, so no key is of then.
            for _ in 0..4 {
                clock.pass(45 * 60_000);
                log.add_all("spare", &source.take(1, true).await?);
            }
            let mut behind_ms = 0;
            for step_ms in [0, -HOUR_MS, -HOUR_MS, HOUR_MS, HOUR_MS] {
                clock.step(step_ms);
                behind_ms -= step_ms;
                let is_first = step_ms < 0 && behind_ms == HOUR_MS;
                for count in [1, 40] {
                    clock.pass(1);
                    let taken = source.take(count, true).await?;
                    log.add_all("spare", &taken);
                    let its = parts(&taken)?;
                    assert_eq!(its.spare, behind_ms > 0, "life {life}, {behind_ms} ms");
                    // Set back once more, the last key goes on.
                    let off_ms = its.issued_at_ms.abs_diff(clock.wall_ms());
                    assert!(!is_first || off_ms < 10, "life {life}: {off_ms} ms");
                }
                if is_first {
                    until("the step to be counted", || {
                        keys.stats().iter().any(|its| its.clock_steps > 0)
                    })
                    .await;
                }
            }
        }
        Ok(())
    })
}

/// The clock reads less than it did, and is right.
fn a_step_that_was_not_followed_and_is_mended_needs_none(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_spare_mended")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let clock = ManualClock::at(NOW_MS);
        open(&schema.raw())?.init().await?;
        let (_keys, source) = begin(&schema, &clock)?;
        log.add_all("before", &source.take(1, true).await?);
        clock.step(YEAR_MS);
        log.add_all("ahead", &source.take(1, true).await?);
        clock.step(-YEAR_MS);
        // Keys were dated as far ahead as a takeover leaves out.
        clock.pass(20_001);
        for _ in 0..2_000 {
            clock.pass(1);
            let taken = source.take(1, true).await?;
            log.add_all("mended", &taken);
            if !parts(&taken)?.spare {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        anyhow::bail!("it is taken for one that is behind");
    })
}
