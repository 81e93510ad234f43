//! How far ids have come in the tables of an attempt: pure.

use std::collections::{BTreeMap, BTreeSet};

use super::fenced::FencedTable;
use super::space::KeySpace;
use super::state::{Recorded, RuleName};

/// Server, schema and name.
type Place = (String, String, String);

/// How far the ids of tables have come, by the keys that these go over to: the ids of one tag's tables are nothing to another tag.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    tables: BTreeMap<Place, BTreeSet<KeySpace>>,
    /// Those that have their fence.
    fenced: BTreeMap<Place, (RuleName, KeySpace)>,
    rows: BTreeMap<KeySpace, u64>,
    /// The same of tables alone that do not have such keys yet.
    rows_before: BTreeMap<KeySpace, u64>,
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

    /// It has its fence by that rule.
    pub fn add_fenced(&mut self, table: FencedTable) {
        let FencedTable {
            server,
            schema,
            table,
            rule,
            keys,
        } = table;
        self.fenced.insert((server, schema, table), (rule, keys));
    }

    /// Those that have, each once.
    #[must_use]
    pub fn fenced(&self) -> Vec<FencedTable> {
        let fenced = self.fenced.iter();
        fenced
            .map(|((server, schema, table), (rule, keys))| FencedTable {
                server: server.clone(),
                schema: schema.clone(),
                table: table.clone(),
                rule: rule.clone(),
                keys: keys.clone(),
            })
            .collect()
    }

    /// The first id above the rows of a table that goes over to these keys, or has them already (`has_keys`).
    pub fn add_rows(&mut self, keys: &KeySpace, first: u64, has_keys: bool) {
        let raise = |rows: &mut BTreeMap<KeySpace, u64>| {
            let rows = rows.entry(keys.clone()).or_default();
            *rows = first.max(*rows);
        };
        raise(&mut self.rows);
        if !has_keys {
            raise(&mut self.rows_before);
        }
    }

    /// The first id above all that the tables of these keys have, or have had. The counter of a table that nothing is known of
    /// counts for all keys.
    #[must_use]
    pub fn first(&self, keys: &KeySpace, recorded: &[Recorded]) -> u64 {
        self.highest(keys, recorded.iter(), &self.rows)
    }

    /// The same without what are these keys themselves: the first id above all that servers have made, and above all rows that tables had
    /// before. Behind a fence a server has made none.
    #[must_use]
    pub fn first_of_others(&self, keys: &KeySpace, recorded: &[Recorded]) -> u64 {
        let made = recorded.iter().filter(|its| !its.was_fenced);
        self.highest(keys, made, &self.rows_before)
    }

    fn highest<'a>(
        &self,
        keys: &KeySpace,
        recorded: impl Iterator<Item = &'a Recorded>,
        rows: &BTreeMap<KeySpace, u64>,
    ) -> u64 {
        let concerns = |its: &&Recorded| {
            let place = (its.server.clone(), its.schema.clone(), its.table.clone());
            self.tables
                .get(&place)
                .is_none_or(|tables| tables.contains(keys))
        };
        let counters = recorded.filter(concerns).map(|its| its.counter);
        let rows = rows.get(keys).copied().unwrap_or(0);
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
        reached.add_rows(&b, 90, false);
        reached.add_rows(&b, 80, false);
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

    #[test]
    fn keys_that_tables_have_already_are_told_from_other_ids() {
        let keys = space("a");
        let mut reached = Reached::default();
        for table in ["has", "comes"] {
            reached.add_table(("s", "shop", table), &keys);
        }
        reached.add_rows(&keys, 900, true);
        let fenced = Recorded {
            was_fenced: true,
            ..recorded("has", 900)
        };
        let empty = [fenced.clone(), recorded("comes", 1)];
        assert_eq!(reached.first(&keys, &empty), 900);
        assert_eq!(reached.first_of_others(&keys, &empty), 1);
        // It has lost its fence.
        let lost = [recorded("has", 900)];
        assert_eq!(reached.first_of_others(&keys, &lost), 900);
        // It has rows that came by nobody's counter.
        reached.add_rows(&keys, 30, false);
        assert_eq!(reached.first_of_others(&keys, &empty), 30);
        assert_eq!(Reached::above(7).first_of_others(&keys, &[]), 7);
    }
}
