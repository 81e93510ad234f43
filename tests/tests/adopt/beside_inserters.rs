//! A table is adopted while others insert into it: they wait, or adopt waits for them, and no row is lost or repeated.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use keywright_testkit::{Pending, Result, WAIT_MAX, query_i64, wait_until};
use postgres::Client;

use crate::{database, ids};

#[test]
fn inserters_wait_and_none_is_lost() -> Result<()> {
    let (database, mut client) = database()?;
    client.batch_execute("CREATE TABLE t (id bigserial PRIMARY KEY); INSERT INTO t SELECT FROM generate_series(1, 5)")?;
    // One that has inserted and not committed: adopt waits for it and counts its row.
    let mut early = database.client()?;
    early.batch_execute("BEGIN; INSERT INTO t VALUES (700)")?;
    let adopting = Pending::start(database.client()?, "SELECT keywright.adopt('t', 't', 'id')")?;
    let lock = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'";
    wait_until("adopt to wait for the inserter", WAIT_MAX, || {
        Ok(client.query_opt(lock, &[&adopting.pid()])?.is_some())
    })?;
    early.batch_execute("COMMIT")?;
    assert_eq!(adopting.finish()?.outcome?, 701);
    assert_eq!(
        ids(&mut early, "INSERT INTO t DEFAULT VALUES RETURNING id")?,
        [701]
    );

    // One that comes while adopt's transaction is open waits, and then uses the tag.
    client.batch_execute("CREATE TABLE u (id bigserial PRIMARY KEY)")?;
    client.batch_execute("BEGIN; SELECT keywright.adopt('u', 'u', 'id')")?;
    let insert = "INSERT INTO u DEFAULT VALUES RETURNING id";
    let inserting = Pending::start(database.client()?, insert)?;
    wait_until("an inserter to wait for adopt", WAIT_MAX, || {
        Ok(early.query_opt(lock, &[&inserting.pid()])?.is_some())
    })?;
    assert_eq!(ids(&mut client, insert)?, [1]);
    client.batch_execute("COMMIT")?;
    assert_eq!(inserting.finish()?.outcome?, 2);
    Ok(())
}

#[test]
fn adopted_under_load_nothing_is_lost_or_repeated() -> Result<()> {
    let (database, mut client) = database()?;
    client.batch_execute("CREATE TABLE t (id bigserial PRIMARY KEY)")?;
    let stop = AtomicBool::new(false);
    let insert_until_stopped = || -> Result<Vec<i64>> {
        let mut client = database.client()?;
        let mut inserted = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            inserted.extend(ids(
                &mut client,
                "INSERT INTO t SELECT FROM generate_series(1, 3) RETURNING id",
            )?);
        }
        Ok(inserted)
    };
    let count = "SELECT count(*) FROM t";
    let all = thread::scope(|scope| -> Result<Vec<i64>> {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(insert_until_stopped)).collect();
        let mut adopt = || -> Result<()> {
            let grown_to = |client: &mut Client, rows| {
                wait_until("rows", WAIT_MAX, || Ok(query_i64(client, count)? >= rows))
            };
            grown_to(&mut client, 300)?;
            let start = query_i64(&mut client, "SELECT keywright.adopt('t', 't', 'id')")?;
            assert!(start > 300);
            let rows = query_i64(&mut client, count)?;
            grown_to(&mut client, rows + 300)
        };
        let adopted = adopt();
        stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for thread in threads {
            let inserted = thread.join().map_err(|_| panicked())?;
            all.extend(inserted?);
        }
        adopted.map(|()| all)
    })?;
    let mut distinct = all.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), all.len());
    assert_eq!(ids(&mut client, "SELECT id FROM t ORDER BY id")?, distinct);
    Ok(())
}

fn panicked() -> std::io::Error {
    std::io::Error::other("an inserting thread panicked")
}
