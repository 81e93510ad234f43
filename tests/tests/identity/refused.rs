//! Changes of an identity that are refused: of an older snapshot, with absurd moments, read only, or of a bound that was lowered.

use keywright_core::cause::Cause;
use keywright_testkit::{IdLog, PgServer, Result, copy_ids, query_i64};

use crate::common::expect_cause;
use crate::{SNOWFLAKE, draw, server, set_up};

/// A transaction whose snapshot is older than another's change says so, in words that tell what to do.
#[test]
fn identity_above_read_committed_is_changed_or_asks_for_another_try() -> Result<()> {
    let server = server()?;
    let mut client = set_up(&server, 1)?;
    let mut other = server.client("postgres")?;
    let changes = [
        [
            "SELECT keywright.set_worker_id(4)",
            "SELECT keywright.set_worker_id(3)",
        ],
        [
            "SELECT keywright.set_readable_bucket(6)",
            "SELECT keywright.set_readable_bucket(7)",
        ],
        [
            "SELECT keywright.set_readable_zone('+$1')",
            "SELECT keywright.set_readable_zone('+$2')",
        ],
        [
            "SELECT keywright.set_layout('leaf')",
            "SELECT keywright.set_layout('twitter')",
        ],
    ];
    // Zones only go east.
    for (level, round) in [("REPEATABLE READ", "0"), ("SERIALIZABLE", "1")] {
        for change in changes {
            let [one, two] = &change.map(|change| change.replace('$', round));
            client.batch_execute(&format!(
                "BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM keywright.node"
            ))?;
            other.batch_execute(one)?;
            let outcome = client.batch_execute(two);
            if outcome.is_err() {
                expect_cause(
                    outcome,
                    Cause::Serialization,
                    "after this transaction began",
                );
                client.batch_execute("ROLLBACK")?;
                client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; {two}"))?;
            }
            client.batch_execute("COMMIT")?;
        }
    }
    Ok(())
}

/// One wrong moment would be in every id for good.
#[test]
fn absurd_moments_are_refused() -> Result<()> {
    let server = server()?;
    let mut client = set_up(&server, 1)?;
    for above in ["2090-01-01", "4713-01-01 BC", "1999-12-31", "2009-12-31"] {
        let set = format!("SELECT keywright.set_worker_id(6, above => '{above}')");
        expect_cause(
            client.batch_execute(&set),
            Cause::ArgumentOutOfRange,
            "before 2010 or more than a year ahead",
        );
    }
    // Beyond the last id nothing could follow, whoever insists.
    for (call, has) in [
        (
            "set_worker_id(6, above => '2200-01-01'",
            "the last of the ids of layout \"twitter\"",
        ),
        (
            "set_worker_id(6, above => '2080-07-10 17:30:31Z'",
            "the last of the ids of layout \"twitter\"",
        ),
        (
            "set_readable_bucket(6, above => '2200-01-01'",
            "the last of the readable ids of time zone UTC",
        ),
        (
            "set_readable_bucket(1, above => '2100-01-01Z'",
            "the last of the readable ids of time zone UTC",
        ),
    ] {
        let set = format!("SELECT keywright.{call}, force => true)");
        expect_cause(client.batch_execute(&set), Cause::ArgumentOutOfRange, has);
    }
    query_i64(&mut client, "SELECT snowflake_id()")?;
    client
        .batch_execute("SELECT keywright.set_worker_id(6, above => now() + interval '1 minute')")?;
    let floor = "SELECT (snowflake_id() > snowflake_floor(now() + interval '59 s'))::int::bigint";
    assert_eq!(query_i64(&mut client, floor)?, 1);
    client
        .batch_execute("SELECT keywright.set_worker_id(7, above => '2031-01-01', force => true)")?;
    let floor = "SELECT (snowflake_id() > snowflake_floor('2030-12-31'))::int::bigint";
    assert_eq!(query_i64(&mut client, floor)?, 1);
    Ok(())
}

