//! Databases and extensions are dropped while others issue, and their places in shared memory are used again.

mod common;

use std::sync::Arc;

use common::expect_cause;
use keywright_core::cause::Cause;
use keywright_testkit::{
    IdLog, Load, Pending, PgServer, Result, Stop, WAIT_MAX, draw, expect_sql_error, query_i64,
    query_text, wait_until,
};
use postgres::Client;

const SNOWFLAKE: &str = "SELECT snowflake_id() FROM generate_series(1, 400)";
const TAG: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 400)";

fn set_up(server: &PgServer, database: &str, worker_id: u32) -> Result<Client> {
    let mut client = server.client(database)?;
    client.batch_execute(&format!(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id({worker_id}); \
         SELECT keywright.create_tag('orders')"
    ))?;
    Ok(client)
}

/// The server calls hooks, then waits for sessions to leave: one that is leaving issues on meanwhile, with a layout of few bits
/// far ahead of the clock. Then the server is cut off, the clock steps back, and another database gets the worker id.
#[test]
fn sessions_that_are_leaving_a_dropped_database_issue_nothing_unseen() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let log = Arc::new(IdLog::new());
    let mut keeper = set_up(&server, "postgres", 1)?;
    keeper.batch_execute("CREATE DATABASE two")?;
    let mut two = server.client("two")?;
    two.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_layout('js53')")?;
    two.batch_execute("SELECT keywright.set_worker_id(5)")?;
    drop(two);
    let load = Load::start(&server.config("two", "postgres"), 4, SNOWFLAKE, &log);
    load.wait_for(10_000)?;
    // Those in the load come back at once, so only force ends them; before they go they issue what they can.
    let mut dropped = keeper.batch_execute("DROP DATABASE two WITH (FORCE)");
    for _ in 0..20 {
        if dropped.is_ok() {
            break;
        }
        dropped = keeper.batch_execute("DROP DATABASE two WITH (FORCE)");
    }
    dropped?;
    load.stop()?;
    server.restart(Stop::Immediate)?;
    server.clock()?.step_to(-3600)?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("CREATE DATABASE three")?;
    let mut three = server.client("three")?;
    three.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_layout('js53')")?;
    three.batch_execute("SELECT keywright.set_worker_id(5)")?;
    draw(&mut three, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// Sessions that wait for a DROP EXTENSION say what became of it, whether they issued before or begin now.
#[test]
fn sessions_that_wait_for_a_dropped_extension_say_so() -> Result<()> {
    let server = PgServer::builder().start()?;
    let queries = [
        "SELECT count(snowflake_id()) FROM generate_series(1, 100000)",
        "SELECT count(readable_id('a')) FROM generate_series(1, 1000000)",
        "SELECT max(id) FROM next_biz_ids('orders', 10000) id",
        "SELECT count(*) FROM keywright.acknowledge_promotion()",
        "SELECT count(*) FROM keywright.promoted(interval '1 s')",
    ];
    for is_fresh in [true, false] {
        let mut keeper = set_up(&server, "postgres", 1)?;
        let mut sessions = Vec::new();
        for query in queries {
            let mut client = server.client("postgres")?;
            if !is_fresh {
                client.batch_execute(
                    "SELECT snowflake_id(), readable_id('a'), next_biz_id('orders')",
                )?;
            }
            sessions.push((client, query));
        }
        keeper.batch_execute("BEGIN; DROP EXTENSION keywright")?;
        let waiting: Vec<_> = sessions
            .into_iter()
            .map(|(client, query)| Pending::start(client, query))
            .collect::<Result<_>>()?;
        for pending in &waiting {
            pending.wait_until_waiting(&mut keeper)?;
        }
        keeper.batch_execute("COMMIT")?;
        for pending in waiting {
            let outcome = pending.finish()?.outcome;
            expect_cause(outcome, Cause::VersionMismatch, "extension \"keywright\"");
        }
    }
    Ok(())
}

/// A drop that fails because somebody is connected stops that one for as long as it lasts, and no longer.
#[test]
fn database_that_was_not_dropped_after_all_goes_on() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let log = Arc::new(IdLog::new());
    let mut keeper = set_up(&server, "postgres", 1)?;
    keeper.batch_execute("CREATE DATABASE two")?;
    let mut two = set_up(&server, "two", 5)?;
    let load = Load::start(&server.config("two", "postgres"), 2, SNOWFLAKE, &log);
    load.wait_for(2_000)?;
    let refused = keeper.batch_execute("DROP DATABASE two");
    expect_sql_error(refused, "55006", "is being accessed by other users");
    load.wait_for(2_000)?;
    assert_eq!(load.stop()?.len(), 0, "nobody is refused");
    draw(&mut two, SNOWFLAKE, &log)?;
    server.restart(Stop::Immediate)?;
    draw(&mut server.client("two")?, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

#[test]
fn places_of_dropped_extensions_are_used_again() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.workers_max", "4")
        .setting("keywright.tags_max", "4")
        .start()?;
    let (log, mut client) = (IdLog::new(), server.client("postgres")?);
    let mut old = server.client("postgres")?;
    for _ in 0..30 {
        client.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1); SELECT keywright.create_tag('orders')")?;
        draw(&mut client, SNOWFLAKE, &log)?;
        draw(&mut client, TAG, &IdLog::new())?;
        draw(&mut old, SNOWFLAKE, &log)?;
        draw(&mut old, TAG, &IdLog::new())?;
        client.batch_execute("DROP EXTENSION keywright CASCADE")?;
    }
    log.check()?;
    Ok(())
}

