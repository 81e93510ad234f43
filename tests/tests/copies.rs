//! Copies of a database: dumps, templates, data directories. A copy goes on above what it knows of, and issues no
//! snowflake ids in its original's name unless it is the original.

use std::sync::Arc;

use keywright_testkit::{
    IdLog, Load, PgServer, Result, WAIT_MAX, copy_ids, expect_sql_error, query_i64, wait_until,
};
use postgres::Client;

const SNOWFLAKE: &str = "SELECT snowflake_id() FROM generate_series(1, 400)";
const TAG: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 400)";
const RESERVED_TO: &str = "SELECT reserved_to FROM keywright.tags WHERE tag = 'orders'";

fn server() -> Result<PgServer> {
    PgServer::builder()
        .setting("keywright.bound_window_ms", "100")
        .start()
}

/// A database with worker id 1, a tag, and a table that has both kinds of id as defaults.
fn shop(server: &PgServer) -> Result<Client> {
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE shop")?;
    let mut client = server.client("shop")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.set_worker_id(1); \
         SELECT keywright.create_tag('orders', step => 100, step_max => 100); \
         SELECT keywright.create_tag('bills', start => 500, max => 1000000); \
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'), at bigint UNIQUE DEFAULT snowflake_id()); \
         INSERT INTO orders SELECT FROM generate_series(1, 5000)",
    )?;
    Ok(client)
}

/// Every snowflake and every tag id, of the original and its copies together.
#[derive(Default)]
struct Logs {
    snowflake: Arc<IdLog>,
    tag: Arc<IdLog>,
}

impl Logs {
    /// The rows of `shop`, with what was drawn for them.
    fn rows(&self, client: &mut Client) -> Result<()> {
        for (log, column) in [(&self.tag, "id"), (&self.snowflake, "at")] {
            let mut ids = Vec::new();
            copy_ids(client, &format!("SELECT {column} FROM orders"), &mut ids)?;
            log.record_unordered(ids);
        }
        Ok(())
    }

    fn draw(&self, client: &mut Client) -> Result<()> {
        for (log, query) in [(&self.tag, TAG), (&self.snowflake, SNOWFLAKE)] {
            let mut ids = Vec::new();
            copy_ids(client, query, &mut ids)?;
            log.record(ids);
        }
        Ok(())
    }

    fn check(&self, what: &str) -> Result<()> {
        let (snowflake, tag) = (self.snowflake.check()?, self.tag.check()?);
        println!(
            "{what}: {} snowflake and {} tag ids, all distinct",
            snowflake.count, tag.count
        );
        Ok(())
    }
}

/// A copy that must be asked for a worker id first says so, and what to type.
fn has_no_worker_id(client: &mut Client, message: &str) {
    let taken = query_i64(client, "SELECT snowflake_id()");
    let error = expect_sql_error(taken, "55000", message);
    assert!(error.hint.contains("keywright.set_worker_id"), "{error:?}");
}

/// Dumped while it is in use; restored into a server that knows nothing of it.
#[test]
fn restored_dump_goes_on_above_its_bounds() -> Result<()> {
    for create in [false, true] {
        let (source, mut target) = (server()?, server()?);
        let mut original = shop(&source)?;
        let logs = Logs::default();
        logs.rows(&mut original)?;
        let load = Load::start(
            &source.config("shop", "postgres"),
            2,
            SNOWFLAKE,
            &logs.snowflake,
        );
        load.wait_for(1_000)?;
        let script = if create {
            source.dump("shop", &["--create"])?
        } else {
            source.dump("shop", &[])?
        };
        load.wait_for(1_000)?;
        if create {
            target.restore("postgres", &script)?;
        } else {
            target
                .client("postgres")?
                .batch_execute("CREATE DATABASE shop")?;
            target.restore("shop", &script)?;
        }
        let mut copy = target.client("shop")?;
        has_no_worker_id(
            &mut copy,
            if create {
                "was given to another server or database"
            } else {
                "no worker id"
            },
        );
        let reserved_to = query_i64(&mut copy, RESERVED_TO)?;
        assert!(reserved_to >= 5_000);
        let first = query_i64(&mut copy, "SELECT next_biz_id('orders')")?;
        assert!(first > reserved_to, "{first} after {reserved_to}");
        // Not used before the dump, but perhaps since.
        assert!(query_i64(&mut copy, "SELECT next_biz_id('bills')")? >= 500);
        copy.batch_execute("SELECT keywright.set_worker_id(2)")?;
        copy.batch_execute("INSERT INTO orders SELECT FROM generate_series(1, 1000)")?;
        logs.draw(&mut copy)?;
        target.kill9()?;
        target.start()?;
        let mut copy = target.client("shop")?;
        copy.batch_execute("INSERT INTO orders SELECT FROM generate_series(1, 1000)")?;
        logs.draw(&mut copy)?;
        let mut ids = Vec::new();
        copy_ids(
            &mut copy,
            "SELECT at FROM orders ORDER BY at OFFSET 5000",
            &mut ids,
        )?;
        logs.snowflake.record_unordered(ids);
        assert!(load.stop()?.is_empty());
        logs.check("dump")?;
    }
    Ok(())
}

