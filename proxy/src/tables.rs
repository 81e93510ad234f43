//! The tables that rules are for, as the proxy's own connection sees them: can they hold the keys, is the fence in place, and
//! what else touches them.

mod columns;
mod counting;
mod dependents;
mod fence;
mod inspection;
mod may;
mod views;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use keywright_session::{Mode, Rule, Rules, SeenTable, Sighting};
use keywright_store::KeySpec;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};
use tokio::time::timeout;

use columns::with_rule;
pub use columns::{Column, first_of_indexes, key_columns, lower_case};
pub(crate) use columns::{quoted, quoted_string};
pub use counting::{Count, Counting};
pub use inspection::{Inspection, TableFacts};

use crate::config::{Config, Listener};

/// How long the fence may wait for a table, seconds. Who comes after a waiting ALTER TABLE waits with it.
const LOCK_WAIT_S_MAX: u32 = 2;
/// The servers' largest auto_increment_increment.
const INCREMENT_MAX: u64 = 65_535;
/// How long a look at one server may take, milliseconds.
const LOOK_MS_MAX: u64 = 60_000;

/// Connects with a listener's own connection.
///
/// # Errors
/// The url cannot be read, or the server cannot be reached in time.
pub async fn connect(config: &Config, admin: &str) -> Result<Conn> {
    let opts = Opts::from_url(admin).context("reading the listener's admin url")?;
    // Left to itself the driver goes over to the socket that a server on this machine names: there it may be another account, with
    // other rights, and another server where the address is forwarded.
    let opts = OptsBuilder::from_opts(opts).prefer_socket(false);
    timeout(
        Duration::from_millis(config.connect_ms_max),
        Conn::new(opts),
    )
    .await
    .context("connecting took longer than connect_ms_max")?
    .context("connecting to the upstream with the listener's admin url")
}

/// SchemaRefresh at all tables of all rules through one listener's own connection, and applies the fence where it is wanted.
///
/// # Errors
/// The server cannot be asked.
pub async fn inspect(
    config: &Config,
    listener: &Listener,
    admin: &str,
    apply_fence: bool,
) -> Result<Inspection> {
    let mut server = connect(config, admin).await?;
    let looked = async {
        let (mut found, rules, columns) = watch(&mut server, config, apply_fence).await?;
        found.left_out.extend(narrow(config, &columns));
        found.matched = matched(config, &columns);
        found.notes.extend(fence::ignored(config, &columns));
        increment(&mut server, config, &mut found).await?;
        found.warnings.extend(impatient(&mut server, config).await?);
        found.errors.extend(fence::unfenceable(config, &columns));
        if config.rules.iter().any(|rule| rule.is_switched) {
            may::switchable(&mut server, config, &columns, &mut found).await?;
        }
        dependents::references(&mut server, config, &columns, &mut found).await?;
        dependents::programs(&mut server, config, &rules, &mut found).await?;
        // Else it is clients whom the server sees, wherever they are.
        if !listener.upstream_proxy_protocol {
            dependents::accounts(&mut server, &mut found).await?;
        }
        Ok(found)
    };
    let found = in_time(looked).await?;
    server.disconnect().await?;
    Ok(found)
}

/// SchemaRefresh only at what may change while the proxy runs: tables, their key columns, fences, triggers, engines and views.
///
/// # Errors
/// The server cannot be asked.
pub async fn inspect_again(config: &Config, admin: &str, apply_fence: bool) -> Result<Inspection> {
    let mut server = connect(config, admin).await?;
    let looked = async {
        let (mut found, _, columns) = watch(&mut server, config, apply_fence).await?;
        found.left_out.extend(narrow(config, &columns));
        found.warnings.extend(fence::unfenceable(config, &columns));
        Ok(found)
    };
    let found = in_time(looked).await?;
    server.disconnect().await?;
    Ok(found)
}

async fn in_time<T>(look: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(Duration::from_millis(LOOK_MS_MAX), look)
        .await
        .with_context(|| format!("looking at the tables took longer than {LOOK_MS_MAX} ms"))?
}

/// Says which columns have no room for keys: their rules go on without them, as far as that can be.
fn narrow<'a>(config: &'a Config, columns: &'a [Column]) -> impl Iterator<Item = String> + 'a {
    with_rule(config, columns).filter_map(|(configured, column)| {
        let lack = column.lacks_room(configured)?;
        let Column {
            schema,
            table,
            name,
            ..
        } = column;
        let until = match configured.rule.mode {
            Mode::Rewrite => {
                "until then inserts that need a larger key fail there (1264), or get none (1235)"
            }
            Mode::Observe => "until then it cannot be switched on",
        };
        Some(format!("{schema}.{table}.{name} {lack}; {until}"))
    })
}

