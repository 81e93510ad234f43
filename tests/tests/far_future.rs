//! One wrong time is not for good: a clock that reads far past the recorded bound at a start is not followed, and a superuser
//! brings back a bound that lies in the far future.

mod common;

use common::expect_cause;
use keywright_core::cause::Cause;
use keywright_testkit::{
    IdFault, IdLog, Load, PgServer, Result, Stop, copy_ids, expect_sql_error, query_i64, query_text,
};
use postgres::Client;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const YEAR_S: i64 = 366 * 86_400;
const SNOWFLAKE: &str = "SELECT snowflake_id() FROM generate_series(1, 400)";
/// Time and sequence of a readable id as one number.
const READABLE: &str = "SELECT ((extract(epoch FROM d.issued_at) * 1000)::bigint << 18) + d.sequence \
     FROM generate_series(1, 400) n, readable_decode(readable_id('B' || n)) d";
/// When the next id of each kind is of, seconds since 1970.
const AT: [&str; 2] = [
    "SELECT extract(epoch FROM snowflake_timestamp(snowflake_id()))::bigint",
    "SELECT extract(epoch FROM d.issued_at)::bigint FROM readable_decode(readable_id('AB')) d",
];
const POISON: &str = "SELECT keywright.set_worker_id(6, above => '2031-01-01', force => true)";
/// A moment before all that the poison leads to.
const LOWER: &str = "SELECT keywright.lower_bound('2030-12-31')::text";
/// Later than all ids that were not led astray.
const TO_NOW: &str = "SELECT keywright.lower_bound(now() + interval '1 minute')::text";

#[derive(Default)]
struct Logs([IdLog; 2]);

impl Logs {
    fn draw(&self, client: &mut Client) -> Result<()> {
        for (query, log) in [SNOWFLAKE, READABLE].iter().zip(&self.0) {
            let mut run = Vec::new();
            let outcome = copy_ids(client, query, &mut run);
            log.record(run);
            outcome?;
        }
        Ok(())
    }

    /// Draws again while policy `refuse` waits for the clock: a new owner's ids begin up to a bound's window ahead of it.
    fn draw_when_caught_up(&self, client: &mut Client) -> Result<()> {
        loop {
            match self.draw(client) {
                Err(error) if format!("{error:#}").contains("clock policy refuse") => {}
                outcome => return outcome,
            }
        }
    }

    fn check(&self) -> Result<()> {
        for log in &self.0 {
            log.check()?;
        }
        Ok(())
    }
}

fn real_s() -> Result<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(i64::try_from(since.as_secs())?)
}

/// How far the next id of each kind is dated after the real time, seconds.
fn ahead_s(client: &mut Client) -> Result<[i64; 2]> {
    let [snowflake, readable] = AT;
    Ok([
        query_i64(client, snowflake)? - real_s()?,
        query_i64(client, readable)? - real_s()?,
    ])
}

#[track_caller]
fn assert_now(ahead_s: i64) {
    assert!(ahead_s.abs() <= 80, "{ahead_s} s ahead of the real time");
}

fn poisoned(server: &PgServer, database: &str) -> Result<Client> {
    let mut client = server.client(database)?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    client.batch_execute(POISON)?;
    assert!(ahead_s(&mut client)?[0] > YEAR_S);
    Ok(client)
}

fn clock_row(client: &mut Client) -> Result<String> {
    let sql = "SELECT severity || ': ' || detail || coalesce(' | ' || hint, '') FROM keywright.health WHERE name = 'clock'";
    Ok(query_text(client, sql)?)
}

#[test]
fn clock_50_years_ahead_at_a_start_is_not_followed() -> Result<()> {
    for policy in ["carry", "refuse"] {
        start_50_years_ahead(policy)?;
    }
    Ok(())
}

fn start_50_years_ahead(policy: &str) -> Result<()> {
    let mut server = PgServer::builder()
        .fake_clock()
        .setting("keywright.clock_policy", policy)
        .setting("keywright.bound_window_ms", "200")
        .start()?;
    let logs = Logs::default();
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1, unused => true)",
    )?;
    logs.draw_when_caught_up(&mut client)?;
    assert!(clock_row(&mut client)?.starts_with("ok"));
    for stop in [Stop::Fast, Stop::Immediate] {
        server.clock()?.step_to(50 * YEAR_S)?;
        server.restart(stop)?;
        client = server.client("postgres")?;
        logs.draw_when_caught_up(&mut client)?;
        for ahead in ahead_s(&mut client)? {
            assert_now(ahead);
        }
        let row = clock_row(&mut client)?;
        assert!(
            row.starts_with("warning") && row.contains("start_jump_days_max"),
            "{row}"
        );
        assert!(
            server.log_contains("more than keywright.start_jump_days_max; ids do not follow it")?
        );
    }
    // Mended while it runs.
    server.clock()?.step_to(0)?;
    while clock_row(&mut client)?.starts_with("warning") {
        logs.draw_when_caught_up(&mut client)?;
    }
    for ahead in ahead_s(&mut client)? {
        assert_now(ahead);
    }
    logs.check()
}

