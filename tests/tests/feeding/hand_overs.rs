//! Which hand-overs are taken, and who gets their ids.

use std::thread;

use keywright_core::cause::Cause;
use keywright_core::key_space_mark;
use keywright_testkit::{Result, WAIT_MAX, query_i64, query_text, wait_until};
use postgres::Client;

use super::common::{builder, expect_cause};
use super::{Demand, KEY_SPACE, SERVER, ask, demand_of, demands, fed, hand_over};

#[test]
fn whoever_needs_ids_waits_for_them_and_gets_those_that_were_handed_over() -> Result<()> {
    let (database, mut client, tag) = fed()?;
    let mut feeder = database.client()?;
    let next = format!("SELECT next_biz_id('{tag}')");
    let waiting = {
        let (next, mut session) = (next.clone(), database.client()?);
        thread::spawn(move || query_i64(&mut session, &next))
    };
    let demand = demand_of(&mut feeder, &tag)?;
    assert_eq!((demand.wanted, demand.above), (1000, 0));
    hand_over(&mut feeder, &demand, KEY_SPACE, (100, 102))?;
    assert_eq!(waiting.join().expect("it panicked")?, 100);
    // The next range is asked for as soon as one is in use.
    let demand = demand_of(&mut feeder, &tag)?;
    assert_eq!(demand.above, 102);
    hand_over(&mut feeder, &demand, KEY_SPACE, (5000, 5009))?;
    // Whoever asks how far ids came is told of those that nobody needed yet, too.
    let reserved_to = format!("SELECT reserved_to FROM keywright.tags WHERE tag = '{tag}'");
    assert_eq!(query_i64(&mut client, &reserved_to)?, 5009);
    let ids: Vec<i64> = (0..4)
        .map(|_| query_i64(&mut client, &next))
        .collect::<std::result::Result<_, _>>()?;
    assert_eq!(ids, [101, 102, 5000, 5001]);
    // More at once than are left: a range that holds so many is asked for, and no id of another range is among them.
    let many = {
        let mut session = database.client()?;
        let many = format!("SELECT string_agg(id::text, ' ') FROM next_biz_ids('{tag}', 2000) id");
        thread::spawn(move || query_text(&mut session, &many))
    };
    let demand = demand_of(&mut feeder, &tag)?;
    let last = 9000 + demand.wanted.max(2000);
    hand_over(&mut feeder, &demand, KEY_SPACE, (9001, last))?;
    let many = many.join().expect("it panicked")?;
    let many: Vec<i64> = many.split(' ').map(|id| id.parse().unwrap_or(0)).collect();
    let first = many.first().copied().unwrap_or(0);
    assert_eq!(many.len(), 2000);
    assert!(first >= 9001, "{first}");
    assert!(
        many.iter()
            .zip(first..)
            .all(|(id, expected)| *id == expected)
    );
    Ok(())
}

#[test]
fn what_is_not_for_here_or_was_handed_over_before_is_refused() -> Result<()> {
    let (database, mut client, tag) = fed()?;
    let mut feeder = database.client()?;
    ask(&mut client, &tag)?;
    let demand = demand_of(&mut feeder, &tag)?;
    let refused = |feeder: &mut Client, demand: &Demand, key_space: &str, range, words: &str| {
        let answer = hand_over(feeder, demand, key_space, range);
        expect_cause(answer, Cause::HandOverRefused, words);
    };
    let (incarnation, rest) = demand.named.split_at(34);
    let other = Demand {
        named: format!("'{}'{rest}", "0".repeat(32)),
        ..demand.clone()
    };
    assert_eq!(incarnation.len(), "''".len() + 32);
    refused(&mut feeder, &other, KEY_SPACE, (1, 10), "has started anew");
    let nobody = Demand {
        named: demand.named.replace(&tag, "nobody"),
        ..demand.clone()
    };
    refused(&mut feeder, &nobody, KEY_SPACE, (1, 10), "nobody asked");
    for (key_space, range) in [
        (KEY_SPACE, (0, 5)),
        (KEY_SPACE, (5, 4)),
        (KEY_SPACE, (1, i64::MAX)),
        (KEY_SPACE, (1, 1_000_000_001)),
        ("12", (1, 10)),
        ("0123456789abcdef0123456789abcdeg", (1, 10)),
    ] {
        let answer = hand_over(&mut feeder, &demand, key_space, range);
        expect_cause(answer, Cause::ArgumentOutOfRange, "");
    }
    hand_over(&mut feeder, &demand, KEY_SPACE, (101, 110))?;
    refused(
        &mut feeder,
        &demand,
        KEY_SPACE,
        (201, 210),
        "others were handed over",
    );
    let next = format!("SELECT next_biz_id('{tag}')");
    assert_eq!(query_i64(&mut client, &next)?, 101);
    // The same once more, and what overlaps it.
    for range in [(101, 110), (1, 10), (110, 120)] {
        refused(
            &mut feeder,
            &demand,
            KEY_SPACE,
            range,
            "were handed over before",
        );
    }
    let other = "f".repeat(32);
    refused(
        &mut feeder,
        &demand,
        &other,
        (201, 210),
        "another key space",
    );
    // A rollback of the hand-over changes nothing: whoever waits is served at once.
    feeder.batch_execute("BEGIN")?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (201, 210))?;
    feeder.batch_execute("ROLLBACK")?;
    let ids: Vec<i64> = (0..11)
        .map(|_| query_i64(&mut client, &next))
        .collect::<std::result::Result<_, _>>()?;
    let expected: Vec<i64> = (102..=110).chain(201..=202).collect();
    assert_eq!(ids, expected);
    Ok(())
}

