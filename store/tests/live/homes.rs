//! Tags in two stores, of which one is in a file and the other on each engine: made in one, moved to the other and back, broken off after every step.

use keywright_core::{Cause, Step};
use keywright_store::{Failure, Keys, MoveProgress, RawStoreSettings, Relocating, TagOptions};
use keywright_testkit::Result;

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag,
};
use crate::others::LEAF;
use crate::two::{Two, open_all};

on_engines!(
    a_move_that_breaks_off_anywhere_is_gone_on_with,
    a_tag_is_made_in_one_store_only,
    a_tag_that_was_there_before_the_second_store,
    a_native_tag_that_was_dropped_is_not_opened,
    a_store_that_was_restored_is_closed_again,
    a_row_that_waits_is_opened_by_its_own_move_alone,
);

#[test]
fn on_mysql() -> Result<()> {
    a_move_that_breaks_off_anywhere_is_gone_on_with(Engine::MySql)?;
    a_tag_is_made_in_one_store_only(Engine::MySql)
}

/// Looks, prepares, closes, opens, settles.
const STEPS: usize = 5;
/// After so many the tombstone is there.
const CLOSED: usize = 3;

pub async fn takes(keys: &Keys, by: &str, log: &IssuedLog) -> std::result::Result<(), Failure> {
    let taken = keys.source(&segment("orders"))?.take(30, true).await?;
    log.add_all(by, &taken);
    Ok(())
}

pub async fn some_steps(moving: &mut Relocating, steps: usize) -> std::result::Result<(), Failure> {
    for _ in 0..steps {
        assert!(matches!(moving.advance().await?, MoveProgress::Took(_)));
    }
    Ok(())
}

pub async fn all_steps(moving: &mut Relocating) -> std::result::Result<String, Failure> {
    loop {
        if let MoveProgress::Done(said) = moving.advance().await? {
            return Ok(said);
        }
    }
}

/// Programs with either configuration take before, between and after: each gets ids, or a clear refusal, and none comes twice.
fn a_move_that_breaks_off_anywhere_is_gone_on_with(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_home_moves")?;
    let log = IssuedLog::default();
    runtime()?.block_on(async {
        let keys = two.init("elsewhere.*").await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        for round in 0..=STEPS {
            for (to, pattern) in [("far", "orders"), ("main", "elsewhere.*")] {
                let other = if to == "far" { "elsewhere.*" } else { "orders" };
                let (old, new) = (two.open(other)?, two.open(pattern)?);
                takes(&old, "the old one", &log).await?;
                let early = takes(&new, "the new one, too early", &log).await;
                assert_eq!(early.unwrap_err().cause(), Cause::TagMoved);
                let mut broken = Relocating::new(two.open(pattern)?, tag("orders"), to);
                some_steps(&mut broken, round).await?;
                let late = takes(&two.open(other)?, "an old one", &log).await;
                match round >= CLOSED {
                    true => assert_eq!(late.unwrap_err().cause(), Cause::TagMoved),
                    false => late?,
                }
                all_steps(&mut Relocating::new(two.open(pattern)?, tag("orders"), to)).await?;
                takes(&two.open(pattern)?, "a new one", &log).await?;
                // What it holds lies below the tombstone's bound; then it gets no more.
                let refused = loop {
                    if let Err(failure) = takes(&old, "the old one, to its end", &log).await {
                        break failure;
                    }
                };
                assert_eq!(refused.cause(), Cause::TagMoved, "{refused}");
                old.hand_back().await;
                let mut again = Relocating::new(two.open(pattern)?, tag("orders"), to);
                let said = all_steps(&mut again).await?;
                assert!(said.contains(&format!("is in store \"{to}\"")));
            }
        }
        Ok(())
    })
}

