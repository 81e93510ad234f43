//! `pg_resetwal` throws the log away, and with it bounds that stood nowhere else: the next start notices it, and later ones remember.

mod common;

use std::fs;

use common::expect_cause;
use keywright_core::cause::Cause;
use keywright_testkit::{
    IdLog, PgServer, Replication, Result, Stop, assert_has, copy_ids, query_i64, query_text,
};
use postgres::Client;

const IDS: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 400)";
const SNOWFLAKES: &str = "SELECT snowflake_id() FROM generate_series(1, 400)";

/// A server with tags `orders` and `bills` and a worker id. Its data files have their first ids, and no later ones.
fn server() -> Result<PgServer> {
    let server = PgServer::builder()
        .setting("autovacuum", "off")
        .setting("checkpoint_timeout", "1h")
        .start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1); SELECT snowflake_id();
         SELECT keywright.create_tag('orders', step => 100, step_max => 100); SELECT keywright.create_tag('bills');
         SELECT next_biz_id('orders'), next_biz_id('bills')",
    )?;
    server.client("postgres")?.batch_execute("CHECKPOINT")?;
    Ok(server)
}

/// Draws ids; the last of them.
fn draw(server: &PgServer, query: &str, log: &IdLog) -> Result<i64> {
    draw_in(&mut server.client("postgres")?, query, log)
}

fn draw_in(client: &mut Client, query: &str, log: &IdLog) -> Result<i64> {
    let mut ids = Vec::new();
    copy_ids(client, query, &mut ids)?;
    let last = ids.last().copied().unwrap_or(0);
    log.record(ids);
    Ok(last)
}

fn is_refused(client: &mut Client, tag: &str) {
    let answer = client.batch_execute(&format!("SELECT next_biz_id('{tag}')"));
    let error = expect_cause(answer, Cause::BoundDamaged, "nothing says how far");
    let advance = format!("advance_tag('{tag}', ");
    assert!(error.hint.contains(&advance), "{error:#?}");
    assert!(error.detail.contains("pg_resetwal"), "{error:#?}");
}

fn health(client: &mut Client, row: &str) -> Result<String> {
    let query =
        format!("SELECT severity || ': ' || detail FROM keywright.health WHERE name = '{row}'");
    Ok(query_text(client, &query)?)
}

const RESET: &str = "warning: the WAL of this server was reset (pg_resetwal)";

#[test]
fn tags_issue_nothing_until_they_are_advanced() -> Result<()> {
    let mut server = server()?;
    let (tags, snowflakes) = (IdLog::new(), IdLog::new());
    let last = draw(&server, IDS, &tags)?;
    draw(&server, SNOWFLAKES, &snowflakes)?;
    server.stop(Stop::Immediate)?;
    server.reset_wal()?;
    // The first start sees it, the second one sees it again, and to the others nothing shows it.
    for how in [Stop::Immediate, Stop::Fast, Stop::Immediate, Stop::Fast] {
        server.start()?;
        is_refused(&mut server.client("postgres")?, "orders");
        server.stop(how)?;
    }
    assert_eq!(server.log()?.matches("pg_resetwal was run, and").count(), 1);
    server.start()?;
    let mut client = server.client("postgres")?;
    assert_has(&health(&mut client, "promotion")?, &[RESET]);
    assert_eq!(
        health(&mut client, "tags")?,
        "error: nothing says how far 2 tags were used: bills, orders"
    );
    client.batch_execute(&format!("SELECT keywright.advance_tag('orders', {last})"))?;
    draw(&server, IDS, &tags)?;
    draw(&server, SNOWFLAKES, &snowflakes)?;
    let said = "the snowflake bound may have been lost to pg_resetwal; leaving out";
    assert!(server.log_contains(said)?, "{}", server.log()?);
    assert_has(
        &health(&mut client, "promotion")?,
        &[RESET, "as noticed at"],
    );
    client.batch_execute("SELECT keywright.acknowledge_promotion()")?;
    assert_has(&health(&mut client, "promotion")?, &["ok: "]);
    assert_eq!(
        health(&mut client, "tags")?,
        "error: nothing says how far 1 tags were used: bills"
    );
    // Whether readable ids were issued, which in that zone could come again, nothing tells any more.
    let west = client.batch_execute("SELECT keywright.set_readable_zone('-05:00')");
    let refused = west.expect_err("it could repeat them");
    let told = refused.as_db_error().map(|error| error.message());
    assert!(
        told.is_some_and(|told| told.contains("could repeat readable ids")),
        "{refused:?}"
    );
    client.batch_execute("SELECT keywright.create_tag('new')")?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('new')")?, 1);
    drop(client);
    for how in [Stop::Immediate, Stop::Fast] {
        server.restart(how)?;
        draw(&server, IDS, &tags)?;
        draw(&server, SNOWFLAKES, &snowflakes)?;
        is_refused(&mut server.client("postgres")?, "bills");
    }
    for log in [&tags, &snowflakes] {
        assert_eq!(log.check()?.count, 1_600);
    }
    Ok(())
}

