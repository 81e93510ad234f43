//! `pg_upgrade`: refused before it changes anything where it could not end, and ids after it go on above those before.

use keywright_testkit::{IdLog, PgServer, Result, Stop, copy_ids, expect_sql_error, query_i64};

const SNOWFLAKE: &str = "SELECT snowflake_id() FROM generate_series(1, 400)";
const TAG: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 400)";

fn draw(server: &PgServer, query: &str, log: &IdLog) -> Result<()> {
    let mut ids = Vec::new();
    copy_ids(&mut server.client("shop")?, query, &mut ids)?;
    log.record(ids);
    Ok(())
}

#[test]
fn ids_go_on_after_pg_upgrade() -> Result<()> {
    let mut old = PgServer::builder().start()?;
    let mut admin = old.client("postgres")?;
    admin.batch_execute("CREATE DATABASE shop")?;
    old.client("shop")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1); SELECT keywright.set_readable_bucket(33); \
         SELECT keywright.create_tag('orders', step => 100, step_max => 100); \
         CREATE TABLE orders (id bigint DEFAULT next_biz_id('orders'), at bigint DEFAULT snowflake_id())",
    )?;
    let (snowflakes, tags) = (IdLog::new(), IdLog::new());
    draw(&old, SNOWFLAKE, &snowflakes)?;
    draw(&old, TAG, &tags)?;
    old.stop(Stop::Fast)?;

    let bare = PgServer::builder().preload(false).initialise()?;
    for arguments in [&["--check"][..], &[]] {
        let refused = old
            .upgrade_to(&bare, arguments)
            .expect_err("pg_upgrade without the preload");
        let said = format!("{refused:#}");
        for part in [
            "keywright is not preloaded, so pg_upgrade cannot carry its databases over",
            "Add keywright to shared_preload_libraries in postgresql.conf of the new cluster.",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
    // Nothing was changed.
    old.start()?;
    draw(&old, SNOWFLAKE, &snowflakes)?;
    draw(&old, TAG, &tags)?;
    old.stop(Stop::Fast)?;

    let mut new = PgServer::builder().initialise()?;
    old.upgrade_to(&new, &["--check"])?;
    old.upgrade_to(&new, &[])?;
    new.start()?;
    let mut client = new.client("shop")?;
    let taken = query_i64(&mut client, "SELECT snowflake_id()");
    let refusal = expect_sql_error(taken, "55000", "was given to another server or database");
    assert!(
        refusal.hint.contains("keywright.set_worker_id"),
        "{refusal:?}"
    );
    client.batch_execute("SELECT keywright.set_worker_id(1)")?;
    // The bucket was chosen: that the worker id is given again says nothing of it.
    let readable = "SELECT readable_id('ORD')";
    let refusal = expect_sql_error(
        client.batch_execute(readable),
        "55000",
        "readable bucket 33",
    );
    assert!(
        refusal.hint.contains("set_readable_bucket(33)"),
        "{refusal:?}"
    );
    client.batch_execute("SELECT keywright.set_readable_bucket(33)")?;
    client.batch_execute(readable)?;
    draw(&new, SNOWFLAKE, &snowflakes)?;
    draw(&new, TAG, &tags)?;
    client.batch_execute("INSERT INTO orders DEFAULT VALUES; DROP TABLE orders")?;
    for log in [&snowflakes, &tags] {
        assert_eq!(log.check()?.count, 1_200);
    }
    client.batch_execute("DROP EXTENSION keywright")?;
    Ok(())
}
