//! etcd, from 3.4 on: the rows of the store's tables are keys below a prefix.
//!
//! What the store says in SQL is carried out in memory, on a copy of the rows ([`copy`]) as of one revision, which a linearizable read brings up to
//! date when a transaction begins. A transaction that changed rows writes them in one transaction of etcd, which succeeds only if nothing below the prefix has
//! changed since that read; otherwise it is done again from its beginning. So transactions are as good as one after another, and nobody
//! holds a lock that a stopped program would leave behind.
//!
//! With each of them etcd notes who it is and how far it has come ([`position`]): another cluster, or one that has gone back, was restored from a
//! backup, and nothing is asked of it until somebody says how much it may have lost. etcd has no clock: moments are by
//! the latest of the programs' clocks ([`clock`]), and no bound depends on a comparison of clocks.

mod alarms;
mod clock;
mod commit;
mod copy;
mod error;
mod gone_back;
mod position;
mod row_key;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_client::{Client, ConnectOptions, GetOptions, KvClient, MaintenanceClient, TlsOptions};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

pub(crate) use error::EtcdError;

use super::StoreError;
use super::facts::ServerFacts;
use super::value::{Row, Value};
use crate::clock::{Clock, SystemClock};
use clock::StoreClock;
use copy::RowsCopy;
use position::{Position, Record, Seen};

/// An answer of etcd at most, bytes: a store with some hundred thousand rows.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The pause before a transaction is done again at most, milliseconds; it begins with 1, and doubles.
const AGAIN_PAUSE_MS_MAX: u64 = 64;

/// How a cluster is reached.
#[derive(Clone)]
pub(crate) struct EtcdSettings {
    /// `host:port` of members, in the order in which they are tried.
    pub(crate) members: Vec<String>,
    /// Begins and ends with a slash.
    pub(crate) prefix: String,
    /// With the password.
    pub(crate) user: Option<(String, String)>,
    pub(crate) tls: Option<TlsOptions>,
    /// How long one member may take to answer when a connection is made, milliseconds.
    pub(crate) member_ms_max: u64,
}

/// Without the password.
impl fmt::Debug for EtcdSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EtcdSettings")
            .field("members", &self.members)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// A store in a cluster, not connected yet.
#[derive(Debug, Clone)]
pub(crate) struct EtcdEngine {
    settings: EtcdSettings,
    seen: Arc<Seen>,
    clock: Arc<StoreClock>,
}

/// A connection to one member, and a copy of the store's rows.
pub(crate) struct EtcdLink {
    client: KvClient,
    maintenance: MaintenanceClient,
    prefix: String,
    seen: Arc<Seen>,
    clock: Arc<StoreClock>,
    /// What it was when the copy was brought up to date, unix milliseconds.
    moment_ms: i64,
    copy: RowsCopy,
    /// As of when the copy is.
    position: Position,
    /// Who the store is, and the revision that wrote it.
    record: Option<(Record, i64)>,
    /// Who the store is to be from the next commit on, because it was restored.
    next_id: Option<Uuid>,
    in_transaction: bool,
}

