//! Tags that are fed, on the server's side: what is asked for, which hand-overs are taken, and that nothing else is issued. The
//! program that feeds is played by statements.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use common::{builder, database, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{
    IdLog, Load, PgServer, Result, SharedServer, Stop, TestDatabase, WAIT_MAX, expect_sql_error,
    query_i64, query_text, wait_until,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

const KEY_SPACE: &str = "0123456789abcdef0123456789abcdef";
const SOON: &str = "SET keywright.refill_wait_ms_max = 200";

/// What one tag wants: all that a hand-over names, and how many ids.
#[derive(Debug, Clone)]
struct Demand {
    named: String,
    wanted: i64,
    above: i64,
}

fn demands(feeder: &mut Client, tag: &str) -> Result<Vec<Demand>> {
    let rows = feeder.query(
        "SELECT format('%L, %s, %s, %s, %s, %L', incarnation, database, extension, generation, sequence, tag), wanted, above \
         FROM keywright.await_demand(ARRAY[$1])",
        &[&tag],
    )?;
    let demand = |row: &postgres::Row| Demand {
        named: row.get(0),
        wanted: row.get(1),
        above: row.get(2),
    };
    Ok(rows.iter().map(demand).collect())
}

/// What `tag` wants, once it wants something.
fn demand_of(feeder: &mut Client, tag: &str) -> Result<Demand> {
    let mut found = None;
    wait_until("something that is wanted", WAIT_MAX, || {
        found = demands(feeder, tag)?.pop();
        Ok(found.is_some())
    })?;
    Ok(found.expect("waited for"))
}

fn hand_over(
    feeder: &mut Client,
    demand: &Demand,
    key_space: &str,
    (first, last): (i64, i64),
) -> std::result::Result<(), postgres::Error> {
    feeder.batch_execute(&format!(
        "SELECT keywright.feed_tag({}, '{key_space}', {first}, {last})",
        demand.named
    ))
}

/// A database with a fed tag of its own name, so that tests do not feed each other's, and the tag's name.
fn fed() -> Result<(TestDatabase, Client, String)> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    let tag = format!("of_{}", database.name());
    client.batch_execute(&format!("SELECT keywright.create_fed_tag('{tag}')"))?;
    Ok((database, client, tag))
}

/// Asks for an id that is not there, so that it is asked for.
fn ask(client: &mut Client, tag: &str) -> Result<()> {
    client.batch_execute(SOON)?;
    let refused = client.batch_execute(&format!("SELECT next_biz_id('{tag}')"));
    expect_cause(refused, Cause::NotFed, "has no ids left");
    client.batch_execute("RESET keywright.refill_wait_ms_max")?;
    Ok(())
}

#[test]
fn whoever_needs_ids_waits_for_them_and_gets_those_that_were_handed_over() -> Result<()> {
    let (database, mut client, tag) = fed()?;
    let mut feeder = database.client()?;
    let next = format!("SELECT next_biz_id('{tag}')");
    let waiting = {
        let (next, mut session) = (next.clone(), database.client()?);
        thread::spawn(move || query_i64(&mut session, &next))
    };
    let demand = demand_of(&mut feeder, &tag)?;
    assert_eq!((demand.wanted, demand.above), (1000, 0));
    hand_over(&mut feeder, &demand, KEY_SPACE, (100, 102))?;
    assert_eq!(waiting.join().expect("it panicked")?, 100);
    // The next range is asked for as soon as one is in use.
    let demand = demand_of(&mut feeder, &tag)?;
    assert_eq!(demand.above, 102);
    hand_over(&mut feeder, &demand, KEY_SPACE, (5000, 5009))?;
    let ids: Vec<i64> = (0..4)
        .map(|_| query_i64(&mut client, &next))
        .collect::<std::result::Result<_, _>>()?;
    assert_eq!(ids, [101, 102, 5000, 5001]);
    // More at once than are left: a range that holds so many is asked for, and no id of another range is among them.
    let many = {
        let mut session = database.client()?;
        let many = format!("SELECT string_agg(id::text, ' ') FROM next_biz_ids('{tag}', 2000) id");
        thread::spawn(move || query_text(&mut session, &many))
    };
    let demand = demand_of(&mut feeder, &tag)?;
    let last = 9000 + demand.wanted.max(2000);
    hand_over(&mut feeder, &demand, KEY_SPACE, (9001, last))?;
    let many = many.join().expect("it panicked")?;
    let many: Vec<i64> = many.split(' ').map(|id| id.parse().unwrap_or(0)).collect();
    let first = many.first().copied().unwrap_or(0);
    assert_eq!(many.len(), 2000);
    assert!(first >= 9001, "{first}");
    assert!(
        many.iter()
            .zip(first..)
            .all(|(id, expected)| *id == expected)
    );
    Ok(())
}

