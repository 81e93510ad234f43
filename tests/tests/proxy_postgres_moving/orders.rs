//! Steps out of turn, and what cannot move: refused, with what to do.

use keywright_testkit::{IdLog, Result, Stop, assert_has, query_i64};

use super::{Keeper, NEXT, PORT, SOURCE, draw, expect_refusal, native_server, tell};

#[test]
fn what_is_out_of_turn_is_refused() -> Result<()> {
    let mut server = native_server()?;
    let log = IdLog::new();
    draw(&server, &log)?;
    let keeper = Keeper::of(&[&server])?;
    let mut program = keeper.program()?;
    // The setting comes first.
    assert_has(
        &keeper.refused(&server, "fed")?,
        &[
            "says move 0 of tag \"orders\", and this is move 1",
            "set keywright.source = 'orders=fed:1' on every standby first",
        ],
    );
    assert_has(&keeper.refused(&server, "native")?, &["TAG_MOVED", ""][1..]);
    assert_has(
        &keeper.refused(&server, "native")?,
        &["is a native tag of move 0", "it is not fed"],
    );
    draw(&server, &log)?;
    tell(&mut server, 1)?;
    expect_refusal(&server, "issues no ids of its own on this server")?;
    let mut client = server.client("shop")?;
    for (call, words) in [
        ("move_to_fed('orders', 2)", "says move 1 of tag"),
        (
            "move_opened('orders', 1, repeat('a', 32))",
            "only a tag that was moved is opened",
        ),
        (
            "move_to_native('orders', 1, repeat('a', 32), repeat('a', 32), 5000)",
            "it is not fed",
        ),
        ("advance_tag('orders', 100000)", "issues no ids of its own"),
        (
            "create_tag('orders', forget_issued => true)",
            "exists already",
        ),
    ] {
        let refused = client.batch_execute(&format!("SELECT keywright.{call}"));
        let refused = refused.expect_err(call);
        assert_has(refused.as_db_error().expect(call).message(), &[words]);
    }
    // Committed, and not opened: it takes nothing, whoever feeds.
    client.batch_execute("SELECT keywright.move_to_fed('orders', 1)")?;
    expect_refusal(&server, "which has not opened it yet")?;
    let refused = client.batch_execute(
        "SELECT keywright.move_to_native('orders', 1, repeat('a', 32), repeat('a', 32), 5000)",
    );
    let refused = refused.expect_err("another incarnation");
    assert_has(
        refused.as_db_error().expect("the server's").message(),
        &["the store named another heir"],
    );
    // Ids that the transaction could take back are not issued.
    keeper.moved(&server, "fed")?;
    draw(&server, &log)?;
    keeper.moved(&server, "fed")?;
    draw(&server, &log)?;
    keeper.moved(&server, "native")?;
    keeper.moved(&server, "native")?;
    draw(&server, &log)?;
    assert_has(
        &keeper.refused(&server, "fed")?,
        &["set keywright.source = 'orders=fed:2'"],
    );
    // A server that has forgotten it issues nothing, and says what is missing.
    server.set(SOURCE, "native");
    server.restart(Stop::Fast)?;
    expect_refusal(&server, "issues no ids of its own on this server")?;
    program.stop()?;
    log.check()?;
    Ok(())
}

/// The move is undone: the tag is as it was, and nothing is lost but ids.
#[test]
fn a_move_that_is_rolled_back_leaves_the_tag_as_it_was() -> Result<()> {
    let mut server = native_server()?;
    let log = IdLog::new();
    let before = draw(&server, &log)?;
    tell(&mut server, 1)?;
    let mut client = server.client("shop")?;
    client.batch_execute("BEGIN; SELECT keywright.move_to_fed('orders', 1)")?;
    let refused = query_i64(&mut client, NEXT).unwrap_err();
    assert_has(
        refused.as_db_error().expect("the server's").message(),
        &["was changed by this transaction"],
    );
    client.batch_execute("ROLLBACK")?;
    server.set(SOURCE, "native");
    server.restart(Stop::Fast)?;
    let after = draw(&server, &log)?;
    assert!(after[0] > *before.last().expect("some"));
    log.check()?;
    Ok(())
}

/// The store's tag gave ids that the database had before.
#[test]
fn a_tag_that_gave_ids_below_is_refused() -> Result<()> {
    let mut server = native_server()?;
    let log = IdLog::new();
    draw(&server, &log)?;
    let keeper = Keeper::with_port(&[&server], PORT)?;
    let mut program = keeper.program()?;
    let mut port = keywright_testkit::redis::RespClient::connect(program.key_port()?)?;
    port.say("INCR orders")?.integer()?;
    tell(&mut server, 1)?;
    assert_has(
        &keeper.refused(&server, "fed")?,
        &["gave ids from 1 on", "use a tag of another name"],
    );
    // It was not touched.
    server.set(SOURCE, "native");
    server.restart(Stop::Fast)?;
    draw(&server, &log)?;
    program.stop()?;
    log.check()?;
    Ok(())
}

/// Two databases come to one tag: the second if all its ids lie below the store's first.
#[test]
fn several_databases_come_to_one_tag() -> Result<()> {
    let mut first = native_server()?;
    let log = IdLog::new();
    first
        .client("shop")?
        .batch_execute("SELECT keywright.advance_tag('orders', 100000)")?;
    draw(&first, &log)?;
    let mut second = native_server()?;
    draw(&second, &log)?;
    let keeper = Keeper::of(&[&first, &second])?;
    let mut program = keeper.program()?;
    tell(&mut first, 1)?;
    tell(&mut second, 1)?;
    keeper.moved(&first, "fed")?;
    draw(&first, &log)?;
    keeper.moved(&second, "fed")?;
    draw(&second, &log)?;
    keeper.moved(&second, "native")?;
    draw(&second, &log)?;
    let mut other = native_server()?;
    tell(&mut other, 1)?;
    assert_has(&keeper.refused(&other, "fed")?, &["is closed"]);
    program.stop()?;
    log.check()?;
    Ok(())
}

/// A server that cannot read which tags were moved does not start.
#[test]
fn a_setting_that_cannot_be_read_keeps_the_server_from_starting() -> Result<()> {
    let mut server = native_server()?;
    for wrong in [
        "fed",
        "fed:0",
        "orders=fed:1, orders=fed:2",
        "or ders=fed:1",
    ] {
        server.stop(Stop::Fast)?;
        server.set(SOURCE, wrong);
        let refused = server.start().expect_err(wrong).to_string();
        let log = server.log()?;
        assert!(
            format!("{refused}{log}").contains("keywright.source cannot be read"),
            "{refused}"
        );
        server.set(SOURCE, "native");
        server.start()?;
    }
    Ok(())
}
