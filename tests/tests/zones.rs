//! The time zone of readable ids: a fixed offset, which decoding follows. What is written never comes twice, whatever becomes of
//! the zone, of the transaction that changes it, and of the bucket.

mod common;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

use anyhow::ensure;
use common::{ONE_READABLE, database, drop_database, expect_cause, issue_readable, text_rows};
use keywright_core::cause::Cause;
use keywright_testkit::{
    IdLog, Load, PgServer, PgServerBuilder, Result, Stop, copy_ids, query_i64, query_text,
};
use postgres::Client;

/// What is written in 400 ids, as one number: time and sequence of one bucket.
const WRITTEN: &str = "SELECT ((extract(epoch FROM d.issued_at) * 1000)::bigint << 18) + d.sequence \
     FROM generate_series(1, 400) n, readable_decode(readable_id('B' || n), 'UTC') d";
/// How far the next id's time, as this database decodes it, lies from now, seconds.
const AGE: &str = "SELECT abs(extract(epoch FROM d.issued_at - clock_timestamp()))::bigint FROM readable_decode(readable_id('ORD')) d";

fn builder() -> PgServerBuilder {
    PgServer::builder().setting("max_prepared_transactions", "5")
}

fn zone(zone: &str) -> String {
    format!("SELECT keywright.set_readable_zone('{zone}')")
}

fn draw(client: &mut Client, log: &IdLog) -> Result<()> {
    let mut run = Vec::new();
    let outcome = copy_ids(client, WRITTEN, &mut run);
    log.record(run);
    outcome
}

/// Statements one by one: some may not be sent with others.
fn each(client: &mut Client, statements: &str) -> Result<()> {
    for statement in statements.split("; ") {
        client.batch_execute(statement)?;
    }
    Ok(())
}

/// Ids are dated now, in the zone of their database.
#[track_caller]
fn assert_now(client: &mut Client) {
    let age_s = query_i64(client, AGE).expect("an id");
    assert!(age_s <= 60, "{age_s} s from now");
}

#[test]
fn zone_decides_how_ids_are_written_and_decoded() -> Result<()> {
    let mut server = builder().start()?;
    let mut client = database(&server, "one", "SELECT keywright.set_worker_id(5)")?;
    assert_now(&mut client);
    let in_utc = issue_readable(&mut client)?;
    for (text, canonical, utc_s) in [
        ("+08:00", "+08:00", 28_800),
        ("+0845", "+08:45", 31_500),
        ("+14", "+14:00", 50_400),
    ] {
        client.batch_execute(&zone(text))?;
        assert_now(&mut client);
        let written = "SELECT extract(epoch FROM d.issued_at - clock_timestamp())::bigint FROM readable_decode(readable_id('ORD'), 'UTC') d";
        let ahead_s = query_i64(&mut client, written)? - utc_s;
        assert!(ahead_s.abs() <= 60, "{canonical}: {ahead_s}");
        let figures =
            "SELECT bucket, zone, worker_id, layout FROM keywright.stats WHERE kind = 'readable'";
        assert_eq!(
            text_rows(&mut client, figures)?,
            [["5", canonical, "NULL", "NULL"]]
        );
        let health = "SELECT severity, detail FROM keywright.health WHERE name = 'readable bucket'";
        let detail = format!("bucket 5 of 0 to 255, time zone {canonical}");
        assert_eq!(text_rows(&mut client, health)?, [["ok", detail.as_str()]]);
    }
    // What was written before is decoded by saying how.
    let decode = format!("SELECT issued_at::text FROM readable_decode('{in_utc}', 'UTC')");
    let at = query_text(&mut client, &decode)?;
    let decode =
        format!("SELECT (issued_at + interval '14 hours')::text FROM readable_decode('{in_utc}')");
    assert_eq!(query_text(&mut client, &decode)?, at);
    for stop in [Stop::Fast, Stop::Immediate] {
        server.restart(stop)?;
        client = server.client("one")?;
        assert_now(&mut client);
        let row = "SELECT zone FROM keywright.stats WHERE kind = 'readable'";
        assert_eq!(query_text(&mut client, row)?, "+14:00");
    }
    Ok(())
}

