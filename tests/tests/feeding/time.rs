//! The time of snowflake ids that is handed over: which is taken, and that nothing else is issued.

use std::time::{SystemTime, UNIX_EPOCH};

use keywright_core::cause::Cause;
use keywright_testkit::{
    PgServer, Result, WAIT_MAX, expect_sql_error, query_i64, query_text, wait_until,
};
use postgres::Client;

use super::common::{database, expect_cause};
use super::{KEY_SPACE, SOON};

pub(super) const NEXT: &str = "SELECT snowflake_id()";
pub(super) const WORKER: &str = "SELECT snowflake_worker(snowflake_id())::bigint";
const FED: &str = "SELECT keywright.set_snowflake_source('fed')";

/// What one database wants: all that a hand-over names, and what it had.
#[derive(Debug, Clone)]
pub(super) struct Demand {
    named: String,
    had: String,
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.expect("it is after 1970").as_millis();
    i64::try_from(ms).expect("a clock")
}

pub(super) fn demand(feeder: &mut Client) -> Result<Demand> {
    let mut found = None;
    wait_until("something that is wanted", WAIT_MAX, || {
        feeder.query("SELECT * FROM keywright.await_demand('{}', true)", &[])?;
        let row = feeder.query_opt(
            "SELECT format('%L, %s, %s, %L, %s', incarnation, database, sequence, layout, ask), \
             concat_ws(' ', worker_id, until_ms, handed) FROM keywright.time_demand() LIMIT 1",
            &[],
        )?;
        found = row.map(|row| Demand {
            named: row.get(0),
            had: row.get(1),
        });
        Ok(found.is_some())
    })?;
    Ok(found.expect("waited for"))
}

pub(super) fn hand_over(
    feeder: &mut Client,
    demand: &Demand,
    key_space: &str,
    (worker, from_ms, until_ms): (i32, i64, i64),
) -> std::result::Result<(), postgres::Error> {
    feeder.batch_execute(&format!(
        "SELECT keywright.feed_time({}, '{key_space}', {worker}, {from_ms}, {until_ms})",
        demand.named
    ))
}

pub(super) fn ask(client: &mut Client) -> Result<()> {
    client.batch_execute(SOON)?;
    expect_cause(
        client.batch_execute(NEXT),
        Cause::NotFed,
        "no snowflake ids are left",
    );
    Ok(())
}

pub(super) fn server() -> Result<(PgServer, Client, Client)> {
    let server = PgServer::builder().start()?;
    let client = database(&server, "shop", FED)?;
    let feeder = database(&server, "feeder", "")?;
    Ok((server, client, feeder))
}

#[test]
fn ids_are_of_the_worker_id_and_the_time_that_were_handed_over() -> Result<()> {
    let (server, mut client, mut feeder) = server()?;
    ask(&mut client)?;
    let first = demand(&mut feeder)?;
    assert_eq!(first.had, "f");
    let (from_ms, until_ms) = (now_ms() - 1_000, now_ms() + 600_000);
    let refused = |feeder: &mut Client, demand: &Demand, time, words: &str| {
        let answer = hand_over(feeder, demand, KEY_SPACE, time);
        expect_cause(answer, Cause::HandOverRefused, words);
    };
    for time in [
        (1024, from_ms, until_ms),
        (9, until_ms, from_ms),
        (9, -1, 5),
    ] {
        let answer = hand_over(&mut feeder, &first, KEY_SPACE, time);
        expect_cause(answer, Cause::ArgumentOutOfRange, "");
    }
    let other = Demand {
        named: first.named.replacen(|digit: char| digit != '\'', "0", 32),
        ..first.clone()
    };
    refused(
        &mut feeder,
        &other,
        (9, from_ms, until_ms),
        "has started anew",
    );
    hand_over(&mut feeder, &first, KEY_SPACE, (9, from_ms, until_ms))?;
    assert_eq!(query_i64(&mut client, WORKER)?, 9);
    // Once is enough, and the same moments never again.
    refused(
        &mut feeder,
        &first,
        (10, from_ms, until_ms),
        "was handed over before",
    );
    let off = "SELECT abs(extract(epoch FROM snowflake_timestamp(snowflake_id()) - clock_timestamp()))::bigint";
    assert_eq!(query_i64(&mut client, off)?, 0);
    // Ids run no further ahead than others do.
    client.batch_execute(
        "SET keywright.lead_ms_max = 100; SET keywright.ids_per_call_max = 400000",
    )?;
    for _ in 0..10 {
        client.query("SELECT count(id) FROM snowflake_ids(400000) id", &[])?;
    }
    client.batch_execute("RESET keywright.lead_ms_max")?;
    assert_eq!(query_i64(&mut client, off)?, 0);
    let worker = query_i64(&mut client, WORKER)?;
    assert_eq!(worker, 9);
    let in_register = client.batch_execute("SELECT keywright.set_worker_id(9)");
    expect_cause(in_register, Cause::WorkerIdInUse, "was handed over");
    drop(server);
    Ok(())
}

