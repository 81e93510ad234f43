//! Who a database is, changed in transactions that commit, roll back, are prepared, or are cut off: an identity that is not
//! committed issues nothing, but for the first that a database ever has.

#[path = "../common/mod.rs"]
mod common;
mod dropped;
mod given_up;
mod refused;

use common::expect_cause;
use keywright_core::Preset;
use keywright_core::cause::Cause;
use keywright_testkit::{
    IdLog, Load, PgServer, Result, Stop, WAIT_MAX, draw, query_i64, query_text, wait_until,
};
use postgres::Client;
use std::sync::Arc;

/// Twitter's bits with the zero time 25 s earlier: it comes to the same ids 25 s before twitter does.
const EARLIER: &str = "time=41,datacenter=5,worker=5,sequence=12,epoch=1288834949657";
const SNOWFLAKE: &str = "SELECT snowflake_id() FROM generate_series(1, 400)";
const ONE: &str = "SELECT snowflake_id()";

fn server() -> Result<PgServer> {
    PgServer::builder()
        .setting("max_prepared_transactions", "10")
        .start()
}

fn set_up(server: &PgServer, worker_id: u32) -> Result<Client> {
    let mut client = server.client("postgres")?;
    client.batch_execute(&format!(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id({worker_id}); \
         SELECT keywright.create_tag('orders', step => 10, step_max => 10)"
    ))?;
    Ok(client)
}

#[track_caller]
fn refused(client: &mut Client, query: &str, part: &str) {
    let taken = query_i64(client, query);
    let error = expect_cause(taken, Cause::IdentityUncommitted, part);
    assert!(error.hint.contains("COMMIT"), "{error:?}");
}

/// Every way to change an identity, with what the refusal names.
const CHANGES: [(&str, &str); 4] = [
    (
        "SELECT keywright.set_layout('time=41,datacenter=5,worker=5,sequence=12,epoch=1288834949657')",
        "the layout",
    ),
    ("SELECT keywright.set_worker_id(7)", "the worker id"),
    (
        "DROP EXTENSION keywright CASCADE; CREATE EXTENSION keywright",
        "the extension",
    ),
    (
        "DROP EXTENSION keywright CASCADE; CREATE EXTENSION keywright; SELECT keywright.set_worker_id(7)",
        "the extension",
    ),
];

#[test]
fn changed_identity_issues_nothing_before_its_commit() -> Result<()> {
    let server = server()?;
    let mut client = set_up(&server, 1)?;
    let mut other = server.client("postgres")?;
    let (log, tags) = (IdLog::new(), IdLog::new());
    let tag = "SELECT next_biz_id('orders') FROM generate_series(1, 30)";
    for ending in [
        "ROLLBACK",
        "ROLLBACK TO before; RELEASE before; COMMIT",
        "PREPARE TRANSACTION 'x'; ROLLBACK PREPARED 'x'",
    ] {
        for (change, part) in CHANGES {
            draw(&mut client, SNOWFLAKE, &log)?;
            draw(&mut client, tag, &tags)?;
            client.batch_execute(&format!("BEGIN; SAVEPOINT before; {change}; SAVEPOINT a"))?;
            refused(&mut client, ONE, part);
            client.batch_execute("ROLLBACK TO a")?;
            let stopped =
                "SELECT count(*) FROM keywright.stats WHERE kind = 'snowflake' AND suspended";
            assert_eq!(query_i64(&mut client, stopped)?, 1, "{change}");
            if change.contains("DROP EXTENSION") {
                client.batch_execute("SELECT keywright.create_tag('orders'); SAVEPOINT a")?;
                refused(&mut client, "SELECT next_biz_id('orders')", "the extension");
                client.batch_execute(
                    "ROLLBACK TO a; SELECT keywright.set_worker_id(7); SAVEPOINT a",
                )?;
                refused(&mut client, ONE, "the extension");
                client.batch_execute("ROLLBACK TO a")?;
            }
            for statement in ending.split("; ") {
                client.batch_execute(statement)?;
            }
            for session in [&mut client, &mut other] {
                draw(session, SNOWFLAKE, &log)?;
                draw(session, tag, &tags)?;
            }
        }
    }
    log.check()?;
    tags.check()?;
    assert_eq!(
        query_text(
            &mut client,
            "SELECT layout FROM keywright.stats WHERE kind = 'snowflake'"
        )?,
        "twitter"
    );
    Ok(())
}