#[test]
fn what_is_no_fixed_offset_is_refused() -> Result<()> {
    let server = builder().start()?;
    let mut client = database(&server, "one", "SELECT keywright.set_worker_id(5)")?;
    for call in [
        "keywright.set_readable_zone($)",
        "readable_decode('210821040302297ORD_00000000', $)",
    ] {
        for (text, has) in [
            (
                "'Europe/Berlin'",
                "\"Europe/Berlin\" is not a fixed offset from UTC",
            ),
            ("'UTC+8'", "\"UTC+8\" is not a fixed"),
            ("''", "\"\" is not a fixed"),
            ("'+14:01'", "not between -14:00 and +14:00"),
            ("'−08:00'", "\"−08:00\" is not a fixed"),
        ] {
            let refused = client.batch_execute(&format!("SELECT {}", call.replace('$', text)));
            let error = expect_cause(refused, Cause::ZoneInvalid, has);
            assert!(error.hint.contains("'+08:00'"), "{error:?}");
        }
        let named = call.replace('$', "'America/Lima'");
        let refused = client.batch_execute(&format!("SELECT {named}"));
        let error = expect_cause(refused, Cause::ZoneInvalid, "America/Lima");
        assert!(error.detail.contains("an hour comes twice"), "{error:?}");
    }
    let refused = client.batch_execute("SELECT keywright.set_readable_zone(NULL)");
    expect_cause(refused, Cause::ArgumentNull, "the time zone");
    let refused = client.batch_execute("BEGIN READ ONLY; SELECT keywright.set_readable_zone('+1')");
    expect_cause(refused, Cause::ReadOnly, "set_readable_zone");
    Ok(())
}

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

#[test]
fn zone_that_is_not_committed_issues_nothing() -> Result<()> {
    let mut server = builder().start()?;
    let log = IdLog::new();
    let mut client = database(&server, "one", "SELECT keywright.set_worker_id(5)")?;
    let mut other = server.client("one")?;
    draw(&mut client, &log)?;
    let east = zone("+08:00");
    for ending in [
        "ROLLBACK",
        "ROLLBACK TO before; COMMIT",
        "PREPARE TRANSACTION 'z'; ROLLBACK PREPARED 'z'",
        "",
    ] {
        client.batch_execute(&format!("BEGIN; SAVEPOINT before; {east}; SAVEPOINT a"))?;
        let refused = query_text(&mut client, ONE_READABLE);
        expect_cause(refused, Cause::IdentityUncommitted, "the time zone");
        if ending.is_empty() {
            server.restart(Stop::Immediate)?;
            client = server.client("one")?;
            other = server.client("one")?;
        } else {
            client.batch_execute("ROLLBACK TO a")?;
            each(&mut client, ending)?;
        }
        draw(&mut other, &log)?;
        draw(&mut client, &log)?;
        assert_now(&mut client);
    }
    client.batch_execute(&format!("BEGIN; {east}; PREPARE TRANSACTION 'z'"))?;
    server.restart(Stop::Immediate)?;
    client = server.client("one")?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 100")?;
    expect_cause(
        query_text(&mut client, ONE_READABLE),
        Cause::RefillTimeout,
        "",
    );
    each(
        &mut client,
        "COMMIT PREPARED 'z'; RESET keywright.refill_wait_ms_max",
    )?;
    draw(&mut client, &log)?;
    assert_now(&mut client);
    let refused = client.batch_execute(&zone("UTC"));
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 5 could repeat readable ids",
    );
    log.check()?;
    Ok(())
}

/// The first identity of a database may be used before it is committed, and a savepoint may take its zone back.
#[test]
fn zone_of_a_first_identity_is_compared_with_what_a_savepoint_took_back() -> Result<()> {
    let mut server = builder().start()?;
    let log = IdLog::new();
    let mut client = server.client("postgres")?;
    client.batch_execute(&format!(
        "BEGIN; CREATE EXTENSION keywright; SELECT keywright.set_worker_id(5); SAVEPOINT a; {}",
        zone("+08:00")
    ))?;
    draw(&mut client, &log)?;
    client.batch_execute("ROLLBACK TO a; SAVEPOINT b")?;
    expect_cause(
        query_text(&mut client, ONE_READABLE),
        Cause::LayoutOverlap,
        "written in time zone +08:00",
    );
    for west in ["-01:00", "+07:00"] {
        client.batch_execute("ROLLBACK TO b")?;
        let refused = client.batch_execute(&zone(west));
        expect_cause(
            refused,
            Cause::LayoutOverlap,
            "bucket 5 could repeat readable ids",
        );
    }
    client.batch_execute(&format!("ROLLBACK TO b; {}; COMMIT", zone("+09:00")))?;
    server.restart(Stop::Immediate)?;
    let mut client = server.client("postgres")?;
    let refused = client.batch_execute(&zone("+07:00"));
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 5 could repeat readable ids",
    );
    draw(&mut client, &log)?;
    log.check()?;
    Ok(())
}

