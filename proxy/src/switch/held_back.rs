//! The tables that get no keys, from one look at the servers to the next: pure.

use std::collections::{BTreeMap, BTreeSet};

use keywright_store::switch::RuleName;

/// A server's identity, and a table of it as it is quoted.
pub(super) type ServerTable = (String, String);

/// What puts a table right that gets no keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The switch is repeated, and keys go on above its ids.
    Switch,
    /// This statement: no key is above its ids.
    Statement(String),
    /// Other rules in a file, as this says.
    Rules(String),
    /// The next look: the table's ids could not be read.
    Look,
}

impl Remedy {
    /// Why the table gets no keys, for its clients, where no switch helps.
    pub(super) fn told(&self) -> Option<String> {
        match self {
            Self::Switch => None,
            Self::Statement(statement) => Some(format!(
                "it has no fence, and has got ids without it, which hidden keys may meet; if all of them are keys of its tag: {statement}"
            )),
            Self::Rules(why) => Some(why.clone()),
            Self::Look => Some(
                "it came with a fence, and which ids it has cannot be read now (a lock, or a limit of statements); that is tried again"
                    .to_owned(),
            ),
        }
    }
}

/// A table that gets no keys until it was put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldTable {
    pub(super) rule: RuleName,
    pub(super) remedy: Remedy,
}

/// What one look has found on the servers that could be looked at.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Their identities.
    pub(super) servers: BTreeSet<String>,
    /// Whether all listeners lead to them, so that no other server is known.
    pub(super) is_all: bool,
    pub(super) tables: BTreeMap<ServerTable, HeldTable>,
}

/// What is known of such tables.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    tables: BTreeMap<ServerTable, HeldTable>,
    /// The rules that have some on servers that could be looked at last, and are to be switched once more for them.
    repeated: BTreeSet<RuleName>,
}

impl HeldBack {
    /// A look begins. Until it has ended no switch is repeated: that takes all servers, and one that keeps the look from its end would keep the
    /// switch from it, too, while statements wait.
    pub(super) fn begin_look(&mut self) {
        self.repeated.clear();
    }

    /// A look has ended. Of servers that could not be looked at nothing more is known than before, and a switch is not repeated for their
    /// tables. Nor is it for such as another rule gives keys: these would be taken from it.
    pub(super) fn learn(&mut self, found: Found) {
        let Found {
            servers,
            is_all,
            tables,
        } = found;
        let repeated = tables.values().filter(|its| match its.remedy {
            Remedy::Switch | Remedy::Statement(_) => true,
            Remedy::Rules(_) | Remedy::Look => false,
        });
        self.repeated = repeated.map(|its| its.rule.clone()).collect();
        self.tables
            .retain(|(server, _), _| !is_all && !servers.contains(server));
        self.tables.extend(tables);
    }

    /// The rules whose switch puts tables right.
    pub(super) fn repeated(&self) -> &BTreeSet<RuleName> {
        &self.repeated
    }

    /// Whether a table is one of these, and that not only because its ids could not be read.
    pub(super) fn has(&self, table: &ServerTable) -> bool {
        let known = self.tables.get(table);
        known.is_some_and(|known| known.remedy != Remedy::Look)
    }

    /// What holds a table whose ids cannot be read: what did before, and where keys are about to begin (`begins`), that they cannot be read.
    pub(super) fn unread(
        &self,
        table: &ServerTable,
        rule: &RuleName,
        begins: bool,
    ) -> Option<HeldTable> {
        let known = self.tables.get(table).cloned();
        known.or_else(|| {
            begins.then(|| HeldTable {
                rule: rule.clone(),
                remedy: Remedy::Look,
            })
        })
    }

    /// Whether this is known of a table.
    pub(super) fn knows(&self, table: &ServerTable, remedy: &Remedy) -> bool {
        let known = self.tables.get(table);
        known.is_some_and(|known| known.remedy == *remedy)
    }

    /// Whether a rule has tables, wherever, that its switch puts right.
    pub(super) fn has_rule(&self, rule: &RuleName) -> bool {
        let mut tables = self.tables.values();
        tables.any(|its| its.rule == *rule && its.remedy == Remedy::Switch)
    }

    /// Whether another rule in force gives keys to one of these.
    pub(super) fn has_of_others(&self) -> bool {
        let mut tables = self.tables.values();
        tables.any(|its| matches!(its.remedy, Remedy::Rules(_)))
    }

