//! Clients that take numbers of a program that is killed again and again: no number is given twice.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use keywright_testkit::{ProxyProcess, Result, WAIT_MAX, wait_until};

const CLIENTS: usize = 8;
/// As many, at the least, are taken between one kill and the next.
const RUNS_MIN: usize = 500;

/// What clients were given.
#[derive(Default)]
pub(crate) struct Given {
    /// The first number and the last.
    runs: Mutex<Vec<(i64, i64)>>,
    is_over: AtomicBool,
}

impl Given {
    pub(crate) fn note(&self, first: i64, last: i64) {
        if let Ok(mut runs) = self.runs.lock() {
            runs.push((first, last));
        }
    }

    /// Whether more is to be taken.
    pub(crate) fn is_going_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    fn count(&self) -> usize {
        self.runs.lock().map_or(0, |runs| runs.len())
    }
}

/// Kills the program so often. `take`: what a client of this number does as long as it is going on, and until its program is killed.
pub(crate) fn no_number_is_given_twice(
    proxy: &mut ProxyProcess,
    kills: usize,
    take: impl Fn(usize, &Given) -> Result<()> + Sync,
) -> Result<()> {
    let given = Given::default();
    let killed = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (given, take) = (&given, &take);
            scope.spawn(move || {
                while given.is_going_on() {
                    // It ends when the program is killed; the next one finds the program that comes after.
                    let _ended = take(client, given);
                }
            });
        }
        let killed = (0..kills).try_for_each(|kill| {
            let before = given.count();
            wait_until("keys", WAIT_MAX, || Ok(given.count() > before + RUNS_MIN))?;
            thread::sleep(Duration::from_millis(u64::try_from(kill)? * 17 % 50));
            proxy.kill9()?;
            proxy.restart()
        });
        given.is_over.store(true, Ordering::Relaxed);
        killed
    });
    killed?;
    let mut runs = given.runs.into_inner().unwrap_or_default();
    runs.sort_unstable();
    assert!(runs.len() > kills * RUNS_MIN, "{}", runs.len());
    for pair in runs.windows(2) {
        assert!(pair[0].1 < pair[1].0, "given twice: {pair:?}");
    }
    Ok(())
}
