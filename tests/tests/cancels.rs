//! Waits for a refill that are cancelled, timed out or terminated: they end at once, show a wait event while they last, and
//! leave nothing shut for others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use keywright_testkit::{
    IdLog, Load, Pending, PgServer, Result, SharedServer, expect_sql_error, query_i64,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

/// What a busy machine may need for what takes no time.
const IN_TIME: Duration = Duration::from_secs(30);

const TAG_ID: &str = "SELECT next_biz_id('orders')";

fn take(client: &mut Client, count: usize, log: &IdLog) -> Result<()> {
    let mut run = Vec::new();
    for _ in 0..count {
        run.push(query_i64(client, TAG_ID)?);
    }
    log.record(run);
    Ok(())
}

/// Two sessions wait for a refill that a lock prevents: one holds the gate, one waits for it. However the wait of both
/// ends, the gate is free when the lock is.
fn waiters_end(
    how: impl Fn(&mut Client, &Pending) -> Result<()>,
    session: &str,
    sqlstate: &str,
) -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    database
        .client()?
        .batch_execute("SELECT keywright.create_tag('orders')")?;
    let log = IdLog::new();
    let mut observer = database.client()?;
    take(&mut observer, 20, &log)?;
    let mut holder = database.client()?;
    holder.batch_execute("BEGIN; ALTER SEQUENCE keywright.tag_1 OWNER TO postgres")?;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let many = "SELECT max(id) FROM next_biz_ids('orders', 1000) id";
        waiting.push(Pending::start(database.client_with(session)?, many)?);
    }
    for pending in &waiting {
        pending.wait_until_waiting(&mut observer)?;
        how(&mut observer, pending)?;
    }
    for pending in waiting {
        let answer = pending.finish()?;
        assert!(answer.took < IN_TIME, "{:?}", answer.took);
        // The last word of a terminated session may be lost with its connection.
        let lost = matches!(&answer.outcome, Err(error) if error.is_closed());
        if !(lost && sqlstate == "57P01") {
            expect_sql_error(answer.outcome, sqlstate, "");
        }
    }
    holder.batch_execute("ROLLBACK")?;
    let began = Instant::now();
    take(&mut observer, 250, &log)?;
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    assert_eq!(log.check()?.count, 270);
    Ok(())
}

#[test]
fn cancelled_waits_leave_the_gate_free() -> Result<()> {
    let nothing = |_: &mut Client, _: &Pending| Ok(());
    let cancel = |observer: &mut Client, pending: &Pending| {
        observer.execute("SELECT pg_cancel_backend($1)", &[&pending.pid()])?;
        Ok(())
    };
    let terminate = |observer: &mut Client, pending: &Pending| {
        observer.execute("SELECT pg_terminate_backend($1)", &[&pending.pid()])?;
        Ok(())
    };
    waiters_end(cancel, "-c keywright.refill_wait_ms_max=60000", "57014")?;
    waiters_end(
        nothing,
        "-c statement_timeout=8000 -c keywright.refill_wait_ms_max=60000",
        "57014",
    )?;
    waiters_end(terminate, "-c keywright.refill_wait_ms_max=60000", "57P01")
}

#[test]
fn storm_of_cancels_leaves_no_gate_shut() -> Result<()> {
    let database = SERVER.database(PgServer::builder)?;
    let mut observer = database.client()?;
    observer.batch_execute("SELECT keywright.create_tag('orders', step => 1, step_max => 1)")?;
    let log = Arc::new(IdLog::new());
    let load = Load::start(&database.config(), 16, TAG_ID, &log);
    let others = "SELECT count(pg_cancel_backend(pid)) FILTER (WHERE random() < 0.4)
                       + count(pg_terminate_backend(pid)) FILTER (WHERE random() < 0.02)
                  FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let mut sent = 0;
    while sent < 3000 {
        sent += query_i64(&mut observer, others)?;
    }
    load.wait_for(200)?;
    let refusals = load.stop()?;
    let only_cancelled: Vec<_> = refusals
        .keys()
        .filter(|sqlstate| *sqlstate != "57014")
        .collect();
    assert!(only_cancelled.is_empty(), "{refusals:?}");
    assert!(refusals.contains_key("57014"), "{refusals:?}");
    let began = Instant::now();
    take(&mut observer, 10, &log)?;
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    println!("{} ids through {sent} cancels", log.check()?.count);
    Ok(())
}