/// As a server for tests does it all day: databases come and go, each with a worker id of its own or the same again.
#[test]
fn places_of_dropped_databases_are_used_again() -> Result<()> {
    let mut server = PgServer::builder()
        .setting("keywright.workers_max", "4")
        .setting("keywright.tags_max", "4")
        .start()?;
    let log = IdLog::new();
    let mut keeper = set_up(&server, "postgres", 1)?;
    for cycle in 0..24 {
        keeper.batch_execute("CREATE DATABASE test")?;
        let mut test = set_up(&server, "test", 2 + cycle % 12)?;
        draw(&mut test, SNOWFLAKE, &log)?;
        draw(&mut test, TAG, &IdLog::new())?;
        draw(&mut keeper, SNOWFLAKE, &log)?;
        drop(test);
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'test'";
        wait_until("the end of the last session", WAIT_MAX, || {
            Ok(query_i64(&mut keeper, sessions)? == 0)
        })?;
        keeper.batch_execute("DROP DATABASE test")?;
    }
    log.check()?;
    server.restart(Stop::Immediate)?;
    let mut keeper = server.client("postgres")?;
    for worker in 2..5 {
        keeper.batch_execute(&format!("CREATE DATABASE after{worker}"))?;
        draw(
            &mut set_up(&server, &format!("after{worker}"), worker)?,
            SNOWFLAKE,
            &log,
        )?;
    }
    log.check()?;
    Ok(())
}

/// Worker ids and layouts that were given up leave their places, too.
#[test]
fn places_of_former_worker_ids_and_layouts_are_used_again() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.workers_max", "4")
        .start()?;
    let mut client = set_up(&server, "postgres", 1)?;
    let mut old = server.client("postgres")?;
    let log = IdLog::new();
    for cycle in 0..20 {
        let change = match cycle % 2 {
            0 => format!("set_worker_id({})", 2 + cycle % 9),
            _ => format!("set_layout('{}')", ["leaf", "twitter"][cycle / 2 % 2]),
        };
        client.batch_execute(&format!("SELECT keywright.{change}"))?;
        draw(&mut client, SNOWFLAKE, &log)?;
        draw(&mut old, SNOWFLAKE, &log)?;
    }
    log.check()?;
    Ok(())
}

/// What only memory knows is kept: there is an end to it.
#[test]
fn places_of_identities_that_were_rolled_back_are_kept() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.workers_max", "4")
        .start()?;
    let mut client = server.client("postgres")?;
    let log = IdLog::new();
    let mut full = false;
    for worker in 1..=6 {
        client.batch_execute("BEGIN; CREATE EXTENSION keywright")?;
        client.batch_execute(&format!("SELECT keywright.set_worker_id({worker})"))?;
        let taken = client.batch_execute("SELECT snowflake_id()");
        if taken.is_err() {
            full = true;
            let error = expect_cause(taken, Cause::WorkersFull, "no room");
            assert!(error.hint.contains("keywright.workers_max"), "{error:?}");
        } else {
            draw(&mut client, SNOWFLAKE, &log)?;
        }
        client.batch_execute("ROLLBACK")?;
    }
    assert!(full, "what was rolled back was forgotten");
    log.check()?;
    Ok(())
}

