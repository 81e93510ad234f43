//! A connection to a key port or a Redis, and which of both it is.

use std::collections::HashMap;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, Value};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::error::RedisError;
use super::{Host, RedisSettings};
use crate::engine::facts::ServerFacts;

/// Which servers speak this protocol and may be a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// A program of Keywright.
    KeyPort,
    /// A Redis, or a Valkey, by itself.
    Plain,
}

/// What is said of a Redis where somebody looks.
const WEAKNESS: &str = "it is a plain Redis: each of its restarts, and each failover, suspends all tags until keywright advance says how far ids were given";

/// A connection that one transaction has to itself.
pub(crate) struct RedisLink {
    connection: MultiplexedConnection,
    pub(crate) kind: ServerKind,
    /// Whom it leads to.
    pub(crate) host: String,
}

impl std::fmt::Debug for RedisLink {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RedisLink")
            .field("kind", &self.kind)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl RedisLink {
    /// To the first host that can be used.
    pub(crate) async fn connect(
        settings: &RedisSettings,
    ) -> Result<(Self, ServerFacts), RedisError> {
        let mut failed = None;
        for host in &settings.hosts {
            let ms = settings.host_ms_max;
            let connecting = Self::connect_to(host, settings);
            let late = || RedisError::Late {
                host: host.to_string(),
                ms,
            };
            match timeout(Duration::from_millis(ms), connecting).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) => failed = worse(failed, error),
                Err(_) => failed = worse(failed, late()),
            }
        }
        Err(failed.unwrap_or(RedisError::Unfit("there is no host".to_owned())))
    }

    async fn connect_to(
        host: &Host,
        settings: &RedisSettings,
    ) -> Result<(Self, ServerFacts), RedisError> {
        let name = host.to_string();
        let unreachable = |error: &dyn std::fmt::Display| RedisError::Unreachable {
            host: name.clone(),
            what: error.to_string(),
        };
        let stream = TcpStream::connect((host.name.as_str(), host.port)).await;
        let stream = stream.map_err(|error| unreachable(&error))?;
        stream
            .set_nodelay(true)
            .map_err(|error| unreachable(&error))?;
        let login = login(settings);
        let limit = AsyncConnectionConfig::new()
            .set_response_timeout(Some(Duration::from_millis(settings.host_ms_max)));
        let connection = match &settings.tls {
            Some(tls) => {
                let server = ServerName::try_from(host.name.clone());
                let server = server.map_err(|error| unreachable(&error))?;
                let connector = TlsConnector::from(std::sync::Arc::clone(tls));
                let stream = connector.connect(server, stream).await;
                let stream = stream.map_err(|error| unreachable(&format!("TLS: {error}")))?;
                let made = MultiplexedConnection::new_with_config(&login, stream, limit).await;
                let (connection, driver) = made.map_err(|error| RedisError::of(&name, &error))?;
                tokio::spawn(driver);
                connection
            }
            None => {
                let made = MultiplexedConnection::new_with_config(&login, stream, limit).await;
                let (connection, driver) = made.map_err(|error| RedisError::of(&name, &error))?;
                tokio::spawn(driver);
                connection
            }
        };
        let mut link = Self {
            connection,
            kind: ServerKind::KeyPort,
            host: name,
        };
        let facts = link.learn_kind(settings).await?;
        Ok((link, facts))
    }

    /// Asks what the server is. What is not clear is refused.
    async fn learn_kind(&mut self, settings: &RedisSettings) -> Result<ServerFacts, RedisError> {
        let said = map(self.ask(&redis::cmd("HELLO")).await?)?;
        let word = |key: &str| said.get(key).and_then(text).unwrap_or_default();
        let server = word("server");
        self.kind = match server.as_str() {
            "keywright" => ServerKind::KeyPort,
            "redis" | "valkey" => ServerKind::Plain,
            other => {
                let other = other.get(..64).unwrap_or(other);
                let what = format!(
                    "{} says that it is \"{other}\", which is neither a key port nor a Redis",
                    self.host
                );
                return Err(RedisError::Unfit(what));
            }
        };
        let identity = format!("{server} {}", self.host);
        let weaknesses = match self.kind {
            ServerKind::KeyPort => Vec::new(),
            ServerKind::Plain => {
                self.may_be_plain(settings, &word("mode"))?;
                vec![WEAKNESS.to_owned()]
            }
        };
        Ok(ServerFacts {
            identity,
            weaknesses,
            is_in_group: false,
        })
    }

    fn may_be_plain(&self, settings: &RedisSettings, mode: &str) -> Result<(), RedisError> {
        let host = &self.host;
        let refused = |what: String| Err(RedisError::Unfit(what));
        if settings.hosts.len() > 1 {
            return refused(format!(
                "{host} is a Redis and no key port, and url of [store] names several hosts: two of them would count each by itself"
            ));
        }
        if !settings.accept_loss_on_failover {
            return refused(format!(
                "{host} is a Redis and no key port, and a Redis loses what it has acknowledged when another one takes its place: say \
                 accept_loss_on_failover = true in [store], if that is meant"
            ));
        }
        if mode != "standalone" {
            return refused(format!(
                "{host} is a Redis in mode \"{mode}\": a store is one Redis, standalone"
            ));
        }
        Ok(())
    }

    /// Whether it still answers.
    pub(crate) async fn answers(&mut self) -> bool {
        self.ask(&redis::cmd("PING")).await.is_ok()
    }

    /// Sends a command, and waits for its answer.
    pub(super) async fn ask(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        let answer = self.connection.send_packed_command(command).await;
        let answer = answer.map_err(|error| RedisError::of(&self.host, &error))?;
        checked(answer)
    }

    /// Sends several, and waits for the answers to all: the first error among them is one of all.
    pub(super) async fn ask_all(
        &mut self,
        commands: &mut Pipeline,
    ) -> Result<Vec<Value>, RedisError> {
        let answers: Result<Value, _> = commands
            .ignore_errors()
            .query_async(&mut self.connection)
            .await;
        match answers.map_err(|error| RedisError::of(&self.host, &error))? {
            Value::Array(answers) => answers.into_iter().map(checked).collect(),
            // A transaction of which a watched key was written meanwhile.
            Value::Nil => Err(RedisError::Changed),
            other => Err(unlike(&other)),
        }
    }
}

