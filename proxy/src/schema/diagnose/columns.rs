//! Key columns without room for keys, and tables without a key column.

use std::collections::BTreeMap;

use keywright_session::{Mode, Rule};

use crate::schema::finding::{Finding, Severity};
use crate::schema::key_column::KeyColumn;
use crate::schema::matched::Matched;
use crate::schema::snapshot::Reference;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let narrow = narrow(matched).map(|what| Severity::LeftOut.of(what));
    let references = references(matched).map(|what| Severity::LeftOut.of(what));
    let keyless = keyless(matched)
        .into_iter()
        .map(|what| Severity::Warning.of(what));
    narrow.chain(references).chain(keyless).collect()
}

/// Columns that have no room for keys: their rules go on without them, as far as that can be.
fn narrow(matched: &Matched<'_>) -> impl Iterator<Item = String> {
    matched.with_rule().filter_map(|(configured, column)| {
        let lack = column.lacks_room(configured)?;
        let KeyColumn {
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

/// Columns that refer to a key must have room for it too.
fn references(matched: &Matched<'_>) -> impl Iterator<Item = String> {
    let surroundings = matched.snapshot.surroundings.iter();
    let references = surroundings.flat_map(|surroundings| &surroundings.references);
    references.filter_map(|Reference { to, from, kind }| {
        let [schema, table, name] = to;
        let (configured, key) = matched.with_rule().find(|(_, key)| {
            // The server writes the name in one case here and in another there.
            key.schema.eq_ignore_ascii_case(schema)
                && key.table.eq_ignore_ascii_case(table)
                && key.name.eq_ignore_ascii_case(name)
        })?;
        let lack = kind.lacks_room(configured)?;
        Some(format!(
            "{}, which refers to {}.{}.{}, {lack}",
            from.join("."),
            key.schema,
            key.table,
            key.name
        ))
    })
}

/// Tables and views that a rule is not for, though it matches them: once for each rule, since a pattern may be wide.
fn keyless(matched: &Matched<'_>) -> Vec<String> {
    let mut by_rule: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut add = |rule: usize, schema: &str, name: &str| {
        let names = by_rule.entry(rule).or_default();
        names.push(format!("{schema}.{name}"));
    };
    for (rule, table) in matched.keyless() {
        add(rule, &table.schema, &table.name);
    }
    let views = matched.other_views().into_iter();
    for other in views.filter(|other| !other.has_column) {
        add(other.rule, &other.view.schema, &other.view.name);
    }
    let told = by_rule.into_iter().filter_map(|(rule, tables)| {
        let Rule { table, column, .. } = matched.rules.rules().get(rule)?;
        let (schema, table) = (table.schema(), table.table());
        Some(format!(
            "no column \"{column}\", so that \"{schema}.{table}\" is not for them: {}",
            tables.join(", ")
        ))
    });
    told.collect()
}
