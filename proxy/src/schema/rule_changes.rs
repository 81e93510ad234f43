//! Tables of a server beside the rules that they have by two configurations.

use keywright_session::Rules;

use super::key_column::KeyColumn;
use super::matched::{is_own, key_column, plain_rules};
use super::quote::quoted;
use super::snapshot::{Snapshot, Table};
use crate::config::Config;

/// The rule that a table has by a configuration.
#[derive(Debug, Clone)]
pub struct OfRule {
    /// Its place.
    pub rule: usize,
    /// The table's column of the rule; `None`: it has none of that name, so that the rule gives it nothing.
    pub column: Option<KeyColumn>,
}

/// A table, and the rules that it has by two configurations.
#[derive(Debug, Clone)]
pub struct TableRules {
    /// The table, quoted.
    pub table: String,
    /// By the one before; `None`: no rule is for it.
    pub before: Option<OfRule>,
    /// By the one after.
    pub after: Option<OfRule>,
}

/// All tables of a snapshot but the store's own, which has those that rules of either configuration match.
pub fn rules_of_tables(snapshot: &Snapshot, before: &Config, after: &Config) -> Vec<TableRules> {
    let server = &snapshot.server;
    let (rules_before, rules_after) = (plain_rules(before, server), plain_rules(after, server));
    let of = |rules: &Rules, table: &Table| -> Option<OfRule> {
        let (rule, _) = rules.find(table.schema.as_bytes(), table.name.as_bytes())?;
        let column = key_column(table, rules, server);
        Some(OfRule { rule, column })
    };
    let tables = snapshot.tables.iter();
    tables
        .filter(|table| table.is_base && !is_own(table))
        .map(|table| TableRules {
            table: format!("{}.{}", quoted(&table.schema), quoted(&table.name)),
            before: of(&rules_before, table),
            after: of(&rules_after, table),
        })
        .collect()
}