#[test]
fn read_only_transaction_changes_no_identity() -> Result<()> {
    let server = server()?;
    let mut client = set_up(&server, 1)?;
    for change in [
        "SELECT keywright.set_worker_id(2)",
        "SELECT keywright.set_layout('leaf')",
    ] {
        client.batch_execute("BEGIN READ ONLY")?;
        expect_cause(
            client.batch_execute(change),
            Cause::ReadOnly,
            "read-only transaction",
        );
        client.batch_execute("ROLLBACK")?;
    }
    let worker = "SELECT snowflake_worker(snowflake_id())::bigint";
    assert_eq!(query_i64(&mut client, worker)?, 1);
    Ok(())
}

/// A sequence of ours that reads lower than what was written was changed by somebody else. It is no floor.
#[test]
fn lowered_bound_is_damage() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .start()?;
    let mut client = set_up(&server, 1)?;
    let log = IdLog::new();
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute("SELECT setval('keywright.snowflake_bound', 1)")?;
    let long = "SELECT snowflake_id() FROM generate_series(1, 2000000)";
    let mut run = Vec::new();
    let failed = copy_ids(&mut client, long, &mut run);
    log.record(run);
    let failed = format!("{:?}", failed.err());
    assert!(failed.contains("lower than"), "{failed}");
    client
        .batch_execute("SELECT keywright.set_worker_id(1, above => now() + interval '1 minute')")?;
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;

    let tags = IdLog::new();
    draw(
        &mut client,
        "SELECT next_biz_id('orders') FROM generate_series(1, 100)",
        &tags,
    )?;
    client.batch_execute(
        "SELECT setval(c.oid::regclass, 1) FROM pg_class c WHERE c.relname = 'tag_1'",
    )?;
    let mut run = Vec::new();
    let failed = copy_ids(
        &mut client,
        "SELECT next_biz_id('orders') FROM generate_series(1, 100)",
        &mut run,
    );
    tags.record(run);
    let failed = format!("{:?}", failed.err());
    assert!(failed.contains("lower than"), "{failed}");
    client.batch_execute("SELECT keywright.advance_tag('orders', 1000)")?;
    draw(
        &mut client,
        "SELECT next_biz_id('orders') FROM generate_series(1, 100)",
        &tags,
    )?;
    tags.check()?;
    Ok(())
}

/// The bucket that was chosen before a disk was copied is the original's, and so is the worker id.
#[test]
fn a_copy_that_a_store_suspended_has_nothing_of_its_original() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    let mark = format!("1.{}", "a".repeat(32));
    client.batch_execute(&format!(
        "CREATE EXTENSION keywright; SELECT keywright.mark_assignment(NULL, '{mark}');
         SELECT keywright.assign_worker_id('{mark}', 512, 512, 600, NULL, true);
         SELECT keywright.set_readable_bucket(7, unused => true); SELECT readable_id('a'), snowflake_id()"
    ))?;
    client.batch_execute(&format!("SELECT keywright.suspend_assignment('{mark}')"))?;
    let ids = "SELECT readable_id('a')";
    expect_cause(client.batch_execute(ids), Cause::Suspended, "");
    let same = client.batch_execute("SELECT keywright.set_worker_id(512)");
    expect_cause(same, Cause::WorkerIdInUse, "which this one is a copy of");
    client.batch_execute("SELECT keywright.set_worker_id(300, unused => true)")?;
    client.batch_execute("SELECT snowflake_id()")?;
    expect_cause(client.batch_execute(ids), Cause::Suspended, "bucket 7");
    client.batch_execute("SELECT keywright.set_readable_bucket(9, unused => true)")?;
    client.batch_execute(ids)?;
    Ok(())
}

/// One that was given back was an identity, too: what comes behind it is committed before it issues.
#[test]
fn an_identity_behind_one_that_was_given_back_is_committed_first() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    let mark = format!("1.{}", "b".repeat(32));
    client.batch_execute(&format!(
        "CREATE EXTENSION keywright; SELECT keywright.mark_assignment(NULL, '{mark}');
         SELECT keywright.assign_worker_id('{mark}', 512, 512, 600, NULL, true); SELECT snowflake_id();
         SELECT keywright.release_assignment('{mark}', 512)"
    ))?;
    client.batch_execute("BEGIN; SELECT keywright.set_worker_id(3, unused => true)")?;
    let answer = client.batch_execute("SELECT snowflake_id()");
    expect_cause(answer, Cause::IdentityUncommitted, "");
    client.batch_execute("ROLLBACK")?;
    Ok(())
}
