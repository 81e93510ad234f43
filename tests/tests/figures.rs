//! What keywright.stats and keywright.tags say, against what was done; and how the step follows the load.

use keywright_testkit::{
    IdLog, Pending, PgServer, Result, SharedServer, WAIT_MAX, copy_ids, query_i64, wait_until,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

/// One figure of tag `orders`.
fn figure(client: &mut Client, name: &str) -> Result<i64> {
    let sql = format!("SELECT {name}::bigint FROM keywright.stats WHERE tag = 'orders'");
    Ok(query_i64(client, &sql)?)
}

fn take(client: &mut Client, count: usize, log: &IdLog) -> Result<i64> {
    let mut run = Vec::new();
    for _ in 0..count {
        run.push(query_i64(client, "SELECT next_biz_id('orders')")?);
    }
    let last = run.last().copied().unwrap_or(0);
    log.record(run);
    Ok(last)
}

#[test]
fn first_reservation_is_a_tenth_of_the_step() -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    let mut client = database.client()?;
    let log = IdLog::new();
    client.batch_execute("SELECT keywright.create_tag('orders', step => 1000)")?;
    let unused = client.query_one(
        "SELECT s.current_id, s.refills, t.reserved_to FROM keywright.stats s JOIN keywright.tags t USING (tag)",
        &[],
    )?;
    assert_eq!(unused.get::<_, Option<i64>>(0), None);
    assert_eq!(unused.get::<_, i64>(1), 0);
    assert_eq!(unused.get::<_, Option<i64>>(2), None);
    let reserved = "SELECT reserved_to FROM keywright.tags WHERE tag = 'orders'";
    assert_eq!(take(&mut client, 50, &log)?, 50);
    let mut other = database.client()?;
    assert_eq!(figure(&mut other, "current_id")?, 50);
    assert_eq!(figure(&mut other, "remaining")?, 50);
    assert_eq!(figure(&mut other, "refills")?, 1);
    assert_eq!(query_i64(&mut other, reserved)?, 100);
    // Half of it is gone: the next id asks for a full step, early, so that nobody waits.
    assert_eq!(take(&mut client, 1, &log)?, 51);
    assert_eq!(figure(&mut other, "remaining")?, 49 + 1000);
    assert_eq!(figure(&mut other, "step")?, 1000);
    assert_eq!(figure(&mut other, "refills")?, 2);
    assert_eq!(figure(&mut other, "waits")?, 0);
    assert_eq!(query_i64(&mut other, reserved)?, 1100);
    assert_eq!(take(&mut client, 1049, &log)?, 1100);
    assert_eq!(log.check()?.count, 1100);
    Ok(())
}

/// Nor does anybody wait who takes of several tags, or in several roles: it is not the tag used last, by the same role.
#[test]
fn tags_and_roles_in_turn_refill_early() -> Result<()> {
    const OTHER_TAG: &str = "SELECT next_biz_id('bills')";
    for turns in [[OTHER_TAG; 2], ["SET ROLE pg_monitor", "RESET ROLE"]] {
        let database = SERVER.database(PgServer::builder)?;
        let mut client = database.client()?;
        client.batch_execute(
            "SELECT keywright.create_tag('orders', step => 1000), keywright.create_tag('bills', step => 1000)",
        )?;
        let log = IdLog::new();
        for between in turns.iter().cycle().take(60) {
            take(&mut client, 1, &log)?;
            client.batch_execute(between)?;
        }
        // The first reservation had 100, and half of it is gone.
        assert_eq!(figure(&mut client, "remaining")?, 40 + 1000, "{turns:?}");
        assert_eq!(figure(&mut client, "refills")?, 2, "{turns:?}");
        log.check()?;
    }
    Ok(())
}

/// Of a reservation of 100 so many are left when the next one begins; what a tag says comes before the setting.
#[test]
fn a_tag_refills_when_it_is_told_to() -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders', step => 100, step_min => 100, step_max => 100)",
    )?;
    let log = IdLog::new();
    // A new tag begins with a part of its step.
    take(&mut client, 500, &log)?;
    let mut other = database.client()?;
    for (told, left) in [("", 50), ("90", 90), ("10", 10), ("0", 50)] {
        if !told.is_empty() {
            let alter =
                format!("keywright.alter_tag('orders', refill_threshold_percent => {told})");
            other.batch_execute(&format!("SELECT {alter}"))?;
        }
        // What is reserved was to be used as was told before.
        take(&mut client, 200, &log)?;
        let begun = figure(&mut client, "refills")?;
        while figure(&mut client, "refills")? == begun {
            take(&mut client, 1, &log)?;
        }
        let seen = figure(&mut client, "remaining")? - 100;
        assert!((left - 1..=left).contains(&seen), "{told}: {seen}");
    }
    let shown = "SELECT count(*) FROM keywright.tags WHERE refill_threshold_percent IS NULL";
    assert_eq!(query_i64(&mut client, shown)?, 1);
    log.check()?;
    Ok(())
}

