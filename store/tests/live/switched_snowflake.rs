//! Tables that go over to snowflake ids, as the store keeps it.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use keywright_core::{Cause, Preset};
use keywright_store::switch::{
    Change, CommitRefusal, Committed, KeySpace, Reached, RuleName, Switchboard,
};
use keywright_store::{Clock, KeySpec, RawSnowflakeSettings, RawStoreSettings, SystemClock};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, open, open_with, runtime, small_steps, tag, until};
use crate::switches::{change, generation, here, in_force, recorded, space};

/// All leases of the layout are one key space: who did not hear of the switch gets no more of it, and everybody begins above.
#[test]
fn tables_go_over_to_snowflake_ids_and_back() -> Result<()> {
    for engine in Engine::ALL {
        let schema = Schema::of(engine, "kw_switch_snowflake")?;
        runtime()?.block_on(async {
            let impatient = RawStoreSettings {
                wait_ms_max: 5_000,
                ..schema.raw()
            };
            let (keys, late) = (open(&schema.raw())?, open(&impatient)?);
            keys.init().await?;
            let board = Switchboard::new(&keys);
            let on = board.begin(&[change(None, Some("snowflake"))]).await?;
            assert!(board.record(on.unwrap(), recorded("orders", 5_000)).await?);
            assert_eq!(
                board
                    .commit(on.unwrap(), Reached::default(), here())
                    .await?,
                Committed::Done
            );
            let standing = board.standing().await?;
            assert_eq!(in_force(&standing), Some(KeySpace::Snowflake));
            assert_eq!(generation(&standing, "snowflake"), Some(1));
            let (source, late) = (
                keys.source(&KeySpec::Snowflake)?,
                late.source(&KeySpec::Snowflake)?,
            );
            keys.follow(&KeySpace::Snowflake, 1);
            let mut issued = Vec::new();
            for source in [&source, &late] {
                issued.extend(source.take(1, true).await?.number(0));
            }
            // Whoever takes the tables out by hand goes on above them, too.
            let by_hand = keys.first_free_snowflake().await?;
            let by_clock = keys.first_free_snowflake_by_clock();
            for first in [by_hand, by_clock] {
                assert!(issued.iter().all(|id| *id < first), "{issued:?} {first}");
            }

            // Back: counters go on above all that leases may issue.
            let off = board.begin(&[change(Some("snowflake"), None)]).await?;
            let off = off.unwrap();
            assert_eq!(
                board.commit(off, Reached::default(), here()).await?,
                Committed::Done
            );
            let above = board.standing().await?.rules[0].above.unwrap();
            let refused = loop {
                match late.take(100_000, false).await {
                    Ok(batch) => issued.push(batch.number(99_999).unwrap_or(0)),
                    Err(failure) => break failure,
                }
            };
            assert_eq!(refused.cause(), Cause::Suspended, "{refused}");
            assert!(issued.iter().all(|id| *id < above), "{issued:?} {above}");
            assert!(board.complete(off).await?);

            // Again: above the native ids, which lie beyond what the lease had.
            let on = board
                .begin(&[change(None, Some("snowflake"))])
                .await?
                .unwrap();
            let native = above + (5 << 22);
            assert!(board.record(on, recorded("orders", native)).await?);
            let early = board.commit(on, Reached::default(), here()).await?;
            let is_early = matches!(early, Committed::Refused(_, CommitRefusal::Ahead(..)));
            assert!(is_early || early == Committed::Done, "{early:?}");
            let mut committed = early;
            while committed != Committed::Done {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                committed = board.commit(on, Reached::default(), here()).await?;
            }
            assert_eq!(generation(&board.standing().await?, "snowflake"), Some(3));
            keys.follow(&KeySpace::Snowflake, 3);
            let first = source.take(1, true).await?.number(0).unwrap_or(0);
            assert!(first >= native, "{first} {native}");
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// No rule of the program has them any more: it wants no worker id, and that it cannot have one is no trouble. When a rule has them again, so has it.
#[test]
fn keys_that_tables_have_left_are_no_trouble_and_hold_no_worker_id() -> Result<()> {
    const HOLDERS: &str = "SELECT COUNT(*) FROM keywright_worker WHERE owner IS NOT NULL";
    for engine in Engine::ALL {
        let schema = Schema::of(engine, "kw_switch_unused")?;
        runtime()?.block_on(async {
            let snowflake = RawSnowflakeSettings {
                lease_ms: 1_000,
                bound_window_ms: 1_000,
                ..RawSnowflakeSettings::default()
            };
            let keys = open_with(&schema.raw(), &snowflake)?;
            keys.init().await?;
            let board = Switchboard::new(&keys);
            go_over_to_snowflake_ids(&board).await?;
            let source = keys.source(&KeySpec::Snowflake)?;
            keys.follow(&KeySpace::Snowflake, 1);
            let first = source.take(1, true).await?.number(0);
            let off = board.begin(&[change(Some("snowflake"), None)]).await?;
            let off = off.unwrap();
            let committed = board.commit(off, Reached::default(), here());
            assert_eq!(committed.await?, Committed::Done);
            assert!(board.complete(off).await?);

            // The lease has run out, and those that can be had are of a later generation than the program follows.
            schema.sql("UPDATE keywright_worker SET owner = NULL, epoch = epoch + 1")?;
            let has_trouble = || keys.stats().iter().any(|of| of.trouble.is_some());
            until("trouble", has_trouble).await;
            let none = HashSet::new();
            keys.use_only(&none);
            assert!(!has_trouble());

            go_over_to_snowflake_ids(&board).await?;
            keys.follow(&KeySpace::Snowflake, 3);
            assert_eq!(schema.number(HOLDERS)?, 0);
            let again = keys.source(&KeySpec::Snowflake)?;
            assert!(again.take(1, true).await?.number(0) > first);
            assert_eq!(schema.number(HOLDERS)?, 1);
            keys.use_only(&none);
            until("a lease that was given up", || {
                schema.number(HOLDERS).is_ok_and(|held| held == 0)
            })
            .await;
            // Who is still at it is served.
            again.take(1, true).await?;
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// A connection goes on with keys that no rule has any more, one key now and then: their times stay near the clock.
#[test]
fn who_still_takes_keys_that_nobody_else_wants_does_not_run_away_from_the_clock() -> Result<()> {
    let snowflake = RawSnowflakeSettings {
        lease_ms: 1_000,
        bound_window_ms: 1_000,
        lead_ms_max: 1_000,
        skew_ms_max: 0,
        ..RawSnowflakeSettings::default()
    };
    let ahead_ms_max = i64::try_from(snowflake.lead_ms_max + snowflake.bound_window_ms)?;
    for engine in Engine::ALL {
        let schema = Schema::of(engine, "kw_switch_still")?;
        runtime()?.block_on(async {
            let keys = open_with(&schema.raw(), &snowflake)?;
            keys.init().await?;
            let source = keys.source(&KeySpec::Snowflake)?;
            source.take(1, true).await?;
            keys.use_only(&HashSet::new());
            let layout = Preset::Twitter.layout();
            for round in 0..12 {
                let taken = source.take(1, true).await?;
                let id = taken.number(0).unwrap().cast_signed();
                let ahead_ms = layout.decode(id)?.issued_at_ms - SystemClock.wall_ms();
                assert!(ahead_ms <= ahead_ms_max, "round {round}: {ahead_ms} ms");
                // Longer than anybody takes to see that nobody waits.
                tokio::time::sleep(Duration::from_millis(450)).await;
            }
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// Leases lie ahead of the clock while somebody issues. That keeps nobody from repeating the switch for another server, nor from letting
/// another table go over.
#[test]
fn a_switch_to_keys_is_made_again_while_others_issue() -> Result<()> {
    for engine in Engine::ALL {
        for name in ["a", "snowflake"] {
            let schema = Schema::of(engine, &format!("kw_switch_again_{name}"))?;
            runtime()?.block_on(async {
                let (keys, other) = (open(&schema.raw())?, open(&schema.raw())?);
                keys.init().await?;
                keys.create_tag(&tag("a"), &small_steps(100)).await?;
                let (board, keys_of) = (Switchboard::new(&keys), space(name));
                let switch = async |change: Change, counter: u64| {
                    let attempt = board.begin(&[change]).await?.unwrap();
                    assert!(board.record(attempt, recorded("orders", counter)).await?);
                    let committed = board.commit(attempt, Reached::default(), here()).await?;
                    assert_eq!(committed, Committed::Done);
                    Ok::<(), anyhow::Error>(())
                };
                switch(change(None, Some(name)), 5_000).await?;
                let mut last = 0;
                let again = Change {
                    rule: RuleName {
                        tables: "shop.lines".to_owned(),
                        column: "id".to_owned(),
                    },
                    ..change(None, Some(name))
                };
                for (generation, next) in [(1, change(Some(name), Some(name))), (2, again)] {
                    let mut taken = Vec::new();
                    for keys in [&keys, &other] {
                        let source = keys.source(&keys_of.spec())?;
                        keys.follow(&keys_of, generation);
                        taken.push(source.take(1, true).await?.number(0).unwrap());
                    }
                    assert!(taken.iter().all(|id| *id > last), "{taken:?} {last}");
                    last = taken.into_iter().max().unwrap();
                    // The first lease of a worker id begins as far ahead as a switch may less the window, and the next one that window further.
                    let taken_ms = SystemClock.wall_ms();
                    until("some milliseconds to pass", || {
                        SystemClock.wall_ms() > taken_ms + 10
                    })
                    .await;
                    switch(next, last + 1).await?;
                }
                for keys in [&keys, &other] {
                    let source = keys.source(&keys_of.spec())?;
                    keys.follow(&keys_of, 3);
                    let id = source.take(1, true).await?.number(0).unwrap();
                    assert!(id > last, "{id} {last}");
                }
                Ok::<(), anyhow::Error>(())
            })?;
        }
    }
    Ok(())
}

/// Tables leave snowflake ids on each engine: for native ids, and for keys of tag `b`. Each time in a store of its own.
fn on_leaving(name: &str, test: impl AsyncFn(&Schema, Option<&str>) -> Result<()>) -> Result<()> {
    for engine in Engine::ALL {
        for next in [None, Some("b")] {
            let schema = format!("kw_switch_{name}_{}", next.unwrap_or("off"));
            let schema = Schema::of(engine, &schema)?;
            runtime()?.block_on(test(&schema, next))?;
        }
    }
    Ok(())
}

/// The first number that tables get that have left snowflake ids: of their counters, or of that tag.
async fn first_of(board: &Switchboard, next: Option<&str>) -> Result<Option<u64>> {
    Ok(match next {
        None => board.standing().await?.rules[0].above,
        Some(tag) => board.span(&space(tag)).await?.map(|its| its.bound),
    })
}

/// Nobody has had a lease since tables went over from a tag to snowflake ids: what comes next begins above the tag's keys all the same.
#[test]
fn snowflake_ids_that_nobody_has_had_are_left_above_what_was_before() -> Result<()> {
    on_leaving("unleased", async |schema: &Schema, next: Option<&str>| {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for tags in ["a", "b"] {
            keys.create_tag(&tag(tags), &small_steps(100)).await?;
        }
        let board = Switchboard::new(&keys);
        for (from, to) in [(None, Some("a")), (Some("a"), Some("snowflake"))] {
            let attempt = board.begin(&[change(from, to)]).await?.unwrap();
            let committed = board
                .commit(attempt, Reached::above(700_000), here())
                .await?;
            assert_eq!(committed, Committed::Done);
        }
        let span = board.span(&KeySpace::Snowflake).await?.unwrap();
        assert!(span.bound >= 700_000, "{span:?}");
        let attempt = board.begin(&[change(Some("snowflake"), next)]).await?;
        let committed = board
            .commit(attempt.unwrap(), Reached::default(), here())
            .await?;
        assert_eq!(committed, Committed::Done);
        let first = first_of(&board, next).await?.unwrap();
        assert!(first >= 700_000, "{first}");
        // Elsewhere an older state may have been put back, in which nobody has a lease.
        let url = schema.raw().url;
        let has_no_server = url.starts_with("etcd") || url.starts_with("file");
        assert!(first < 800_000 || !has_no_server, "{first}");
        Ok(())
    })
}

pub(crate) async fn go_over_to_snowflake_ids(board: &Switchboard) -> Result<()> {
    let attempt = board.begin(&[change(None, Some("snowflake"))]).await?;
    let committed = board.commit(attempt.unwrap(), Reached::default(), here());
    assert_eq!(committed.await?, Committed::Done);
    Ok(())
}

/// The first id that whatever takes over from a server that is lost leaves out at least, as of now.
fn reach_of_lost() -> Result<u64> {
    let its = RawSnowflakeSettings::default();
    let gap_ms = i64::try_from(its.lead_ms_max + its.skew_ms_max)?;
    let layout = Preset::Twitter.layout();
    Ok(u64::try_from(
        layout.floor(SystemClock.wall_ms() + gap_ms)?,
    )?)
}

/// The store fails over behind a program that was killed, and whose worker id nobody takes any more: tables leave it as soon as its lease has run
/// out, above all that may be missing; and they come back only when the clock is there.
#[test]
fn tables_leave_worker_ids_of_another_server_that_nobody_holds_any_more() -> Result<()> {
    // Nobody renews it while the test runs.
    let long_lease = RawSnowflakeSettings {
        lease_ms: 3_600_000,
        ..RawSnowflakeSettings::default()
    };
    on_leaving("foreign", async |schema: &Schema, next: Option<&str>| {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("b"), &small_steps(100)).await?;
        let board = Switchboard::new(&keys);
        go_over_to_snowflake_ids(&board).await?;
        let killed = open_with(&schema.raw(), &long_lease)?;
        let taken = killed.source(&KeySpec::Snowflake)?.take(1, true).await?;
        let issued = taken.number(0).unwrap();
        drop(killed);
        schema.sql("UPDATE keywright_worker SET server = 'another'")?;
        let left = board.begin(&[change(Some("snowflake"), next)]).await?;
        let left = left.unwrap();
        let refused = Committed::Refused(KeySpace::Snowflake, CommitRefusal::Foreign);
        let committed = board.commit(left, Reached::default(), here()).await?;
        assert_eq!(committed, refused, "it may still issue");

        schema.sql(&format!(
            "UPDATE keywright_worker SET expires_at = {}",
            schema.long_ago()
        ))?;
        let reach = reach_of_lost()?;
        let committed = board.commit(left, Reached::default(), here()).await?;
        assert_eq!(committed, Committed::Done);
        let first = first_of(&board, next).await?;
        let first = first.unwrap();
        assert!(first > issued && first > reach, "{first} {issued} {reach}");

        assert_eq!(next.is_none(), board.complete(left).await?);
        let back = board.begin(&[change(next, Some("snowflake"))]).await?;
        let back = back.unwrap();
        assert!(board.record(back, recorded("orders", first + 1)).await?);
        let committed = board.commit(back, Reached::default(), here()).await?;
        let is_ahead = matches!(
            committed,
            Committed::Refused(KeySpace::Snowflake, CommitRefusal::Ahead(..))
        );
        assert!(is_ahead, "{committed:?}");
        Ok(())
    })
}

/// No lease of it is anybody's, and all were written by another server.
#[test]
fn tables_leave_snowflake_ids_of_a_store_that_was_restored() -> Result<()> {
    for engine in Engine::ALL {
        let schema = Schema::of(engine, "kw_switch_restored")?;
        runtime()?.block_on(async {
            let keys = open(&schema.raw())?;
            keys.init().await?;
            go_over_to_snowflake_ids(&Switchboard::new(&keys)).await?;
            let taken = keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
            let issued = taken.number(0).unwrap();
            keys.hand_back().await;
            let lost = Duration::from_secs(60);
            let restored = open(&schema.raw())?;
            restored.restored(lost, BTreeMap::new()).await?;

            let keys = open(&schema.raw())?;
            let board = Switchboard::new(&keys);
            let off = board.begin(&[change(Some("snowflake"), None)]).await?;
            let reach = reach_of_lost()?;
            let committed = board.commit(off.unwrap(), Reached::default(), here());
            assert_eq!(committed.await?, Committed::Done);
            let above = board.standing().await?.rules[0].above.unwrap();
            assert!(above > issued && above > reach, "{above} {issued} {reach}");
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}
