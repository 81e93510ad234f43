//! What is left of an identity that is dropped: nobody comes to its ids again, and who never had one begins now.

use std::sync::mpsc;

use keywright_core::cause::Cause;
use keywright_testkit::{IdLog, PgServer, Result, Stop, WAIT_MAX, query_i64};
use postgres::{Client, NoTls};

use crate::common::{database, expect_cause};
use crate::{ONE, SNOWFLAKE, draw, server, set_up};

/// A session, and the messages that are no errors.
fn noticing(server: &PgServer) -> Result<(mpsc::Receiver<String>, Client)> {
    let (send, notices) = mpsc::channel();
    let mut config = server.config("postgres", "postgres");
    config.notice_callback(move |notice| {
        // Nobody may be listening any more.
        let _ = send.send(notice.message().to_owned());
    });
    Ok((notices, config.connect(NoTls)?))
}

/// What only the sequence knew is noted before it is dropped: the next extension of the database, or whoever gets the worker
/// id, goes on above it with any clock.
#[test]
fn dropped_extension_leaves_its_bound_behind() -> Result<()> {
    for restart in [false, true] {
        let mut server = PgServer::builder().fake_clock().start()?;
        let log = IdLog::new();
        let mut client = set_up(&server, 5)?;
        draw(
            &mut client,
            "SELECT snowflake_id() FROM generate_series(1, 30000)",
            &log,
        )?;
        if restart {
            server.restart(Stop::Immediate)?;
            client = server.client("postgres")?;
        }
        client.batch_execute("DROP EXTENSION keywright")?;
        server.restart(Stop::Immediate)?;
        server.clock()?.step_to(-3600)?;
        let mut client = server.client("postgres")?;
        client.batch_execute("CREATE EXTENSION keywright")?;
        draw(&mut client, SNOWFLAKE, &log)?;
        client.batch_execute("SELECT keywright.set_worker_id(6)")?;
        client.batch_execute("CREATE DATABASE two")?;
        let mut two = server.client("two")?;
        two.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(5)")?;
        draw(&mut two, SNOWFLAKE, &log)?;
        log.check()?;
    }
    Ok(())
}

/// Without extension and label a database has given its number up, and whoever gets it goes on above all that the first issued, with any clock. With one
/// of both it has not: an extension that is made anew has the number by the label.
#[test]
fn a_number_that_a_database_gave_up_is_free() -> Result<()> {
    const SET: &str = "SELECT keywright.set_worker_id(5)";
    const UNLABEL: &str = "SECURITY LABEL FOR keywright ON DATABASE one IS NULL";
    let mut server = PgServer::builder().fake_clock().start()?;
    let log = IdLog::new();
    let mut one = database(&server, "one", SET)?;
    let mut two = database(&server, "two", "SELECT keywright.set_worker_id(6)")?;
    let belongs = |two: &mut Client| {
        let message = "worker id 5 belongs to database \"one\"";
        let error = expect_cause(two.batch_execute(SET), Cause::WorkerIdInUse, message);
        assert!(
            error.hint.contains("ON DATABASE \"one\" IS NULL"),
            "{error:?}"
        );
    };
    draw(&mut one, SNOWFLAKE, &log)?;
    one.batch_execute("DROP EXTENSION keywright")?;
    belongs(&mut two);
    one.batch_execute("CREATE EXTENSION keywright")?;
    draw(&mut one, SNOWFLAKE, &log)?;
    two.batch_execute(UNLABEL)?;
    belongs(&mut two);
    drop(one);
    drop(two);
    server.restart(Stop::Immediate)?;
    let mut one = server.client("one")?;
    belongs(&mut server.client("two")?);
    one.batch_execute("DROP EXTENSION keywright")?;
    drop(one);
    server.restart(Stop::Immediate)?;
    server.clock()?.step_to(-3600)?;
    let mut two = server.client("two")?;
    two.batch_execute(SET)?;
    draw(&mut two, SNOWFLAKE, &log)?;
    log.check()?;
    let mut one = server.client("one")?;
    one.batch_execute("CREATE EXTENSION keywright")?;
    expect_cause(one.batch_execute(ONE), Cause::WorkerIdUnset, "no worker id");
    let message = "worker id 5 belongs to database \"two\"";
    expect_cause(one.batch_execute(SET), Cause::WorkerIdInUse, message);
    Ok(())
}

