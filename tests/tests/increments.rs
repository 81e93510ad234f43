//! Tags of which only the numbers of one remainder are ids: databases that issue side by side without a store, as with
//! auto_increment_increment and auto_increment_offset in MySQL.

use std::sync::{Arc, Mutex};

use anyhow::anyhow;
use keywright_testkit::{
    IdLog, Load, PgServer, Result, Stop, copy_ids, expect_sql_error, query_i64, query_text,
};
use postgres::{Client, NoTls};

const TAG: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 400)";

fn server() -> Result<PgServer> {
    let server = PgServer::builder().start()?;
    server
        .client("postgres")?
        .batch_execute("CREATE EXTENSION keywright")?;
    Ok(server)
}

fn ids(client: &mut Client, sql: &str) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    copy_ids(client, sql, &mut ids)?;
    Ok(ids)
}

/// Three databases, each with its remainder, under load and over a kill: no id of one is another's.
#[test]
fn three_databases_side_by_side() -> Result<()> {
    let mut server = server()?;
    let names = ["first", "second", "third"];
    for (name, remainder) in names.iter().zip([1, 2, 0]) {
        server
            .client("postgres")?
            .batch_execute(&format!("CREATE DATABASE {name}"))?;
        server.client(name)?.batch_execute(&format!(
            "CREATE EXTENSION keywright; \
             SELECT keywright.create_tag('orders', step => 50, step_max => 50, increment => 3, remainder => {remainder})"
        ))?;
    }
    let all = Arc::new(IdLog::new());
    for _ in 0..2 {
        let loads: Vec<Load> = names
            .iter()
            .map(|name| Load::start(&server.config(name, "postgres"), 2, TAG, &all))
            .collect();
        for load in &loads {
            load.wait_for(10_000)?;
        }
        server.kill9()?;
        for load in loads {
            load.stop()?;
        }
        server.start()?;
    }
    for (name, remainder) in names.iter().zip([1, 2, 0]) {
        let drawn = ids(&mut server.client(name)?, TAG)?;
        assert!(drawn.iter().all(|id| id % 3 == remainder), "{name}");
        assert!(drawn.windows(2).all(|two| two[1] == two[0] + 3), "{name}");
        all.record(drawn);
    }
    println!("three databases: {} ids, all distinct", all.check()?.count);
    Ok(())
}

#[test]
fn first_ids_several_at_once_and_the_end() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders', increment => 10, remainder => 7, step => 2, max => 200)",
    )?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('orders')")?, 7);
    let several = "SELECT string_agg(id::text, ' ') FROM next_biz_ids('orders', 5) AS id";
    assert_eq!(query_text(&mut client, several)?, "17 27 37 47 57");
    client.batch_execute("SELECT keywright.advance_tag('orders', 160)")?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('orders')")?, 167);
    let four = client.query("SELECT next_biz_ids('orders', 4)", &[]);
    let error = expect_sql_error(four, "2200H", "exhausted at 200");
    assert_eq!(error.detail, "3 ids are left and 4 were asked for.");
    assert_eq!(
        ids(&mut client, "SELECT next_biz_ids('orders', 3)")?,
        [177, 187, 197]
    );
    let another = client.query("SELECT next_biz_id('orders')", &[]);
    expect_sql_error(another, "2200H", "exhausted at 200");
    let set = "SELECT increment || ' ' || remainder FROM keywright.tags WHERE tag = 'orders'";
    assert_eq!(query_text(&mut client, set)?, "10 7");
    Ok(())
}

/// Changed while it is used, dropped and made again, over a clean stop: the ids of this database stay distinct, and a tag that is made
/// again keeps its increment unless another is said.
#[test]
fn changed_dropped_and_stopped() -> Result<()> {
    let mut server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("SELECT keywright.create_tag('orders')")?;
    let all = Arc::new(IdLog::new());
    let load = Load::start(&server.config("postgres", "postgres"), 3, TAG, &all);
    for (increment, remainder) in [(3, 1), (5, 0), (1, 0), (3, 2)] {
        load.wait_for(5_000)?;
        client.batch_execute(&format!(
            "SELECT keywright.alter_tag('orders', increment => {increment}, remainder => {remainder})"
        ))?;
        let drawn = ids(&mut client, TAG)?;
        assert!(drawn.iter().all(|id| id % increment == remainder));
        all.record(drawn);
    }
    load.stop()?;
    client.batch_execute(
        "SELECT keywright.drop_tag('orders'); SELECT keywright.create_tag('orders')",
    )?;
    all.record(ids(&mut client, TAG)?);
    let last = query_i64(&mut client, "SELECT next_biz_id('orders')")?;
    assert_eq!(last % 3, 2, "it has the increment that it had");
    drop(client);
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    assert_eq!(
        query_i64(&mut client, "SELECT next_biz_id('orders')")?,
        last + 3
    );
    all.check()?;
    Ok(())
}