#[test]
fn what_is_not_for_here_or_was_handed_over_before_is_refused() -> Result<()> {
    let (database, mut client, tag) = fed()?;
    let mut feeder = database.client()?;
    ask(&mut client, &tag)?;
    let demand = demand_of(&mut feeder, &tag)?;
    let refused = |feeder: &mut Client, demand: &Demand, key_space: &str, range, words: &str| {
        let answer = hand_over(feeder, demand, key_space, range);
        expect_cause(answer, Cause::HandOverRefused, words);
    };
    let (incarnation, rest) = demand.named.split_at(34);
    let other = Demand {
        named: format!("'{}'{rest}", "0".repeat(32)),
        ..demand.clone()
    };
    assert_eq!(incarnation.len(), "''".len() + 32);
    refused(&mut feeder, &other, KEY_SPACE, (1, 10), "has started anew");
    let nobody = Demand {
        named: demand.named.replace(&tag, "nobody"),
        ..demand.clone()
    };
    refused(&mut feeder, &nobody, KEY_SPACE, (1, 10), "nobody asked");
    for (key_space, range) in [
        (KEY_SPACE, (0, 5)),
        (KEY_SPACE, (5, 4)),
        (KEY_SPACE, (1, i64::MAX)),
        (KEY_SPACE, (1, 1_000_000_001)),
        ("12", (1, 10)),
        ("0123456789abcdef0123456789abcdeg", (1, 10)),
    ] {
        let answer = hand_over(&mut feeder, &demand, key_space, range);
        expect_cause(answer, Cause::ArgumentOutOfRange, "");
    }
    hand_over(&mut feeder, &demand, KEY_SPACE, (101, 110))?;
    refused(
        &mut feeder,
        &demand,
        KEY_SPACE,
        (201, 210),
        "others were handed over",
    );
    let next = format!("SELECT next_biz_id('{tag}')");
    assert_eq!(query_i64(&mut client, &next)?, 101);
    // The same once more, and what overlaps it.
    for range in [(101, 110), (1, 10), (110, 120)] {
        refused(
            &mut feeder,
            &demand,
            KEY_SPACE,
            range,
            "were handed over before",
        );
    }
    let other = "f".repeat(32);
    refused(
        &mut feeder,
        &demand,
        &other,
        (201, 210),
        "another key space",
    );
    // A rollback of the hand-over changes nothing: whoever waits is served at once.
    feeder.batch_execute("BEGIN")?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (201, 210))?;
    feeder.batch_execute("ROLLBACK")?;
    let ids: Vec<i64> = (0..11)
        .map(|_| query_i64(&mut client, &next))
        .collect::<std::result::Result<_, _>>()?;
    let expected: Vec<i64> = (102..=110).chain(201..=202).collect();
    assert_eq!(ids, expected);
    Ok(())
}

#[test]
fn nothing_is_issued_after_a_crash_until_it_is_fed_anew() -> Result<()> {
    for how in [None, Some(Stop::Fast), Some(Stop::Immediate)] {
        let mut server = PgServer::builder().start()?;
        let mut client = database(&server, "shop", "SELECT keywright.create_fed_tag('orders')")?;
        let mut feeder = database(&server, "feeder", "")?;
        ask(&mut client, "orders")?;
        let before = demand_of(&mut feeder, "orders")?;
        hand_over(&mut feeder, &before, KEY_SPACE, (1, 1000))?;
        let next = "SELECT next_biz_id('orders')";
        assert_eq!(query_i64(&mut client, next)?, 1);
        client.batch_execute("CHECKPOINT")?;
        match how {
            Some(how) => server.restart(how)?,
            None => {
                server.kill9()?;
                server.start()?;
            }
        }
        let (mut client, mut feeder) = (server.client("shop")?, server.client("feeder")?);
        ask(&mut client, "orders")?;
        let late = hand_over(&mut feeder, &before, KEY_SPACE, (1001, 2000));
        expect_cause(late, Cause::HandOverRefused, "has started anew");
        // What the database knows of is told, and a store that has gone back is found.
        let demand = demand_of(&mut feeder, "orders")?;
        assert_eq!(demand.above, 1000);
        let low = hand_over(&mut feeder, &demand, KEY_SPACE, (2, 900));
        expect_cause(
            low,
            Cause::HandOverRefused,
            "ids up to 1000 were handed over",
        );
        let other = hand_over(&mut feeder, &demand, &"f".repeat(32), (2000, 2010));
        expect_cause(other, Cause::HandOverRefused, "another key space");
        hand_over(&mut feeder, &demand, KEY_SPACE, (1001, 2000))?;
        assert_eq!(query_i64(&mut client, next)?, 1001);
    }
    Ok(())
}

