//! The time of snowflake ids that is handed over: what is tried again, comes back, or is of another store.

use std::collections::HashSet;

use keywright_core::cause::Cause;
use keywright_core::key_space_mark;
use keywright_testkit::{
    Result, Stop, WAIT_MAX, expect_sql_error, query_i64, query_text, wait_until,
};
use postgres::Client;

use super::common::expect_cause;
use super::time::{NEXT, WORKER, ask, demand, hand_over, now_ms, server};
use super::{KEY_SPACE, SOON, demand_of};

/// Draws ids until the time is used up, ahead of the clock.
fn draw_all(client: &mut Client, ids: &mut HashSet<i64>) -> Result<()> {
    loop {
        match client.query("SELECT snowflake_ids(512)", &[]) {
            Ok(rows) => {
                for row in rows {
                    let id: i64 = row.get(0);
                    assert!(ids.insert(id), "{id} came twice");
                }
            }
            Err(refused) => {
                expect_cause::<()>(Err(refused), Cause::NotFed, "no snowflake ids are left");
                return Ok(());
            }
        }
    }
}

/// A store that has gone back may hand a worker id over once more whose time was used up in this life of the memory, when another came between.
#[test]
fn a_worker_id_that_comes_back_does_not_repeat_itself() -> Result<()> {
    let (_server, mut client, mut feeder) = server()?;
    // So few ids for a second that they run ahead of the clock.
    client.batch_execute(
        "SELECT keywright.set_layout('baidu,epoch=2024-01-01'); SET keywright.lead_ms_max = 60000",
    )?;
    let mut ids = HashSet::new();
    let base_ms = now_ms() / 1_000 * 1_000;
    ask(&mut client)?;
    for (worker, until_ms) in [(9, 4_000), (11, 6_000)] {
        let next = demand(&mut feeder)?;
        let time = (worker, base_ms, base_ms + until_ms);
        hand_over(&mut feeder, &next, KEY_SPACE, time)?;
        draw_all(&mut client, &mut ids)?;
    }
    let before = ids.len();
    let again = demand(&mut feeder)?;
    hand_over(
        &mut feeder,
        &again,
        KEY_SPACE,
        (9, base_ms, base_ms + 8_000),
    )?;
    draw_all(&mut client, &mut ids)?;
    assert!(ids.len() > before);
    Ok(())
}

fn name_standbys(feeder: &mut Client, client: &mut Client, names: &str) -> Result<()> {
    feeder.batch_execute("SET synchronous_commit = local")?;
    feeder.batch_execute(&format!(
        "ALTER SYSTEM SET synchronous_standby_names = '{names}'"
    ))?;
    feeder.batch_execute("SELECT pg_reload_conf()")?;
    wait_until("the setting", WAIT_MAX, || {
        Ok(query_text(client, "SHOW synchronous_standby_names")? == names)
    })?;
    // The checkpointer tells sessions that there are any to wait for, or none, when it has read the setting in its turn.
    wait_until("what the setting does", WAIT_MAX, || {
        let probed = client.batch_execute("SELECT next_biz_id('probe')");
        Ok(probed.is_err() != names.is_empty())
    })
}

/// Nothing is issued before the key space is durable here and on the standbys, however often it is tried; and after a start of the server, which
/// reads what was only written here, it is waited for again.
#[test]
fn a_key_space_that_could_be_lost_is_waited_for_each_time() -> Result<()> {
    let (mut server, mut client, mut feeder) = server()?;
    client.batch_execute(
        "SELECT keywright.create_fed_tag('orders'), keywright.create_tag('probe', step => 1)",
    )?;
    hand_both_over(&mut client, &mut feeder, 1)?;
    name_standbys(&mut feeder, &mut client, "nobody")?;
    refused_twice(&mut client)?;
    server.restart(Stop::Immediate)?;
    (client, feeder) = (server.client("shop")?, server.client("feeder")?);
    hand_both_over(&mut client, &mut feeder, 2)?;
    refused_twice(&mut client)?;
    name_standbys(&mut feeder, &mut client, "")?;
    assert_eq!(query_i64(&mut client, WORKER)?, 10);
    assert_eq!(query_i64(&mut client, CALLS[1])?, 2_000);
    Ok(())
}

const CALLS: [&str; 2] = [NEXT, "SELECT next_biz_id('orders')"];

/// In a transaction: a commit would wait for a standby, too.
fn refused_twice(client: &mut Client) -> Result<()> {
    for call in [CALLS, CALLS].concat() {
        let refused = client.batch_execute(&format!("BEGIN; {call}"));
        expect_sql_error(refused, "55P03", "timed out");
        client.batch_execute("ROLLBACK")?;
    }
    Ok(())
}

/// Time of a worker id, and a range of a tag, that this life of the server was not handed before.
fn hand_both_over(client: &mut Client, feeder: &mut Client, life: i32) -> Result<()> {
    ask(client)?;
    super::ask(client, "orders")?;
    client.batch_execute(SOON)?;
    let time = demand(feeder)?;
    let tag = demand_of(feeder, "orders")?;
    let (from_ms, until_ms) = (now_ms() - 1_000, now_ms() + 600_000);
    hand_over(feeder, &time, KEY_SPACE, (8 + life, from_ms, until_ms))?;
    let first = i64::from(life) * 1_000;
    Ok(super::hand_over(
        feeder,
        &tag,
        KEY_SPACE,
        (first, first + 999),
    )?)
}

/// Whoever feeds learns of which key space a database is, before anything is reserved for it.
#[test]
fn the_key_space_is_told_with_what_is_wanted() -> Result<()> {
    let (_server, mut client, mut feeder) = server()?;
    ask(&mut client)?;
    let first = demand(&mut feeder)?;
    let known = "SELECT coalesce(key_space, 0) FROM keywright.handed_time()";
    assert!(feeder.query_opt(known, &[])?.is_none());
    let end_ms = now_ms() + 4_000;
    hand_over(&mut feeder, &first, KEY_SPACE, (9, end_ms - 9_000, end_ms))?;
    let key_space = u128::from_str_radix(KEY_SPACE, 16)?;
    let mark = i64::try_from(key_space_mark(key_space))?;
    assert_eq!(query_i64(&mut feeder, known)?, mark);
    assert_eq!(query_i64(&mut client, WORKER)?, 9);
    assert_eq!(query_i64(&mut feeder, known)?, mark);
    let mut told = None;
    wait_until("what is wanted next", WAIT_MAX, || {
        client.batch_execute(SOON)?;
        let _ = client.batch_execute(NEXT);
        let row = feeder.query_opt("SELECT key_space FROM keywright.time_demand()", &[])?;
        told = row.and_then(|row| row.get(0));
        Ok(told.is_some())
    })?;
    assert_eq!(told, Some(mark));
    Ok(())
}
