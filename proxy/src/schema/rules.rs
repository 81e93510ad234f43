//! The rules as sessions of one server are to follow them.

use std::collections::HashSet;

use keywright_session::{
    KeyColumnState, ListedTables, Rule, Rules, TableSnapshot, TableTraits, View,
};

use super::key_column::KeyColumn;
use super::matched::{Matched, OtherView};
use super::snapshot::{Snapshot, StatementContext, Trigger};
use super::views::may_call;
use crate::config::Config;

/// What sessions must know of a server. Of one that nobody asked nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// By rule, what holds for all of its tables.
    pub by_rule: Vec<TableTraits>,
    /// The views through which rows go into tables with rules.
    pub views: Vec<View>,
    /// Tables and other views that match a rule.
    pub tables: Vec<TableSnapshot>,
    /// Whether there are no others.
    pub has_all: bool,
    /// Whether the server compares names of schemas and tables without case (`lower_case_table_names`).
    pub lower_case: bool,
}

/// What a snapshot says to sessions, nothing if it is of tables alone.
pub fn facts(snapshot: &Snapshot, config: &Config) -> TableFacts {
    let matched = Matched::new(snapshot, config);
    let Some(context) = &snapshot.context else {
        return TableFacts::default();
    };
    let others = matched.other_views();
    let around = Around::new(context, &matched);
    let by_rule = (0..config.rules.len()).map(|rule| of_rule(&matched, rule, &others, &around));
    TableFacts {
        by_rule: by_rule.collect(),
        tables: table_snapshots(&matched, &others, &around),
        has_all: true,
        lower_case: snapshot.server.lower_case,
        views: matched.views,
    }
}

/// The tables, and views that match a rule, of which [`facts`] says that they have their rule's column: nothing more need be known for them to get keys.
pub fn listed(snapshot: &Snapshot, config: &Config) -> ListedTables {
    let Some(context) = &snapshot.context else {
        return ListedTables::default();
    };
    let matched = Matched::new(snapshot, config);
    let others = matched.other_views();
    let tables = matched.with_rule().map(|(configured, column)| {
        let of_rule = configured.rule.column.as_str();
        (column.schema.as_str(), column.table.as_str(), of_rule)
    });
    let views = others.iter().filter(|other| other.has_column);
    let views = views.filter_map(|other| {
        let of_rule = config.rules.get(other.rule)?.rule.column.as_str();
        Some((
            other.view.schema.as_str(),
            other.view.name.as_str(),
            of_rule,
        ))
    });
    ListedTables::new(
        context.identity.as_bytes(),
        snapshot.server.lower_case,
        tables.chain(views),
    )
}

/// The configured rules as sessions of this server are to follow them.
pub fn rules(snapshot: &Snapshot, config: &Config) -> Rules {
    let rules = config.rules.iter();
    facts(snapshot, config).rules(rules.map(|configured| configured.rule.clone()))
}

/// What is around the tables that rules match.
struct Around<'a> {
    /// Tables with triggers, by schema and name.
    triggers: HashSet<(&'a str, &'a str)>,
    /// Rules with a table whose trigger may see LAST_INSERT_ID(): triggers of their other tables may insert into that one.
    seeing: HashSet<usize>,
    /// Whether a view may call a function.
    may_call: bool,
}

impl<'a> Around<'a> {
    fn new(context: &'a StatementContext, matched: &Matched<'_>) -> Self {
        let triggers = context.triggers.iter();
        let seeing = triggers.clone().filter(|trigger| trigger.sees_last_id);
        let rule_of = |trigger: &Trigger| Some(matched.rule_of(&trigger.schema, &trigger.table)?.0);
        Self {
            seeing: seeing.filter_map(rule_of).collect(),
            triggers: triggers
                .map(|trigger| (trigger.schema.as_str(), trigger.table.as_str()))
                .collect(),
            may_call: context
                .views
                .iter()
                .any(|view| may_call(&view.definition, &context.functions)),
        }
    }

    fn traits_of(&self, column: &KeyColumn) -> TableTraits {
        let table = (column.schema.as_str(), column.table.as_str());
        let has_trigger = self.triggers.contains(&table);
        TableTraits {
            watched: has_trigger && self.seeing.contains(&column.rule),
            repeatable: !has_trigger && !self.may_call && column.is_innodb(),
            is_steady: !self.may_call,
            is_signed: column.kind.is_signed_integer(),
            is_auto_increment: column.auto_increment,
        }
    }
}

/// What holds for all tables of a rule: for those that nobody has seen yet, and those behind views.
fn of_rule(
    matched: &Matched<'_>,
    rule: usize,
    others: &[OtherView<'_>],
    around: &Around<'_>,
) -> TableTraits {
    let columns = matched.columns.iter().filter(|column| column.rule == rule);
    // The table behind a view of no table with a rule may be of any kind.
    let all_seen = others.iter().all(|other| other.rule != rule);
    let is_known = all_seen && columns.clone().next().is_some();
    let mut all = TableTraits {
        watched: false,
        repeatable: !around.may_call && all_seen,
        is_steady: !around.may_call,
        is_signed: is_known,
        // The key of a row that went in would be taken for none.
        is_auto_increment: false,
    };
    for column in columns {
        let its = around.traits_of(column);
        all.watched |= its.watched;
        all.repeatable &= its.repeatable;
        all.is_steady &= its.is_steady;
        all.is_signed &= its.is_signed;
    }
    all
}

fn table_snapshots(
    matched: &Matched<'_>,
    others: &[OtherView<'_>],
    around: &Around<'_>,
) -> Vec<TableSnapshot> {
    let snapshot = |schema: &str, name: &str, key_column| TableSnapshot {
        schema: schema.to_owned(),
        name: name.to_owned(),
        key_column,
        is_not_null: None,
        traits: None,
    };
    let without = matched
        .keyless()
        .map(|(_, table)| snapshot(&table.schema, &table.name, KeyColumnState::Missing));
    let with = matched.with_rule().map(|(configured, column)| {
        let key_column = match column.lacks_room(configured) {
            Some(_) => KeyColumnState::TooNarrow,
            None => KeyColumnState::Present,
        };
        TableSnapshot {
            is_not_null: Some(column.is_not_null),
            traits: Some(around.traits_of(column)),
            ..snapshot(&column.schema, &column.table, key_column)
        }
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
    /// Tables and views, by schema and name, whose triggers may read LAST_INSERT_ID().
    pub fn watched(&self) -> impl Iterator<Item = (&str, &str)> {
        let tables = self.tables.iter();
        let tables = tables.filter(|table| table.traits.is_some_and(|traits| traits.watched));
        let tables = tables.map(|table| (table.schema.as_str(), table.name.as_str()));
        let is_watched = |rule: usize| self.by_rule.get(rule).is_some_and(|all| all.watched);
        let views = self.views.iter().filter(move |view| is_watched(view.rule));
        tables.chain(views.map(|view| (view.schema.as_str(), view.name.as_str())))
    }

    /// The configured rules, in their order, as sessions of this server are to follow them.
    pub fn rules(&self, configured: impl Iterator<Item = Rule>) -> Rules {
        let rules = configured.enumerate().map(|(index, rule)| {
            let known = self.by_rule.get(index).copied().unwrap_or_default();
            Rule {
                watched: known.watched,
                repeatable: known.repeatable,
                is_steady: known.is_steady,
                is_signed: known.is_signed,
                is_auto_increment: known.is_auto_increment,
                ..rule
            }
        });
        Rules::new(rules.collect(), self.lower_case)
            .with_views(&self.views)
            .with_tables(&self.tables, self.has_all)
    }
}