#[test]
fn a_copy_of_the_database_issues_nothing_of_what_the_original_was_handed() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = database(&server, "shop", "SELECT keywright.create_fed_tag('orders')")?;
    let mut feeder = database(&server, "feeder", "")?;
    ask(&mut client, "orders")?;
    let demand = demand_of(&mut feeder, "orders")?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (1, 1000))?;
    let next = "SELECT next_biz_id('orders')";
    assert_eq!(query_i64(&mut client, next)?, 1);
    drop(client);
    let mut keeper = server.client("postgres")?;
    wait_until("the end of the last session", WAIT_MAX, || {
        Ok(keeper
            .batch_execute("CREATE DATABASE copy TEMPLATE shop")
            .is_ok())
    })?;
    let mut copy = server.client("copy")?;
    ask(&mut copy, "orders")?;
    let mut original = server.client("shop")?;
    assert_eq!(query_i64(&mut original, next)?, 2);
    // Both are fed.
    let demands: Vec<Demand> = {
        let mut all = Vec::new();
        wait_until("what both want", WAIT_MAX, || {
            all.extend(demands(&mut feeder, "orders")?);
            Ok(all.len() >= 2)
        })?;
        all
    };
    for (demand, first) in demands.iter().zip([2001, 3001]) {
        hand_over(&mut feeder, demand, KEY_SPACE, (first, first + 999))?;
    }
    let given = query_i64(&mut copy, next)?;
    assert!([2001, 3001].contains(&given), "{given}");
    Ok(())
}

/// What a dump brings back knows how far the original came and of which store, and issues nothing of it.
#[test]
fn a_restored_dump_keeps_the_key_space_and_is_fed_anew() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut client = database(&server, "shop", "SELECT keywright.create_fed_tag('orders')")?;
    let mut feeder = database(&server, "feeder", "")?;
    ask(&mut client, "orders")?;
    let demand = demand_of(&mut feeder, "orders")?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (1, 1000))?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('orders')")?, 1);
    feeder.batch_execute("CREATE DATABASE restored")?;
    let file = tempfile::NamedTempFile::new()?;
    let mut dump = server.tool("pg_dump");
    assert!(
        dump.args(["-d", "shop", "-f"])
            .arg(file.path())
            .status()?
            .success()
    );
    let mut psql = server.tool("psql");
    psql.args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", "restored", "-f"]);
    assert!(psql.arg(file.path()).output()?.status.success());
    // What the original wants next is not what this is about.
    let demand = demand_of(&mut feeder, "orders")?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (1001, 2000))?;
    let mut restored = server.client("restored")?;
    ask(&mut restored, "orders")?;
    let demand = demand_of(&mut feeder, "orders")?;
    assert_eq!(demand.above, 1000);
    let other = hand_over(&mut feeder, &demand, &"f".repeat(32), (5001, 6000));
    expect_cause(other, Cause::HandOverRefused, "another key space");
    hand_over(&mut feeder, &demand, KEY_SPACE, (2001, 3000))?;
    assert_eq!(
        query_i64(&mut restored, "SELECT next_biz_id('orders')")?,
        2001
    );
    Ok(())
}

