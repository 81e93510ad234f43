//! Schedules that once issued an id twice, or could have: each failed before it was mended.

use keywright_testkit::{
    IdLog, Pending, PgServer, Replication, Result, Stop, WAIT_MAX, draw, expect_sql_error,
    query_i64, wait_until,
};
use postgres::{Client, NoTls};

/// Twitter's bits with the zero time 20 s earlier: it comes to the same ids 20 s before twitter does.
const EARLIER: &str = "time=41,worker=10,sequence=12,epoch=1288834954657,tick=1ms";

fn set_up(server: &PgServer, worker_id: u32) -> Result<Client> {
    set_up_in(server, "postgres", worker_id)
}

fn set_up_in(server: &PgServer, database: &str, worker_id: u32) -> Result<Client> {
    let mut client = server.client(database)?;
    client.batch_execute(&format!(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id({worker_id}); CREATE TABLE touched (x int)"
    ))?;
    Ok(client)
}

/// Statements that each want a transaction of their own.
fn each(client: &mut Client, statements: &str) -> Result<()> {
    for statement in statements.split("; ") {
        client.batch_execute(statement)?;
    }
    Ok(())
}

#[test]
fn tag_created_again_after_a_rollback_has_a_bound_of_its_own() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let log = IdLog::new();
    let ids = "SELECT next_biz_id('x') FROM generate_series(1, 5)";
    let mut client = set_up(&server, 1)?;
    client.batch_execute("BEGIN; SELECT keywright.create_tag('x')")?;
    draw(&mut client, ids, &log)?;
    client.batch_execute("ROLLBACK; BEGIN; SAVEPOINT a; SELECT keywright.create_tag('x')")?;
    draw(&mut client, ids, &log)?;
    client.batch_execute("ROLLBACK TO a; SELECT keywright.create_tag('x')")?;
    draw(&mut client, ids, &log)?;
    client.batch_execute("COMMIT")?;
    draw(&mut client, ids, &log)?;
    server.restart(Stop::Immediate)?;
    draw(&mut server.client("postgres")?, ids, &log)?;
    log.check()?;
    Ok(())
}

#[test]
fn old_snapshot_does_not_hide_a_changed_layout() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .setting("keywright.lead_ms_max", "100")
        .start()?;
    let mut old = set_up(&server, 1)?;
    let mut new = server.client("postgres")?;
    query_i64(&mut old, "SELECT snowflake_id()")?;
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO touched VALUES (1)")?;
    new.batch_execute(&format!("SELECT keywright.set_layout('{EARLIER}')"))?;
    let first_new = query_i64(&mut new, "SELECT snowflake_id()")?;
    // The window that was reserved under the old layout passes; then the layout is looked up again.
    for _ in 0..3 {
        old.batch_execute("SELECT pg_sleep(0.11)")?;
        let id = query_i64(&mut old, "SELECT snowflake_id()")?;
        assert!(
            id < first_new || id >> 22 >= (first_new >> 22),
            "{id} is of the old layout, after {first_new} of the new one"
        );
    }
    let id = query_i64(&mut old, "SELECT snowflake_id()")?;
    assert!(id > first_new, "the session still uses the old layout");
    Ok(())
}

#[test]
fn old_snapshot_does_not_hide_who_has_a_worker_id() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut one = server.client("postgres")?;
    one.batch_execute("CREATE DATABASE two")?;
    one.batch_execute("CREATE EXTENSION keywright")?;
    let mut two = server.client("two")?;
    two.batch_execute("CREATE EXTENSION keywright; CREATE TABLE touched (x int)")?;
    two.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO touched VALUES (1)")?;
    one.batch_execute("SELECT keywright.set_worker_id(1)")?;
    expect_sql_error(
        two.batch_execute("SELECT keywright.set_worker_id(1)"),
        "55006",
        "worker id 1 belongs to database \"postgres\"",
    );
    Ok(())
}

#[test]
fn layout_of_an_open_transaction_is_nobody_elses_and_stops_the_old_one() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .setting("keywright.lead_ms_max", "100")
        .start()?;
    let mut changer = set_up(&server, 1)?;
    let mut other = server.client("postgres")?;
    let log = IdLog::new();
    changer.batch_execute("SELECT snowflake_id()")?;
    changer.batch_execute(&format!("BEGIN; SELECT keywright.set_layout('{EARLIER}')"))?;
    draw(&mut other, "SELECT snowflake_id()", &log)?;
    other.batch_execute("SET keywright.refill_wait_ms_max = 200")?;
    // More than what is reserved already.
    expect_sql_error(
        other.batch_execute("SELECT count(snowflake_id()) FROM generate_series(1, 5000000)"),
        "55P03",
        "waiting for the snowflake bound",
    );
    changer.batch_execute("COMMIT")?;
    draw(
        &mut other,
        "SELECT snowflake_id() FROM generate_series(1, 2000)",
        &log,
    )?;
    log.check()?;
    Ok(())
}

