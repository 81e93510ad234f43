//! Servers, settings and the log of every id.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use keywright_core::{KeyBatch, Step, Tag};
use keywright_store::{
    KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings, Source, StoreSettings, TagOptions,
};
use keywright_testkit::etcd::EtcdCluster;
use keywright_testkit::{Flavour, PgServer, Result, Upstream};
use postgres::SimpleQueryMessage;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::etcd_rows::in_etcd;
use crate::put_back::{postgres_up_s, until_known};

/// What a store runs on.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    MariaDb,
    MySql,
    Postgres,
    Etcd,
    File,
}

impl Engine {
    pub const ALL: [Engine; 5] = [
        Engine::MariaDb,
        Engine::MySql,
        Engine::Postgres,
        Engine::Etcd,
        Engine::File,
    ];
}

/// Each of these tests on MariaDB, on PostgreSQL, in etcd and in a file. Functions of an [`Engine`].
macro_rules! on_engines {
    ($($name:ident),* $(,)?) => {
        mod mariadb {
            $(#[test] fn $name() -> keywright_testkit::Result<()> { super::$name($crate::common::Engine::MariaDb) })*
        }
        mod postgres {
            $(#[test] fn $name() -> keywright_testkit::Result<()> { super::$name($crate::common::Engine::Postgres) })*
        }
        mod etcd {
            $(#[test] fn $name() -> keywright_testkit::Result<()> { super::$name($crate::common::Engine::Etcd) })*
        }
        mod file {
            $(#[test] fn $name() -> keywright_testkit::Result<()> { super::$name($crate::common::Engine::File) })*
        }
    };
}
pub(crate) use on_engines;

/// A store of a test's own.
pub struct Schema {
    at: At,
    pub name: String,
}

enum At {
    /// On the server that tests share.
    Server(Arc<Upstream>),
    Postgres(Arc<PgServer>),
    Etcd(Arc<EtcdCluster>),
    File(TempDir),
}

/// The PostgreSQL server that tests share.
static POSTGRES: Mutex<Weak<PgServer>> = Mutex::new(Weak::new());

fn postgres() -> Result<Arc<PgServer>> {
    // Under the lock on purpose: the others want the same.
    let mut shared = POSTGRES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Ok(server);
    }
    let server = Arc::new(PgServer::builder().preload(false).start()?);
    until_known(|| postgres_up_s(&server))?;
    *shared = Arc::downgrade(&server);
    Ok(server)
}

/// The cluster that tests share: of one member.
static ETCD: Mutex<Weak<EtcdCluster>> = Mutex::new(Weak::new());

fn etcd() -> Result<Arc<EtcdCluster>> {
    let mut shared = ETCD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cluster) = shared.upgrade() {
        return Ok(cluster);
    }
    let cluster = Arc::new(EtcdCluster::start(1)?);
    *shared = Arc::downgrade(&cluster);
    Ok(cluster)
}

impl Schema {
    pub fn new(name: &str) -> Result<Schema> {
        Schema::on(Flavour::MariaDb, name)
    }

    pub fn of(engine: Engine, name: &str) -> Result<Schema> {
        match engine {
            Engine::MariaDb => Schema::on(Flavour::MariaDb, name),
            Engine::MySql => Schema::on(Flavour::MySql, name),
            Engine::Postgres => {
                let server = postgres()?;
                let create = format!("CREATE DATABASE {name}");
                server.client("postgres")?.batch_execute(&create)?;
                Ok(Schema {
                    at: At::Postgres(server),
                    name: name.to_owned(),
                })
            }
            Engine::Etcd => Ok(Schema {
                at: At::Etcd(etcd()?),
                name: name.to_owned(),
            }),
            Engine::File => Ok(Schema {
                at: At::File(keywright_testkit::scratch_dir()?),
                name: name.to_owned(),
            }),
        }
    }

    /// The file of a store that is one.
    pub fn file(&self) -> PathBuf {
        match &self.at {
            At::Server(_) | At::Postgres(_) | At::Etcd(_) => panic!("the store is on a server"),
            At::File(dir) => dir.path().join("store.db"),
        }
    }

    /// A moment as unix milliseconds.
    pub fn unix_ms(&self, moment: &str) -> String {
        match &self.at {
            At::Server(_) => format!("CAST(UNIX_TIMESTAMP({moment}) * 1000 AS UNSIGNED)"),
            At::Postgres(_) | At::Etcd(_) | At::File(_) => moment.to_owned(),
        }
    }

    /// A moment, as it stands in the tables.
    pub fn long_ago(&self) -> &'static str {
        match &self.at {
            At::Server(_) => "'2000-01-01'",
            At::Postgres(_) | At::Etcd(_) | At::File(_) => "0",
        }
    }

    pub fn on(flavour: Flavour, name: &str) -> Result<Schema> {
        let server = Upstream::shared(flavour)?;
        server.run("", &format!("CREATE DATABASE {name}"))?;
        until_known(|| server.up_s())?;
        Ok(Schema {
            at: At::Server(server),
            name: name.to_owned(),
        })
    }

    /// The rows of what statements select.
    pub fn sql(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        match &self.at {
            At::Server(server) => server.run(&self.name, sql),
            At::Postgres(server) => in_postgres(server, &self.name, sql),
            At::Etcd(cluster) => in_etcd(cluster, &format!("/{}/", self.name), sql),
            At::File(_) => in_file(&self.file(), sql),
        }
    }

    /// Has the store lose all tags; in etcd all that it has.
    pub fn remove_tags(&self) -> Result<()> {
        match &self.at {
            At::Server(_) | At::Postgres(_) | At::File(_) => {
                self.sql("DELETE FROM keywright_segment")?;
            }
            At::Etcd(cluster) => {
                cluster.ctl(&["del", "--prefix", &format!("/{}/", self.name)])?;
            }
        }
        Ok(())
    }

    /// The first column of the first row.
    pub fn number(&self, sql: &str) -> Result<u64> {
        let rows = self.sql(sql)?;
        let cell = rows.first().and_then(|row| row.first());
        Ok(cell.context("no row")?.parse()?)
    }

    pub fn port(&self) -> u16 {
        match &self.at {
            At::Server(server) => server.port(),
            At::Postgres(server) => server.port(),
            At::Etcd(cluster) => cluster.port(0),
            At::File(_) => panic!("a file has no port"),
        }
    }

    /// The same store by another port.
    pub fn through(&self, port: u16) -> RawStoreSettings {
        let (raw, there) = (self.raw(), self.port().to_string());
        let url = raw.url.replace(&there, &port.to_string());
        RawStoreSettings { url, ..raw }
    }

    pub fn raw(&self) -> RawStoreSettings {
        match &self.at {
            At::Server(server) => raw(server.port(), &self.name),
            At::Postgres(server) => raw_postgres(server, &self.name),
            At::Etcd(cluster) => raw_etcd(&cluster.hosts(), &self.name),
            At::File(_) => raw_file(&self.file()),
        }
    }
}

/// The rows of what statements select.
fn in_file(file: &Path, sql: &str) -> Result<Vec<Vec<String>>> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    rows_of(&connection, sql)
}

