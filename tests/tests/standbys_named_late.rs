//! `synchronous_standby_names` that is set while a statement runs holds for the rest of that statement.

use std::sync::Arc;

use keywright_testkit::{
    IdLog, PgServer, Replication, Result, Stop, WAIT_MAX, copy_ids, query_i64, wait_until,
};
use postgres::NoTls;

/// An id every other millisecond, for longer than a test lasts.
const SLOWLY: &str =
    "SELECT CASE WHEN pg_sleep(0.002) IS NULL THEN 0 ELSE next_biz_id('orders') END
                      FROM generate_series(1, 10000)";

#[test]
fn a_running_statement_waits_for_a_standby_that_is_named_meanwhile() -> Result<()> {
    let mut primary = PgServer::builder().start()?;
    let mut client = primary.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright;
         SELECT keywright.create_tag('orders', step => 100, step_max => 100)",
    )?;
    let mut standby = primary.standby("standby", Replication::Asynchronous)?;
    primary.wait_replayed(&standby)?;
    standby.stop(Stop::Fast)?;
    let mut config = primary.config("postgres", "postgres");
    config.options("-c keywright.refill_wait_ms_max=500");
    let mut long = config.connect(NoTls)?;
    let statement = std::thread::spawn(move || {
        let mut ids = Vec::new();
        let outcome = copy_ids(&mut long, SLOWLY, &mut ids);
        (ids, outcome)
    });
    let issued = "SELECT COALESCE(max(current_id), 0) FROM keywright.stats WHERE tag = 'orders'";
    wait_until("ids of the long statement", WAIT_MAX, || {
        Ok(query_i64(&mut client, issued)? > 200)
    })?;
    client.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait_until("the end of the long statement", WAIT_MAX, || {
        Ok(statement.is_finished())
    })?;
    let (ids, outcome) = statement
        .join()
        .map_err(|_| anyhow::anyhow!("the statement's thread panicked"))?;
    let error = outcome.expect_err("the statement went on without the standby");
    let said = format!("{error:?}");
    let expected = [
        "timed out after 500 ms waiting for tag \"orders\"",
        "The synchronous standby that synchronous_standby_names demands did not confirm",
    ];
    for part in expected {
        assert!(said.contains(part), "{said}");
    }
    // What it got had been reserved before the standby was named; the standby, promoted, keeps its distance from that.
    let last = *ids.last().expect("ids before the setting");
    println!("{} ids up to {last}, then: {error}", ids.len());
    let log = Arc::new(IdLog::default());
    log.record(ids);
    primary.kill9()?;
    standby.start()?;
    standby.promote()?;
    let mut after = Vec::new();
    copy_ids(
        &mut standby.client("postgres")?,
        "SELECT next_biz_ids('orders', 1000)",
        &mut after,
    )?;
    log.record(after);
    log.check()?;
    Ok(())
}
