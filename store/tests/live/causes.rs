//! Causes that no other test here produces: each once, with the number that the client of a proxy sees.

use std::sync::atomic::Ordering;

use keywright_core::Cause;
use keywright_store::{KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings};
use keywright_testkit::Result;

use crate::common::{
    Engine, Schema, on_engines, open, open_with, raw, runtime, segment, small_steps, tag,
};
use crate::forwarder::Forwarder;

on_engines!(
    more_proxies_than_worker_ids,
    a_layout_whose_time_has_run_out,
    more_ids_than_may_run_ahead_of_the_clock,
    a_row_that_somebody_spoiled,
);

fn layout(text: &str) -> RawSnowflakeSettings {
    RawSnowflakeSettings {
        layout: text.to_owned(),
        ..RawSnowflakeSettings::default()
    }
}

async fn snowflake_cause(keys: &Keys, count: u64) -> Result<Cause> {
    let source = keys.source(&KeySpec::Snowflake)?;
    let failure = source.take(count, false).await.unwrap_err();
    assert_eq!(failure.cause().mysql_errno(), 1467, "{failure}");
    Ok(failure.cause())
}

fn more_proxies_than_worker_ids(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_cause_workers")?;
    runtime()?.block_on(async {
        let two = layout("time=41,worker=1,sequence=12,epoch=2020-01-01");
        let issuers = [
            open_with(&schema.raw(), &two)?,
            open_with(&schema.raw(), &two)?,
        ];
        issuers[0].init().await?;
        for keys in &issuers {
            keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        }
        let third = open_with(&schema.raw(), &two)?;
        assert_eq!(snowflake_cause(&third, 1).await?, Cause::WorkersFull);
        Ok(())
    })
}

fn a_layout_whose_time_has_run_out(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_cause_ran_out")?;
    runtime()?.block_on(async {
        let keys = open_with(
            &schema.raw(),
            &layout("time=28,worker=10,sequence=12,epoch=2020-01-01,tick=1ms"),
        )?;
        keys.init().await?;
        assert_eq!(snowflake_cause(&keys, 1).await?, Cause::LayoutRanOut);
        Ok(())
    })
}

/// Baidu's layout has 8192 ids a second: a million would run two minutes ahead of the clock.
fn more_ids_than_may_run_ahead_of_the_clock(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_cause_lead")?;
    runtime()?.block_on(async {
        let settings = RawStoreSettings {
            wait_ms_max: 10_000,
            ..schema.raw()
        };
        let keys = open_with(&settings, &layout("baidu,epoch=2024-01-01"))?;
        keys.init().await?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        assert_eq!(
            snowflake_cause(&keys, 1_000_000).await?,
            Cause::LeadExceeded
        );
        Ok(())
    })
}

fn a_row_that_somebody_spoiled(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_cause_damaged")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(10)).await?;
        schema.sql("UPDATE keywright_segment SET step = 0")?;
        let failure = keys
            .source(&segment("orders"))?
            .take(1, true)
            .await
            .unwrap_err();
        assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");
        Ok(())
    })
}

#[test]
fn more_statements_than_may_wait() -> Result<()> {
    let schema = Schema::new("kw_cause_waiters")?;
    runtime()?.block_on(async {
        let line = Forwarder::start(schema.port()).await?;
        line.stalled.store(true, Ordering::Relaxed);
        let settings = RawStoreSettings {
            waiters_max: 1,
            wait_ms_max: 1_000,
            ..raw(line.port, &schema.name)
        };
        let keys = open(&settings)?;
        let source = keys.source(&segment("orders"))?;
        let (one, other) = tokio::join!(source.take(1, true), source.take(1, true));
        let causes = [one.unwrap_err().cause(), other.unwrap_err().cause()];
        // Nothing failed yet when the first one gave up: the transaction may last longer than it waits.
        assert_eq!(causes, [Cause::RefillTimeout; 2]);
        assert_eq!(keys.stats()[0].refused, 2);
        Ok(())
    })
}
