use keywright_testkit::{Pending, Result, WAIT_MAX, query_i64, wait_until};

use super::{server, set_up};

/// By whoever is in a transaction or in a statement, too: it may be another server's from now on.
#[test]
fn a_worker_id_that_is_given_up_is_left_at_once() -> Result<()> {
    let server = server()?;
    let mut client = set_up(&server, 1)?;
    let worker = "SELECT snowflake_worker(snowflake_id())::bigint";
    let bucket = "SELECT d.bucket::bigint FROM readable_decode(readable_id('a')) AS d";
    let mut worker_id = 1;
    for begin in ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"] {
        for query in [worker, bucket] {
            // Whoever extends a bound in a transaction keeps it until that ends.
            query_i64(&mut client, query)?;
            let mut open = server.client("postgres")?;
            open.batch_execute(begin)?;
            assert_eq!(query_i64(&mut open, query)?, worker_id, "{begin} {query}");
            worker_id += 1;
            let change = format!("SELECT keywright.set_worker_id({worker_id})");
            client.batch_execute(&change)?;
            assert_eq!(query_i64(&mut open, query)?, worker_id, "{begin} {query}");
            open.batch_execute("COMMIT")?;
        }
    }
    query_i64(&mut client, worker)?;
    // Half-way it waits for a lock of the test's.
    let mut holder = server.client("postgres")?;
    holder.batch_execute("SELECT pg_advisory_lock(1)")?;
    let both = "SELECT count(DISTINCT snowflake_worker(id)) FROM \
                (SELECT snowflake_id() AS id, CASE WHEN n = 100 THEN pg_advisory_xact_lock_shared(1)::text END \
                FROM generate_series(1, 200) AS n OFFSET 0) AS t";
    let running = Pending::start(server.client("postgres")?, both)?;
    wait_until("the statement to be half-way", WAIT_MAX, || {
        let waits = format!(
            "SELECT count(*) FROM pg_locks WHERE pid = {} AND locktype = 'advisory' AND NOT granted",
            running.pid()
        );
        Ok(query_i64(&mut holder, &waits)? == 1)
    })?;
    client.batch_execute("SELECT keywright.set_worker_id(100)")?;
    holder.batch_execute("SELECT pg_advisory_unlock(1)")?;
    assert_eq!(running.finish()?.outcome?, 2);
    // A change that is undone takes nothing away.
    let mut open = server.client("postgres")?;
    client.batch_execute("BEGIN; SELECT keywright.set_worker_id(101); ROLLBACK")?;
    assert_eq!(query_i64(&mut open, worker)?, 100);
    Ok(())
}
