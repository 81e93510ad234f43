//! Rules of both, and what both count.

use std::sync::Arc;

use crate::compare::same;
use crate::convert;
use crate::{Rule, RuleAdmission, TableSnapshot, View};

/// Rules of both.
pub struct Rules {
    pub(crate) before: Arc<before::Rules>,
    pub(crate) now: Arc<now::Rules>,
    schema: Arc<SchemaChanges>,
    /// And the names of its rules.
    traffic: Option<(Arc<Traffic>, Vec<String>)>,
}

impl Rules {
    /// As that of one.
    pub fn new(rules: Vec<Rule>, lower_case_table_names: bool) -> Self {
        let of_before = rules.iter().map(convert::rule).collect();
        let before = before::Rules::new(of_before, lower_case_table_names);
        let now = now::Rules::new(rules, lower_case_table_names);
        let made = Self {
            before: Arc::new(before),
            now: Arc::new(now),
            schema: Arc::default(),
            traffic: None,
        };
        // So that both count in what can be compared.
        made.with_schema(Arc::default())
    }

    fn with(
        self,
        before: impl FnOnce(before::Rules) -> before::Rules,
        now: impl FnOnce(now::Rules) -> now::Rules,
    ) -> Self {
        const ALONE: &str = "rules that are not shared yet";
        Self {
            before: Arc::new(before(Arc::into_inner(self.before).expect(ALONE))),
            now: Arc::new(now(Arc::into_inner(self.now).expect(ALONE))),
            ..self
        }
    }

    /// As that of one.
    #[must_use]
    pub fn with_views(self, views: &[View]) -> Self {
        let of_before: Vec<_> = views.iter().map(convert::view).collect();
        self.with(
            |rules| rules.with_views(&of_before),
            |rules| rules.with_views(views),
        )
    }

    /// As that of one.
    #[must_use]
    pub fn with_tables(self, tables: &[TableSnapshot], is_all: bool) -> Self {
        let of_before: Vec<_> = tables.iter().map(convert::table).collect();
        self.with(
            |rules| rules.with_tables(&of_before, is_all),
            |rules| rules.with_tables(tables, is_all),
        )
    }

    /// As that of one.
    #[must_use]
    pub fn with_ahead<'a>(self, tables: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let tables: Vec<_> = tables.collect();
        self.with(
            |rules| rules.with_ahead(tables.iter().copied()),
            |rules| rules.with_ahead(tables.iter().copied()),
        )
    }

    /// As that of one.
    #[must_use]
    pub fn with_schema(self, schema: Arc<SchemaChanges>) -> Self {
        let (before, now) = (Arc::clone(&schema.before), Arc::clone(&schema.now));
        let made = self.with(
            |rules| rules.with_schema(before),
            |rules| rules.with_schema(now),
        );
        Self { schema, ..made }
    }

    /// As that of one.
    #[must_use]
    pub fn with_traffic(
        self,
        traffic: &Arc<Traffic>,
        version: u64,
        admissions: &[RuleAdmission],
    ) -> Self {
        let of_before: Vec<_> = admissions.iter().map(convert::admission).collect();
        let made = self.with(
            |rules| rules.with_traffic(&traffic.before, version, &of_before),
            |rules| rules.with_traffic(&traffic.now, version, admissions),
        );
        let names = admissions
            .iter()
            .map(|admission| admission.name.clone())
            .collect();
        Self {
            traffic: Some((Arc::clone(traffic), names)),
            ..made
        }
    }

    /// As that of one.
    pub fn is_empty(&self) -> bool {
        same("no rules", self.before.is_empty(), self.now.is_empty())
    }

    /// As that of one.
    pub fn version(&self) -> u64 {
        same("version", self.before.version(), self.now.version())
    }

    /// Both have counted the same.
    pub(crate) fn compare(&self) {
        self.schema.defined();
        if let Some((traffic, names)) = &self.traffic {
            traffic.on_unknown_server();
            traffic.at_fence();
            for name in names {
                traffic.under_way(name);
            }
        }
    }
}

/// What both have under way.
#[derive(Debug, Default)]
pub struct Traffic {
    before: Arc<before::Traffic>,
    now: Arc<now::Traffic>,
}

impl Traffic {
    /// As that of one.
    pub fn publish(&self, version: u64) {
        self.before.publish(version);
        self.now.publish(version);
    }

    /// As that of one.
    pub fn version(&self) -> u64 {
        same("version", self.before.version(), self.now.version())
    }

    /// As that of one.
    pub fn under_way(&self, rule: &str) -> u64 {
        let (before, now) = (self.before.under_way(rule), self.now.under_way(rule));
        same("what is under way", before, now)
    }

    /// As that of one.
    pub fn on_unknown_server(&self) -> u64 {
        let (before, now) = (
            self.before.on_unknown_server(),
            self.now.on_unknown_server(),
        );
        same("how often a server was unknown", before, now)
    }

    /// As that of one.
    pub fn at_fence(&self) -> u64 {
        let (before, now) = (self.before.at_fence(), self.now.at_fence());
        same("how often the fence refused", before, now)
    }
}

/// Changes of tables that both have noted.
#[derive(Debug, Default)]
pub struct SchemaChanges {
    before: Arc<before::SchemaChanges>,
    now: Arc<now::SchemaChanges>,
}

impl SchemaChanges {
    /// As that of one.
    pub fn note_defined(&self) {
        self.before.note_defined();
        self.now.note_defined();
    }

    /// As that of one.
    pub fn note_unseen(&self) {
        self.before.note_unseen();
        self.now.note_unseen();
    }

    /// As that of one.
    pub fn note_watched<'a>(&self, tables: impl Iterator<Item = (&'a str, &'a str)>) {
        let tables: Vec<_> = tables.collect();
        self.before.note_watched(tables.iter().copied());
        self.now.note_watched(tables.iter().copied());
    }

    /// As that of one.
    pub fn note_schema_refresh(&self, began_at: u64, is_other: bool) {
        self.before.note_schema_refresh(began_at, is_other);
        self.now.note_schema_refresh(began_at, is_other);
    }

    /// Of the one that stands: in November 2026 others were asked about.
    pub fn tables_to_ask(&self, again: bool) -> Vec<now::MetTable> {
        self.before.tables_to_ask(again);
        self.now.tables_to_ask(again)
    }

    /// The same.
    pub fn note_shown(&self, table: &now::MetTable, is_shown: bool) -> bool {
        self.before.note_shown(&convert::met(table), is_shown);
        self.now.note_shown(table, is_shown)
    }

    /// Of the one that stands: the other may not have it.
    pub fn note_asked(&self, tables: &[now::MetTable]) {
        self.now.note_asked(tables);
    }

    /// The same.
    pub fn answers(&self) -> u64 {
        self.now.answers()
    }

    /// As that of one.
    pub fn defined(&self) -> u64 {
        let (before, now) = (self.before.defined(), self.now.defined());
        same("how often tables were changed", before, now)
    }
}