/// Who gives up a worker id notes its bound as the last: a session that waited for that bound meanwhile must not extend it
/// after all, for a third one that has not heard of the change.
#[test]
fn bound_of_a_worker_id_that_was_given_up_is_not_extended() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .start()?;
    let log = IdLog::new();
    let mut changer = set_up(&server, 1)?;
    let mut observer = server.client("postgres")?;
    let mut reader = server.client("postgres")?;
    let mut run = Vec::new();
    // Its first id comes out of a bound that another extended: else its own locks would keep the worker id from changing.
    wait_until("an id without an extension", WAIT_MAX, || {
        query_i64(&mut observer, "SELECT snowflake_id()")?;
        reader.batch_execute(
            "ROLLBACK; BEGIN; DECLARE ids CURSOR FOR SELECT snowflake_id() FROM generate_series(1, 2)",
        )?;
        run.push(query_i64(&mut reader, "FETCH ids")?);
        let locks = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'RowExclusiveLock'";
        Ok(query_i64(&mut reader, locks)? == 0)
    })?;
    changer.batch_execute("BEGIN; SELECT keywright.set_worker_id(2)")?;
    let waiting = Pending::start(
        server.client("postgres")?,
        "SELECT count(snowflake_id()) FROM generate_series(1, 500000)",
    )?;
    waiting.wait_until_waiting(&mut observer)?;
    changer.batch_execute("COMMIT")?;
    waiting.finish()?.outcome?;
    run.push(query_i64(&mut reader, "FETCH ids")?);
    reader.batch_execute("COMMIT")?;
    run.push(query_i64(&mut reader, "SELECT snowflake_id()")?);
    log.record(run);
    log.check()?;
    Ok(())
}

#[test]
fn worker_id_that_moves_over_a_restart_starts_above_its_lead() -> Result<()> {
    // Four ids per millisecond: a burst runs ahead of the clock at once.
    let layout = "time=41,worker=5,sequence=2,epoch=2025-01-01,tick=1ms";
    let mut server = PgServer::builder().start()?;
    let log = IdLog::new();
    let mut one = server.client("postgres")?;
    one.batch_execute("CREATE DATABASE two")?;
    let mut two = server.client("two")?;
    for (client, worker_id) in [(&mut one, 1), (&mut two, 5)] {
        client.batch_execute(&format!(
            "CREATE EXTENSION keywright; SELECT keywright.set_layout('{layout}'); SELECT keywright.set_worker_id({worker_id})"
        ))?;
    }
    let burst = "SELECT snowflake_id() FROM generate_series(1, 30000)";
    draw(&mut two, "SELECT snowflake_id()", &log)?;
    draw(&mut one, burst, &log)?;
    one.batch_execute("SELECT keywright.set_worker_id(2)")?;
    server.restart(Stop::Immediate)?;
    let mut two = server.client("two")?;
    two.batch_execute("SELECT keywright.set_worker_id(1)")?;
    draw(&mut two, burst, &log)?;
    log.check()?;
    Ok(())
}

#[test]
fn worker_id_of_a_dropped_database_starts_above_its_ids() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let log = IdLog::new();
    let mut keeper = set_up(&server, 1)?;
    keeper.batch_execute("CREATE DATABASE two")?;
    let mut two = set_up_in(&server, "two", 5)?;
    let burst = "SELECT snowflake_id() FROM generate_series(1, 30000)";
    draw(&mut two, burst, &log)?;
    drop(two);
    each(&mut keeper, "DROP DATABASE two; CREATE DATABASE three")?;
    server.restart(Stop::Immediate)?;
    server.clock()?.step_to(-60)?;
    let mut three = set_up_in(&server, "three", 5)?;
    draw(&mut three, burst, &log)?;
    log.check()?;
    Ok(())
}

#[test]
fn worker_id_of_a_dropped_database_that_left_no_trace_is_not_given_away() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let log = IdLog::new();
    let mut keeper = set_up(&server, 1)?;
    each(
        &mut keeper,
        "CREATE DATABASE two; CREATE DATABASE three; CREATE DATABASE idle",
    )?;
    let ids = "SELECT snowflake_id() FROM generate_series(1, 5000)";
    draw(&mut set_up_in(&server, "two", 5)?, ids, &log)?;
    server.restart(Stop::Immediate)?;
    server.clock()?.step_to(-60)?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("DROP DATABASE two")?;
    let mut three = server.client("three")?;
    three.batch_execute("CREATE EXTENSION keywright")?;
    let refusal = expect_sql_error(
        three.batch_execute("SELECT keywright.set_worker_id(5)"),
        "55006",
        "worker id 5 belonged to a database that was dropped",
    );
    assert!(refusal.hint.contains("above =>"), "{refusal:?}");
    three.batch_execute(
        "SELECT keywright.set_worker_id(5, above => now() + interval '2 minutes')",
    )?;
    draw(&mut three, ids, &log)?;
    log.check()?;
    // One that never issued and was given its number since the server started is known to have used nothing.
    drop(set_up_in(&server, "idle", 6)?);
    each(&mut keeper, "DROP DATABASE idle; CREATE DATABASE four")?;
    draw(&mut set_up_in(&server, "four", 6)?, ids, &log)?;
    log.check()?;
    Ok(())
}

