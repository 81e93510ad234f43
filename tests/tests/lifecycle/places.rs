//! Places in shared memory, where there are no more: what changes keeps its own, and what is dropped leaves it to others.

use keywright_testkit::{PgServer, Result, expect_sql_error, query_i64};
use postgres::Client;

use super::closings::begin_to_drop_database;

const CHANGE: &str = "SELECT keywright.alter_tag('tag1', increment => 3, remainder => 1)";
const ANOTHER: &str = "SELECT keywright.alter_tag('tag1', increment => 3, remainder => 2)";

fn next(client: &mut Client, tag: u32) -> std::result::Result<i64, postgres::Error> {
    query_i64(client, &format!("SELECT next_biz_id('tag{tag}')"))
}

#[test]
fn a_tag_that_was_changed_keeps_its_place() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.tags_max", "3")
        .start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('tag' || n) FROM generate_series(1, 5) n",
    )?;
    for tag in 1..=3 {
        assert_eq!(next(&mut client, tag)?, 1);
    }
    let mut last = 1;
    for change in ["max => 1000000", "increment => 3, remainder => 1"] {
        client.batch_execute(&format!("SELECT keywright.alter_tag('tag2', {change})"))?;
        expect_sql_error(
            next(&mut client, 4),
            "53400",
            "no room in shared memory for tag \"tag4\"",
        );
        let id = next(&mut client, 2)?;
        assert!(id > last, "{change}: {id} after {last}");
        last = id;
    }
    client.batch_execute("SELECT keywright.drop_tag('tag2')")?;
    assert_eq!(next(&mut client, 4)?, 1);
    // Changed and dropped by one transaction, which has then done both.
    client.batch_execute(
        "SELECT keywright.alter_tag('tag3', max => 1000000); SELECT keywright.drop_tag('tag3')",
    )?;
    assert_eq!(next(&mut client, 5)?, 1);
    Ok(())
}

/// A server with room for two tags, a session of its database postgres, and one of database `two`. Both have tags, none was used.
fn two_databases() -> Result<(PgServer, Client, Client)> {
    let server = PgServer::builder()
        .setting("keywright.tags_max", "2")
        .start()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("CREATE DATABASE two")?;
    let mut two = server.client("two")?;
    for client in [&mut keeper, &mut two] {
        client.batch_execute(
            "CREATE EXTENSION keywright; SELECT keywright.create_tag('tag' || n) FROM generate_series(1, 2) n",
        )?;
    }
    Ok((server, keeper, two))
}

/// Database `two` is gone, and its tags have left their places to those of this one.
fn expect_places(keeper: &mut Client) -> Result<()> {
    let databases = "SELECT count(*) FROM pg_database WHERE datname = 'two'";
    assert_eq!(query_i64(keeper, databases)?, 0, "it was not dropped");
    for tag in 1..=2 {
        assert_eq!(next(keeper, tag)?, 1);
    }
    Ok(())
}

/// While the server waits for its sessions to leave, one takes ids of a tag that was changed before, and of one that nobody used before.
#[test]
fn tags_that_are_used_while_their_database_is_dropped_leave_their_places() -> Result<()> {
    let (server, mut keeper, mut two) = two_databases()?;
    next(&mut two, 1)?;
    two.batch_execute(CHANGE)?;
    let dropping = begin_to_drop_database(&server)?;
    for tag in 1..=2 {
        next(&mut two, tag)?;
    }
    drop(two);
    dropping.finish()?;
    expect_places(&mut keeper)
}

#[test]
fn tags_that_are_used_while_a_drop_of_their_database_fails_keep_their_places() -> Result<()> {
    let (server, mut keeper, mut two) = two_databases()?;
    let before = next(&mut two, 1)?;
    two.batch_execute(CHANGE)?;
    let dropping = begin_to_drop_database(&server)?;
    let changed = next(&mut two, 1)?;
    assert!(changed > before, "{changed} after {before}");
    let meanwhile = [changed, next(&mut two, 2)?];
    let dropped = dropping.finish()?.outcome;
    expect_sql_error(dropped, "55006", "is being accessed by other users");
    expect_sql_error(
        next(&mut keeper, 1),
        "53400",
        "no room in shared memory for tag \"tag1\"",
    );
    for (tag, last) in (1..).zip(meanwhile) {
        let id = next(&mut two, tag)?;
        assert!(id > last, "tag{tag}: {id} after {last}");
    }
    // Changed once more, and dropped for good.
    two.batch_execute(ANOTHER)?;
    let dropping = begin_to_drop_database(&server)?;
    next(&mut two, 1)?;
    drop(two);
    dropping.finish()?;
    expect_places(&mut keeper)
}

#[test]
fn words_whose_bounds_were_lowered_keep_their_places() -> Result<()> {
    const IDS: &str = "SELECT snowflake_id(), readable_id('ORD')";
    let server = PgServer::builder()
        .setting("keywright.workers_max", "2")
        .start()?;
    let mut one = server.client("postgres")?;
    one.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1, above => now() + interval '2 hours')",
    )?;
    one.batch_execute(IDS)?;
    one.batch_execute("CREATE DATABASE two")?;
    let mut two = server.client("two")?;
    two.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(2)")?;
    one.batch_execute("SELECT keywright.lower_bound(now() + interval '1 minute')")?;
    let refused = query_i64(&mut two, "SELECT snowflake_id()");
    expect_sql_error(refused, "53400", "no room in shared memory");
    one.batch_execute(IDS)?;
    Ok(())
}

/// It is not in force any more, and what is known of its ids on disk lies below them now.
#[test]
fn a_word_of_an_earlier_layout_gives_its_place_up_when_bounds_are_lowered() -> Result<()> {
    const IDS: &str = "SELECT snowflake_id(), readable_id('ORD')";
    let server = PgServer::builder()
        .setting("keywright.workers_max", "3")
        .start()?;
    let mut one = server.client("postgres")?;
    one.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1, above => now() + interval '2 hours')",
    )?;
    one.batch_execute(IDS)?;
    one.batch_execute("SELECT keywright.set_layout('leaf')")?;
    one.batch_execute(IDS)?;
    one.batch_execute("CREATE DATABASE two")?;
    let mut two = server.client("two")?;
    two.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(2)")?;
    one.batch_execute("SELECT keywright.lower_bound(now() + interval '1 minute')")?;
    query_i64(&mut two, "SELECT snowflake_id()")?;
    one.batch_execute(IDS)?;
    Ok(())
}
