//! Tables that come when the switch is over, whose own ids may be among keys: what was reserved is dropped.

use std::fs;
use std::time::Duration;

use keywright_store::RawStoreSettings;
use keywright_store::switch::{Committed, Dropped, Reached, Switchboard};
use keywright_testkit::{Result, scratch_dir};

use crate::common::{Engine, Schema, open, runtime, small_steps, tag};
use crate::switches::{change, generation, here, recorded, space};

/// A table has come whose own ids may be among keys: those that were reserved and not given are given no more, whoever has them.
#[test]
fn what_was_reserved_is_dropped_where_a_tables_own_ids_are_among_it() -> Result<()> {
    for (engine, keys_of) in [
        (Engine::MariaDb, "a"),
        (Engine::MySql, "a"),
        (Engine::MariaDb, "snowflake"),
        (Engine::File, "a"),
        (Engine::File, "snowflake"),
    ] {
        let schema = Schema::of(engine, &format!("kw_switch_late_{keys_of}"))?;
        runtime()?.block_on(async {
            let (keys, other) = (open(&schema.raw())?, open(&schema.raw())?);
            keys.init().await?;
            keys.create_tag(&tag("a"), &small_steps(100)).await?;
            let (board, space) = (Switchboard::new(&keys), space(keys_of));
            let on = board.begin(&[change(None, Some(keys_of))]).await?.unwrap();
            assert!(board.record(on, recorded("orders", 5_000)).await?);
            // Not while an attempt is under way.
            assert_eq!(board.drop_reserved(&space, 4_000).await?, Dropped::Not);
            assert_eq!(
                board.commit(on, Reached::default(), here()).await?,
                Committed::Done
            );
            let mut sources = Vec::new();
            for keys in [&keys, &other] {
                let source = keys.source(&space.spec())?;
                keys.follow(&space, 1);
                sources.push((source.take(1, true).await?.number(0).unwrap(), source));
            }
            let last = sources.iter().map(|(id, _)| *id).max().unwrap();
            let span = board.span(&space).await?.unwrap();
            assert!(span.first <= 5_000 && last < span.bound, "{span:?} {last}");
            let beyond = board.drop_reserved(&space, span.bound + 1).await?;
            assert_eq!(beyond, Dropped::Not);
            let below = board.drop_reserved(&space, span.first).await?;
            assert_eq!(below, Dropped::Nothing);
            assert_eq!(generation(&board.standing().await?, keys_of), Some(1));

            let next = last + 10;
            // Snowflake ids are that high only a moment later.
            let dropped = loop {
                match board.drop_reserved(&space, next).await? {
                    Dropped::Not => tokio::time::sleep(Duration::from_millis(10)).await,
                    dropped @ (Dropped::All(_) | Dropped::Nothing) => break dropped,
                }
            };
            assert_eq!(dropped, Dropped::All(span));
            assert_eq!(generation(&board.standing().await?, keys_of), Some(2));
            for (keys, (_, source)) in [&keys, &other].into_iter().zip(&sources) {
                keys.follow(&space, 2);
                let id = source.take(1, true).await?.number(0).unwrap();
                assert!(id >= next, "{id} {next}");
            }
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// Whoever starts in the place of a program that was killed before it has followed that, and cannot ask the store, gives nothing of it either.
#[test]
fn what_is_kept_is_not_used_once_reserved_ids_were_dropped() -> Result<()> {
    let schema = Schema::of(Engine::File, "kw_switch_late_kept")?;
    let scratch = scratch_dir()?;
    let file = scratch.path().join("ranges");
    let raw = RawStoreSettings {
        kept_ranges_file: Some(file.clone()),
        any_file_system: true,
        ..schema.raw()
    };
    let says = |standing: &str| -> Result<bool> {
        Ok(fs::read_to_string(&file)?.contains(&format!("\"standing\": {standing}")))
    };
    runtime()?.block_on(async {
        let keys = open(&raw)?;
        keys.keep_ranges("configuration", 60_000);
        keys.drop_kept_ranges();
        keys.init().await?;
        keys.create_tag(&tag("a"), &small_steps(100)).await?;
        let (board, space) = (Switchboard::new(&keys), space("a"));
        let on = board.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert!(board.record(on, recorded("orders", 5_000)).await?);
        assert_eq!(
            board.commit(on, Reached::default(), here()).await?,
            Committed::Done
        );
        let source = keys.source(&space.spec())?;
        keys.follow(&space, 1);
        let id = source.take(1, true).await?.number(0).unwrap();
        assert!(keys.keep_standing(Some(&board.standing().await?)));
        assert!(says("{")?);
        let dropped = board.drop_reserved(&space, id + 1).await?;
        assert!(matches!(dropped, Dropped::All(_)), "{dropped:?}");
        assert!(says("null")?);
        keys.follow(&space, 2);
        assert!(keys.keep_standing(Some(&board.standing().await?)));
        assert!(says("{")?);
        Ok::<(), anyhow::Error>(())
    })
}
