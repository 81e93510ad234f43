//! A database that is dropped, and made again with the same object id. A copy of a template has the template's object ids, too: so all keys are those of
//! the database that was dropped.

use keywright_testkit::{IdLog, PgServer, Result, draw};
use postgres::Client;

use super::closings::CHANGE;
use super::{SNOWFLAKE, TAG};

const MAKE: &str = "CREATE DATABASE two TEMPLATE template OID 60000";

/// A server with a template that has tag `orders`, and a session beside it.
fn server_with_template() -> Result<(PgServer, Client)> {
    let server = PgServer::builder().start()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("CREATE DATABASE template")?;
    server
        .client("template")?
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
