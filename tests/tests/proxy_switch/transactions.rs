//! Transactions that are open while tables are to go over.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use keywright_testkit::{
    Flavour, ProxyProcess, Reply, Result, WAIT_MAX, Wire, assert_has, wait_until,
};

use crate::{Shop, id};

pub(crate) fn a_transaction_goes_on_natively_and_holds_the_switch_up(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.with("one", "observe"))?;
    let (mut open, mut other) = (proxy.wire("shop")?, proxy.wire("shop")?);
    open.run("BEGIN")?;
    assert_eq!(open.rows("SELECT COUNT(*) FROM orders")?, [["0"]]);
    proxy.reload(shop.with("one", "rewrite"))?;
    wait_until("the hold", WAIT_MAX, || {
        let held = "SELECT COUNT(*) FROM keywright.keywright_switch WHERE phase = 'holding'";
        Ok(shop.server.wire("shop")?.rows(held)? == [["1"]])
    })?;
    // Held sooner or later.
    other.send_query("INSERT INTO orders (a) VALUES (1)")?;
    let first = open
        .run("INSERT INTO orders (a) VALUES (2)")?
        .last_insert_id;
    let second = open
        .run("INSERT INTO orders (a) VALUES (3)")?
        .last_insert_id;
    assert!((500..=502).contains(&first) && second > first && second <= 502);
    assert_eq!(shop.in_force()?, None);
    open.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    id(other.read_query()?)?;
    let key = open
        .run("INSERT INTO orders (a) VALUES (2)")?
        .last_insert_id;
    assert!(key > second, "{key}");
    Ok(())
}

/// How many clients leave.
const LEAVING: usize = 12;

/// Their connections to the server end at once, and not when the wait is over: clients that give up and come again would take up more and more of them.
/// Nothing is carried out for nobody.
pub(crate) fn clients_that_leave_while_their_statements_wait_leave_the_server_too(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    // A hold that is longer than the test.
    let config = |mode| {
        let mut config = shop.with("one", mode);
        config.more = "[limits]\nswitch_wait_ms_max = 600000\n".to_owned();
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    let mut open = proxy.wire("shop")?;
    open.run("BEGIN")?;
    open.rows("SELECT COUNT(*) FROM orders")?;
    let leaving = (0..LEAVING).map(|_| proxy.wire("shop"));
    let mut leaving = leaving.collect::<Result<Vec<Wire>>>()?;
    proxy.reload(config("rewrite"))?;
    wait_until("the hold", WAIT_MAX, || {
        let page = proxy.http_get("/status.json")?.1;
        Ok(page.contains("\"switch_in_progress\":true"))
    })?;
    for wire in &mut leaving {
        wire.send_query("INSERT INTO orders (a) VALUES (9)")?;
    }
    let connections: Vec<String> = leaving
        .iter()
        .map(|wire| wire.thread_id().to_string())
        .collect();
    drop(leaving);
    let mut direct = shop.server.wire("shop")?;
    let there = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id IN ({})",
        connections.join(", ")
    );
    wait_until("the end of their connections", WAIT_MAX, || {
        Ok(direct.rows(&there)? == [["0"]])
    })?;
    assert_eq!(shop.in_force()?, None, "others still wait");
    open.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    let inserted = direct.rows("SELECT COUNT(*) FROM orders WHERE a = 9")?;
    assert_eq!(inserted, [["0"]]);
    Ok(())
}

/// Its connection is named, and metrics say so between the attempts, too.
pub(crate) fn a_transaction_that_holds_the_switch_up_is_named_until_it_ends(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode| {
        let mut config = shop.with("one", mode);
        config.more = "[limits]\nswitch_wait_ms_max = 1000\n".to_owned();
        config
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    let metrics = |proxy: &ProxyProcess| -> Result<String> { Ok(proxy.http_get("/metrics")?.1) };
    let (mut open, mut other) = (proxy.wire("shop")?, proxy.wire("shop")?);
    for wire in [&mut open, &mut other] {
        wire.run("BEGIN")?;
    }
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    // Of no rule.
    other.run("INSERT INTO line (a) VALUES (1)")?;
    assert_has(&metrics(&proxy)?, &["keywright_switch_trouble 0\n"]);
    proxy.reload(config("rewrite"))?;
    let named = |wire: &Wire| {
        let (number, port) = (wire.thread_id(), shop.server.port());
        format!(
            "connection {number} to 127.0.0.1:{port} through this program, of root from 127.0.0.1:"
        )
    };
    let why = "the switch took too long, and is given up: ";
    wait_until("the transaction to be named", WAIT_MAX, || {
        Ok(proxy.log().contains(&format!("{why}{}", named(&open))))
    })?;
    assert_has(&proxy.log(), &[" has had the tables in use for "]);
    assert!(!proxy.log().contains(&named(&other)), "{}", proxy.log());
    wait_until("the trouble", WAIT_MAX, || {
        Ok(metrics(&proxy)?.contains("keywright_switch_trouble 1\n"))
    })?;
    // Several attempts, and what is between them.
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        assert_has(&metrics(&proxy)?, &["keywright_switch_trouble 1\n"]);
        sleep(Duration::from_millis(50));
    }
    let shown = format!("\"switch_trouble\":\"{why}{}", named(&open));
    // Of the last attempt: the connection may not have come yet to say what it uses.
    let mut page = String::new();
    wait_until("the page to name it", WAIT_MAX, || {
        page = proxy.http_get("/status.json")?.1;
        Ok(page.contains(&shown))
    })
    .with_context(|| format!("{page}\n{}", proxy.log()))?;
    assert!(proxy.log().matches(why).count() > 1, "{}", proxy.log());
    open.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    wait_until("no trouble", WAIT_MAX, || {
        Ok(metrics(&proxy)?.contains("keywright_switch_trouble 0\n"))
    })?;
    other.run("COMMIT")?;
    Ok(())
}

