//! Key columns without room for keys, and tables without a key column.

use std::collections::BTreeMap;

use keywright_session::{Mode, Rule, in_lower_case};

use crate::schema::finding::{Finding, OfTable, Severity};
use crate::schema::key_column::KeyColumn;
use crate::schema::matched::Matched;
use crate::schema::snapshot::Reference;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let narrow = Severity::LeftOut.of_each(narrow(matched));
    let references = Severity::LeftOut.of_each(references(matched));
    let left_out = narrow.into_iter().chain(references);
    let hidden = Severity::Error.of_each(hidden(matched));
    left_out.chain(hidden).chain(keyless(matched)).collect()
}

/// Columns that have no room for keys: their rules go on without them, as far as that can be.
fn narrow(matched: &Matched<'_>) -> impl Iterator<Item = OfTable> {
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
        let column = format!("{schema}.{table}.{name}");
        let message = format!("{column} {lack}; {until}");
        Some(OfTable::new(&column, message))
    })
}

/// Columns that refer to a key must have room for it too.
fn references(matched: &Matched<'_>) -> impl Iterator<Item = OfTable> {
    let surroundings = matched.snapshot.surroundings.iter();
    let references = surroundings.flat_map(|surroundings| &surroundings.references);
    references.filter_map(|Reference { to, from, kind }| {
        let [schema, table, name] = to;
        let (configured, key) = matched.with_rule().find(|(_, key)| {
            // The server writes the name in one case here and in another there.
            let is_same = |one: &str, other: &str| in_lower_case(one) == in_lower_case(other);
            is_same(&key.schema, schema) && is_same(&key.table, table) && is_same(&key.name, name)
        })?;
        let lack = kind.lacks_room(configured)?;
        let column = from.join(".");
        let key = format!("{}.{}.{}", key.schema, key.table, key.name);
        let message = format!("{column}, which refers to {key}, {lack}");
        Some(OfTable::alike(&lack, &column, message))
    })
}

/// Tables of which `admin` sees nothing but that they are there: whether they have keys is not known, nor how far these have come.
fn hidden(matched: &Matched<'_>) -> impl Iterator<Item = OfTable> {
    let tables = matched.keyless();
    tables
        .filter(|(_, table)| table.columns.is_empty())
        .map(|(_, table)| {
            let name = format!("{}.{}", table.schema, table.name);
            let message = format!(
                "a rule matches {name}, and the listener's admin url sees no column of it: grant SELECT on its schema, or keys are issued that it has"
            );
            OfTable::new(&name, message)
        })
}

/// Tables and views that a rule is not for, though it matches them: once for each rule, since a pattern may be wide.
fn keyless(matched: &Matched<'_>) -> Vec<Finding> {
    let mut by_rule: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut add = |rule: usize, schema: &str, name: &str| {
        let names = by_rule.entry(rule).or_default();
        names.push(format!("{schema}.{name}"));
    };
    let seen = matched
        .keyless()
        .filter(|(_, table)| !table.columns.is_empty());
    for (rule, table) in seen {
        add(rule, &table.schema, &table.name);
    }
    let views = matched.other_views().into_iter();
    for other in views.filter(|other| !other.has_column) {
        add(other.rule, &other.view.schema, &other.view.name);
    }
    let told = by_rule.into_iter().filter_map(|(rule, tables)| {
        let Rule { table, column, .. } = matched.rules.rules().get(rule)?;
        let (schema, table) = (table.schema(), table.table());
        let text = format!("no column \"{column}\", so that \"{schema}.{table}\" is not for them");
        Some(Severity::Warning.of_all(&text, tables))
    });
    told.collect()
}
