//! Which server a transaction is on, so that a promoted standby, a restored backup or another database is recognised.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::statements;
use crate::engine::error::StoreError;
use crate::engine::facts::ServerFacts;
use crate::engine::value::column;

/// The system is made by initdb, and its copies have it, too. A promotion and a restore to a moment begin a new timeline; the one of WAL that
/// is being written is right at once, the control file's is old for minutes. A copy of the database has another number. On a standby this is
/// an error.
pub(super) const IDENTITY: &str = "SELECT 'system=' || system_identifier \
     || ' timeline=' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) \
     || ' database=' || (SELECT oid FROM pg_database WHERE datname = current_database()) AS identity \
     FROM pg_control_system()";

/// The identity out of the answer to a text that ends with the query for it.
pub(super) fn of_answer(answer: &[SimpleQueryMessage]) -> Result<String, StoreError> {
    let rows = answer.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get("identity").ok().flatten(),
        _ => None,
    });
    let identity = rows.last().ok_or_else(|| nothing("identity"))?;
    Ok(identity.to_owned())
}

/// A query without a row.
fn nothing(column: &str) -> StoreError {
    StoreError::Column {
        column: column.to_owned(),
        value: "nothing".to_owned(),
    }
}

/// Settings that are read, and whether it is a standby.
const FACTS: &str = "SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages, \
                     pg_is_in_recovery() AS standby";

/// Those that commits wait for.
const STANDBYS: &str = "SELECT current_setting('synchronous_standby_names') AS standbys";

/// A commit waits for synchronous standbys if there are to be any.
pub(super) async fn may_lose(client: &Client) -> Result<Option<String>, StoreError> {
    let rows = statements::rows(client, STANDBYS, Vec::new()).await?;
    let row = rows.first().ok_or_else(|| nothing("standbys"))?;
    let names: String = column(row, "standbys")?;
    Ok(names.trim().is_empty().then(|| {
        "synchronous_standby_names is empty: a standby that is promoted may lack what was committed"
            .to_owned()
    }))
}

pub(super) async fn server_facts(client: &Client) -> Result<ServerFacts, StoreError> {
    let facts = statements::rows(client, FACTS, Vec::new()).await?;
    let facts = facts.first().ok_or_else(|| nothing("fsync"))?;
    let mut weaknesses = Vec::new();
    if column::<String>(facts, "fsync")? != "on" {
        weaknesses.push("fsync is off: a power failure may undo a reservation".to_owned());
    }
    if column::<String>(facts, "pages")? != "on" {
        weaknesses
            .push("full_page_writes is off: a power failure may damage a reservation".to_owned());
    }
    let is_standby = column::<i64>(facts, "standby")? != 0;
    if is_standby {
        weaknesses.push("the server is a standby: nothing can be reserved on it".to_owned());
    }
    let identity = match is_standby {
        true => String::new(),
        false => of_answer(&client.simple_query(IDENTITY).await?)?,
    };
    Ok(ServerFacts {
        identity,
        weaknesses,
        is_in_group: false,
    })
}