/// A minute to either side is within the lead, so that changes to the west succeed, and ids of three zones lie close together.
#[test]
fn nothing_is_written_twice_while_the_zone_changes_under_load() -> Result<()> {
    let mut server = builder()
        .setting("keywright.lead_ms_max", "1h")
        .setting("keywright.refill_wait_ms_max", "60s")
        .start()?;
    let log = Arc::new(IdLog::new());
    let mut client = database(
        &server,
        "one",
        "SELECT keywright.set_readable_bucket(5, unused => true)",
    )?;
    let mut refusals = BTreeMap::new();
    for round in 0..3 {
        let load = Load::start(&server.config("one", "postgres"), 4, WRITTEN, &log);
        load.wait_for(2_000)?;
        for (number, offset) in ["+00:01", "-00:01", "UTC", "-00:01", "+00:01", "UTC"]
            .into_iter()
            .enumerate()
        {
            let change = zone(offset);
            let ending = match (number + round) % 4 {
                0 => "COMMIT",
                1 => "ROLLBACK TO a; COMMIT",
                2 => "PREPARE TRANSACTION 'z'; COMMIT PREPARED 'z'",
                _ => "SAVEPOINT b; ROLLBACK TO b; COMMIT",
            };
            client.batch_execute(&format!("BEGIN; SAVEPOINT a; {change}"))?;
            each(&mut client, ending)?;
            load.wait_for(2_000)?;
        }
        server.restart(if round == 1 {
            Stop::Fast
        } else {
            Stop::Immediate
        })?;
        client = server.client("one")?;
        refusals.append(&mut load.stop()?);
    }
    ensure!(refusals.is_empty(), "{refusals:?}");
    println!("{:?}", log.check()?);
    Ok(())
}

#[test]
fn dump_keeps_the_zone() -> Result<()> {
    let server = builder().start()?;
    let files = tempfile::tempdir()?;
    let identity = format!("SELECT keywright.set_worker_id(5); {}", zone("+08:00"));
    let mut one = database(&server, "one", &identity)?;
    let log = IdLog::new();
    draw(&mut one, &log)?;
    let dump = |arguments: &[&str]| -> Result<_> {
        let file = files.path().join(format!("dump{}", arguments.concat()));
        let mut command = server.tool("pg_dump");
        run(command.args(arguments).arg("one").arg("--file").arg(&file))?;
        Ok(file)
    };
    let restore = |into: &str, file: &std::path::Path| -> Result<()> {
        let mut psql = server.tool("psql");
        psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", into, "-f"]);
        run(psql.arg(file))
    };
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE two")?;
    restore("two", &dump(&[])?)?;
    let mut two = server.client("two")?;
    two.batch_execute("SELECT keywright.set_worker_id(7)")?;
    assert_now(&mut two);
    let row = "SELECT zone FROM keywright.stats WHERE kind = 'readable'";
    assert_eq!(query_text(&mut two, row)?, "+08:00");
    // Data alone, over what was written in another zone: compared first, and only where somebody says so.
    let data = dump(&["-a"])?;
    let other = IdLog::new();
    let identity = format!("SELECT keywright.set_worker_id(8); {}", zone("+09:00"));
    let mut three = database(&server, "three", &identity)?;
    draw(&mut three, &other)?;
    three.batch_execute("DELETE FROM keywright.node")?;
    restore("three", &data)?;
    three = server.client("three")?;
    let refused = query_text(&mut three, ONE_READABLE);
    let error = expect_cause(refused, Cause::LayoutOverlap, "without being compared");
    assert!(
        error.hint.contains("set_readable_zone('+08:00')"),
        "{error:?}"
    );
    let refused = three.batch_execute(&zone("+08:00"));
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 8 could repeat readable ids",
    );
    three.batch_execute(&zone("+09:00"))?;
    draw(&mut three, &other)?;
    other.check()?;
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
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

/// Lowered to where the bucket began: what was kept of it counts as written in its zone.
#[test]
fn lowered_bound_keeps_what_was_written() -> Result<()> {
    let server = builder().start()?;
    let log = IdLog::new();
    let identity = "SELECT keywright.set_readable_bucket(5, unused => true)";
    let mut client = database(&server, "one", identity)?;
    client.batch_execute(&zone("+08:00"))?;
    draw(&mut client, &log)?;
    client.batch_execute(
        "SELECT keywright.set_readable_bucket(5, above => '2040-01-01', force => true);
         SELECT keywright.lower_bound(now() + interval '1 minute')",
    )?;
    let refused = client.batch_execute(&zone("+07:00"));
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 5 could repeat readable ids",
    );
    client.batch_execute(&zone("+09:00"))?;
    draw(&mut client, &log)?;
    log.check()?;
    Ok(())
}
