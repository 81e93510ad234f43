//! Tags that are altered, dropped and made anew: no id of one comes twice.

use keywright_core::{Cause, KeyBatch, Step};
use keywright_store::switch::{Change, KeySpace, RuleName, Switchboard};
use keywright_store::{Above, KeySpec, Keys, Source, TagChange, TagOptions};
use keywright_testkit::Result;

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag,
};

on_engines!(
    a_tag_that_is_made_anew_goes_on_above,
    a_tag_is_altered_while_programs_run,
    a_tag_of_a_rule_is_neither_dropped_nor_made_by_others,
    dropping_and_making_at_once_repeats_nothing,
);

#[test]
fn on_mysql() -> Result<()> {
    a_tag_that_is_made_anew_goes_on_above(Engine::MySql)?;
    a_tag_is_altered_while_programs_run(Engine::MySql)
}

fn cause<T: std::fmt::Debug>(
    result: std::result::Result<T, keywright_store::Failure>,
) -> Option<Cause> {
    result.err().map(|failure| failure.cause())
}

/// Of a source that may not have heard yet that there is such a tag again.
async fn taken(source: &Source, count: u64) -> KeyBatch {
    loop {
        match source.take(count, true).await {
            Ok(taken) => return taken,
            Err(failure) => assert_eq!(failure.cause(), Cause::TagUnknown, "{failure}"),
        }
    }
}

fn a_tag_that_is_made_anew_goes_on_above(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_dropped")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let (keys, others) = (open(&schema.raw())?, open(&schema.raw())?);
        keys.init().await?;
        assert_eq!(
            cause(keys.drop_tag(&tag("orders")).await),
            Some(Cause::TagUnknown)
        );
        let mut last_start = 0;
        for round in 0..4 {
            keys.create_tag(&tag("orders"), &small_steps(100)).await?;
            let twice = keys.create_tag(&tag("orders"), &small_steps(100)).await;
            assert_eq!(cause(twice), Some(Cause::TagExists));
            // One that goes on with what it had, one that begins anew, and one that hands its rest back.
            let short = open(&schema.raw())?;
            for (by, issuer) in [("keys", &keys), ("others", &others), ("short", &short)] {
                let source = issuer.source(&segment("orders"))?;
                log.add_all(by, &taken(&source, 30).await);
            }
            short.hand_back().await;
            let bound = keys.drop_tag(&tag("orders")).await?;
            assert!(bound > log.max() && bound > last_start, "{round}: {bound}");
            last_start = bound;
            assert!(keys.tags().await?.is_empty());
            assert_eq!(keys.missing(&[tag("orders")]).await?, [tag("orders")]);
            for gone in [
                cause(keys.drop_tag(&tag("orders")).await),
                cause(keys.alter_tag(&tag("orders"), &TagChange::default()).await),
                cause(
                    open(&schema.raw())?
                        .source(&segment("orders"))?
                        .take(1, true)
                        .await,
                ),
            ] {
                assert_eq!(gone, Some(Cause::TagUnknown));
            }
            // What was reserved before is used up.
            let source = others.source(&segment("orders"))?;
            while let Ok(taken) = source.take(1, true).await {
                log.add_all("others, dropped", &taken);
            }
            assert!(log.max() < bound);
        }
        // Above what somebody vouches for while there is none, and above what whoever makes it knows of, if that is more.
        let raised = Above::Tag {
            tag: tag("orders"),
            id: 500_000,
        };
        assert_eq!(keys.advance(&raised).await?, 500_001);
        for start in [1, 1_000_000] {
            let options = TagOptions {
                start,
                ..small_steps(100)
            };
            keys.create_tag(&tag("orders"), &options).await?;
            for issuer in [&keys, &others, &open(&schema.raw())?] {
                let source = issuer.source(&segment("orders"))?;
                log.add_all("last", &taken(&source, 500).await);
            }
            assert!(log.max() > start.max(500_000));
            keys.drop_tag(&tag("orders")).await?;
        }
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        Ok(())
    })
}