/// The clock may be right, and the server was off for so long: then its owner says so.
#[test]
fn clock_that_is_right_is_followed_when_the_limit_is_raised() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let logs = Logs::default();
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1)")?;
    logs.draw(&mut client)?;
    server.clock()?.step_to(3 * YEAR_S)?;
    server.restart(Stop::Fast)?;
    client = server.client("postgres")?;
    logs.draw(&mut client)?;
    assert_now(ahead_s(&mut client)?[0]);
    client.batch_execute("SET keywright.start_jump_days_max = 2000")?;
    while clock_row(&mut client)?.starts_with("warning") {
        logs.draw(&mut client)?;
    }
    for ahead in ahead_s(&mut client)? {
        assert_now(ahead - 3 * YEAR_S);
    }
    logs.check()
}

#[test]
fn lowered_bound_brings_ids_back_to_now() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let logs = Logs::default();
    let mut client = poisoned(&server, "postgres")?;
    let mut other = server.client("postgres")?;
    logs.draw(&mut other)?;
    // Only so far as is vouched for.
    query_text(&mut client, LOWER)?;
    let [ahead, _] = ahead_s(&mut other)?;
    assert!(ahead > YEAR_S, "{ahead}");
    query_text(&mut client, TO_NOW)?;
    for session in [&mut other, &mut client] {
        for ahead in ahead_s(session)? {
            assert_now(ahead);
        }
        logs.draw(session)?;
    }
    server.restart(Stop::Immediate)?;
    client = server.client("postgres")?;
    assert_now(ahead_s(&mut client)?[0]);
    logs.draw(&mut client)?;
    // Whoever gets the worker id next is not led into the future either.
    client.batch_execute("SELECT keywright.set_worker_id(7)")?;
    client.batch_execute("CREATE DATABASE two")?;
    logs.draw(&mut client)?;
    let mut two = server.client("two")?;
    two.batch_execute("CREATE EXTENSION keywright")?;
    two.batch_execute("SELECT keywright.set_worker_id(6)")?;
    assert_now(ahead_s(&mut two)?[0]);
    logs.check()
}

/// Without a restart in between: what memory knows of the old word counts no more.
#[test]
fn next_owner_of_a_lowered_worker_id_starts_now() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = poisoned(&server, "postgres")?;
    query_text(&mut client, TO_NOW)?;
    client.batch_execute("SELECT keywright.set_worker_id(7, unused => true)")?;
    client.batch_execute("CREATE DATABASE two")?;
    assert_now(ahead_s(&mut client)?[0]);
    let mut two = server.client("two")?;
    two.batch_execute("CREATE EXTENSION keywright")?;
    two.batch_execute("SELECT keywright.set_worker_id(6)")?;
    assert_now(ahead_s(&mut two)?[0]);
    Ok(())
}

/// A clock that was wrong when the first id was made leaves readable ids in the future as well.
#[test]
fn lowered_bound_mends_what_a_wrong_clock_left() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let logs = Logs::default();
    server.clock()?.step_to(40 * YEAR_S)?;
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1)")?;
    logs.draw(&mut client)?;
    server.clock()?.step_to(0)?;
    server.restart(Stop::Fast)?;
    client = server.client("postgres")?;
    for ahead in ahead_s(&mut client)? {
        assert!(ahead > YEAR_S, "{ahead}");
    }
    query_text(&mut client, TO_NOW)?;
    for ahead in ahead_s(&mut client)? {
        assert_now(ahead);
    }
    logs.draw(&mut client)?;
    logs.check()
}

