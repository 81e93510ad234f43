//! Worker ids that PostgreSQL databases are assigned for good, by each store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use keywright_store::assignment::AssignmentState;
use keywright_store::{AssignError, KeySpec, ReleasedNumber, Severity, release_worker_id};
use keywright_testkit::{Result, Stop};

use crate::common::{Engine, IssuedLog, in_postgres, on_engines, open, open_with, runtime};
use crate::fleet::{Fleet, assigning, connect, draw, ranges, refusal};

on_engines!(
    databases_that_ask_at_once_get_numbers_of_their_own,
    an_ask_that_breaks_off_anywhere_is_gone_on_with,
    of_a_copy_and_its_original_the_second_to_ask_is_suspended,
    numbers_that_were_given_up_go_out_again_above_their_ids,
    programs_that_say_other_ranges_are_refused,
    after_a_restore_nothing_is_given_until_somebody_says_what_was,
);

fn databases_that_ask_at_once_get_numbers_of_their_own(engine: Engine) -> Result<()> {
    const DATABASES: usize = 20;
    let fleet = Fleet::new(engine, "kw_assign_once", "512-1023")?;
    let names: Vec<String> = (0..DATABASES).map(|at| format!("shop_{at}")).collect();
    for name in &names {
        fleet.create(name)?;
    }
    let log = IssuedLog::default();
    let ask_all = || {
        runtime()?.block_on(async {
            let mut tasks = Vec::new();
            for name in &names {
                tasks.push(tokio::spawn(fleet.ask(name, false).await?.run()));
            }
            let mut numbers = Vec::new();
            for task in tasks {
                numbers.push(task.await??.worker_id);
            }
            Ok::<_, anyhow::Error>(numbers)
        })
    };
    let numbers = ask_all()?;
    let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!(distinct, (512..532).collect::<BTreeSet<u32>>());
    for (name, number) in names.iter().zip(&numbers) {
        assert_eq!(draw(&fleet.server, name, &log)?, *number);
    }
    assert_eq!(ask_all()?, numbers, "who asks again keeps its number");
    for (name, number) in names.iter().zip(&numbers) {
        assert_eq!(draw(&fleet.server, name, &log)?, *number);
    }
    assert_eq!(log.len(), 2 * DATABASES * 5000);
    Ok(())
}

/// The program is killed, or loses the store or the database, behind each step.
fn an_ask_that_breaks_off_anywhere_is_gone_on_with(engine: Engine) -> Result<()> {
    let fleet = Fleet::new(engine, "kw_assign_broken", "512-1023")?;
    let log = IssuedLog::default();
    let mut given = BTreeSet::new();
    let mut steps = 0;
    for step in 0.. {
        let name = format!("broken_{step}");
        fleet.create(&name)?;
        let (done, again) = runtime()?.block_on(async {
            let mut first = fleet.ask(&name, false).await?;
            let mut done = None;
            for _ in 0..step {
                done = first.advance().await?;
            }
            drop(first);
            Ok::<_, anyhow::Error>((done, fleet.assign(&name).await??))
        })?;
        assert!(given.insert(again.worker_id), "{} twice", again.worker_id);
        assert_eq!(draw(&fleet.server, &name, &log)?, again.worker_id);
        // Later asks break off, too, and change nothing.
        runtime()?.block_on(async {
            for step in 0..6 {
                let mut ask = fleet.ask(&name, false).await?;
                for _ in 0..step {
                    ask.advance().await?;
                }
                drop(ask);
                assert_eq!(fleet.assign(&name).await??.worker_id, again.worker_id);
            }
            Ok::<_, anyhow::Error>(())
        })?;
        assert_eq!(draw(&fleet.server, &name, &log)?, again.worker_id);
        if done.is_some() {
            steps = step;
            break;
        }
    }
    assert!(steps > 6, "an ask has {steps} steps");
    // No number was lost on the way, but for those of no database.
    let rows = runtime()?.block_on(fleet.rows())?;
    assert_eq!(rows.keys().copied().collect::<BTreeSet<u32>>(), given);
    assert_eq!(given, (512..512 + u32::try_from(given.len())?).collect());
    Ok(())
}

