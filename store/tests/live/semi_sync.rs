//! Strict tags on MySQL and MariaDB whose replica acknowledges each commit, and what becomes of them while it does not.

use std::time::Instant;

use keywright_core::Cause;
use keywright_store::{RawStoreSettings, Severity};
use keywright_testkit::{Flavour, Result, Upstream, WAIT_MAX, wait_until};

use crate::common::{raw, runtime, tag};
use crate::strict::{active, first, goes_on, refusal};

keywright_testkit::on_both_flavours!(a_replica_confirms, what_was_told_is_on_the_replica,);

/// How long a commit waits for the replica before the server gives up on it, milliseconds.
const ACKNOWLEDGED_MS_MAX: u32 = 2_000;

/// A server, and a replica that acknowledges.
struct Pair {
    source: Upstream,
    replica: Upstream,
}

impl Pair {
    fn start(flavour: Flavour) -> Result<Pair> {
        let durable = [
            "--innodb-flush-log-at-trx-commit=1",
            "--sync-binlog=1",
            "--log-bin=binlog",
        ];
        let wait = |name| format!("--{name}={ACKNOWLEDGED_MS_MAX}");
        let (of_source, of_replica) = match flavour {
            Flavour::MariaDb => (
                vec![
                    "--rpl-semi-sync-master-enabled=ON".to_owned(),
                    wait("rpl-semi-sync-master-timeout"),
                ],
                vec!["--rpl-semi-sync-slave-enabled=ON"],
            ),
            Flavour::MySql => (
                vec![
                    "--plugin-load-add=semisync_source.so".to_owned(),
                    "--rpl-semi-sync-source-enabled=ON".to_owned(),
                    wait("rpl-semi-sync-source-timeout"),
                ],
                vec![
                    "--plugin-load-add=semisync_replica.so",
                    "--rpl-semi-sync-replica-enabled=ON",
                ],
            ),
        };
        let of_source = of_source.iter().map(String::as_str);
        let of_source: Vec<&str> = of_source.chain(durable).chain(["--server-id=1"]).collect();
        let of_replica = of_replica.into_iter().chain(durable);
        let of_replica: Vec<&str> = of_replica.chain(["--server-id=2"]).collect();
        let pair = Pair {
            source: Upstream::start_with(flavour, &of_source)?,
            replica: Upstream::start_with(flavour, &of_replica)?,
        };
        let port = pair.source.port();
        let follow = match flavour {
            Flavour::MariaDb => format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root'; START SLAVE"
            ),
            Flavour::MySql => format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', \
                 GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
            ),
        };
        pair.replica.run("mysql", &follow)?;
        wait_until("a replica that acknowledges", WAIT_MAX, || {
            let status = pair
                .source
                .run("", "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%_clients'")?;
            Ok(status.iter().any(|row| row[1] == "1"))
        })?;
        pair.source.run("", "CREATE DATABASE keywright")?;
        Ok(pair)
    }

    fn settings(&self) -> RawStoreSettings {
        raw(self.source.port(), "keywright")
    }

    fn tell_replica(&self, what: &str) -> Result<()> {
        let of = match self.replica.flavour() {
            Flavour::MariaDb => "SLAVE",
            Flavour::MySql => "REPLICA",
        };
        self.replica.run("", &format!("{what} {of}"))?;
        Ok(())
    }
}

/// Ids go on while the replica acknowledges, and again once it has all that it lacked.
fn a_replica_confirms(flavour: Flavour) -> Result<()> {
    let pair = Pair::start(flavour)?;
    let runtime = runtime()?;
    let (keys, source) = runtime.block_on(active(&pair.settings()))?;
    let last = runtime.block_on(first(&source))?;
    pair.tell_replica("STOP")?;
    let end = Instant::now() + WAIT_MAX;
    loop {
        // The first commits wait for as long as the server does. None is told.
        let failure = runtime.block_on(refusal(&source))?;
        if failure.cause() == Cause::StoreMayLose {
            break;
        }
        anyhow::ensure!(Instant::now() < end, "{failure}");
    }
    let found = runtime.block_on(keys.check(&[tag("orders")]));
    assert!(
        found
            .iter()
            .any(|its| its.severity == Severity::Error && its.message.contains("semi-synchronous")),
        "{found:?}"
    );
    pair.tell_replica("START")?;
    let next = runtime.block_on(goes_on(&source))?;
    assert!(next > last, "{next} behind {last}");
    Ok(())
}

/// What was told is on the replica, whatever becomes of the source.
fn what_was_told_is_on_the_replica(flavour: Flavour) -> Result<()> {
    let mut pair = Pair::start(flavour)?;
    let runtime = runtime()?;
    let (_keys, source) = runtime.block_on(active(&pair.settings()))?;
    let number = |server: &Upstream, sql: &str| -> Result<u64> {
        let rows = server.run("keywright", sql)?;
        Ok(rows[0][0].parse()?)
    };
    for _ in 0..200 {
        runtime.block_on(first(&source))?;
    }
    // Each confirmation counts this up, and what is told next waits for one more.
    let renewal = "SELECT renewal FROM keywright_order_lease";
    let before = number(&pair.source, renewal)?;
    let last = runtime.block_on(first(&source))?;
    pair.source.kill9()?;
    // The replica has it; it may not have carried it out yet.
    wait_until("the replica to catch up", WAIT_MAX, || {
        Ok(number(&pair.replica, renewal)? > before)
    })?;
    let hi = number(
        &pair.replica,
        "SELECT hi FROM keywright_segment WHERE tag = 'orders'",
    )?;
    assert!(hi > last, "{hi} {last}");
    Ok(())
}
