//! How far the ids of a rule's tables have come, as far as stores say: also such as no row has any more, or never had.

use keywright_session::Mode;
use keywright_store::switch::{FencedTable, InForce, RuleName, Switchboard};
use keywright_store::{KeySpec, Keys, TagListing};

use crate::config::{Config, Configured};
use crate::schema::may_share_tables;
use crate::switch::rule_name;

/// What stores say of ids that were issued.
#[derive(Debug, Default)]
pub struct Issued {
    /// The tags of all stores.
    tags: Vec<TagListing>,
    /// All rules whose tables were ever switched; `None`: the store has not said.
    rules: Option<Vec<InForce>>,
    /// Tables that have their fence by a rule, also by one of which it was said since that its tables are native.
    fenced: Vec<FencedTable>,
    /// The first snowflake id above all that may have been issued.
    first_free_snowflake: u64,
}

/// The same of the tables of one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OfRule {
    /// The largest id that may have been issued; `None`: nothing is known.
    pub(super) largest: Option<u64>,
    /// Where keys come from of which no store says how far they have come.
    pub(super) unknown: Vec<String>,
    /// Where keys come from of which the store knows less than programs have seen.
    pub(super) gone_back: Vec<String>,
    /// The same of which the store may know less than was given, because it was restored, or is on another server.
    pub(super) lacking: Vec<String>,
    /// Whether the store has said what it knows of the rule.
    pub(super) is_known_to_store: bool,
    /// The rule may have been in force with other keys, and the store has not said.
    pub(super) is_rule_unknown: bool,
    /// Any key may have been issued: there is no switch back then.
    pub(super) is_hidden: bool,
}

impl Issued {
    /// Asks the stores. What they do not say is not known: they may be gone already.
    pub async fn read(keys: &Keys) -> Self {
        let tags = keys.tags().await.unwrap_or_default();
        let board = Switchboard::new(keys);
        let (standing, fenced) = (board.standing().await, board.all_fenced().await);
        let by_store = keys.first_free_snowflake().await;
        Self {
            tags,
            rules: standing.ok().map(|standing| standing.rules),
            fenced: fenced.unwrap_or_default(),
            first_free_snowflake: by_store.unwrap_or_else(|_| keys.first_free_snowflake_by_clock()),
        }
    }

    /// How far the ids of a rule's tables have come: by its own keys, and by what the store says of it. By other files it may give others, or go by another
    /// name. `is_native`: the server numbers all of its tables already.
    pub(super) fn of(&self, configured: &Configured, config: &Config, is_native: bool) -> OfRule {
        let name = rule_name(configured);
        let mut found = OfRule {
            is_hidden: self.is_hidden(&configured.spec),
            is_known_to_store: self.rules.is_some(),
            is_rule_unknown: self.rules.is_none() && configured.is_switched,
            ..OfRule::default()
        };
        if !(is_native && self.is_told_by_store_alone(configured)) {
            self.add(&configured.spec, &mut found);
        }
        let rules = self.rules.iter().flatten();
        for its in rules.filter(|its| may_be(&its.rule, &name, config)) {
            let next = its.next.iter().flatten();
            for keys in its.keys.iter().chain(next) {
                self.add(&keys.spec(), &mut found);
            }
            // Counters went on from there.
            let native = its.above.map(|first| first.saturating_sub(1));
            found.largest = found.largest.max(native);
        }
        let fenced = self.fenced.iter();
        for its in fenced.filter(|its| may_be(&its.rule, &name, config)) {
            self.add(&its.keys.spec(), &mut found);
        }
        found
    }

    /// Whether a rule need not have come as far as the clock: it only observes, and what it gave once the store has with the rule. A store that was put back may
    /// have lost that. So this holds only where no table has a fence, which the printed statements would lower.
    fn is_told_by_store_alone(&self, configured: &Configured) -> bool {
        configured.spec == KeySpec::Snowflake
            && configured.is_switched
            && configured.rule.mode == Mode::Observe
            && self.rules.is_some()
    }

