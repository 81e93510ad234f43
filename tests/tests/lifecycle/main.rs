//! Databases, extensions, tags, worker ids and layouts come, go and come again, while others issue.

mod closings;
mod dropped_tags;
mod forgotten;
mod made_again;
mod places;

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;

use keywright_testkit::{
    IdLog, Load, PgServer, Result, WAIT_MAX, draw, expect_sql_error, query_i64, wait_until,
};
use postgres::{Client, NoTls};

const SNOWFLAKE: &str = "SELECT snowflake_id() FROM generate_series(1, 400)";
const TAG: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 400)";

/// A server that refills often.
fn server() -> Result<PgServer> {
    PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .start()
}

/// The extension, a worker id, and tag `orders`.
fn set_up(client: &mut Client, worker_id: u32) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE EXTENSION keywright; \
         SELECT keywright.set_worker_id({worker_id}); \
         SELECT keywright.create_tag('orders', step => 100, step_max => 100)"
    ))?;
    Ok(())
}

fn all_well(load: Load) -> Result<()> {
    assert_eq!(load.stop()?, BTreeMap::new(), "nothing may be refused");
    Ok(())
}

fn report(what: &str, log: &IdLog) -> Result<()> {
    println!("{what}: {} ids, all distinct", log.check()?.count);
    Ok(())
}

#[test]
fn two_databases_issue_side_by_side() -> Result<()> {
    let server = server()?;
    let mut first = server.client("postgres")?;
    first.batch_execute("CREATE DATABASE other")?;
    let mut second = server.client("other")?;
    set_up(&mut first, 1)?;
    set_up(&mut second, 2)?;
    let error = expect_sql_error(
        second.batch_execute("SELECT keywright.set_worker_id(1)"),
        "55006",
        "worker id 1 belongs to database \"postgres\"",
    );
    assert!(!error.hint.is_empty());
    let both = Arc::new(IdLog::new());
    let mut loads = Vec::new();
    for database in ["postgres", "other"] {
        let config = server.config(database, "postgres");
        loads.push(Load::start(&config, 4, SNOWFLAKE, &both));
        // A tag belongs to its database: each counts from 1.
        let tags = Arc::new(IdLog::new());
        let load = Load::start(&config, 4, TAG, &tags);
        load.wait_for(10_000)?;
        all_well(load)?;
        assert_eq!(tags.check()?.smallest, 1);
    }
    for load in &loads {
        load.wait_for(20_000)?;
    }
    loads.into_iter().try_for_each(all_well)?;
    report("two databases", &both)
}

/// Of two databases that ask for the same number at the same moment exactly one gets it.
#[test]
fn one_number_for_two_databases_at_once() -> Result<()> {
    const ROUNDS: i64 = 12;
    let server = server()?;
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE other")?;
    for database in ["postgres", "other"] {
        server
            .client(database)?
            .batch_execute("CREATE EXTENSION keywright")?;
    }
    let barrier = Barrier::new(2);
    let ask = |database: &str| -> Result<Vec<bool>> {
        let mut client = server.client(database)?;
        let mut got = Vec::new();
        for worker_id in 10..10 + ROUNDS {
            barrier.wait();
            let asked = client.batch_execute(&format!(
                "SELECT keywright.set_worker_id({worker_id}::integer)"
            ));
            got.push(asked.is_ok());
            if asked.is_err() {
                expect_sql_error(asked, "55006", "belongs to database");
            }
            barrier.wait();
        }
        Ok(got)
    };
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(|| ask("other"));
        (ask("postgres"), other.join())
    });
    let (first, second) = (first?, second.expect("no thread panics")?);
    for (round, (one, other)) in first.iter().zip(&second).enumerate() {
        assert!(one != other, "round {round}: {one} and {other}");
    }
    // A number whose transaction is rolled back is free again.
    let mut client = server.client("postgres")?;
    client.batch_execute("BEGIN; SELECT keywright.set_worker_id(5); ROLLBACK")?;
    let mut other = server.client("other")?;
    other.batch_execute("SELECT keywright.set_worker_id(5)")?;
    let id = query_i64(
        &mut other,
        "SELECT snowflake_worker(snowflake_id())::bigint",
    )?;
    assert_eq!(id, 5);
    Ok(())
}

