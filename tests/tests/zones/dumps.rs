//! Dumps and damaged bounds keep what was written.

use keywright_core::cause::Cause;
use keywright_testkit::{IdLog, Result, query_text};

use crate::common::{ONE_READABLE, database, expect_cause};
use crate::{assert_now, builder, draw, zone};

#[test]
fn dump_keeps_the_zone() -> Result<()> {
    let server = builder().start()?;
    let identity = format!("SELECT keywright.set_worker_id(5); {}", zone("+08:00"));
    let mut one = database(&server, "one", &identity)?;
    let log = IdLog::new();
    draw(&mut one, &log)?;
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE two")?;
    server.restore("two", &server.dump("one", &[])?)?;
    let mut two = server.client("two")?;
    two.batch_execute("SELECT keywright.set_worker_id(7)")?;
    assert_now(&mut two);
    let row = "SELECT zone FROM keywright.stats WHERE kind = 'readable'";
    assert_eq!(query_text(&mut two, row)?, "+08:00");
    // Data alone, over what was written in another zone: compared first, and only where somebody says so.
    let data = server.dump("one", &["-a"])?;
    let other = IdLog::new();
    let identity = format!("SELECT keywright.set_worker_id(8); {}", zone("+09:00"));
    let mut three = database(&server, "three", &identity)?;
    draw(&mut three, &other)?;
    three.batch_execute("ALTER TABLE keywright.node DISABLE TRIGGER only_by_functions")?;
    three.batch_execute("DELETE FROM keywright.node")?;
    server.restore("three", &data)?;
    three = server.client("three")?;
    let refused = query_text(&mut three, ONE_READABLE);
    let error = expect_cause(refused, Cause::LayoutOverlap, "without being compared");
    assert!(
        error.hint.contains("set_readable_zone('+08:00')"),
        "{error:?}"
    );
    let refused = three.batch_execute(&zone("+08:00"));
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 8 could repeat readable ids",
    );
    three.batch_execute(&zone("+09:00"))?;
    draw(&mut three, &other)?;
    other.check()?;
    Ok(())
}

/// Lowered to where the bucket began: what was kept of it counts as written in its zone.
#[test]
fn lowered_bound_keeps_what_was_written() -> Result<()> {
    let server = builder().start()?;
    let log = IdLog::new();
    let identity = "SELECT keywright.set_readable_bucket(5, unused => true)";
    let mut client = database(&server, "one", identity)?;
    client.batch_execute(&zone("+08:00"))?;
    draw(&mut client, &log)?;
    client.batch_execute(
        "SELECT keywright.set_readable_bucket(5, above => '2040-01-01', force => true);
         SELECT keywright.lower_bound(now() + interval '1 minute')",
    )?;
    let refused = client.batch_execute(&zone("+07:00"));
    expect_cause(
        refused,
        Cause::LayoutOverlap,
        "bucket 5 could repeat readable ids",
    );
    client.batch_execute(&zone("+09:00"))?;
    draw(&mut client, &log)?;
    log.check()?;
    Ok(())
}
