//! A key of the application's own ahead of its tag: natively the counter moves past it, through a proxy the tag comes to it later.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Wire, assert_has, make_store,
};

keywright_testkit::on_both_flavours!(
    a_key_ahead_of_its_tag_fails_one_insert_unless_the_tag_is_advanced,
);

/// The server's error for a key that is there already.
const DUPLICATE: u16 = 1062;
/// Keys that a program reserves at once.
const STEP: u64 = 10;

/// A key, or the number of an error.
type Outcome = std::result::Result<u64, u16>;

/// What becomes of so many INSERTs of one row.
fn inserted(wire: &mut Wire, table: &str, times: usize) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for _ in 0..times {
        let replies = wire.query(format!("INSERT INTO {table} (a) VALUES (1)"))?;
        outcomes.push(match replies.as_slice() {
            [Reply::Failed(fault)] => Err(fault.errno),
            [Reply::Done(done)] => Ok(done.last_insert_id),
            other => anyhow::bail!("{other:?}"),
        });
    }
    Ok(outcomes)
}

fn a_key_ahead_of_its_tag_fails_one_insert_unless_the_tag_is_advanced(
    flavour: Flavour,
) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE ahead;
         CREATE TABLE ahead.native (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE ahead.orders LIKE ahead.native",
    )?;
    let store = make_store(&server, "ahead_store", &[("orders", 1)])?;
    server.run(
        "ahead_store",
        &format!(
            "UPDATE keywright_segment SET step = {STEP}, step_min = {STEP}, step_max = {STEP}"
        ),
    )?;
    let config = ProxyConfig::before(&server, &store).rule("ahead.orders", "segment:orders");
    let proxy = ProxyProcess::start(config.clone())?;
    let mut wire = proxy.wire("ahead")?;
    for table in ["native", "orders"] {
        wire.run(format!("INSERT INTO {table} VALUES (3, 1)"))?;
    }
    assert_eq!(inserted(&mut wire, "native", 3)?, [Ok(4), Ok(5), Ok(6)]);
    // Once: the key that failed is used up.
    assert_eq!(
        inserted(&mut wire, "orders", 4)?,
        [Ok(1), Ok(2), Err(DUPLICATE), Ok(4)]
    );

    let advance = |above: u64| -> Result<()> {
        let arguments = ["advance", "orders", "--above", &above.to_string()];
        let said = ProxyProcess::said(&config, &arguments)?;
        assert_has(&said, &[&format!("goes on at {}", above + 1)]);
        Ok(())
    };
    // The remedy, beyond what the program has reserved.
    let ahead = 50 * STEP;
    wire.run(format!("INSERT INTO orders VALUES ({ahead}, 1)"))?;
    advance(ahead)?;
    let outcomes = inserted(&mut wire, "orders", 50)?;
    assert!(outcomes.iter().all(Outcome::is_ok), "{outcomes:?}");
    let last = outcomes.last().cloned().unwrap_or(Ok(0)).unwrap_or(0);
    assert!(last > ahead, "{outcomes:?}");
    // What it has reserved it uses up first.
    wire.run(format!("INSERT INTO orders VALUES ({}, 1)", last + 1))?;
    advance(last + 50 * STEP)?;
    assert_eq!(inserted(&mut wire, "orders", 1)?, [Err(DUPLICATE)]);
    let outcomes = inserted(&mut wire, "orders", 50)?;
    assert!(outcomes.iter().all(Outcome::is_ok), "{outcomes:?}");
    Ok(())
}