async fn watch(
    server: &mut Conn,
    config: &Config,
    apply_fence: bool,
) -> Result<(Inspection, Rules, Vec<Column>)> {
    let mut found = Inspection {
        seen: TableFacts {
            watched: vec![false; config.rules.len()],
            repeatable: vec![true; config.rules.len()],
            signed: vec![true; config.rules.len()],
            views: Vec::new(),
            tables: Vec::new(),
            has_all: true,
            lower_case: lower_case(server).await?,
        },
        ..Inspection::default()
    };
    let rules = config
        .rules
        .iter()
        .map(|configured| configured.rule.clone());
    let rules = Rules::new(rules.collect(), found.seen.lower_case);
    let (columns, without) = columns::key_columns_and_keyless(server, &rules).await?;
    let with = with_rule(config, &columns).map(|(configured, column)| SeenTable {
        schema: column.schema.clone(),
        name: column.table.clone(),
        sighting: match column.lacks_room(configured) {
            Some(_) => Sighting::Narrow,
            None => Sighting::With,
        },
    });
    found.seen.tables = without.into_iter().chain(with).collect();
    server
        .query_drop(format!("SET SESSION lock_wait_timeout = {LOCK_WAIT_S_MAX}"))
        .await?;
    for (configured, column) in with_rule(config, &columns) {
        fence::keep(configured, column, apply_fence, server, &mut found).await;
    }
    for column in &columns {
        let is_signed = column.integer_max().is_some() && !column.data_type.contains("unsigned");
        if let Some(signed) = found.seen.signed.get_mut(column.rule) {
            *signed &= is_signed;
        }
        if !column.engine.eq_ignore_ascii_case("InnoDB")
            && let Some(repeatable) = found.seen.repeatable.get_mut(column.rule)
        {
            *repeatable = false;
        }
    }
    for (schema, table, may_see) in triggers(server).await? {
        let Some((rule, _)) = rules.find(schema.as_bytes(), table.as_bytes()) else {
            continue;
        };
        if let Some(watched) = found.seen.watched.get_mut(rule) {
            *watched |= may_see;
        }
        if let Some(repeatable) = found.seen.repeatable.get_mut(rule) {
            *repeatable = false;
        }
    }
    views::views(server, &rules, &columns, &mut found).await?;
    found.counting = counting::counting(server, config, &columns).await?;
    keyless(&rules, &mut found);
    Ok((found, rules, columns))
}

/// Warns of tables that a rule is not for, though it matches them: once for each rule, since a pattern may be wide.
fn keyless(rules: &Rules, found: &mut Inspection) {
    let mut by_rule: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let tables = found.seen.tables.iter();
    for table in tables.filter(|table| table.sighting == Sighting::Without) {
        let SeenTable { schema, name, .. } = table;
        if let Some((rule, _)) = rules.find(schema.as_bytes(), name.as_bytes()) {
            by_rule
                .entry(rule)
                .or_default()
                .push(format!("{schema}.{name}"));
        }
    }
    for (rule, tables) in by_rule {
        let Some(Rule { table, column, .. }) = rules.rules().get(rule) else {
            continue;
        };
        let (schema, table) = (table.schema(), table.table());
        found.warnings.push(format!(
            "no column \"{column}\", so that \"{schema}.{table}\" is not for them: {}",
            tables.join(", ")
        ));
    }
}

fn matched(config: &Config, columns: &[Column]) -> Vec<bool> {
    let has_table = |rule| columns.iter().any(|column| column.rule == rule);
    (0..config.rules.len()).map(has_table).collect()
}

/// Rules that no table of any server is for, of which it is known: what was looked at, by listener.
pub fn unmatched(config: &Config, looked: &[Inspection]) -> Vec<String> {
    let is_known = !looked.is_empty() && looked.iter().all(|found| !found.matched.is_empty());
    let rules = config.rules.iter().enumerate().filter(|(rule, _)| {
        is_known
            && !looked
                .iter()
                .any(|found| found.matched.get(*rule) == Some(&true))
    });
    rules
        .map(|(_, configured)| {
            let pattern = &configured.rule.table;
            format!(
                "no table matches \"{}.{}\" with a column \"{}\" on any listener's server: are pattern and column right, and \
                 may the admin account see the table?",
                pattern.schema(),
                pattern.table(),
                configured.rule.column
            )
        })
        .collect()
}

async fn increment(server: &mut Conn, config: &Config, found: &mut Inspection) -> Result<()> {
    let increment: Option<u64> = server
        .query_first("SELECT @@global.auto_increment_increment")
        .await?;
    let increment = increment.unwrap_or(1).max(1);
    if increment != 1 {
        found.warnings.push(format!(
            "auto_increment_increment is {increment}: keys of one statement are spaced by it"
        ));
    }
    for configured in &config.rules {
        let apart = match &configured.spec {
            KeySpec::Stride(stride) => stride.residue().modulus(),
            KeySpec::Snowflake => config.store.layout().apart(),
            KeySpec::Segment(_) | KeySpec::Readable(_) | KeySpec::Uuid { .. } => continue,
        };
        if !increment.is_multiple_of(apart) {
            let advice = match apart <= INCREMENT_MAX {
                true => format!("make it {apart}"),
                false => {
                    "no value of it is right, so let clients ask for them otherwise".to_owned()
                }
            };
            found.warnings.push(format!(
                "keys of {} are {apart} apart, and auto_increment_increment is {increment}, by which drivers compute the keys \
                 of several rows from the first: {advice}",
                configured.name()
            ));
        }
    }
    Ok(())
}

/// A server that gives clients up before the proxy does counts them against the proxy's address.
async fn impatient(server: &mut Conn, config: &Config) -> Result<Option<String>> {
    let seconds: Option<u64> = server.query_first("SELECT @@connect_timeout").await?;
    let server_ms = seconds.unwrap_or(u64::MAX).saturating_mul(1_000);
    let ours_ms = config.answer_ms_max;
    Ok((server_ms <= ours_ms).then(|| {
        format!(
            "connect_timeout is {server_ms} ms, and answer_ms_max {ours_ms}: after max_connect_errors clients that say nothing the \
             server blocks the proxy's address (1129). Make answer_ms_max smaller"
        )
    }))
}

/// Tables with triggers, and whether one may see LAST_INSERT_ID(): through whatever it calls before a row goes in, and behind that
/// where it names it.
async fn triggers(server: &mut Conn) -> Result<Vec<(String, String, bool)>> {
    Ok(server
        .query(
            "SELECT event_object_schema, event_object_table, event_manipulation = 'INSERT' AND action_timing = 'BEFORE' \
             OR LOWER(action_statement) LIKE '%last_insert_id%' OR LOWER(action_statement) LIKE '%@@identity%' \
             FROM information_schema.triggers",
        )
        .await?)
}
