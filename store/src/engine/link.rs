//! A connection to a store, and what is asked of it, on whatever engine.

use std::sync::Arc;

use mysql_async::Conn;

use super::error::StoreError;
use super::etcd::EtcdLink;
use super::facts::ServerFacts;
use super::file::FileLink;
use super::postgres::PostgresLink;
use super::redis::RedisLink;
use super::redis::error::RedisError;
use super::value::{Row, Value};
use super::words::Words;
use super::{Engine, mysql};

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
