//! What is left as it was where nothing new can be given out: the sources of keys are closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_core::Tag;
use keywright_store::Keys;
use keywright_store::switch::{self, KeySpace, Phase, RuleName, Standing};

use super::InForce;
use crate::config::Config;
use crate::handshake::password::OwnKey;
use crate::metrics::Counters;
use crate::schema::TableFacts;
use crate::switch::{ClientConnections, rule_name};

/// A rule that goes by the switch, whose keys come from a tag.
fn config(mode: &str, others: &str) -> Arc<Config> {
    let text = format!(
        "[store]\nurl = \"mysql://k@127.0.0.1:1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"\n\
         [[rule]]\ntable = \"d.t\"\ncolumn = \"id\"\nkey = \"segment:one\"\nmode = \"{mode}\"\n{others}"
    );
    Arc::new(Config::parse(&text).unwrap())
}

fn standing(config: &Config, keys: Option<&str>) -> Standing {
    let keys = keys.map(|tag| KeySpace::Tag(Tag::parse(tag).unwrap()));
    Standing {
        attempt: 1,
        phase: Phase::None,
        leader: None,
        age_ms: 0,
        rules: vec![switch::InForce {
            rule: rule_name(&config.rules[0]),
            keys,
            next: None,
            above: None,
            servers: vec!["here".to_owned()],
        }],
        generations: Vec::new(),
        key_space_ids: Vec::new(),
        peers: Vec::new(),
    }
}

/// A program whose rule waits to be switched, and which can make no source of keys any more.
async fn closed(config: &Arc<Config>) -> (Arc<InForce>, BTreeSet<RuleName>) {
    let keys = Keys::open(config.store.clone()).unwrap();
    let waits = BTreeSet::from([rule_name(&config.rules[0])]);
    let in_force = InForce::new(
        keys.clone(),
        Arc::new(Counters::default()),
        Arc::new(OwnKey::made_when_needed()),
        (Arc::clone(config), vec![TableFacts::default()]),
        (Some(&standing(config, None)), waits.clone()),
    );
    keys.hand_back().await;
    (Arc::new(in_force.unwrap()), waits)
}

/// Taken for native, its tables would be given ids by the server that may be keys already.
#[tokio::test]
async fn a_rule_goes_on_waiting_where_what_the_store_says_cannot_be_applied() {
    let config = config("rewrite", "");
    let (in_force, waits) = closed(&config).await;
    assert!(in_force.follow(&standing(&config, Some("one"))));
    let state = in_force.state();
    let known = state.known.as_ref().unwrap();
    assert!(known.values().all(|source| source.keys.is_none()));
    assert_eq!(state.waits_for_store, waits);
}

#[tokio::test]
async fn a_rule_goes_on_waiting_where_a_configuration_cannot_be_applied() {
    let before = config("observe", "");
    let (in_force, waits) = closed(&before).await;
    let others = "[[rule]]\ntable = \"d.u\"\ncolumn = \"id\"\nkey = \"stride:two\"\noffset = 1\nincrement = 2\n";
    let after = config("rewrite", others);
    assert!(
        in_force
            .configure(after, vec![TableFacts::default()], None)
            .is_err()
    );
    let state = in_force.state();
    assert_eq!(state.config.rules.len(), before.rules.len());
    assert_eq!(state.waits_for_store, waits);
}
