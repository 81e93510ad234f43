//! The rules as sessions of one server are to follow them.

use keywright_session::{KeyColumnState, Rule, Rules, TableSnapshot, View};

use super::key_column::KeyColumn;
use super::matched::{Matched, OtherView};
use super::snapshot::Snapshot;
use super::views::may_call;
use crate::config::Config;

/// What sessions must know of a server. Of one that nobody asked nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// By rule.
    pub by_rule: Vec<RuleFacts>,
    /// The views through which rows go into tables with rules.
    pub views: Vec<View>,
    /// Tables and other views that match a rule.
    pub tables: Vec<TableSnapshot>,
    /// Whether there are no others.
    pub has_all: bool,
    /// Whether the server compares names of schemas and tables without case (`lower_case_table_names`).
    pub lower_case: bool,
}

/// What the tables of one rule have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleFacts {
    /// Whether a trigger on one may see LAST_INSERT_ID().
    pub watched: bool,
    /// Whether a statement that fails leaves nothing behind: all are InnoDB without triggers, and no view calls functions.
    pub repeatable: bool,
    /// Whether no key column is UNSIGNED.
    pub is_signed: bool,
}

/// What a snapshot says to sessions, nothing if it is of tables alone.
pub fn facts(snapshot: &Snapshot, config: &Config) -> TableFacts {
    let matched = Matched::new(snapshot, config);
    let Some(context) = &snapshot.context else {
        return TableFacts::default();
    };
    let others = matched.other_views();
    let around = Around {
        triggers: context
            .triggers
            .iter()
            .filter_map(|trigger| {
                let (rule, _) = matched.rule_of(&trigger.schema, &trigger.table)?;
                Some((rule, trigger.sees_last_id))
            })
            .collect(),
        // The table behind one may be of any kind.
        views: others.iter().map(|other| other.rule).collect(),
        may_call: context
            .views
            .iter()
            .any(|view| may_call(&view.definition, &context.functions)),
    };
    let by_rule = (0..config.rules.len()).map(|rule| of_rule(&matched, rule, &around));
    TableFacts {
        by_rule: by_rule.collect(),
        tables: table_snapshots(&matched, &others),
        has_all: true,
        lower_case: snapshot.server.lower_case,
        views: matched.views,
    }
}

/// The configured rules as sessions of this server are to follow them.
pub fn rules(snapshot: &Snapshot, config: &Config) -> Rules {
    let rules = config.rules.iter();
    facts(snapshot, config).rules(rules.map(|configured| configured.rule.clone()))
}

/// What is around the tables that rules match.
struct Around {
    /// Of each trigger, the rule of its table and whether it may see LAST_INSERT_ID().
    triggers: Vec<(usize, bool)>,
    /// The rules of views that are of no table with one.
    views: Vec<usize>,
    /// Whether a view may call a function.
    may_call: bool,
}

fn of_rule(matched: &Matched<'_>, rule: usize, around: &Around) -> RuleFacts {
    let columns = || matched.columns.iter().filter(|column| column.rule == rule);
    let mut triggers = around.triggers.iter().filter(|(of, _)| *of == rule);
    RuleFacts {
        watched: triggers.clone().any(|(_, sees_last_id)| *sees_last_id),
        repeatable: triggers.next().is_none()
            && !around.views.contains(&rule)
            && !around.may_call
            && columns().all(KeyColumn::is_innodb),
        is_signed: columns().all(|column| column.kind.is_signed_integer()),
    }
}

fn table_snapshots(matched: &Matched<'_>, others: &[OtherView<'_>]) -> Vec<TableSnapshot> {
    let snapshot = |schema: &str, name: &str, key_column| TableSnapshot {
        schema: schema.to_owned(),
        name: name.to_owned(),
        key_column,
    };
    let without = matched
        .keyless()
        .map(|(_, table)| snapshot(&table.schema, &table.name, KeyColumnState::Missing));
    let with = matched.with_rule().map(|(configured, column)| {
        let key_column = match column.lacks_room(configured) {
            Some(_) => KeyColumnState::TooNarrow,
            None => KeyColumnState::Present,
        };
        snapshot(&column.schema, &column.table, key_column)
    });
    let views = others.iter().map(|other| {
        let key_column = match other.has_column {
            true => KeyColumnState::Present,
            false => KeyColumnState::Missing,
        };
        snapshot(&other.view.schema, &other.view.name, key_column)
    });
    without.chain(with).chain(views).collect()
}

impl TableFacts {
    /// The configured rules, in their order, as sessions of this server are to follow them.
    pub fn rules(&self, configured: impl Iterator<Item = Rule>) -> Rules {
        let rules = configured.enumerate().map(|(index, rule)| {
            let known = self.by_rule.get(index).copied().unwrap_or_default();
            Rule {
                watched: known.watched,
                repeatable: known.repeatable,
                is_signed: known.is_signed,
                ..rule
            }
        });
        Rules::new(rules.collect(), self.lower_case)
            .with_views(&self.views)
            .with_tables(&self.tables, self.has_all)
    }
}
