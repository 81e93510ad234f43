//! What a store runs on: conversations in SQL, one engine beside the other.
//!
//! Everything that is asked of a store is written once (`store/`), in SQL of which `Words` spells the few parts that engines have in ways of
//! their own. An engine connects, says who it is, carries statements out, and knows when a COMMIT is known to have succeeded.

pub(crate) mod error;
pub(crate) mod etcd;
pub(crate) mod facts;
pub(crate) mod file;
pub(crate) mod innermost;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod privileges;
pub(crate) mod redis;
mod sqlite;
pub(crate) mod value;
pub(crate) mod words;

use std::sync::Arc;

use mysql_async::{Conn, Opts};

use error::StoreError;
use etcd::{EtcdEngine, EtcdError, EtcdLink, EtcdSettings};
use facts::ServerFacts;
use file::{FileEngine, FileError, FileLink, FileSettings};
use postgres::{PostgresLink, PostgresSettings};
use redis::error::RedisError;
use redis::{RedisLink, RedisSettings};
use value::{Row, Value};
use words::Words;

/// Where a store is.
#[derive(Debug, Clone)]
pub(crate) enum EngineSettings {
    /// A MySQL or MariaDB server.
    MySql(Opts),
    /// A PostgreSQL server.
    Postgres(Box<PostgresSettings>),
    /// A cluster of etcd.
    Etcd(Box<EtcdSettings>),
    /// A file of this machine.
    File(FileSettings),
    /// A key port of another program, or a Redis: it gives ranges and keeps nothing else.
    Redis(Box<RedisSettings>),
}

/// An engine, to which connections are made. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Engine {
    MySql(Opts),
    Postgres(Box<PostgresSettings>),
    Etcd(Box<EtcdEngine>),
    File(FileEngine),
    Redis(Box<RedisSettings>),
}

impl EngineSettings {
    pub(crate) fn words(&self) -> Words {
        match self {
            Self::MySql(_) => Words::MySql,
            Self::Postgres(_) => Words::Postgres,
            // What gives ranges only is asked for nothing in SQL.
            Self::Etcd(_) | Self::File(_) | Self::Redis(_) => Words::Sqlite,
        }
    }
}

impl Engine {
    /// A lock that somebody else has on a file is waited for as long as a transaction may last.
    pub(crate) fn new(settings: &EngineSettings, store_ms_max: u64) -> Self {
        match settings {
            EngineSettings::MySql(opts) => Self::MySql(opts.clone()),
            EngineSettings::Postgres(settings) => Self::Postgres(settings.clone()),
            EngineSettings::Etcd(settings) => {
                Self::Etcd(Box::new(EtcdEngine::new(EtcdSettings::clone(settings))))
            }
            EngineSettings::File(settings) => {
                Self::File(FileEngine::new(settings.clone(), store_ms_max))
            }
            EngineSettings::Redis(settings) => Self::Redis(settings.clone()),
        }
    }

    pub(crate) fn words(&self) -> Words {
        match self {
            Self::MySql(_) => Words::MySql,
            Self::Postgres(_) => Words::Postgres,
            // What gives ranges only is asked for nothing in SQL.
            Self::Etcd(_) | Self::File(_) | Self::Redis(_) => Words::Sqlite,
        }
    }

    /// The largest id of which the next number can be kept, too.
    pub(crate) fn id_max(&self) -> u64 {
        match self {
            Self::MySql(_) => i64::MAX.cast_unsigned(),
            Self::Postgres(_) | Self::Etcd(_) | Self::File(_) | Self::Redis(_) => {
                i64::MAX.cast_unsigned() - 1
            }
        }
    }

    /// The error of a transaction that has taken so long.
    pub(crate) fn late(&self, ms: u64) -> StoreError {
        match self {
            Self::MySql(_) | Self::Postgres(_) => StoreError::TimedOut { ms },
            Self::Etcd(_) => EtcdError::Overdue { ms }.into(),
            Self::File(_) => FileError::Late { ms }.into(),
            Self::Redis(_) => RedisError::Overdue { ms }.into(),
        }
    }