#[test]
fn waits_are_counted_and_timed() -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('orders', step => 100)")?;
    let log = IdLog::new();
    take(&mut client, 1, &log)?;
    let mut holder = database.client()?;
    holder.batch_execute("BEGIN; ALTER SEQUENCE keywright.tag_1 OWNER TO postgres")?;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let many = "SELECT max(id) FROM next_biz_ids('orders', 500) id";
        waiting.push(Pending::start(database.client()?, many)?);
    }
    for pending in &waiting {
        pending.wait_until_waiting(&mut client)?;
    }
    holder.batch_execute("SELECT pg_sleep(0.3); ROLLBACK")?;
    let mut last = Vec::new();
    for pending in waiting {
        last.push(pending.finish()?.outcome?);
    }
    log.record_unordered(last);
    log.check()?;
    // One made the refill, the others waited for it.
    assert!(figure(&mut client, "waits")? >= 2);
    assert!(figure(&mut client, "wait_ms")? >= 2 * 300);
    Ok(())
}

#[test]
fn step_doubles_under_load_and_halves_when_idle() -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    let mut client = database.client_with("-c keywright.refill_cover_s=1")?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders', step => 100, step_min => 100, step_max => 1600)",
    )?;
    let log = IdLog::new();
    let mut run = Vec::new();
    let mut steps = Vec::new();
    for _ in 0..300 {
        copy_ids(&mut client, "SELECT next_biz_ids('orders', 50)", &mut run)?;
        let step = figure(&mut client, "step")?;
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    assert_eq!(steps, [100, 200, 400, 800, 1600]);
    // Now each reservation lasts more than twice what it should cover.
    for step in [800, 400] {
        let refills = figure(&mut client, "refills")?;
        let idle = "SELECT 1 FROM keywright.stats WHERE tag = 'orders' AND clock_timestamp() - last_refill > '2.1 s'";
        wait_until("a reservation that lasts long", WAIT_MAX, || {
            Ok(client.query_opt(idle, &[])?.is_some())
        })?;
        while figure(&mut client, "refills")? == refills {
            copy_ids(&mut client, "SELECT next_biz_ids('orders', 50)", &mut run)?;
        }
        assert_eq!(figure(&mut client, "step")?, step);
    }
    log.record(run);
    println!("{:?}", log.check()?);
    Ok(())
}

#[test]
fn figures_of_snowflakes_tell_what_was_issued() -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    let mut client = database.client()?;
    let log = IdLog::new();
    let mut run = Vec::new();
    for _ in 0..10 {
        run.push(query_i64(&mut client, "SELECT snowflake_id()")?);
    }
    copy_ids(&mut client, "SELECT snowflake_ids(100)", &mut run)?;
    let last = run.last().copied().unwrap_or(0);
    log.record(run);
    let mut other = database.client()?;
    let row = other.query_one(
        "SELECT worker_id, layout, current_id, issued, bound > clock_timestamp(), lead_ms, suspended, refills,
                last_refill BETWEEN clock_timestamp() - interval '1 min' AND clock_timestamp() + interval '1 min',
                bound = (SELECT to_timestamp(last_value / 1000.0) FROM keywright.snowflake_bound)
         FROM keywright.stats WHERE kind = 'snowflake'",
        &[],
    )?;
    let name = database.name().trim_start_matches("test_");
    assert_eq!(row.get::<_, i32>(0).to_string(), name);
    assert_eq!(row.get::<_, &str>(1), "twitter");
    assert_eq!(row.get::<_, i64>(2), last);
    assert_eq!(row.get::<_, i64>(3), 110);
    assert!(row.get::<_, bool>(4));
    // Without a record the first id lies one lead (10 s) ahead.
    let lead_ms: i64 = row.get(5);
    assert!((0..=10_100).contains(&lead_ms), "{lead_ms}");
    assert!(!row.get::<_, bool>(6));
    assert!(row.get::<_, i64>(7) >= 1);
    assert!(row.get::<_, bool>(8));
    assert!(row.get::<_, bool>(9));
    assert_eq!(log.check()?.count, 110);
    Ok(())
}

#[test]
fn database_without_worker_id_is_shown_as_suspended() -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    let mut admin = database.client()?;
    admin.batch_execute("CREATE DATABASE nobody")?;
    let mut client = database.server().client("nobody")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    let suspended = "SELECT count(*) FROM keywright.stats WHERE kind = 'snowflake' AND suspended AND worker_id IS NULL";
    assert_eq!(query_i64(&mut client, suspended)?, 1);
    client.batch_execute("SELECT keywright.set_worker_id(800)")?;
    assert_eq!(query_i64(&mut client, suspended)?, 0);
    assert!(query_i64(&mut client, "SELECT snowflake_id()")? > 0);
    Ok(())
}