fn of_a_copy_and_its_original_the_second_to_ask_is_suspended(engine: Engine) -> Result<()> {
    let mut fleet = Fleet::new(engine, "kw_assign_copy", "512-1023")?;
    for name in ["shop", "pending"] {
        fleet.create(name)?;
    }
    let log = IssuedLog::default();
    let number = runtime()?.block_on(async {
        // One has its mark, but not its number yet.
        let mut ask = fleet.ask("pending", false).await?;
        for _ in 0..5 {
            ask.advance().await?;
        }
        Ok::<_, anyhow::Error>(fleet.assign("shop").await??.worker_id)
    })?;
    draw(&fleet.server, "shop", &log)?;
    let server = Arc::get_mut(&mut fleet.server).expect("nobody else has it");
    server.stop(Stop::Fast)?;
    let mut copy = server.copy()?;
    server.start()?;
    copy.start()?;
    runtime()?.block_on(async {
        // The copy asks first: nobody can tell that it is one.
        let asked = assigning(fleet.keys()?, &copy, "shop", false)
            .await?
            .run()
            .await?;
        assert_eq!(asked.worker_id, number);
        let told = fleet.assign("shop").await?.expect_err("its mark is stale");
        assert!(matches!(told, AssignError::Copy { .. }), "{told}");
        let report = fleet.rows().await?[&number].report.clone();
        assert!(report.is_some_and(|report| report.contains("was suspended")));
        let told = fleet.assign("shop").await?.expect_err("it stays suspended");
        assert!(matches!(told, AssignError::Suspended { .. }), "{told}");
        Ok::<_, anyhow::Error>(())
    })?;
    let told = refusal(&fleet.server, "shop");
    assert!(told.contains("worker assign --new"), "{told}");
    draw(&copy, "shop", &log)?;
    runtime()?.block_on(async {
        let own = fleet.ask("shop", true).await?.run().await?;
        assert!(own.is_new && own.worker_id != number, "{own:?}");
        assert_eq!(own.before, Some(number));
        // What had begun before the copy was made goes on in one of the two; the other gets another number.
        let (of_copy, of_original) = (
            assigning(fleet.keys()?, &copy, "pending", false)
                .await?
                .run()
                .await?,
            fleet.assign("pending").await??,
        );
        assert_ne!(of_copy.worker_id, of_original.worker_id);
        Ok::<_, anyhow::Error>(())
    })?;
    let mut numbers = BTreeSet::new();
    for (server, name) in [
        (&*fleet.server, "shop"),
        (&copy, "shop"),
        (&copy, "pending"),
    ] {
        numbers.insert(draw(server, name, &log)?);
    }
    numbers.insert(draw(&fleet.server, "pending", &log)?);
    assert_eq!(numbers.len(), 4, "{numbers:?}");
    Ok(())
}

fn numbers_that_were_given_up_go_out_again_above_their_ids(engine: Engine) -> Result<()> {
    let fleet = Fleet::new(engine, "kw_assign_released", "600-602")?;
    for name in ["one", "two", "three", "four", "five"] {
        fleet.create(name)?;
    }
    let log = IssuedLog::default();
    runtime()?.block_on(async {
        for (name, number) in [("one", 600), ("two", 601), ("three", 602)] {
            assert_eq!(fleet.assign(name).await??.worker_id, number);
        }
        let none = fleet.assign("four").await?.expect_err("none is left");
        assert!(
            none.to_string().contains("all worker ids of 600-602"),
            "{none}"
        );
        Ok::<_, anyhow::Error>(())
    })?;
    let last = |name: &str| -> Result<i64> {
        let max = in_postgres(
            &fleet.server,
            name,
            "SELECT max(snowflake_id()) FROM generate_series(1, 9000)",
        )?;
        Ok(max[0][0].parse()?)
    };
    let last = last("two")?;
    runtime()?.block_on(async {
        let keys = fleet.keys()?;
        let database = connect(&fleet.server, "one").await?;
        let other = release_worker_id(&keys, &database, 601).await;
        assert!(other.is_err(), "it is another's");
        drop(database);
        let database = connect(&fleet.server, "two").await?;
        for _ in 0..2 {
            // Broken off behind what the database did, it is done again.
            let released = release_worker_id(&keys, &database, 601).await;
            let again = matches!(
                released,
                Err(AssignError::Store(_) | AssignError::Overtaken)
            );
            assert!(again || released? == ReleasedNumber::Released);
        }
        keys.retire_worker_id(602).await?;
        assert!(keys.retire_worker_id(602).await.is_err());
        let rows = fleet.rows().await?;
        assert_eq!(rows[&601].state, AssignmentState::Released);
        assert_eq!(rows[&602].state, AssignmentState::Retired);
        Ok::<_, anyhow::Error>(())
    })?;
    let told = refusal(&fleet.server, "two");
    assert!(told.contains("has no worker id"), "{told}");
    runtime()?.block_on(async {
        assert_eq!(fleet.assign("four").await??.worker_id, 601);
        assert!(
            fleet.assign("five").await?.is_err(),
            "600 has an owner, 602 is never given again"
        );
        // The database of a number that somebody said was gone is suspended when it comes after all.
        let told = fleet.assign("three").await?.expect_err("602 was retired");
        assert!(matches!(told, AssignError::Copy { .. }), "{told}");
        Ok::<_, anyhow::Error>(())
    })?;
    let first = in_postgres(&fleet.server, "four", "SELECT snowflake_id()")?;
    assert!(
        first[0][0].parse::<i64>()? > last,
        "it goes on above its last owner's ids"
    );
    draw(&fleet.server, "four", &log)?;
    Ok(())
}

