//! The tables of a snapshot, with the rules that are for them.

use std::collections::HashSet;

use keywright_session::{Mode, OnUnsupported, Rule, Rules, View};
use keywright_store::OWN_TABLES;

use super::key_column::{KeyColumn, Partitions, fence_of};
use super::snapshot::{ListedView, Server, Snapshot, Table};
use super::views::over_keys;
use crate::config::{Config, Configured};

/// A snapshot beside the rules of a configuration.
pub(super) struct Matched<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) config: &'a Config,
    pub(super) rules: Rules,
    pub(super) columns: Vec<KeyColumn>,
    /// The views through which rows go into tables with key columns.
    pub(super) views: Vec<View>,
}

/// The key columns of all tables with a rule but the store's own, in the order of schema and table.
pub fn key_columns(snapshot: &Snapshot, config: &Config) -> Vec<KeyColumn> {
    let rules = plain_rules(config, &snapshot.server);
    columns(snapshot, &rules)
}

/// The configured rules, of which nothing is known but how the server compares names.
pub(super) fn plain_rules(config: &Config, server: &Server) -> Rules {
    let rules = config.rules.iter();
    let rules = rules.map(|configured| configured.rule.clone());
    Rules::new(rules.collect(), server.lower_case)
}

pub(super) fn is_own(table: &Table) -> bool {
    OWN_TABLES.contains(&table.name.as_str())
}

fn columns(snapshot: &Snapshot, rules: &Rules) -> Vec<KeyColumn> {
    let tables = snapshot.tables.iter();
    tables
        .filter(|table| table.is_base && !is_own(table))
        .filter_map(|table| key_column(table, rules, &snapshot.server))
        .collect()
}

/// The key column of a table, of the first rule for it.
pub(super) fn key_column(table: &Table, rules: &Rules, server: &Server) -> Option<KeyColumn> {
    let (rule, its) = rules.find(table.schema.as_bytes(), table.name.as_bytes())?;
    let mut columns = table.columns.iter();
    let column = columns.find(|column| its.column.eq_ignore_ascii_case(&column.name))?;
    let fence = fence_of(&column.kind, server.flavour());
    Some(KeyColumn {
        rule,
        schema: table.schema.clone(),
        table: table.name.clone(),
        name: column.name.clone(),
        kind: column.kind.clone(),
        auto_increment: column.auto_increment,
        is_not_null: column.is_not_null,
        fence,
        fenced: table.counter == Some(fence),
        counter: table.counter,
        engine: table.engine.clone(),
        partitions: Partitions::of(table.is_partitioned, server.flavour(), fence),
        largest: table.largest,
        fence_refused: table.fence_refused.clone(),
    })
}

impl<'a> Matched<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, config: &'a Config) -> Self {
        let rules = plain_rules(config, &snapshot.server);
        let columns = columns(snapshot, &rules);
        let refuses = |rule: usize| {
            let rule = rules.rules().get(rule);
            rule.is_some_and(|rule| {
                rule.mode == Mode::Rewrite && rule.on_unsupported == OnUnsupported::Refuse
            })
        };
        let lower_case = snapshot.server.lower_case;
        let views = match &snapshot.context {
            Some(context) => over_keys(&context.views, &columns, lower_case, &refuses),
            None => Vec::new(),
        };
        Self {
            snapshot,
            config,
            rules,
            columns,
            views,
        }
    }

    /// The key columns with their rules.
    pub(super) fn with_rule(&self) -> impl Iterator<Item = (&'a Configured, &KeyColumn)> {
        let config = self.config;
        self.columns
            .iter()
            .filter_map(|column| Some((config.rules.get(column.rule)?, column)))
    }

    /// Tables that a rule matches and that have no column of its name, with the rule's place.
    pub(super) fn keyless(&self) -> impl Iterator<Item = (usize, &'a Table)> {
        let tables = self.snapshot.tables.iter();
        tables
            .filter(|table| table.is_base && !is_own(table))
            .filter_map(|table| {
                let (rule, its) = self.rule_of(&table.schema, &table.name)?;
                let mut columns = table.columns.iter();
                let has_key = columns.any(|column| its.column.eq_ignore_ascii_case(&column.name));
                (!has_key).then_some((rule, table))
            })
    }

    /// Views that a rule matches, of no table with one, and whether they show a column of the rule's name.
    pub(super) fn other_views(&self) -> Vec<OtherView<'a>> {
        let context = self.snapshot.context.iter();
        let views = context.flat_map(|context| &context.views);
        let over_keys: HashSet<(&str, &str)> = self
            .views
            .iter()
            .map(|view| (view.schema.as_str(), view.name.as_str()))
            .collect();
        let is_over_key =
            |view: &ListedView| over_keys.contains(&(view.schema.as_str(), view.name.as_str()));
        views
            .filter(|view| view.is_updatable && !is_over_key(view))
            .filter_map(|view| {
                let (rule, its) = self.rule_of(&view.schema, &view.name)?;
                let mut columns = view.columns.iter();
                let has_column = columns.any(|column| column.eq_ignore_ascii_case(&its.column));
                Some(OtherView {
                    view,
                    rule,
                    has_column,
                })
            })
            .collect()
    }

    /// The rule that is for a name, and its place.
    pub(super) fn rule_of(&self, schema: &str, name: &str) -> Option<(usize, &Rule)> {
        self.rules.find(schema.as_bytes(), name.as_bytes())
    }
}

/// A view that a rule matches, of no table with one.
pub(super) struct OtherView<'a> {
    pub(super) view: &'a ListedView,
    pub(super) rule: usize,
    pub(super) has_column: bool,
}
