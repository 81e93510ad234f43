//! The connection to a server that is fed: what it wants, and the hand-over.

use std::time::Duration;

use keywright_core::{Cause, Tag};
use tokio::time::timeout;

use super::demand::{Demand, Place, TimeDemand, demand, tag, time_demand};
use crate::engine::error::StoreError;
use crate::engine::postgres::PostgresLink;
use crate::engine::value::{Row, Value, column, values};
use crate::failure::Failure;
use crate::lease::fed::Handed;
use crate::settings::FeedSettings;
use crate::store::fed_ids::HandedIds;
use crate::store::fed_rows::GrantedTime;
use crate::store::tag_request::Granted;

/// All as text or bigint: the types of the server's own object ids are its business.
const AWAIT_DEMAND: &str = "SELECT incarnation, database::text, extension::text, generation::bigint, sequence::text, tag, wanted, above, key_space \
                            FROM keywright.await_demand(?, ?)";

const FEED_TAG: &str = "SELECT keywright.feed_tag(?, ?, ?, ?, ?, ?, ?, ?, ?)::text";

const HANDED_OVER: &str = "SELECT tag, last, key_space FROM keywright.handed_over(?)";

const TIME_DEMAND: &str = "SELECT incarnation, system, database::text, sequence::text, layout, ask, worker_id, until_ms, handed, key_space, now_ms \
                           FROM keywright.time_demand()";

const FEED_TIME: &str = "SELECT keywright.feed_time(?, ?, ?, ?, ?, ?, ?, ?, ?)::text";

const HANDED_TIME: &str = "SELECT worker_id, until_ms, key_space FROM keywright.handed_time()";

/// As text, or not at all: each database has its names in an encoding of its own.
const DATABASE_NAME: &str =
    "SELECT datname::text AS name FROM pg_catalog.pg_database WHERE oid = ?";

/// What else is executed where snowflake ids are fed.
const MAY_FEED_TIME: &str = "SELECT pg_catalog.has_function_privilege('keywright.time_demand()', 'EXECUTE') \
                             AND pg_catalog.has_function_privilege('keywright.feed_time(text,oid,oid,text,bigint,text,integer,bigint,bigint)', 'EXECUTE') \
                             AND pg_catalog.has_function_privilege('keywright.handed_time()', 'EXECUTE') AS may";

const MAY_FEED: &str = "SELECT pg_catalog.has_function_privilege('keywright.await_demand(text[],boolean)', 'EXECUTE') \
                        AND pg_catalog.has_function_privilege('keywright.feed_tag(text,oid,oid,integer,oid,text,text,bigint,bigint)', 'EXECUTE') \
                        AND pg_catalog.has_function_privilege('keywright.handed_over(text[])', 'EXECUTE') \
                        AS may, pg_catalog.pg_is_in_recovery() AS is_standby";

/// The server does not take what it was handed.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Failure);

/// A server that is fed.
pub(super) struct Server {
    link: PostgresLink,
    address: String,
    /// As the server writes an array. A tag has neither quotes nor backslashes.
    tags: String,
    snowflake: bool,
    answer_ms_max: u64,
}

impl Server {
    pub(super) async fn connect(to: &FeedSettings) -> Result<Self, Failure> {
        let limit = Duration::from_millis(to.answer_ms_max);
        let failed = |error: &StoreError| failure(&to.address, error);
        match timeout(limit, PostgresLink::connect(&to.server)).await {
            Ok(Ok((link, _))) => Ok(Self {
                link,
                address: to.address.clone(),
                tags: array(&to.tags),
                snowflake: to.snowflake.is_some(),
                answer_ms_max: to.answer_ms_max,
            }),
            Ok(Err(error)) => Err(failed(&error)),
            Err(_) => Err(failed(&StoreError::TimedOut {
                ms: to.answer_ms_max,
            })),
        }
    }

    /// Whether it can be fed over this connection.
    pub(super) async fn may_feed(&self) -> Result<(), Failure> {
        let rows = self.ask(MAY_FEED, Vec::new()).await;
        let found = rows.and_then(|rows| match rows.as_slice() {
            [row] => Ok((
                column::<u64>(row, "may")?,
                column::<u64>(row, "is_standby")?,
            )),
            [] | [_, _, ..] => Ok((0, 0)),
        });
        let time = match self.snowflake {
            true => self.ask(MAY_FEED_TIME, Vec::new()).await,
            false => Ok(Vec::new()),
        };
        let may_feed_time = time.and_then(|rows| {
            let may = rows.iter().map(|row| column::<u64>(row, "may"));
            may.collect::<Result<Vec<u64>, StoreError>>()
        });
        let found = found.and_then(|found| Ok((found, may_feed_time?)));
        match found {
            Ok(((1, 0), may)) if may.iter().all(|may| *may == 1) => Ok(()),
            Ok(((1, 0), _)) => Err(Failure::new(
                Cause::Privilege,
                format!("the user of the server at {} may not feed snowflake ids", self.address),
            )
            .hint("GRANT EXECUTE on keywright.time_demand, keywright.feed_time and keywright.handed_time to it")),
            Ok(((1, _), _)) => Err(Failure::new(
                Cause::UpstreamUnreachable,
                format!("the server at {} is a standby, which issues no ids", self.address),
            )),
            Ok(((_, _), _)) => Err(Failure::new(
                Cause::Privilege,
                format!("the user of the server at {} may not feed", self.address),
            )
            .hint("GRANT USAGE ON SCHEMA keywright and EXECUTE on keywright.await_demand, keywright.feed_tag and keywright.handed_over to it")),
            Err(error) => Err(failure(&self.address, &error)),
        }
    }