/// Until they last long enough each is twice the one before it, but for the second, which is asked for when nothing is known yet.
#[test]
fn ranges_grow_while_they_do_not_last() -> Result<()> {
    let (database, mut client, tag) = fed()?;
    let mut feeder = database.client()?;
    ask(&mut client, &tag)?;
    let mut wanted = Vec::new();
    let mut first = 1;
    for _ in 0..5 {
        let demand = demand_of(&mut feeder, &tag)?;
        let last = first + demand.wanted - 1;
        hand_over(&mut feeder, &demand, KEY_SPACE, (first, last))?;
        // Its first id, so that the next is asked for, and all the others.
        let all = format!(
            "SELECT count(next_biz_id('{tag}')) FROM generate_series(1, {})",
            demand.wanted
        );
        query_i64(&mut client, &all)?;
        wanted.push(demand.wanted);
        first = last + 1;
    }
    assert_eq!(wanted, [1000, 1000, 2000, 4000, 8000]);
    Ok(())
}

/// Whoever feeds learns of which key space a tag's ids were, before anything is reserved for it; and how far each key space came, where databases had
/// ids of several.
#[test]
fn the_key_space_is_told_with_what_is_wanted_and_with_what_was_handed_over() -> Result<()> {
    let other = "f".repeat(32);
    let mark = |key_space: &str| -> Result<u64> {
        Ok(key_space_mark(u128::from_str_radix(key_space, 16)?))
    };
    let (database, mut client, tag) = fed()?;
    let mut feeder = database.client()?;
    let handed_over = |feeder: &mut Client| -> Result<Vec<String>> {
        let all = "SELECT concat_ws(' ', last, key_space) FROM keywright.handed_over(ARRAY[$1]) ORDER BY last";
        let rows = feeder.query(all, &[&tag])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let wanted = |feeder: &mut Client| -> Result<Option<i64>> {
        let mut told = None;
        wait_until("what is wanted", WAIT_MAX, || {
            let sql = "SELECT key_space FROM keywright.await_demand(ARRAY[$1])";
            told = feeder.query_opt(sql, &[&tag])?.map(|row| row.get(0));
            Ok(told.is_some())
        })?;
        Ok(told.flatten())
    };
    ask(&mut client, &tag)?;
    let demand = demand_of(&mut feeder, &tag)?;
    assert!(handed_over(&mut feeder)?.is_empty());
    hand_over(&mut feeder, &demand, KEY_SPACE, (1, 1000))?;
    // Also of a range that nobody needed yet.
    let expected = format!("1000 {}", mark(KEY_SPACE)?);
    assert_eq!(handed_over(&mut feeder)?, [expected.as_str()]);
    query_i64(&mut client, &format!("SELECT next_biz_id('{tag}')"))?;
    assert_eq!(handed_over(&mut feeder)?, [expected.as_str()]);
    let known = wanted(&mut feeder)?;
    assert_eq!(known, Some(i64::try_from(mark(KEY_SPACE)?)?));
    // A database of another store has a tag of that name.
    let second = SERVER.database(builder)?;
    let mut second_client = second.client()?;
    second_client.batch_execute(&format!("SELECT keywright.create_fed_tag('{tag}')"))?;
    ask(&mut second_client, &tag)?;
    let is_of_second = |demand: &Demand| demand.above == 0;
    let mut of_second = None;
    wait_until("what the second database wants", WAIT_MAX, || {
        of_second = demands(&mut feeder, &tag)?.into_iter().find(is_of_second);
        Ok(of_second.is_some())
    })?;
    let of_second = of_second.expect("waited for");
    hand_over(&mut feeder, &of_second, &other, (5001, 6000))?;
    let of_other = format!("6000 {}", mark(&other)?);
    assert_eq!(handed_over(&mut feeder)?, [expected, of_other]);
    Ok(())
}

/// As the documentation says where the store of before is lost: the tag is made anew, and takes ids of another store.
#[test]
fn a_tag_that_is_made_anew_takes_ids_of_another_store() -> Result<()> {
    let other = "f".repeat(32);
    let (database, mut client, tag) = fed()?;
    let mut feeder = database.client()?;
    let next = format!("SELECT next_biz_id('{tag}')");
    ask(&mut client, &tag)?;
    let demand = demand_of(&mut feeder, &tag)?;
    hand_over(&mut feeder, &demand, KEY_SPACE, (1, 1000))?;
    assert_eq!(query_i64(&mut client, &next)?, 1);
    let demand = demand_of(&mut feeder, &tag)?;
    let refused = hand_over(&mut feeder, &demand, &other, (2001, 3000));
    let refused = expect_cause(refused, Cause::HandOverRefused, "another key space");
    let page = "\"Databases that were fed\" in docs/operations/store.md";
    assert!(refused.hint.contains(page), "{refused:?}");
    // One of before that nobody needed yet is not issued afterwards.
    hand_over(&mut feeder, &demand, KEY_SPACE, (1001, 2000))?;
    client.batch_execute(&format!(
        "SELECT keywright.drop_tag('{tag}'); SELECT keywright.create_fed_tag('{tag}', forget_issued => true)"
    ))?;
    let told = "SELECT count(*) FROM keywright.handed_over(ARRAY[$1])";
    let told: i64 = feeder.query_one(told, &[&tag])?.get(0);
    assert_eq!(told, 0);
    ask(&mut client, &tag)?;
    let demand = demand_of(&mut feeder, &tag)?;
    hand_over(&mut feeder, &demand, &other, (2001, 3000))?;
    assert_eq!(query_i64(&mut client, &next)?, 2001);
    Ok(())
}
