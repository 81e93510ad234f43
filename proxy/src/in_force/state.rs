//! What is in force, and the snapshot of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use keywright_session::Mode;
use keywright_store::Keys;
use keywright_store::switch::RuleName;

use crate::config::{Config, Configured};
use crate::handshake::password::OwnKey;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::in_force::sources::{KeySpaces, effective};
use crate::metrics::Counters;
use crate::port::keys::PortKeys;
use crate::schema::TableFacts;
use crate::switch::{Ahead, KeyStandings, rule_name};
use crate::tags_in_use::TagsInUse;
use crate::users::PortUsers;

/// What a snapshot is made of.
pub(super) struct State {
    pub(super) config: Arc<Config>,
    /// By listener.
    pub(super) seen: Vec<TableFacts>,
    /// Nothing, before the store has answered.
    pub(super) known: Option<KeySpaces>,
    /// What the store says of keys, for key ports; nothing, before it has answered.
    pub(super) standings: Option<KeyStandings>,
    /// The rules that an attempt is about.
    pub(super) held: BTreeSet<RuleName>,
    /// Rules that are to give keys and are not in force, of whose tables nobody knows that they are native.
    pub(super) waits_for_store: BTreeSet<RuleName>,
    /// Tables without fence with ids of their own that are still to be given.
    pub(super) ahead: Ahead,
    pub(super) version: u64,
}

impl State {
    /// By their place in the configuration: new statements on their tables wait.
    fn held(&self) -> Vec<usize> {
        self.places(|_, name| self.known.is_some() && self.held.contains(name))
    }

    /// By their place: INSERTs on their tables wait. Before the store has answered nobody knows where the keys of those come from that
    /// are to have some.
    fn waits_for_store(&self) -> Vec<usize> {
        self.places(|configured, name| {
            let wants_keys = configured.is_switched && configured.rule.mode == Mode::Rewrite;
            let is_known = self.known.as_ref().is_some_and(|known| {
                let source = known.get(name);
                !self.waits_for_store.contains(name) || source.is_some_and(|its| its.keys.is_some())
            });
            wants_keys && !is_known
        })
    }

    fn places(&self, is_such: impl Fn(&Configured, &RuleName) -> bool) -> Vec<usize> {
        let rules = self.config.rules.iter().enumerate();
        let such = rules.filter(|(_, configured)| is_such(configured, &rule_name(configured)));
        such.map(|(at, _)| at).collect()
    }

    pub(super) fn snapshot(
        &self,
        keys: &Keys,
        counters: &Counters,
        own_key: &Arc<OwnKey>,
        users: Option<&PortUsers>,
    ) -> Result<ConfigSnapshot> {
        let config = effective(&self.config, self.known.as_ref());
        let in_use = Arc::new(TagsInUse::of(&[&self.config, &config]));
        let standings = self.standings.as_ref();
        let ports = PortKeys::all(&config, keys, counters, standings, users, &in_use);
        let ports = ports.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        let snapshot = ConfigSnapshot::new(
            &config,
            keys,
            &self.seen,
            counters,
            own_key,
            (self.version, &self.held(), &self.waits_for_store()),
            &self.ahead,
        )?;
        let has_heard_store = self.known.is_some();
        Ok(snapshot.with_ports(ports).with_heard_store(has_heard_store))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use keywright_store::switch::KeySpace;
    use keywright_store::{KeySpec, Keys};

    use super::State;
    use crate::config::Config;
    use crate::handshake::password::OwnKey;
    use crate::metrics::Counters;
    use crate::switch::{Ahead, KeyStandings};

    const TEXT: &str = "[store]\nurl = \"mysql://k@127.0.0.1:1/k\"\n\
                        [[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:2\"\nkeys = { id = \"snowflake\" }\n";

    /// Whether the worker id stays as it is, by what the store says.
    fn is_used(standings: Option<KeyStandings>) -> bool {
        let config = Arc::new(Config::parse(TEXT).unwrap());
        let keys = Keys::open(config.store.clone()).unwrap();
        let state = State {
            config,
            seen: Vec::new(),
            known: None,
            standings,
            held: BTreeSet::new(),
            waits_for_store: BTreeSet::new(),
            ahead: Ahead::new(),
            version: 0,
        };
        let own_key = Arc::new(OwnKey::made_when_needed());
        let snapshot = state.snapshot(&keys, &Counters::default(), &own_key, None);
        snapshot.unwrap().used().contains(&KeySpec::Snowflake)
    }

    /// Each attempt would have the program give its worker id up and take another, whatever becomes of the attempt.
    #[test]
    fn a_key_port_gives_its_worker_id_up_when_tables_have_left_it_and_not_before() {
        let snowflake = BTreeSet::from([KeySpace::Snowflake]);
        let held = KeyStandings {
            held: snowflake.clone(),
            left: snowflake.clone(),
        };
        let left = KeyStandings {
            held: BTreeSet::new(),
            left: snowflake,
        };
        assert!(is_used(None));
        assert!(is_used(Some(KeyStandings::default())));
        assert!(is_used(Some(held)));
        assert!(!is_used(Some(left)));
    }
}
