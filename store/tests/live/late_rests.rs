//! Rests that come back after somebody has named an id that all later ones are to be above: none that begins below is given.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_store::{Above, Keys, RawStoreSettings, TagOptions};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};
use crate::others::LEAF;

on_engines!(
    a_rest_that_comes_after_a_raise_is_not_taken_back,
    rests_below_an_id_that_is_reserved_already_are_worthless_too,
    a_rest_of_before_a_tag_was_made_anew_is_not_taken_back,
    a_rest_of_before_a_restore_is_not_taken_back,
    a_rest_of_after_a_raise_is_used,
);

#[test]
fn on_mysql() -> Result<()> {
    a_rest_that_comes_after_a_raise_is_not_taken_back(Engine::MySql)?;
    rests_below_an_id_that_is_reserved_already_are_worthless_too(Engine::MySql)?;
    a_rest_of_after_a_raise_is_used(Engine::MySql)
}

/// The highest id that is in use elsewhere.
const NAMED: u64 = 50_000;

fn above(id: u64) -> Above {
    Above::Tag {
        tag: tag("orders"),
        id,
    }
}

/// A program that has taken one id, and holds more.
async fn holding(raw: &RawStoreSettings) -> Result<Keys> {
    let keys = open(raw)?;
    keys.source(&segment("orders"))?.take(1, true).await?;
    Ok(keys)
}

/// The first id of a program that starts.
async fn first_id(raw: &RawStoreSettings) -> Result<u64> {
    let keys = open(raw)?;
    let taken = keys.source(&segment("orders"))?.take(1, true).await?;
    Ok(taken.number(0).unwrap_or_default())
}

async fn made(schema: &Schema) -> Result<Keys> {
    let keys = open(&schema.raw())?;
    keys.init().await?;
    keys.create_tag(&tag("orders"), &small_steps(100)).await?;
    Ok(keys)
}

fn rests(schema: &Schema) -> Result<u64> {
    schema.number("SELECT COUNT(*) FROM keywright_returned")
}

fn a_rest_that_comes_after_a_raise_is_not_taken_back(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_late_rest")?;
    runtime()?.block_on(async {
        let owner = made(&schema).await?;
        let stops = holding(&schema.raw()).await?;
        assert_eq!(owner.advance(&above(NAMED)).await?, NAMED + 1);
        stops.hand_back().await;
        assert_eq!(rests(&schema)?, 0);
        assert_eq!(first_id(&schema.raw()).await?, NAMED + 1);
        Ok(())
    })
}

/// The bound is above the id that somebody names, and so nothing is raised; what was reserved is on both sides of it.
fn rests_below_an_id_that_is_reserved_already_are_worthless_too(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_late_below")?;
    runtime()?.block_on(async {
        let owner = made(&schema).await?;
        let (before, after) = (holding(&schema.raw()).await?, holding(&schema.raw()).await?);
        before.hand_back().await;
        assert_eq!(rests(&schema)?, 1);
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        assert_eq!(owner.advance(&above(hi - 2)).await?, hi);
        after.hand_back().await;
        assert_eq!(rests(&schema)?, 0);
        assert_eq!(first_id(&schema.raw()).await?, hi);
        // A smaller one that is named later changes nothing.
        let last = holding(&schema.raw()).await?;
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        owner.advance(&above(hi - 2)).await?;
        owner.advance(&above(1)).await?;
        last.hand_back().await;
        assert_eq!(first_id(&schema.raw()).await?, hi);
        Ok(())
    })
}

/// As `keywright init` makes it: above the ids that tables have.
fn a_rest_of_before_a_tag_was_made_anew_is_not_taken_back(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_late_anew")?;
    runtime()?.block_on(async {
        let owner = made(&schema).await?;
        let stops = holding(&schema.raw()).await?;
        owner.drop_tag(&tag("orders")).await?;
        let options = TagOptions {
            start: NAMED + 1,
            ..small_steps(100)
        };
        owner.create_tag(&tag("orders"), &options).await?;
        stops.hand_back().await;
        assert_eq!(rests(&schema)?, 0);
        assert_eq!(first_id(&schema.raw()).await?, NAMED + 1);
        Ok(())
    })
}

/// One program was left running.
fn a_rest_of_before_a_restore_is_not_taken_back(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_late_restored")?;
    runtime()?.block_on(async {
        let owner = made(&schema).await?;
        let stops = holding(&schema.raw()).await?;
        let last_ids = BTreeMap::from([(tag("orders"), NAMED)]);
        owner.restored(Duration::ZERO, last_ids).await?;
        stops.hand_back().await;
        assert_eq!(rests(&schema)?, 0);
        assert!(first_id(&schema.raw()).await? > NAMED);
        Ok(())
    })
}

fn a_rest_of_after_a_raise_is_used(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_late_used")?;
    runtime()?.block_on(async {
        let owner = made(&schema).await?;
        owner.advance(&above(NAMED)).await?;
        let stops = holding(&schema.raw()).await?;
        stops.hand_back().await;
        assert_eq!(rests(&schema)?, 1);
        assert_eq!(first_id(&schema.raw()).await?, NAMED + 2);
        Ok(())
    })
}

/// Their rows have no room for it.
#[test]
fn a_rest_that_comes_after_a_raise_is_not_taken_back_of_other_tables() -> Result<()> {
    let schema = Schema::new("kw_late_leaf")?;
    runtime()?.block_on(async {
        schema.sql(LEAF)?;
        let raw = RawStoreSettings {
            dialect: "leaf".to_owned(),
            ..schema.raw()
        };
        let owner = open(&raw)?;
        owner.init().await?;
        let stops = holding(&raw).await?;
        assert_eq!(owner.advance(&above(NAMED)).await?, NAMED + 1);
        stops.hand_back().await;
        assert_eq!(rests(&schema)?, 0);
        assert_eq!(first_id(&raw).await?, NAMED + 1);
        Ok(())
    })
}