fn a_tag_is_altered_while_programs_run(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_altered")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let step = |ids| Step::new(ids).map(Some);
        let all = TagChange {
            step: step(2_000)?,
            step_min: step(1_500)?,
            step_max: step(3_000)?,
            cover_s: Some(60),
            refill_percent: Some(20),
            description: Some("orders of the shop, ü\\%'\"".to_owned()),
        };
        // The same once more changes nothing.
        for _ in 0..2 {
            keys.alter_tag(&tag("orders"), &all).await?;
        }
        let one = TagChange {
            cover_s: Some(61),
            ..TagChange::default()
        };
        keys.alter_tag(&tag("orders"), &one).await?;
        let rows = schema.sql(
            "SELECT step, step_min, step_max, cover_s, refill_percent, description FROM keywright_segment",
        )?;
        assert_eq!(
            rows,
            [["2000", "1500", "3000", "61", "20", "orders of the shop, ü\\%'\""]]
        );
        let wrong = TagChange {
            step_max: step(1_499)?,
            ..TagChange::default()
        };
        assert_eq!(
            cause(keys.alter_tag(&tag("orders"), &wrong).await),
            Some(Cause::ArgumentOutOfRange)
        );
        let wrong = TagChange {
            refill_percent: Some(100),
            ..TagChange::default()
        };
        assert_eq!(
            cause(keys.alter_tag(&tag("orders"), &wrong).await),
            Some(Cause::ArgumentOutOfRange)
        );
        assert_eq!(
            cause(keys.alter_tag(&tag("none"), &all).await),
            Some(Cause::TagUnknown)
        );
        let source = keys.source(&segment("orders"))?;
        assert_eq!(source.take(1, true).await?.number(0), Some(1));
        // A tenth of the step at first.
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        assert_eq!(hi, 201);
        Ok(())
    })
}

/// Has a rule's tables begin to go over to a tag.
async fn begin(keys: &Keys, name: &str) -> Result<()> {
    let change = Change {
        rule: RuleName {
            tables: "shop.orders".to_owned(),
            column: "id".to_owned(),
        },
        from: None,
        to: KeySpace::of(&KeySpec::Segment(tag(name))),
    };
    let begun = Switchboard::new(keys).begin(&[change]).await?;
    assert!(begun.is_some());
    Ok(())
}

fn a_tag_of_a_rule_is_neither_dropped_nor_made_by_others(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_ruled")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        begin(&keys, "orders").await?;
        let refused = keys.drop_tag(&tag("orders")).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::TagInUse);
        assert!(refused.message().contains("shop.orders.id"), "{refused}");
        keys.create_tag_of_no_rule(&tag("free"), &small_steps(100))
            .await?;
        let refused = keys
            .create_tag_of_no_rule(&tag("orders"), &small_steps(100))
            .await;
        assert_eq!(cause(refused), Some(Cause::TagInUse));
        Ok(())
    })
}

fn dropping_and_making_at_once_repeats_nothing(engine: Engine) -> Result<()> {
    const ROUNDS: usize = 15;
    let schema = Schema::of(engine, "kw_dropped_at_once")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        open(&schema.raw())?.init().await?;
        let mut tasks = Vec::new();
        for program in 0..3 {
            let (raw, log) = (schema.raw(), log.clone());
            tasks.push(tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let keys = open(&raw)?;
                    let options = small_steps(100);
                    match program {
                        0 => drop(keys.create_tag(&tag("orders"), &options).await),
                        1 => drop(keys.create_tag_of_no_rule(&tag("orders"), &options).await),
                        _ => drop(keys.drop_tag(&tag("orders")).await),
                    }
                    let source = keys.source(&segment("orders"))?;
                    if let Ok(taken) = source.take(7, true).await {
                        log.add_all(&format!("{program} {round}"), &taken);
                    }
                    if round % 2 == 0 {
                        keys.hand_back().await;
                    }
                }
                Ok::<(), anyhow::Error>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        assert!(log.len() > 0);
        Ok(())
    })
}