#[test]
fn what_is_refused() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    let mut refused = |arguments: &str, state: &str, message: &str| {
        let sql = format!("SELECT keywright.create_tag('orders', {arguments})");
        let error = expect_sql_error(client.batch_execute(&sql), state, message);
        assert!(!error.hint.is_empty(), "{error:?}");
    };
    refused("increment => 3", "22004", "an increment needs a remainder");
    refused(
        "increment => 0",
        "22003",
        "an increment must be between 1 and 65535",
    );
    refused("remainder => 3", "22004", "a remainder needs an increment");
    refused(
        "increment => 3, remainder => 3",
        "22003",
        "a remainder must be between 0 and 2, not 3",
    );
    refused(
        "increment => 0, remainder => 0",
        "22003",
        "between 1 and 65535",
    );
    refused(
        "increment => 70000, remainder => 0",
        "22003",
        "between 1 and 65535",
    );
    refused(
        "increment => 3, remainder => 1, hide_bits => 63",
        "22003",
        "ids that hide their volume leave any remainder",
    );
    refused(
        "start => 5, max => 5, increment => 3, remainder => 0",
        "22003",
        "no number from 5 to 5 leaves remainder 0 when divided by 3",
    );
    client.batch_execute("SELECT keywright.create_fed_tag('fed')")?;
    let fed = "SELECT keywright.alter_tag('fed', increment => 3, remainder => 1)";
    expect_sql_error(client.batch_execute(fed), "22003", "come from a store");
    client.batch_execute("SELECT keywright.create_tag('hidden', hide_bits => 53)")?;
    let hidden = "SELECT keywright.alter_tag('hidden', increment => 3, remainder => 1)";
    expect_sql_error(client.batch_execute(hidden), "22003", "hide their volume");
    Ok(())
}

/// A column whose sequence goes on by 3 goes over with its increment, and back.
#[test]
fn a_column_keeps_its_increment() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE TABLE orders (id bigint GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY 3 START WITH 2) PRIMARY KEY, n integer); \
         INSERT INTO orders (n) VALUES (1), (2), (3)",
    )?;
    let first = query_i64(
        &mut client,
        "SELECT keywright.adopt('orders', 'orders', 'id')",
    )?;
    assert_eq!(first, 11);
    let inserted = "INSERT INTO orders (n) VALUES (4) RETURNING id";
    assert_eq!(query_i64(&mut client, inserted)?, 11);
    assert_eq!(query_i64(&mut client, inserted)?, 14);

    let back = query_i64(&mut client, "SELECT keywright.release('orders', 'id')")?;
    assert_eq!(back % 3, 2);
    assert_eq!(query_i64(&mut client, inserted)?, back);
    assert_eq!(query_i64(&mut client, inserted)?, back + 3);

    // So does one that another tag fills.
    client.batch_execute(
        "CREATE TABLE bills (id bigint DEFAULT next_biz_id('bills_a')); \
         SELECT keywright.create_tag('bills_a', increment => 5, remainder => 4, max => 100000); INSERT INTO bills DEFAULT VALUES",
    )?;
    let first = query_i64(
        &mut client,
        "SELECT keywright.adopt('bills_b', 'bills', 'id')",
    )?;
    assert_eq!(first % 5, 4);
    let set = "SELECT increment || ' ' || remainder || ' ' || max FROM keywright.tags WHERE tag = 'bills_b'";
    assert_eq!(query_text(&mut client, set)?, "5 4 100000");

    // A tag that is there already must go on in the same way.
    client.batch_execute("SELECT keywright.create_tag('parcels')")?;
    let adopt = "SELECT keywright.adopt('parcels', 'orders', 'id')";
    let error = expect_sql_error(
        client.batch_execute(adopt),
        "55000",
        "its sequence goes on by 3, and tag \"parcels\" by 1",
    );
    assert!(
        error.hint.contains("increment => 3, remainder => 2"),
        "{error:?}"
    );
    client
        .batch_execute("SELECT keywright.alter_tag('parcels', increment => 3, remainder => 2)")?;
    let first = query_i64(&mut client, adopt)?;
    assert_eq!(first % 3, 2);
    assert_eq!(query_i64(&mut client, inserted)?, first);
    Ok(())
}