#[test]
fn a_fed_tag_is_no_native_one() -> Result<()> {
    let (_database, mut client, tag) = fed()?;
    let cases = [
        ("create_tag('T')", Cause::TagExists, "exists already"),
        ("create_fed_tag('T')", Cause::TagExists, "exists already"),
        (
            "advance_tag('T', 100)",
            Cause::ArgumentOutOfRange,
            "come from a store",
        ),
        (
            "alter_tag('T', max => 100)",
            Cause::ArgumentOutOfRange,
            "come from a store",
        ),
        (
            "adopt('T', 'held', 'id')",
            Cause::ArgumentOutOfRange,
            "come from a store",
        ),
        (
            "release('given', 'id')",
            Cause::AdoptRefused,
            "come from a store",
        ),
    ];
    client.batch_execute(&format!(
        "CREATE TABLE held (id bigint PRIMARY KEY); CREATE TABLE given (id bigint DEFAULT next_biz_id('{tag}'))"
    ))?;
    for (call, cause, words) in cases {
        let call = call.replace('T', &tag);
        let answer = client.batch_execute(&format!("SELECT keywright.{call}"));
        expect_cause(answer, cause, words);
    }
    client.batch_execute(&format!("SELECT keywright.alter_tag('{tag}', step => 500)"))?;
    client.batch_execute(&format!("SELECT keywright.drop_tag('{tag}')"))?;
    let native = client.batch_execute(&format!("SELECT keywright.create_tag('{tag}')"));
    expect_cause(
        native,
        Cause::TagExists,
        "was a fed tag when it was dropped",
    );
    client.batch_execute(&format!("SELECT keywright.create_fed_tag('{tag}')"))?;
    client.batch_execute(&format!(
        "SELECT keywright.create_tag('native'); SELECT keywright.drop_tag('native'); SELECT keywright.drop_tag('{tag}')"
    ))?;
    let fed = client.batch_execute("SELECT keywright.create_fed_tag('native')");
    expect_cause(
        fed,
        Cause::TagExists,
        "was a native tag when it was dropped",
    );
    client.batch_execute("SELECT keywright.create_fed_tag('native', forget_issued => true)")?;
    let sources =
        "SELECT string_agg(source, ' ' ORDER BY tag) FROM keywright.tags WHERE dropped_at IS NULL";
    assert_eq!(query_text(&mut client, sources)?, "fed");
    let health = "SELECT severity || ': ' || detail FROM keywright.health WHERE name IN ('feeding', 'tags') ORDER BY name";
    let told = client.query(health, &[])?;
    let told: Vec<String> = told.iter().map(|row| row.get(0)).collect();
    assert!(told[0].contains("1 tags are fed"), "{told:?}");
    assert_eq!(told[1], "ok: of each tag its bound is there");
    Ok(())
}

/// Whatever a rolled-back creation issued under the name is not issued again, of whatever kind the tag is then.
#[test]
fn what_a_rolled_back_tag_issued_is_not_issued_by_one_of_another_kind() -> Result<()> {
    let database = SERVER.database(builder)?;
    let (mut client, mut feeder) = (database.client()?, database.client()?);
    let tag = format!("of_{}", database.name());
    client.batch_execute(&format!(
        "BEGIN; SELECT keywright.create_tag('{tag}'); SELECT next_biz_ids('{tag}', 50); ROLLBACK; \
         SELECT keywright.create_fed_tag('{tag}')"
    ))?;
    ask(&mut client, &tag)?;
    let demand = demand_of(&mut feeder, &tag)?;
    assert!(demand.above >= 50, "{demand:?}");
    let low = hand_over(&mut feeder, &demand, KEY_SPACE, (1, 1000));
    expect_cause(low, Cause::HandOverRefused, "were handed over before");
    let tag = format!("{tag}_other");
    client.batch_execute(&format!("BEGIN; SELECT keywright.create_fed_tag('{tag}')"))?;
    let waiting = thread::spawn(move || -> Result<(Client, i64)> {
        let last = format!("SELECT max(id) FROM next_biz_ids('{tag}', 10) id");
        let last = query_i64(&mut client, &last)?;
        client.batch_execute("ROLLBACK")?;
        client.batch_execute(&format!("SELECT keywright.create_tag('{tag}')"))?;
        let first = query_i64(&mut client, &format!("SELECT next_biz_id('{tag}')"))?;
        assert!(first > last, "{first} after {last}");
        Ok((client, first))
    });
    let tag = format!("of_{}_other", database.name());
    let demand = demand_of(&mut feeder, &tag)?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (7001, 8000))?;
    let (_client, first) = waiting.join().expect("it panicked")?;
    assert!(first > 7010, "{first}");
    Ok(())
}

