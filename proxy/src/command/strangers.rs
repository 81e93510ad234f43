//! Writers past this program: ids that tables of observing rules have made, and that no statement of its clients asked for.

use std::collections::{BTreeMap, BTreeSet};

use keywright_proxy::config::Config;
use keywright_proxy::metrics::{Counters, Native};
use keywright_proxy::tables::{Count, Counting};

/// What is known from earlier looks.
#[derive(Default)]
pub(super) struct Strangers {
    /// By server and table: the next id.
    next: BTreeMap<(String, String), u64>,
    /// By the rule's name.
    rules: BTreeMap<String, Known>,
}

#[derive(Default)]
struct Known {
    native: Native,
    /// Ids that statements may still make that have gone by before.
    under_way: u64,
    ids: u64,
    first: String,
}

/// Ids of one rule that were made between two looks.
#[derive(Default)]
struct Made {
    ids: u64,
    tables: BTreeSet<String>,
    at: String,
    accounts: Vec<String>,
    own_host: String,
}

impl Strangers {
    /// Forgets how far ids had come: tables may have gone over to keys meanwhile, and back.
    pub(super) fn forget(&mut self) {
        self.next.clear();
    }

    /// What has come otherwise since the last look, for people, and counted.
    pub(super) fn learn(
        &mut self,
        config: &Config,
        looked: &[&Counting],
        counters: &Counters,
    ) -> Vec<String> {
        let mut made: BTreeMap<usize, Made> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for counting in looked
            .iter()
            .filter(|counting| seen.insert(&counting.server))
        {
            for Count { rule, table, next } in &counting.counts {
                let key = (counting.server.clone(), table.clone());
                let before = self.next.insert(key, *next);
                let its = made.entry(*rule).or_default();
                its.at.clone_from(&counting.at);
                let ids = before.map_or(0, |before| next.saturating_sub(before));
                if ids > 0 {
                    its.ids = its.ids.saturating_add(ids);
                    its.tables.insert(table.clone());
                    its.accounts.clone_from(&counting.accounts);
                    its.own_host.clone_from(&counting.own_host);
                }
            }
        }
        let rules = made.into_iter();
        let told = rules.filter_map(|(rule, made)| {
            let name = config.rules.get(rule)?.name();
            self.judge(&name, made, counters)
        });
        told.collect()
    }

    fn judge(&mut self, rule: &str, made: Made, counters: &Counters) -> Option<String> {
        let known = self.rules.entry(rule.to_owned()).or_default();
        // Behind the look: what it has seen was counted before.
        let native = counters.native(rule);
        let went_by = native.ids_max.saturating_sub(known.native.ids_max);
        // Of connections that nobody reads nothing is known.
        let is_known = native.unknown == known.native.unknown && counters.traffic.unread() == 0;
        known.native = native;
        let may_be = went_by.saturating_add(known.under_way);
        let strange = match is_known {
            true => made.ids.saturating_sub(may_be),
            false => 0,
        };
        // Of those that went by long ago none is under way.
        known.under_way = went_by.min(may_be.saturating_sub(made.ids));
        if strange == 0 {
            if known.ids == 0 {
                known.first = made.at;
            }
            return None;
        }
        known.ids = known.ids.saturating_add(strange);
        counters.strange_ids(rule, strange);
        let Made {
            tables,
            at,
            accounts,
            own_host,
            ..
        } = made;
        Some(format!(
            "about {} ids of {} since {} UTC, the last before {at}, came by no INSERT through this program (those of procedures and triggers \
             count as none): behind the fence such an INSERT fails. Accounts that the server knows, with their connections: {}; this program \
             comes from {own_host}",
            known.ids,
            tables.into_iter().collect::<Vec<_>>().join(", "),
            known.first,
            accounts.join(", "),
        ))
    }
}

#[cfg(test)]
mod tests {
    use keywright_session::{Event, What};

    use super::*;

    fn looked(server: &str, next: u64) -> Counting {
        Counting {
            server: server.to_owned(),
            at: format!("then {next}"),
            counts: vec![Count {
                rule: 0,
                table: "d.t".to_owned(),
                next,
            }],
            accounts: vec!["batch@there (3)".to_owned()],
            own_host: "here".to_owned(),
        }
    }

    #[test]
    fn ids_that_nothing_went_by_for_are_told() {
        let text = "[store]\nurl = \"mysql://k@127.0.0.1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"\n\
                    [[rule]]\ntable = \"d.t\"\ncolumn = \"id\"\nkey = \"segment:t\"\nmode = \"observe\"\nfence = true\n";
        let config = Config::parse(text).unwrap();
        let counters = Counters::default();
        let tally = counters.tally(["d.t.id"].into_iter());
        let goes_by = |ids| {
            let what = What::Native(ids);
            tally.note(&mut vec![Event {
                rule: Some(0),
                what,
            }]);
        };
        let mut strangers = Strangers::default();
        let mut told = |next: u64| {
            // The same server behind two listeners.
            let looked = [looked("one", next), looked("one", next)];
            strangers.learn(&config, &looked.each_ref(), &counters)
        };
        assert!(told(100).is_empty());
        goes_by(Some(10));
        assert!(told(110).is_empty());
        // Some of it is still under way.
        goes_by(Some(10));
        assert!(told(112).is_empty());
        assert!(told(120).is_empty());
        let strange = told(123).join("");
        assert!(
            strange.contains("about 3 ids of d.t since then 120 UTC, the last before then 123"),
            "{strange}"
        );
        assert!(
            strange.contains("batch@there (3); this program comes from here"),
            "{strange}"
        );
        // Nobody knows how many of these there were.
        goes_by(None);
        assert!(told(200).is_empty());
        assert!(told(201).join("").contains("about 4 ids"));
        assert!(told(201).is_empty());
        // A counter that was set back.
        assert!(told(50).is_empty());
        assert!(
            counters
                .render(&[])
                .contains("keywright_ids_unseen_total{rule=\"d.t.id\"} 4\n")
        );
        // Tables that were switched meanwhile begin anew.
        strangers.forget();
        let looked = [&looked("one", 9_000)];
        assert!(strangers.learn(&config, &looked, &counters).is_empty());
    }
}
