//! The time zone of readable ids: a fixed offset, which decoding follows. What is written never comes twice, whatever becomes of
//! the zone, of the transaction that changes it, and of the bucket.

mod buckets;
#[path = "../common/mod.rs"]
mod common;
mod dumps;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::ensure;
use common::{ONE_READABLE, database, expect_cause, issue_readable, text_rows};
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