#[test]
fn only_who_may_feeds() -> Result<()> {
    let (database, mut client, tag) = fed()?;
    let role = format!("role_{}", database.name());
    client.batch_execute(&format!("CREATE ROLE {role}"))?;
    let calls = [
        "SELECT * FROM keywright.await_demand('{orders}')".to_owned(),
        format!(
            "SELECT keywright.feed_tag('{}', 1, 1, 1, 1, '{tag}', '{KEY_SPACE}', 1, 2)",
            "0".repeat(32)
        ),
        "SELECT keywright.create_fed_tag('other')".to_owned(),
    ];
    for call in &calls {
        client.batch_execute(&format!("SET ROLE {role}"))?;
        expect_sql_error(client.batch_execute(call), "42501", "permission denied");
        client.batch_execute("RESET ROLE")?;
    }
    client.batch_execute("SET default_transaction_read_only = on")?;
    for call in &calls {
        expect_cause(client.batch_execute(call), Cause::ReadOnly, "read-only");
    }
    client.batch_execute("RESET default_transaction_read_only")?;
    client.batch_execute(&format!("DROP ROLE {role}"))?;
    Ok(())
}

/// Feeds `orders` with ranges that follow each other, until it is told to stop.
fn feed(
    server: &PgServer,
    next: &Arc<AtomicI64>,
    stop: &Arc<AtomicBool>,
) -> Result<thread::JoinHandle<Result<()>>> {
    let mut feeder = server.client("postgres")?;
    let (next, stop) = (Arc::clone(next), Arc::clone(stop));
    Ok(thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            for demand in demands(&mut feeder, "orders")? {
                let first = next.fetch_add(demand.wanted, Ordering::Relaxed);
                let range = (first, first + demand.wanted - 1);
                let fed = hand_over(&mut feeder, &demand, KEY_SPACE, range);
                // Of two that feed one may come second.
                if let Err(error) = fed
                    && error.as_db_error().is_none()
                {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }))
}

/// Databases that draw, two that feed, transactions that are rolled back, a database that is dropped, a tag that is made anew, backends and
/// servers that are killed.
#[test]
fn no_id_comes_twice_whoever_feeds_and_however_sessions_end() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let create =
        "SELECT keywright.create_fed_tag('orders', step => 50, step_min => 50, step_max => 500)";
    server
        .client("postgres")?
        .batch_execute("CREATE EXTENSION keywright")?;
    for name in ["one", "two", "three"] {
        database(&server, name, create)?;
    }
    let log = Arc::new(IdLog::new());
    let next = Arc::new(AtomicI64::new(1));
    for round in 0..4 {
        let stop = Arc::new(AtomicBool::new(false));
        let feeders = [feed(&server, &next, &stop)?, feed(&server, &next, &stop)?];
        let draw = "SELECT next_biz_id('orders') FROM generate_series(1, 30)";
        let loads = ["one", "two", "three"].map(|name| {
            let config = server.config(name, "postgres");
            Load::start(&config, 2, draw, &log)
        });
        for load in &loads {
            load.wait_for(2_000)?;
        }
        let mut other = server.client("two")?;
        match round {
            0 => {
                let again = "BEGIN; SELECT keywright.drop_tag('orders'); SELECT keywright.create_fed_tag('orders', step => 20); ROLLBACK";
                other.batch_execute(again)?;
            }
            1 => other.batch_execute(
                "SELECT keywright.drop_tag('orders'); \
                 SELECT keywright.create_fed_tag('orders', step => 30, forget_issued => true)",
            )?,
            _ => {}
        }
        for load in &loads {
            load.wait_for(2_000)?;
        }
        if round == 3 {
            server.kill9()?;
        }
        stop.store(true, Ordering::Relaxed);
        for load in loads {
            load.stop()?;
        }
        for feeder in feeders {
            let ended = feeder.join().expect("it panicked");
            assert!(round == 3 || ended.is_ok(), "{ended:?}");
        }
        match round {
            2 => server.restart(Stop::Fast)?,
            3 => server.start()?,
            _ => {}
        }
    }
    log.check()?;
    Ok(())
}