/// The same of an open one.
pub fn rows_of(connection: &Connection, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut found = Vec::new();
    for sql in sql.split(';').filter(|sql| !sql.trim().is_empty()) {
        let mut statement = connection.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|at| {
                Ok(match row.get(at)? {
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Text(text) => text,
                    other => format!("{other:?}"),
                })
            });
            found.push(cells.collect::<rusqlite::Result<_>>()?);
        }
    }
    Ok(found)
}

/// The rows of what statements select, as text. Its client has a runtime of its own, which cannot be within another one.
pub fn in_postgres(server: &PgServer, database: &str, sql: &str) -> Result<Vec<Vec<String>>> {
    let ask = || -> Result<Vec<Vec<String>>> {
        let mut client = server.client(database)?;
        let mut found = Vec::new();
        for message in client.simple_query(sql)? {
            if let SimpleQueryMessage::Row(row) = message {
                let cell = |at| row.get(at).unwrap_or("NULL").to_owned();
                found.push((0..row.len()).map(cell).collect());
            }
        }
        Ok(found)
    };
    thread::scope(|scope| scope.spawn(ask).join()).expect("the asking thread panicked")
}

/// Settings for a database.
pub fn raw_postgres(server: &PgServer, database: &str) -> RawStoreSettings {
    RawStoreSettings {
        url: server.url(database),
        ..raw(0, "")
    }
}