/// A database that is gone without a note, and one made anew with its oid.
#[test]
fn database_with_the_oid_of_another_has_nothing_of_it() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let mut keeper = set_up(&server, "postgres", 1)?;
    let log = IdLog::new();
    keeper.batch_execute("CREATE DATABASE two OID 99999")?;
    draw(&mut set_up(&server, "two", 5)?, SNOWFLAKE, &log)?;
    server.set("shared_preload_libraries", "");
    server.restart(Stop::Fast)?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("DROP DATABASE two")?;
    keeper.batch_execute("CREATE DATABASE two OID 99999")?;
    server.set("shared_preload_libraries", "keywright");
    server.restart(Stop::Fast)?;
    server.clock()?.step_to(-3600)?;
    let mut two = server.client("two")?;
    two.batch_execute("CREATE EXTENSION keywright")?;
    let refused = two.batch_execute("SELECT keywright.set_worker_id(5)");
    expect_cause(refused, Cause::WorkerIdInUse, "is not known");
    two.batch_execute("SELECT keywright.set_worker_id(5, above => now() + interval '2 hours')")?;
    draw(&mut two, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// The bound is gone with the extension, and ids may be far ahead of the clock.
#[test]
fn extension_that_was_dropped_unseen_took_its_bound_with_it() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let log = IdLog::new();
    let mut client = set_up(&server, "postgres", 1)?;
    draw(&mut client, SNOWFLAKE, &log)?;
    server.set("shared_preload_libraries", "");
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    client.batch_execute("DROP EXTENSION keywright CASCADE; CREATE EXTENSION keywright")?;
    server.set("shared_preload_libraries", "keywright");
    server.restart(Stop::Fast)?;
    server.clock()?.step_to(-3600)?;
    let mut client = server.client("postgres")?;
    for refused in [
        "SELECT snowflake_id()",
        "SELECT readable_id('ORD')",
        "SELECT keywright.set_worker_id(1)",
        "SELECT keywright.set_readable_bucket(1)",
    ] {
        let answer = client.batch_execute(refused);
        expect_cause(answer, Cause::WorkerIdInUse, "is not known");
    }
    // That another number has a note now says nothing of this one.
    client.batch_execute("SELECT keywright.set_worker_id(2)")?;
    let answer = client.batch_execute("SELECT keywright.set_worker_id(1)");
    expect_cause(answer, Cause::WorkerIdInUse, "is not known");
    client
        .batch_execute("SELECT keywright.set_worker_id(1, above => now() + interval '2 hours')")?;
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute("SELECT readable_id('ORD')")?;
    log.check()?;
    Ok(())
}

