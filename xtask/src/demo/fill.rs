//! Inserting from many connections at once, with a line that shows how far it is.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use keywright_testkit::PgServer;
use postgres::{Config, NoTls};

use crate::demo::show::Show;

/// The demo's tables, all filled alike.
pub(crate) const TABLES: [&str; 3] = ["event", "orders", "receipt"];

/// How many connections insert at once.
pub(crate) const CONNECTIONS: usize = 8;

/// Rows of one INSERT.
const BATCH_ROWS: u64 = 5_000;

const SHOW_EVERY: Duration = Duration::from_millis(250);

/// Rows to insert, counted over all connections.
pub(crate) struct Fill {
    config: Config,
    rows: u64,
    begun: AtomicU64,
    committed: AtomicU64,
}

type Inserter<'scope> = ScopedJoinHandle<'scope, Result<()>>;

impl Fill {
    pub(crate) fn new(server: &PgServer, rows: u64) -> Fill {
        Fill {
            config: server.config("postgres", "postgres"),
            rows,
            begun: AtomicU64::new(0),
            committed: AtomicU64::new(0),
        }
    }

    /// Inserts them all.
    pub(crate) fn run(&self, screen: &Show) -> Result<()> {
        thread::scope(|scope| {
            let inserters: Vec<Inserter<'_>> = (0..CONNECTIONS)
                .map(|_| scope.spawn(|| self.insert()))
                .collect();
            self.show_until(screen, || inserters.iter().all(Inserter::is_finished));
            for inserter in inserters {
                inserter
                    .join()
                    .map_err(|_| anyhow!("an inserting thread panicked"))??;
            }
            Ok(())
        })
    }

    /// Inserts until so many rows are committed, then kills the server under the connections; returns how many rows
    /// were committed in the end.
    pub(crate) fn run_until_killed(
        &self,
        screen: &Show,
        server: &mut PgServer,
        rows: u64,
    ) -> Result<u64> {
        thread::scope(|scope| {
            let inserters: Vec<Inserter<'_>> = (0..CONNECTIONS)
                .map(|_| scope.spawn(|| self.insert()))
                .collect();
            let failed_early = || inserters.iter().any(Inserter::is_finished);
            self.show_until(screen, || {
                self.committed.load(Ordering::SeqCst) >= rows || failed_early()
            });
            let failed_early = failed_early();
            server.kill9()?;
            for inserter in inserters {
                let ended = inserter
                    .join()
                    .map_err(|_| anyhow!("an inserting thread panicked"))?;
                // Losing the connection is what was asked for; losing it before the kill is not.
                if failed_early {
                    ended?;
                }
            }
            Ok(self.committed.load(Ordering::SeqCst))
        })
    }

    /// One connection: takes the next batch until there is none.
    fn insert(&self) -> Result<()> {
        let mut client = self.config.connect(NoTls)?;
        loop {
            let from = self.begun.fetch_add(BATCH_ROWS, Ordering::SeqCst);
            if from >= self.rows {
                return Ok(());
            }
            let batch = from / BATCH_ROWS;
            let turn = usize::try_from(batch).map_or(0, |batch| batch % TABLES.len());
            let Some(table) = TABLES.get(turn) else {
                return Ok(());
            };
            let rows = BATCH_ROWS.min(self.rows - from);
            client.execute(
                &format!("INSERT INTO {table} (body) SELECT 'row ' || n FROM generate_series(1, {rows}) n"),
                &[],
            )?;
            self.committed.fetch_add(rows, Ordering::SeqCst);
        }
    }

    fn show_until(&self, screen: &Show, done: impl Fn() -> bool) {
        let started = Instant::now();
        let terminal = std::io::stdout().is_terminal();
        let line = || {
            let committed = self.committed.load(Ordering::SeqCst);
            let rate = committed as f64 / started.elapsed().as_secs_f64().max(0.001);
            format!("    {committed:>8} rows, {rate:>7.0} per second")
        };
        while !done() {
            thread::sleep(SHOW_EVERY);
            if terminal {
                print!("\r{}", line());
                // A terminal that cannot be written to has nobody watching.
                let _ = std::io::stdout().flush();
            }
        }
        let begin = if terminal { "\r" } else { "" };
        let line = line();
        println!("{begin}{line}");
        screen.keep(&line);
    }
}
