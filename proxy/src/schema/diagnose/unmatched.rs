//! Rules that are for no table, and what was probably meant.

use keywright_core::nearest::nearest;

use crate::config::{Config, Configured};
use crate::schema::key_column::KeyColumn;
use crate::schema::matched::{Matched, key_columns};
use crate::schema::snapshot::{Snapshot, Table};

/// Rules that no table of any listener's server is for.
pub fn unmatched(config: &Config, snapshots: &[&Snapshot]) -> Vec<String> {
    let columns = columns_of(config, snapshots);
    let rules = config.rules.iter().enumerate();
    rules
        .filter(|(rule, _)| !columns.iter().any(|column| column.rule == *rule))
        .map(|(_, configured)| {
            taken(config, configured, &columns, snapshots)
                .unwrap_or_else(|| no_table(config, configured, snapshots))
        })
        .collect()
}

fn columns_of(config: &Config, snapshots: &[&Snapshot]) -> Vec<KeyColumn> {
    snapshots
        .iter()
        .flat_map(|snapshot| key_columns(snapshot, config))
        .collect()
}

fn no_table(config: &Config, configured: &Configured, snapshots: &[&Snapshot]) -> String {
    let (pattern, column) = (&configured.rule.table, &configured.rule.column);
    let (schema, table) = (pattern.schema(), pattern.table());
    let pattern = format!("{schema}.{table}");
    let hint = if pattern.contains('`') {
        let plain = pattern.replace('`', "");
        format!(" Names in a rule stand without backticks: \"{plain}\"")
    } else if pattern.contains('%') {
        let plain = pattern.replace('%', "*");
        format!(" In a rule * stands for any characters, not %: \"{plain}\"")
    } else {
        meant(config, configured, snapshots)
            .map_or_else(String::new, |meant| format!(" Did you mean {meant}?"))
    };
    format!(
        "no table matches \"{pattern}\" with a column \"{column}\" on any listener's server: are pattern and column right, and \
         may the admin account see the table?{hint}"
    )
}

/// That the rule would have tables, if rules before it had not.
fn taken(
    config: &Config,
    configured: &Configured,
    columns: &[KeyColumn],
    snapshots: &[&Snapshot],
) -> Option<String> {
    let alone = alone(config, configured);
    let wanted = columns_of(&alone, snapshots);
    let is_wanted = |column: &&KeyColumn| {
        let mut wanted = wanted.iter();
        wanted.any(|of| (&of.schema, &of.table) == (&column.schema, &column.table))
    };
    let first = config.rules.get(columns.iter().find(is_wanted)?.rule)?;
    let (name, taker) = (configured.name(), first.name());
    // Known of rules in force only.
    let but = match first.servers.is_some() {
        true => {
            format!(". As {taker} is in force, set mode = \"observe\" in it before you change that")
        }
        false => String::new(),
    };
    Some(format!(
        "no table is left for rule {name}: the rule {taker} stands before it and takes all of them. Put the narrower one first, or take one out{but}"
    ))
}

/// What was probably meant, as one writes it: a column of the tables that the pattern matches, or a table that no rule matches.
fn meant(config: &Config, configured: &Configured, snapshots: &[&Snapshot]) -> Option<String> {
    let alone = alone(config, configured);
    let (pattern, column) = (&configured.rule.table, &configured.rule.column);
    let keyless = snapshots.iter().flat_map(|snapshot| {
        let matched = Matched::new(snapshot, &alone);
        let tables: Vec<&Table> = matched.keyless().map(|(_, table)| table).collect();
        tables
    });
    let columns = keyless.flat_map(|table| &table.columns);
    let columns = columns.map(|column| column.name.as_str());
    if let Some(near) = nearest(column, columns).first() {
        return Some(format!("column = \"{near}\""));
    }
    let others = || snapshots.iter().flat_map(|snapshot| &snapshot.others);
    let (schema, table) = (pattern.schema(), pattern.table());
    let is_pattern = |name: &str| name.contains(['*', '?']);
    if is_pattern(table) && !is_pattern(schema) {
        let schemas = others().map(|(schema, _)| schema.as_str());
        let near = nearest(schema, schemas).into_iter().next()?;
        return (near != schema).then(|| format!("\"{near}.{table}\""));
    }
    let names: Vec<String> = others()
        .map(|(schema, name)| format!("{schema}.{name}"))
        .collect();
    let wanted = format!("{schema}.{table}");
    let near = nearest(&wanted, names.iter().map(String::as_str));
    let elsewhere = || {
        let mut others = others();
        let (schema, name) = others.find(|(_, name)| name == table)?;
        Some(format!("{schema}.{name}"))
    };
    let near = near.first().map(ToString::to_string).or_else(elsewhere)?;
    Some(format!("\"{near}\""))
}

/// The configuration as if it had no other rule.
fn alone(config: &Config, configured: &Configured) -> Config {
    Config {
        rules: vec![configured.clone()],
        ..config.clone()
    }
}