/// Again and again, the lead over the clock stays what a burst may have.
#[test]
fn dropping_and_creating_does_not_run_ahead_of_the_clock() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    let log = IdLog::new();
    client.batch_execute("CREATE EXTENSION keywright")?;
    client.batch_execute("SELECT keywright.set_worker_id(1)")?;
    for _ in 0..20 {
        draw(&mut client, SNOWFLAKE, &log)?;
        client.batch_execute("DROP EXTENSION keywright")?;
        client.batch_execute("CREATE EXTENSION keywright")?;
    }
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    let lead_ms = "SELECT lead_ms FROM keywright.stats WHERE kind = 'snowflake'";
    let lead_ms = query_i64(&mut client, lead_ms)?;
    assert!(lead_ms <= 11_000, "{lead_ms} ms ahead");
    Ok(())
}

/// A drop that is rolled back says nothing of how many ids a tag needs.
#[test]
fn a_drop_that_is_rolled_back_leaves_the_step_of_a_tag() -> Result<()> {
    const STEP: &str = "SELECT step FROM keywright.stats WHERE tag = 'orders'";
    const LEFT: &str = "SELECT remaining FROM keywright.stats WHERE tag = 'orders'";
    const REFILLS: &str = "SELECT refills FROM keywright.stats WHERE tag = 'orders'";
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 100);
         SELECT next_biz_ids('orders', 300); SELECT next_biz_ids('orders', 150)",
    )?;
    let before = query_i64(&mut client, STEP)?;
    let refills = query_i64(&mut client, REFILLS)?;
    for _ in 0..5 {
        // It empties the word, and the next reservation asks how long the last one lasted.
        client.batch_execute("BEGIN; DROP EXTENSION keywright; ROLLBACK")?;
        client.batch_execute("SELECT next_biz_id('orders')")?;
    }
    assert!(query_i64(&mut client, REFILLS)? >= refills + 5);
    assert_eq!(query_i64(&mut client, STEP)?, before);
    // This one leaves all that is reserved: what is used of it then says how many ids are needed.
    let left = query_i64(&mut client, LEFT)?;
    client.batch_execute("BEGIN; SELECT keywright.drop_tag('orders'); ROLLBACK")?;
    client.batch_execute("SELECT next_biz_id('orders')")?;
    assert_eq!(query_i64(&mut client, LEFT)?, left - 1);
    assert_eq!(query_i64(&mut client, STEP)?, before);
    Ok(())
}

/// A number that was never used needs no safety distance: the first id is of now.
#[test]
fn unused_worker_id_starts_now() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    client.batch_execute("SELECT keywright.set_worker_id(8, unused => true)")?;
    let ahead_ms = "SELECT (extract(epoch FROM snowflake_timestamp(snowflake_id()) - clock_timestamp()) * 1000)::bigint";
    let first = query_i64(&mut client, ahead_ms)?;
    assert!(first.abs() < 1_000, "{first} ms ahead");
    client.batch_execute("SELECT keywright.set_worker_id(9)")?;
    let both =
        client.batch_execute("SELECT keywright.set_worker_id(10, above => now(), unused => true)");
    expect_cause(both, Cause::ArgumentOutOfRange, "never used");
    let used = client.batch_execute("SELECT keywright.set_worker_id(8, unused => true)");
    expect_cause(used, Cause::WorkerIdInUse, "was used");
    client.batch_execute("SELECT keywright.set_worker_id(8)")?;
    query_i64(&mut client, ONE)?;
    // What the database has already is not taken anew, and that is said.
    let (notices, mut client) = noticing(&server)?;
    for again in [
        "SELECT keywright.set_worker_id(8, unused => true)",
        "SELECT keywright.set_readable_bucket(8, unused => true)",
    ] {
        client.batch_execute(again)?;
        let notice = notices.recv_timeout(WAIT_MAX)?;
        assert!(
            notice.contains("8 is this database's already"),
            "{again}: {notice}"
        );
    }
    Ok(())
}