/// The numbers that the layout of a rolled back transaction would have reached 25 s earlier.
#[test]
fn rolled_back_layout_leaves_no_numbers_behind() -> Result<()> {
    let server = server()?;
    let mut client = set_up(&server, 1)?;
    let log = IdLog::new();
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute(&format!("BEGIN; SELECT keywright.set_layout('{EARLIER}')"))?;
    refused(&mut client, ONE, "the layout");
    client.batch_execute("ROLLBACK")?;
    let mut fresh = server.client("postgres")?;
    draw(&mut fresh, SNOWFLAKE, &log)?;
    // Committed, the new layout's ids are greater than all before them, for a session that knew the old one too.
    client.batch_execute(&format!("SELECT keywright.set_layout('{EARLIER}')"))?;
    draw(&mut fresh, SNOWFLAKE, &log)?;
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// A server that ends before the commit brings the old identity back.
#[test]
fn identity_cut_off_before_its_commit_has_issued_nothing() -> Result<()> {
    let mut server = server()?;
    drop(set_up(&server, 1)?);
    let log = IdLog::new();
    for (change, part) in CHANGES {
        let mut client = server.client("postgres")?;
        draw(&mut client, SNOWFLAKE, &log)?;
        client.batch_execute(&format!("BEGIN; {change}"))?;
        refused(&mut client, ONE, part);
        server.restart(Stop::Immediate)?;
        draw(&mut server.client("postgres")?, SNOWFLAKE, &log)?;
    }
    log.check()?;
    Ok(())
}

/// An identity that is prepared is nobody's until it is committed, from whichever session.
#[test]
fn prepared_identity_comes_into_force_with_its_commit() -> Result<()> {
    let mut server = server()?;
    let mut client = set_up(&server, 1)?;
    let log = IdLog::new();
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute("BEGIN; SELECT keywright.set_worker_id(9)")?;
    refused(&mut client, ONE, "the worker id");
    client.batch_execute("ROLLBACK; BEGIN; SELECT keywright.set_worker_id(9)")?;
    client.batch_execute("PREPARE TRANSACTION 'nine'")?;
    server.restart(Stop::Immediate)?;
    let mut client = server.client("postgres")?;
    let worker = "SELECT snowflake_worker(snowflake_id())::bigint";
    assert_eq!(
        query_i64(&mut client, worker).ok(),
        None,
        "the bound is held"
    );
    client.batch_execute("COMMIT PREPARED 'nine'")?;
    assert_eq!(query_i64(&mut client, worker)?, 9);
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// The first identity may be used in the transaction that sets it, and changed there; what it issued stays in memory.
#[test]
fn first_identity_issues_before_its_commit() -> Result<()> {
    const FIRST: &str = "BEGIN; CREATE EXTENSION keywright; SELECT keywright.set_worker_id(3)";
    let mut server = server()?;
    let mut client = server.client("postgres")?;
    let log = IdLog::new();
    for _ in 0..3 {
        client.batch_execute(FIRST)?;
        draw(&mut client, SNOWFLAKE, &log)?;
        client.batch_execute("SAVEPOINT a; SELECT keywright.set_worker_id(4)")?;
        draw(&mut client, SNOWFLAKE, &log)?;
        client.batch_execute("ROLLBACK TO a")?;
        draw(&mut client, SNOWFLAKE, &log)?;
        client.batch_execute("ROLLBACK")?;
        client.batch_execute(
            "BEGIN; CREATE EXTENSION keywright; SELECT keywright.set_worker_id(5)",
        )?;
        draw(&mut client, SNOWFLAKE, &log)?;
        client.batch_execute("ROLLBACK")?;
    }
    client.batch_execute("BEGIN; CREATE EXTENSION keywright; SELECT keywright.set_worker_id(5)")?;
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute("COMMIT")?;
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    // From here on there is something to go back to.
    client.batch_execute("BEGIN; SELECT keywright.set_worker_id(6)")?;
    refused(&mut client, ONE, "the worker id");
    client.batch_execute("ROLLBACK")?;
    server.restart(Stop::Immediate)?;
    draw(&mut server.client("postgres")?, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// The first layout may change, too, but then the numbers of the other one are out of reach until the clock passes them.
#[test]
fn first_layout_issues_before_its_commit() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    let log = IdLog::new();
    client.batch_execute("BEGIN; CREATE EXTENSION keywright; SELECT keywright.set_worker_id(3)")?;
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute(&format!(
        "SAVEPOINT a; SELECT keywright.set_layout('{EARLIER}')"
    ))?;
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute("ROLLBACK TO a; SAVEPOINT a")?;
    let back = query_i64(&mut client, ONE);
    expect_cause(back, Cause::LayoutOverlap, "could repeat ids");
    client.batch_execute("ROLLBACK; CREATE EXTENSION keywright")?;
    let again = client.batch_execute("SELECT keywright.set_worker_id(3)");
    expect_cause(again, Cause::LayoutOverlap, "could repeat ids");
    client.batch_execute(&format!(
        "SELECT keywright.set_layout('{EARLIER}'); SELECT keywright.set_worker_id(3)"
    ))?;
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// Under load, with a crash: a layout whose numbers come sooner is set and taken back, in transactions that end either way.
#[test]
fn identities_roll_back_under_load() -> Result<()> {
    let mut server = PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .setting("max_prepared_transactions", "10")
        .start()?;
    let mut client = set_up(&server, 1)?;
    let log = Arc::new(IdLog::new());
    for _ in 0..2 {
        let load = Load::start(&server.config("postgres", "postgres"), 4, SNOWFLAKE, &log);
        for (change, part) in CHANGES {
            load.wait_for(5_000)?;
            client.batch_execute(&format!("BEGIN; {change}"))?;
            refused(&mut client, ONE, part);
            client.batch_execute("ROLLBACK")?;
        }
        load.wait_for(5_000)?;
        server.kill9()?;
        load.stop()?;
        server.start()?;
        client = server.client("postgres")?;
    }
    let mut client = server.client("postgres")?;
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    let twitter = Preset::Twitter.layout().to_string();
    assert_eq!(
        query_text(
            &mut client,
            "SELECT layout FROM keywright.stats WHERE kind = 'snowflake'"
        )?,
        twitter
    );
    wait_until("no session in a gate", WAIT_MAX, || {
        Ok(query_i64(&mut client, ONE).is_ok())
    })
}