/// Settings for a prefix in etcd.
pub fn raw_etcd(hosts: &str, prefix: &str) -> RawStoreSettings {
    RawStoreSettings {
        url: format!("etcd://{hosts}/{prefix}"),
        ..raw(0, "")
    }
}

/// Settings for a file, wherever that is.
pub fn raw_file(file: &Path) -> RawStoreSettings {
    RawStoreSettings {
        url: format!("file:{}", file.display()),
        any_file_system: true,
        ..raw(0, "")
    }
}

/// A server of a test's own, to be killed, with an empty schema `keywright`. It keeps what it has committed, which others
/// in tests do not.
pub fn own_server() -> Result<Upstream> {
    let options = ["--innodb-flush-log-at-trx-commit=1"];
    let server = Upstream::start_with(Flavour::MariaDb, &options)?;
    server.run("", "CREATE DATABASE keywright")?;
    until_known(|| server.up_s())?;
    Ok(server)
}

/// Settings for a port, with pauses short enough for tests.
pub fn raw(port: u16, schema: &str) -> RawStoreSettings {
    RawStoreSettings {
        url: format!("mysql://root@127.0.0.1:{port}/{schema}"),
        // Long, for machines that do much else.
        wait_ms_max: 60_000,
        store_ms_max: 10_000,
        backoff_ms_max: 100,
        ..RawStoreSettings::default()
    }
}

pub fn open(raw: &RawStoreSettings) -> Result<Keys> {
    open_with(raw, &RawSnowflakeSettings::default())
}

pub fn open_with(raw: &RawStoreSettings, snowflake: &RawSnowflakeSettings) -> Result<Keys> {
    Ok(Keys::open(StoreSettings::new(raw, snowflake)?)?)
}

/// The runtime of those who take; the store has one of its own.
pub fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()?)
}

pub fn tag(text: &str) -> Tag {
    Tag::parse(text).unwrap()
}

pub fn segment(text: &str) -> KeySpec {
    KeySpec::Segment(tag(text))
}

/// A small step, so that there are many refills.
pub fn small_steps(step: i64) -> TagOptions {
    let step = Step::new(step).unwrap();
    TagOptions {
        step_max: step,
        ..TagOptions::with_step(step)
    }
}

/// Every id that was issued, and by whom.
#[derive(Debug, Default, Clone)]
pub struct IssuedLog(Arc<Mutex<HashMap<u64, String>>>);

impl IssuedLog {
    pub fn add(&self, by: &str, id: u64) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = ids.insert(id, by.to_owned()) {
            panic!("id {id} was issued to {before} and to {by}");
        }
    }

    pub fn add_all(&self, by: &str, keys: &KeyBatch) {
        for index in 0..keys.len() {
            self.add(by, keys.number(index).unwrap());
        }
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn contains(&self, id: u64) -> bool {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.contains_key(&id)
    }

    pub fn max(&self) -> u64 {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.keys().copied().max().unwrap_or(0)
    }

    pub fn min(&self) -> u64 {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.keys().copied().min().unwrap_or(0)
    }
}

/// Takes `rounds` times, 1 to 40 keys at a time, and logs them.
pub async fn take_many(source: Source, log: IssuedLog, by: String, rounds: u64) {
    for round in 0..rounds {
        let count = 1 + (round * 7) % 40;
        let keys = match source.try_take(count, true) {
            Ok(keys) => keys,
            Err(_) => source.take(count, true).await.unwrap(),
        };
        assert_eq!(keys.len(), count);
        log.add_all(&by, &keys);
    }
}

/// The same of several issuers at once, so often each.
pub async fn take_by_each(
    issuers: &[Keys],
    spec: &KeySpec,
    log: &IssuedLog,
    rounds: u64,
) -> Result<()> {
    let mut tasks = Vec::new();
    for (n, keys) in issuers.iter().enumerate() {
        let (source, by) = (keys.source(spec)?, format!("issuer {n}"));
        tasks.push(tokio::spawn(take_many(source, log.clone(), by, rounds)));
    }
    for task in tasks {
        task.await?;
    }
    Ok(())
}

/// Polls until a condition holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    until_polled(Duration::from_millis(10), what, condition).await;
}

/// As [`until`], with this pause between two looks: INNODB_TRX says nothing new to who reads it ten times a second.
pub async fn until_polled(pause: Duration, what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while Instant::now() < deadline {
        if condition() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
    panic!("waited in vain for {what}");
}
