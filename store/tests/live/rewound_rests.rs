//! A store that was put back to an older state in which a rest is there again that somebody has used since: the bound tells of it, as it
//! does of reservations. Nor does anybody hand ids back to a store that lacks their reservation.

use std::time::Duration;

use keywright_core::Cause;
use keywright_store::{Above, Failure, Keys, RawStoreSettings, Source};
use keywright_testkit::{Result, scratch_dir};

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag,
};
use crate::others::LEAF;
use crate::rewound::{GOES_ON_MAX, take};
use crate::rewound_kept::{start_keeping, start_keeping_behind};

on_engines!(
    a_rest_that_is_there_again_is_not_given_twice,
    nothing_is_handed_back_to_a_tag_that_went_back,
);

#[test]
fn on_mysql() -> Result<()> {
    a_rest_that_is_there_again_is_not_given_twice(Engine::MySql)?;
    nothing_is_handed_back_to_a_tag_that_went_back(Engine::MySql)
}

/// More keys than are left of any range, in sevens.
const ROUNDS_MAX: usize = 100;

/// A store in which tags `orders` and `spare` have a rest each: none of `spare` is used before it becomes the one of `orders` that is there
/// again. (What a test does to a store in etcd adds no rows.)
struct Dumped<'s> {
    schema: &'s Schema,
    bound: u64,
    /// Of `orders`: first id, and first id after it.
    rest: (u64, u64),
}

impl<'s> Dumped<'s> {
    /// After a program that has issued some ids of `orders`, and was stopped.
    async fn after_a_stop(schema: &'s Schema, first: &Keys, log: &IssuedLog) -> Result<Self> {
        first.init().await?;
        for name in ["orders", "spare"] {
            first.create_tag(&tag(name), &small_steps(1_000)).await?;
        }
        let orders = first.source(&segment("orders"))?;
        log.add_all("first", &orders.take(3, true).await?);
        first.source(&segment("spare"))?.take(1, true).await?;
        assert!(first.stop_keeping());
        first.hand_back().await;
        let of_rest = |column| {
            schema.number(&format!(
                "SELECT {column} FROM keywright_returned WHERE tag = 'orders'"
            ))
        };
        let dumped = Self {
            schema,
            bound: schema.number("SELECT hi FROM keywright_segment WHERE tag = 'orders'")?,
            rest: (of_rest("start_id")?, of_rest("end_id")?),
        };
        assert_eq!(dumped.rest, (4, dumped.bound));
        Ok(dumped)
    }

    /// Uses the rest, and nothing else.
    async fn use_rest(&self, source: &Source, log: &IssuedLog) -> Result<()> {
        let taken = source.take(1, true).await?;
        assert_eq!(taken.number(0), Some(self.rest.0));
        log.add_all("more", &taken);
        let rests = "SELECT COUNT(*) FROM keywright_returned WHERE tag = 'orders'";
        assert_eq!(self.schema.number(rests)?, 0);
        let hi = "SELECT hi FROM keywright_segment WHERE tag = 'orders'";
        assert_eq!(self.schema.number(hi)?, self.bound + 1, "one is left out");
        Ok(())
    }

    /// Bound and rest are what they were.
    fn put_back(&self) -> Result<()> {
        let (bound, (start, end)) = (self.bound, self.rest);
        self.schema.sql(&format!(
            "UPDATE keywright_segment SET hi = {bound} WHERE tag = 'orders'; \
             UPDATE keywright_returned SET tag = 'orders', start_id = {start}, end_id = {end} WHERE tag = 'spare'"
        ))?;
        Ok(())
    }
}

/// Takes keys, which soon ends.
async fn refusal(source: &Source, log: &IssuedLog, by: &str) -> Failure {
    for _ in 0..ROUNDS_MAX {
        match source.take(7, true).await {
            Ok(keys) => log.add_all(by, &keys),
            Err(failure) => return failure,
        }
    }
    panic!("{by} goes on at {}", log.max());
}

fn assert_gone_back(failure: &Failure) {
    assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");
    let told = failure.to_string();
    assert!(told.contains("the store has gone back"), "{told}");
}

