//! Two programs, one behind the other: no number comes twice, whatever ends or is cut between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use keywright_testkit::{ProxyProcess, Relay, Result, WAIT_MAX, wait_until};

use super::{Far, Given, KEYS, near};

/// Numbers between two of the things that happen.
const BETWEEN: i64 = 12_000;
const ROUNDS: usize = 5;

#[test]
fn no_number_is_given_twice_whatever_happens_between_programs() -> Result<()> {
    let mut far = Far::start(KEYS)?;
    let relay = Relay::to(far.port()?)?;
    let mut its = ProxyProcess::start(near(relay.port(), ""))?;
    // A second one, whose way to the key port is never cut.
    let other = ProxyProcess::start(near(far.port()?, ""))?;
    let ports = [
        far.port()?,
        its.key_port()?,
        other.key_port()?,
        its.key_port()?,
    ];
    let (given, over) = (Given::default(), AtomicBool::new(false));
    let happened = thread::scope(|scope| {
        for (client, port) in ports.into_iter().enumerate() {
            let (given, over) = (&given, &over);
            let count = [1, 7, 30, 25][client];
            scope.spawn(move || given.take_until_over(port, count, over));
        }
        let go_on = || {
            let goal = given.count() + BETWEEN;
            wait_until("numbers", WAIT_MAX, || Ok(given.count() > goal))
        };
        let happened = (0..ROUNDS).try_for_each(|round| {
            go_on()?;
            far.proxy.kill9()?;
            far.proxy.restart()?;
            go_on()?;
            // Shorter than a transaction may last, then longer: what was asked for arrives, and nobody waits for it any more.
            for ms in [100, 900] {
                relay.cut();
                thread::sleep(Duration::from_millis(ms + u64::try_from(round)? * 7));
                relay.mend();
                go_on()?;
            }
            its.kill9()?;
            its.restart()?;
            go_on()?;
            match round % 2 {
                0 => far.proxy.stop()?,
                _ => its.stop()?,
            };
            match round % 2 {
                0 => far.proxy.restart(),
                _ => its.restart(),
            }
        });
        over.store(true, Ordering::Relaxed);
        happened
    });
    happened?;
    given.assert_distinct();
    assert!(given.count() > 200_000, "{}", given.count());
    Ok(())
}