    /// What is wanted: at once if there is anything, else after a second.
    pub(super) async fn await_demand(&self) -> Result<Vec<Demand>, Failure> {
        let values = values![self.tags.as_str(), self.snowflake.to_string()];
        let rows = self.ask(AWAIT_DEMAND, values).await;
        let demands = rows.and_then(|rows| rows.iter().map(demand).collect());
        demands.map_err(|error| failure(&self.address, &error))
    }

    /// The largest id that it was handed of each tag, of each key space, as far as it knows.
    pub(super) async fn handed_over(&self) -> Result<Vec<HandedIds>, Failure> {
        let rows = self.ask(HANDED_OVER, values![self.tags.as_str()]).await;
        let all = rows.and_then(|rows| {
            let handed = |row| {
                Ok(HandedIds {
                    tag: tag(row)?,
                    last: column(row, "last")?,
                    key_space: column(row, "key_space")?,
                })
            };
            rows.iter().map(handed).collect()
        });
        all.map_err(|error| failure(&self.address, &error))
    }

    /// Hands a range over.
    ///
    /// # Errors
    /// It is not known whether the server took it.
    pub(super) async fn feed_tag(
        &self,
        demand: &Demand,
        granted: &Granted,
    ) -> Result<Result<(), Refused>, Failure> {
        let Place {
            incarnation,
            database,
            extension,
            generation,
            sequence,
        } = &demand.place;
        let values = values![
            incarnation.as_str(),
            database.as_str(),
            extension.as_str(),
            *generation,
            sequence.as_str(),
            demand.tag.as_str(),
            granted.key_space.as_ref(),
            granted.start,
            granted.end.saturating_sub(1),
        ];
        match self.ask(FEED_TAG, values).await {
            Ok(_) => Ok(Ok(())),
            Err(error) if error.is_refusal() => Ok(Err(Refused(refused(&self.address, &error)))),
            Err(error) => Err(failure(&self.address, &error)),
        }
    }

    /// Which databases want time.
    pub(super) async fn time_demand(&self) -> Result<Vec<TimeDemand>, Failure> {
        if !self.snowflake {
            return Ok(Vec::new());
        }
        let rows = self.ask(TIME_DEMAND, Vec::new()).await;
        let demands = rows.and_then(|rows| rows.iter().map(time_demand).collect());
        demands.map_err(|error| failure(&self.address, &error))
    }

    /// The name of the database that wants time, for people: `None` if the server does not tell it.
    pub(super) async fn name_of(&self, demand: &TimeDemand) -> Option<String> {
        let oid = values![demand.database.as_str()];
        let rows = self.ask(DATABASE_NAME, oid).await.ok()?;
        column(rows.first()?, "name").ok()
    }

    /// Until when each worker id was handed over, as far as it knows, with the mark of its key space; 0: not known.
    pub(super) async fn handed_time(&self) -> Result<Vec<(u64, Handed)>, Failure> {
        if !self.snowflake {
            return Ok(Vec::new());
        }
        let rows = self.ask(HANDED_TIME, Vec::new()).await;
        let all = rows.and_then(|rows| {
            let handed = |row| {
                let key_space: Option<u64> = column(row, "key_space")?;
                let handed = Handed {
                    worker_id: column(row, "worker_id")?,
                    until_ms: column(row, "until_ms")?,
                };
                Ok((key_space.unwrap_or(0), handed))
            };
            rows.iter().map(handed).collect()
        });
        all.map_err(|error| failure(&self.address, &error))
    }

    /// Hands time over.
    ///
    /// # Errors
    /// It is not known whether the server took it.
    pub(super) async fn feed_time(
        &self,
        demand: &TimeDemand,
        granted: &GrantedTime,
    ) -> Result<Result<(), Refused>, Failure> {
        let grant = &granted.grant;
        let values = values![
            demand.incarnation.as_str(),
            demand.database.as_str(),
            demand.sequence.as_str(),
            demand.layout_text.as_str(),
            demand.ask,
            granted.key_space.as_str(),
            grant.worker_id,
            grant.from_ms,
            grant.until_ms,
        ];
        match self.ask(FEED_TIME, values).await {
            Ok(_) => Ok(Ok(())),
            Err(error) if error.is_refusal() => Ok(Err(Refused(refused(&self.address, &error)))),
            Err(error) => Err(failure(&self.address, &error)),
        }
    }

    async fn ask(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        let limit = Duration::from_millis(self.answer_ms_max);
        match timeout(limit, self.link.rows(sql, values)).await {
            Ok(answer) => answer,
            Err(_) => Err(StoreError::TimedOut {
                ms: self.answer_ms_max,
            }),
        }
    }
}

fn array(tags: &[Tag]) -> String {
    let quoted: Vec<String> = tags.iter().map(|tag| format!("\"{tag}\"")).collect();
    format!("{{{}}}", quoted.join(","))
}

fn failure(address: &str, error: &StoreError) -> Failure {
    let failure = Failure::new(
        Cause::UpstreamUnreachable,
        format!("the server at {address} cannot be fed: {error}"),
    );
    if error.is_starting_or_stopping() {
        return failure;
    }
    match error.is_refusal() {
        true => failure.hint(
            "the database of its url needs the extension, and its user EXECUTE on keywright.await_demand, keywright.feed_tag and keywright.handed_over",
        ),
        false => failure.hint("is the server there, and the url of its [[feed]] section right?"),
    }
}

fn refused(address: &str, error: &StoreError) -> Failure {
    Failure::new(
        Cause::HandOverRefused,
        format!("the server at {address} does not take what it was handed: {error}"),
    )
}