impl fmt::Debug for EtcdLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EtcdLink")
            .field("prefix", &self.prefix)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl EtcdEngine {
    pub(super) fn new(settings: EtcdSettings) -> Self {
        Self {
            settings,
            seen: Arc::default(),
            clock: Arc::default(),
        }
    }

    /// Other logins to the same store.
    pub(crate) fn connect_by(&mut self, settings: &EtcdSettings) {
        self.settings.clone_from(settings);
    }

    pub(super) async fn connect(&self) -> Result<(EtcdLink, ServerFacts), EtcdError> {
        let mut link = self.member().await?;
        link.refresh().await?;
        let weaknesses = alarms::told(&mut link.maintenance).await;
        let (record, _) = link.record.as_ref().ok_or(EtcdError::Empty)?;
        let facts = ServerFacts {
            identity: record.identity(),
            weaknesses,
            is_in_group: false,
        };
        Ok((link, facts))
    }

    /// The same where the store may have been restored: the first commit makes it another one, of this cluster.
    pub(super) async fn connect_to_restored(&self) -> Result<(EtcdLink, ServerFacts), EtcdError> {
        let mut link = self.member().await?;
        let id = Uuid::new_v4();
        link.next_id = Some(id);
        link.refresh().await?;
        let facts = ServerFacts {
            identity: Record::new(id, &link.position, link.moment_ms).identity(),
            weaknesses: Vec::new(),
            is_in_group: false,
        };
        Ok((link, facts))
    }

    /// Makes the store, if there is none; whether there was none.
    pub(crate) async fn create(&self) -> Result<bool, EtcdError> {
        let mut link = self.member().await?;
        match link.refresh().await {
            Err(EtcdError::Empty) => {}
            result => return result.map(|()| false),
        }
        let record = Record::new(Uuid::new_v4(), &link.position, link.moment_ms);
        commit::create(&mut link.client, &link.prefix, &record).await
    }

    /// The first member that answers: one that is cut off from the others does not.
    async fn member(&self) -> Result<EtcdLink, EtcdError> {
        let limit = Duration::from_millis(self.settings.member_ms_max);
        let mut last = EtcdError::Empty;
        for member in &self.settings.members {
            match timeout(limit, self.link_to(member)).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) if error.is_answer() => return Err(error),
                Ok(Err(error)) => last = error,
                Err(_) => {
                    last = EtcdError::Late {
                        member: member.clone(),
                        ms: self.settings.member_ms_max,
                    };
                }
            }
        }
        Err(last)
    }

    async fn link_to(&self, member: &str) -> Result<EtcdLink, EtcdError> {
        let EtcdSettings { user, tls, .. } = &self.settings;
        let limit = Duration::from_millis(self.settings.member_ms_max);
        let mut options = ConnectOptions::new()
            .with_connect_timeout(limit)
            .with_require_leader(true);
        if let Some((name, password)) = user {
            options = options.with_user(name, password);
        }
        let scheme = match tls {
            Some(tls) => {
                options = options.with_tls(tls.clone());
                "https"
            }
            None => "http",
        };
        let client = Client::connect([format!("{scheme}://{member}")], Some(options)).await?;
        let maintenance = client.maintenance_client();
        let mut client = client.kv_client();
        client = client.max_decoding_message_size(ANSWER_BYTES_MAX);
        let prefix = self.settings.prefix.clone();
        // Whether it can be asked at all.
        let count = GetOptions::new().with_prefix().with_count_only();
        let answer = client.get(prefix.clone(), Some(count)).await?;
        let mut position = Position::of(answer.header())?;
        position.revision = 0;
        Ok(EtcdLink {
            client,
            maintenance,
            prefix,
            seen: Arc::clone(&self.seen),
            clock: Arc::clone(&self.clock),
            moment_ms: 0,
            copy: RowsCopy::new()?,
            position,
            record: None,
            next_id: None,
            in_transaction: false,
        })
    }
}

impl EtcdLink {
    pub(super) async fn answers(&mut self) -> bool {
        self.refresh().await.is_ok()
    }

    /// Begins a transaction; which store it is on, for that may have been made anew.
    pub(super) async fn begin(&mut self) -> Result<String, EtcdError> {
        self.refresh().await?;
        self.copy.begin()?;
        self.in_transaction = true;
        let (record, _) = self.record.as_ref().ok_or(EtcdError::Empty)?;
        Ok(match self.next_id {
            Some(id) => Record::new(id, &self.position, self.moment_ms).identity(),
            None => record.identity(),
        })
    }

    pub(super) async fn commit(&mut self) -> Result<(), EtcdError> {
        self.in_transaction = false;
        let changes = self.copy.changes()?;
        if changes.is_empty() && self.next_id.is_none() {
            return self.copy.commit(changes);
        }
        let (record, written_at) = self.record.as_ref().ok_or(EtcdError::Empty)?;
        let record = match self.next_id {
            Some(id) => Record::new(id, &self.position, self.moment_ms),
            None => record.written_at(&self.position, self.moment_ms),
        };
        let guard = commit::Guard {
            prefix: &self.prefix,
            record_revision: *written_at,
            revision: self.position.revision,
        };
        let outcome = commit::write(&mut self.client, &guard, &record, &changes).await?;
        let Some(position) = outcome else {
            self.copy.rollback()?;
            return Err(EtcdError::Changed);
        };
        self.copy.commit(changes)?;
        self.next_id = None;
        self.seen.note(&record, &position);
        self.record = Some((record, position.revision));
        self.position = position;
        Ok(())
    }

    pub(super) fn rollback(&mut self) -> Result<(), EtcdError> {
        self.in_transaction = false;
        self.copy.rollback()
    }