/// The program that gives the attempt up does not know whose transaction it is. The other program does.
pub(crate) fn a_transaction_through_another_program_is_named_there(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode| {
        let mut config = shop.with("one", mode);
        config.more = "[limits]\nswitch_wait_ms_max = 1000\n".to_owned();
        config
    };
    let mut leads = ProxyProcess::start(config("observe"))?;
    let follows = ProxyProcess::start(config("observe"))?;
    let mut open = follows.wire("shop")?;
    open.run("BEGIN")?;
    open.run("INSERT INTO orders (a) VALUES (1)")?;
    leads.reload(config("rewrite"))?;
    let busy = format!(
        "pid {} has not said that nothing is under way on the tables: see its log",
        follows.pid()?
    );
    let own = format!(
        "the switch is given up; it waited also for this program: connection {} to ",
        open.thread_id()
    );
    wait_until(
        "the program and the transaction to be named",
        WAIT_MAX,
        || Ok(leads.log().contains(&busy) && follows.log().contains(&own)),
    )?;
    open.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    Ok(())
}

pub(crate) fn a_transaction_that_an_error_has_ended_holds_nothing_up(
    flavour: Flavour,
) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let mut proxy = ProxyProcess::start(shop.with("one", "observe"))?;
    let begun = |proxy: &ProxyProcess, sql: &str| -> Result<Wire> {
        let mut wire = proxy.wire("shop")?;
        for sql in ["BEGIN", "INSERT INTO orders (a) VALUES (1)", sql] {
            wire.run(sql)?;
        }
        Ok(wire)
    };
    let failed = |replies: Vec<Reply>, errno: u16| {
        assert!(
            matches!(replies.as_slice(), [Reply::Failed(fault)] if fault.errno == errno),
            "{replies:?}"
        );
    };
    // A deadlock, of which one is the victim, and definitions that commit what was before them.
    let mut first = begun(&proxy, "UPDATE orders SET a = 2 WHERE id = 500")?;
    let mut second = begun(&proxy, "UPDATE orders SET a = 2 WHERE id = 501")?;
    first.send_query("UPDATE orders SET a = 3 WHERE id = 501")?;
    let replies = second.query("UPDATE orders SET a = 3 WHERE id = 500")?;
    let mut survivor = match replies.as_slice() {
        [Reply::Failed(_)] => {
            failed(replies, 1213);
            first.read_query()?;
            first
        }
        _ => {
            failed(first.read_query()?, 1213);
            second
        }
    };
    survivor.run("COMMIT")?;
    let (mut counts, mut warns) = (begun(&proxy, "DO 0")?, begun(&proxy, "DO 0")?);
    for wire in [&mut counts, &mut warns] {
        failed(wire.query("CREATE TABLE line (a INT)")?, 1050);
    }
    // Its transaction is still there.
    let mut open = begun(&proxy, "DO 0")?;
    failed(open.query("INSERT INTO line (id) VALUES (1), (1)")?, 1062);
    proxy.reload(shop.with("one", "rewrite"))?;
    wait_until("the hold", WAIT_MAX, || {
        let phase = "SELECT COUNT(*) FROM keywright.keywright_switch WHERE phase = 'holding'";
        Ok(shop.server.wire("shop")?.rows(phase)? == [["1"]])
    })?;
    assert_eq!(shop.in_force()?, None);
    open.run("COMMIT")?;
    shop.wait_for(Some("one"))?;
    // Nobody sees that the server was asked.
    assert_eq!(counts.rows("SELECT ROW_COUNT()")?, [["-1"]]);
    let warnings = warns.rows("SHOW WARNINGS")?;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0][1], "1050");
    Ok(())
}