#[test]
fn lowering_that_is_rolled_back_or_cut_off_changes_nothing() -> Result<()> {
    let mut server = PgServer::builder()
        .setting("max_prepared_transactions", "5")
        .start()?;
    let logs = Logs::default();
    let mut client = poisoned(&server, "postgres")?;
    let mut other = server.client("postgres")?;
    logs.draw(&mut other)?;
    let uncommitted = |client: &mut Client| {
        for query in AT {
            client.batch_execute("SAVEPOINT before")?;
            let refused = query_i64(client, query);
            expect_cause(refused, Cause::IdentityUncommitted, "the bound");
            client.batch_execute("ROLLBACK TO before")?;
        }
        Ok::<_, postgres::Error>(())
    };
    for (begin, end) in [
        ("BEGIN", "ROLLBACK"),
        ("BEGIN; SAVEPOINT s", "ROLLBACK TO s"),
        ("BEGIN", "PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'"),
    ] {
        client.batch_execute(begin)?;
        query_text(&mut client, TO_NOW)?;
        uncommitted(&mut client)?;
        client.batch_execute(end.split(';').next().unwrap_or(end))?;
        if let Some((_, rest)) = end.split_once(';') {
            // Whoever waits is told for what.
            let mut waiting = server.client("postgres")?;
            waiting.batch_execute("SET keywright.refill_wait_ms_max = 400")?;
            for query in ["SELECT snowflake_id()", "SELECT keywright.set_worker_id(9)"] {
                let refused = waiting.batch_execute(query);
                expect_cause(refused, Cause::RefillTimeout, "runs keywright.lower_bound");
            }
            client.batch_execute(rest)?;
        }
        assert!(ahead_s(&mut client)?[0] > YEAR_S, "{end}");
        client.batch_execute("COMMIT")?;
        assert!(ahead_s(&mut other)?[0] > YEAR_S, "{end}");
        logs.draw(&mut client)?;
        logs.draw(&mut other)?;
    }
    client.batch_execute("BEGIN")?;
    query_text(&mut client, TO_NOW)?;
    server.restart(Stop::Immediate)?;
    client = server.client("postgres")?;
    assert!(ahead_s(&mut client)?[0] > YEAR_S);
    logs.draw(&mut client)?;
    logs.check()
}

/// A drop of the extension that is undone, in the transaction that lowers the bound, takes nothing of that back.
#[test]
fn lowering_outlasts_a_part_of_its_transaction_that_is_undone() -> Result<()> {
    let server = PgServer::builder().start()?;
    let logs = Logs::default();
    let mut client = poisoned(&server, "postgres")?;
    let mut other = server.client("postgres")?;
    logs.draw(&mut other)?;
    client.batch_execute("BEGIN")?;
    query_text(&mut client, TO_NOW)?;
    client.batch_execute("SAVEPOINT part; DROP EXTENSION keywright; ROLLBACK TO part; COMMIT")?;
    for session in [&mut other, &mut client] {
        assert_now(ahead_s(session)?[0]);
        logs.draw(session)?;
    }
    logs.check()
}

/// Others wait for the commit, then go on from now; sessions that issue all the time never see an id twice.
#[test]
fn bound_is_lowered_while_others_issue() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = poisoned(&server, "postgres")?;
    let log = Arc::new(IdLog::new());
    let one = "SELECT snowflake_id()";
    let load = Load::start(&server.config("postgres", "postgres"), 4, one, &log);
    for round in 0..4 {
        load.wait_for(500)?;
        client.batch_execute("BEGIN")?;
        query_text(
            &mut client,
            LOWER
                .replace("2030-12-31", &format!("2030-12-{}", 30 - round))
                .as_str(),
        )?;
        client.batch_execute(if round % 2 == 0 { "ROLLBACK" } else { "COMMIT" })?;
    }
    load.wait_for(500)?;
    assert_eq!(load.stop()?, BTreeMap::new());
    // Down is where they were sent.
    match log.check() {
        Ok(_) | Err(IdFault::NotIncreasing { .. }) => Ok(()),
        Err(fault @ IdFault::Duplicate { .. }) => Err(fault.into()),
    }
}

#[test]
fn lowering_is_refused_where_nobody_can_vouch() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = poisoned(&server, "postgres")?;
    client.batch_execute("CREATE ROLE joe LOGIN; GRANT USAGE ON SCHEMA keywright TO joe")?;
    let mut joe = server.connect("postgres", "joe")?;
    expect_sql_error(joe.batch_execute(LOWER), "42501", "permission denied");
    client.batch_execute("GRANT EXECUTE ON FUNCTION keywright.lower_bound TO joe")?;
    expect_cause(joe.batch_execute(LOWER), Cause::Privilege, "lower_bound");
    let null = client.batch_execute("SELECT keywright.lower_bound(NULL)");
    expect_cause(null, Cause::ArgumentNull, "must not be null");
    let above = client.batch_execute("SELECT keywright.lower_bound('2040-01-01')");
    expect_cause(
        above,
        Cause::ArgumentOutOfRange,
        "no bound of this database",
    );
    client.batch_execute("BEGIN")?;
    client.batch_execute("SELECT keywright.set_worker_id(9)")?;
    let changed = client.batch_execute(LOWER);
    expect_cause(changed, Cause::IdentityUncommitted, "the worker id");
    client.batch_execute("ROLLBACK; BEGIN READ ONLY")?;
    let read_only = client.batch_execute(LOWER);
    expect_cause(read_only, Cause::ReadOnly, "read-only");
    client.batch_execute("ROLLBACK")?;
    assert!(ahead_s(&mut client)?[0] > YEAR_S);
    Ok(())
}
