//! The same on MariaDB, on MySQL, on PostgreSQL, in etcd and in a file: every statement that the store sends.

use keywright_core::{Biz, Cause, Step};
use keywright_store::{KeySpec, OWN_TABLES, Severity, Stride, TagOptions};
use keywright_testkit::Result;

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag,
};

on_engines!(everything_once);

#[test]
fn on_mysql() -> Result<()> {
    everything_once(Engine::MySql)
}

fn everything_once(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_both")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let keys = open(&schema.raw())?;
        let created = keys.init().await?;
        match engine {
            Engine::Etcd => assert_eq!(created, [keys.store_address()]),
            Engine::MariaDb | Engine::MySql | Engine::Postgres | Engine::File => {
                assert!(created.ends_with(&OWN_TABLES.map(str::to_owned)));
            }
        }
        assert_eq!(keys.init().await?, Vec::<String>::new());
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let twice = keys
            .create_tag(&tag("orders"), &TagOptions::with_step(Step::new(1)?))
            .await;
        assert_eq!(twice.unwrap_err().cause(), Cause::TagExists);
        let orders = keys.source(&segment("orders"))?;
        let stride = keys.source(&KeySpec::Stride(Stride::new(tag("orders"), 2, 5)?))?;
        for count in [1, 50, 700] {
            log.add_all("orders", &orders.take(count, true).await?);
            log.add_all("stride", &stride.take(count, true).await?);
        }
        let snowflake = keys.source(&KeySpec::Snowflake)?;
        log.add_all("snowflake", &snowflake.take(1_000, true).await?);
        let readable = keys.source(&KeySpec::Readable(Biz::parse("ORD")?))?;
        assert_eq!(readable.take(10, true).await?.len(), 10);
        assert_eq!(keys.tags().await?.len(), 1);
        assert_eq!(
            keys.workers()
                .await?
                .iter()
                .filter(|row| row.is_leased)
                .count(),
            2
        );
        let findings = keys.check(&[]).await;
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity == Severity::Warning),
            "{findings:?}"
        );
        keys.hand_back().await;
        assert!(keys.workers().await?.iter().all(|row| !row.is_leased));
        let rests = schema.number("SELECT COUNT(*) FROM keywright_returned")?;
        assert!(rests >= 1);
        let next = open(&schema.raw())?;
        let orders = next.source(&segment("orders"))?;
        for _ in 0..300 {
            log.add_all("next", &orders.take(3, true).await?);
        }
        log.add_all(
            "next",
            &next.source(&KeySpec::Snowflake)?.take(1, true).await?,
        );
        Ok(())
    })
}
