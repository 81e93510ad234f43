//! Tags of PostgreSQL that programs feed, and what is in the way of that: a store that went back, one that is lost, a user who may not feed. No program
//! reserves below what a server was handed, and nothing is reserved that nobody takes.

use std::time::{Duration, Instant};

use keywright_testkit::redis::RespClient;
use keywright_testkit::{
    IdLog, PgServer, ProxyConfig, ProxyProcess, Result, WAIT_MAX, assert_has, query_i64,
    scratch_dir, wait_until,
};
use postgres::Client;

const DRAW: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 20)";

/// A server with a database `shop` whose tag `orders` is fed, and a role that feeds.
fn fed_server() -> Result<PgServer> {
    let server = PgServer::builder().start()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute(
        "CREATE EXTENSION keywright; CREATE ROLE feeder LOGIN; GRANT USAGE ON SCHEMA keywright TO feeder; \
         GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over TO feeder",
    )?;
    keeper.batch_execute("CREATE DATABASE shop")?;
    server.client("shop")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_fed_tag('orders', step => 200, step_min => 200)",
    )?;
    Ok(server)
}

fn section(server: &PgServer) -> String {
    format!(
        "\n[[feed]]\nurl = \"postgres://feeder@127.0.0.1:{}/postgres\"\ntags = [\"orders\"]\n",
        server.port()
    )
}

/// A server that is fed knows better than a store that was put back. Its program tells the store, so that one which feeds nobody reserves nothing
/// either, and check says so.
#[test]
fn a_store_that_went_back_is_told_to_programs_that_feed_nobody() -> Result<()> {
    let server = fed_server()?;
    let dir = scratch_dir()?;
    let store = dir.path().join("store.db");
    let feeds_nobody = ProxyConfig::key_port(&store, "keys = { orders = \"segment:orders\" }");
    let feeds = ProxyConfig {
        more: section(&server),
        ..feeds_nobody.clone()
    };
    ProxyProcess::said(&feeds, &["init"])?;
    let mut client = server.client("shop")?;
    let draw = "SELECT max(next_biz_id('orders')) FROM generate_series(1, 1000)";
    let known = "SELECT reserved_to FROM keywright.tags";
    let mut program = ProxyProcess::start(feeds.clone())?;
    query_i64(&mut client, draw)?;
    program.stop()?;
    let backup = std::fs::read(&store)?;
    let backed_up = query_i64(&mut client, known)?;
    program.restart()?;
    wait_until("ranges that the backup knows nothing of", WAIT_MAX, || {
        query_i64(&mut client, draw)?;
        Ok(query_i64(&mut client, known)? > backed_up)
    })?;
    program.stop()?;
    let reserved_to = query_i64(&mut client, known)?;
    std::fs::write(&store, backup)?;
    // Who is not configured to feed cannot know yet, and asks for nothing before the other has started.
    assert_has(
        &ProxyProcess::said(&feeds_nobody, &["check"])?,
        &["ready to run"],
    );
    let gone_back = format!("keywright advance orders --above {reserved_to}");
    let checked = |config: &ProxyConfig| -> Result<String> {
        let output = ProxyProcess::command(config, &["check"])?;
        Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
    };
    assert_has(
        &checked(&feeds)?,
        &["feed 127.0.0.1:", "the store has gone back", &gone_back],
    );
    program.restart()?;
    wait_until("that the store knows it", WAIT_MAX, || {
        Ok(checked(&feeds_nobody)?.contains("gone back"))
    })?;
    program.kill9()?;
    let mut other = ProxyProcess::start(feeds_nobody.clone())?;
    let refused = RespClient::connect(other.key_port()?)?.say("INCR orders")?;
    assert_has(
        refused.error()?,
        &["BOUND_DAMAGED", "the store has gone back"],
    );
    other.stop()?;
    let above = reserved_to.to_string();
    ProxyProcess::said(&feeds_nobody, &["advance", "orders", "--above", &above])?;
    other.restart()?;
    let mut port = RespClient::connect(other.key_port()?)?;
    assert!(port.say("INCR orders")?.integer()? > reserved_to);
    Ok(())
}

/// Ids that the store reserved and nobody got.
fn lost(program: &ProxyProcess) -> Result<u64> {
    let figure = program.figure("keywright_fed_ranges_lost_total", &[])?;
    Ok(figure.map_or(Ok(0), |figure| figure.parse())?)
}

