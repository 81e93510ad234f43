//! Rules: which column of which tables gets keys.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use keywright_rewrite::Unsupported;

use crate::server::schema::SchemaChanges;
use admissions::{Admissions, RuleAdmission};
use traffic::Traffic;

pub(crate) mod admissions;
mod lookup;
mod pattern;
mod rule;
mod table_snapshots;
pub(crate) mod traffic;

use pattern::Matcher;
pub use pattern::{Pattern, PatternError};
pub use rule::{Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Rule, View, ViewKey};
use table_snapshots::{Ahead, TableSnapshots};
pub use table_snapshots::{KeyColumnState, TableSnapshot};

/// All rules of a listener. The first that matches is in force, but for views that are known: theirs is that of the table behind
/// them.
pub struct Rules {
    /// The configured ones, then one for each view.
    rules: Vec<Rule>,
    /// Of the configured ones.
    matchers: Vec<Matcher>,
    views: Vec<View>,
    /// Of the views, by name and schema as they are compared: which.
    view_names: HashMap<Vec<u8>, HashMap<Vec<u8>, usize>>,
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
                text.to_lowercase()
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
            view_names: HashMap::new(),
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
            let of_name = self.view_names.entry(name).or_default();
            of_name.insert(schema, self.rules.len());
            self.rules.push(rule);
            self.views.push(view.clone());
        }
        self
    }

    /// With what the last schema refresh found of tables. The session asks before each statement on a table that lacks the column of its
    /// rule. If all tables are given (`is_all`), it asks of every other table too, until that has the column.
    #[must_use]
    pub fn with_tables(mut self, tables: &[TableSnapshot], is_all: bool) -> Self {
        for table in tables {
            let schema = self.folded(table.schema.as_bytes()).map(Cow::into_owned);
            let name = self.folded(table.name.as_bytes()).map(Cow::into_owned);
            if let (Some(schema), Some(name)) = (schema, name) {
                self.tables.add(schema, name, table.key_column);
            }
        }
        if is_all {
            self.tables.end();
        }
        self
    }

    /// With tables, by schema and name, that have no fence and ids of their own which are still to be given: they get no keys.
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
            .map(|rule| written(rule).filter(|part| !self.lower_case && !part.is_empty()))
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

    /// All of them: the configured ones, then one for each view.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The configured rule that one is or comes from.
    pub fn configured(&self, index: usize) -> usize {
        self.view(index).map_or(index, |view| view.rule)
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
        let of_view = self.view_names.get(&*table).and_then(|of| of.get(&*schema));
        let index = of_view.copied().or_else(|| {
            self.matchers.iter().position(|matcher| {
                matcher.matches_schema(&schema) && matcher.matches_table(&table)
            })
        })?;
        Some((index, self.rules.get(index)?))
    }

    /// Whether a table of that name could have a rule, in that schema or, if it is not named, in any.
    pub fn may_match(&self, schema: Option<&[u8]>, table: &[u8]) -> bool {
        let Some(table) = self.folded(table) else {
            return false;
        };
        let schema = schema.map(|schema| self.folded(schema));
        let may_be_view = self
            .view_names
            .get(&*table)
            .is_some_and(|of| match &schema {
                None => true,
                Some(None) => false,
                Some(Some(schema)) => of.contains_key(&**schema),
            });
        may_be_view
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

    /// Whether two names are the same table name to this server.
    pub fn same_name(&self, one: &[u8], other: &[u8]) -> bool {
        let is_same = |one| self.folded(other) == Some(one);
        one == other || self.folded(one).is_some_and(is_same)
    }

    /// A name as rules are compared with it; none if it cannot match any.
    fn folded<'a>(&self, name: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if !self.lower_case {
            return Some(Cow::Borrowed(name));
        }
        let name = std::str::from_utf8(name).ok()?;
        Some(Cow::Owned(name.to_lowercase().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use keywright_rewrite::KeyForm;

    use super::{
        KeyColumnState, Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, PatternError,
        Rule, Rules, TableSnapshot, View, ViewKey,
    };

    fn rules(pattern: &str, lower_case: bool) -> Result<Rules, PatternError> {
        let rule = Rule {
            table: Pattern::parse(pattern)?,
            column: "id".to_owned(),
            form: KeyForm::Integer,
            on_explicit: OnExplicit::Keep,
            on_unsupported: OnUnsupported::Refuse,
            on_ambiguous_id: OnAmbiguousId::First,
            mode: Mode::Rewrite,
            bits_max: 63,
            keys_max: u64::MAX,
            watched: false,
            repeatable: false,
            is_signed: false,
        };
        Ok(Rules::new(vec![rule], lower_case))
    }

    fn matches(rules: &Rules, schema: &str, table: &[u8]) -> bool {
        let found = rules.find(schema.as_bytes(), table).is_some();
        assert_eq!(found, rules.may_match(Some(schema.as_bytes()), table));
        found
    }

    #[test]
    fn names_are_compared_as_the_server_compares_them() -> Result<(), PatternError> {
        for pattern in ["Shop_*.Größe", "Shop_1.Gr*e"] {
            let exact = rules(pattern, false)?;
            assert!(matches(&exact, "Shop_1", "Größe".as_bytes()));
            assert!(!matches(&exact, "shop_1", "Größe".as_bytes()));
            assert!(!matches(&exact, "Shop_1", "GRÖßE".as_bytes()));
            assert!(!exact.same_name("Größe".as_bytes(), "GRÖßE".as_bytes()));
            let folded = rules(pattern, true)?;
            assert!(folded.same_name("Größe".as_bytes(), "GRÖßE".as_bytes()));
            assert!(!folded.same_name("Größe".as_bytes(), "Große".as_bytes()));
            assert!(matches(&folded, "SHOP_1", "GRÖßE".as_bytes()));
            assert!(!matches(&folded, "shop", "größe".as_bytes()));
        }
        Ok(())
    }

    #[test]
    fn names_that_are_no_text_match_nothing() -> Result<(), PatternError> {
        for lower_case in [false, true] {
            for pattern in ["*.*", "shop.*", "shop.t"] {
                let rules = rules(pattern, lower_case)?;
                assert!(!matches(&rules, "shop", b"t\xff"));
                assert!(rules.same_name(b"t\xff", b"t\xff"));
                assert!(!rules.same_name(b"t\xff", b"t\xfe"));
            }
        }
        Ok(())
    }

    #[test]
    fn tables_that_were_seen_are_known_by_name() -> Result<(), PatternError> {
        let tables = [
            ("Orders", KeyColumnState::Present),
            ("Short", KeyColumnState::TooNarrow),
            ("Log", KeyColumnState::Missing),
        ]
        .map(|(name, key_column)| TableSnapshot {
            schema: "Shop".to_owned(),
            name: name.to_owned(),
            key_column,
        });
        for (lower_case, is_all) in [(false, false), (false, true), (true, true)] {
            let rules = rules("S*.*", lower_case)?.with_tables(&tables, is_all);
            // Else nobody looked for others.
            let other = [KeyColumnState::Present, KeyColumnState::NoTable][usize::from(is_all)];
            assert_eq!(rules.key_column_state(b"Shop", b"new"), other);
            assert_eq!(rules.key_column_state(b"Sales", b"Log"), other);
            for table in &tables {
                let name = table.name.as_bytes();
                assert_eq!(rules.key_column_state(b"Shop", name), table.key_column);
                let in_other_case = rules.key_column_state(b"SHOP", &name.to_ascii_uppercase());
                let expected = if lower_case { table.key_column } else { other };
                assert_eq!(in_other_case, expected);
            }
        }
        Ok(())
    }

    #[test]
    fn views_have_the_rule_of_the_table_behind_them() -> Result<(), PatternError> {
        let view = |name: &str, key| View {
            schema: "Shop".to_owned(),
            name: name.to_owned(),
            rule: 0,
            key,
        };
        let views = [
            view("Shown", ViewKey::Column("nr".to_owned())),
            view("t1", ViewKey::Unsupported("that does not show the key")),
        ];
        for lower_case in [false, true] {
            let rules = rules("Shop.t*", lower_case)?.with_views(&views);
            let found = |table: &str| {
                let (index, rule) = rules.find(b"Shop", table.as_bytes())?;
                assert!(rules.may_match(Some(b"Shop"), table.as_bytes()));
                assert!(rules.may_match(None, table.as_bytes()));
                assert_eq!(rules.configured(index), 0);
                Some((rule.column.clone(), rules.unsupported(index).is_some()))
            };
            assert_eq!(found("t"), Some(("id".to_owned(), false)));
            assert_eq!(found("Shown"), Some(("nr".to_owned(), false)));
            // The name matches the rule's pattern as well.
            assert_eq!(found("t1"), Some(("id".to_owned(), true)));
            assert_eq!(found("SHOWN").is_some(), lower_case);
            assert!(!matches(&rules, "other", b"Shown"));
        }
        Ok(())
    }
}
