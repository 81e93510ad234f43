//! Locks on keywright's tables and sequences, held by transactions that do not end: others get ids, or the documented
//! error in time; nobody hangs, and no error comes while ids are left.

mod common;

use std::time::{Duration, Instant};

use common::{builder_for_many, tag_database};
use keywright_testkit::{
    IdLog, Pending, Result, SharedServer, TestDatabase, WAIT_MAX, copy_ids, expect_sql_error,
    query_i64, wait_until,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

/// For a refill; the sessions of these tests say so themselves.
const WAIT_MS: u64 = 400;
const SESSION: &str = "-c keywright.refill_wait_ms_max=400";
/// `WAIT_MS`, and what a busy machine adds.
const IN_TIME: Duration = Duration::from_secs(30);

const TAG_ID: &str = "SELECT next_biz_id('orders')";

fn database() -> Result<TestDatabase> {
    tag_database(&SERVER)
}

/// Ids of `orders` that can be had without a refill.
fn remaining(client: &mut Client) -> Result<i64> {
    Ok(query_i64(
        client,
        "SELECT remaining FROM keywright.stats WHERE tag = 'orders'",
    )?)
}

fn take(client: &mut Client, count: i64, log: &IdLog) -> Result<()> {
    let mut run = Vec::new();
    for _ in 0..count {
        run.push(query_i64(client, TAG_ID)?);
    }
    log.record(run);
    Ok(())
}

/// A transaction that holds what `statement` locks until it is dropped or ended: an idle one, or a prepared one.
struct Holder {
    client: Client,
    prepared: Option<String>,
}

impl Holder {
    fn begin(database: &TestDatabase, statement: &str, prepare: bool) -> Result<Holder> {
        let mut client = database.client()?;
        client.batch_execute("BEGIN")?;
        client.batch_execute(statement)?;
        let prepared = prepare.then(|| format!("holder of {}", database.name()));
        if let Some(name) = &prepared {
            client.batch_execute(&format!("PREPARE TRANSACTION '{name}'"))?;
        }
        Ok(Holder { client, prepared })
    }

    fn end(mut self, how: &str) -> Result<()> {
        let prepared = self.prepared.map(|name| format!(" PREPARED '{name}'"));
        let sql = format!("{how}{}", prepared.unwrap_or_default());
        Ok(self.client.batch_execute(&sql)?)
    }
}

/// Runs `try_it` while an idle, then while a prepared transaction holds the lock that `statement` takes.
fn while_held(
    statement: &str,
    try_it: impl Fn(&TestDatabase, &IdLog, Holder) -> Result<()>,
) -> Result<()> {
    for prepare in [false, true] {
        let database = database()?;
        let log = IdLog::new();
        // The first reservation is short; the next is a full one.
        take(&mut database.client()?, 20, &log)?;
        let holder = Holder::begin(&database, statement, prepare)?;
        try_it(&database, &log, holder)?;
        take(&mut database.client()?, 250, &log)?;
        assert_eq!(log.check()?.count, log.count());
    }
    Ok(())
}

/// Takes every id that is left, then asks for one that needs a refill: refused in time, with the documented error.
fn drain_then_time_out(database: &TestDatabase, log: &IdLog) -> Result<()> {
    let mut client = database.client_with(SESSION)?;
    let left = remaining(&mut client)?;
    assert!(left > 0);
    take(&mut client, left, log)?;
    let answer = Pending::start(client, TAG_ID)?.finish()?;
    let error = expect_sql_error(answer.outcome, "55P03", "tag \"orders\"");
    assert!(error.detail.contains("holds a lock"), "{error:?}");
    assert!(
        error.hint.contains("keywright.refill_wait_ms_max"),
        "{error:?}"
    );
    assert!(
        answer.took >= Duration::from_millis(WAIT_MS),
        "{:?}",
        answer.took
    );
    assert!(answer.took < IN_TIME, "{:?}", answer.took);
    Ok(())
}

#[test]
fn locked_sequence_of_a_tag_delays_only_refills() -> Result<()> {
    for sequence in ["tag_1", "tag_1_note"] {
        let lock = format!("ALTER SEQUENCE keywright.{sequence} OWNER TO postgres");
        while_held(&lock, |database, log, holder| {
            drain_then_time_out(database, log)?;
            holder.end("ROLLBACK")
        })?;
    }
    Ok(())
}

#[test]
fn locked_table_of_tags_stops_only_who_must_read_it() -> Result<()> {
    let lock = "LOCK TABLE keywright.tag IN ACCESS EXCLUSIVE MODE";
    for prepare in [false, true] {
        let database = database()?;
        let log = IdLog::new();
        let mut knows = database.client_with(SESSION)?;
        take(&mut knows, 20, &log)?;
        let holder = Holder::begin(&database, lock, prepare)?;
        // Refills included: this session has read the definition.
        take(&mut knows, 350, &log)?;
        let answer = Pending::start(database.client_with(SESSION)?, TAG_ID)?.finish()?;
        expect_sql_error(answer.outcome, "55P03", "keywright's own tables");
        assert!(answer.took < IN_TIME, "{:?}", answer.took);
        holder.end("ROLLBACK")?;
        take(&mut database.client()?, 150, &log)?;
        assert_eq!(log.check()?.count, 520);
    }
    Ok(())
}

#[test]
fn rebuilt_index_of_tags_does_not_hang_who_must_read_it() -> Result<()> {
    while_held("REINDEX TABLE keywright.tag", |database, _, holder| {
        let answer = Pending::start(database.client_with(SESSION)?, TAG_ID)?.finish()?;
        expect_sql_error(answer.outcome, "55P03", "keywright's own tables");
        assert!(answer.took < IN_TIME, "{:?}", answer.took);
        holder.end("ROLLBACK")
    })
}

/// The bound of snowflake ids, unix milliseconds.
fn bound_ms(client: &mut Client) -> Result<i64> {
    let bound = "SELECT ceil(extract(epoch FROM bound) * 1000)::bigint FROM keywright.stats WHERE kind = 'snowflake'";
    Ok(query_i64(client, bound)?)
}

/// Milliseconds until that moment, negative once it has passed.
fn left_ms(client: &mut Client, moment_ms: i64) -> Result<i64> {
    let sql =
        format!("SELECT {moment_ms} - floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    Ok(query_i64(client, &sql)?)
}

fn wait_for(client: &mut Client, moment_ms: i64) -> Result<()> {
    wait_until("the clock to reach the bound", WAIT_MAX, || {
        Ok(left_ms(client, moment_ms)? < 0)
    })
}

/// Asks for snowflake ids until the bound is nearly reached: each must come, and at once.
fn snowflakes_up_to(client: &mut Client, bound_ms: i64, log: &IdLog) -> Result<()> {
    let mut run = Vec::new();
    while left_ms(client, bound_ms)? > 100 {
        let began = Instant::now();
        match query_i64(client, "SELECT snowflake_id()") {
            Ok(id) => run.push(id),
            // The machine stood still, and it was asked behind the bound.
            Err(_) if left_ms(client, bound_ms)? < 0 => break,
            Err(error) => return Err(error.into()),
        }
        // Whoever waits for the lock gets an error.
        let took = began.elapsed();
        assert!(took < IN_TIME, "{took:?}");
    }
    assert!(!run.is_empty());
    log.record(run);
    Ok(())
}

fn locked_bound_delays_only_its_extension(lock: &str, prepare: bool) -> Result<()> {
    let database = database()?;
    let log = IdLog::new();
    let short = "-c keywright.bound_window_ms=1200 -c keywright.lead_ms_max=1300";
    let mut client = database.client_with(&format!("{SESSION} {short}"))?;
    let mut observer = database.client()?;
    log.record(vec![query_i64(&mut client, "SELECT snowflake_id()")?]);
    // The first ids lie ahead of the clock; from here on the clock uses the window up.
    let first_bound_ms = bound_ms(&mut observer)?;
    wait_for(&mut observer, first_bound_ms)?;
    log.record(vec![query_i64(&mut client, "SELECT snowflake_id()")?]);
    let bound_ms = bound_ms(&mut observer)?;
    let holder = Holder::begin(&database, lock, prepare)?;
    snowflakes_up_to(&mut client, bound_ms, &log)?;
    wait_for(&mut observer, bound_ms)?;
    let answer = Pending::start(client, "SELECT snowflake_id()")?.finish()?;
    expect_sql_error(answer.outcome, "55P03", "timed out after 400 ms");
    assert!(answer.took < IN_TIME, "{:?}", answer.took);
    holder.end("ROLLBACK")?;
    let mut client = answer.client;
    log.record(vec![query_i64(&mut client, "SELECT snowflake_id()")?]);
    assert_eq!(log.check()?.count, log.count());
    Ok(())
}

#[test]
fn locked_bound_of_snowflakes_delays_only_its_extension() -> Result<()> {
    for lock in [
        "ALTER SEQUENCE keywright.snowflake_bound OWNER TO postgres",
        "LOCK TABLE keywright.node IN ACCESS EXCLUSIVE MODE",
        "SELECT keywright.set_layout('leaf')",
        "SELECT keywright.set_worker_id(900)",
    ] {
        for prepare in [false, true] {
            locked_bound_delays_only_its_extension(lock, prepare)?;
        }
    }
    Ok(())
}

/// A new session and one that knows everything take tag and snowflake ids, far enough for refills.
fn others_get_ids(database: &TestDatabase, knows: &mut Client, log: &[IdLog; 2]) -> Result<()> {
    let [tag, snowflake] = log;
    let began = Instant::now();
    for client in [&mut database.client_with(SESSION)?, knows] {
        take(client, 130, tag)?;
        let mut run = Vec::new();
        copy_ids(client, "SELECT snowflake_ids(5000)", &mut run)?;
        snowflake.record(run);
    }
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    Ok(())
}

/// Others go on while a change is not committed, and after it was rolled back, as if it had never been.
fn uncommitted_change_stops_nobody(change: &str, prepare: bool) -> Result<()> {
    let database = database()?;
    let logs = [IdLog::new(), IdLog::new()];
    let mut knows = database.client_with(SESSION)?;
    others_get_ids(&database, &mut knows, &logs)?;
    let holder = Holder::begin(&database, change, prepare)?;
    others_get_ids(&database, &mut knows, &logs)?;
    holder.end("ROLLBACK")?;
    others_get_ids(&database, &mut knows, &logs)?;
    for log in &logs {
        assert_eq!(log.check()?.count, log.count(), "{change}");
    }
    Ok(())
}

#[test]
fn uncommitted_changes_of_tags_stop_nobody() -> Result<()> {
    for change in [
        "SELECT keywright.alter_tag('orders', step => 50, step_min => 50)",
        "SELECT keywright.drop_tag('orders')",
        "SELECT keywright.revoke_tag('orders', 'public')",
        "SELECT keywright.advance_tag('orders', 5000)",
        "SELECT keywright.create_tag('other')",
        "SELECT next_biz_ids('orders', 1000), snowflake_ids(1000)",
    ] {
        for prepare in [false, true] {
            uncommitted_change_stops_nobody(change, prepare)?;
        }
    }
    Ok(())
}

#[test]
fn uncommitted_changes_of_identity_stop_nobody() -> Result<()> {
    let unlabel = "DO $$ BEGIN EXECUTE format('SECURITY LABEL FOR keywright ON DATABASE %I IS NULL', current_database()); END $$";
    for prepare in [false, true] {
        uncommitted_change_stops_nobody(unlabel, prepare)?;
    }
    Ok(())
}

#[test]
fn worker_id_being_set_delays_only_who_sets_one() -> Result<()> {
    let database = database()?;
    let other = SERVER.database(builder_for_many)?;
    let holder = Holder::begin(&database, "SELECT keywright.set_worker_id(901)", true)?;
    let set = "SELECT 1::bigint FROM keywright.set_worker_id(902)";
    let answer = Pending::start(other.client_with(SESSION)?, set)?.finish()?;
    let error = expect_sql_error(
        answer.outcome,
        "55P03",
        "another transaction that sets a worker id",
    );
    let prepared = format!(
        "Prepared transaction \"holder of {}\" has it.",
        database.name()
    );
    assert_eq!(error.detail, prepared);
    assert!(answer.took < IN_TIME, "{:?}", answer.took);
    holder.end("COMMIT")?;
    let mut client = other.client()?;
    let taken = query_i64(
        &mut client,
        "SELECT 1::bigint FROM keywright.set_worker_id(901)",
    );
    expect_sql_error(taken, "55006", "worker id 901 belongs to database");
    query_i64(&mut client, set)?;
    let worker = "SELECT snowflake_worker(snowflake_id())::bigint";
    assert_eq!(query_i64(&mut client, worker)?, 902);
    assert_eq!(query_i64(&mut database.client()?, worker)?, 901);
    Ok(())
}

/// What keywright keeps of a database is one row: who sets something else of it waits as long as a refill, and nobody finds it made twice.
#[test]
fn snowflake_source_being_set_delays_others_no_longer_than_a_refill() -> Result<()> {
    let database = database()?;
    let source = "SELECT 1::bigint FROM keywright.set_snowflake_source('native')";
    let zone = "SELECT 1::bigint FROM keywright.set_readable_zone('UTC')";
    let holder = Holder::begin(&database, source, false)?;
    for set in [source, zone] {
        let answer = Pending::start(database.client_with(SESSION)?, set)?.finish()?;
        expect_sql_error(
            answer.outcome,
            "55P03",
            "another transaction that sets a worker id",
        );
        assert!(answer.took < IN_TIME, "{:?}", answer.took);
    }
    holder.end("COMMIT")?;
    let mut client = database.client()?;
    for set in [source, zone] {
        query_i64(&mut client, set)?;
    }
    Ok(())
}

/// Whoever has drawn in an open transaction keeps the tag's bound until it ends.
#[test]
fn a_tag_that_begins_anew_waits_no_longer_than_a_refill() -> Result<()> {
    let database = database()?;
    let holder = Holder::begin(&database, "SELECT next_biz_ids('orders', 5000)", false)?;
    let mut client = database.client_with(SESSION)?;
    client.batch_execute("SELECT keywright.drop_tag('orders')")?;
    let anew = "SELECT 1::bigint FROM keywright.create_tag('orders', forget_issued => true)";
    let answer = Pending::start(database.client_with(SESSION)?, anew)?.finish()?;
    let error = expect_sql_error(answer.outcome, "55P03", "waiting for tag \"orders\"");
    assert!(error.detail.contains("holds a lock on tag_1"), "{error:?}");
    assert!(answer.took < IN_TIME, "{:?}", answer.took);
    holder.end("COMMIT")?;
    query_i64(&mut client, anew)?;
    assert_eq!(query_i64(&mut client, TAG_ID)?, 1);
    Ok(())
}

#[test]
fn blocked_tag_does_not_stop_others() -> Result<()> {
    let database = database()?;
    let mut other = database.client_with(SESSION)?;
    other.batch_execute("SELECT keywright.create_tag('bills', step => 10, step_max => 10)")?;
    let holder = Holder::begin(
        &database,
        "ALTER SEQUENCE keywright.tag_1 OWNER TO postgres",
        false,
    )?;
    let blocked = Pending::start(
        database.client()?,
        "SELECT max(id) FROM next_biz_ids('orders', 1000) id",
    )?;
    blocked.wait_until_waiting(&mut other)?;
    let log = IdLog::new();
    let mut run = Vec::new();
    for _ in 0..50 {
        copy_ids(&mut other, "SELECT next_biz_ids('bills', 7)", &mut run)?;
    }
    log.record(run);
    assert_eq!(log.check()?.count, 350);
    holder.end("ROLLBACK")?;
    assert_eq!(blocked.finish()?.outcome?, 1000);
    Ok(())
}