/// Their notes are of another database, as those of a restored dump are of another server: they are no sign that nothing was lost here.
#[test]
fn tags_of_a_copied_database_issue_nothing_either() -> Result<()> {
    let mut server = server()?;
    let mut client = server.client("template1")?;
    client.batch_execute("CREATE DATABASE shop TEMPLATE postgres")?;
    client.batch_execute("CHECKPOINT")?;
    drop(client);
    let tags = IdLog::new();
    let last = draw_in(&mut server.client("shop")?, IDS, &tags)?;
    server.stop(Stop::Immediate)?;
    server.reset_wal()?;
    server.start()?;
    let mut client = server.client("shop")?;
    is_refused(&mut client, "orders");
    assert_eq!(
        health(&mut client, "tags")?,
        "error: nothing says how far 2 tags were used: bills, orders"
    );
    client.batch_execute(&format!("SELECT keywright.advance_tag('orders', {last})"))?;
    draw_in(&mut client, IDS, &tags)?;
    assert_eq!(tags.check()?.count, 800);
    Ok(())
}

/// The row of the tag is older than its move to a store: the move asks how far the tag came, and its owner can say it.
#[test]
fn a_lost_move_is_made_again_above_what_the_owner_says() -> Result<()> {
    const MOVE: &str = "SELECT keywright.move_to_fed('orders', 1)";
    let next = |client: &mut Client| {
        let answer = client.batch_execute("SELECT next_biz_id('orders')");
        expect_cause(answer, Cause::TagMoved, "issues no ids of its own")
    };
    let mut server = server()?;
    let last = draw(&server, IDS, &IdLog::new())?;
    server.stop(Stop::Immediate)?;
    server.reset_wal()?;
    server.set("keywright.source", "orders=fed:1");
    server.start()?;
    let mut client = server.client("postgres")?;
    let hint = next(&mut client).hint;
    assert_has(&hint, &["keywright tag move orders --to fed"]);
    let refused = client.batch_execute(MOVE);
    let hint = expect_cause(refused, Cause::BoundDamaged, "nothing says how far").hint;
    assert_has(&hint, &["keywright.advance_tag('orders', "]);
    client.batch_execute(&format!("SELECT keywright.advance_tag('orders', {last})"))?;
    next(&mut client);
    drop(client);
    // It was durable, and opens the way.
    server.restart(Stop::Immediate)?;
    let moved = query_i64(&mut server.client("postgres")?, MOVE)?;
    assert!(moved >= last, "{moved} is below {last}");
    Ok(())
}

#[test]
fn a_dropped_tag_comes_back_above_what_the_owner_says() -> Result<()> {
    let mut server = server()?;
    let tags = IdLog::new();
    let last = draw(&server, IDS, &tags)?;
    let mut client = server.client("postgres")?;
    client.batch_execute("SELECT keywright.drop_tag('orders')")?;
    client.batch_execute("CHECKPOINT")?;
    drop(client);
    server.stop(Stop::Immediate)?;
    server.reset_wal()?;
    server.start()?;
    let mut client = server.client("postgres")?;
    let refused = client.batch_execute("SELECT keywright.create_tag('orders', start => 1000000)");
    let hint = expect_cause(refused, Cause::BoundDamaged, "nothing says how far").hint;
    let create = "SELECT keywright.create_tag('orders')";
    assert_has(&hint, &[create, "keywright.advance_tag('orders', "]);
    client.batch_execute(create)?;
    is_refused(&mut client, "orders");
    client.batch_execute(&format!("SELECT keywright.advance_tag('orders', {last})"))?;
    draw(&server, IDS, &tags)?;
    assert_eq!(tags.check()?.count, 800);
    Ok(())
}

/// So it is where a segment of the log gets another size, and for pg_upgrade.
#[test]
fn nothing_is_lost_after_a_stop_in_order() -> Result<()> {
    let mut server = server()?;
    let tags = IdLog::new();
    draw(&server, IDS, &tags)?;
    for how in [Stop::Fast, Stop::Smart] {
        server.stop(how)?;
        server.reset_wal()?;
        server.start()?;
        draw(&server, IDS, &tags)?;
        // It has written no checkpoint: the same log begins once more.
        server.restart(Stop::Immediate)?;
        draw(&server, IDS, &tags)?;
    }
    assert!(server.log_contains("no bound was lost")?);
    assert_eq!(tags.check()?.count, 2_000);
    server.stop(Stop::Immediate)?;
    server.reset_wal()?;
    server.start()?;
    is_refused(&mut server.client("postgres")?, "orders");
    Ok(())
}

