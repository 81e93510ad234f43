//! A store that somebody says was restored, and what others are known to have of its tags.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_store::{Above, KeySpec, Keys, RawSnowflakeSettings};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};

on_engines!(
    a_gap_lies_above_what_others_have,
    a_tag_whose_row_is_unusable_is_named,
    an_advance_takes_nothing_of_a_gap_away,
    an_advance_of_leases_takes_nothing_of_a_gap_away,
    others_may_write_meanwhile,
);

const LOST: Duration = Duration::from_secs(60);
/// More than the store knows of.
const LAST_OF_OTHERS: u64 = 70_000;

/// A new store with these tags, of each of which ids were taken.
async fn used(schema: &Schema, names: &[&str]) -> Result<Keys> {
    let keys = open(&schema.raw())?;
    keys.init().await?;
    for name in names {
        keys.create_tag(&tag(name), &small_steps(100)).await?;
        keys.source(&segment(name))?.take(7, true).await?;
    }
    Ok(keys)
}

fn a_gap_lies_above_what_others_have(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_restored_others")?;
    runtime()?.block_on(async {
        let _keys = used(&schema, &["orders", "items"]).await?;
        let last_ids = BTreeMap::from([
            (tag("orders"), LAST_OF_OTHERS),
            // Lower than what the store knows itself.
            (tag("items"), 1),
            (tag("later"), 5),
        ]);
        let restored = open(&schema.raw())?.restored(LOST, last_ids).await?;
        assert_eq!(restored.unknown, [(tag("later"), 5)]);
        let [items, orders] = restored.tags.as_slice() else {
            panic!("{restored:?}");
        };
        assert_eq!(orders.next, LAST_OF_OTHERS + 1);
        assert!(items.next > 7, "{items:?}");
        let fresh = open(&schema.raw())?;
        for its in [items, orders] {
            assert!(its.gap > 0, "{its:?}");
            let keys = fresh.source(&segment(&its.tag))?.take(1, true).await?;
            let first = keys.number(0).unwrap();
            assert!(first >= its.next + its.gap, "{first}, {its:?}");
        }
        Ok(())
    })
}

/// Whoever mends it is to know that it, too, may have been used since.
fn a_tag_whose_row_is_unusable_is_named(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_restored_unusable")?;
    runtime()?.block_on(async {
        let keys = used(&schema, &["orders", "items"]).await?;
        keys.hand_back().await;
        schema.sql("UPDATE keywright_segment SET step = 0 WHERE tag = 'items'")?;
        let restored = open(&schema.raw())?.restored(LOST, BTreeMap::new()).await?;
        let names: Vec<&str> = restored.tags.iter().map(|its| its.tag.as_str()).collect();
        assert_eq!(names, ["orders"]);
        let [unusable] = restored.unusable.as_slice() else {
            panic!("{restored:?}");
        };
        assert!(
            unusable.contains("\"items\"") && unusable.contains("unusable"),
            "{unusable}"
        );
        Ok(())
    })
}

fn an_advance_takes_nothing_of_a_gap_away(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_restored_advance")?;
    runtime()?.block_on(async {
        let _keys = used(&schema, &["orders"]).await?;
        let restored = open(&schema.raw())?.restored(LOST, BTreeMap::new()).await?;
        let orders = restored.tags.first().expect("a tag");
        assert!(orders.gap > 1, "{orders:?}");
        // The highest that somebody has seen, who has not seen all.
        let above = Above::Tag {
            tag: tag("orders"),
            id: orders.next + 1,
        };
        let fresh = open(&schema.raw())?;
        let told = fresh.advance(&above).await?;
        assert!(told >= orders.next + orders.gap, "{told}, {orders:?}");
        let keys = fresh.source(&segment("orders"))?.take(1, true).await?;
        let first = keys.number(0).unwrap();
        assert!(first >= orders.next + orders.gap, "{first}, {orders:?}");
        // Above the gap it is what was said.
        let id = first + LAST_OF_OTHERS;
        let above = Above::Tag {
            tag: tag("orders"),
            id,
        };
        assert_eq!(fresh.advance(&above).await?, id + 1);
        Ok(())
    })
}

fn an_advance_of_leases_takes_nothing_of_a_gap_away(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_restored_leases")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        let bound = "SELECT MAX(hi_ms) FROM keywright_worker";
        let recorded_ms = schema.number(bound)?;
        let restored = open(&schema.raw())?;
        restored.restored(LOST, BTreeMap::new()).await?;
        let above = Above::SnowflakeMoment {
            unix_ms: recorded_ms.cast_signed() + 1,
        };
        let fresh = open(&schema.raw())?;
        fresh.advance(&above).await?;
        fresh.source(&KeySpec::Snowflake)?.take(1, true).await?;
        // Begun at the moment that was said, it would end one window later.
        let its = RawSnowflakeSettings::default();
        let without_gap_ms = its.bound_window_ms + its.lead_ms_max;
        let later_ms = schema.number(bound)?.saturating_sub(recorded_ms);
        assert!(later_ms > without_gap_ms, "{later_ms}");
        Ok(())
    })
}

/// Somebody who restores a store has not stopped every program, or makes tags from another terminal.
fn others_may_write_meanwhile(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_restored_meanwhile")?;
    runtime()?.block_on(async {
        open(&schema.raw())?.init().await?;
        let writing = async {
            for number in 0..40 {
                let name = tag(&format!("t{number}"));
                open(&schema.raw())?
                    .create_tag(&name, &small_steps(100))
                    .await?;
            }
            Ok::<(), anyhow::Error>(())
        };
        let restoring = async {
            for _ in 0..20 {
                open(&schema.raw())?.restored(LOST, BTreeMap::new()).await?;
            }
            Ok(())
        };
        let (written, restored) = tokio::join!(writing, restoring);
        written?;
        restored
    })
}
