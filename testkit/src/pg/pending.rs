//! A statement that runs while the test does something else, such as cancelling it.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use postgres::Client;

use crate::{Result, WAIT_MAX, query_i64, wait_until};

/// What became of a statement that was under way.
pub struct Answer {
    /// The session, to be used on; broken if it was terminated.
    pub client: Client,
    /// The id, or the server's error.
    pub outcome: std::result::Result<i64, postgres::Error>,
    /// How long it took.
    pub took: Duration,
}

/// A query of one `bigint` that is under way.
#[derive(Debug)]
pub struct Pending {
    pid: i32,
    answer: Receiver<Answer>,
}

impl Pending {
    /// Begins the query in the session given.
    ///
    /// # Errors
    /// The session does not answer.
    pub fn start(mut client: Client, sql: &str) -> Result<Pending> {
        let pid = query_i64(&mut client, "SELECT pg_backend_pid()::bigint")?;
        let pid = i32::try_from(pid).context("a process id")?;
        let (send, answer) = sync_channel(1);
        let sql = sql.to_owned();
        thread::spawn(move || {
            let began = Instant::now();
            let outcome = query_i64(&mut client, &sql);
            let took = began.elapsed();
            // Nobody receives when the test has failed meanwhile.
            let _ = send.send(Answer {
                client,
                outcome,
                took,
            });
        });
        Ok(Pending { pid, answer })
    }

    /// The server process that runs it.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits until `pg_stat_activity` shows that it waits in an extension.
    ///
    /// # Errors
    /// It does not come to wait.
    pub fn wait_until_waiting(&self, observer: &mut Client) -> Result<()> {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Extension'";
        wait_until("a statement that waits", WAIT_MAX, || {
            Ok(observer.query_opt(sql, &[&self.pid])?.is_some())
        })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It hangs.
    pub fn finish(self) -> Result<Answer> {
        let answer = self.answer.recv_timeout(WAIT_MAX);
        answer.with_context(|| format!("a statement did not end in {} s", WAIT_MAX.as_secs()))
    }
}
