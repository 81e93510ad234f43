//! Who may lock tables for an attempt: on each server one connection, the one that has the attempt's user lock.
//!
//! While a lock is waited for, transactions that have read the table and then write to it are ended by the server (1213). So a connection takes the
//! user lock, then asks the store whether statements still wait, and only then locks a table. Whoever finishes an attempt takes the user
//! lock over before statements go on: a connection that was stopped on the way to a table is gone by then, with all that it was told carried out or not.

use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::time::{Instant, sleep};

use super::fence::SwitchError;

/// How often it is looked whether a connection is gone, milliseconds.
const LOOK_MS: u64 = 10;
/// How long somebody may have the lock who is probably at work, milliseconds. Then the connection is killed.
const OTHERS_WAIT_MS_MAX: u64 = 200;
/// How long a killed connection may take to go, milliseconds.
const KILL_WAIT_MS_MAX: u64 = 5_000;
/// The server's error: there is no such connection.
const NO_SUCH_THREAD: u16 = 1094;

/// The user lock of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    name: String,
}

impl Claim {
    /// Of an attempt of this leader, which is unique to one run of one program. Connection numbers are not: a server that starts again
    /// counts from the beginning.
    pub fn of(attempt: u64, leader: Option<&str>) -> Self {
        // Both servers refuse names of more than 64 characters. The number has at most 20, the leader has 32.
        let leader = leader.unwrap_or("nobody");
        Self {
            name: format!("keywright {attempt} {leader}"),
        }
    }

    /// Takes it. False: another connection has it.
    ///
    /// # Errors
    /// The server fails.
    pub async fn take(&self, conn: &mut Conn) -> Result<bool, SwitchError> {
        let select = "SELECT GET_LOCK(?, 0)";
        let taken: Option<Option<i64>> = conn.exec_first(select, (&self.name,)).await?;
        Ok(taken.flatten() == Some(1))
    }

    /// Takes it. Another connection that keeps it for long is killed.
    ///
    /// # Errors
    /// The server fails, does not give it, or a killed connection stays.
    pub async fn take_over(&self, conn: &mut Conn) -> Result<(), SwitchError> {
        let began = Instant::now();
        let mut killed = None;
        while !self.take(conn).await? {
            let holder = self.holder(conn).await?;
            let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            match holder {
                _ if waited_ms > OTHERS_WAIT_MS_MAX + KILL_WAIT_MS_MAX => {
                    return Err(match holder {
                        Some(session) => SwitchError::StillThere(session),
                        None => SwitchError::NotTaken(self.name.clone()),
                    });
                }
                Some(session) if waited_ms > OTHERS_WAIT_MS_MAX && killed != holder => {
                    kill(conn, session).await?;
                    killed = holder;
                }
                Some(_) | None => {}
            }
            sleep(Duration::from_millis(LOOK_MS)).await;
        }
        Ok(())
    }

    /// The connection that has it.
    async fn holder(&self, conn: &mut Conn) -> Result<Option<u64>, SwitchError> {
        let select = "SELECT IS_USED_LOCK(?)";
        let holder: Option<Option<u64>> = conn.exec_first(select, (&self.name,)).await?;
        Ok(holder.flatten())
    }
}

async fn kill(conn: &mut Conn, session: u64) -> Result<(), SwitchError> {
    match conn.query_drop(format!("KILL {session}")).await {
        Ok(()) => Ok(()),
        Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_THREAD => Ok(()),
        Err(error) => Err(error.into()),
    }
}
