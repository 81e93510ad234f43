//! Servers that are killed, copied and dumped: nothing is issued of what another life of the shared memory was handed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use keywright_core::cause::Cause;
use keywright_testkit::{IdLog, Load, PgServer, Result, Stop, WAIT_MAX, query_i64, wait_until};
use postgres::Client;

use super::common::{database, expect_cause};
use super::{Demand, KEY_SPACE, ask, demand_of, demands, hand_over};

const NEXT: &str = "SELECT next_biz_id('orders')";

/// A session of database `shop`, whose tag was handed the ids 1 to 1000 and has issued the first, one that feeds, and what was wanted.
fn fed(server: &PgServer) -> Result<(Client, Client, Demand)> {
    let mut client = database(server, "shop", "SELECT keywright.create_fed_tag('orders')")?;
    let mut feeder = database(server, "feeder", "")?;
    ask(&mut client, "orders")?;
    let demand = demand_of(&mut feeder, "orders")?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (1, 1000))?;
    assert_eq!(query_i64(&mut client, NEXT)?, 1);
    Ok((client, feeder, demand))
}

#[test]
fn nothing_is_issued_after_a_crash_until_it_is_fed_anew() -> Result<()> {
    for how in [None, Some(Stop::Fast), Some(Stop::Immediate)] {
        let mut server = PgServer::builder().start()?;
        let (mut client, _feeder, before) = fed(&server)?;
        client.batch_execute("CHECKPOINT")?;
        match how {
            Some(how) => server.restart(how)?,
            None => {
                server.kill9()?;
                server.start()?;
            }
        }
        let (mut client, mut feeder) = (server.client("shop")?, server.client("feeder")?);
        ask(&mut client, "orders")?;
        let late = hand_over(&mut feeder, &before, KEY_SPACE, (1001, 2000));
        expect_cause(late, Cause::HandOverRefused, "has started anew");
        // What the database knows of is told, and a store that has gone back is found.
        let demand = demand_of(&mut feeder, "orders")?;
        assert_eq!(demand.above, 1000);
        let low = hand_over(&mut feeder, &demand, KEY_SPACE, (2, 900));
        expect_cause(
            low,
            Cause::HandOverRefused,
            "ids up to 1000 were handed over",
        );
        let other = hand_over(&mut feeder, &demand, &"f".repeat(32), (2000, 2010));
        expect_cause(other, Cause::HandOverRefused, "another key space");
        hand_over(&mut feeder, &demand, KEY_SPACE, (1001, 2000))?;
        assert_eq!(query_i64(&mut client, NEXT)?, 1001);
    }
    Ok(())
}

#[test]
fn a_copy_of_the_database_issues_nothing_of_what_the_original_was_handed() -> Result<()> {
    let server = PgServer::builder().start()?;
    let (client, mut feeder, _) = fed(&server)?;
    drop(client);
    let mut keeper = server.client("postgres")?;
    wait_until("the end of the last session", WAIT_MAX, || {
        Ok(keeper
            .batch_execute("CREATE DATABASE copy TEMPLATE shop")
            .is_ok())
    })?;
    let mut copy = server.client("copy")?;
    ask(&mut copy, "orders")?;
    let mut original = server.client("shop")?;
    assert_eq!(query_i64(&mut original, NEXT)?, 2);
    // Both are fed.
    let demands: Vec<Demand> = {
        let mut all = Vec::new();
        wait_until("what both want", WAIT_MAX, || {
            all.extend(demands(&mut feeder, "orders")?);
            Ok(all.len() >= 2)
        })?;
        all
    };
    for (demand, first) in demands.iter().zip([2001, 3001]) {
        hand_over(&mut feeder, demand, KEY_SPACE, (first, first + 999))?;
    }
    let given = query_i64(&mut copy, NEXT)?;
    assert!([2001, 3001].contains(&given), "{given}");
    Ok(())
}

