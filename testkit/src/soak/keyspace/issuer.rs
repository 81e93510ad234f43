//! Whatever issues of the key space, and how a client asks it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use postgres::{Client, Config, NoTls};

use crate::redis::{RespClient, RespValue};
use crate::soak::verdict::{Verdict, judge};
use crate::{Login, SqlFault, Wire};

/// No statement may hang for as long as nobody looks.
const OPTIONS: &str = "-c statement_timeout=8s -c keywright.refill_wait_ms_max=3000";
/// What a program may refuse with while the store or a server is away or it stops itself, and its causes.
const MYSQL_LEGITIMATE: &[u16] = &[
    1040, // connections_full
    1053, // draining, or the server is being stopped
    1158, // upstream_unreachable
    1159, // login_timeout
    1205, // refill_timeout, table_unanswered
    1467, // store_unavailable, suspended
];
/// The same on key ports.
const REDIS_LEGITIMATE: &[&str] = &[
    "STORE_UNAVAILABLE",
    "REFILL_TIMEOUT",
    "SUSPENDED",
    "DRAINING",
];

/// Where clients reach an issuer.
#[derive(Debug, Clone)]
pub(super) enum Address {
    /// A database whose tag is fed.
    Database(Box<Config>),
    /// A table behind the listener at this port.
    Table(&'static str, u16),
    /// The key port there.
    KeyPort(u16),
}

/// One that issues.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) name: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    address: Address,
    came: Instant,
    refused: Option<String>,
}

impl Issuer {
    pub(super) fn new(name: String, address: Address) -> Issuer {
        Issuer {
            name,
            state: Mutex::new(State {
                address,
                came: Instant::now(),
                refused: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn moved_to(&self, address: Address) {
        self.state().address = address;
    }

    /// When ids came last.
    pub(super) fn came(&self) -> Instant {
        self.state().came
    }

    /// How it last refused.
    pub(super) fn refused(&self) -> Option<String> {
        self.state().refused.clone()
    }

    pub(super) fn note_refusal(&self, error: &Error) {
        self.state().refused = Some(format!("{error:#}"));
    }

    pub(super) fn note_ids(&self) {
        self.state().came = Instant::now();
    }

    /// Connects.
    ///
    /// # Errors
    /// Nobody is there, or refuses.
    pub(super) fn connect(&self) -> Result<Connected> {
        let address = self.state().address.clone();
        Ok(match address {
            Address::Database(mut config) => {
                config
                    .options(OPTIONS)
                    .connect_timeout(Duration::from_secs(10));
                Connected::Database(Box::new(config.connect(NoTls)?))
            }
            Address::Table(table, port) => {
                let wire = Wire::connect_tcp(port, &Login::root("shop"))?;
                Connected::Table(table, Box::new(wire))
            }
            Address::KeyPort(port) => Connected::KeyPort(RespClient::connect(port)?),
        })
    }
}

/// A client of an issuer.
pub(super) enum Connected {
    Database(Box<Client>),
    Table(&'static str, Box<Wire>),
    KeyPort(RespClient),
}

impl Connected {
    /// What its ids must differ from.
    pub(super) fn space(&self) -> &'static str {
        match self {
            Connected::Database(_) | Connected::KeyPort(_) => "orders",
            Connected::Table(table, _) => table,
        }
    }

    /// Asks for so many; databases give more, since that costs them little.
    ///
    /// # Errors
    /// It is refused, or the connection is over.
    pub(super) fn draw(&mut self, count: u32) -> Result<(String, Vec<i64>)> {
        match self {
            Connected::Database(client) => {
                let sql = format!(
                    "SELECT array_agg(id) FROM (SELECT next_biz_ids('orders', {}) AS id FROM generate_series(1, 5)) AS drawn",
                    count * 10
                );
                let ids = client.query_one(&sql, &[])?.try_get(0)?;
                Ok((sql, ids))
            }
            Connected::Table(table, wire) => {
                let rows = vec!["(1)"; usize::try_from(count)?].join(", ");
                let first = wire.run(format!("INSERT INTO {table} (a) VALUES {rows}"))?;
                let first = first.last_insert_id.cast_signed();
                let ids = first..first + i64::from(count);
                Ok((insert_of(table, count), ids.collect()))
            }
            Connected::KeyPort(client) => {
                let count = count.to_string();
                let words = ["INCRBY", "orders", &count];
                let last = client.ask(&words)?;
                if let RespValue::Error(text) = last {
                    return Err(Refused(text).into());
                }
                let last = last.integer()?;
                let ids = last - count.parse::<i64>()? + 1..=last;
                Ok((words.join(" "), ids.collect()))
            }
        }
    }
}

/// How the ledger tells of rows.
fn insert_of(table: &str, count: u32) -> String {
    format!("{}{table}, {count} rows", super::rows::INSERT)
}

/// What a key port answered.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

/// Judges an error of any of them.
pub(super) fn verdict(error: &Error) -> Verdict {
    let listed = |listed: bool, what: String| match listed {
        true => Verdict::Refused(what),
        false => Verdict::Fault(format!("{error:#}")),
    };
    if let Some(fault) = error.downcast_ref::<SqlFault>() {
        let known = MYSQL_LEGITIMATE.contains(&fault.errno);
        return listed(known, fault.errno.to_string());
    }
    if let Some(Refused(text)) = error.downcast_ref() {
        let code = text.split(' ').next().unwrap_or_default();
        return listed(REDIS_LEGITIMATE.contains(&code), code.to_owned());
    }
    judge(error)
}

/// How long one has been without ids, and why.
pub(super) fn dry(issuer: &Issuer) -> String {
    let refused = issuer.refused();
    let refused = refused.as_deref().unwrap_or("nobody was refused");
    format!(
        "{} has issued nothing for {} s; the last refusal: {refused}",
        issuer.name,
        issuer.came().elapsed().as_secs()
    )
}

/// A connection that an issuer gives at the end, when all is there again.
///
/// # Errors
/// It gives no ids.
pub(super) fn last_draw(issuer: &Issuer) -> Result<(String, &'static str, Vec<i64>)> {
    let mut connected = issuer.connect()?;
    let (what, ids) = connected.draw(3).context("the last draw")?;
    Ok((what, connected.space(), ids))
}