/// A number whose bound is gone is not known because the next bound was dropped in sight.
#[test]
fn extension_that_was_dropped_unseen_and_again_seen_is_not_known() -> Result<()> {
    let mut server = PgServer::builder().fake_clock().start()?;
    let log = IdLog::new();
    draw(&mut set_up(&server, "postgres", 1)?, SNOWFLAKE, &log)?;
    server.set("shared_preload_libraries", "");
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    let anew = "DROP EXTENSION keywright CASCADE; CREATE EXTENSION keywright";
    client.batch_execute(anew)?;
    server.set("shared_preload_libraries", "keywright");
    server.restart(Stop::Fast)?;
    server.clock()?.step_to(-3600)?;
    let mut client = server.client("postgres")?;
    client.batch_execute(anew)?;
    for refused in ["SELECT snowflake_id()", "SELECT keywright.set_worker_id(1)"] {
        assert!(client.batch_execute(refused).is_err(), "{refused}");
    }
    client
        .batch_execute("SELECT keywright.set_worker_id(1, above => now() + interval '2 hours')")?;
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// What nobody compared with the ids that were issued, a restart does not make comparable.
#[test]
fn layout_that_was_changed_by_hand_issues_nothing_before_it_was_compared() -> Result<()> {
    const BEFORE: &str = "time=41,datacenter=5,worker=5,sequence=12,epoch=1288834949657";
    const LATER: &str = "time=41,datacenter=5,worker=5,sequence=12,epoch=1288834999657";
    let mut server = PgServer::builder().fake_clock().start()?;
    let log = IdLog::new();
    let mut client = set_up(&server, "postgres", 5)?;
    client.batch_execute(&format!("SELECT keywright.set_layout('{BEFORE}')"))?;
    draw(&mut client, SNOWFLAKE, &log)?;
    client.batch_execute("ALTER TABLE keywright.node DISABLE TRIGGER only_by_functions")?;
    client.batch_execute(&format!("UPDATE keywright.node SET layout = '{LATER}'"))?;
    server.restart(Stop::Immediate)?;
    server.clock()?.step_to(50)?;
    let mut client = server.client("postgres")?;
    let answer = client.batch_execute("SELECT snowflake_id()");
    expect_cause(answer, Cause::LayoutOverlap, "without being compared");
    let answer = client.batch_execute(&format!("SELECT keywright.set_layout('{LATER}')"));
    expect_cause(answer, Cause::LayoutOverlap, "could repeat ids");
    client.batch_execute(&format!("SELECT keywright.set_layout('{BEFORE}')"))?;
    draw(&mut client, SNOWFLAKE, &log)?;
    log.check()?;
    Ok(())
}

/// Between databases with different layouts numbers are compared, not moments.
#[test]
fn worker_id_that_goes_to_another_layout_starts_above_its_ids() -> Result<()> {
    // 25 s later than twitter's: its ids are lower at any moment.
    const LATER: &str = "time=41,datacenter=5,worker=5,sequence=12,epoch=1288834999657";
    const EARLIER: &str = "time=41,datacenter=5,worker=5,sequence=12,epoch=1288834949657";
    let server = PgServer::builder().start()?;
    let mut one = set_up(&server, "postgres", 5)?;
    let log = IdLog::new();
    draw(&mut one, SNOWFLAKE, &log)?;
    one.batch_execute("SELECT keywright.set_worker_id(6)")?;
    one.batch_execute("CREATE DATABASE two")?;
    let mut two = server.client("two")?;
    two.batch_execute(&format!(
        "CREATE EXTENSION keywright; SELECT keywright.set_layout('{LATER}')"
    ))?;
    let refused = two.batch_execute("SELECT keywright.set_worker_id(5)");
    expect_cause(refused, Cause::LayoutOverlap, "could repeat ids");
    two.batch_execute(&format!("SELECT keywright.set_layout('{EARLIER}')"))?;
    two.batch_execute("SELECT keywright.set_worker_id(5)")?;
    draw(&mut two, SNOWFLAKE, &log)?;
    log.check()?;
    let layout = "SELECT layout FROM keywright.stats WHERE kind = 'snowflake'";
    assert_eq!(query_text(&mut two, layout)?, format!("{EARLIER},tick=1ms"));
    Ok(())
}

/// A database that gave its worker id up without issuing with the next one left its bound where it was: when it gets the worker
/// id back its word must not go on as if nobody else had had it.
#[test]
fn worker_id_that_comes_back_goes_on_above_what_others_issued() -> Result<()> {
    let server = PgServer::builder().fake_clock().start()?;
    let log = IdLog::new();
    let mut one = set_up(&server, "postgres", 9)?;
    one.batch_execute("CREATE DATABASE two")?;
    let mut two = set_up(&server, "two", 10)?;
    let mut last = query_i64(&mut one, "SELECT snowflake_id()")?;
    for hour in 1..4 {
        one.batch_execute("SELECT keywright.set_worker_id(11)")?;
        two.batch_execute("SELECT keywright.set_worker_id(9)")?;
        draw(&mut two, SNOWFLAKE, &log)?;
        let next = query_i64(&mut two, "SELECT snowflake_id()")?;
        assert!(next > last, "{last} {next}");
        server.clock()?.step_to(-3600 * hour)?;
        two.batch_execute("SELECT keywright.set_worker_id(10)")?;
        one.batch_execute("SELECT keywright.set_worker_id(9)")?;
        draw(&mut one, SNOWFLAKE, &log)?;
        last = query_i64(&mut one, "SELECT snowflake_id()")?;
        assert!(last > next, "{next} {last}");
    }
    log.check()?;
    Ok(())
}
