//! Old catalogues: backups, standbys, copies, a store that was restored, and servers that start anew between steps.

use keywright_testkit::{
    IdLog, Replication, Result, Stop, WAIT_MAX, assert_has, query_i64, wait_until,
};

use super::{Keeper, NEXT, SOURCE, draw, expect_refusal, native_server, source, tell};

/// The last step back, waiting.
const WAITING: &str = "FROM pg_stat_activity WHERE query LIKE '%move_to_native(%' AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'";

/// A backup of before the move, restored; and one of when the tag was fed, restored after it came back.
#[test]
fn restored_backups_issue_nothing_that_others_had() -> Result<()> {
    let mut server = native_server()?;
    let log = IdLog::new();
    draw(&server, &log)?;
    server.stop(Stop::Fast)?;
    let mut native = server.copy()?;
    server.start()?;
    draw(&server, &log)?;
    tell(&mut server, 1)?;
    let keeper = Keeper::of(&[&server])?;
    let mut program = keeper.program()?;
    keeper.moved(&server, "fed")?;
    let ids = draw(&server, &log)?;
    // The setting is kept whatever is restored.
    native.set(SOURCE, "orders=fed:1");
    native.start()?;
    expect_refusal(
        &native,
        "tag \"orders\" issues no ids of its own on this server",
    )?;
    assert_has(
        &keeper.refused(&native, "native")?,
        &["is a native tag of move 0", "is it an old backup"],
    );
    server.stop(Stop::Fast)?;
    let mut fed = server.copy()?;
    server.start()?;
    keeper.moved(&server, "native")?;
    let later = draw(&server, &log)?;
    assert!(later[0] > *ids.last().expect("some"), "{later:?}");
    fed.start()?;
    expect_refusal(&fed, "has no ids left")?;
    // Nor does either become the heir, or open the store's tag again, without the owner's word.
    assert_has(
        &keeper.refused(&fed, "native")?,
        &["is closed", "--heir-lost"],
    );
    assert_has(
        &keeper.refused(&native, "fed")?,
        &["it is an old backup", "--heir-lost"],
    );
    assert_eq!(source(&native)?, "native 0");
    // With a number of its own it is as old as before.
    native.set(SOURCE, "orders=fed:2");
    native.restart(Stop::Fast)?;
    assert_has(&keeper.refused(&native, "fed")?, &["it is an old backup"]);
    program.stop()?;
    draw(&server, &log)?;
    log.check()?;
    Ok(())
}

/// The standby has what was before the move, and is promoted.
#[test]
fn a_standby_that_was_promoted_with_an_old_catalogue_issues_nothing_of_its_own() -> Result<()> {
    let mut server = native_server()?;
    let log = IdLog::new();
    draw(&server, &log)?;
    let mut standby = server.standby("late", Replication::Asynchronous)?;
    server.wait_replayed(&standby)?;
    standby.stop(Stop::Fast)?;
    // What the standby lacks.
    for _ in 0..50 {
        draw(&server, &log)?;
    }
    standby.set(SOURCE, "orders=fed:1");
    tell(&mut server, 1)?;
    let keeper = Keeper::of(&[&server, &standby])?;
    let mut program = keeper.program()?;
    keeper.moved(&server, "fed")?;
    draw(&server, &log)?;
    server.kill9()?;
    standby.start()?;
    standby.promote()?;
    expect_refusal(&standby, "issues no ids of its own on this server")?;
    // The database had come to the store's tag: it may again, whatever its catalogue knows of how far it was.
    keeper.moved(&standby, "fed")?;
    draw(&standby, &log)?;
    keeper.moved(&standby, "native")?;
    draw(&standby, &log)?;
    program.stop()?;
    log.check()?;
    Ok(())
}

