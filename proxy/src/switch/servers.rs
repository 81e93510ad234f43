//! The servers behind the listeners, and the tables on them that an attempt is about.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use anyhow::{Result, bail};
use keywright_store::server_identity;
use keywright_store::switch::{Recorded, RuleName};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use tokio::time::{Instant, timeout_at};

use crate::config::{Config, Configured, Listener};
use crate::schema::{self, Extent, KeyColumn, quoted};

/// How long a lock is waited for, seconds.
const LOCK_WAIT_S_MAX: u32 = 1;

/// No such schema, no such table.
const GONE: [u16; 2] = [1049, 1146];
/// How long a program may be silent that has locked a table, seconds.
const SILENT_S_MAX: u32 = 30;

/// A server, by a connection of the proxy's own.
pub(super) struct Server {
    pub(super) conn: Conn,
    /// Which one it is.
    pub(super) identity: String,
    /// The listeners that lead to it, by their place.
    pub(super) listeners: Vec<usize>,
}

/// A configured rule, as the store names it.
pub fn name_of(configured: &Configured) -> RuleName {
    let table = &configured.rule.table;
    RuleName {
        tables: format!("{}.{}", table.schema(), table.table()),
        column: configured.rule.column.clone(),
    }
}

/// The rules that follow the switch. What the store says of a rule is nothing to one of the same name that does not: somebody has given its
/// tables keys of another kind, or of another store, which no program switches.
pub(super) fn switched(config: &Config) -> BTreeSet<RuleName> {
    let rules = config.rules.iter().filter(|rule| rule.is_switched);
    rules.map(name_of).collect()
}

/// All servers, each once.
pub(super) async fn connect(config: &Config) -> Result<Vec<Server>> {
    let mut servers = Vec::new();
    for (at, listener) in config.listeners.iter().enumerate() {
        let server = connect_by(config, listener, at).await?;
        add(&mut servers, server).await?;
    }
    Ok(servers)
}

/// Those of them that can be reached within so many milliseconds altogether.
pub(super) async fn connect_to_some(config: &Config, wait_ms_max: u64) -> Vec<Server> {
    let end = Instant::now() + Duration::from_millis(wait_ms_max);
    let mut servers = Vec::new();
    for (at, listener) in config.listeners.iter().enumerate() {
        let connected = timeout_at(end, connect_by(config, listener, at)).await;
        let late = || Err(anyhow::anyhow!("it does not answer"));
        match connected.unwrap_or_else(|_| late()) {
            Ok(server) => {
                if let Err(error) = add(&mut servers, server).await {
                    tracing::warn!(listener = listener.bind, "{error:#}");
                }
            }
            Err(error) => {
                tracing::debug!(listener = listener.bind, "cannot be reached: {error:#}");
            }
        }
    }
    servers
}

/// The identities of those that can be reached soon.
pub async fn identities(config: &Config) -> BTreeSet<String> {
    let servers = connect_to_some(config, config.switch_wait_ms_max).await;
    servers.into_iter().map(|server| server.identity).collect()
}

/// Each once. Clones of one machine have one identity, and are two all the same.
async fn add(servers: &mut Vec<Server>, mut new: Server) -> Result<()> {
    let Some(known) = servers
        .iter_mut()
        .find(|known| known.identity == new.identity)
    else {
        servers.push(new);
        return Ok(());
    };
    // A name that nobody else takes.
    let lock = format!("keywright {:x}", RandomState::new().build_hasher().finish());
    let _: Option<i64> = known
        .conn
        .exec_first("SELECT GET_LOCK(?, 0)", (&lock,))
        .await?;
    let holder: Option<Option<u64>> = new
        .conn
        .exec_first("SELECT IS_USED_LOCK(?)", (&lock,))
        .await?;
    if holder.flatten() != Some(u64::from(known.conn.id())) {
        bail!(
            "two servers have the same identity, {}: give one another server_id, or another host name",
            new.identity
        );
    }
    known.listeners.append(&mut new.listeners);
    Ok(())
}

async fn connect_by(config: &Config, listener: &Listener, at: usize) -> Result<Server> {
    if listener.admin.is_none() {
        bail!("{}: there is no admin url", listener.bind);
    }
    let mut conn = schema::connect(config, listener).await?;
    // Nothing asks for a lock for long, or keeps one: who does keeps others waiting.
    conn.query_drop(format!(
        "SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}, wait_timeout = {SILENT_S_MAX}"
    ))
    .await?;
    let identity = identity(&mut conn).await?;
    Ok(Server {
        conn,
        identity,
        listeners: vec![at],
    })
}

