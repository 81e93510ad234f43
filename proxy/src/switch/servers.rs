//! The servers behind the listeners, and the tables on them that an attempt is about.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use keywright_session::Rules;
use keywright_store::server_identity;
use keywright_store::switch::{Recorded, RuleName};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use crate::config::{Config, Configured, Listener};
use crate::tables::{self, Column};

/// A server, by a connection of the proxy's own.
pub(super) struct Server {
    pub(super) conn: Conn,
    /// Which one it is.
    pub(super) identity: String,
}

/// A configured rule, as the store names it.
pub fn name_of(configured: &Configured) -> RuleName {
    let table = &configured.rule.table;
    RuleName {
        tables: format!("{}.{}", table.schema(), table.table()),
        column: configured.rule.column.clone(),
    }
}

/// All servers, each once.
pub(super) async fn connect(config: &Config) -> Result<Vec<Server>> {
    let mut servers = Vec::new();
    for listener in &config.listeners {
        add(&mut servers, connect_by(config, listener).await?);
    }
    Ok(servers)
}

/// Those of them that can be reached.
pub(super) async fn connect_to_some(config: &Config) -> Vec<Server> {
    let mut servers = Vec::new();
    for listener in &config.listeners {
        match connect_by(config, listener).await {
            Ok(server) => add(&mut servers, server),
            Err(error) => {
                tracing::debug!(listener = listener.bind, "cannot be reached: {error:#}");
            }
        }
    }
    servers
}

fn add(servers: &mut Vec<Server>, new: Server) {
    if !servers.iter().any(|server| server.identity == new.identity) {
        servers.push(new);
    }
}

async fn connect_by(config: &Config, listener: &Listener) -> Result<Server> {
    let admin = listener.admin.as_deref();
    let admin = admin.with_context(|| format!("{}: there is no admin url", listener.bind))?;
    let mut conn = tables::connect(config, admin).await?;
    let identity = identity(&mut conn).await?;
    Ok(Server { conn, identity })
}

pub(super) async fn identity(conn: &mut Conn) -> Result<String> {
    server_identity(conn)
        .await
        .map_err(|failure| anyhow::anyhow!("{failure}"))
}

/// The tables of these rules; the first rule that matches a table is the table's.
pub(super) async fn tables_of(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
) -> Result<Vec<(RuleName, Column)>> {
    let lower_case = tables::lower_case(&mut server.conn).await?;
    let rules = config.rules.iter().map(|its| its.rule.clone()).collect();
    let columns = tables::key_columns(&mut server.conn, &Rules::new(rules, lower_case)).await?;
    let mut found = Vec::new();
    for column in columns {
        let Some(name) = config.rules.get(column.rule).map(name_of) else {
            continue;
        };
        if !names.contains(&name) || !column.auto_increment {
            continue;
        }
        if !column.engine.eq_ignore_ascii_case("InnoDB") {
            bail!(
                "{} is {}, and the fence needs InnoDB",
                column.quoted_table(),
                column.engine
            );
        }
        found.push((name, column));
    }
    Ok(found)
}

/// What was recorded of one server, with the columns as they are.
pub(super) async fn recorded_on(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
    recorded: &[Recorded],
) -> Result<Vec<(Recorded, RuleName, Column)>> {
    let mut tables = tables_of(server, config, names).await?;
    let mut found = Vec::new();
    for its in recorded.iter().filter(|its| its.server == server.identity) {
        let is_it = |(_, column): &(RuleName, Column)| {
            column.schema == its.schema && column.table == its.table
        };
        // One that is not there any more has no fence.
        if let Some(at) = tables.iter().position(is_it) {
            let (name, column) = tables.swap_remove(at);
            found.push((its.clone(), name, column));
        }
    }
    Ok(found)
}

/// The first id above all rows of a table.
pub(super) async fn above_rows(conn: &mut Conn, column: &Column) -> Result<u64> {
    let (table, name) = (column.quoted_table(), column.quoted_name());
    let select =
        format!("SELECT CAST(GREATEST(COALESCE(MAX({name}), 0), 0) AS UNSIGNED) FROM {table}");
    let row: Option<Row> = conn.query_first(select).await?;
    let highest = row.and_then(|row| row.get::<Option<u64>, usize>(0).flatten());
    Ok(highest.unwrap_or(0).saturating_add(1))
}
