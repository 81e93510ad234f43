//! A database that is dropped, and made again with the same object id. A copy of a template has the template's object ids, too: so all keys are those of
//! the database that was dropped.

use keywright_testkit::{IdLog, PgServer, Result, draw, expect_sql_error, query_i64};
use postgres::Client;

use super::closings::CHANGE;
use super::{SNOWFLAKE, TAG};

const MAKE: &str = "CREATE DATABASE two OID 60000";

/// A server whose template1 has tag `orders`, and a session beside it.
fn server_with_template() -> Result<(PgServer, Client)> {
    let server = PgServer::builder().start()?;
    let keeper = server.client("postgres")?;
    server
        .client("template1")?
        .batch_execute("CREATE EXTENSION keywright; SELECT keywright.create_tag('orders')")?;
    Ok((server, keeper))
}

#[test]
fn it_issues_no_id_of_before() -> Result<()> {
    let (server, mut keeper) = server_with_template()?;
    let log = IdLog::new();
    for _ in 0..2 {
        keeper.batch_execute(MAKE)?;
        let mut two = server.client("two")?;
        two.batch_execute("SELECT keywright.set_worker_id(9)")?;
        draw(&mut two, SNOWFLAKE, &log)?;
        draw(
            &mut two,
            "SELECT next_biz_id('orders') FROM generate_series(1, 3000)",
            &IdLog::new(),
        )?;
        drop(two);
        keeper.batch_execute("DROP DATABASE two")?;
    }
    log.check()?;
    Ok(())
}

/// The change ends with the session that is thrown out.
#[test]
fn nothing_is_left_of_a_tag_that_was_being_changed() -> Result<()> {
    let (server, mut keeper) = server_with_template()?;
    for _ in 0..2 {
        keeper.batch_execute(MAKE)?;
        let mut two = server.client("two")?;
        draw(&mut two, TAG, &IdLog::new())?;
        two.batch_execute("BEGIN")?;
        two.batch_execute(CHANGE)?;
        keeper.batch_execute("DROP DATABASE two WITH (FORCE)")?;
    }
    Ok(())
}

/// With the object id of its original it would pass for that, and issue what the original issued since.
#[test]
fn a_copy_is_given_no_object_id() -> Result<()> {
    let (server, mut keeper) = server_with_template()?;
    keeper.batch_execute(MAKE)?;
    let mut two = server.client("two")?;
    query_i64(&mut two, "SELECT next_biz_id('orders')")?;
    drop(two);
    keeper.batch_execute("CREATE DATABASE copy TEMPLATE two")?;
    draw(&mut server.client("two")?, TAG, &IdLog::new())?;
    keeper.batch_execute("DROP DATABASE two")?;
    for options in [
        "TEMPLATE copy OID 60000",
        "OID 60000 TEMPLATE copy",
        "WITH OID = 60000 OWNER postgres TEMPLATE = copy",
        "WITH \"template\" 'copy' \"oid\" 60000",
    ] {
        let made = keeper.batch_execute(&format!("CREATE DATABASE two {options}"));
        let error = expect_sql_error(made, "55000", "a copy of a database is given no object id");
        assert!(error.hint.contains("Leave OID out"), "{options}: {error:?}");
    }
    for statement in [
        "CREATE DATABASE two TEMPLATE copy",
        "CREATE DATABASE three TEMPLATE = template0 OID = 60001",
        "CREATE DATABASE four TEMPLATE DEFAULT OID 60002",
    ] {
        keeper.batch_execute(statement)?;
    }
    Ok(())
}