    /// In a transaction of its own, where there is none.
    pub(super) async fn change(&mut self, sql: &str, values: Vec<Value>) -> Result<u64, EtcdError> {
        if self.in_transaction {
            return Ok(self.copy.ask(sql, values)?.changed);
        }
        let mut pauses = AgainPauses::default();
        loop {
            self.begin().await?;
            let changed = match self.copy.ask(sql, values.clone()) {
                Ok(answer) => answer.changed,
                Err(error) => {
                    self.rollback()?;
                    return Err(error);
                }
            };
            match self.commit().await {
                Err(EtcdError::Changed) => pauses.wait().await,
                result => return result.map(|()| changed),
            }
        }
    }

    pub(super) async fn rows(
        &mut self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, EtcdError> {
        if !self.in_transaction {
            self.refresh().await?;
        }
        Ok(self.copy.ask(sql, values)?.rows)
    }

    /// Of queries without values, as of one moment.
    pub(super) async fn rows_together(
        &mut self,
        queries: &[String],
        found: &mut [Vec<Row>],
    ) -> Result<(), EtcdError> {
        self.refresh().await?;
        for (query, rows) in queries.iter().zip(found) {
            *rows = self.copy.ask(query, Vec::new())?.rows;
        }
        Ok(())
    }

    /// Brings the copy up to date: what was written since, and all of it anew where something was removed.
    async fn refresh(&mut self) -> Result<(), EtcdError> {
        let read = self.read_all().await;
        if let Some((record, _)) = &self.record {
            self.clock.read(record.moment_ms, Instant::now());
        }
        let own_ms = SystemClock.wall_ms();
        self.moment_ms = self.clock.now_ms(own_ms, Instant::now());
        self.copy.set_clock(self.moment_ms);
        read
    }

    async fn read_all(&mut self) -> Result<(), EtcdError> {
        if self.read_changes().await? {
            return Ok(());
        }
        self.copy.clear()?;
        self.position.revision = 0;
        self.record = None;
        match self.read_changes().await? {
            true => Ok(()),
            false => Err(EtcdError::Damaged(
                "keys below the prefix are counted otherwise than they are read".to_owned(),
            )),
        }
    }

    /// Whether the copy has as many rows now as the store.
    async fn read_changes(&mut self) -> Result<bool, EtcdError> {
        let before = self.seen.highest();
        let options = GetOptions::new()
            .with_prefix()
            .with_min_mod_revision(self.position.revision.saturating_add(1));
        let mut answer = self.client.get(self.prefix.clone(), Some(options)).await?;
        let position = Position::of(answer.header())?;
        let count = answer.count();
        let mut rows = answer.take_kvs();
        let record_key = format!("{}{}", self.prefix, position::RECORD_KEY);
        let record = rows
            .iter()
            .position(|its| its.key() == record_key.as_bytes());
        if let Some(at) = record {
            let found = rows.swap_remove(at);
            self.record = Some((Record::parse(found.value())?, found.mod_revision()));
        }
        let Some((record, _)) = &self.record else {
            return match count {
                0 => Err(EtcdError::Empty),
                _ => Err(EtcdError::Foreign),
            };
        };
        if self.next_id.is_none() {
            if let Err(error) = self.seen.check(&before, record, &position) {
                commit::tell(&mut self.client, &self.prefix, &self.seen).await;
                return Err(error);
            }
            self.seen.note(record, &position);
        }
        for found in rows {
            let key = found.key().strip_prefix(self.prefix.as_bytes());
            let key = str::from_utf8(key.unwrap_or_default()).unwrap_or_default();
            self.copy.put(key, found.value())?;
        }
        self.copy.settle()?;
        self.position = position;
        Ok(u64::try_from(count).ok() == Some(self.copy.count().saturating_add(1)))
    }
}

/// Pauses before a transaction is done again, which others have come before: longer each time, and none like another.
#[derive(Debug, Default)]
pub(crate) struct AgainPauses {
    times: u32,
}

impl AgainPauses {
    pub(crate) async fn wait(&mut self) {
        let most_ms = 1_u64
            .checked_shl(self.times)
            .unwrap_or(u64::MAX)
            .min(AGAIN_PAUSE_MS_MAX);
        self.times = self.times.saturating_add(1);
        let (random, _) = Uuid::new_v4().as_u64_pair();
        let most_us = most_ms.saturating_mul(1_000);
        sleep(Duration::from_micros(random % most_us)).await;
    }
}

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> Self {
        Self::Etcd(error)
    }
}