    /// Conversations at the same time: a file is written by one at a time, and what is written to etcd at the same time is done again.
    pub(crate) fn connections_max(&self, configured: usize) -> usize {
        match self {
            Self::MySql(_) | Self::Postgres(_) | Self::Redis(_) => configured,
            Self::Etcd(_) | Self::File(_) => 1,
        }
    }
}

/// A connection, and whom it leads to.
#[derive(Debug)]
pub(crate) struct Link {
    conversation: Conversation,
    pub(crate) server: Arc<ServerFacts>,
}

#[derive(Debug)]
enum Conversation {
    MySql(Box<Conn>),
    Postgres(Box<PostgresLink>),
    Etcd(Box<EtcdLink>),
    File(FileLink),
    Redis(Box<RedisLink>),
}

impl Link {
    pub(crate) async fn connect(to: &Engine) -> Result<Self, StoreError> {
        let (conversation, server) = match to {
            Engine::MySql(opts) => {
                let (conn, server) = mysql::connect(opts.clone()).await?;
                (Conversation::MySql(Box::new(conn)), server)
            }
            Engine::Postgres(settings) => {
                let (link, server) = PostgresLink::connect(settings).await?;
                (Conversation::Postgres(Box::new(link)), server)
            }
            Engine::Etcd(engine) => {
                let (link, server) = engine.connect().await?;
                (Conversation::Etcd(Box::new(link)), server)
            }
            Engine::File(engine) => {
                let (link, server) = engine.connect().await?;
                (Conversation::File(link), server)
            }
            Engine::Redis(settings) => {
                let (link, server) = RedisLink::connect(settings).await?;
                (Conversation::Redis(Box::new(link)), server)
            }
        };
        Ok(Self {
            conversation,
            server: Arc::new(server),
        })
    }

    /// The same to a store that somebody says was restored: from the first commit on it is another one, where engines can tell.
    pub(crate) async fn connect_to_restored(to: &Engine) -> Result<Self, StoreError> {
        let Engine::Etcd(engine) = to else {
            return Self::connect(to).await;
        };
        let (link, server) = engine.connect_to_restored().await?;
        Ok(Self {
            conversation: Conversation::Etcd(Box::new(link)),
            server: Arc::new(server),
        })
    }

    pub(crate) fn words(&self) -> Words {
        match &self.conversation {
            Conversation::MySql(_) => Words::MySql,
            Conversation::Postgres(_) => Words::Postgres,
            Conversation::Etcd(_) | Conversation::File(_) | Conversation::Redis(_) => Words::Sqlite,
        }
    }

    /// What it is where ranges are all that can be had.
    pub(crate) fn ranges(&mut self) -> Option<&mut RedisLink> {
        match &mut self.conversation {
            Conversation::Redis(link) => Some(link),
            Conversation::MySql(_)
            | Conversation::Postgres(_)
            | Conversation::Etcd(_)
            | Conversation::File(_) => None,
        }
    }

    /// Whether it leads to a file of this machine.
    pub(crate) fn is_file(&self) -> bool {
        match &self.conversation {
            Conversation::File(_) => true,
            Conversation::MySql(_)
            | Conversation::Postgres(_)
            | Conversation::Etcd(_)
            | Conversation::Redis(_) => false,
        }
    }

    /// Whether there is a clock of its own; where there is none, statements go by those of the programs.
    pub(crate) fn has_clock(&self) -> bool {
        match &self.conversation {
            Conversation::MySql(_) | Conversation::Postgres(_) | Conversation::File(_) => true,
            Conversation::Etcd(_) | Conversation::Redis(_) => false,
        }
    }

    /// Whether it still answers.
    pub(crate) async fn answers(&mut self) -> bool {
        match &mut self.conversation {
            Conversation::MySql(conn) => mysql::answers(conn).await,
            Conversation::Postgres(link) => link.answers().await,
            Conversation::Etcd(link) => link.answers().await,
            Conversation::File(link) => link.answers().await,
            Conversation::Redis(link) => link.answers().await,
        }
    }

