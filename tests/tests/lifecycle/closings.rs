//! A tag that a transaction changes or drops, while others close it, too, and fail: what has committed holds for everybody, whatever transaction he is in.

use keywright_testkit::{
    Pending, PgServer, Result, WAIT_MAX, expect_sql_error, query_i64, wait_until,
};
use postgres::Client;

const NEXT: &str = "SELECT next_biz_id('orders')";
const BEFORE: &str = "SELECT keywright.alter_tag('orders', increment => 3, remainder => 1)";
pub(super) const CHANGE: &str =
    "SELECT keywright.alter_tag('orders', increment => 4, remainder => 2)";
const ANOTHER: &str = "SELECT keywright.alter_tag('orders', increment => 5, remainder => 0)";
const DROP: &str = "SELECT keywright.drop_tag('orders')";
const DROP_DATABASE: &str = "DROP DATABASE two";
const AGAIN: &str = "SELECT keywright.create_tag('orders', step => 1000)";
const GONE: (&str, &str) = ("42704", "tag \"orders\" does not exist");

/// How often two sessions race.
const ROUNDS: usize = 50;

/// A server with tag `orders` in database `two`.
fn server() -> Result<PgServer> {
    let server = PgServer::builder().start()?;
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE two")?;
    server.client("two")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 1000)",
    )?;
    Ok(server)
}

/// A session in a transaction that has drawn of the tag, and has reserved nothing.
fn in_transaction(server: &PgServer) -> Result<Client> {
    let mut others = server.client("two")?;
    others.batch_execute(BEFORE)?;
    query_i64(&mut others, NEXT)?;
    let mut open = server.client("two")?;
    open.batch_execute("BEGIN")?;
    assert_eq!(query_i64(&mut open, NEXT)? % 3, 1);
    Ok(open)
}

/// Its database cannot be dropped: somebody is in it.
fn fail_to_drop_database(server: &PgServer) -> Result<()> {
    let dropped = server.client("postgres")?.batch_execute(DROP_DATABASE);
    expect_sql_error(dropped, "55006", "is being accessed by other users");
    Ok(())
}

/// The server has told of the drop, and waits some seconds for those who are in the database to leave.
pub(super) fn begin_to_drop_database(server: &PgServer) -> Result<Pending> {
    let dropping = Pending::start(server.client("postgres")?, DROP_DATABASE)?;
    let mut observer = server.client("postgres")?;
    // The register's lock: the server has told of the drop.
    wait_until("the drop", WAIT_MAX, || {
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
        Ok(query_i64(&mut observer, locks)? > 0)
    })?;
    Ok(dropping)
}

/// Of a change that has committed, once somebody else has reserved.
fn expect_changed(server: &PgServer, open: &mut Client, what: &str) -> Result<()> {
    assert_eq!(query_i64(&mut server.client("two")?, NEXT)? % 4, 2);
    for _ in 0..4 {
        assert_eq!(query_i64(open, NEXT)? % 4, 2, "{what}");
    }
    Ok(())
}

#[test]
fn a_change_outlasts_a_part_of_its_transaction_that_is_undone() -> Result<()> {
    let server = server()?;
    let mut changer = server.client("two")?;
    for part in [
        format!("{CHANGE}; SAVEPOINT part; {ANOTHER}; ROLLBACK TO part"),
        format!("{CHANGE}; SAVEPOINT part; {DROP}; ROLLBACK TO part"),
        format!("SAVEPOINT kept; {CHANGE}; RELEASE kept; SAVEPOINT part; {DROP}; ROLLBACK TO part"),
        format!("SAVEPOINT part; {ANOTHER}; ROLLBACK TO part; {CHANGE}"),
    ] {
        let mut open = in_transaction(&server)?;
        changer.batch_execute(&format!("BEGIN; {part}; COMMIT"))?;
        expect_changed(&server, &mut open, &part)?;
    }
    // Nobody has looked the tag up between the commit and what is undone.
    let mut open = in_transaction(&server)?;
    changer.batch_execute(CHANGE)?;
    changer.batch_execute(&format!("BEGIN; {DROP}; ROLLBACK"))?;
    expect_changed(&server, &mut open, "a later transaction")
}

/// Also for who looks the tag up while the change is open, and takes nothing: a tag that has no place in memory yet, or one of an earlier change that nobody
/// has met.
#[test]
fn a_change_holds_for_those_who_looked_the_tag_up_meanwhile() -> Result<()> {
    let server = server()?;
    let mut changer = server.client("two")?;
    for before in ["", BEFORE] {
        changer.batch_execute(before)?;
        changer.batch_execute("BEGIN")?;
        changer.batch_execute(CHANGE)?;
        let mut open = server.client("two")?;
        open.batch_execute("SET keywright.refill_wait_ms_max = 300; BEGIN; SAVEPOINT early")?;
        expect_sql_error(query_i64(&mut open, NEXT), "55P03", "tag \"orders\"");
        open.batch_execute("ROLLBACK TO early")?;
        changer.batch_execute("COMMIT")?;
        expect_changed(&server, &mut open, before)?;
    }
    Ok(())
}