/// The program looks whether its user may feed before it reserves more.
#[test]
fn a_user_who_may_not_feed_any_more_loses_one_range_at_most() -> Result<()> {
    let server = fed_server()?;
    let dir = scratch_dir()?;
    let config = ProxyConfig {
        more: section(&server),
        ..ProxyConfig::key_port(&dir.path().join("store.db"), "")
    };
    let config = ProxyConfig {
        key_ports: Vec::new(),
        store: format!("{}backoff_ms_max = 200\n", config.store),
        ..config
    };
    ProxyProcess::said(&config, &["init"])?;
    let program = ProxyProcess::start(config)?;
    let mut client = server.client("shop")?;
    client.query(DRAW, &[])?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("REVOKE EXECUTE ON FUNCTION keywright.feed_tag FROM feeder")?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 500")?;
    wait_until("the end of what was handed over", WAIT_MAX, || {
        Ok(client.query(DRAW, &[]).is_err())
    })?;
    wait_until("what the program says", WAIT_MAX, || {
        Ok(program.log().contains("may not feed"))
    })?;
    // Each time something is wanted, and told of once more.
    let until = Instant::now() + Duration::from_secs(8);
    while Instant::now() < until {
        assert!(client.query(DRAW, &[]).is_err());
    }
    let lost = lost(&program)?;
    assert!(lost <= 1, "{lost} ranges");
    keeper.batch_execute("GRANT EXECUTE ON FUNCTION keywright.feed_tag TO feeder")?;
    wait_until("ids after the grant", WAIT_MAX, || {
        Ok(client.query(DRAW, &[]).is_ok())
    })?;
    Ok(())
}

/// The store is lost, and another one begins: nothing is reserved for a database that was fed from the one before, others are fed all the same, and
/// what the documentation says brings it back.
#[test]
fn a_database_that_was_fed_from_a_lost_store_takes_ids_of_another_when_its_tag_is_made_anew()
-> Result<()> {
    const CREATE: &str = "SELECT keywright.create_fed_tag('orders', step => 200, step_min => 200, forget_issued => true)";
    const MANY: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 100)";
    let server = fed_server()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("CREATE DATABASE fresh")?;
    let mut fresh = server.client("fresh")?;
    fresh.batch_execute("CREATE EXTENSION keywright")?;
    fresh.batch_execute(CREATE)?;
    let mut shop = server.client("shop")?;
    let log = IdLog::new();
    let draw = |client: &mut Client| -> Result<()> {
        let rows = client.query(MANY, &[])?;
        log.record_unordered(rows.iter().map(|row| row.get(0)).collect());
        Ok(())
    };
    let dir = scratch_dir()?;
    let of = |file: &str| ProxyConfig {
        key_ports: Vec::new(),
        more: section(&server),
        ..ProxyConfig::key_port(&dir.path().join(file), "")
    };
    let (before, after) = (of("lost.db"), of("new.db"));
    ProxyProcess::said(&before, &["init"])?;
    let mut program = ProxyProcess::start(before)?;
    draw(&mut shop)?;
    program.stop()?;
    ProxyProcess::said(&after, &["init"])?;
    let output = ProxyProcess::command(&after, &["check"])?;
    assert_has(
        &String::from_utf8(output.stdout)?,
        &[
            "out of another store",
            "\"Databases that were fed\" in docs/operations/store.md",
        ],
    );
    let last = "SELECT max(last) FROM keywright.handed_over('{orders}')";
    let above = query_i64(&mut keeper, last)?.to_string();
    ProxyProcess::said(&after, &["advance", "orders", "--above", &above])?;
    let program = ProxyProcess::start(after)?;
    shop.batch_execute("SET keywright.refill_wait_ms_max = 500")?;
    wait_until("the end of what the lost store gave", WAIT_MAX, || {
        Ok(draw(&mut shop).is_err())
    })?;
    wait_until("what the program says", WAIT_MAX, || {
        Ok(program.log().contains("out of another store"))
    })?;
    draw(&mut fresh)?;
    assert!(draw(&mut shop).is_err());
    assert_eq!(lost(&program)?, 0);
    shop.batch_execute("RESET keywright.refill_wait_ms_max; SELECT keywright.drop_tag('orders')")?;
    shop.batch_execute(CREATE)?;
    for _ in 0..5 {
        draw(&mut shop)?;
        draw(&mut fresh)?;
    }
    log.check()?;
    Ok(())
}