/// `pg_resetwal` lost the move, and what the database had issued before: the owner says how far the tag came, and the move is made again.
#[test]
fn a_move_that_pg_resetwal_lost_is_made_again() -> Result<()> {
    let mut server = native_server()?;
    server.client("shop")?.batch_execute("CHECKPOINT")?;
    let log = IdLog::new();
    draw(&server, &log)?;
    // It has nothing of what comes now.
    server.stop(Stop::Immediate)?;
    let mut left = server.copy()?;
    left.reset_wal()?;
    left.set(SOURCE, "orders=fed:1");
    server.start()?;
    draw(&server, &log)?;
    tell(&mut server, 1)?;
    let keeper = Keeper::of(&[&server, &left])?;
    let mut program = keeper.program()?;
    keeper.moved(&server, "fed")?;
    let ids = draw(&server, &log)?;
    server.kill9()?;
    left.start()?;
    expect_refusal(&left, "issues no ids of its own on this server")?;
    assert_has(
        &keeper.refused(&left, "fed")?,
        &[
            "nothing says how far tag \"orders\" was used",
            "pg_resetwal",
            "keywright.advance_tag('orders', ",
        ],
    );
    let last = ids.last().expect("some");
    let advance = format!("SELECT keywright.advance_tag('orders', {last})");
    left.client("shop")?.batch_execute(&advance)?;
    expect_refusal(&left, "issues no ids of its own on this server")?;
    keeper.moved(&left, "fed")?;
    draw(&left, &log)?;
    keeper.moved(&left, "native")?;
    draw(&left, &log)?;
    program.stop()?;
    log.check()?;
    Ok(())
}

/// A copy started beside is fed as its original is, and becomes native no more than it does.
#[test]
fn a_copy_beside_its_original_is_no_heir() -> Result<()> {
    let mut server = native_server()?;
    let log = IdLog::new();
    draw(&server, &log)?;
    tell(&mut server, 1)?;
    server.stop(Stop::Fast)?;
    let mut copy = server.copy()?;
    server.start()?;
    let keeper = Keeper::of(&[&server, &copy])?;
    let mut program = keeper.program()?;
    keeper.moved(&server, "fed")?;
    copy.start()?;
    keeper.moved(&copy, "fed")?;
    for _ in 0..3 {
        draw(&server, &log)?;
        draw(&copy, &log)?;
    }
    // Both at once: one is the heir.
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| keeper.moved(&server, "native").is_ok());
        let other = scope.spawn(|| keeper.moved(&copy, "native").is_ok());
        (one.join(), other.join())
    });
    let won = [one.expect("it panicked"), other.expect("it panicked")];
    assert!(won == [true, false] || won == [false, true], "{won:?}");
    let (heir, loser) = match won[0] {
        true => (&server, &copy),
        false => (&copy, &server),
    };
    assert_eq!(source(heir)?, "native 1");
    assert_eq!(source(loser)?, "fed 1");
    assert_has(&keeper.refused(loser, "native")?, &["is closed"]);
    draw(heir, &log)?;
    // It uses up what it was handed, and gets no more.
    let mut client = loser.client("shop")?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 300")?;
    wait_until("the end of what was handed over", WAIT_MAX, || {
        Ok(match query_i64(&mut client, NEXT) {
            Ok(id) => {
                log.record_unordered(vec![id]);
                false
            }
            Err(_) => true,
        })
    })?;
    program.stop()?;
    log.check()?;
    Ok(())
}

/// The heir's server starts anew before it has committed: the owner's word makes another.
#[test]
fn a_lost_heir_takes_the_owners_word() -> Result<()> {
    let mut server = native_server()?;
    let log = IdLog::new();
    draw(&server, &log)?;
    tell(&mut server, 1)?;
    let keeper = Keeper::of(&[&server])?;
    let mut program = keeper.program()?;
    keeper.moved(&server, "fed")?;
    draw(&server, &log)?;
    // Another session has the table, so the last step waits, and is ended.
    let mut holder = server.client("shop")?;
    holder.batch_execute("BEGIN; LOCK TABLE keywright.tag IN SHARE MODE")?;
    let refused = std::thread::scope(|scope| {
        let moving = scope.spawn(|| keeper.refused(&server, "native"));
        let mut watcher = server.client("shop").expect("a session");
        wait_until("the last step", WAIT_MAX, || {
            let ended = format!("SELECT count(pg_terminate_backend(pid)) {WAITING}");
            Ok(query_i64(&mut watcher, &ended)? > 0)
        })
        .expect("it waits");
        moving.join()
    });
    refused.expect("it panicked")?;
    drop(holder);
    assert_eq!(source(&server)?, "fed 1");
    server.kill9()?;
    server.start()?;
    assert_has(
        &keeper.refused(&server, "native")?,
        &["is closed", "--heir-lost --above ID"],
    );
    keeper.moved_by(&server, "native", &["--heir-lost", "--above", "0"])?;
    assert_eq!(source(&server)?, "native 1");
    draw(&server, &log)?;
    program.stop()?;
    log.check()?;
    Ok(())
}