    fn add(&self, spec: &KeySpec, found: &mut OfRule) {
        let largest = match spec {
            KeySpec::Segment(_) | KeySpec::Stride(_) => self.largest_of_tag(spec),
            KeySpec::Snowflake => Some(self.first_free_snowflake.saturating_sub(1)),
            // The server does not number such columns.
            KeySpec::Uuid {
                version: _,
                form: _,
            }
            | KeySpec::Readable(_) => return,
        };
        let what = spec.to_string();
        for its in self.listed(spec) {
            let told = match (its.gone_back_from, its.may_lack_ids) {
                (Some(_), _) => &mut found.gone_back,
                (None, true) => &mut found.lacking,
                (None, false) => continue,
            };
            if !told.contains(&what) {
                told.push(what.clone());
            }
        }
        match largest {
            Some(_) => found.largest = found.largest.max(largest),
            None if found.unknown.contains(&what) => {}
            None => found.unknown.push(what),
        }
    }

    fn listed(&self, spec: &KeySpec) -> impl Iterator<Item = &TagListing> {
        let tag = spec.tag().map(|tag| tag.as_str().to_owned());
        let tags = self.tags.iter();
        tags.filter(move |its| Some(&its.tag) == tag.as_ref())
    }

    fn largest_of_tag(&self, spec: &KeySpec) -> Option<u64> {
        let largest = self.listed(spec).map(|its| match &its.hiding {
            Ok(None) => {
                let seen = its.gone_back_from.unwrap_or(0);
                its.next.max(seen).saturating_sub(1)
            }
            // Any key may have been issued.
            Ok(Some(hiding)) => hiding.bits.largest(),
            Err(_) => u64::MAX,
        });
        largest.max()
    }

    fn is_hidden(&self, spec: &KeySpec) -> bool {
        self.listed(spec).any(|its| its.hiding != Ok(None))
    }
}