/// The server tells of a DROP DATABASE before it looks who is there, and waits for those for seconds.
#[test]
fn a_change_outlasts_a_drop_of_the_database_that_fails() -> Result<()> {
    let server = server()?;
    let mut changer = server.client("two")?;
    let mut open = in_transaction(&server)?;
    changer.batch_execute("BEGIN")?;
    changer.batch_execute(CHANGE)?;
    fail_to_drop_database(&server)?;
    changer.batch_execute("COMMIT")?;
    expect_changed(&server, &mut open, "the change came first")?;
    drop(open);

    let mut open = in_transaction(&server)?;
    let dropping = begin_to_drop_database(&server)?;
    changer.batch_execute(CHANGE)?;
    let dropped = dropping.finish()?.outcome;
    expect_sql_error(dropped, "55006", "is being accessed by other users");
    expect_changed(&server, &mut open, "the drop came first")
}

#[test]
fn a_dropped_tag_is_issued_by_nobody_whatever_fails_meanwhile() -> Result<()> {
    let server = server()?;
    let mut manager = server.client("two")?;
    let mut open = in_transaction(&server)?;
    manager.batch_execute("BEGIN")?;
    manager.batch_execute(DROP)?;
    fail_to_drop_database(&server)?;
    query_i64(&mut open, NEXT)?;
    manager.batch_execute("COMMIT")?;
    expect_sql_error(query_i64(&mut open, NEXT), GONE.0, GONE.1);
    drop(open);

    // Looked up first while the drop is open, after a change that nobody has met.
    manager.batch_execute(AGAIN)?;
    drop(in_transaction(&server)?);
    manager.batch_execute(CHANGE)?;
    manager.batch_execute("BEGIN")?;
    manager.batch_execute(DROP)?;
    let mut open = server.client("two")?;
    open.batch_execute("BEGIN")?;
    assert_eq!(query_i64(&mut open, NEXT)? % 4, 2);
    manager.batch_execute("COMMIT")?;
    expect_sql_error(query_i64(&mut open, NEXT), GONE.0, GONE.1);
    Ok(())
}

/// It has no place in memory before.
#[test]
fn a_dropped_tag_whose_first_id_is_taken_meanwhile_is_issued_by_nobody() -> Result<()> {
    let server = server()?;
    let mut manager = server.client("two")?;
    manager.batch_execute("BEGIN")?;
    manager.batch_execute(DROP)?;
    let mut open = server.client("two")?;
    open.batch_execute("BEGIN")?;
    query_i64(&mut open, NEXT)?;
    manager.batch_execute("COMMIT")?;
    expect_sql_error(query_i64(&mut open, NEXT), GONE.0, GONE.1);
    Ok(())
}

/// What is left from the earlier drop goes on anew by whoever looks it up first, while it is dropped once more.
#[test]
fn a_tag_that_is_looked_up_while_it_is_dropped_is_issued_by_nobody() -> Result<()> {
    let server = server()?;
    let mut manager = server.client("two")?;
    query_i64(&mut manager, NEXT)?;
    manager.batch_execute(DROP)?;
    for _ in 0..ROUNDS {
        manager.batch_execute(AGAIN)?;
        let mut open = server.client("two")?;
        open.batch_execute("BEGIN")?;
        let first = Pending::start(open, NEXT)?;
        manager.batch_execute(DROP)?;
        let mut first = first.finish()?;
        let taken = match first.outcome {
            Ok(_) => query_i64(&mut first.client, NEXT),
            Err(error) => Err(error),
        };
        expect_sql_error(taken, GONE.0, GONE.1);
    }
    Ok(())
}

/// Either may come to nothing, so one waits for the other.
#[test]
fn a_tag_is_not_dropped_while_somebody_drops_its_sequence() -> Result<()> {
    let server = server()?;
    let mut manager = server.client("two")?;
    manager.batch_execute("SET lock_timeout = '20s'; SET keywright.refill_wait_ms_max = 300")?;
    let mut other = server.client("two")?;
    other.batch_execute("BEGIN; DROP SEQUENCE keywright.tag_1")?;
    let error = expect_sql_error(manager.batch_execute(DROP), "55P03", "tag \"orders\"");
    assert!(error.detail.contains("holds a lock on tag_1"), "{error:?}");
    other.batch_execute("ROLLBACK")?;
    manager.batch_execute(DROP)?;
    Ok(())
}
