//! Rests of ranges: handed back at a clean stop, used first afterwards, never twice.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Cause, Step};
use keywright_store::{RawStoreSettings, TagOptions};
use keywright_testkit::{Login, Result, WAIT_MAX, Wire};

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag, take_many,
    until_polled,
};

on_engines!(
    rests_are_used_first_and_once,
    a_tag_at_its_end_goes_on_with_what_others_hand_back,
    rests_of_another_server_are_thrown_away,
    rests_of_a_server_do_not_come_back_with_it,
    without_a_clean_stop_the_rest_is_lost_and_nothing_else,
);

fn rests_are_used_first_and_once(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_returned")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let first = open(&schema.raw())?;
        first.init().await?;
        first
            .create_tag(&tag("orders"), &small_steps(1_000))
            .await?;
        let source = first.source(&segment("orders"))?;
        log.add_all("first", &source.take(30, true).await?);
        first.hand_back().await;
        let stopped = source.take(1, true).await.unwrap_err();
        assert_eq!(stopped.cause(), Cause::Draining);
        assert!(source.try_take(1, true).is_err());
        let rests = schema.number("SELECT SUM(end_id - start_id) FROM keywright_returned")?;
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        assert_eq!(
            rests,
            hi - 31,
            "all that was reserved and not issued is back"
        );

        // Two start at once; the rest is had by one of them, everything that was handed back is issued.
        let (second, third) = (open(&schema.raw())?, open(&schema.raw())?);
        let (two, three) = (
            second.source(&segment("orders"))?,
            third.source(&segment("orders"))?,
        );
        for _ in 0..200 {
            log.add_all("second", &two.take(3, true).await?);
            log.add_all("third", &three.take(3, true).await?);
        }
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        assert_eq!(log.min(), 1);
        for id in 1..100 {
            assert!(
                log.contains(id),
                "id {id} was lost although it was handed back"
            );
        }
        Ok(())
    })
}

/// Somebody else's transaction and the program's wait for each other, and the server undoes the program's.
#[test]
fn a_deadlock_at_the_stop_loses_no_rests() -> Result<()> {
    let schema = Arc::new(Schema::of(Engine::MariaDb, "kw_returned_deadlock")?);
    schema.sql("CREATE TABLE filler (a INT)")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["a", "b"] {
            keys.create_tag(&tag(name), &small_steps(1_000)).await?;
            keys.source(&segment(name))?.take(1, true).await?;
        }
        let deadlocks = "SELECT variable_value FROM information_schema.global_status \
                         WHERE variable_name = 'Innodb_deadlocks'";
        let before = schema.number(deadlocks)?;
        let database = Arc::clone(&schema);
        let other = tokio::task::spawn_blocking(move || {
            let mut wire = Wire::connect_tcp(database.port(), &Login::root(&database.name))?;
            // The server undoes the one that has written less.
            wire.run("BEGIN; INSERT INTO filler SELECT seq FROM seq_1_to_1000")?;
            wire.run("UPDATE keywright_segment SET description = 'x' WHERE tag = 'b'")?;
            Ok::<_, anyhow::Error>(wire)
        });
        let mut wire = other.await??;
        let stopping = tokio::spawn(async move { keys.hand_back().await });
        until_polled(Duration::from_millis(250), "the program to wait", || {
            let waits = "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN information_schema.processlist \
                         ON id = trx_mysql_thread_id WHERE db = 'kw_returned_deadlock' AND trx_state = 'LOCK WAIT'";
            schema.number(waits).is_ok_and(|waiting| waiting > 0)
        })
        .await;
        let ended = tokio::task::spawn_blocking(move || {
            wire.run("UPDATE keywright_segment SET description = 'x' WHERE tag = 'a'")?;
            wire.run("COMMIT")
        });
        ended.await??;
        stopping.await?;
        assert!(schema.number(deadlocks)? > before, "there was none");
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 2);
        Ok(())
    })
}

/// A row that somebody holds takes longer than the store may. The rests of other tags, in other transactions, come back all the same.
#[test]
fn rests_of_many_tags_are_not_lost_by_one_that_cannot_be_handed_back() -> Result<()> {
    const TAGS: usize = 250;
    let schema = Arc::new(Schema::of(Engine::MariaDb, "kw_returned_many")?);
    runtime()?.block_on(async {
        let owner = open(&schema.raw())?;
        owner.init().await?;
        let keys = open(&RawStoreSettings {
            store_ms_max: 2_000,
            ..schema.raw()
        })?;
        for number in 0..TAGS {
            let name = format!("t{number:03}");
            owner.create_tag(&tag(&name), &small_steps(1_000)).await?;
            keys.source(&segment(&name))?.take(1, true).await?;
        }
        let database = Arc::clone(&schema);
        let holding = tokio::task::spawn_blocking(move || {
            let mut wire = Wire::connect_tcp(database.port(), &Login::root(&database.name))?;
            // Its part is the first that is handed back.
            wire.run("BEGIN")?;
            wire.run("UPDATE keywright_segment SET description = 'x' WHERE tag = 't249'")?;
            Ok::<_, anyhow::Error>(wire)
        });
        let mut wire = holding.await??;
        keys.hand_back().await;
        tokio::task::spawn_blocking(move || wire.run("ROLLBACK")).await??;
        let back = schema.sql("SELECT tag FROM keywright_returned ORDER BY tag")?;
        let back: Vec<String> = back.into_iter().flatten().collect();
        let expected: Vec<String> = (0..150).map(|number| format!("t{number:03}")).collect();
        assert_eq!(back, expected);
        Ok(())
    })
}

