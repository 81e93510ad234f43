//! Tags whose rows say that the store has gone back behind what a program has seen: what those do about it who make, raise and restore tags.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_core::Cause;
use keywright_store::{Above, Failure, Keys, TagOptions};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};

on_engines!(
    one_that_was_dropped_is_made_anew_behind_an_advance,
    one_that_is_lost_and_made_again_is_another,
    an_advance_beyond_the_end_says_what_to_do_first,
    a_restore_goes_on_above_what_was_seen_beyond_the_end,
);

/// The first id that was not reserved, as far as a program has seen.
const SEEN: u64 = 4_001;

/// A store with a tag that has gone back, and somebody who has seen nothing of it.
async fn marked(schema: &Schema) -> Result<Keys> {
    let maker = open(&schema.raw())?;
    maker.init().await?;
    maker.create_tag(&tag("orders"), &small_steps(100)).await?;
    schema.sql(&format!(
        "UPDATE keywright_segment SET server = 'gone back behind {SEEN}'"
    ))?;
    open(&schema.raw())
}

async fn advance(keys: &Keys, id: u64) -> std::result::Result<u64, Failure> {
    let above = Above::Tag {
        tag: tag("orders"),
        id,
    };
    keys.advance(&above).await
}

/// Why something was refused, and the way out that it names.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(
    result: std::result::Result<T, Failure>,
    cause: Cause,
    way_out: &str,
) {
    let failure = result.unwrap_err();
    assert_eq!(failure.cause(), cause, "{failure}");
    let hint = failure.hint_text().unwrap_or_default();
    assert!(hint.contains(way_out), "{failure}");
}

/// In its row it would go on as it was: it would give nothing, and whoever made it would think that all is well.
fn one_that_was_dropped_is_made_anew_behind_an_advance(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_marked_anew")?;
    runtime()?.block_on(async {
        let keys = marked(&schema).await?;
        let bound = keys.tag_bound(&tag("orders")).await?;
        assert_eq!(bound.and_then(|its| its.gone_back_from), Some(SEEN));
        let raised = keys.raise(&tag("orders"), 70_000).await;
        let way_out = "keywright advance orders --above 70000,";
        assert_refused(raised, Cause::BoundDamaged, way_out);
        assert_eq!(keys.drop_tag(&tag("orders")).await?, SEEN);
        // The larger one of what a program has seen and what tables have.
        for (start, above) in [(1, SEEN - 1), (70_001, 70_000)] {
            let options = TagOptions {
                start,
                ..small_steps(100)
            };
            let made = keys.create_tag(&tag("orders"), &options).await;
            let way_out = format!("keywright advance orders --above {above},");
            assert_refused(made, Cause::BoundDamaged, &way_out);
        }
        assert_eq!(keys.tag_bound(&tag("orders")).await?, None);
        assert_eq!(advance(&keys, SEEN - 1).await.unwrap(), SEEN);
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let taken = keys.source(&segment("orders"))?.take(1, true).await?;
        assert!(taken.number(0) >= Some(SEEN), "{taken:?}");
        Ok(())
    })
}

/// Its row is gone, and what stood there was said of another key space.
fn one_that_is_lost_and_made_again_is_another(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_marked_lost")?;
    runtime()?.block_on(async {
        drop(marked(&schema).await?);
        schema.remove_tags()?;
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let taken = keys.source(&segment("orders"))?.take(1, true).await?;
        assert_eq!(taken.number(0), Some(1));
        Ok(())
    })
}

/// As in a backup of before the end was raised.
fn an_advance_beyond_the_end_says_what_to_do_first(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_marked_end")?;
    runtime()?.block_on(async {
        let keys = marked(&schema).await?;
        schema.sql("UPDATE keywright_segment SET id_max = 1000")?;
        for (id, least) in [(5, SEEN - 1), (9_000, 9_000)] {
            let way_out = format!(
                "UPDATE keywright_segment SET id_max = N WHERE tag = 'orders', N above {least}"
            );
            let advanced = advance(&keys, id).await;
            assert_refused(advanced, Cause::ArgumentOutOfRange, &way_out);
        }
        let refused = advance(&keys, 5).await.unwrap_err();
        // Nobody has named such an id.
        let seen = "a program has seen ids of tag \"orders\" up to 4000, beyond 1000";
        assert!(refused.message().contains(seen), "{refused}");
        let beyond_all = advance(&keys, u64::MAX).await;
        let way_out = "is it a number of this tag?";
        assert_refused(beyond_all, Cause::ArgumentOutOfRange, way_out);
        schema.sql("UPDATE keywright_segment SET id_max = 10000")?;
        assert_eq!(advance(&keys, 5).await.unwrap(), SEEN);
        Ok(())
    })
}

/// Whoever raises the end again gets none of the ids that were given before.
fn a_restore_goes_on_above_what_was_seen_beyond_the_end(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_marked_restored")?;
    runtime()?.block_on(async {
        drop(marked(&schema).await?);
        schema.sql("UPDATE keywright_segment SET id_max = 1000")?;
        let lost = Duration::from_secs(1);
        let restored = open(&schema.raw())?.restored(lost, BTreeMap::new()).await?;
        let bounds: Vec<u64> = restored.tags.iter().map(|its| its.next).collect();
        assert_eq!(bounds, [SEEN], "{restored:?}");
        let keys = open(&schema.raw())?;
        let source = keys.source(&segment("orders"))?;
        let refused = source.take(1, true).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::TagExhausted, "{refused}");
        schema.sql("UPDATE keywright_segment SET id_max = 100000000")?;
        let keys = open(&schema.raw())?;
        let taken = keys.source(&segment("orders"))?.take(1, true).await?;
        assert!(taken.number(0) >= Some(SEEN), "{taken:?}");
        Ok(())
    })
}