#[test]
fn register_of_worker_ids_is_not_wiped_by_a_label() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = set_up(&server, 1)?;
    for label in ["NULL", "''", "'1:1:left:-'"] {
        expect_sql_error(
            client.batch_execute(&format!(
                "SECURITY LABEL FOR keywright ON TABLESPACE pg_default IS {label}"
            )),
            "55006",
            "a worker id or readable bucket is not given by a security label",
        );
    }
    Ok(())
}

#[test]
fn worker_id_is_not_forged_by_a_label() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut admin = set_up(&server, 1)?;
    admin.batch_execute("CREATE ROLE dbo LOGIN")?;
    admin.batch_execute("CREATE DATABASE two OWNER dbo")?;
    let system = query_i64(
        &mut admin,
        "SELECT system_identifier FROM pg_control_system()",
    )?;
    let two = query_i64(
        &mut admin,
        "SELECT oid::bigint FROM pg_database WHERE datname = 'two'",
    )?;
    let mut owner = server.config("postgres", "dbo").connect(NoTls)?;
    for worker in ["1", "01"] {
        expect_sql_error(
            owner.batch_execute(&format!(
                "SECURITY LABEL FOR keywright ON DATABASE two IS 'worker={worker} system={system} database={two}'"
            )),
            "55006",
            "a worker id or readable bucket is not given by a security label",
        );
    }
    Ok(())
}

#[test]
fn standby_that_never_heard_of_a_first_refill_leaves_a_gap() -> Result<()> {
    let mut primary = PgServer::builder().start()?;
    let log = IdLog::new();
    let mut client = set_up(&primary, 1)?;
    client.batch_execute("SELECT keywright.create_tag('fresh')")?;
    let mut standby = primary.standby("behind", Replication::Asynchronous)?;
    primary.wait_replayed(&standby)?;
    standby.stop(Stop::Fast)?;
    let ids = "SELECT next_biz_id('fresh') FROM generate_series(1, 500)";
    draw(&mut client, ids, &log)?;
    drop(client);
    primary.kill9()?;
    standby.start()?;
    standby.promote()?;
    draw(&mut standby.client("postgres")?, ids, &log)?;
    log.check()?;
    Ok(())
}

#[test]
fn waits_that_fail_do_not_push_the_bound_ahead() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = set_up(&server, 1)?;
    client.batch_execute("SELECT keywright.create_tag('t')")?;
    server
        .client("postgres")?
        .batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")?;
    // Commits wait from the moment at which the checkpointer has read the setting, which no session shows.
    let mut writer = server.client("postgres")?;
    std::thread::spawn(move || {
        while writer
            .batch_execute("INSERT INTO touched VALUES (1)")
            .is_ok()
        {}
    });
    let mut impatient = server.client("postgres")?;
    impatient.batch_execute("SET synchronous_commit = local; SELECT pg_reload_conf(); SET keywright.refill_wait_ms_max = 1")?;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    wait_until("a commit that waits for the standby", WAIT_MAX, || {
        Ok(query_i64(&mut impatient, waiting)? > 0)
    })?;
    for _ in 0..50 {
        for call in ["snowflake_id()", "next_biz_id('t')"] {
            expect_sql_error(
                impatient.batch_execute(&format!("SELECT {call}")),
                "55P03",
                "timed out",
            );
        }
    }
    let ahead_ms = query_i64(
        &mut client,
        "SELECT last_value - (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM keywright.snowflake_bound",
    )?;
    assert!(ahead_ms < 60_000, "the bound lies {ahead_ms} ms ahead");
    let reserved = query_i64(
        &mut client,
        "SELECT reserved_to FROM keywright.tags WHERE tag = 't'",
    )?;
    assert!(reserved < 5_000, "{reserved} ids are gone");
    Ok(())
}

#[test]
fn dropped_tag_comes_back_at_the_start_it_is_given() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = set_up(&server, 1)?;
    client.batch_execute("SELECT keywright.create_tag('r'), next_biz_id('r')")?;
    client.batch_execute("SELECT keywright.drop_tag('r')")?;
    client.batch_execute("SELECT keywright.create_tag('r', start => 1000000)")?;
    assert_eq!(
        query_i64(&mut client, "SELECT next_biz_id('r')")?,
        1_000_000
    );
    Ok(())
}