    /// Begins a transaction; what it reads and locks, nobody else changes. Whom it leads to is known for certain from here on.
    pub(crate) async fn begin(&mut self) -> Result<(), StoreError> {
        let identity = match &mut self.conversation {
            Conversation::MySql(conn) => {
                let server = mysql::begin(conn).await?;
                if server != *self.server {
                    self.server = Arc::new(server);
                }
                return Ok(());
            }
            Conversation::Postgres(link) => link.begin().await?,
            Conversation::Etcd(link) => link.begin().await?,
            Conversation::File(link) => {
                link.begin().await?;
                return Ok(());
            }
            Conversation::Redis(_) => return Err(RedisError::RangesOnly.into()),
        };
        if identity != self.server.identity {
            Arc::make_mut(&mut self.server).identity = identity;
        }
        Ok(())
    }

    /// The same of one that only reads: in a file it holds up nobody who writes, and waits for nobody.
    pub(crate) async fn begin_to_read(&mut self) -> Result<(), StoreError> {
        match &mut self.conversation {
            Conversation::File(link) => link.change("BEGIN", Vec::new()).await.map(|_| ()),
            Conversation::MySql(_)
            | Conversation::Postgres(_)
            | Conversation::Etcd(_)
            | Conversation::Redis(_) => self.begin().await,
        }
    }

    /// What each of these queries finds, all of it as of one moment.
    pub(crate) async fn rows_together<const COUNT: usize>(
        &mut self,
        queries: [String; COUNT],
    ) -> Result<[Vec<Row>; COUNT], StoreError> {
        let mut found = [const { Vec::new() }; COUNT];
        match &mut self.conversation {
            Conversation::MySql(conn) => mysql::rows_together(conn, &queries, &mut found).await?,
            Conversation::Postgres(link) => link.rows_together(&queries, &mut found).await?,
            Conversation::Etcd(link) => link.rows_together(&queries, &mut found).await?,
            Conversation::File(link) => {
                link.change("BEGIN", Vec::new()).await?;
                for (query, rows) in queries.iter().zip(&mut found) {
                    *rows = link.rows(query, Vec::new()).await?;
                }
                link.change("COMMIT", Vec::new()).await?;
            }
            Conversation::Redis(_) => return Err(RedisError::RangesOnly.into()),
        }
        Ok(found)
    }