/// A partition with a sequence of another step.
#[test]
fn unlike_sequences_are_refused() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE SEQUENCE by_three INCREMENT 3; CREATE SEQUENCE by_five INCREMENT 5; CREATE SEQUENCE far INCREMENT 100000; \
         CREATE TABLE orders (id bigint DEFAULT nextval('by_three'), n integer) PARTITION BY LIST (n); \
         CREATE TABLE one PARTITION OF orders FOR VALUES IN (1); \
         ALTER TABLE one ALTER id SET DEFAULT nextval('by_five'); \
         CREATE TABLE wide (id bigint DEFAULT nextval('far'))",
    )?;
    let adopt = "SELECT keywright.adopt('orders', 'orders', 'id')";
    expect_sql_error(
        client.batch_execute(adopt),
        "55000",
        "its sequences go on in unlike steps",
    );
    let wide = "SELECT keywright.adopt('wide', 'wide', 'id')";
    expect_sql_error(
        client.batch_execute(wide),
        "55000",
        "its sequence goes on by 100000",
    );
    Ok(())
}

/// What a store hands over is all of a range, so other databases' numbers would be among it.
#[test]
fn such_a_tag_is_not_moved_to_a_store() -> Result<()> {
    let mut server = server()?;
    let make = "SELECT keywright.create_tag('orders', increment => 3, remainder => 1)";
    server.client("postgres")?.batch_execute(make)?;
    server.set("keywright.source", "fed:1");
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    let moved = client.batch_execute("SELECT keywright.move_to_fed('orders', 1)");
    let error = expect_sql_error(moved, "22003", "tag \"orders\" has increment 3");
    assert!(error.hint.contains("increment => 1"), "{error:?}");
    Ok(())
}

/// A transaction that was begun before the change goes on with what holds now, or the change waits for it and says for whom.
#[test]
fn transactions_that_are_open_do_not_go_on_with_the_old_increment() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders', increment => 3, remainder => 1, step => 100, step_min => 100); SELECT next_biz_id('orders')",
    )?;
    let change = |client: &mut Client, number: i64| {
        client.batch_execute(&format!(
            "SELECT keywright.alter_tag('orders', increment => 4, remainder => {number})"
        ))?;
        client.batch_execute("SELECT keywright.advance_tag('orders', 10000)")
    };
    let next = "SELECT next_biz_id('orders')";
    for begin in ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"] {
        client.batch_execute(
            "SELECT keywright.alter_tag('orders', increment => 3, remainder => 1)",
        )?;
        // So that the open transaction has reserved nothing, but taken from what others did.
        query_i64(&mut client, next)?;
        let mut open = server.client("postgres")?;
        open.batch_execute(begin)?;
        assert_eq!(query_i64(&mut open, next)? % 3, 1);
        change(&mut client, 2)?;
        query_i64(&mut client, next)?;
        for _ in 0..4 {
            assert_eq!(query_i64(&mut open, next)? % 4, 2, "{begin}");
        }
    }
    // One that has reserved keeps its lock.
    let mut open = server.client("postgres")?;
    open.batch_execute("BEGIN")?;
    query_i64(
        &mut open,
        "SELECT max(next_biz_id('orders')) FROM generate_series(1, 2000)",
    )?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 300")?;
    let held_up = change(&mut client, 3);
    let error = expect_sql_error(held_up, "55P03", "orders");
    assert!(error.detail.contains("holds"), "{error:?}");
    open.batch_execute("COMMIT")?;
    change(&mut client, 3)?;
    assert_eq!(query_i64(&mut open, next)? % 4, 3);
    // Nothing is issued in the transaction itself, which may be rolled back.
    for changed in ["increment => 1, remainder => 0", "max => 1000000000"] {
        client.batch_execute(&format!(
            "BEGIN; SELECT keywright.alter_tag('orders', {changed})"
        ))?;
        expect_sql_error(
            client.batch_execute(next),
            "55000",
            "the source, the increment or the end of the tag",
        );
        client.batch_execute("ROLLBACK")?;
    }
    assert_eq!(query_i64(&mut client, next)? % 4, 3);
    Ok(())
}