/// Who refuses says more than who is away.
fn worse(before: Option<RedisError>, error: RedisError) -> Option<RedisError> {
    match before {
        Some(before) if before.is_answer() => Some(before),
        Some(_) | None => Some(error),
    }
}

fn login(settings: &RedisSettings) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default()
        .set_db(i64::from(settings.database))
        .set_lib_name("keywright", env!("CARGO_PKG_VERSION"));
    if let Some(user) = &settings.user {
        login = login.set_username(user);
    }
    if let Some(password) = &settings.password {
        login = login.set_password(password);
    }
    login
}

/// An answer that is no error.
fn checked(answer: Value) -> Result<Value, RedisError> {
    match answer {
        Value::ServerError(error) => Err(RedisError::of_server(&error)),
        other => Ok(other),
    }
}

/// Keys and their values: a map, or an array of both.
pub(super) fn map(answer: Value) -> Result<HashMap<String, Value>, RedisError> {
    let pairs: Vec<(Value, Value)> = match answer {
        Value::Map(pairs) => pairs,
        Value::Array(values) => {
            let mut pairs = Vec::new();
            let mut values = values.into_iter();
            while let (Some(key), Some(value)) = (values.next(), values.next()) {
                pairs.push((key, value));
            }
            pairs
        }
        other => return Err(unlike(&other)),
    };
    let pairs = pairs.into_iter();
    Ok(pairs
        .filter_map(|(key, value)| Some((text(&key)?, value)))
        .collect())
}

/// Bytes or a line, as text; nothing where it is neither.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(line) => Some(line.clone()),
        Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::Okay => Some("OK".to_owned()),
        _ => None,
    }
}

/// A number, also one in bytes.
pub(super) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => text(other)?.parse().ok(),
    }
}

/// What cannot be made sense of.
pub(super) fn unlike(value: &Value) -> RedisError {
    let shown: String = format!("{value:?}").chars().take(200).collect();
    RedisError::Answer(shown)
}
