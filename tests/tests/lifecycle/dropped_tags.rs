//! Tags that are dropped and made again, while others issue.

use std::sync::Arc;

use keywright_testkit::{
    IdLog, Load, PgServer, Result, WAIT_MAX, draw, expect_sql_error, query_i64, wait_until,
};

use super::{TAG, report, server, set_up};

#[test]
fn dropped_tag_goes_on_above_what_it_issued() -> Result<()> {
    let mut server = server()?;
    let log = Arc::new(IdLog::new());
    set_up(&mut server.client("postgres")?, 1)?;
    for _ in 0..4 {
        let mut client = server.client("postgres")?;
        let load = Load::start(&server.config("postgres", "postgres"), 4, TAG, &log);
        load.wait_for(2_000)?;
        client.batch_execute("SELECT keywright.drop_tag('orders')")?;
        wait_until("sessions that find no tag", WAIT_MAX, || {
            Ok(load.refusals().contains_key("42704"))
        })?;
        let low = client.batch_execute("SELECT keywright.create_tag('orders', start => 1)");
        expect_sql_error(low, "42710", "was dropped after issuing ids up to");
        client
            .batch_execute("SELECT keywright.create_tag('orders', step => 50, step_max => 50)")?;
        load.wait_for(2_000)?;
        server.kill9()?;
        assert_eq!(load.stop()?.len(), 1, "only that there was no tag");
        server.start()?;
    }
    report("dropped tags", &log)?;
    let (mut client, mut other) = (server.client("postgres")?, server.client("postgres")?);
    draw(&mut other, TAG, &log)?;
    client.batch_execute(
        "SELECT keywright.drop_tag('orders'); \
         SELECT keywright.create_tag('orders', start => 7, forget_issued => true)",
    )?;
    assert_eq!(query_i64(&mut other, "SELECT next_biz_id('orders')")?, 7);
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('orders')")?, 8);
    server.kill9()?;
    server.start()?;
    assert!(
        query_i64(
            &mut server.client("postgres")?,
            "SELECT next_biz_id('orders')"
        )? > 8
    );
    Ok(())
}

/// Somebody says that its ids may come again: who drew of it before, in a transaction that is still open, goes on with none of them.
#[test]
fn a_tag_that_begins_anew_is_not_issued_by_who_drew_of_the_old() -> Result<()> {
    let server = server()?;
    let mut manager = server.client("postgres")?;
    set_up(&mut manager, 1)?;
    manager.batch_execute("SET lock_timeout = '20s'")?;
    let drop = "SELECT keywright.drop_tag('orders')";
    let create = "SELECT keywright.create_tag('orders', step => 100, forget_issued => true)";
    let extension = "DROP EXTENSION keywright; CREATE EXTENSION keywright";
    for anew in [
        &[drop, create][..],
        &["BEGIN", drop, create, "COMMIT"],
        &[extension, create],
    ] {
        let mut open = server.client("postgres")?;
        let next = "SELECT next_biz_id('orders')";
        // Whoever looks a tag up in his transaction keeps its table from being dropped.
        query_i64(&mut open, next)?;
        open.batch_execute("BEGIN")?;
        let before = query_i64(&mut open, next)?;
        for statement in anew {
            manager.batch_execute(statement)?;
        }
        let mut ids: Vec<i64> = Vec::new();
        for _ in 0..3 {
            ids.push(query_i64(&mut manager, next)?);
        }
        assert_eq!(ids, [1, 2, 3], "it began at {before} before");
        ids.extend(query_i64(&mut open, next).ok());
        for _ in 0..150 {
            ids.push(query_i64(&mut manager, next)?);
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{anew:?}: an id came twice");
    }
    Ok(())
}

/// Nor by who is in a transaction and has drawn of it there; once the drop has committed, and not before.
#[test]
fn a_dropped_tag_is_issued_by_nobody() -> Result<()> {
    const DROP: &str = "SELECT keywright.drop_tag('orders')";
    const NEXT: &str = "SELECT next_biz_id('orders')";
    let server = PgServer::builder()
        .setting("max_prepared_transactions", "1")
        .start()?;
    let mut manager = server.client("postgres")?;
    set_up(&mut manager, 1)?;
    let prepared = format!("BEGIN; {DROP}; PREPARE TRANSACTION 'drop'");
    let in_part = format!("BEGIN; SAVEPOINT part; {DROP}; RELEASE part");
    for begin in ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"] {
        for (drop, commit) in [
            (DROP, ""),
            (&*in_part, "COMMIT"),
            (&*prepared, "COMMIT PREPARED 'drop'"),
        ] {
            let mut open = server.client("postgres")?;
            open.batch_execute(begin)?;
            let mut before = query_i64(&mut open, NEXT)?;
            for undone in [
                format!("BEGIN; {DROP}; ROLLBACK"),
                format!("BEGIN; SAVEPOINT part; {DROP}; ROLLBACK TO part; COMMIT"),
            ] {
                manager.batch_execute(&undone)?;
                let next = query_i64(&mut open, NEXT)?;
                assert_eq!(next, before + 1, "{begin}: {undone}");
                before = next;
            }
            manager.batch_execute(drop)?;
            if !commit.is_empty() {
                assert_eq!(query_i64(&mut open, NEXT)?, before + 1, "{begin}: {drop}");
                manager.batch_execute(commit)?;
            }
            let taken = query_i64(&mut open, NEXT);
            expect_sql_error(taken, "42704", "tag \"orders\" does not exist");
            open.batch_execute("ROLLBACK")?;
            manager.batch_execute(
                "SELECT keywright.create_tag('orders', step => 100, step_max => 100)",
            )?;
        }
    }
    // Made again before anybody has asked: whoever is in a transaction goes on, above.
    let mut open = server.client("postgres")?;
    open.batch_execute("BEGIN")?;
    let before = query_i64(&mut open, NEXT)?;
    manager.batch_execute(&format!(
        "{DROP}; SELECT keywright.create_tag('orders', step => 100, step_max => 100)"
    ))?;
    assert!(query_i64(&mut open, NEXT)? > before);
    Ok(())
}
