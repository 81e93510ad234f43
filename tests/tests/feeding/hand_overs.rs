//! Which hand-overs are taken, and who gets their ids.

use std::thread;

use keywright_core::cause::Cause;
use keywright_testkit::{Result, query_i64, query_text};
use postgres::Client;

use super::common::expect_cause;
use super::{Demand, KEY_SPACE, ask, demand_of, fed, hand_over};

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