/// Nothing is issued at or after the end of the time, and what follows is taken up where it ends.
#[test]
fn nothing_is_issued_outside_what_was_handed_over() -> Result<()> {
    let (_server, mut client, mut feeder) = server()?;
    ask(&mut client)?;
    let first = demand(&mut feeder)?;
    let end_ms = now_ms() + 4_000;
    hand_over(&mut feeder, &first, KEY_SPACE, (9, end_ms - 8_000, end_ms))?;
    let mut ids = Vec::new();
    let refused = loop {
        match query_i64(&mut client, NEXT) {
            Ok(id) => ids.push(id),
            Err(error) => break error,
        }
    };
    expect_cause::<()>(Err(refused), Cause::NotFed, "no snowflake ids are left");
    let moment =
        |id: &i64| format!("SELECT (extract(epoch FROM snowflake_timestamp({id})) * 1000)::bigint");
    let last = ids.last().expect("some came");
    assert!(query_i64(&mut client, &moment(last))? < end_ms);
    let next = demand(&mut feeder)?;
    assert_eq!(next.had, format!("9 {end_ms} t"));
    // A store that has gone back, and another one.
    let low = hand_over(
        &mut feeder,
        &next,
        KEY_SPACE,
        (9, end_ms - 1, end_ms + 9_000),
    );
    expect_cause(low, Cause::BoundDamaged, "the store has gone back");
    let other = hand_over(
        &mut feeder,
        &next,
        &"f".repeat(32),
        (9, end_ms, end_ms + 9_000),
    );
    expect_cause(other, Cause::HandOverRefused, "another key space");
    hand_over(&mut feeder, &next, KEY_SPACE, (9, end_ms, end_ms + 600_000))?;
    let id = query_i64(&mut client, NEXT)?;
    assert!(id > *last && query_i64(&mut client, &moment(&id))? >= end_ms);
    Ok(())
}

/// A rollback of whoever feeds or issues changes nothing, and another worker id is another word.
#[test]
fn another_worker_id_begins_where_it_was_handed_over() -> Result<()> {
    let (_server, mut client, mut feeder) = server()?;
    ask(&mut client)?;
    let first = demand(&mut feeder)?;
    feeder.batch_execute("BEGIN")?;
    let end_ms = now_ms() + 4_000;
    hand_over(&mut feeder, &first, KEY_SPACE, (9, end_ms - 9_000, end_ms))?;
    feeder.batch_execute("ROLLBACK")?;
    client.batch_execute("BEGIN")?;
    let before = query_i64(&mut client, NEXT)?;
    client.batch_execute("ROLLBACK")?;
    assert!(query_i64(&mut client, NEXT)? > before);
    wait_until("the end of the time", WAIT_MAX, || {
        Ok(client.query(NEXT, &[]).is_err())
    })?;
    let next = demand(&mut feeder)?;
    hand_over(
        &mut feeder,
        &next,
        KEY_SPACE,
        (11, end_ms - 5_000, end_ms + 600_000),
    )?;
    assert_eq!(query_i64(&mut client, WORKER)?, 11);
    let mut other = feeder;
    other.batch_execute("SELECT keywright.set_worker_id(12)")?;
    let bad = other.batch_execute("SELECT keywright.set_worker_id(11)");
    expect_cause(bad, Cause::WorkerIdInUse, "was handed over");
    Ok(())
}