    /// Ends the transaction; on an error it is not known how. Nothing that it reserved may be used before this has returned.
    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        match &mut self.conversation {
            Conversation::MySql(conn) => mysql::change(conn, "COMMIT", Vec::new()).await.map(drop),
            Conversation::Postgres(link) => link.commit().await,
            Conversation::Etcd(link) => Ok(link.commit().await?),
            Conversation::File(link) => link.commit().await,
            Conversation::Redis(_) => Err(RedisError::RangesOnly.into()),
        }
    }

    pub(crate) async fn rollback(&mut self) -> Result<(), StoreError> {
        match &mut self.conversation {
            Conversation::Postgres(link) => link.rollback().await,
            Conversation::Etcd(link) => Ok(link.rollback()?),
            Conversation::MySql(_) | Conversation::File(_) => {
                self.change("ROLLBACK", Vec::new()).await.map(drop)
            }
            Conversation::Redis(_) => Err(RedisError::RangesOnly.into()),
        }
    }

    /// One of both.
    pub(crate) async fn end(&mut self, is_kept: bool) -> Result<(), StoreError> {
        match is_kept {
            true => self.commit().await,
            false => self.rollback().await,
        }
    }

    /// Carries a statement out; how many rows it changed.
    pub(crate) async fn change(
        &mut self,
        sql: impl AsRef<str>,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        match &mut self.conversation {
            Conversation::MySql(conn) => mysql::change(conn, sql.as_ref(), values).await,
            Conversation::Postgres(link) => link.change(sql.as_ref(), values).await,
            Conversation::Etcd(link) => Ok(link.change(sql.as_ref(), values).await?),
            Conversation::File(link) => link.change(sql.as_ref(), values).await,
            Conversation::Redis(_) => Err(RedisError::RangesOnly.into()),
        }
    }

    /// The same in a transaction of its own, and on this server only; nothing: it is another one, and nothing was done.
    pub(crate) async fn change_on(
        &mut self,
        server: &str,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Option<u64>, StoreError> {
        // Of others, behind a pooler, or restored, it is known of a transaction.
        if self.is_file() {
            return match self.server.identity == server {
                true => self.change(sql, values).await.map(Some),
                false => Ok(None),
            };
        }
        self.begin().await?;
        if self.server.identity != server {
            self.rollback().await?;
            return Ok(None);
        }
        let changed = self.change(sql, values).await?;
        self.end(changed > 0).await?;
        Ok(Some(changed))
    }

    /// Why what it acknowledges, and has acknowledged last, may be lost when another server takes its place, or by a power failure; nothing: it is not.
    pub(crate) async fn may_lose(&mut self) -> Result<Option<String>, StoreError> {
        let weakness = self.server.weaknesses.first().cloned();
        match (&mut self.conversation, weakness) {
            (Conversation::MySql(_) | Conversation::Postgres(_), Some(weakness)) => {
                Ok(Some(weakness))
            }
            (Conversation::MySql(conn), None) => mysql::replication::may_lose(conn).await,
            (Conversation::Postgres(link), None) => link.may_lose().await,
            // A majority has it.
            (Conversation::Etcd(_), _) => Ok(None),
            // No other takes its place; and of a doubtful file system its owner has vouched that it keeps what it synced.
            (Conversation::File(_), _) => Ok(None),
            (Conversation::Redis(_), _) => Err(RedisError::RangesOnly.into()),
        }
    }

    /// Changes exactly one row.
    pub(crate) async fn change_one(
        &mut self,
        sql: impl AsRef<str>,
        values: Vec<Value>,
    ) -> Result<(), StoreError> {
        match self.change(sql, values).await? {
            1 => Ok(()),
            _ => Err(StoreError::NotLocked),
        }
    }

    pub(crate) async fn rows(
        &mut self,
        sql: impl AsRef<str>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, StoreError> {
        match &mut self.conversation {
            Conversation::MySql(conn) => mysql::rows(conn, sql.as_ref(), values).await,
            Conversation::Postgres(link) => link.rows(sql.as_ref(), values).await,
            Conversation::Etcd(link) => Ok(link.rows(sql.as_ref(), values).await?),
            Conversation::File(link) => link.rows(sql.as_ref(), values).await,
            Conversation::Redis(_) => Err(RedisError::RangesOnly.into()),
        }
    }

    /// The first row.
    pub(crate) async fn first(
        &mut self,
        sql: impl AsRef<str>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_answer_is_no_server() -> Result<(), &'static str> {
        let settings = FileSettings {
            path: "/store.db".into(),
            any_file_system: false,
        };
        let engine = Engine::new(&EngineSettings::File(settings), 2_000);
        let late = engine.late(2_000);
        assert_eq!(late.to_string(), "no answer within 2000 ms");
        let hint = late.hint().ok_or("no hint")?;
        assert!(hint.contains("disk") && !hint.contains("server"), "{hint}");
        Ok(())
    }

    /// Nothing there holds a lock of a row, so there is no session to end.
    #[test]
    fn etcd_and_a_key_port_that_do_not_answer_have_no_sessions_to_end() -> Result<(), &'static str>
    {
        let etcd = EngineSettings::Etcd(Box::new(EtcdSettings {
            members: vec!["127.0.0.1:1".to_owned()],
            prefix: "/keywright/".to_owned(),
            user: None,
            tls: None,
            member_ms_max: 1_000,
        }));
        let etcd = Engine::new(&etcd, 2_000).late(2_000);
        let port = StoreError::from(RedisError::Overdue { ms: 2_000 });
        for late in [etcd, port] {
            assert_eq!(late.to_string(), "no answer within 2000 ms");
            assert!(!late.is_answer() && !late.is_refusal(), "{late}");
            let hint = late.hint().ok_or("no hint")?;
            assert!(hint.contains("url of [store]"), "{hint}");
            assert!(
                !hint.contains("lock") && !hint.contains("session"),
                "{hint}"
            );
        }
        Ok(())
    }
}
