//! A log of every id that was issued, kept over restarts, kills and copies of the server, and its checker.

use std::sync::{Mutex, PoisonError};
use std::thread;

use postgres::{Client, Config, NoTls};

use crate::{Result, copy_ids};

/// What a log shows to be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdFault {
    /// The promise is broken.
    #[error("{repeated} of {count} ids were issued before, the first of them is {id}")]
    Duplicate {
        /// The smallest id that is there more than once.
        id: i64,
        /// How many ids too many there are.
        repeated: usize,
        /// How many ids there are.
        count: usize,
    },
    /// An id of one connection is not greater than the one before.
    #[error("run {run}: id {position} is {after}, after {before}")]
    NotIncreasing {
        /// Which run, in the order of recording.
        run: usize,
        /// The place in the run, from 0.
        position: usize,
        /// The id before it.
        before: i64,
        /// The id that is not greater.
        after: i64,
    },
}

/// What a log without faults holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdSummary {
    /// How many ids there are, all distinct.
    pub count: usize,
    /// The smallest, 0 when there is none.
    pub smallest: i64,
    /// The largest, 0 when there is none.
    pub largest: i64,
}

/// Ids in runs: what one connection was given, in order. Threads may record at the same time.
#[derive(Debug, Default)]
pub struct IdLog {
    runs: Mutex<Vec<Vec<i64>>>,
}

/// What each of several connections does.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// How many connections there are at once.
    pub connections: usize,
    /// How often each runs the query.
    pub rounds: usize,
    /// A query of one `bigint` column.
    pub query: &'a str,
}

impl IdLog {
    /// An empty log.
    #[must_use]
    pub fn new() -> IdLog {
        IdLog::default()
    }

    /// Records what one connection was given, in the order in which it was.
    pub fn record(&self, run: Vec<i64>) {
        self.runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(run);
    }

    /// Records ids whose order means nothing, such as those read back from a table.
    pub fn record_unordered(&self, mut ids: Vec<i64>) {
        // A duplicate among them must stay one, and not be taken for a fault of order.
        ids.sort_unstable();
        let mut runs: Vec<Vec<i64>> = vec![Vec::new()];
        for id in ids {
            match runs.last_mut() {
                Some(run) if run.last().is_none_or(|&last| last < id) => run.push(id),
                Some(_) | None => runs.push(vec![id]),
            }
        }
        self.runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(runs);
    }

    /// Connects as often as asked, runs the query in all connections at once, and records every id that arrives, also
    /// those before an error. Returns the errors: none when all went well.
    pub fn draw(&self, config: &Config, draw: Draw<'_>) -> Vec<anyhow::Error> {
        let one = || -> Result<()> {
            let mut client = config.connect(NoTls)?;
            let mut run = Vec::new();
            let mut done = Ok(());
            for _ in 0..draw.rounds {
                done = copy_ids(&mut client, draw.query, &mut run);
                if done.is_err() {
                    break;
                }
            }
            self.record(run);
            done
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..draw.connections).map(|_| scope.spawn(one)).collect();
            let ended = threads
                .into_iter()
                .filter_map(|thread| match thread.join() {
                    Ok(done) => done.err(),
                    Err(_) => Some(anyhow::anyhow!("a drawing thread panicked")),
                });
            ended.collect()
        })
    }

    /// How many ids were recorded.
    #[must_use]
    pub fn count(&self) -> usize {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.iter().map(Vec::len).sum()
    }

    /// Checks everything recorded so far: all distinct, and each run strictly increasing.
    ///
    /// # Errors
    /// The first fault; a duplicate comes before a fault of order.
    pub fn check(&self) -> std::result::Result<IdSummary, IdFault> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = runs.concat();
        all.sort_unstable();
        check_distinct(&all)?;
        for (number, run) in runs.iter().enumerate() {
            check_increasing(number, run)?;
        }
        Ok(IdSummary {
            count: all.len(),
            smallest: all.first().copied().unwrap_or(0),
            largest: all.last().copied().unwrap_or(0),
        })
    }
}

fn check_distinct(sorted: &[i64]) -> std::result::Result<(), IdFault> {
    let mut repeated = sorted
        .iter()
        .zip(sorted.iter().skip(1))
        .filter(|(a, b)| a == b);
    match repeated.next() {
        None => Ok(()),
        Some((&id, _)) => Err(IdFault::Duplicate {
            id,
            repeated: 1 + repeated.count(),
            count: sorted.len(),
        }),
    }
}

fn check_increasing(number: usize, run: &[i64]) -> std::result::Result<(), IdFault> {
    let mut pairs = run.iter().zip(run.iter().skip(1)).enumerate();
    match pairs.find(|(_, (before, after))| after <= before) {
        None => Ok(()),
        Some((index, (&before, &after))) => Err(IdFault::NotIncreasing {
            run: number,
            position: index + 1,
            before,
            after,
        }),
    }
}

/// Runs the query in one connection, and records every id that arrives, also those before an error: they were issued.
///
/// # Errors
/// The server's, or the connection broke.
pub fn draw(client: &mut Client, query: &str, log: &IdLog) -> Result<()> {
    let mut run = Vec::new();
    let drawn = copy_ids(client, query, &mut run);
    log.record(run);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_log_is_summed_up() {
        let log = IdLog::new();
        log.record(vec![1, 5, 9]);
        log.record(vec![2, 3]);
        log.record_unordered(vec![8, 7]);
        let expected = IdSummary {
            count: 7,
            smallest: 1,
            largest: 9,
        };
        assert_eq!(log.check(), Ok(expected));
    }

    #[test]
    fn duplicates_are_counted() {
        let log = IdLog::new();
        log.record(vec![1, 2, 3]);
        log.record_unordered(vec![3, 2, 3]);
        let expected = IdFault::Duplicate {
            id: 2,
            repeated: 3,
            count: 6,
        };
        assert_eq!(log.check(), Err(expected));
    }

    #[test]
    fn order_within_a_run_is_checked() {
        let log = IdLog::new();
        log.record(vec![1]);
        log.record(vec![4, 7, 6]);
        let expected = IdFault::NotIncreasing {
            run: 1,
            position: 2,
            before: 7,
            after: 6,
        };
        assert_eq!(log.check(), Err(expected));
    }
}
