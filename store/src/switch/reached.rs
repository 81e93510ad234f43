//! How far ids have come in the tables of an attempt: pure.

use std::collections::{BTreeMap, BTreeSet};

use super::space::KeySpace;
use super::state::Recorded;

/// How far the ids of tables have come, by the keys that these go over to: the ids of one tag's tables are nothing to another tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// By server, schema and name.
    tables: BTreeMap<(String, String, String), BTreeSet<KeySpace>>,
    rows: BTreeMap<KeySpace, u64>,
    rows_of_all: u64,
}

impl Reached {
    /// The first id above all rows, whatever keys their tables go over to.
    #[must_use]
    pub fn above(first: u64) -> Self {
        Self {
            rows_of_all: first,
            ..Self::default()
        }
    }

    /// A table whose rule goes over to these keys.
    pub fn add_table(&mut self, (server, schema, table): (&str, &str, &str), keys: &KeySpace) {
        let place = (server.to_owned(), schema.to_owned(), table.to_owned());
        self.tables.entry(place).or_default().insert(keys.clone());
    }

    /// The first id above the rows of a table that goes over to these keys.
    pub fn add_rows(&mut self, keys: &KeySpace, first: u64) {
        let rows = self.rows.entry(keys.clone()).or_default();
        *rows = first.max(*rows);
    }

    /// The first id above all that the tables of these keys have, or have had. The counter of a table that nothing is known of
    /// counts for all keys.
    #[must_use]
    pub fn first(&self, keys: &KeySpace, recorded: &[Recorded]) -> u64 {
        let concerns = |its: &&Recorded| {
            let place = (its.server.clone(), its.schema.clone(), its.table.clone());
            self.tables
                .get(&place)
                .is_none_or(|tables| tables.contains(keys))
        };
        let counters = recorded.iter().filter(concerns).map(|its| its.counter);
        let rows = self.rows.get(keys).copied().unwrap_or(0);
        counters.max().unwrap_or(0).max(rows).max(self.rows_of_all)
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;

    use super::{KeySpace, Reached, Recorded};

    fn space(tag: &str) -> KeySpace {
        KeySpace::Tag(Tag::parse(tag).unwrap())
    }

    fn recorded(table: &str, counter: u64) -> Recorded {
        Recorded {
            server: "s".to_owned(),
            schema: "shop".to_owned(),
            table: table.to_owned(),
            counter,
            was_fenced: false,
        }
    }

    #[test]
    fn ids_of_one_tags_tables_are_nothing_to_another() {
        let (a, b) = (space("a"), space("b"));
        let mut reached = Reached::default();
        reached.add_table(("s", "shop", "one"), &a);
        reached.add_table(("s", "shop", "two"), &b);
        reached.add_table(("s", "shop", "both"), &a);
        reached.add_table(("s", "shop", "both"), &b);
        reached.add_rows(&b, 90);
        reached.add_rows(&b, 80);
        let counters = [recorded("one", 50), recorded("two", 70)];
        assert_eq!(reached.first(&a, &counters), 50);
        assert_eq!(reached.first(&b, &counters), 90);
        let counters = [recorded("one", 50), recorded("both", 60)];
        assert_eq!(reached.first(&a, &counters), 60);
        // Another program may have recorded it.
        let counters = [recorded("one", 50), recorded("unheard_of", 1_000)];
        assert_eq!(reached.first(&a, &counters), 1_000);
        assert_eq!(Reached::above(7).first(&a, &[]), 7);
    }
}