/// An ordinary owner drops a database, at once, while another database issues; one of the same name begins anew.
#[test]
fn dropped_database_and_one_of_the_same_name() -> Result<()> {
    let mut server = server()?;
    let mut admin = server.client("postgres")?;
    set_up(&mut admin, 1)?;
    admin.batch_execute("CREATE ROLE keeper LOGIN CREATEDB")?;
    admin.batch_execute("CREATE DATABASE home OWNER keeper")?;
    let snowflakes = Arc::new(IdLog::new());
    let load = Load::start(
        &server.config("postgres", "postgres"),
        4,
        SNOWFLAKE,
        &snowflakes,
    );
    for life in 0..4 {
        let tags = IdLog::new();
        let mut client = server.client("home")?;
        set_up(&mut client, 2)?;
        draw(&mut client, SNOWFLAKE, &snowflakes)?;
        draw(&mut client, TAG, &tags)?;
        assert_eq!(tags.check()?.smallest, 1, "life {life} is a new database");
        drop(client);
        let mut keeper = server.connect("postgres", "keeper")?;
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'home'";
        wait_until("the end of the last session", WAIT_MAX, || {
            Ok(query_i64(&mut keeper, sessions)? == 0)
        })?;
        keeper.batch_execute("DROP DATABASE home")?;
        keeper.batch_execute("CREATE DATABASE home")?;
    }
    load.wait_for(1_000)?;
    all_well(load)?;
    set_up(&mut server.client("home")?, 2)?;
    draw(&mut server.client("home")?, SNOWFLAKE, &snowflakes)?;
    server.kill9()?;
    server.start()?;
    for database in ["home", "postgres"] {
        draw(&mut server.client(database)?, SNOWFLAKE, &snowflakes)?;
    }
    report("dropped databases", &snowflakes)
}

/// Sessions that know the old extension do not carry anything of it over to the new one.
#[test]
fn dropped_extension_and_a_new_one() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    let mut bystander = server.client("postgres")?;
    let snowflakes = IdLog::new();
    for _ in 0..3 {
        set_up(&mut client, 1)?;
        for session in [&mut client, &mut bystander] {
            draw(session, SNOWFLAKE, &snowflakes)?;
        }
        assert_eq!(query_i64(&mut client, "SELECT next_biz_id('orders')")?, 1);
        assert_eq!(
            query_i64(&mut bystander, "SELECT next_biz_id('orders')")?,
            2
        );
        bystander.batch_execute("PREPARE take AS SELECT next_biz_id('orders')")?;
        client.batch_execute("DROP EXTENSION keywright CASCADE; CREATE EXTENSION keywright")?;
        for session in [&mut client, &mut bystander] {
            let taken = query_i64(session, "SELECT next_biz_id('orders')");
            expect_sql_error(taken, "42704", "tag \"orders\" does not exist");
        }
        expect_sql_error(
            bystander.simple_query("EXECUTE take"),
            "42704",
            "tag \"orders\" does not exist",
        );
        bystander.batch_execute("DEALLOCATE take")?;
        client.batch_execute("DROP EXTENSION keywright")?;
        let taken = query_i64(&mut bystander, "SELECT next_biz_id('orders')");
        expect_sql_error(taken, "42883", "next_biz_id");
    }
    report("dropped extensions", &snowflakes)
}