/// The layout comes along, a dropped tag stays dropped, and a new one is told apart from those that were restored.
#[test]
fn dump_carries_layout_and_dropped_tags() -> Result<()> {
    let (source, target) = (server()?, server()?);
    let mut original = shop(&source)?;
    original.batch_execute(
        "SELECT keywright.set_layout('leaf'); \
         SELECT keywright.drop_tag('bills')",
    )?;
    let script = source.dump("shop", &[])?;
    target
        .client("postgres")?
        .batch_execute("CREATE DATABASE shop")?;
    target.restore("shop", &script)?;
    let mut copy = target.client("shop")?;
    copy.batch_execute("SELECT keywright.set_worker_id(1000)")?;
    let worker = "SELECT snowflake_worker(snowflake_id(), 'leaf')::bigint";
    assert_eq!(query_i64(&mut copy, worker)?, 1_000);
    let taken = query_i64(&mut copy, "SELECT next_biz_id('bills')");
    expect_sql_error(taken, "42704", "tag \"bills\" does not exist");
    copy.batch_execute("SELECT keywright.create_tag('new')")?;
    assert_eq!(query_i64(&mut copy, "SELECT next_biz_id('new')")?, 1);
    Ok(())
}

#[test]
fn template_copy_asks_for_a_worker_id() -> Result<()> {
    let mut server = server()?;
    let mut original = shop(&server)?;
    let logs = Logs::default();
    logs.rows(&mut original)?;
    logs.draw(&mut original)?;
    let reserved_to = query_i64(&mut original, RESERVED_TO)?;
    drop(original);
    let mut admin = server.client("postgres")?;
    wait_until("the end of the last session", WAIT_MAX, || {
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop'";
        Ok(query_i64(&mut admin, sessions)? == 0)
    })?;
    admin.batch_execute("CREATE DATABASE branch TEMPLATE shop")?;
    let tags_of_branch = IdLog::new();
    for life in 0..2 {
        let mut branch = server.client("branch")?;
        if life == 0 {
            has_no_worker_id(&mut branch, "no worker id");
            let taken = branch.batch_execute("SELECT keywright.set_worker_id(1)");
            expect_sql_error(taken, "55006", "worker id 1 belongs to database \"shop\"");
            branch.batch_execute("SELECT keywright.set_worker_id(2)")?;
            let first = query_i64(&mut branch, "SELECT next_biz_id('orders')")?;
            assert!(first > reserved_to, "{first} after {reserved_to}");
        }
        for (log, query) in [(&tags_of_branch, TAG), (&*logs.snowflake, SNOWFLAKE)] {
            let mut ids = Vec::new();
            copy_ids(&mut branch, query, &mut ids)?;
            log.record(ids);
        }
        logs.draw(&mut server.client("shop")?)?;
        server.kill9()?;
        server.start()?;
    }
    tags_of_branch.check()?;
    logs.check("template")
}

/// The data directory of a server that was killed under load, moved elsewhere: it is the original now.
#[test]
fn copied_data_directory_goes_on_as_the_original() -> Result<()> {
    let mut server = server()?;
    let mut original = shop(&server)?;
    let logs = Logs::default();
    logs.rows(&mut original)?;
    drop(original);
    for _ in 0..3 {
        let config = server.config("shop", "postgres");
        let loads = [
            Load::start(&config, 4, SNOWFLAKE, &logs.snowflake),
            Load::start(&config, 4, TAG, &logs.tag),
        ];
        loads.iter().try_for_each(|load| load.wait_for(5_000))?;
        server.kill9()?;
        for load in loads {
            assert!(load.stop()?.is_empty());
        }
        let mut copy = server.copy()?;
        copy.start()?;
        logs.draw(&mut copy.client("shop")?)?;
        server = copy;
    }
    logs.check("copies")
}

/// One that is opened while its original may still be running gets a worker id of its own, and tags that start above.
#[test]
fn copy_beside_its_original_after_what_the_manual_says() -> Result<()> {
    let mut server = server()?;
    let mut original = shop(&server)?;
    let logs = Logs::default();
    logs.rows(&mut original)?;
    server.kill9()?;
    let mut copy = server.copy()?;
    server.start()?;
    copy.start()?;
    let mut branch = copy.client("shop")?;
    branch.batch_execute(
        "SELECT keywright.set_worker_id(2); SELECT keywright.advance_tag('orders', 1000000)",
    )?;
    for _ in 0..5 {
        logs.draw(&mut branch)?;
        logs.draw(&mut server.client("shop")?)?;
    }
    logs.check("copy beside its original")
}
