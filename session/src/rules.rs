//! Rules: which column of which tables gets keys.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use keywright_rewrite::Unsupported;

use crate::server::schema::SchemaChanges;
use admissions::{Admissions, RuleAdmission};
use traffic::Traffic;

pub(crate) mod admissions;
mod enter;
mod leave;
mod lookup;
pub(crate) mod names;
mod outline;
mod pattern;
mod rule;
mod table_snapshots;
pub(crate) mod traffic;
pub(crate) mod unread_names;
mod version;

pub use names::in_lower_case;
use pattern::Matcher;
pub use pattern::{Pattern, PatternError};
pub use rule::{
    Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Rule, SeveralRows, TableTraits, View, ViewKey,
};
use table_snapshots::{Ahead, Seen, TableSnapshots};
pub use table_snapshots::{KeyColumnState, TableSnapshot};

/// All rules of a listener. The first that matches is in force, but for views that are known: theirs is that of the table behind
/// them. A table of which something else holds than for all tables of its rule has that rule with what holds for it.
pub struct Rules {
    /// The configured ones, then one for each view, then the variants.
    rules: Vec<Rule>,
    /// Of the configured ones.
    matchers: Vec<Matcher>,
    views: Vec<View>,
    /// Configured rules as they are for some of their tables.
    variants: Vec<(usize, TableTraits)>,
    /// Which rule views and such tables have, by name and schema as they are compared.
    named: HashMap<Vec<u8>, HashMap<Vec<u8>, usize>>,
    tables: TableSnapshots,
    ahead: Ahead,
    lower_case: bool,
    schema: Arc<SchemaChanges>,
    admissions: Option<Admissions>,
}

impl Rules {
    /// `lower_case_table_names`: whether the server compares names without case (its setting is 1 or 2).
    pub fn new(rules: Vec<Rule>, lower_case_table_names: bool) -> Self {
        let fold = |text: &str| {
            if lower_case_table_names {
                in_lower_case(text)
            } else {
                text.to_owned()
            }
        };
        let matchers = rules
            .iter()
            .map(|rule| Matcher::new(fold(rule.table.schema()), fold(rule.table.table())))
            .collect();
        Self {
            rules,
            matchers,
            views: Vec::new(),
            variants: Vec::new(),
            named: HashMap::new(),
            tables: TableSnapshots::default(),
            ahead: Ahead::default(),
            lower_case: lower_case_table_names,
            schema: Arc::default(),
            admissions: None,
        }
    }

    /// With the views that show tables with rules. One of a rule that is not there is left out.
    #[must_use]
    pub fn with_views(mut self, views: &[View]) -> Self {
        for view in views {
            let name = self.folded(view.name.as_bytes()).map(Cow::into_owned);
            let schema = self.folded(view.schema.as_bytes()).map(Cow::into_owned);
            let mut configured = self.rules.iter().take(self.matchers.len());
            let rule = configured.nth(view.rule).cloned();
            let (Some(name), Some(schema), Some(mut rule)) = (name, schema, rule) else {
                continue;
            };
            if let ViewKey::Column(column) = &view.key {
                rule.column.clone_from(column);
            }
            let of_name = self.named.entry(name).or_default();
            of_name.insert(schema, self.rules.len());
            self.rules.push(rule);
            self.views.push(view.clone());
        }
        self
    }

    /// With what the last schema refresh found of tables. The session asks before each statement on a table that lacks the column of its
    /// rule. If all tables are given (`is_all`), it asks of every other table too, until that has the column. Views come first.
    #[must_use]
    pub fn with_tables(mut self, tables: &[TableSnapshot], is_all: bool) -> Self {
        self.add_variants(tables);
        for table in tables {
            let schema = self.folded(table.schema.as_bytes()).map(Cow::into_owned);
            let name = self.folded(table.name.as_bytes()).map(Cow::into_owned);
            if let (Some(schema), Some(name)) = (schema, name) {
                let seen = Seen {
                    key_column: table.key_column,
                    is_not_null: table.is_not_null,
                };
                self.tables.add(schema, name, seen);
            }
        }
        if is_all {
            self.tables.end();
        }
        self
    }

