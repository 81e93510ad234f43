//! MySQL and MariaDB.

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

pub(super) async fn answers(conn: &mut Conn) -> bool {
    conn.ping().await.is_ok()
}