/// What shows that the server was stopped in order stays until it is remembered that nothing was lost.
#[test]
fn a_start_that_fails_takes_nothing_away() -> Result<()> {
    let mut server = server()?;
    let tags = IdLog::new();
    draw(&server, IDS, &tags)?;
    server.stop(Stop::Fast)?;
    server.reset_wal()?;
    let in_the_way = server.data_dir().join("pg_stat/keywright.resets.new");
    fs::create_dir(&in_the_way)?;
    let refused = server.start().expect_err("it cannot remember").to_string();
    assert!(
        refused.contains("keywright could not write \"pg_stat/keywright.resets\""),
        "{refused}"
    );
    fs::remove_dir(&in_the_way)?;
    server.start()?;
    draw(&server, IDS, &tags)?;
    assert_eq!(tags.check()?.count, 800);
    Ok(())
}

/// Nor is anything lost in a copy of the data directory.
#[test]
fn a_copy_of_a_server_that_was_stopped_in_order_lost_nothing() -> Result<()> {
    let mut server = server()?;
    let tags = IdLog::new();
    draw(&server, IDS, &tags)?;
    server.stop(Stop::Fast)?;
    let mut copy = server.copy()?;
    copy.reset_wal()?;
    copy.start()?;
    draw(&copy, IDS, &tags)?;
    assert!(copy.log_contains("no bound was lost")?);
    assert_eq!(tags.check()?.count, 800);
    Ok(())
}

/// A base backup takes along what the server remembers.
#[test]
fn a_promoted_standby_remembers() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Immediate)?;
    server.reset_wal()?;
    server.start()?;
    server
        .client("postgres")?
        .batch_execute("SELECT keywright.advance_tag('bills', 5000)")?;
    let standby = server.standby("standby", Replication::Asynchronous)?;
    server.wait_replayed(&standby)?;
    server.stop(Stop::Immediate)?;
    standby.promote()?;
    let mut client = standby.client("postgres")?;
    assert_has(
        &health(&mut client, "promotion")?,
        &["warning: this server was promoted"],
    );
    assert_eq!(
        health(&mut client, "tags")?,
        "error: nothing says how far 1 tags were used: orders"
    );
    is_refused(&mut client, "orders");
    assert!(query_i64(&mut client, "SELECT next_biz_id('bills')")? > 5_000);
    Ok(())
}

/// The row would say for good that the server was promoted: what shows the reset may be gone when somebody looks again.
#[test]
fn a_reset_that_another_session_hides_is_seen_later() -> Result<()> {
    let mut primary = server()?;
    let mut server = primary.standby("standby", Replication::Asynchronous)?;
    primary.wait_replayed(&server)?;
    primary.stop(Stop::Immediate)?;
    server.promote()?;
    let tags = IdLog::new();
    // Of all notes only this tag's shows the reset: the others are from before the promotion.
    let last = draw(&server, IDS, &tags)?;
    server.client("postgres")?.batch_execute("CHECKPOINT")?;
    server.stop(Stop::Immediate)?;
    server.reset_wal()?;
    server.start()?;
    let mut holder = server.client("postgres")?;
    holder.batch_execute("BEGIN; ALTER SEQUENCE keywright.tag_1_note OWNER TO postgres")?;
    draw(&server, SNOWFLAKES, &IdLog::new())?;
    holder.batch_execute("ROLLBACK")?;
    // The promotion, and what it is taken for.
    let said = server.log()?.matches("was promoted or copied").count();
    assert_eq!(said, 2, "nothing was hidden");
    let mut client = server.client("postgres")?;
    let noticed = [RESET, "as noticed at"];
    assert_has(&health(&mut client, "promotion")?, &noticed);
    client.batch_execute(&format!("SELECT keywright.advance_tag('orders', {last})"))?;
    assert_has(&health(&mut client, "promotion")?, &noticed);
    client.batch_execute("SELECT keywright.acknowledge_promotion()")?;
    let acknowledged = ["ok: ", "was reset (pg_resetwal)"];
    assert_has(&health(&mut client, "promotion")?, &acknowledged);
    draw(&server, IDS, &tags)?;
    assert_eq!(tags.check()?.count, 800);
    Ok(())
}

/// Who cannot read what is remembered does not take it for nothing.
#[test]
fn a_damaged_file_stops_tags() -> Result<()> {
    let mut server = server()?;
    let file = server.data_dir().join("pg_stat/keywright.resets");
    assert!(!file.exists(), "nothing happened yet");
    server.stop(Stop::Fast)?;
    fs::write(&file, "keywright-resets 1 0 0 0\n")?;
    server.start()?;
    let mut client = server.client("postgres")?;
    is_refused(&mut client, "orders");
    let health = "SELECT severity FROM keywright.health WHERE name = 'promotion'";
    assert_eq!(query_text(&mut client, health)?, "warning");
    drop(client);
    // It was written anew, so the next start finds it whole.
    server.restart(Stop::Immediate)?;
    is_refused(&mut server.client("postgres")?, "orders");
    assert_eq!(server.log()?.matches("it is damaged").count(), 1);
    server.stop(Stop::Fast)?;
    fs::remove_file(&file)?;
    server.start()?;
    query_i64(
        &mut server.client("postgres")?,
        "SELECT next_biz_id('orders')",
    )?;
    Ok(())
}
