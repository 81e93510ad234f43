//! What connections follow of a switch that others carry out, as a program sees it that was silent meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use keywright_core::Tag;
use keywright_proxy::config::Config;
use keywright_proxy::handshake::password::OwnKey;
use keywright_proxy::in_force::InForce;
use keywright_proxy::metrics::Counters;
use keywright_proxy::schema::TableFacts;
use keywright_proxy::switch::{ClientConnections, rule_name};
use keywright_store::Keys;
use keywright_store::switch::{self, KeySpace, Phase, Standing};
use tempfile::TempDir;

const TEXT: &str = "[store]\nurl = \"mysql://k@127.0.0.1:1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"\n\
                    [[rule]]\ntable = \"d.stays\"\ncolumn = \"id\"\nkey = \"segment:one\"\n\
                    [[rule]]\ntable = \"d.leaves\"\ncolumn = \"id\"\nkey = \"segment:one\"\n";

fn space(tag: &str) -> KeySpace {
    KeySpace::Tag(Tag::parse(tag).unwrap())
}

/// Both rules had keys of one tag. `leaves`: what the second has now.
fn standing(config: &Config, leaves: &str, next: Option<&str>, attempt: u64) -> Standing {
    let rule = |at: usize, keys: &str, next: Option<&str>| switch::InForce {
        rule: rule_name(&config.rules[at]),
        keys: Some(space(keys)),
        next: next.map(|tag| Some(space(tag))),
        above: None,
        servers: vec!["here".to_owned()],
    };
    Standing {
        attempt,
        phase: match next {
            Some(_) => Phase::Holding,
            None => Phase::None,
        },
        leader: None,
        age_ms: 0,
        rules: vec![rule(0, "one", next), rule(1, leaves, None)],
        generations: vec![(space("one"), attempt), (space("two"), attempt)],
        key_space_ids: Vec::new(),
        peers: Vec::new(),
    }
}

/// Who was silent did not hold when others let a table leave its keys. What it has under way may have keys of the tag, which go on
/// with the other table in their next generation: followed into that, they would reach the table that has left.
#[test]
fn keys_that_others_still_use_are_followed_only_behind_what_is_under_way() {
    for holds_next in [false, true] {
        let scratch = TempDir::new().unwrap();
        let file = scratch.path().join("ranges");
        let kept = format!(
            "[store]\nkept_ranges_file = \"{}\"\nany_file_system = true\n",
            file.display()
        );
        let config = Arc::new(Config::parse(&TEXT.replace("[store]\n", &kept)).unwrap());
        let keys = Keys::open(config.store.clone()).unwrap();
        keys.keep_ranges("configuration", 60_000);
        keys.drop_kept_ranges();
        // What whoever starts in this program's place may go by.
        let is_kept = || {
            fs::read_to_string(&file)
                .unwrap()
                .contains("\"standing\": {")
        };
        let counters = Arc::new(Counters::default());
        let before = standing(&config, "one", None, 1);
        let in_force = InForce::new(
            keys,
            Arc::clone(&counters),
            Arc::new(OwnKey::made_when_needed()),
            (Arc::clone(&config), vec![TableFacts::default()]),
            (Some(&before), BTreeSet::new()),
        );
        let in_force = Arc::new(in_force.unwrap());
        assert!(in_force.follow(&before));
        assert!(is_kept());
        let under_way = counters.traffic.count_passthrough();
        let next = holds_next.then_some("two");
        let after = standing(&config, "two", next, 2);
        let goes_along = |in_force: &Arc<InForce>| match holds_next {
            true => in_force.hold(&after),
            false => in_force.follow(&after),
        };
        let version = in_force.version();
        assert!(!goes_along(&in_force), "something is under way");
        assert!(in_force.version() > version, "new statements wait");
        assert!(!is_kept(), "it knows more than it goes by");
        let key = |rule: usize| in_force.config().rules[rule].spec.to_string();
        assert_eq!(key(1), "segment:one", "nothing was followed");
        drop(under_way);
        assert!(goes_along(&in_force));
        assert_eq!(is_kept(), !holds_next);
        assert_eq!(key(1), "segment:two");
        assert_eq!(key(0), "segment:one");
    }
}

/// On the way back the store names the keys until the tables are native, and their tag is closed already: what can be had of its next generation
/// native ids are, too.
#[test]
fn keys_of_a_closed_tag_are_followed_only_behind_what_is_under_way() {
    let config = Arc::new(Config::parse(TEXT).unwrap());
    let counters = Arc::new(Counters::default());
    let before = standing(&config, "one", None, 1);
    let in_force = InForce::new(
        Keys::open(config.store.clone()).unwrap(),
        Arc::clone(&counters),
        Arc::new(OwnKey::made_when_needed()),
        (Arc::clone(&config), vec![TableFacts::default()]),
        (Some(&before), BTreeSet::new()),
    );
    let in_force = Arc::new(in_force.unwrap());
    let under_way = counters.traffic.count_passthrough();
    let mut closed = standing(&config, "one", None, 2);
    closed.phase = Phase::Closed;
    closed.rules[1].next = Some(None);
    assert!(!in_force.hold(&closed), "something is under way");
    let version = in_force.version();
    assert!(!in_force.hold(&closed), "it still is");
    assert_eq!(in_force.version(), version, "nothing is new");
    drop(under_way);
    assert!(in_force.hold(&closed));
}