    /// Gives tables of which something else holds than for all of their rule a rule of their own.
    fn add_variants(&mut self, tables: &[TableSnapshot]) {
        let mut others = Vec::new();
        for table in tables {
            let schema = self.folded(table.schema.as_bytes()).map(Cow::into_owned);
            let name = self.folded(table.name.as_bytes()).map(Cow::into_owned);
            let (Some(schema), Some(name), Some(traits)) = (schema, name, table.traits) else {
                continue;
            };
            let configured = self.matching(&schema, &name);
            let rule = configured.and_then(|configured| self.rules.get(configured));
            if let (Some(configured), Some(rule)) = (configured, rule)
                && rule.traits() != traits
            {
                others.push(((configured, traits), schema, name));
            }
        }
        // The same variants stand in the same places, whichever tables have them.
        let variants: BTreeSet<(usize, TableTraits)> =
            others.iter().map(|(variant, ..)| *variant).collect();
        self.variants = variants.into_iter().collect();
        let first = self.rules.len();
        for (configured, traits) in &self.variants {
            let rule = self
                .rules
                .get(*configured)
                .map(|rule| rule.of_table(*traits));
            self.rules.extend(rule);
        }
        for (variant, schema, name) in others {
            if let Ok(at) = self.variants.binary_search(&variant) {
                let of_name = self.named.entry(name).or_default();
                of_name.entry(schema).or_insert(first + at);
            }
        }
    }