/// Whether what the store says of a rule is for the tables of this one: it is the same, or one that no rule here has the name of, and that may be for them.
fn may_be(its: &RuleName, name: &RuleName, config: &Config) -> bool {
    let is_here = || config.rules.iter().any(|rule| rule_name(rule) == *its);
    its == name
        || its.column.eq_ignore_ascii_case(&name.column)
            && may_share_tables(&its.tables, &name.tables)
            && !is_here()
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_store::TagListing;
    use keywright_store::switch::{FencedTable, InForce, KeySpace, RuleName};

    use super::{Issued, OfRule};
    use crate::config::Config;

    fn listing(tag: &str, next: u64) -> TagListing {
        TagListing {
            tag: tag.to_owned(),
            next,
            gone_back_from: None,
            may_lack_ids: false,
            id_max: None,
            step: 100,
            order: None,
            hiding: Ok(None),
        }
    }

    fn known(tables: &str, tag: Option<&str>, above: Option<u64>) -> InForce {
        InForce {
            rule: RuleName {
                tables: tables.to_owned(),
                column: "id".to_owned(),
            },
            keys: tag.map(|tag| KeySpace::Tag(Tag::parse(tag).unwrap())),
            next: None,
            above,
            servers: Vec::new(),
        }
    }

    fn config(key: &str) -> Config {
        Config::parse(&format!(
            "[store]\nurl = \"mysql://root@127.0.0.1:1/s\"\n[[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\n\
             [[rule]]\ntable = \"shop.orders\"\ncolumn = \"id\"\nkey = {key}\n\
             [[rule]]\ntable = \"shop.*\"\ncolumn = \"id\"\nkey = \"segment:c\"\n"
        ))
        .unwrap()
    }

    fn of_first(key: &str, rules: Vec<InForce>) -> OfRule {
        let config = config(key);
        let issued = Issued {
            tags: vec![listing("a", 51), listing("b", 205)],
            rules: Some(rules),
            fenced: Vec::new(),
            first_free_snowflake: 9_001,
        };
        issued.of(&config.rules[0], &config, true)
    }

    /// Whatever kind they are: rows of some may be gone.
    #[test]
    fn ids_of_each_kind_of_number_are_left_out() {
        for (key, largest) in [
            ("\"segment:a\"", 50),
            ("\"stride:b\"\noffset = 1\nincrement = 2", 204),
            ("\"snowflake\"", 9_000),
        ] {
            let found = of_first(key, Vec::new());
            assert_eq!(found.largest, Some(largest), "{key}");
            assert!(found.unknown.is_empty(), "{found:?}");
        }
        let found = of_first("\"segment:gone\"", Vec::new());
        assert_eq!(found.unknown, ["segment:gone"]);
        assert_eq!(found.largest, None);
    }

    /// A program has seen more than the store says now.
    #[test]
    fn a_store_that_has_gone_back_says_so() {
        let config = config("\"segment:a\"");
        let mut issued = Issued {
            tags: vec![listing("a", 51), listing("b", 205)],
            rules: Some(vec![known("shop.orders", Some("a"), None)]),
            fenced: Vec::new(),
            first_free_snowflake: 0,
        };
        let found = issued.of(&config.rules[0], &config, true);
        assert!(found.gone_back.is_empty() && found.lacking.is_empty());
        // It was restored, and its gap is still to be left out.
        issued.tags[0].may_lack_ids = true;
        let found = issued.of(&config.rules[0], &config, true);
        assert_eq!(found.lacking, ["segment:a"]);
        issued.tags[0].gone_back_from = Some(301);
        let found = issued.of(&config.rules[0], &config, true);
        assert_eq!(found.largest, Some(300));
        assert_eq!(found.gone_back, ["segment:a"]);
        assert!(found.lacking.is_empty());
    }

    /// The statements of a release were executed in part: the rule is native, and its tables have their fence.
    #[test]
    fn ids_of_keys_by_which_tables_have_their_fence_are_left_out() {
        let config = config("\"segment:a\"");
        let fenced = |tables: &str| FencedTable {
            server: "1".to_owned(),
            schema: "shop".to_owned(),
            table: "orders".to_owned(),
            rule: known(tables, None, None).rule,
            keys: KeySpace::Tag(Tag::parse("b").unwrap()),
        };
        for (tables, largest) in [("shop.orders", 204), ("shop.o*", 204), ("shop.*", 50)] {
            let issued = Issued {
                tags: vec![listing("a", 51), listing("b", 205)],
                rules: Some(vec![known("shop.orders", None, None)]),
                fenced: vec![fenced(tables)],
                first_free_snowflake: 0,
            };
            let found = issued.of(&config.rules[0], &config, true);
            assert_eq!(found.largest, Some(largest), "{tables}");
        }
    }

    #[test]
    fn a_store_that_does_not_speak_of_rules_is_no_store_without_rules() {
        let found = of_first("\"segment:a\"", Vec::new());
        assert!(found.is_known_to_store && !found.is_rule_unknown);
        for (key, is_rule_unknown) in [
            ("\"segment:a\"", true),
            ("\"snowflake\"", true),
            // Not switched.
            ("\"stride:b\"\noffset = 1\nincrement = 2", false),
        ] {
            let config = config(key);
            let found = Issued::default().of(&config.rules[0], &config, false);
            assert!(!found.is_known_to_store, "{key}");
            assert_eq!(found.is_rule_unknown, is_rule_unknown, "{key}");
        }
    }

    /// Its counters would go on from the clock, for good.
    #[test]
    fn a_snowflake_rule_that_only_observes_gave_what_the_store_says() {
        let given = || known("shop.orders", None, Some(301));
        let observes = "\"snowflake\"\nmode = \"observe\"";
        for (key, rules, is_native, largest) in [
            (observes, Some(vec![]), true, None),
            (observes, Some(vec![given()]), true, Some(300)),
            // It may have given some: the store may have been put back, or has not said.
            (observes, Some(vec![]), false, Some(9_000)),
            (observes, None, true, Some(9_000)),
            ("\"snowflake\"", Some(vec![]), true, Some(9_000)),
        ] {
            let config = config(key);
            let issued = Issued {
                tags: Vec::new(),
                rules,
                fenced: Vec::new(),
                first_free_snowflake: 9_001,
            };
            let found = issued.of(&config.rules[0], &config, is_native);
            assert_eq!(found.largest, largest, "{key} {is_native} {issued:?}");
        }
        let observes = "\"segment:a\"\nmode = \"observe\"";
        assert_eq!(of_first(observes, Vec::new()).largest, Some(50));
    }

    /// An older file may be what is at hand.
    #[test]
    fn ids_that_the_store_says_a_rule_gave_are_left_out() {
        for (known, largest) in [
            (known("shop.orders", Some("b"), None), 204),
            (known("shop.orders", None, Some(301)), 300),
            // By another file they are its tables.
            (known("SHOP.o*", Some("b"), None), 204),
            (known("*.orders", None, Some(301)), 300),
            // The order of the rules here decides.
            (known("shop.*", None, Some(301)), 50),
            (known("crm.*", Some("b"), None), 50),
        ] {
            let found = of_first("\"segment:a\"", vec![known.clone()]);
            assert_eq!(found.largest, Some(largest), "{known:?}");
        }
    }
}
