//! MySQL and MariaDB.
//!
//! Who the server is, is read in each transaction that may write: a proxy in between may lead to another one each time.

pub(crate) mod identity;
pub(super) mod replication;
mod statements;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

use super::error::StoreError;
use super::facts::ServerFacts;

pub(super) use statements::{change, rows, rows_together};

pub(super) async fn connect(opts: Opts) -> Result<(Conn, ServerFacts), StoreError> {
    let mut conn = Conn::new(opts).await?;
    let server = identity::server_facts(&mut conn).await?;
    Ok((conn, server))
}

/// Begins a transaction that may write; which server it is on.
pub(super) async fn begin(conn: &mut Conn) -> Result<ServerFacts, StoreError> {
    identity::of_rows(&statements::begin(conn, &identity::query()).await?)
}

pub(super) async fn answers(conn: &mut Conn) -> bool {
    conn.ping().await.is_ok()
}