/// What a sequence would give next counts, also if it was set or restarted and not called since.
#[test]
fn a_sequence_that_was_not_called_since_it_was_set_counts() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE TABLE orders (id bigserial PRIMARY KEY, n integer)")?;
    let rows = "INSERT INTO orders (n) SELECT FROM generate_series(1, 5); DELETE FROM orders";
    let rows = rows
        .replace("SELECT FROM", "SELECT g FROM")
        .replace("(1, 5)", "(1, 5) g");
    let mut next_tag = 0;
    let mut adopted = |client: &mut Client| -> Result<i64> {
        next_tag += 1;
        let sql = format!("SELECT keywright.adopt('t{next_tag}', 'orders', 'id')");
        Ok(query_i64(client, &sql)?)
    };
    assert_eq!(adopted(&mut client)?, 1, "it was never used");
    client.batch_execute(&rows)?;
    let released = query_i64(&mut client, "SELECT keywright.release('orders', 'id')")?;
    assert_eq!(adopted(&mut client)?, released);

    client.batch_execute(&rows)?;
    query_i64(&mut client, "SELECT keywright.release('orders', 'id')")?;
    client.batch_execute("ALTER SEQUENCE orders_id_seq1 RESTART WITH 5000")?;
    assert_eq!(adopted(&mut client)?, 5_000);
    Ok(())
}

/// The end of a sequence is the tag's, and that of a tag the sequence's; one that goes down, or has nothing left, is refused.
#[test]
fn ends_and_directions_of_sequences() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE SEQUENCE s MAXVALUE 20; CREATE TABLE orders (id bigint DEFAULT nextval('s')); INSERT INTO orders DEFAULT VALUES; \
         CREATE SEQUENCE down INCREMENT -3; CREATE TABLE falling (id bigint DEFAULT nextval('down')); \
         CREATE SEQUENCE full_up INCREMENT 3 MAXVALUE 9; CREATE TABLE filled (id bigint DEFAULT nextval('full_up')); \
         INSERT INTO filled SELECT FROM generate_series(1, 3); \
         CREATE SEQUENCE twice; CREATE TABLE doubled (id bigint DEFAULT nextval('twice') * 2)",
    )?;
    client.batch_execute("SELECT keywright.create_tag('longer')")?;
    let longer = client.batch_execute("SELECT keywright.adopt('longer', 'orders', 'id')");
    let error = expect_sql_error(longer, "55000", "ends at 20, and tag \"longer\" later");
    assert!(error.hint.contains("max => 20"), "{error:?}");
    assert_eq!(
        query_i64(
            &mut client,
            "SELECT keywright.adopt('orders', 'orders', 'id')"
        )?,
        2
    );
    let end = "SELECT max FROM keywright.tags WHERE tag = 'orders'";
    assert_eq!(query_i64(&mut client, end)?, 20);
    let full = client.batch_execute("SELECT keywright.release('orders', 'id')");
    expect_sql_error(full, "55000", "no other is left up to 20");
    client.batch_execute("SELECT keywright.alter_tag('orders', max => 5000); SELECT keywright.release('orders', 'id')")?;
    let end = "SELECT seqmax FROM pg_sequence WHERE seqrelid = 'orders_id_seq'::regclass";
    assert_eq!(query_i64(&mut client, end)?, 5_000);

    let down = client.batch_execute("SELECT keywright.adopt('falling', 'falling', 'id')");
    expect_sql_error(down, "55000", "its sequence goes down");
    let filled = client.batch_execute("SELECT keywright.adopt('filled', 'filled', 'id')");
    expect_sql_error(filled, "55000", "no id is left up to 9");

    let said = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&said);
    let mut config = server.config("postgres", "postgres");
    config.notice_callback(move |notice| {
        if let Ok(mut seen) = seen.lock() {
            seen.push(notice.message().to_owned());
        }
    });
    let mut listening = config.connect(NoTls)?;
    listening.batch_execute("SELECT keywright.adopt('doubled', 'doubled', 'id')")?;
    listening.batch_execute(
        "CREATE SEQUENCE hidden_in_it; \
         CREATE FUNCTION next_of_it() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('hidden_in_it')$$; \
         CREATE TABLE called (id bigint PRIMARY KEY DEFAULT next_of_it(), b text DEFAULT 'x'); \
         SELECT keywright.adopt('called', 'called', 'id')",
    )?;
    let said = said.lock().map_err(|_| anyhow!("a notice panicked"))?;
    assert!(
        said.iter()
            .any(|message| message.contains("computed its values out of a sequence's numbers")),
        "{said:?}"
    );
    let unknown = |message: &&String| message.contains("how far it came is not known");
    assert_eq!(said.iter().filter(unknown).count(), 1, "{said:?}");
    Ok(())
}
