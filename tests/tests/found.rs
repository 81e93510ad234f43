//! What an attack on databases, extensions and tags that come and go had found.

use std::time::Instant;

use keywright_testkit::{
    IdLog, Pending, PgServer, Replication, Result, Stop, WAIT_MAX, draw, expect_sql_error,
    query_i64, wait_until,
};

const SNOWFLAKE: &str = "SELECT snowflake_id()";

/// A word that is first used while its database is being dropped: the server waits up to five seconds for the session to
/// leave, after it has told of the drop.
#[test]
fn word_first_used_while_its_database_is_dropped_is_noted() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let mut keeper = server.client("postgres")?;
    for database in ["two", "three"] {
        keeper.batch_execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = server.client(database)?;
        client.batch_execute("CREATE EXTENSION keywright")?;
    }
    let mut two = server.client("two")?;
    two.batch_execute("SELECT keywright.set_worker_id(5)")?;
    two.batch_execute("SET keywright.refill_wait_ms_max = 1000")?;
    let dropping = Pending::start(keeper, "DROP DATABASE two")?;
    let mut observer = server.client("postgres")?;
    // The register's lock: the server has told of the drop.
    wait_until("the drop", WAIT_MAX, || {
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
        Ok(query_i64(&mut observer, locks)? > 0)
    })?;
    // Either it issues nothing, or what it issues is known to whoever gets the number.
    let issued = query_i64(&mut two, SNOWFLAKE);
    drop(two);
    dropping.finish()?;
    server.stop(Stop::Immediate)?;
    server.clock()?.step_to(-3600)?;
    server.start()?;
    let mut three = server.client("three")?;
    three.batch_execute("SELECT keywright.set_worker_id(5)")?;
    let next = query_i64(&mut three, SNOWFLAKE)?;
    if let Ok(issued) = issued {
        assert!(next > issued, "{next} after {issued}");
    }
    Ok(())
}

/// The extension is made anew while a session looks it up for the first time: all sessions go on with one reservation of a tag.
#[test]
fn extension_made_anew_under_a_first_look_is_one_for_all() -> Result<()> {
    const NEXT: &str = "SELECT next_biz_id('orders')";
    let server = PgServer::builder().start()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("CREATE EXTENSION keywright")?;
    // The session looks at a state of before, and waits for the catalogue.
    keeper.batch_execute("BEGIN; LOCK TABLE pg_catalog.pg_extension IN ACCESS EXCLUSIVE MODE")?;
    let looking = Pending::start(server.client("postgres")?, NEXT)?;
    let waits = format!(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {}",
        looking.pid()
    );
    let mut observer = server.client("postgres")?;
    wait_until("a look at the extension", WAIT_MAX, || {
        Ok(query_i64(&mut observer, &waits)? > 0)
    })?;
    keeper.batch_execute(
        "DROP EXTENSION keywright; CREATE EXTENSION keywright; SELECT keywright.create_tag('orders')",
    )?;
    keeper.batch_execute("COMMIT")?;
    let first = looking.finish()?.outcome?;
    assert_eq!(query_i64(&mut keeper, NEXT)?, first + 1);
    Ok(())
}

/// The whole installation is rolled back, as a migration that fails does; the server is not restarted.
#[test]
fn tag_of_an_extension_that_was_rolled_back_goes_on() -> Result<()> {
    let server = PgServer::builder().start()?;
    let (log, mut client) = (IdLog::new(), server.client("postgres")?);
    for end in ["ROLLBACK", "COMMIT"] {
        client.batch_execute(
            "BEGIN; CREATE EXTENSION keywright; SELECT keywright.create_tag('orders')",
        )?;
        draw(
            &mut client,
            "SELECT next_biz_id('orders') FROM generate_series(1, 200)",
            &log,
        )?;
        client.batch_execute(end)?;
    }
    log.check()?;
    Ok(())
}

/// Each cycle leaves a tag whose extension was dropped; a drop of the database that fails does not bring it back.
#[test]
fn failing_drop_of_a_database_keeps_no_places() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.tags_max", "2")
        .start()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("CREATE DATABASE two")?;
    let mut two = server.client("two")?;
    for _ in 0..4 {
        two.batch_execute("CREATE EXTENSION keywright; SELECT keywright.create_tag('orders')")?;
        query_i64(&mut two, "SELECT next_biz_id('orders')")?;
        two.batch_execute("DROP EXTENSION keywright")?;
        let refused = keeper.batch_execute("DROP DATABASE two");
        expect_sql_error(refused, "55006", "is being accessed by other users");
    }
    Ok(())
}

#[test]
fn places_of_dropped_tags_are_used_again() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.tags_max", "4")
        .start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    for cycle in 0..10 {
        client.batch_execute(&format!("SELECT keywright.create_tag('tag{cycle}')"))?;
        query_i64(&mut client, &format!("SELECT next_biz_id('tag{cycle}')"))?;
        client.batch_execute(&format!("SELECT keywright.drop_tag('tag{cycle}')"))?;
    }
    Ok(())
}

/// The clock of a lost primary was ahead by less than keywright.failover_skew_ms_max, and the worker id goes to another database
/// of the promoted server before the first id.
#[test]
fn worker_id_that_moves_after_a_promotion_leaves_the_skew_out() -> Result<()> {
    let mut primary = PgServer::builder().fake_clock().start()?;
    let mut client = primary.client("postgres")?;
    client.batch_execute("CREATE DATABASE two; ")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    primary
        .client("two")?
        .batch_execute("CREATE EXTENSION keywright")?;
    let mut standby = primary.standby("standby", Replication::Asynchronous)?;
    primary.clock()?.step_to(9)?;
    let began = Instant::now();
    client.batch_execute("SELECT keywright.set_worker_id(1)")?;
    primary.wait_replayed(&standby)?;
    // What the primary issues from here on does not arrive.
    standby.stop(Stop::Fast)?;
    let issued = query_i64(&mut client, SNOWFLAKE)?;
    primary.kill9()?;
    standby.start()?;
    standby.promote()?;
    // As if the failover had taken no time, on however slow a machine.
    let elapsed_s = i64::try_from(began.elapsed().as_secs())?;
    standby.clock()?.step_to(-elapsed_s)?;
    let mut client = standby.client("postgres")?;
    client.batch_execute("SELECT keywright.set_worker_id(2)")?;
    let mut two = standby.client("two")?;
    two.batch_execute("SELECT keywright.set_worker_id(1)")?;
    let next = query_i64(&mut two, SNOWFLAKE)?;
    assert!(next > issued, "{next} after {issued}");
    Ok(())
}
