//! A PostgreSQL database with the extension, to be assigned a worker id: one connection, which nobody else's ask comes between.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use keywright_core::{Mark, Tag};
use thiserror::Error;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::assignment::DatabaseName;
use crate::engine::innermost::innermost;
use crate::engine::postgres::{self, PostgresSettings};
use crate::settings::{RawStoreSettings, SettingsError, SettingsProblem, postgres_settings};
use crate::worker_ids::IdRange;

/// How long a statement may take, milliseconds: it may wait for a standby.
const STATEMENT_MS_MAX: u64 = 30_000;
/// How long another ask of the same database is waited for, milliseconds.
const ASK_WAIT_MS_MAX: u64 = 10_000;
const ASK_WAIT_STEP_MS: u64 = 50;
/// How long a connection may take, milliseconds.
const CONNECT_MS_MAX: u64 = 10_000;

/// How a database is reached, as it is written.
#[derive(Clone, Default)]
pub struct RawDatabase {
    /// `postgres://user[:password]@host[:port]/database`.
    pub url: String,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// The name of the environment variable that holds the password.
    pub password_env: Option<String>,
    /// TLS, with the certificate checked.
    pub is_tls: bool,
    /// The authorities that may have signed the server's certificate, PEM. Default: the public ones.
    pub tls_ca_file: Option<PathBuf>,
}

/// The same, checked.
pub struct DatabaseSettings {
    postgres: PostgresSettings,
    place: String,
}

impl DatabaseSettings {
    /// Checks it; reads the password file.
    ///
    /// # Errors
    /// [`SettingsError`] with all problems.
    pub fn new(raw: &RawDatabase) -> Result<Self, SettingsError> {
        let is_tls = raw.is_tls || raw.tls_ca_file.is_some();
        let store = RawStoreSettings {
            url: raw.url.clone(),
            password_file: raw.password_file.clone(),
            password_env: raw.password_env.clone(),
            tls: if is_tls { "required" } else { "disabled" }.to_owned(),
            tls_ca_file: raw.tls_ca_file.clone(),
            store_ms_max: CONNECT_MS_MAX,
            ..RawStoreSettings::default()
        };
        let postgres = postgres_settings(&store).map_err(|error| SettingsError {
            problems: error.problems.into_iter().map(of_option).collect(),
        })?;
        let config = &postgres.config;
        let name = config.get_dbname().unwrap_or_default();
        let place = format!("{}/{name}", postgres::address(config));
        Ok(Self { postgres, place })
    }

    /// Host, port and name.
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// What a setting of `[store]` is called on the command line.
fn of_option(problem: SettingsProblem) -> SettingsProblem {
    let setting = match problem.setting.strip_prefix("store.") {
        Some("url") | None => "--database".to_owned(),
        Some(option) => format!("--{}", option.replace('_', "-")),
    };
    SettingsProblem {
        setting,
        problem: problem.problem.replace("store.tls", "--tls"),
    }
}

/// Why a database did not do what it was asked.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// The server said no, or the connection failed.
    #[error("{}", told(.0))]
    Server(tokio_postgres::Error),
    /// There is no extension that can be assigned a worker id.
    #[error("extension keywright is not in the database, or is older: CREATE EXTENSION keywright")]
    NoExtension,
    /// Another program asks for the same database.
    #[error("another ask for this database is under way")]
    Busy,
    /// An answer that is none.
    #[error("the database answered {0}")]
    Answer(String),
}

impl From<tokio_postgres::Error> for DatabaseError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(code) if is_missing(code) => Self::NoExtension,
            Some(_) | None => Self::Server(error),
        }
    }
}

fn is_missing(code: &SqlState) -> bool {
    *code == SqlState::UNDEFINED_FUNCTION || *code == SqlState::INVALID_SCHEMA_NAME
}

/// Message, detail and hint of a server; of others the innermost cause.
fn told(error: &tokio_postgres::Error) -> String {
    let Some(server) = error.as_db_error() else {
        return innermost(error);
    };
    let mut told = server.message().to_owned();
    for more in [server.detail(), server.hint()].into_iter().flatten() {
        told = format!("{told}; {more}");
    }
    told
}

/// What a database says of its worker id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseStanding {
    pub(crate) worker_id: Option<u32>,
    pub(crate) mark: Option<Mark>,
    pub(crate) next: Option<Mark>,
    /// That mark was written since the server started last.
    pub(crate) is_same_life: bool,
    pub(crate) is_suspended: bool,
    /// It was given to this database, and not to the one that this was copied from.
    pub(crate) is_here: bool,
    pub(crate) layout: String,
    pub(crate) name: DatabaseName,
}

