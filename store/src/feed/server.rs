//! The connection to a server that is fed: what it wants, and the hand-over.

use std::time::Duration;

use keywright_core::{Cause, Tag};
use tokio::time::timeout;

use crate::engine::error::StoreError;
use crate::engine::postgres::PostgresLink;
use crate::engine::value::{Row, Value, column, values};
use crate::failure::Failure;
use crate::settings::FeedSettings;
use crate::store::tag_request::Granted;

/// All as text or bigint: the types of the server's own object ids are its business.
const AWAIT_DEMAND: &str = "SELECT incarnation, database::text, extension::text, generation::bigint, sequence::text, tag, wanted, above \
                            FROM keywright.await_demand(?)";

const FEED_TAG: &str = "SELECT keywright.feed_tag(?, ?, ?, ?, ?, ?, ?, ?, ?)::text";

const HANDED_OVER: &str = "SELECT tag, last FROM keywright.handed_over(?)";

const MAY_FEED: &str = "SELECT pg_catalog.has_function_privilege('keywright.await_demand(text[])', 'EXECUTE') \
                        AND pg_catalog.has_function_privilege('keywright.feed_tag(text,oid,oid,integer,oid,text,text,bigint,bigint)', 'EXECUTE') \
                        AND pg_catalog.has_function_privilege('keywright.handed_over(text[])', 'EXECUTE') \
                        AS may, pg_catalog.pg_is_in_recovery() AS is_standby";

/// What a tag of one incarnation wants.
#[derive(Debug)]
pub(super) struct Demand {
    /// Which slot of the server's memory it is, in the server's own words.
    place: Place,
    pub(super) tag: Tag,
    /// How many ids.
    pub(super) wanted: u64,
    /// The largest id that the server knows of.
    pub(super) above: u64,
}

#[derive(Debug)]
struct Place {
    incarnation: String,
    database: String,
    extension: String,
    generation: i64,
    sequence: String,
}

/// The server does not take a range.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Failure);

/// A server that is fed.
pub(super) struct Server {
    link: PostgresLink,
    address: String,
    /// As the server writes an array. A tag has neither quotes nor backslashes.
    tags: String,
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
        match found {
            Ok((1, 0)) => Ok(()),
            Ok((1, _)) => Err(Failure::new(
                Cause::UpstreamUnreachable,
                format!("the server at {} is a standby, which issues no ids", self.address),
            )),
            Ok((_, _)) => Err(Failure::new(
                Cause::Privilege,
                format!("the user of the server at {} may not feed", self.address),
            )
            .hint("GRANT USAGE ON SCHEMA keywright and EXECUTE on keywright.await_demand, keywright.feed_tag and keywright.handed_over to it")),
            Err(error) => Err(failure(&self.address, &error)),
        }
    }

    /// What is wanted: at once if there is anything, else after a second.
    pub(super) async fn await_demand(&self) -> Result<Vec<Demand>, Failure> {
        let rows = self.ask(AWAIT_DEMAND, values![self.tags.as_str()]).await;
        let demands = rows.and_then(|rows| rows.iter().map(demand).collect());
        demands.map_err(|error| failure(&self.address, &error))
    }

    /// The largest id that it was handed of each tag, as far as it knows.
    pub(super) async fn handed_over(&self) -> Result<Vec<(Tag, u64)>, Failure> {
        let rows = self.ask(HANDED_OVER, values![self.tags.as_str()]).await;
        let last_ids = rows.and_then(|rows| {
            let last_id = |row| Ok((tag(row)?, column(row, "last")?));
            rows.iter().map(last_id).collect()
        });
        last_ids.map_err(|error| failure(&self.address, &error))
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

fn tag(row: &Row) -> Result<Tag, StoreError> {
    let tag: String = column(row, "tag")?;
    Tag::parse(&tag).map_err(|_| StoreError::Column {
        column: "tag".to_owned(),
        value: tag,
    })
}

fn demand(row: &Row) -> Result<Demand, StoreError> {
    Ok(Demand {
        place: Place {
            incarnation: column(row, "incarnation")?,
            database: column(row, "database")?,
            extension: column(row, "extension")?,
            generation: column(row, "generation")?,
            sequence: column(row, "sequence")?,
        },
        tag: tag(row)?,
        wanted: column(row, "wanted")?,
        above: column(row, "above")?,
    })
}

fn failure(address: &str, error: &StoreError) -> Failure {
    let failure = Failure::new(
        Cause::UpstreamUnreachable,
        format!("the server at {address} cannot be fed: {error}"),
    );
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