fn a_tag_is_made_in_one_store_only(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_home_made")?;
    let log = IssuedLog::default();
    let options = TagOptions::with_step(Step::new(100)?);
    runtime()?.block_on(async {
        let keys = two.init("orders").await?;
        keys.create_tag(&tag("orders"), &options).await?;
        takes(&keys, "the new one", &log).await?;
        // Somebody who knows the other store only, or has other patterns, makes none there, and gets none.
        let alone = open(&two.main.raw())?;
        let twice = alone.create_tag(&tag("orders"), &options).await;
        assert_eq!(twice.unwrap_err().cause(), Cause::TagExists);
        assert_eq!(
            takes(&alone, "alone", &log).await.unwrap_err().cause(),
            Cause::TagMoved
        );
        let other = two.open("elsewhere.*")?;
        let settled = other.settle(&tag("orders")).await.unwrap_err();
        assert!(
            settled
                .to_string()
                .contains("tag move orders --to-store main"),
            "{settled}"
        );
        let refused = takes(&other, "other patterns", &log).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::TagMoved, "{refused}");
        for refused in [
            alone
                .advance(&keywright_store::Above::Tag {
                    tag: tag("orders"),
                    id: 5,
                })
                .await
                .map(drop),
            alone.drop_tag(&tag("orders")).await.map(drop),
        ] {
            assert_eq!(refused.unwrap_err().cause(), Cause::TagMoved);
        }
        assert_eq!(keys.settle(&tag("orders")).await?, Vec::<String>::new());
        // One that was dropped is made anew above what it gave, also in the other store's place.
        keys.drop_tag(&tag("orders")).await?;
        keys.create_tag(&tag("orders"), &options).await?;
        takes(&two.open("orders")?, "made anew", &log)
            .await
            .map_err(anyhow::Error::from)
    })
}