/// What a dump brings back knows how far the original came and of which store, and issues nothing of it.
#[test]
fn a_restored_dump_keeps_the_key_space_and_is_fed_anew() -> Result<()> {
    let server = PgServer::builder().start()?;
    let (_client, mut feeder, _) = fed(&server)?;
    feeder.batch_execute("CREATE DATABASE restored")?;
    server.restore("restored", &server.dump("shop", &[])?)?;
    // What the original wants next is not what this is about.
    let demand = demand_of(&mut feeder, "orders")?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (1001, 2000))?;
    let mut restored = server.client("restored")?;
    ask(&mut restored, "orders")?;
    let demand = demand_of(&mut feeder, "orders")?;
    assert_eq!(demand.above, 1000);
    let other = hand_over(&mut feeder, &demand, &"f".repeat(32), (5001, 6000));
    expect_cause(other, Cause::HandOverRefused, "another key space");
    hand_over(&mut feeder, &demand, KEY_SPACE, (2001, 3000))?;
    assert_eq!(query_i64(&mut restored, NEXT)?, 2001);
    Ok(())
}

/// Feeds `orders` with ranges that follow each other, until it is told to stop.
fn feed(
    server: &PgServer,
    next: &Arc<AtomicI64>,
    stop: &Arc<AtomicBool>,
) -> Result<thread::JoinHandle<Result<()>>> {
    let mut feeder = server.client("postgres")?;
    let (next, stop) = (Arc::clone(next), Arc::clone(stop));
    Ok(thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            for demand in demands(&mut feeder, "orders")? {
                let first = next.fetch_add(demand.wanted, Ordering::Relaxed);
                let range = (first, first + demand.wanted - 1);
                let fed = hand_over(&mut feeder, &demand, KEY_SPACE, range);
                // Of two that feed one may come second.
                if let Err(error) = fed
                    && error.as_db_error().is_none()
                {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }))
}

/// Databases that draw, two that feed, transactions that are rolled back, a database that is dropped, a tag that is made anew, backends and
/// servers that are killed.
#[test]
fn no_id_comes_twice_whoever_feeds_and_however_sessions_end() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    let create =
        "SELECT keywright.create_fed_tag('orders', step => 50, step_min => 50, step_max => 500)";
    server
        .client("postgres")?
        .batch_execute("CREATE EXTENSION keywright")?;
    for name in ["one", "two", "three"] {
        database(&server, name, create)?;
    }
    let log = Arc::new(IdLog::new());
    let next = Arc::new(AtomicI64::new(1));
    for round in 0..4 {
        let stop = Arc::new(AtomicBool::new(false));
        let feeders = [feed(&server, &next, &stop)?, feed(&server, &next, &stop)?];
        let draw = "SELECT next_biz_id('orders') FROM generate_series(1, 30)";
        let loads = ["one", "two", "three"].map(|name| {
            let config = server.config(name, "postgres");
            Load::start(&config, 2, draw, &log)
        });
        for load in &loads {
            load.wait_for(2_000)?;
        }
        let mut other = server.client("two")?;
        match round {
            0 => {
                let again = "BEGIN; SELECT keywright.drop_tag('orders'); SELECT keywright.create_fed_tag('orders', step => 20); ROLLBACK";
                other.batch_execute(again)?;
            }
            1 => other.batch_execute(
                "SELECT keywright.drop_tag('orders'); \
                 SELECT keywright.create_fed_tag('orders', step => 30, forget_issued => true)",
            )?,
            _ => {}
        }
        for load in &loads {
            load.wait_for(2_000)?;
        }
        if round == 3 {
            server.kill9()?;
        }
        stop.store(true, Ordering::Relaxed);
        for load in loads {
            load.stop()?;
        }
        for feeder in feeders {
            let ended = feeder.join().expect("it panicked");
            assert!(round == 3 || ended.is_ok(), "{ended:?}");
        }
        match round {
            2 => server.restart(Stop::Fast)?,
            3 => server.start()?,
            _ => {}
        }
    }
    log.check()?;
    Ok(())
}
