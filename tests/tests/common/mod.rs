//! What the tests of the SQL surface share.
#![allow(dead_code, reason = "a file of tests uses what it needs")]

use keywright_core::cause::Cause;
use keywright_testkit::{
    PgServer, PgServerBuilder, PgVersion, Result, SharedServer, SqlError, TestDatabase, WAIT_MAX,
    expect_sql_error, query_i64, query_text, wait_until,
};
use postgres::{Client, SimpleQueryMessage};

/// A server that would show backtraces if anything let them through to clients.
pub(crate) fn builder() -> PgServerBuilder {
    PgServer::builder().env("RUST_BACKTRACE", "1")
}

/// A server for transactions that are prepared, and many connections.
pub(crate) fn builder_for_many() -> PgServerBuilder {
    PgServer::builder()
        .setting("max_prepared_transactions", "10")
        .setting("max_connections", "60")
}

/// A database of such a server, with tag `orders` that reserves 100 ids at a time.
pub(crate) fn tag_database(server: &'static SharedServer) -> Result<TestDatabase> {
    let database = server.database(builder_for_many)?;
    database.client()?.batch_execute(
        "SELECT keywright.create_tag('orders', step => 100, step_min => 100, step_max => 100)",
    )?;
    Ok(database)
}

/// Runs statements and returns the rows of what they select as text; NULL comes as `NULL`.
pub(crate) fn text_rows(client: &mut Client, sql: &str) -> Result<Vec<Vec<String>>> {
    let messages = client.simple_query(sql)?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let fields = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL").to_owned());
            Some(fields.collect())
        }
        _ => None,
    });
    Ok(rows.collect())
}

/// The default of the one column of a table that has one; empty if none has.
pub(crate) fn column_default(client: &mut Client, table: &str) -> Result<String> {
    let sql = format!(
        "SELECT coalesce(pg_get_expr(adbin, adrelid), '') FROM pg_attrdef WHERE adrelid = '{table}'::regclass"
    );
    Ok(text_rows(client, &sql)?.concat().concat())
}

/// Asserts that the extension refused for that cause, in words that help: what is wrong (`message_has`), what to do, and
/// nothing about its insides.
#[track_caller]
pub(crate) fn expect_cause<T>(
    result: std::result::Result<T, postgres::Error>,
    cause: Cause,
    message_has: &str,
) -> SqlError {
    let error = result.as_ref().err().and_then(postgres::Error::as_db_error);
    // The extension gives the cause's name as the place where the error arose.
    let routine = error.and_then(|error| error.routine()).map(str::to_owned);
    let seen = expect_sql_error(result, cause.sqlstate(), message_has);
    assert_eq!(routine.as_deref(), Some(cause.name()), "{seen:#?}");
    assert!(!seen.hint.is_empty(), "no hint: {seen:#?}");
    assert_no_backtrace(&seen);
    seen
}

/// Asserts that a setting which does not exist is refused. PostgreSQL 14 takes such settings and does nothing with them.
#[track_caller]
pub(crate) fn expect_unknown_setting<T>(
    result: std::result::Result<T, postgres::Error>,
    name: &str,
) -> Result<()> {
    if PgVersion::under_test()? > PgVersion::V14 {
        expect_sql_error(result, "42602", name);
    }
    Ok(())
}

/// Asserts that an error says nothing of Rust's insides.
#[track_caller]
pub(crate) fn assert_no_backtrace(seen: &SqlError) {
    let SqlError {
        message,
        detail,
        hint,
        ..
    } = seen;
    for text in [message, detail, hint] {
        assert!(
            !text.contains('\n') && !text.contains("::") && !text.contains("panicked"),
            "insides shown: {seen:#?}"
        );
    }
}

/// One readable id.
pub(crate) const ONE_READABLE: &str = "SELECT readable_id('ORD')";

/// A new database of a server, with the extension and what statements give it.
pub(crate) fn database(server: &PgServer, name: &str, identity: &str) -> Result<Client> {
    server
        .client("postgres")?
        .batch_execute(&format!("CREATE DATABASE {name}"))?;
    let mut client = server.client(name)?;
    client.batch_execute(&format!("CREATE EXTENSION keywright; {identity}"))?;
    Ok(client)
}

/// Drops a database once the sessions that a test has ended are gone.
pub(crate) fn drop_database(server: &PgServer, name: &str) -> Result<()> {
    let mut keeper = server.client("postgres")?;
    let sessions = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
    wait_until("the end of the last session", WAIT_MAX, || {
        Ok(query_i64(&mut keeper, &sessions)? == 0)
    })?;
    keeper.batch_execute(&format!("DROP DATABASE {name}"))?;
    Ok(())
}

/// Issues a readable id.
pub(crate) fn issue_readable(client: &mut Client) -> Result<String> {
    Ok(query_text(client, ONE_READABLE)?)
}
