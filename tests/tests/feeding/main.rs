//! Tags that are fed, on the server's side: what is asked for, which hand-overs are taken, and that nothing else is issued. The
//! program that feeds is played by statements.

#[path = "../common/mod.rs"]
mod common;
mod hand_overs;
mod lives;
mod time;
mod time_again;

use std::thread;

use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{
    Result, SharedServer, TestDatabase, WAIT_MAX, expect_sql_error, query_i64, query_text,
    wait_until,
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
            "alter_tag('T', refill_threshold_percent => 80)",
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