/// It is given only once the second store is known to have no other, and the store that is away stops nothing then.
fn a_tag_that_was_there_before_the_second_store(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_home_before")?;
    let log = IssuedLog::default();
    let options = TagOptions::with_step(Step::new(100)?);
    runtime()?.block_on(async {
        let alone = open(&two.main.raw())?;
        alone.init().await?;
        alone.create_tag(&tag("orders"), &options).await?;
        takes(&alone, "alone", &log).await?;
        let keys = two.open("far.*")?;
        let unknown = takes(&keys, "both", &log).await.unwrap_err();
        assert_eq!(unknown.cause(), Cause::TagHomeUnknown, "{unknown}");
        two.init("far.*").await?;
        assert_eq!(keys.settle(&tag("orders")).await?, ["far"]);
        // It goes on by itself.
        let mut tries = 0;
        while let Err(failure) = takes(&keys, "both", &log).await {
            tries += 1;
            assert!(tries < 9_000, "{failure}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        // One that is open in both is given by nobody who knows both.
        open(&two.far.raw())?
            .create_tag(&tag("bills"), &options)
            .await?;
        alone.create_tag(&tag("bills"), &options).await?;
        let twice = keys.settle(&tag("bills")).await.unwrap_err();
        assert_eq!(twice.cause(), Cause::TagExists, "{twice}");
        let told = keys.not_at_home(&[tag("bills")]).await;
        assert!(
            told[0]
                .to_string()
                .contains("open in store \"main\" and in store \"far\""),
            "{told:?}"
        );
        let refused = keys
            .source(&segment("bills"))?
            .take(1, true)
            .await
            .unwrap_err();
        assert_eq!(refused.cause(), Cause::TagHomeUnknown, "{refused}");
        // The second store is gone, and a program starts: its own tags go on.
        let [main, far] = two.raw("far.*");
        let away = RawStoreSettings {
            store_ms_max: 500,
            wait_ms_max: 500,
            ..far
        };
        let forgotten = RawStoreSettings {
            url: two
                .far
                .raw()
                .url
                .replace("kw_home_before", "kw_home_nowhere")
                .replace("store.db", "nowhere.db"),
            ..away.clone()
        };
        // Another address is another store, until init has looked.
        let other = open_all(vec![main.clone(), forgotten])?;
        let refused = takes(&other, "another", &log).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::TagHomeUnknown, "{refused}");
        takes(&open_all(vec![main, away])?, "again", &log).await?;
        Ok(())
    })
}

/// A table of another system says nothing of other stores, so these are asked, and one that cannot be is waited for.
#[test]
fn a_tag_of_another_system_is_closed_in_our_store() -> Result<()> {
    let (main, leaf) = (
        Schema::of(Engine::File, "kw_home_own")?,
        Schema::new("kw_home_leaf")?,
    );
    leaf.sql(LEAF)?;
    let log = IssuedLog::default();
    let named = |name: &str, raw: RawStoreSettings| RawStoreSettings {
        name: name.to_owned(),
        ..raw
    };
    let far = RawStoreSettings {
        dialect: "leaf".to_owned(),
        wait_ms_max: 3_000,
        tags: vec!["orders".to_owned()],
        ..named("far", leaf.raw())
    };
    let opened = |main| open_all(vec![named("main", main), far.clone()]);
    runtime()?.block_on(async {
        let keys = opened(main.raw())?;
        for store in keys.stores() {
            store.init().await?;
        }
        let unsettled = takes(&keys, "too early", &log).await.unwrap_err();
        assert_eq!(unsettled.cause(), Cause::TagHomeUnknown, "{unsettled}");
        assert_eq!(keys.settle(&tag("orders")).await?, ["main"]);
        let keys = opened(main.raw())?;
        takes(&keys, "ours", &log).await?;
        let alone = open(&main.raw())?;
        let twice = alone.create_tag(&tag("orders"), &small_steps(100)).await;
        assert_eq!(twice.unwrap_err().cause(), Cause::TagExists);
        let moved = all_steps(&mut Relocating::new(keys, tag("orders"), "main")).await;
        let moved = moved.unwrap_err();
        assert!(moved.to_string().contains("do not move"), "{moved}");
        // Whoever starts while our store is away knows nothing of it.
        let nowhere = main.raw().url.replace("store.db", "nowhere.db");
        let away = opened(RawStoreSettings {
            url: nowhere,
            ..main.raw()
        })?;
        let unknown = takes(&away, "while it is away", &log).await.unwrap_err();
        assert_eq!(unknown.cause(), Cause::TagHomeUnknown, "{unknown}");
        Ok(())
    })
}

/// A database issues its ids, so nobody else does, though the tag was dropped and `init` makes what the configuration names.
fn a_native_tag_that_was_dropped_is_not_opened(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_home_native")?;
    let options = small_steps(100);
    runtime()?.block_on(async {
        let keys = two.init("orders").await?;
        keys.create_tag(&tag("orders"), &options).await?;
        two.far
            .sql("UPDATE keywright_segment SET heir = '7 16384 ab' WHERE tag = 'orders'")?;
        keys.drop_tag(&tag("orders")).await?;
        for _ in 0..2 {
            let refused = keys.create_tag(&tag("orders"), &options).await.unwrap_err();
            assert_eq!(refused.cause(), Cause::TagMoved, "{refused}");
            assert!(keys.settle(&tag("orders")).await.is_err());
        }
        let taken = takes(&two.open("orders")?, "nobody", &IssuedLog::default()).await;
        assert!(taken.is_err());
        let heir = two
            .far
            .sql("SELECT heir FROM keywright_segment WHERE tag = 'orders'")?;
        assert_eq!(heir, [["7 16384 ab"]]);
        Ok(())
    })
}

/// The row of the store that the tag has left is open again, as in a backup, and is dropped, as the page says: `init` closes it once more.
fn a_store_that_was_restored_is_closed_again(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_home_back")?;
    let log = IssuedLog::default();
    runtime()?.block_on(async {
        let keys = two.init("orders").await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        takes(&keys, "the program", &log).await?;
        two.main
            .sql("UPDATE keywright_segment SET heir = NULL WHERE tag = 'orders'")?;
        let alone = open(&two.main.raw())?;
        assert!(keys.settle(&tag("orders")).await.is_err(), "two are open");
        alone.drop_tag(&tag("orders")).await?;
        assert_eq!(keys.settle(&tag("orders")).await?, ["main"]);
        let made = alone.create_tag(&tag("orders"), &small_steps(100)).await;
        assert_eq!(made.unwrap_err().cause(), Cause::TagExists);
        let taken = takes(&open(&two.main.raw())?, "an old program", &log).await;
        assert_eq!(taken.unwrap_err().cause(), Cause::TagMoved);
        takes(&two.open("orders")?, "the next program", &log).await?;
        Ok(())
    })
}

/// One that was closed in favour of another and then made ready for a move back is opened by that move, and by nothing else.
fn a_row_that_waits_is_opened_by_its_own_move_alone(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_home_waits")?;
    runtime()?.block_on(async {
        let keys = two.init("orders").await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let back = two.open("elsewhere.*")?;
        let mut moving = Relocating::new(two.open("elsewhere.*")?, tag("orders"), "main");
        some_steps(&mut moving, CLOSED - 1).await?;
        let text = two
            .main
            .sql("SELECT heir FROM keywright_segment WHERE tag = 'orders'")?;
        assert!(
            text.iter()
                .flatten()
                .any(|text| text.starts_with("opening after ")),
            "{text:?}"
        );
        // A configuration that has not the store where it is open.
        let [main, _] = two.raw("elsewhere.*");
        let third = open_all(vec![main])?;
        let made = third.create_tag(&tag("orders"), &small_steps(100)).await;
        assert_eq!(made.unwrap_err().cause(), Cause::TagExists);
        let settled = back.settle(&tag("orders")).await.unwrap_err();
        assert!(
            settled
                .to_string()
                .contains("tag move orders --to-store main"),
            "{settled}"
        );
        all_steps(&mut moving).await?;
        takes(&back, "after the move", &IssuedLog::default()).await?;
        Ok(())
    })
}