/// Everything in the transaction that a migration tool wraps around it; then the same, undone and repeated.
#[test]
fn everything_in_one_transaction() -> Result<()> {
    const MIGRATION: &str = "BEGIN; CREATE EXTENSION keywright; \
        SELECT keywright.create_tag('orders', step => 10, step_max => 10); \
        SELECT keywright.set_worker_id(3); \
        CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'), at bigint UNIQUE DEFAULT snowflake_id()); \
        INSERT INTO orders SELECT FROM generate_series(1, 200)";
    let mut server = server()?;
    let mut client = server.client("postgres")?;
    let snowflakes = IdLog::new();
    for _ in 0..3 {
        client.batch_execute(MIGRATION)?;
        draw(
            &mut client,
            "SELECT at FROM orders ORDER BY at",
            &snowflakes,
        )?;
        client.batch_execute("ROLLBACK")?;
        let taken = query_i64(&mut client, "SELECT snowflake_id()");
        expect_sql_error(taken, "42883", "snowflake_id");
    }
    client.batch_execute(MIGRATION)?;
    client.batch_execute("COMMIT; INSERT INTO orders SELECT FROM generate_series(1, 200)")?;
    let mut other = server.client("postgres")?;
    other.batch_execute("INSERT INTO orders SELECT FROM generate_series(1, 200)")?;
    server.kill9()?;
    server.start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("INSERT INTO orders SELECT FROM generate_series(1, 200)")?;
    draw(
        &mut client,
        "SELECT at FROM orders ORDER BY at",
        &snowflakes,
    )?;
    // In a transaction that was rolled back a tag is not there either.
    client.batch_execute("BEGIN; SELECT keywright.create_tag('bills')")?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('bills')")?, 1);
    client.batch_execute("ROLLBACK")?;
    let taken = query_i64(&mut client, "SELECT next_biz_id('bills')");
    expect_sql_error(taken, "42704", "tag \"bills\" does not exist");
    client.batch_execute("SELECT keywright.create_tag('bills')")?;
    assert!(query_i64(&mut client, "SELECT next_biz_id('bills')")? >= 1);
    report("one transaction", &snowflakes)
}

/// Runs `change` on each of `values` in turn, while 8 connections issue.
fn change_under_load(change: &str, values: &[&str]) -> Result<()> {
    let mut server = server()?;
    let log = Arc::new(IdLog::new());
    let mut client = server.client("postgres")?;
    set_up(&mut client, 1)?;
    for life in 0..2 {
        let mut client = server.client("postgres")?;
        let load = Load::start(&server.config("postgres", "postgres"), 8, SNOWFLAKE, &log);
        load.wait_for(5_000)?;
        for value in values {
            client.batch_execute(&change.replace("{}", value))?;
            load.wait_for(10_000)?;
        }
        if life == 0 {
            server.kill9()?;
            all_well(load)?;
            server.start()?;
        } else {
            all_well(load)?;
        }
    }
    report(change, &log)
}

#[test]
fn worker_id_changes_back_and_forth_under_load() -> Result<()> {
    let values = ["2", "1", "1", "3", "2", "1", "1023", "1"];
    change_under_load("SELECT keywright.set_worker_id({})", &values)
}

#[test]
fn layout_changes_back_and_forth_under_load() -> Result<()> {
    // All with 22 bits below the time and one epoch, so that later ids are greater; one has its fields in another order.
    let values = [
        "leaf",
        "twitter",
        "time=41,sequence=12,worker=10,epoch=1288834974657",
        "leaf",
        "twitter",
        "twitter",
        "time=41,sequence=10,worker=12,epoch=1288834974657",
        "twitter",
    ];
    change_under_load("SELECT keywright.set_layout('{}')", &values)
}

/// Two databases swap their worker ids while both issue, again and again.
#[test]
fn worker_ids_move_between_databases_under_load() -> Result<()> {
    let mut server = server()?;
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE other")?;
    let databases = ["postgres", "other"];
    for (database, worker_id) in databases.iter().zip(1..) {
        set_up(&mut server.client(database)?, worker_id)?;
    }
    let log = Arc::new(IdLog::new());
    for _ in 0..2 {
        let loads =
            databases.map(|name| Load::start(&server.config(name, "postgres"), 4, SNOWFLAKE, &log));
        for _ in 0..3 {
            for (database, worker_id) in [
                ("postgres", 3),
                ("other", 1),
                ("postgres", 2),
                ("other", 3),
                ("postgres", 1),
                ("other", 2),
            ] {
                let mut client = server.config(database, "postgres").connect(NoTls)?;
                client.batch_execute(&format!("SELECT keywright.set_worker_id({worker_id})"))?;
            }
            loads.iter().try_for_each(|load| load.wait_for(3_000))?;
        }
        server.kill9()?;
        loads.into_iter().try_for_each(all_well)?;
        server.start()?;
    }
    report("worker ids that move", &log)
}