    /// With tables, by schema and name, that get no keys: they have ids of their own which are still to be given, or keys by another rule.
    #[must_use]
    pub fn with_ahead<'a>(mut self, tables: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        for (schema, name) in tables {
            let rule = self.find(schema.as_bytes(), name.as_bytes());
            // Native inserts are not in question.
            let Some((rule, _)) = rule.filter(|(_, rule)| rule.mode == Mode::Rewrite) else {
                continue;
            };
            let schema = self.folded(schema.as_bytes()).map(Cow::into_owned);
            let name = self.folded(name.as_bytes()).map(Cow::into_owned);
            if let (Some(schema), Some(name)) = (schema, name) {
                self.ahead.add(self.configured(rule), schema, name);
            }
        }
        self
    }

    /// With why such tables get none where no switch puts them right, as clients are told: each table's schema and name, and the reason.
    #[must_use]
    pub fn with_reasons<'a>(
        mut self,
        tables: impl Iterator<Item = ((&'a str, &'a str), &'a str)>,
    ) -> Self {
        for ((schema, name), reason) in tables {
            if let Some((rule, _)) = self.find(schema.as_bytes(), name.as_bytes()) {
                let rule = self.configured(rule);
                self.ahead.add_reason(rule, reason);
            }
        }
        self
    }

    /// Why a table of a rule gets no keys, where no switch puts it right.
    pub(crate) fn reason_ahead(&self, index: usize) -> Option<&str> {
        self.ahead.reason(self.configured(index))
    }

    /// Whether a table is one of these, or a view of a rule of which one is.
    pub(crate) fn is_ahead(&self, index: usize, schema: &[u8], name: &[u8]) -> bool {
        if self.ahead.is_empty() {
            return false;
        }
        if self.view(index).is_some() {
            return self.has_ahead(index);
        }
        let name = self.folded(schema).zip(self.folded(name));
        name.is_none_or(|(schema, name)| self.ahead.has(&schema, &name))
    }

    /// Whether a rule has one of these.
    pub(crate) fn has_ahead(&self, index: usize) -> bool {
        !self.ahead.is_empty() && self.ahead.has_rule(self.configured(index))
    }

    /// Whether these tables are others.
    pub(crate) fn has_others_ahead(&self, other: &Rules) -> bool {
        self.ahead != other.ahead
    }

    /// With the counts of changed tables that all connections share.
    #[must_use]
    pub fn with_schema(mut self, schema: Arc<SchemaChanges>) -> Self {
        self.schema = schema;
        self
    }

    /// As a version of rules that may change while connections follow them. `admissions` is by configured rule.
    #[must_use]
    pub fn with_traffic(
        mut self,
        traffic: &Arc<Traffic>,
        version: u64,
        admissions: &[RuleAdmission],
    ) -> Self {
        // Every name that a pattern matches contains the pattern's plain parts.
        let written = |rule: &'_ Rule| {
            let parts = rule.table.table().split(['*', '?']);
            parts.max_by_key(|part| part.len()).map(str::to_owned)
        };
        let tables: Vec<Option<String>> = self
            .rules
            .iter()
            .take(self.matchers.len())
            .map(|rule| written(rule).filter(|part| !self.lower_case && is_in_texts(part)))
            .collect();
        let tables = tables
            .iter()
            .map(|table| table.as_deref().map(str::as_bytes));
        let admissions = Admissions::new(traffic, version, admissions.iter().zip(tables));
        self.admissions = Some(admissions);
        self
    }

    pub(crate) fn admissions(&self) -> Option<&Admissions> {
        self.admissions.as_ref()
    }

    /// Whether the same rules stand in the same places, whatever they do.
    pub(crate) fn is_same_list(&self, other: &Rules) -> bool {
        let name = |rule: &Rule| (rule.table.clone(), rule.column.clone(), rule.form);
        self.views == other.views
            && self.variants == other.variants
            && self.lower_case == other.lower_case
            && self.rules.iter().map(name).eq(other.rules.iter().map(name))
    }

    /// The counts of changed tables that all connections share.
    pub(crate) fn schema(&self) -> &SchemaChanges {
        &self.schema
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// All of them: the configured ones, then one for each view, then those of tables of which something else holds.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The configured rule that one is or comes from.
    pub fn configured(&self, index: usize) -> usize {
        let of_view = self.view(index).map(|view| view.rule);
        let variant = || index.checked_sub(self.matchers.len() + self.views.len());
        let of_variant = || Some(self.variants.get(variant()?)?.0);
        of_view.or_else(of_variant).unwrap_or(index)
    }

    /// Why nothing can be rewritten for a rule, if it is one for such a view.
    pub fn unsupported(&self, index: usize) -> Option<Unsupported> {
        match self.view(index)?.key {
            ViewKey::Column(_) => None,
            ViewKey::Unsupported(what) => Some(Unsupported::View(what)),
        }
    }

    /// The view that a rule is for.
    pub fn view(&self, index: usize) -> Option<&View> {
        self.views.get(index.checked_sub(self.matchers.len())?)
    }

    /// The rule for a table, and its index.
    pub fn find(&self, schema: &[u8], table: &[u8]) -> Option<(usize, &Rule)> {
        let (schema, table) = (self.folded(schema)?, self.folded(table)?);
        let named = self.named.get(&*table).and_then(|of| of.get(&*schema));
        let index = named.copied().or_else(|| self.matching(&schema, &table))?;
        Some((index, self.rules.get(index)?))
    }

    /// Which of the configured rules is the first for a table's name as it is compared.
    fn matching(&self, schema: &[u8], table: &[u8]) -> Option<usize> {
        let mut matchers = self.matchers.iter();
        matchers.position(|matcher| matcher.matches_schema(schema) && matcher.matches_table(table))
    }

    /// Whether a table of that name could have a rule, in that schema or, if it is not named, in any.
    pub fn may_match(&self, schema: Option<&[u8]>, table: &[u8]) -> bool {
        let Some(table) = self.folded(table) else {
            return false;
        };
        let schema = schema.map(|schema| self.folded(schema));
        let may_be_named = self.named.get(&*table).is_some_and(|of| match &schema {
            None => true,
            Some(None) => false,
            Some(Some(schema)) => of.contains_key(&**schema),
        });
        may_be_named
            || self.matchers.iter().any(|matcher| {
                matcher.matches_table(&table)
                    && match &schema {
                        None => true,
                        Some(None) => false,
                        Some(Some(schema)) => matcher.matches_schema(schema),
                    }
            })
    }

    /// What was found of a table that a rule matches.
    pub fn key_column_state(&self, schema: &[u8], table: &[u8]) -> KeyColumnState {
        match self.folded(schema).zip(self.folded(table)) {
            Some((schema, table)) => self.tables.of(&schema, &table),
            None => KeyColumnState::Present,
        }
    }

    /// Whether the key column of such a table is NOT NULL, if that is known.
    pub fn is_not_null(&self, schema: &[u8], table: &[u8]) -> Option<bool> {
        let (schema, table) = self.folded(schema).zip(self.folded(table))?;
        self.tables.is_not_null(&schema, &table)
    }

    /// Whether two names are the same table name to this server.
    pub fn same_name(&self, one: &[u8], other: &[u8]) -> bool {
        let fold = |name| names::folded(name, self.lower_case);
        // A temporary table has the name that it was given, and hides no other.
        one == other || fold(one).is_some_and(|one| fold(other) == Some(one))
    }

    /// A name as rules are compared with it; none if it cannot match any.
    fn folded<'a>(&self, name: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        names::folded(name, self.lower_case).map(names::behind)
    }
}

/// Whether a statement that names a table has this part of its name in it as it is here: beyond ASCII the bytes are others in other
/// character sets.
fn is_in_texts(part: &str) -> bool {
    !part.is_empty() && part.is_ascii()
}

#[cfg(test)]
mod tests;