/// Whoever sets a worker id has not committed: one that is handed over meanwhile waits for that, and is taken only if it came to nothing.
#[test]
fn a_worker_id_that_is_being_set_is_not_taken_from_a_store() -> Result<()> {
    let (server, _shop, mut feeder) = server()?;
    let (from_ms, until_ms) = (now_ms() - 1_000, now_ms() + 600_000);
    for (name, worker, end) in [("undone", 9, "ROLLBACK"), ("done", 10, "COMMIT")] {
        let mut client = database(&server, name, FED)?;
        ask(&mut client)?;
        let wanted = demand(&mut feeder)?;
        let set = format!("SELECT keywright.set_worker_id({worker})");
        feeder.batch_execute("BEGIN")?;
        feeder.batch_execute(&set)?;
        hand_over(&mut feeder, &wanted, KEY_SPACE, (worker, from_ms, until_ms))?;
        let waited = client.batch_execute(NEXT);
        expect_cause(waited, Cause::RefillTimeout, "sets a worker id");
        feeder.batch_execute(end)?;
        if end == "COMMIT" {
            let taken = client.batch_execute(NEXT);
            expect_cause(taken, Cause::WorkerIdInUse, "worker id 10");
        } else {
            assert_eq!(query_i64(&mut client, WORKER)?, 9);
            let late = feeder.batch_execute(&set);
            expect_cause(late, Cause::WorkerIdInUse, "was handed over");
        }
    }
    Ok(())
}

/// What a database has natively is not taken from a store, and the other way round.
#[test]
fn a_fed_database_issues_nothing_of_its_own() -> Result<()> {
    let (server, mut client, mut feeder) = server()?;
    let mut native = database(&server, "native", "SELECT keywright.set_worker_id(5)")?;
    let before = query_i64(&mut native, NEXT)?;
    native.batch_execute(FED)?;
    ask(&mut native)?;
    let of_native = demand(&mut feeder)?;
    let (from_ms, until_ms) = (now_ms() - 1_000, now_ms() + 600_000);
    // Its own number is nobody's to hand over.
    hand_over(&mut feeder, &of_native, KEY_SPACE, (5, from_ms, until_ms))?;
    expect_cause(
        native.batch_execute(NEXT),
        Cause::WorkerIdInUse,
        "worker id 5",
    );
    ask(&mut native)?;
    let again = demand(&mut feeder)?;
    hand_over(&mut feeder, &again, KEY_SPACE, (900, from_ms, until_ms))?;
    assert_eq!(query_i64(&mut native, WORKER)?, 900);
    let layout = native.batch_execute("SELECT keywright.set_layout('baidu,epoch=2024-01-01')");
    expect_cause(layout, Cause::LayoutOverlap, "handed over for its layout");
    native.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)")?;
    let adopt = native.batch_execute("SELECT keywright.adopt_snowflake('t', 'id')");
    expect_cause(adopt, Cause::AdoptRefused, "comes from a store");
    native.batch_execute("SELECT keywright.set_snowflake_source('native')")?;
    assert_eq!(query_i64(&mut native, WORKER)?, 5);
    assert!(query_i64(&mut native, NEXT)? > before);
    // One that has none of its own misses it.
    ask(&mut client)?;
    let wanted = demand(&mut feeder)?;
    hand_over(&mut feeder, &wanted, KEY_SPACE, (901, from_ms, until_ms))?;
    assert_eq!(query_i64(&mut client, WORKER)?, 901);
    client.batch_execute("SELECT keywright.set_snowflake_source('native')")?;
    let health = "SELECT severity FROM keywright.health WHERE name = 'worker id'";
    assert_eq!(query_text(&mut client, health)?, "warning");
    let wrong = client.batch_execute("SELECT keywright.set_snowflake_source('elsewhere')");
    expect_cause(wrong, Cause::ArgumentOutOfRange, "native or fed");
    feeder.batch_execute("CREATE ROLE other")?;
    for call in [
        "keywright.set_snowflake_source('fed')",
        "keywright.time_demand()",
        "keywright.handed_time()",
    ] {
        client.batch_execute("SET ROLE other")?;
        let answer = client.batch_execute(&format!("SELECT {call}"));
        expect_sql_error(answer, "42501", "permission denied");
        client.batch_execute("RESET ROLE")?;
    }
    Ok(())
}