fn a_rest_that_is_there_again_is_not_given_twice(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_rest_again")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let first = open(&schema.raw())?;
        let dumped = Dumped::after_a_stop(&schema, &first, &log).await?;
        let more = open(&schema.raw())?;
        let source = more.source(&segment("orders"))?;
        dumped.use_rest(&source, &log).await?;
        dumped.put_back()?;
        assert_gone_back(&refusal(&source, &log, "more").await);
        // Who has seen nothing is told.
        let newcomer = open(&schema.raw())?;
        let newest = newcomer.source(&segment("orders"))?;
        assert_gone_back(&refusal(&newest, &log, "newest").await);
        let above = Above::Tag {
            tag: tag("orders"),
            id: dumped.bound,
        };
        assert_eq!(newcomer.advance(&above).await?, dumped.bound + 1);
        tokio::time::timeout(GOES_ON_MAX, async {
            for (source, by) in [(&source, "more"), (&newest, "newest")] {
                while take(source, &log, by, 1).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        })
        .await?;
        assert!(log.max() > dumped.bound);
        Ok(())
    })
}

/// Who was killed has used the rest, and whoever starts after it on the same machine knows.
#[test]
fn a_file_of_kept_ranges_tells_of_a_rest_that_was_used() -> Result<()> {
    for engine in [Engine::MariaDb, Engine::Postgres, Engine::File] {
        let schema = Schema::of(engine, "kw_rest_kept")?;
        let scratch = scratch_dir()?;
        let raw = RawStoreSettings {
            kept_ranges_file: Some(scratch.path().join("ranges")),
            any_file_system: true,
            ..schema.raw()
        };
        runtime()?.block_on(async {
            let log = IssuedLog::default();
            let first = start_keeping(&raw)?;
            let dumped = Dumped::after_a_stop(&schema, &first, &log).await?;
            drop(first);
            let second = start_keeping_behind(&raw).await?;
            dumped
                .use_rest(&second.source(&segment("orders"))?, &log)
                .await?;
            // The file is as a kill leaves it.
            second.leave_kept_ranges();
            drop(second);
            dumped.put_back()?;
            let third = start_keeping_behind(&raw).await?;
            let failure = refusal(&third.source(&segment("orders"))?, &log, "third").await;
            assert_gone_back(&failure);
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// Its ids lie above the bound, by which they would be given once more. It does not ask for any before it ends.
fn nothing_is_handed_back_to_a_tag_that_went_back(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_rest_late")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let stops = open(&schema.raw())?;
        stops.init().await?;
        stops
            .create_tag(&tag("orders"), &small_steps(1_000))
            .await?;
        let source = stops.source(&segment("orders"))?;
        log.add_all("stops", &source.take(3, true).await?);
        schema.sql("UPDATE keywright_segment SET hi = 1")?;
        stops.hand_back().await;
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        let newcomer = open(&schema.raw())?;
        let newest = newcomer.source(&segment("orders"))?;
        assert_gone_back(&refusal(&newest, &log, "newest").await);
        Ok(())
    })
}

/// They have no place for what was seen, but a program refuses by what it has seen itself.
#[test]
fn a_rest_of_other_tables_that_is_there_again_is_seen() -> Result<()> {
    let schema = Schema::new("kw_rest_leaf")?;
    runtime()?.block_on(async {
        schema.sql(LEAF)?;
        let raw = RawStoreSettings {
            dialect: "leaf".to_owned(),
            ..schema.raw()
        };
        let log = IssuedLog::default();
        let first = open(&raw)?;
        first.init().await?;
        let source = first.source(&segment("orders"))?;
        log.add_all("first", &source.take(3, true).await?);
        first.hand_back().await;
        let bound = "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'";
        let old = schema.number(bound)?;
        let more = open(&raw)?;
        let source = more.source(&segment("orders"))?;
        log.add_all("more", &source.take(1, true).await?);
        assert_eq!(schema.number(bound)?, old + 1, "one is left out");
        schema.sql(&format!(
            "UPDATE leaf_alloc SET max_id = {old} WHERE biz_tag = 'orders'"
        ))?;
        assert_gone_back(&refusal(&source, &log, "more").await);
        Ok(())
    })
}
