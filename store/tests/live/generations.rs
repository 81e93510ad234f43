//! A tag's generation: ranges of an older one are neither reserved nor handed back nor used.

use keywright_core::Cause;
use keywright_store::switch::{KeySpace, Switchboard};
use keywright_store::{RawStoreSettings, Remaining};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag, until};

on_engines!(
    ranges_of_an_older_generation_are_worth_nothing,
    a_rest_of_an_older_generation_is_not_taken_out,
    keys_that_tables_have_left_are_not_given_before_a_generation_is_followed,
    a_tag_that_was_made_anew_is_another_one,
);

fn ranges_of_an_older_generation_are_worth_nothing(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_generations")?;
    let raw = schema.raw();
    runtime()?.block_on(async {
        let impatient = RawStoreSettings {
            wait_ms_max: 5_000,
            ..schema.raw()
        };
        let (stays, follows) = (open(&impatient)?, open(&raw)?);
        stays.init().await?;
        stays.create_tag(&tag("orders"), &small_steps(100)).await?;
        let (old, new) = (
            stays.source(&segment("orders"))?,
            follows.source(&segment("orders"))?,
        );
        old.take(1, true).await?;
        new.take(1, true).await?;
        // As whoever commits a switch does it.
        schema.sql("UPDATE keywright_segment SET generation = 1, hi = 100000")?;

        // Who does not know goes on with what it has, and gets no more.
        let refused = loop {
            if let Err(failure) = old.take(10, true).await {
                break failure;
            }
        };
        assert_eq!(refused.cause(), Cause::Suspended, "{refused}");
        assert_eq!(schema.number("SELECT hi FROM keywright_segment")?, 100_000);

        // Who does gets new ones only.
        follows.follow(&KeySpace::Tag(tag("orders")), 1);
        let keys = new.take(1, true).await?;
        assert_eq!(keys.number(0), Some(100_000));

        // A rest that comes back late is not for those who follow.
        stays.follow(&KeySpace::Tag(tag("orders")), 1);
        until("a range of the new generation", || {
            old.try_take(1, true).is_ok()
        })
        .await;
        schema.sql("UPDATE keywright_segment SET generation = 2")?;
        stays.hand_back().await;
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        Ok(())
    })
}

fn keys_that_tables_have_left_are_not_given_before_a_generation_is_followed(
    engine: Engine,
) -> Result<()> {
    let schema = Schema::of(engine, "kw_generations_left")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        for space in [KeySpace::Tag(tag("orders")), KeySpace::Snowflake] {
            let source = keys.source(&space.spec())?;
            let number = async || Ok::<_, anyhow::Error>(source.take(1, true).await?.number(0));
            let first = number().await?;
            keys.leave(&space);
            for _ in 0..3 {
                let refused = source
                    .take(1, true)
                    .await
                    .expect_err("tables have left them");
                assert_eq!(refused.cause(), Cause::Suspended, "{refused}");
            }
            // Also when it is the same as before.
            keys.follow(&space, 0);
            let second = number().await?;
            assert!(second > first, "{second:?} {first:?}");
            keys.leave(&space);
            keys.leave(&space);
            assert!(source.try_take(1, true).is_err());
            keys.follow(&space, 0);
            assert!(number().await? > second);
        }
        Ok(())
    })
}

/// One that lies there since before is left lying.
fn a_rest_of_an_older_generation_is_not_taken_out(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_old_rests")?;
    let raw = schema.raw();
    runtime()?.block_on(async {
        let first = open(&raw)?;
        first.init().await?;
        first.create_tag(&tag("orders"), &small_steps(100)).await?;
        first.source(&segment("orders"))?.take(1, true).await?;
        first.hand_back().await;
        assert!(schema.number("SELECT COUNT(*) FROM keywright_returned")? > 0);
        schema.sql("UPDATE keywright_segment SET generation = 1, hi = 100000")?;
        let second = open(&raw)?;
        let keys = second.source(&segment("orders"))?.take(1, true).await?;
        assert_eq!(keys.number(0), Some(100_000));
        Ok(())
    })
}

/// Somebody makes the store anew while a program has ranges of the old one: these begin again in the new one.
fn a_tag_that_was_made_anew_is_another_one(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_made_anew")?;
    runtime()?.block_on(async {
        let [heard, unheard, ended] = [
            open(&schema.raw())?,
            open(&schema.raw())?,
            open(&schema.raw())?,
        ];
        heard.init().await?;
        heard.create_tag(&tag("orders"), &small_steps(100)).await?;
        let mut sources = Vec::new();
        for keys in [&heard, &unheard, &ended] {
            let source = keys.source(&segment("orders"))?;
            source.take(1, true).await?;
            sources.push(source);
        }
        schema.remove_tags()?;
        let owner = open(&schema.raw())?;
        owner.init().await?;
        owner.create_tag(&tag("orders"), &small_steps(100)).await?;
        // As programs do that follow what is in force.
        for (tag, id) in Switchboard::new(&heard).standing().await?.key_space_ids {
            heard.meet(&tag, &id);
        }
        let refused = sources[0].take(1, true).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        assert!(refused.to_string().contains("is another one"), "{refused}");
        // Others hear of it when they reserve.
        let refused = loop {
            if let Err(refused) = sources[1].take(1, true).await {
                break refused;
            }
        };
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        assert_eq!(unheard.stats()[0].remaining, Remaining::Keys(0));
        for keys in [&heard, &unheard, &ended] {
            keys.hand_back().await;
        }
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        let fresh = owner.source(&segment("orders"))?.take(1, true).await?;
        assert_eq!(fresh.number(0), Some(1));
        Ok(())
    })
}