/// Whoever edits a row by hand may leave something there that is no number of a tag's.
#[test]
fn a_row_that_cannot_be_read_loses_its_own_rest_only() -> Result<()> {
    let schema = Schema::of(Engine::File, "kw_returned_unreadable")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["a", "b", "c"] {
            keys.create_tag(&tag(name), &small_steps(1_000)).await?;
            keys.source(&segment(name))?.take(1, true).await?;
        }
        schema.sql("UPDATE keywright_segment SET generation = -1 WHERE tag = 'b'")?;
        keys.hand_back().await;
        let back = schema.sql("SELECT tag FROM keywright_returned ORDER BY tag")?;
        assert_eq!(back, [["a"], ["c"]]);
        Ok(())
    })
}

/// At a tag's end the rests are all there is.
fn a_tag_at_its_end_goes_on_with_what_others_hand_back(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_returned_end")?;
    runtime()?.block_on(async {
        let stays = open(&schema.raw())?;
        stays.init().await?;
        let options = TagOptions {
            id_max: 150,
            ..TagOptions::with_step(Step::new(1_000)?)
        };
        stays.create_tag(&tag("short"), &options).await?;
        let source = stays.source(&segment("short"))?;
        // The first reservation is of a tenth of the step, and the other's of what is left.
        assert_eq!(source.take(1, true).await?.number(0), Some(1));
        let goes = open(&schema.raw())?;
        let taken = goes.source(&segment("short"))?.take(1, true).await?;
        assert_eq!(taken.number(0), Some(101));
        source.take(99, true).await?;
        let failure = source.take(1, true).await.unwrap_err();
        assert_eq!(failure.cause(), Cause::TagExhausted, "{failure}");
        goes.hand_back().await;
        let asked = async {
            loop {
                if let Ok(taken) = source.take(1, true).await {
                    break taken;
                }
                tokio::task::yield_now().await;
            }
        };
        let taken = tokio::time::timeout(WAIT_MAX, asked).await?;
        assert_eq!(taken.number(0), Some(102));
        assert_eq!(source.take(48, true).await?.number(47), Some(150));
        Ok(())
    })
}

fn rests_of_another_server_are_thrown_away(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_returned_elsewhere")?;
    runtime()?.block_on(async {
        let first = open(&schema.raw())?;
        first.init().await?;
        first.create_tag(&tag("orders"), &small_steps(1_000)).await?;
        let taken = first.source(&segment("orders"))?.take(30, true).await?;
        assert_eq!(taken.number(0), Some(1));
        first.hand_back().await;
        let hi = schema.number("SELECT hi FROM keywright_segment")?;
        // As a promoted replica finds it: written elsewhere.
        schema.sql("UPDATE keywright_returned SET server = 'elsewhere'; UPDATE keywright_segment SET server = 'elsewhere'")?;
        let second = open(&schema.raw())?;
        let taken = second.source(&segment("orders"))?.take(1, true).await?;
        assert!(taken.number(0).unwrap() > hi, "a gap is left out after another server");
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        Ok(())
    })
}

/// A fails over to B while somebody is at work who does not look for rests any more, and A comes back as a copy of B. What
/// B had of A's rests may have been used on A meanwhile, and on A nothing would tell.
fn rests_of_a_server_do_not_come_back_with_it(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_returned_back")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let first = open(&schema.raw())?;
        first.init().await?;
        first.create_tag(&tag("orders"), &small_steps(100)).await?;
        let at_work = open(&schema.raw())?;
        let working = at_work.source(&segment("orders"))?;
        log.add_all("at work", &working.take(1, true).await?);
        log.add_all(
            "first",
            &first.source(&segment("orders"))?.take(1, true).await?,
        );
        first.hand_back().await;
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 1);
        // As B finds everything; "here" is B's name now.
        schema.sql(
            "UPDATE keywright_returned SET server = 'A'; UPDATE keywright_segment SET server = 'A'",
        )?;
        take_many(working, log, "at work".to_owned(), 30).await;
        assert_eq!(
            schema.number("SELECT COUNT(*) FROM keywright_segment WHERE server = 'A'")?,
            0
        );
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        Ok(())
    })
}

/// Tables of other systems do not say which server wrote a number.
#[test]
fn rests_of_a_server_do_not_come_back_with_it_in_other_tables() -> Result<()> {
    let schema = Schema::new("kw_returned_back_leaf")?;
    runtime()?.block_on(async {
        schema.sql(
            "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL, \
             step INT NOT NULL); INSERT INTO leaf_alloc VALUES ('orders', 1, 100)",
        )?;
        let settings = RawStoreSettings {
            dialect: "leaf".to_owned(),
            step_max: 100,
            ..schema.raw()
        };
        let keys = open(&settings)?;
        keys.init().await?;
        let source = keys.source(&segment("orders"))?;
        source.take(1, true).await?;
        schema.sql(
            "INSERT INTO keywright_returned (segment_table, tag, start_id, end_id, server) VALUES \
             ('leaf_alloc', 'orders', 900000, 900010, 'A'), ('leaf_alloc', 'others', 1, 10, 'A')",
        )?;
        take_many(source, IssuedLog::default(), "leaf".to_owned(), 30).await;
        let left = schema.sql("SELECT tag FROM keywright_returned")?;
        assert_eq!(left, [["others"]]);
        Ok(())
    })
}

/// Stopped hard instead: what was reserved is a gap.
fn without_a_clean_stop_the_rest_is_lost_and_nothing_else(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_returned_not")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        open(&schema.raw())?.init().await?;
        open(&schema.raw())?
            .create_tag(&tag("orders"), &small_steps(100))
            .await?;
        for life in 0..10 {
            let keys = open(&schema.raw())?;
            let source = keys.source(&segment("orders"))?;
            for _ in 0..7 {
                log.add_all(&format!("life {life}"), &source.take(5, true).await?);
            }
        }
        assert_eq!(log.len(), 350);
        Ok(())
    })
}
