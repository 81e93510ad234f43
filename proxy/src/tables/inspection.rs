//! What an inspection of a server's tables finds.

use keywright_session::{Rule, Rules, SeenTable, View};

use super::counting::Counting;

/// What was found about the tables of rules on one server.
#[derive(Debug, Default)]
pub struct Inspection {
    /// What forbids starting.
    pub errors: Vec<String>,
    /// Tables that get no keys, or not all that a rule gives, and why.
    pub left_out: Vec<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// What the operator should know before the rules are in force.
    pub notes: Vec<String>,
    /// By rule: whether a table here has its column. Empty where nobody looked.
    pub matched: Vec<bool>,
    /// What sessions must know.
    pub seen: TableFacts,
    /// Tables of rules with `fence = true` that have none.
    pub unfenced: u64,
    /// How far the server's own ids have come, where rules observe.
    pub counting: Counting,
}

/// What sessions must know of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableFacts {
    /// By rule: whether a trigger on a matching table runs before rows go in.
    pub watched: Vec<bool>,
    /// By rule: whether a statement that fails leaves nothing behind: all matching tables are InnoDB without triggers, and no
    /// view calls functions.
    pub repeatable: Vec<bool>,
    /// By rule: whether no key column of a matching table is UNSIGNED.
    pub signed: Vec<bool>,
    /// The views through which rows go into tables with rules.
    pub views: Vec<View>,
    /// Tables and other views that match a rule.
    pub tables: Vec<SeenTable>,
    /// Whether there are no others.
    pub has_all: bool,
    /// Whether the server compares names of schemas and tables without case (`lower_case_table_names`).
    pub lower_case: bool,
}

impl TableFacts {
    /// The configured rules, in their order, as sessions of this server are to follow them.
    pub fn rules(&self, configured: impl Iterator<Item = Rule>) -> Rules {
        let of = |by_rule: &[bool], index: usize| by_rule.get(index).copied().unwrap_or(false);
        let rules = configured.enumerate().map(|(index, rule)| Rule {
            watched: of(&self.watched, index),
            repeatable: of(&self.repeatable, index),
            is_signed: of(&self.signed, index),
            ..rule
        });
        Rules::new(rules.collect(), self.lower_case)
            .with_views(&self.views)
            .with_tables(&self.tables, self.has_all)
    }
}
