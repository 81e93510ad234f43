//! The bucket of readable ids: one database's of a server, taken over above its bound, and kept apart from all others.

mod common;

use std::collections::HashSet;
use std::thread;

use common::{ONE_READABLE, database, drop_database, expect_cause, issue_readable};
use keywright_core::cause::Cause;
use keywright_testkit::{PgServer, Result, Stop, WAIT_MAX, query_i64, query_text, wait_until};
use postgres::Client;

/// Several milliseconds' worth, so that some are dated alike in several databases.
const BURST: &str = "SELECT string_agg(readable_id('ORD'), ' ') FROM generate_series(1, 100000)";

fn bucket(client: &mut Client) -> Result<i64> {
    let query = "SELECT bucket::bigint FROM readable_decode(readable_id('ORD'))";
    Ok(query_i64(client, query)?)
}

/// Time and sequence of an id, without business code and bucket.
fn moment(id: &str) -> (String, u32) {
    let number: u32 = id[19..].parse().expect("eight digits");
    (id[..15].to_owned(), number % (1 << 18))
}

#[test]
fn databases_with_distinct_buckets_never_meet_within_a_millisecond() -> Result<()> {
    let servers = [PgServer::builder().start()?, PgServer::builder().start()?];
    let [first, second] = &servers;
    let unused = |worker| format!("SELECT keywright.set_worker_id({worker}, unused => true)");
    let mut clients = [
        database(first, "one", &unused(5))?,
        database(first, "two", &unused(6))?,
        database(
            first,
            "three",
            &format!(
                "SELECT keywright.set_readable_bucket(7, unused => true); {}",
                unused(300)
            ),
        )?,
        // Its worker id names a bucket that the other server has; both were told apart by hand.
        database(
            second,
            "four",
            &format!(
                "{}; SELECT keywright.set_readable_bucket(255, unused => true)",
                unused(8)
            ),
        )?,
    ];
    for (client, expected) in clients.iter_mut().zip([5, 6, 7, 255]) {
        assert_eq!(bucket(client)?, expected);
    }
    let runs = clients.map(|mut client| thread::spawn(move || query_text(&mut client, BURST)));
    let mut ids = HashSet::new();
    let mut moments = HashSet::new();
    for run in runs {
        for id in run.join().expect("no panic")?.split(' ') {
            moments.insert(moment(id));
            assert!(ids.insert(id.to_owned()), "{id} came twice");
        }
    }
    assert_eq!(ids.len(), 400_000);
    assert!(moments.len() < ids.len(), "none were dated alike");
    Ok(())
}

#[test]
fn bucket_of_a_dropped_database_goes_on_above() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let mut two = database(&server, "two", "SELECT keywright.set_readable_bucket(9)")?;
    let last = issue_readable(&mut two)?;
    drop(two);
    drop_database(&server, "two")?;
    server.clock()?.step_to(-3600)?;
    let mut three = database(&server, "three", "SELECT keywright.set_worker_id(9)")?;
    let next = issue_readable(&mut three)?;
    assert!(next > last && bucket(&mut three)? == 9, "{last} {next}");
    let last = issue_readable(&mut three)?;
    drop(three);
    drop_database(&server, "three")?;
    // Memory is gone: what was noted in the transaction that dropped it counts.
    server.restart(Stop::Immediate)?;
    let mut four = database(&server, "four", "SELECT keywright.set_readable_bucket(9)")?;
    let next = issue_readable(&mut four)?;
    assert!(next > last, "{last} {next}");
    Ok(())
}

#[test]
fn bucket_of_a_dropped_extension_goes_on_above() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let mut client = database(&server, "one", "SELECT keywright.set_readable_bucket(9)")?;
    let last = issue_readable(&mut client)?;
    client.batch_execute("DROP EXTENSION keywright")?;
    server.clock()?.step_to(-3600)?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    let again = "SELECT keywright.set_readable_bucket(9)";
    client.batch_execute(again)?;
    let next = issue_readable(&mut client)?;
    assert!(next > last, "{last} {next}");
    client.batch_execute("DROP EXTENSION keywright")?;
    server.restart(Stop::Immediate)?;
    server.clock()?.step_to(-7200)?;
    let mut client = server.client("one")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    client.batch_execute(again)?;
    let last = issue_readable(&mut client)?;
    assert!(last > next, "{next} {last}");
    Ok(())
}

/// From one database to another and back, with the clock an hour earlier each time.
#[test]
fn bucket_that_was_given_up_goes_on_above() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let mut one = database(&server, "one", "SELECT keywright.set_readable_bucket(9)")?;
    let mut two = database(&server, "two", "SELECT keywright.set_readable_bucket(10)")?;
    let mut last = issue_readable(&mut one)?;
    for hour in 1..4 {
        server.clock()?.step_to(-3600 * hour)?;
        one.batch_execute("SELECT keywright.set_readable_bucket(11)")?;
        two.batch_execute("SELECT keywright.set_readable_bucket(9)")?;
        let next = issue_readable(&mut two)?;
        assert!(next > last && bucket(&mut two)? == 9, "{last} {next}");
        last = issue_readable(&mut two)?;
        if hour == 2 {
            server.restart(Stop::Immediate)?;
            (one, two) = (server.client("one")?, server.client("two")?);
        }
        two.batch_execute("SELECT keywright.set_readable_bucket(10)")?;
        one.batch_execute("SELECT keywright.set_readable_bucket(9)")?;
        let next = issue_readable(&mut one)?;
        assert!(next > last && bucket(&mut one)? == 9, "{last} {next}");
        last = next;
    }
    Ok(())
}