/// Has a connection of its own to the same server, in place of one that is not used again.
pub(super) async fn connect_again(server: &mut Server, config: &Config) -> Result<()> {
    let at = server.listeners.first().copied().unwrap_or_default();
    let Some(listener) = config.listeners.get(at) else {
        bail!("no listener leads to {}", server.identity);
    };
    let again = connect_by(config, listener, at).await?;
    if again.identity != server.identity {
        bail!("a server is another one now");
    }
    server.conn = again.conn;
    Ok(())
}

pub(super) async fn identity(conn: &mut Conn) -> Result<String> {
    server_identity(conn)
        .await
        .map_err(|failure| anyhow::anyhow!("{failure}"))
}

/// The key columns of those of these rules that follow the switch; the first rule that matches a table is the table's.
pub(super) async fn columns_of(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
) -> Result<Vec<(RuleName, KeyColumn)>> {
    let snapshot = schema::inspect(&mut server.conn, config, Extent::Tables).await?;
    Ok(switched_among(
        schema::key_columns(&snapshot, config),
        config,
        names,
    ))
}

/// Those of the columns whose rules follow the switch and are among these. It goes by the rule of each table: another of the same name may have
/// left the switch, and gives its tables keys by itself.
fn switched_among(
    columns: Vec<KeyColumn>,
    config: &Config,
    names: &BTreeSet<RuleName>,
) -> Vec<(RuleName, KeyColumn)> {
    let named = columns.into_iter().filter_map(|column| {
        let rule = config.rules.get(column.rule)?;
        rule.is_switched.then(|| (name_of(rule), column))
    });
    named.filter(|(name, _)| names.contains(name)).collect()
}

/// Whether the tables of a rule get the fence.
pub(super) fn wants_fence(config: &Config, name: &RuleName) -> bool {
    let mut rules = config.rules.iter();
    rules.any(|rule| name_of(rule) == *name && rule.fence)
}

/// The tables of these rules that the server counts for.
pub(super) async fn tables_of(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
) -> Result<Vec<(RuleName, KeyColumn)>> {
    let mut found = columns_of(server, config, names).await?;
    found.retain(|(_, column)| column.auto_increment);
    Ok(found)
}

/// Why a table that is to get keys cannot have the fence that its rule wants, and what puts that right, for people. What goes back needs none.
pub(super) fn unfenceable(config: &Config, name: &RuleName, column: &KeyColumn) -> Option<String> {
    let is_unfenceable = wants_fence(config, name) && !column.can_have_fence();
    is_unfenceable.then(|| {
        format!(
            "{} {}: {}, or write fence = false in the table's rule",
            column.quoted_table(),
            column.why_unfenceable(),
            column.makes_fenceable()
        )
    })
}

/// Why these tables cannot get keys, for people: they have no room for any, or can have no fence.
pub(super) async fn unfit(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
) -> Result<Vec<String>> {
    let tables = tables_of(server, config, names).await?;
    let narrow = tables.iter().filter_map(|(_, column)| {
        let lack = column.lacks_room(config.rules.get(column.rule)?)?;
        let (table, name) = (column.quoted_table(), column.quoted_name());
        Some(format!(
            "{table}.{name} {lack}, or let a rule of its own observe it, before this one"
        ))
    });
    let unfenceable = tables
        .iter()
        .filter_map(|(name, column)| unfenceable(config, name, column));
    Ok(narrow.chain(unfenceable).collect())
}

/// What was recorded of one server, with the columns as they are.
pub(super) async fn recorded_on(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
    recorded: &[Recorded],
) -> Result<Vec<(Recorded, RuleName, KeyColumn)>> {
    let mut tables = tables_of(server, config, names).await?;
    let mut found = Vec::new();
    for its in recorded.iter().filter(|its| its.server == server.identity) {
        let is_it = |(_, column): &(RuleName, KeyColumn)| {
            column.schema == its.schema && column.table == its.table
        };
        if let Some(at) = tables.iter().position(is_it) {
            let (name, column) = tables.swap_remove(at);
            found.push((its.clone(), name, column));
        }
    }
    Ok(found)
}

/// What was recorded of one server besides what was found there by these rules, of what may have a fence by what was recorded (`may_have_fence`):
/// the configuration has no such rule, or another one before it. A table that is not there any more has no fence.
pub(super) async fn unknown_on<'a>(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
    (recorded, found): (&'a [Recorded], &[(Recorded, RuleName, KeyColumn)]),
    may_have_fence: fn(&Recorded) -> bool,
) -> Result<Vec<&'a Recorded>> {
    let has_rules = names.is_subset(&switched(config));
    let mut unknown = Vec::new();
    for its in recorded
        .iter()
        .filter(|its| its.server == server.identity && may_have_fence(its))
    {
        let mut found = found.iter();
        if found.any(|(of, ..)| (&of.schema, &of.table) == (&its.schema, &its.table)) {
            continue;
        }
        let table = (its.schema.as_str(), its.table.as_str());
        if !has_rules || may_be_there(&mut server.conn, table).await {
            unknown.push(its);
        }
    }
    Ok(unknown)
}