/// What a database says of a tag that may move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TagStanding {
    /// `native` or `fed`.
    pub(crate) source: String,
    /// The number of the last move.
    pub(crate) number: u32,
    /// The one before.
    pub(crate) before: u32,
    /// What `keywright.source` counts.
    pub(crate) setting: u32,
    /// The largest id that it may have issued, or was handed.
    pub(crate) above: u64,
    /// The mark of the key space that it was handed ids of.
    pub(crate) key_space: Option<u64>,
    /// The life of the server's memory.
    pub(crate) incarnation: String,
    pub(crate) system: String,
    pub(crate) database: u32,
}

impl TagStanding {
    pub(crate) fn is_fed(&self) -> bool {
        self.source == "fed"
    }
}

/// How far a database used a number that it gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsedUntil {
    pub(crate) bound_ms: Option<i64>,
    pub(crate) layout: Option<String>,
}

/// A connection that has the database's asks to itself until it ends.
#[derive(Debug)]
pub struct Database {
    client: Client,
    place: String,
}

impl Database {
    /// Connects, and waits until no other ask for this database is under way.
    ///
    /// # Errors
    /// [`DatabaseError`].
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self, DatabaseError> {
        let config = &settings.postgres.config;
        let client = match &settings.postgres.tls {
            Some(tls) => {
                let tls = MakeRustlsConnect::new(rustls::ClientConfig::clone(tls));
                let (client, connection) = config.connect(tls).await?;
                tokio::spawn(connection);
                client
            }
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                tokio::spawn(connection);
                client
            }
        };
        // What the role or the database says must not undo what is committed here.
        let set = format!(
            "SET synchronous_commit = on; SET default_transaction_read_only = off; SET client_min_messages = error; \
             SET statement_timeout = {STATEMENT_MS_MAX}; SET lock_timeout = {STATEMENT_MS_MAX}"
        );
        client.batch_execute(&set).await?;
        let database = Self {
            client,
            place: settings.place.clone(),
        };
        database.lock().await?;
        Ok(database)
    }

    /// Host, port and name.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The session has the lock, so whoever gets it knows that nothing of the one before is under way in the database.
    async fn lock(&self) -> Result<(), DatabaseError> {
        let until = Instant::now() + Duration::from_millis(ASK_WAIT_MS_MAX);
        let lock = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended('keywright worker assign', 0))";
        while !self
            .client
            .query_one(lock, &[])
            .await?
            .try_get::<_, bool>(0)?
        {
            if Instant::now() >= until {
                return Err(DatabaseError::Busy);
            }
            tokio::time::sleep(Duration::from_millis(ASK_WAIT_STEP_MS)).await;
        }
        Ok(())
    }

    pub(crate) async fn standing(&self) -> Result<DatabaseStanding, DatabaseError> {
        let select = "SELECT worker_id, mark, next_mark, same_life, suspended, here, layout, system, database FROM keywright.assignment()";
        let row = self.client.query_one(select, &[]).await?;
        let worker_id: Option<i32> = row.try_get("worker_id")?;
        let oid: i64 = row.try_get("database")?;
        Ok(DatabaseStanding {
            worker_id: worker_id.map(|id| number(id.into())).transpose()?,
            mark: mark(&row, "mark")?,
            next: mark(&row, "next_mark")?,
            is_same_life: row.try_get("same_life")?,
            is_suspended: row.try_get("suspended")?,
            is_here: row.try_get("here")?,
            layout: row.try_get("layout")?,
            name: DatabaseName {
                system: row.try_get("system")?,
                oid: number(oid)?,
                place: self.place.clone(),
            },
        })
    }

    /// Replaces a mark; `None`: begins with one.
    pub(crate) async fn mark(&self, old: Option<Mark>, new: Mark) -> Result<(), DatabaseError> {
        let (old, new) = (old.map(|mark| mark.to_string()), new.to_string());
        let call = "SELECT keywright.mark_assignment($1, $2)";
        self.client.execute(call, &[&old, &new]).await?;
        Ok(())
    }

    /// Gives the database its number: from here on it issues with it.
    pub(crate) async fn assign(
        &self,
        mark: Mark,
        worker_id: u32,
        range: IdRange,
        above_ms: Option<i64>,
        is_unused: bool,
    ) -> Result<(), DatabaseError> {
        let mark = mark.to_string();
        let [worker_id, first, last] = [worker_id, range.first, range.last]
            .map(|number| i32::try_from(number).unwrap_or(i32::MAX));
        let call = "SELECT keywright.assign_worker_id($1, $2, $3, $4, \
                    above => 'epoch'::timestamptz + $5::bigint * interval '1 ms', unused => $6)";
        let values: [&(dyn ToSql + Sync); 6] =
            [&mark, &worker_id, &first, &last, &above_ms, &is_unused];
        self.client.execute(call, &values).await?;
        Ok(())
    }

    /// Where a tag stands.
    pub(crate) async fn tag_move(&self, tag: &Tag) -> Result<TagStanding, DatabaseError> {
        let select = "SELECT source, number, before, setting, above, key_space, incarnation, system, database FROM keywright.tag_move($1)";
        let row = self.client.query_one(select, &[&tag.as_str()]).await?;
        let small = |name: &str| -> Result<u32, DatabaseError> {
            number(row.try_get::<_, i32>(name)?.into())
        };
        let large = |number: i64| {
            u64::try_from(number).map_err(|_| DatabaseError::Answer(number.to_string()))
        };
        let key_space: Option<i64> = row.try_get("key_space")?;
        Ok(TagStanding {
            source: row.try_get("source")?,
            number: small("number")?,
            before: small("before")?,
            setting: small("setting")?,
            above: large(row.try_get("above")?)?,
            key_space: key_space.map(large).transpose()?,
            incarnation: row.try_get("incarnation")?,
            system: row.try_get("system")?,
            database: number(row.try_get("database")?)?,
        })
    }

    /// A native tag issues no more ids of its own; the largest that it may have issued.
    pub(crate) async fn move_to_fed(&self, tag: &Tag, number: u32) -> Result<u64, DatabaseError> {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        let call = "SELECT keywright.move_to_fed($1, $2)";
        let row = self
            .client
            .query_one(call, &[&tag.as_str(), &number])
            .await?;
        let above: i64 = row.try_get(0)?;
        u64::try_from(above).map_err(|_| DatabaseError::Answer(above.to_string()))
    }

    /// The store has opened it above.
    pub(crate) async fn move_opened(
        &self,
        tag: &Tag,
        number: u32,
        key_space: &str,
    ) -> Result<(), DatabaseError> {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        let call = "SELECT keywright.move_opened($1, $2, $3)";
        let values: [&(dyn ToSql + Sync); 3] = [&tag.as_str(), &number, &key_space];
        self.client.execute(call, &values).await?;
        Ok(())
    }

    /// A fed tag issues ids of its own, from the first on that the store gave nobody, if the server's memory is still the heir's.
    pub(crate) async fn move_to_native(
        &self,
        tag: &Tag,
        standing: &TagStanding,
        key_space: &str,
        first: u64,
    ) -> Result<(), DatabaseError> {
        let number = i32::try_from(standing.setting).unwrap_or(i32::MAX);
        let above = i64::try_from(first.saturating_sub(1)).unwrap_or(i64::MAX);
        let call = "SELECT keywright.move_to_native($1, $2, $3, $4, $5)";
        let values: [&(dyn ToSql + Sync); 5] = [
            &tag.as_str(),
            &number,
            &standing.incarnation,
            &key_space,
            &above,
        ];
        self.client.execute(call, &values).await?;
        Ok(())
    }

    /// The database issues no more ids with its number.
    pub(crate) async fn suspend(&self, mark: Mark) -> Result<(), DatabaseError> {
        let call = "SELECT keywright.suspend_assignment($1)";
        self.client.execute(call, &[&mark.to_string()]).await?;
        Ok(())
    }

    /// Gives the number up; may be repeated. The second time says so only when the standbys that the server demands have it, too.
    pub(crate) async fn release(
        &self,
        mark: Mark,
        worker_id: u32,
    ) -> Result<UsedUntil, DatabaseError> {
        let worker_id = i32::try_from(worker_id).unwrap_or(i32::MAX);
        let call = "SELECT bound_ms, layout FROM keywright.release_assignment($1, $2)";
        let values: [&(dyn ToSql + Sync); 2] = [&mark.to_string(), &worker_id];
        let row = self.client.query_one(call, &values).await?;
        Ok(UsedUntil {
            bound_ms: row.try_get("bound_ms")?,
            layout: row.try_get("layout")?,
        })
    }
}

fn mark(row: &Row, name: &str) -> Result<Option<Mark>, DatabaseError> {
    let text: Option<String> = row.try_get(name)?;
    text.map(|text| Mark::parse(&text).ok_or_else(|| DatabaseError::Answer(format!("{text:?}"))))
        .transpose()
}

fn number(number: i64) -> Result<u32, DatabaseError> {
    u32::try_from(number).map_err(|_| DatabaseError::Answer(number.to_string()))
}