#[test]
fn what_is_no_free_bucket_is_refused() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut one = database(&server, "one", "SELECT keywright.set_readable_bucket(9)")?;
    let mut two = database(&server, "two", "")?;
    let refused = query_text(&mut two, ONE_READABLE);
    let error = expect_cause(refused, Cause::WorkerIdUnset, "no readable bucket and no");
    assert!(error.hint.contains("set_readable_bucket(n)"), "{error:?}");
    for wrong in ["256", "-1", "2147483647"] {
        let set = format!("SELECT keywright.set_readable_bucket({wrong})");
        let refused = two.batch_execute(&set);
        expect_cause(refused, Cause::ArgumentOutOfRange, "from 0 to 255, not");
    }
    let refused = two.batch_execute("SELECT keywright.set_readable_bucket(NULL)");
    expect_cause(refused, Cause::ArgumentNull, "the readable bucket");
    let refused = two.batch_execute("SELECT keywright.set_readable_bucket(9)");
    expect_cause(
        refused,
        Cause::WorkerIdInUse,
        "readable bucket 9 belongs to database \"one\"",
    );
    two.batch_execute("SELECT keywright.set_worker_id(300)")?;
    expect_cause(
        query_text(&mut two, ONE_READABLE),
        Cause::WorkerIdUnset,
        "its worker id 300 is above 255",
    );
    // The bucket that the worker id names is another's.
    two.batch_execute("SELECT keywright.set_worker_id(9)")?;
    query_i64(&mut two, "SELECT snowflake_id()")?;
    expect_cause(
        query_text(&mut two, ONE_READABLE),
        Cause::WorkerIdUnset,
        "bucket 9 was not free",
    );
    one.batch_execute("SELECT keywright.set_readable_bucket(10)")?;
    two.batch_execute("SELECT keywright.set_worker_id(9)")?;
    assert_eq!((bucket(&mut one)?, bucket(&mut two)?), (10, 9));
    // What comes with the worker id goes with it; what was chosen stays.
    two.batch_execute("SELECT keywright.set_worker_id(8)")?;
    assert_eq!(bucket(&mut two)?, 8);
    one.batch_execute("SELECT keywright.set_worker_id(9)")?;
    assert_eq!(bucket(&mut one)?, 10);
    let copied = "CREATE DATABASE copy TEMPLATE one";
    drop(one);
    let mut keeper = server.client("postgres")?;
    wait_until("a database without sessions", WAIT_MAX, || {
        Ok(keeper.batch_execute(copied).is_ok())
    })?;
    expect_cause(
        query_text(&mut server.client("copy")?, ONE_READABLE),
        Cause::Suspended,
        "readable bucket 10 was chosen earlier",
    );
    Ok(())
}

#[test]
fn bucket_that_is_not_committed_issues_nothing() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    // The first that a database has may be used at once.
    client.batch_execute(
        "BEGIN; CREATE EXTENSION keywright; SELECT keywright.set_readable_bucket(3)",
    )?;
    let mut last = issue_readable(&mut client)?;
    client.batch_execute("COMMIT; SELECT keywright.set_worker_id(3)")?;
    for change in [
        "SELECT keywright.set_readable_bucket(4)",
        "SELECT keywright.set_worker_id(4)",
    ] {
        for ending in ["ROLLBACK", "ROLLBACK TO before; COMMIT"] {
            client.batch_execute(&format!("BEGIN; SAVEPOINT before; {change}; SAVEPOINT a"))?;
            for query in [ONE_READABLE, "SELECT snowflake_id()::text"] {
                let refused = query_text(&mut client, query);
                expect_cause(refused, Cause::IdentityUncommitted, "readable bucket");
                client.batch_execute("ROLLBACK TO a")?;
            }
            client.batch_execute(ending)?;
            let next = issue_readable(&mut client)?;
            assert!(next > last && bucket(&mut client)? == 3, "{last} {next}");
            last = next;
        }
    }
    Ok(())
}

/// A database that is dropped unused since the server started leaves its bucket to whoever knows better.
#[test]
fn bucket_that_nobody_knows_about_needs_a_moment() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let mut two = database(&server, "two", "SELECT keywright.set_readable_bucket(9)")?;
    let last = issue_readable(&mut two)?;
    drop(two);
    server.restart(Stop::Fast)?;
    drop_database(&server, "two")?;
    let mut three = database(&server, "three", "SELECT keywright.set_worker_id(9)")?;
    expect_cause(
        query_text(&mut three, ONE_READABLE),
        Cause::WorkerIdUnset,
        "bucket 9",
    );
    let refused = three.batch_execute("SELECT keywright.set_readable_bucket(9)");
    let error = expect_cause(refused, Cause::WorkerIdInUse, "was dropped");
    assert!(error.hint.contains("set_readable_bucket(n, above"));
    three.batch_execute(
        "SELECT keywright.set_readable_bucket(9, above => now() + interval '1 minute')",
    )?;
    let next = issue_readable(&mut three)?;
    assert!(next > last, "{last} {next}");
    // A moment named once more counts once more.
    three.batch_execute(
        "SELECT keywright.set_readable_bucket(9, above => now() + interval '1 hour')",
    )?;
    let query = "SELECT (issued_at > now() + interval '59 minutes')::text FROM readable_decode(readable_id('ORD'))";
    assert_eq!(query_text(&mut three, query)?, "true");
    Ok(())
}