/// Whether a table is not certain to be gone: another program's account may have rights on it that this one's lacks.
pub(super) async fn may_be_there(conn: &mut Conn, (schema, table): (&str, &str)) -> bool {
    let (schema, table) = (quoted(schema), quoted(table));
    let select = format!("SELECT 1 FROM {schema}.{table} LIMIT 0");
    match conn.query_drop(select).await {
        Err(mysql_async::Error::Server(error)) => !GONE.contains(&error.code),
        Ok(()) | Err(_) => true,
    }
}

/// The first id above all rows of each table of these rules whose column the server does not count, with its rule.
pub(super) async fn above_others(
    server: &mut Server,
    config: &Config,
    names: &BTreeSet<RuleName>,
) -> Result<Vec<(RuleName, u64)>> {
    let columns = columns_of(server, config, names).await?;
    let is_other = |column: &KeyColumn| !column.auto_increment && column.integer_max().is_some();
    let mut found = Vec::new();
    for (name, column) in columns.iter().filter(|(_, column)| is_other(column)) {
        let above = above_rows(&mut server.conn, column).await?;
        found.push((name.clone(), above));
    }
    Ok(found)
}

/// The first id above all rows of a table.
pub(super) async fn above_rows(conn: &mut Conn, column: &KeyColumn) -> Result<u64> {
    let (table, name) = (column.quoted_table(), column.quoted_name());
    let select =
        format!("SELECT CAST(GREATEST(COALESCE(MAX({name}), 0), 0) AS UNSIGNED) FROM {table}");
    let row: Option<Row> = conn.query_first(select).await?;
    let highest = row.and_then(|row| row.get::<Option<u64>, usize>(0).flatten());
    Ok(highest.unwrap_or(0).saturating_add(1))
}

/// The lowest id that a row of a table has; 0 for one below that.
pub(super) async fn lowest(conn: &mut Conn, column: &KeyColumn) -> Result<Option<u64>> {
    let (table, name) = (column.quoted_table(), column.quoted_name());
    let select = format!("SELECT CAST(GREATEST(MIN({name}), 0) AS UNSIGNED) FROM {table}");
    let row: Option<Row> = conn.query_first(select).await?;
    Ok(row.and_then(|row| row.get::<Option<u64>, usize>(0).flatten()))
}

#[cfg(test)]
mod tests {
    use super::{name_of, switched, switched_among};
    use crate::config::Config;
    use crate::schema::KeyColumn;

    /// Somebody has put a rule before the last one that takes its tables, and has the same name.
    const TEXT: &str = "[[store]]\nname = \"main\"\nurl = \"mysql://root@127.0.0.1:1/s\"\n\
                        [[store]]\nname = \"far\"\nurl = \"mysql://root@127.0.0.1:4/s\"\ntags = [\"moved\"]\n\
                        [[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\n\
                        [[rule]]\ntable = \"a.stays\"\ncolumn = \"id\"\nkey = \"segment:one\"\n\
                        [[rule]]\ntable = \"a.stride\"\ncolumn = \"id\"\nkey = \"stride:two\"\noffset = 1\nincrement = 2\n\
                        [[rule]]\ntable = \"a.moved\"\ncolumn = \"id\"\nkey = \"segment:moved\"\n\
                        [[rule]]\ntable = \"a.twice\"\ncolumn = \"id\"\nkey = \"uuid_v7:text36\"\n\
                        [[rule]]\ntable = \"a.twice\"\ncolumn = \"id\"\nkey = \"segment:one\"\n";

    #[test]
    fn what_the_store_says_of_a_rule_is_for_tables_of_one_that_follows_the_switch() {
        let config = Config::parse(TEXT).unwrap();
        let columns = ["stays", "stride", "moved", "twice"]
            .into_iter()
            .enumerate();
        let columns = columns.map(|(rule, table)| KeyColumn {
            rule,
            table: table.to_owned(),
            ..KeyColumn::default()
        });
        let all = config.rules.iter().map(name_of).collect();
        let found = switched_among(columns.collect(), &config, &all);
        let tables: Vec<&str> = found.iter().map(|(_, its)| its.table.as_str()).collect();
        assert_eq!(tables, ["stays"]);
        let names = switched(&config);
        let names: Vec<&str> = names.iter().map(|name| name.tables.as_str()).collect();
        assert_eq!(names, ["a.stays", "a.twice"]);
    }
}