/// A crash, a dump, a database made of a template, one that is dropped: each asks anew, and knows whose time it was.
#[test]
fn lives_copies_and_dumps_are_handed_time_of_their_own() -> Result<()> {
    let (mut server, mut client, mut feeder) = server()?;
    ask(&mut client)?;
    let before = demand(&mut feeder)?;
    let (from_ms, until_ms) = (now_ms() - 1_000, now_ms() + 600_000);
    hand_over(&mut feeder, &before, KEY_SPACE, (9, from_ms, until_ms))?;
    assert_eq!(query_i64(&mut client, WORKER)?, 9);
    client.batch_execute("CHECKPOINT")?;
    server.kill9()?;
    server.start()?;
    let (mut client, mut feeder) = (server.client("shop")?, server.client("feeder")?);
    ask(&mut client)?;
    let late = hand_over(&mut feeder, &before, KEY_SPACE, (9, until_ms, until_ms + 5));
    expect_cause(late, Cause::HandOverRefused, "has started anew");
    let after = demand(&mut feeder)?;
    // To the second.
    let known_ms = until_ms / 1_000 * 1_000;
    assert_eq!(after.had, format!("9 {known_ms} f"));
    let other = hand_over(
        &mut feeder,
        &after,
        &"f".repeat(32),
        (10, from_ms, until_ms),
    );
    expect_cause(other, Cause::HandOverRefused, "another key space");
    hand_over(&mut feeder, &after, KEY_SPACE, (10, from_ms, until_ms))?;
    assert_eq!(query_i64(&mut client, WORKER)?, 10);
    drop(client);
    let mut keeper = server.client("postgres")?;
    wait_until("the end of the last session", WAIT_MAX, || {
        Ok(keeper
            .batch_execute("CREATE DATABASE copy TEMPLATE shop")
            .is_ok())
    })?;
    let mut copy = server.client("copy")?;
    ask(&mut copy)?;
    let of_copy = demand(&mut feeder)?;
    assert_ne!(of_copy.named, after.named);
    hand_over(&mut feeder, &of_copy, KEY_SPACE, (11, from_ms, until_ms))?;
    assert_eq!(query_i64(&mut copy, WORKER)?, 11);
    drop(copy);
    wait_until("the end of the last session", WAIT_MAX, || {
        Ok(keeper.batch_execute("DROP DATABASE copy").is_ok())
    })?;
    let dropped = hand_over(&mut feeder, &of_copy, KEY_SPACE, (12, from_ms, until_ms));
    expect_cause(dropped, Cause::HandOverRefused, "nobody asked for it here");
    let script = server.dump("shop", &[])?;
    keeper.batch_execute("CREATE DATABASE restored")?;
    server.restore("restored", &script)?;
    let mut restored = server.client("restored")?;
    let source = "SELECT snowflake_source FROM keywright.node";
    assert_eq!(query_text(&mut restored, source)?, "fed");
    ask(&mut restored)?;
    let of_restored = demand(&mut feeder)?;
    assert_eq!(of_restored.had, format!("10 {known_ms} f"));
    Ok(())
}
