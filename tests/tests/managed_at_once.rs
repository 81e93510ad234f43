//! Two sessions that manage one tag at the same time: the second waits for the first, and goes on by what is there then.

mod common;

use common::tag_database;
use keywright_testkit::{
    Pending, Result, SharedServer, TestDatabase, WAIT_MAX, expect_sql_error, query_i64, wait_until,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

/// What manages a tag, and how it shows afterwards: a call of schema keywright, and a condition on the tag's row and its sequence.
const CHANGES: [(&str, &str); 5] = [
    (
        "alter_tag('$', increment => 3, remainder => 0)",
        "t.increment = 3",
    ),
    ("alter_tag('$', max => 1000000000)", "t.max = 1000000000"),
    ("alter_tag('$', step => 5000)", "t.step = 5000"),
    (
        "grant_tag('$', 'pg_monitor')",
        "s.relacl::text LIKE '%pg_monitor=r%'",
    ),
    (
        "revoke_tag('$', 'public')",
        "NOT has_sequence_privilege('public', s.oid, 'SELECT')",
    ),
];

/// Has `second` wait for an open transaction that ran `first`, then ends that.
fn second_waits(
    database: &TestDatabase,
    (first, second): (&str, &str),
    end: &str,
) -> Result<std::result::Result<i64, postgres::Error>> {
    let mut client = database.client()?;
    client.batch_execute(&format!("BEGIN; {first}"))?;
    let pending = Pending::start(database.client()?, second)?;
    let waits = "SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted";
    let mut observer = database.client()?;
    wait_until("the second to wait for the first", WAIT_MAX, || {
        let found = observer.query_one(waits, &[&pending.pid()])?;
        Ok(found.get::<_, i64>(0) > 0)
    })?;
    client.batch_execute(end)?;
    Ok(pending.finish()?.outcome)
}

fn call(of_tag: &str, tag: &str) -> String {
    format!(
        "SELECT 1::bigint FROM keywright.{}",
        of_tag.replace('$', tag)
    )
}

fn shows(client: &mut Client, tag: &str, condition: &str) -> Result<bool> {
    let sql = format!(
        "SELECT ({condition})::int::bigint FROM keywright.tag t \
         JOIN pg_class s ON s.oid = ('keywright.tag_' || t.id)::regclass WHERE t.tag = '{tag}'"
    );
    Ok(query_i64(client, &sql)? == 1)
}

#[test]
fn the_second_goes_on_by_what_the_first_left() -> Result<()> {
    let database = tag_database(&SERVER)?;
    let mut client = database.client()?;
    let mut number = 0;
    for (first, first_shows) in CHANGES {
        for (second, second_shows) in CHANGES {
            for end in ["COMMIT", "ROLLBACK"] {
                number += 1;
                let tag = format!("t{number}");
                client.batch_execute(&format!(
                    "SELECT keywright.create_tag('{tag}'); SELECT next_biz_id('{tag}')"
                ))?;
                let outcome =
                    second_waits(&database, (&call(first, &tag), &call(second, &tag)), end)?;
                assert_eq!(outcome.ok(), Some(1), "{second} after {first}, {end}");
                assert!(shows(&mut client, &tag, second_shows)?, "{second}");
                let is_there = end == "COMMIT" || first == second;
                assert_eq!(
                    shows(&mut client, &tag, first_shows)?,
                    is_there,
                    "{first}, {end}"
                );
                client.batch_execute(&format!("SELECT keywright.drop_tag('{tag}')"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn what_the_first_dropped_the_second_does_not_find() -> Result<()> {
    let database = tag_database(&SERVER)?;
    let mut client = database.client()?;
    let drop = "SELECT keywright.drop_tag('orders')";
    let anew = format!("{drop}; SELECT keywright.create_tag('orders', forget_issued => true)");
    for (second, _) in CHANGES {
        let second = call(second, "orders");
        let outcome = second_waits(&database, (drop, &second), "COMMIT")?;
        expect_sql_error(outcome, "42704", "does not exist");
        client.batch_execute("SELECT keywright.create_tag('orders')")?;
        let outcome = second_waits(&database, (&anew, &second), "COMMIT")?;
        assert_eq!(outcome.ok(), Some(1), "{second}");
        query_i64(&mut client, "SELECT next_biz_id('orders')")?;
    }
    // Two that bring one back: the second finds it there.
    client.batch_execute(drop)?;
    let create = "SELECT 1::bigint FROM keywright.create_tag('orders')";
    let outcome = second_waits(&database, (create, create), "COMMIT")?;
    expect_sql_error(outcome, "42710", "exists already");
    Ok(())
}

/// Nothing says how far the tag was used, and two say it: the larger word counts. Whatever else manages the tag waits, too, and is waited for.
#[test]
fn two_that_say_how_far_a_damaged_tag_was_used_wait_for_each_other() -> Result<()> {
    const ADVANCE: &str = "SELECT keywright.advance_tag('damaged', 5000)";
    let database = tag_database(&SERVER)?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('damaged')")?;
    let id = "SELECT id::bigint FROM keywright.tag WHERE tag = 'damaged'";
    let reset = format!(
        "SELECT setval('keywright.tag_{}', 0, false)",
        query_i64(&mut client, id)?
    );
    let mut last = query_i64(&mut client, "SELECT next_biz_id('damaged')")?;
    let alter = call("alter_tag('$', step => 5000)", "damaged");
    for (first, second) in [
        (ADVANCE, "SELECT keywright.advance_tag('damaged', 9000)"),
        (ADVANCE, ADVANCE),
        (ADVANCE, alter.as_str()),
        (alter.as_str(), ADVANCE),
    ] {
        client.batch_execute(&reset)?;
        let outcome = second_waits(&database, (first, second), "COMMIT")?;
        assert!(outcome.is_ok(), "{second} after {first}: {outcome:?}");
        let next = query_i64(&mut client, "SELECT next_biz_id('damaged')")?;
        assert!(next > last.max(5000), "{next} after {last}");
        last = next;
    }
    assert!(last > 9000, "{last}");
    assert!(shows(&mut client, "damaged", "t.step = 5000")?);
    Ok(())
}
