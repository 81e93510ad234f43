//! What a store runs on: conversations in SQL, one engine beside the other.
//!
//! Everything that is asked of a store is written once (`store/`), in SQL of which `Words` spells the few parts that engines have in ways of
//! their own. An engine connects, says who it is, carries statements out, and knows when a COMMIT is known to have succeeded.

pub(crate) mod error;
pub(crate) mod etcd;
pub(crate) mod facts;
pub(crate) mod file;
pub(crate) mod innermost;
mod link;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod privileges;
pub(crate) mod redis;
mod sqlite;
pub(crate) mod value;
pub(crate) mod words;

use mysql_async::Opts;

pub(crate) use link::Link;

use error::StoreError;
use etcd::{EtcdEngine, EtcdError, EtcdSettings};
use file::{FileEngine, FileError, FileSettings};
use postgres::PostgresSettings;
use redis::RedisSettings;
use redis::error::RedisError;
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