fn programs_that_say_other_ranges_are_refused(engine: Engine) -> Result<()> {
    let fleet = Fleet::new(engine, "kw_assign_ranges", "512-1023")?;
    fleet.create("shop")?;
    runtime()?.block_on(async {
        let number = fleet.assign("shop").await??.worker_id;
        let with = |leased: &str, assigned: &str| {
            open_with(&fleet.schema.raw(), &ranges(leased, assigned))
        };
        for keys in [
            open(&fleet.schema.raw())?,
            with("0-300", "512-1023")?,
            with("0-255", "512-900")?,
        ] {
            let told = keys.record_worker_ids(false).await.unwrap_err().to_string();
            assert!(
                told.contains("leased 0-255, assigned 512-1023 in the store"),
                "{told}"
            );
            let found = keys.check(&[]).await;
            let is_told = found.iter().any(|its| {
                its.severity == Severity::Error && its.message.contains("in the store, and leased")
            });
            assert!(is_told, "{found:?}");
            let ask = assigning(keys.clone(), &fleet.server, "shop", false).await?;
            assert!(ask.run().await.is_err());
            let source = keys.source(&KeySpec::Snowflake)?;
            let told = source.take(1, true).await.unwrap_err().to_string();
            assert!(told.contains("in this configuration"), "{told}");
        }
        // Who says the same leases within its range.
        let keys = fleet.keys()?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        assert_eq!(keys.worker_id(), Some(0));
        for (leased, assigned, why) in [
            ("5-9", "0-1023", "programs have leased it"),
            ("0-255", "700-800", "must stay in assigned_worker_ids"),
            ("0-255", "", "must stay in assigned_worker_ids"),
        ] {
            let refused = open_with(&fleet.schema.raw(), &ranges(leased, assigned));
            let Ok(keys) = refused else { continue };
            let told = keys.record_worker_ids(true).await.unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
        let wider = with("1-200", "400-1023")?;
        wider.record_worker_ids(true).await?;
        assert!(
            fleet.assign("shop").await?.is_err(),
            "the old ranges are not in force"
        );
        let ask = assigning(wider, &fleet.server, "shop", false).await?;
        assert_eq!(ask.run().await?.worker_id, number);
        Ok(())
    })
}

fn after_a_restore_nothing_is_given_until_somebody_says_what_was(engine: Engine) -> Result<()> {
    let fleet = Fleet::new(engine, "kw_assign_restored", "512-1023")?;
    for name in ["old", "lost", "new"] {
        fleet.create(name)?;
    }
    let log = IssuedLog::default();
    runtime()?.block_on(async {
        for (name, number) in [("old", 512), ("lost", 513)] {
            assert_eq!(fleet.assign(name).await??.worker_id, number);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    // As a backup from before knows it.
    fleet
        .schema
        .sql("DELETE FROM keywright_assigned WHERE worker_id = 513")?;
    let back = format!(
        "UPDATE keywright_assigned SET mark = '0.{:032x}', asks = 0",
        7
    );
    fleet.schema.sql(&back)?;
    fleet
        .schema
        .sql("UPDATE keywright_worker_ids SET next_id = 513")?;
    for name in ["old", "lost"] {
        draw(&fleet.server, name, &log)?;
    }
    runtime()?.block_on(async {
        let told = fleet
            .assign("lost")
            .await?
            .expect_err("the store does not know it");
        assert!(
            told.to_string().contains("restored from a backup"),
            "{told}"
        );
        fleet
            .keys()?
            .restored(Duration::from_secs(3600), BTreeMap::new())
            .await?;
        let told = fleet.assign("new").await?.expect_err("513 may be given");
        assert!(
            told.hint()
                .is_some_and(|hint| hint.contains("worker advance")),
            "{told}"
        );
        assert_eq!(fleet.keys()?.advance_worker_ids(513).await?, 514);
        for (name, number) in [("new", 514), ("old", 512), ("lost", 513), ("old", 512)] {
            assert_eq!(fleet.assign(name).await??.worker_id, number, "{name}");
        }
        Ok::<_, anyhow::Error>(())
    })?;
    for name in ["old", "lost", "new"] {
        draw(&fleet.server, name, &log)?;
    }
    Ok(())
}
