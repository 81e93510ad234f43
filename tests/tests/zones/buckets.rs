//! What becomes of a bucket whose zone differs from where it was written before.

use keywright_core::cause::Cause;
use keywright_testkit::{IdLog, Result, Stop, query_i64, query_text};

use crate::common::{ONE_READABLE, database, drop_database, expect_cause, issue_readable};
use crate::{assert_now, builder, draw, zone};

#[test]
fn zone_further_west_waits_or_takes_another_bucket() -> Result<()> {
    let mut server = builder().fake_clock().start()?;
    let log = IdLog::new();
    let identity = "SELECT keywright.set_readable_bucket(5); SELECT keywright.set_worker_id(300)";
    let mut client = database(&server, "one", identity)?;
    draw(&mut client, &log)?;
    // Set by mistake, and nothing was written.
    client.batch_execute(&format!("{}; {}", zone("+09:00"), zone("UTC")))?;
    draw(&mut client, &log)?;
    client.batch_execute(&zone("+08:00"))?;
    draw(&mut client, &log)?;
    for west in ["UTC", "+07:59", "-08:00"] {
        let refused = client.batch_execute(&zone(west));
        let has =
            format!("bucket 5 could repeat readable ids of time zone +08:00 in time zone {west}");
        let error = expect_cause(refused, Cause::LayoutOverlap, &has);
        assert!(
            error.hint.contains("Issue no readable ids until 2"),
            "{error:?}"
        );
        assert!(
            error
                .hint
                .contains("set_readable_bucket(n, unused => true)"),
            "{error:?}"
        );
        draw(&mut client, &log)?;
    }
    client.batch_execute(&format!(
        "BEGIN; SELECT keywright.set_readable_bucket(6, unused => true); {}; COMMIT",
        zone("UTC")
    ))?;
    let other = IdLog::new();
    draw(&mut client, &other)?;
    assert_now(&mut client);
    // The bucket that was left is known to have been written further east.
    let refused = client.batch_execute("SELECT keywright.set_readable_bucket(5)");
    let error = expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 5 could repeat readable ids",
    );
    for has in [
        "Wait until 2",
        "SELECT keywright.set_readable_zone('+08:00')",
    ] {
        assert!(error.hint.contains(has), "{error:?}");
    }
    server.restart(Stop::Immediate)?;
    client = server.client("one")?;
    let refused = client.batch_execute("SELECT keywright.set_readable_bucket(5)");
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 5 could repeat readable ids",
    );
    server.clock()?.step_to(8 * 3600 + 60)?;
    server.restart(Stop::Fast)?;
    client = server.client("one")?;
    client.batch_execute("SELECT keywright.set_readable_bucket(5)")?;
    draw(&mut client, &log)?;
    assert_now(&mut client);
    log.check()?;
    other.check()?;
    Ok(())
}

#[test]
fn bucket_that_comes_with_the_worker_id_is_left_out_where_it_was_written_further_east() -> Result<()>
{
    let server = builder().start()?;
    let mut one = database(&server, "one", "SELECT keywright.set_worker_id(5)")?;
    one.batch_execute(&zone("+02:00"))?;
    issue_readable(&mut one)?;
    one.batch_execute("SELECT keywright.set_worker_id(6)")?;
    let mut two = database(&server, "two", "SELECT keywright.set_worker_id(5)")?;
    query_i64(&mut two, "SELECT snowflake_id()")?;
    expect_cause(
        query_text(&mut two, ONE_READABLE),
        Cause::WorkerIdUnset,
        "no readable bucket",
    );
    two.batch_execute(&format!(
        "{}; SELECT keywright.set_worker_id(5)",
        zone("+02:00")
    ))?;
    assert_now(&mut two);
    Ok(())
}

#[test]
fn bucket_moves_between_databases_of_different_zones() -> Result<()> {
    let mut server = builder().fake_clock().start()?;
    let log = IdLog::new();
    let take = "SELECT keywright.set_readable_bucket(9)";
    let mut one = database(&server, "one", &format!("{}; {take}", zone("+02:00")))?;
    let mut two = database(&server, "two", &zone("-03:00"))?;
    let mut three = database(&server, "three", &zone("+03:00"))?;
    draw(&mut one, &log)?;
    one.batch_execute("SELECT keywright.set_readable_bucket(10)")?;
    let refused = two.batch_execute(take);
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 9 could repeat readable ids",
    );
    three.batch_execute(take)?;
    draw(&mut three, &log)?;
    drop(three);
    // A drop notes what was written; so does the drop of an extension, and both outlive a crash.
    drop_database(&server, "three")?;
    for round in 0..2 {
        let refused = one.batch_execute(take);
        let has = "readable ids of time zone +03:00 in time zone +02:00";
        expect_cause(refused, Cause::LayoutOverlap, has);
        if round == 0 {
            server.restart(Stop::Immediate)?;
            one = server.client("one")?;
        }
    }
    // And what it may have been ahead.
    server.clock()?.step_to(3600 + 60)?;
    server.restart(Stop::Immediate)?;
    one = server.client("one")?;
    one.batch_execute(take)?;
    draw(&mut one, &log)?;
    one.batch_execute("DROP EXTENSION keywright; CREATE EXTENSION keywright")?;
    one.batch_execute(take)?;
    let error = expect_cause(
        query_text(&mut one, ONE_READABLE),
        Cause::LayoutOverlap,
        "written in time zone +02:00",
    );
    let type_this = "SELECT keywright.set_readable_zone('+02:00')";
    assert!(error.hint.contains(type_this), "{error:?}");
    one.batch_execute(&zone("+02:00"))?;
    draw(&mut one, &log)?;
    log.check()?;
    Ok(())
}

/// What is said of a bucket's ids elsewhere is about times as the zone writes them at that moment.
#[test]
fn what_was_said_of_a_bucket_counts_in_another_zone() -> Result<()> {
    let server = builder().start()?;
    let mut client = database(&server, "one", &zone("+08:00"))?;
    for take in ["5", "6, above => now() + interval '1 hour'"] {
        client.batch_execute(&format!("SELECT keywright.set_readable_bucket({take})"))?;
        let refused = client.batch_execute(&zone("+07:00"));
        expect_cause(refused, Cause::LayoutOverlap, "could repeat readable ids");
    }
    // A bucket is given up, and the bound stays, as when a dump is restored.
    client.batch_execute("SELECT keywright.set_readable_bucket(8, unused => true)")?;
    issue_readable(&mut client)?;
    client.batch_execute("SECURITY LABEL FOR keywright ON DATABASE one IS NULL")?;
    client.batch_execute("SELECT keywright.set_worker_id(301)")?;
    let refused = client.batch_execute(&zone("+07:00"));
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "this database could repeat readable ids",
    );
    client.batch_execute("SELECT keywright.set_readable_bucket(7, unused => true)")?;
    client.batch_execute(&zone("+07:00"))?;
    issue_readable(&mut client)?;
    Ok(())
}
