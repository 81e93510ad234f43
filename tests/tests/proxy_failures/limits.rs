//! What is more, or longer, than the limits allow.

use anyhow::Context;
use keywright_core::cause::Cause;
use keywright_testkit::{
    Login, Param, ProxyProcess, Result, WAIT_MAX, Wire, capability, command, wait_until,
};

use super::{Shop, expect, goes_on, has_ended, login_refused, refusal, refused};

pub(super) fn one_connection_too_many(shop: &Shop) -> Result<()> {
    let proxy = shop.limited("connections_max = 1")?;
    let mut first = None;
    wait_until("the only place", WAIT_MAX, || {
        first = proxy.wire("shop").ok();
        Ok(first.is_some())
    })?;
    let fault = login_refused(&proxy).context("a second connection")?;
    // Before the greeting is answered there is no place for a state.
    assert_eq!((fault.errno, fault.sqlstate.as_str()), (1040, ""));
    assert_eq!(fault.message, b"Too many connections");
    drop(first);
    wait_until("a free place", WAIT_MAX, || Ok(proxy.wire("shop").is_ok()))
}

pub(super) fn one_statement_too_many(shop: &Shop) -> Result<()> {
    let proxy = shop.limited("statements_max = 1")?;
    let mut wire = proxy.wire("shop")?;
    let insert = "INSERT INTO orders (a) VALUES (?)";
    let first = wire.prepare(insert)??;
    let fault = wire.prepare(insert)?.err().context("a second statement")?;
    expect(Cause::MemoryFull, &fault, "too many prepared statements");
    // Only those on rules' tables are counted, and one that is closed makes room.
    let free = wire.prepare("SELECT ?")??;
    wire.execute(&free, &[Param::Signed(1)])?;
    wire.close(&first)?;
    let again = wire.prepare(insert)??;
    assert!(refusal(wire.execute(&again, &[Param::Text(b"x".to_vec())])?).is_none());
    goes_on(&mut wire)
}

/// A client whose texts have one statement each.
fn one_by_one(proxy: &ProxyProcess) -> Result<Wire> {
    let mut login = Login::root("shop");
    login.capabilities &= !capability::MULTI_STATEMENTS;
    Wire::connect_tcp(proxy.port(), &login)
}

pub(super) fn long_statements_at_once(shop: &Shop) -> Result<()> {
    let proxy = shop.limited("rewrite_bytes_max = 4000000\nmemory_bytes_max = 16000000")?;
    let long = "x".repeat(3_900_000);
    let into = |table: &str| format!("INSERT INTO {table} (a) VALUES ('{long}')");
    // Two of them fill the memory, and wait for their ends.
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut wire = proxy.wire("shop")?;
        let payload = [&[command::QUERY], into("orders").as_bytes()].concat();
        let length = u32::try_from(payload.len())?.to_le_bytes();
        let packet = [&length[..3], &[0], &payload].concat();
        let most = packet.get(..packet.len() - 1).context("all but its end")?;
        wire.send_raw(most)?;
        waiting.push(wire);
    }
    wait_until("the memory to be full", WAIT_MAX, || {
        let mut wire = proxy.wire("shop")?;
        let Some(fault) = refusal(wire.query(into("orders"))?) else {
            return Ok(false);
        };
        expect(Cause::MemoryFull, &fault, "memory_bytes_max");
        has_ended(&mut wire);
        Ok(true)
    })?;
    // Behind it may be an INSERT on a table with a rule, where a text may have several statements.
    let fault = refused(&mut proxy.wire("shop")?, into("plain"))?;
    expect(Cause::MemoryFull, &fault, "memory_bytes_max");
    let mut wire = one_by_one(&proxy)?;
    wire.run("INSERT INTO orders (a) VALUES ('short')")?;
    wire.run(into("plain"))?;
    let insert = wire.prepare("INSERT INTO plain (a) VALUES (?)")??;
    wire.execute(&insert, &[Param::Text(long.clone().into_bytes())])?;
    drop(waiting);
    wait_until("room again", WAIT_MAX, || {
        Ok(refusal(proxy.wire("shop")?.query(into("orders"))?).is_none())
    })?;
    wire.run("DELETE FROM orders")?;
    goes_on(&mut wire)
}

pub(super) fn a_statement_too_long(shop: &Shop) -> Result<()> {
    let proxy = shop.limited("rewrite_bytes_max = 65536")?;
    let mut wire = one_by_one(&proxy)?;
    let long = "x".repeat(100_000);
    wire.run(format!("INSERT INTO plain (a) VALUES ('{long}')"))?;
    let mut several = proxy.wire("shop")?;
    let hidden = format!("SELECT '{long}'; INSERT INTO orders (a) VALUES ('{long}')");
    let fault = refused(&mut several, hidden)?;
    expect(Cause::PacketTooLarge, &fault, "rewrite_bytes_max");
    has_ended(&mut several);
    let fault = refused(
        &mut wire,
        format!("INSERT INTO orders (a) VALUES ('{long}')"),
    )?;
    expect(Cause::PacketTooLarge, &fault, "rewrite_bytes_max");
    has_ended(&mut wire);

    let mut wire = proxy.wire("shop")?;
    let prepared = wire.prepare("INSERT INTO orders (a) VALUES (?)")??;
    let fault = refusal(wire.execute(&prepared, &[Param::Text(long.into_bytes())])?);
    expect(
        Cause::PacketTooLarge,
        &fault.context("a long parameter")?,
        "rewrite_bytes_max",
    );
    has_ended(&mut wire);
    assert_eq!(
        shop.server
            .run("shop", "SELECT COUNT(*) FROM orders WHERE LENGTH(a) > 9")?,
        [["0"]]
    );
    Ok(())
}