    /// The statements that put tables right.
    pub(super) fn mends(&self) -> BTreeSet<&str> {
        let tables = self.tables.values();
        let statements = tables.filter_map(|its| match &its.remedy {
            Remedy::Statement(statement) => Some(statement.as_str()),
            Remedy::Switch | Remedy::Rules(_) | Remedy::Look => None,
        });
        statements.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use keywright_store::switch::RuleName;

    use super::{Found, HeldBack, HeldTable, Remedy, ServerTable};

    fn rule(tables: &str) -> RuleName {
        RuleName {
            tables: tables.to_owned(),
            column: "id".to_owned(),
        }
    }

    fn table(server: &str, table: &str) -> ServerTable {
        (server.to_owned(), table.to_owned())
    }

    /// The rule of a table has its name.
    fn found(servers: &[&str], is_all: bool, tables: &[(&str, &str)]) -> Found {
        let ahead = |name: &str| HeldTable {
            rule: rule(name),
            remedy: Remedy::Switch,
        };
        let tables = tables.iter();
        Found {
            servers: servers.iter().map(ToString::to_string).collect(),
            is_all,
            tables: tables
                .map(|(server, name)| (table(server, name), ahead(name)))
                .collect(),
        }
    }

    /// All of them are put right by this.
    fn with(remedy: &Remedy, mut found: Found) -> Found {
        for its in found.tables.values_mut() {
            its.remedy = remedy.clone();
        }
        found
    }

    fn repeated(held_back: &HeldBack) -> Vec<&str> {
        let rules = held_back.repeated().iter();
        rules.map(|rule| rule.tables.as_str()).collect()
    }

    #[test]
    fn what_was_put_right_is_not_repeated_while_another_server_fails() {
        let mut held_back = HeldBack::default();
        held_back.learn(found(&["a", "b"], true, &[("a", "one"), ("b", "two")]));
        assert_eq!(repeated(&held_back), ["one", "two"]);
        // The one has its fence, and of the other nothing is known: it gets no keys, and the switch would fail there, too.
        held_back.learn(found(&["a"], false, &[]));
        assert_eq!(repeated(&held_back), [""; 0]);
        assert!(!held_back.has(&table("a", "one")));
        assert!(held_back.has(&table("b", "two")));
        assert!(held_back.has_rule(&rule("two")));
        assert!(!held_back.has_rule(&rule("one")));
        // It can be looked at again.
        held_back.learn(found(&["a", "b"], true, &[("b", "two")]));
        assert_eq!(repeated(&held_back), ["two"]);
        held_back.learn(found(&["a", "b"], true, &[]));
        assert!(!held_back.has(&table("b", "two")));
        assert_eq!(repeated(&held_back), [""; 0]);
    }

    #[test]
    fn a_look_that_does_not_end_repeats_nothing_and_frees_no_table() {
        let mut held_back = HeldBack::default();
        held_back.learn(found(&["a"], true, &[("a", "one")]));
        held_back.begin_look();
        assert_eq!(repeated(&held_back), [""; 0]);
        assert!(held_back.has(&table("a", "one")));
    }

    #[test]
    fn a_server_that_another_has_replaced_is_forgotten() {
        let mut held_back = HeldBack::default();
        held_back.learn(found(&["a"], true, &[("a", "one")]));
        held_back.learn(found(&[], false, &[]));
        assert!(held_back.has(&table("a", "one")), "it is away");
        held_back.learn(found(&["b"], true, &[]));
        assert!(!held_back.has(&table("a", "one")));
    }

    #[test]
    fn a_table_is_told_again_when_something_else_puts_it_right() {
        let mut held_back = HeldBack::default();
        let statement = Remedy::Statement("ALTER TABLE one".to_owned());
        held_back.learn(with(&statement, found(&["a"], true, &[("a", "one")])));
        let one = table("a", "one");
        assert!(held_back.knows(&one, &statement));
        assert!(!held_back.knows(&one, &Remedy::Switch));
        assert!(!held_back.knows(&table("b", "one"), &Remedy::Switch));
        assert_eq!(held_back.mends(), BTreeSet::from(["ALTER TABLE one"]));
        assert_eq!(repeated(&held_back), ["one"]);
    }

    /// Nobody knows that keys may meet its ids, and the switch takes all tables of the rule.
    #[test]
    fn no_switch_is_repeated_for_a_table_that_is_locked() {
        let mut held_back = HeldBack::default();
        let (one, its) = (table("a", "one"), rule("one"));
        assert_eq!(held_back.unread(&one, &its, false), None);
        let held = held_back.unread(&one, &its, true).unwrap();
        assert_eq!(held.remedy, Remedy::Look);
        held_back.learn(with(&held.remedy, found(&["a"], true, &[("a", "one")])));
        assert_eq!(repeated(&held_back), [""; 0]);
        // Once its ids can be read, they say whether it gets keys.
        assert!(!held_back.has(&one));
        assert_eq!(held_back.unread(&one, &its, false), Some(held));
        // One that has such ids goes on having them.
        held_back.learn(found(&["a"], true, &[("a", "one")]));
        let held = held_back.unread(&one, &its, false);
        assert_eq!(held.map(|its| its.remedy), Some(Remedy::Switch));
    }

    /// The switch would take it from the other rule, by which other programs give it keys.
    #[test]
    fn no_switch_is_repeated_for_a_table_that_has_keys_by_another_rule() {
        let mut held_back = HeldBack::default();
        let rules = Remedy::Rules("it has keys by another rule".to_owned());
        held_back.learn(with(&rules, found(&["a"], true, &[("a", "one")])));
        let one = table("a", "one");
        assert!(held_back.has(&one) && held_back.has_of_others());
        assert_eq!(repeated(&held_back), [""; 0]);
        assert!(held_back.mends().is_empty());
        // A look that fails frees it no more than any other.
        held_back.begin_look();
        held_back.learn(found(&[], false, &[]));
        assert!(held_back.has(&one));
        // The other rule is native: its ids are still to be given.
        held_back.learn(found(&["a"], true, &[("a", "one")]));
        assert_eq!(repeated(&held_back), ["one"]);
        assert!(!held_back.has_of_others());
    }
}
