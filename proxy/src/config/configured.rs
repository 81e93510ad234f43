//! A rule, as it is once it is validated.

use std::collections::BTreeSet;

use keywright_session::{Rule, SeveralRows};
use keywright_store::{HiddenTags, KeySpec};

/// A rule, and where its keys come from.
#[derive(Debug, Clone)]
pub struct Configured {
    /// What sessions follow.
    pub rule: Rule,
    /// Where its keys come from.
    pub spec: KeySpec,
    /// Whether the fence is applied and kept.
    pub fence: bool,
    /// Whether a table that can have none is refused: the rule's tables have keys, or are to have some.
    pub needs_fence: bool,
    /// Whether its tables go over to keys and back by the switch that the store holds: their keys come from a tag of Keywright's own,
    /// or are snowflake ids.
    pub is_switched: bool,
    /// Whether statements with several rows may have keys that do not follow from the first.
    pub allows_apart: bool,
    /// Whether each key that it gives is logged.
    pub log_keys: bool,
    /// The servers on which keys are in force, where that is known; `None`: any.
    pub servers: Option<BTreeSet<String>>,
}

impl Configured {
    /// What becomes of a statement with several rows, by the keys that it gives.
    pub fn several_rows(&self, hidden: &HiddenTags) -> SeveralRows {
        let hiding = self.spec.tag().and_then(|tag| hidden.of(tag));
        match (hiding, self.allows_apart) {
            (None, _) => SeveralRows::Spaced,
            (Some(_), false) => SeveralRows::Refused,
            (Some(_), true) => SeveralRows::Apart,
        }
    }

    /// Its tables and column, as figures name it.
    pub fn name(&self) -> String {
        let table = &self.rule.table;
        format!("{}.{}.{}", table.schema(), table.table(), self.rule.column)
    }
}
