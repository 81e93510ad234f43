//! PostgreSQL, from 14 on: a plain server, a managed one, or behind a pooler.
//!
//! Every change is in an explicit transaction, which sets for itself what durability needs: the account, the database or a pooler may have set
//! other things for the session. Statements are not prepared by name, for poolers do not keep names. Who the server is, is read in the
//! transaction that is to write: a pooler, or a name with several addresses, may lead to another one each time.

mod commit;
mod identity;
mod statements;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::StoreError;
use super::facts::ServerFacts;
use super::value::{Row, Value};

/// How a server is reached.
#[derive(Debug, Clone)]
pub(crate) struct PostgresSettings {
    pub(crate) config: Config,
    /// Used where the mode of `config` says so.
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// How long a transaction may wait for a lock.
    pub(crate) lock_ms_max: u64,
    /// How long nothing may be said in a transaction, before the server undoes it.
    pub(crate) idle_ms_max: u64,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct PostgresLink {
    client: Client,
    /// Warnings that the server has sent so far.
    warnings: Arc<AtomicU64>,
    in_transaction: bool,
    begin: String,
    /// Dropped with it.
    _open: oneshot::Sender<()>,
}

impl PostgresLink {
    pub(crate) async fn connect(to: &PostgresSettings) -> Result<(Self, ServerFacts), StoreError> {
        let warnings = Arc::new(AtomicU64::new(0));
        let (open, closed) = oneshot::channel();
        let client = match &to.tls {
            Some(tls) => {
                let tls = MakeRustlsConnect::new(rustls::ClientConfig::clone(tls));
                let (client, connection) = to.config.connect(tls).await?;
                let watched = commit::watch(connection, Arc::clone(&warnings));
                tokio::spawn(until_closed(watched, closed, to.idle_ms_max));
                client
            }
            None => {
                let (client, connection) = to.config.connect(NoTls).await?;
                let watched = commit::watch(connection, Arc::clone(&warnings));
                tokio::spawn(until_closed(watched, closed, to.idle_ms_max));
                client
            }
        };
        let facts = identity::server_facts(&client).await?;
        let link = Self {
            client,
            warnings,
            in_transaction: false,
            begin: begin(to),
            _open: open,
        };
        Ok((link, facts))
    }

    pub(super) async fn answers(&self) -> bool {
        self.client.simple_query("").await.is_ok()
    }

    /// Begins a transaction that may write; which server it is on.
    pub(super) async fn begin(&mut self) -> Result<String, StoreError> {
        self.in_transaction = true;
        let text = format!("{}; {}", self.begin, identity::IDENTITY);
        identity::of_answer(&self.client.simple_query(&text).await?)
    }

    pub(super) async fn commit(&mut self) -> Result<(), StoreError> {
        commit::commit(&self.client, &self.warnings).await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Nothing, where there is no transaction: the server would warn. A change that had none has ended its own.
    pub(super) async fn rollback(&mut self) -> Result<(), StoreError> {
        if !self.in_transaction {
            return Ok(());
        }
        self.client.simple_query("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// In a transaction of its own, where there is none.
    pub(super) async fn change(
        &mut self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<u64, StoreError> {
        if self.in_transaction {
            return statements::change(&self.client, sql, values).await;
        }
        self.client.simple_query(&self.begin).await?;
        let changed = statements::change(&self.client, sql, values).await;
        match changed {
            Ok(_) => commit::commit(&self.client, &self.warnings).await?,
            Err(_) => drop(self.client.simple_query("ROLLBACK").await?),
        }
        changed
    }

    /// Why a commit that was acknowledged may be missing where another server takes this one's place.
    pub(super) async fn may_lose(&self) -> Result<Option<String>, StoreError> {
        identity::may_lose(&self.client).await
    }

    pub(crate) async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        statements::rows(&self.client, sql, values).await
    }

    /// Of queries without values, as of one moment.
    pub(super) async fn rows_together(
        &mut self,
        queries: &[String],
        found: &mut [Vec<Row>],
    ) -> Result<(), StoreError> {
        // Left open by whatever fails in it.
        self.in_transaction = true;
        statements::rows_together(&self.client, queries, found).await?;
        self.in_transaction = false;
        Ok(())
    }
}

/// A connection that is given up ends in order, and is cut off where the server does not answer.
async fn until_closed(
    watched: impl Future<Output = ()>,
    closed: oneshot::Receiver<()>,
    grace_ms: u64,
) {
    tokio::select! {
        () = watched => {}
        () = async {
            // An error is the sender's end.
            let _ = closed.await;
            sleep(Duration::from_millis(grace_ms)).await;
        } => {}
    }
}

/// Rows are locked as they are read, so each statement may see what was committed last. A commit is on the disk of this server, and on those of
/// its synchronous standbys, before it is acknowledged.
fn begin(to: &PostgresSettings) -> String {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = on; \
         SET LOCAL client_min_messages = warning; SET LOCAL lock_timeout = {}; \
         SET LOCAL idle_in_transaction_session_timeout = {}",
        to.lock_ms_max, to.idle_ms_max
    )
}

/// Where it is, without user and password.
pub(crate) fn address(config: &Config) -> String {
    const PORT: u16 = 5_432;
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| {
        let port = match ports {
            [] => PORT,
            [one] => *one,
            [_, _, ..] => ports.get(at).copied().unwrap_or(PORT),
        };
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(dir) => format!("unix:{}:{port}", dir.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    hosts.join(",")
}

/// A connection without TLS that nobody asked for must not be. Of several hosts each has its share of the time, so that one that does not answer
/// leaves some for the next.
pub(crate) fn set(config: &mut Config, is_tls: bool, store_ms_max: u64) {
    let hosts = u64::try_from(config.get_hosts().len()).unwrap_or(u64::MAX);
    let connect_ms = store_ms_max.checked_div(hosts).unwrap_or(store_ms_max);
    let mode = match is_tls {
        true => SslMode::Require,
        false => SslMode::Disable,
    };
    config
        .ssl_mode(mode)
        .application_name("keywright")
        .connect_timeout(Duration::from_millis(connect_ms));
}
