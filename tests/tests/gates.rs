//! Whoever waits for a lock on keywright's sequences keeps nobody else waiting who holds it: no two transactions wait for each
//! other until one gives up, and who gives up is told whom it waited for.

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{expect_cause, tag_database};
use keywright_core::cause::Cause;
use keywright_testkit::{
    Pending, Result, SharedServer, SqlError, TestDatabase, WAIT_MAX, query_i64, wait_until,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

const SNOWFLAKE: &str = "SELECT snowflake_id()";
/// More than any reservation of tag `orders` holds.
const MANY: &str = "SELECT max(id) FROM next_biz_ids('orders', 1000) id";
const LOCK_BOUND: &str = "ALTER SEQUENCE keywright.snowflake_bound OWNER TO postgres";
const LOCK_TAG: &str = "ALTER SEQUENCE keywright.tag_1 OWNER TO postgres";
/// Less than keywright.refill_wait_ms_max, after which whoever waits gives up.
const AT_ONCE: Duration = Duration::from_secs(9);
const SHORT_WAIT: &str = "-c keywright.refill_wait_ms_max=400";

fn database() -> Result<TestDatabase> {
    tag_database(&SERVER)
}

/// A transaction that has locked something and is idle.
fn holder(database: &TestDatabase, lock: &str) -> Result<Client> {
    let mut client = database.client()?;
    client.batch_execute("BEGIN")?;
    client.batch_execute(lock)?;
    Ok(client)
}

/// Closes the words, as a drop does, and goes back: the next id needs an extension of the bound.
fn roll_a_drop_back(client: &mut Client) -> Result<()> {
    Ok(client.batch_execute("BEGIN; DROP EXTENSION keywright; ROLLBACK")?)
}

fn wait_for_lock_waiter(client: &mut Client) -> Result<()> {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    wait_until("a session to wait for a lock", WAIT_MAX, || {
        Ok(query_i64(client, waiting)? > 0)
    })
}

#[test]
fn lowered_bound_waits_for_who_drew_an_id_and_keeps_nobody_waiting() -> Result<()> {
    let database = database()?;
    let mut observer = database.client()?;
    observer.batch_execute(
        "SELECT keywright.set_worker_id(700, above => now() + interval '300 days')",
    )?;
    let mut draws = database.client()?;
    draws.batch_execute("BEGIN")?;
    let before = query_i64(&mut draws, SNOWFLAKE)?;
    let lower =
        "SELECT extract(epoch FROM keywright.lower_bound(now() + interval '1 minute'))::bigint";
    let lowers = Pending::start(database.client()?, lower)?;
    lowers.wait_until_waiting(&mut observer)?;
    let began = Instant::now();
    assert!(query_i64(&mut draws, SNOWFLAKE)? > before);
    draws.batch_execute("COMMIT")?;
    let lowered = lowers.finish()?;
    lowered.outcome?;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert!(query_i64(&mut draws, SNOWFLAKE)? < before);
    Ok(())
}

#[test]
fn dropped_extension_is_not_kept_by_who_waits_for_its_sequences() -> Result<()> {
    let database = database()?;
    let mut observer = database.client()?;
    // It knows who it is, and need not look.
    let mut draws = database.client()?;
    query_i64(&mut draws, SNOWFLAKE)?;
    roll_a_drop_back(&mut observer)?;
    let mut holds = holder(&database, LOCK_BOUND)?;
    let draws = Pending::start(draws, SNOWFLAKE)?;
    draws.wait_until_waiting(&mut observer)?;
    let mut drops = database.client()?;
    let dropped = thread::spawn(move || drops.batch_execute("DROP EXTENSION keywright"));
    wait_for_lock_waiter(&mut observer)?;
    let began = Instant::now();
    holds.batch_execute("ROLLBACK")?;
    dropped.join().expect("a thread that does not panic")?;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let answer = draws.finish()?;
    let outcome = answer.outcome.map(|id| format!("{id}"));
    expect_cause(outcome, Cause::VersionMismatch, "keywright");
    Ok(())
}

/// Neither can go on before the other ends: the one that draws gives up, and long before it has waited as long as it may.
#[test]
fn who_keeps_a_drop_from_its_locks_gives_up_soon() -> Result<()> {
    let database = database()?;
    let mut observer = database.client()?;
    query_i64(&mut observer, SNOWFLAKE)?;
    roll_a_drop_back(&mut observer)?;
    let mut draws = database.client()?;
    draws.batch_execute("BEGIN")?;
    query_i64(&mut draws, SNOWFLAKE)?;
    let mut drops = database.client()?;
    let pid = query_i64(&mut drops, "SELECT pg_backend_pid()::bigint")?;
    let dropped = thread::spawn(move || drops.batch_execute("DROP EXTENSION keywright"));
    wait_for_lock_waiter(&mut observer)?;
    let began = Instant::now();
    let outcome = query_i64(&mut draws, MANY);
    let error = expect_cause(outcome, Cause::RefillTimeout, "waits for this transaction");
    assert!(
        error
            .detail
            .contains(&format!("Process {pid} holds a lock")),
        "{error:?}"
    );
    draws.batch_execute("ROLLBACK")?;
    dropped.join().expect("a thread that does not panic")?;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    Ok(())
}

#[test]
fn holder_of_a_lock_is_not_kept_by_who_waits_for_it() -> Result<()> {
    let database = database()?;
    let mut observer = database.client()?;
    for (lock, query) in [(LOCK_BOUND, SNOWFLAKE), (LOCK_TAG, MANY)] {
        if query == SNOWFLAKE {
            query_i64(&mut observer, query)?;
            roll_a_drop_back(&mut observer)?;
        }
        let mut holds = holder(&database, lock)?;
        let waits = Pending::start(database.client()?, query)?;
        waits.wait_until_waiting(&mut observer)?;
        let began = Instant::now();
        query_i64(&mut holds, query)?;
        holds.batch_execute("COMMIT")?;
        waits.finish()?.outcome?;
        assert!(began.elapsed() < AT_ONCE, "{query}: {:?}", began.elapsed());
    }
    Ok(())
}

/// Two sessions that ask while another holds the lock: both are told who that is.
fn both_are_told(database: &TestDatabase, query: &str, culprit: &str) -> Result<()> {
    let mut observer = database.client()?;
    let asks = || Pending::start(database.client_with(SHORT_WAIT)?, query);
    let first = asks()?;
    first.wait_until_waiting(&mut observer)?;
    for pending in [first, asks()?] {
        let SqlError { detail, .. } =
            expect_cause(pending.finish()?.outcome, Cause::RefillTimeout, "timed out");
        assert!(detail.contains(culprit), "{detail}");
    }
    Ok(())
}

#[test]
fn who_gives_up_is_told_whom_it_waited_for() -> Result<()> {
    let database = database()?;
    let mut observer = database.client()?;
    query_i64(&mut observer, SNOWFLAKE)?;
    roll_a_drop_back(&mut observer)?;
    for (lock, query) in [
        (LOCK_BOUND, SNOWFLAKE),
        (LOCK_TAG, MANY),
        (
            "LOCK TABLE keywright.node IN ACCESS EXCLUSIVE MODE",
            SNOWFLAKE,
        ),
        ("LOCK TABLE keywright.tag IN ACCESS EXCLUSIVE MODE", MANY),
    ] {
        let mut holds = holder(&database, lock)?;
        let pid = query_i64(&mut holds, "SELECT pg_backend_pid()::bigint")?;
        both_are_told(&database, query, &format!("Process {pid} holds a lock on"))?;
        let name = format!("of {}", database.name());
        holds.batch_execute(&format!("PREPARE TRANSACTION '{name}'"))?;
        both_are_told(
            &database,
            query,
            &format!("Prepared transaction \"{name}\" holds a lock on"),
        )?;
        holds.batch_execute(&format!("ROLLBACK PREPARED '{name}'"))?;
    }
    Ok(())
}
