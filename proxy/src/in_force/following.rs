//! How a program follows what the store says of switched rules: what leaves its keys is let go of first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use keywright_store::switch::{KeySpace, RuleName, Standing};

use super::InForce;
use crate::in_force::in_the_way::{in_the_way, nobody_is_named};
use crate::in_force::sources::{
    KeySpaces, follow_generations, follow_generations_but, held_by, key_spaces_of, leaving,
};
use crate::in_force::state::State;
use crate::metrics::Metric;
use crate::switch::{Ahead, ClientConnections, KeyStandings, rule_name};

impl InForce {
    /// Whether nothing is under way that may take keys of a rule which leaves them. Until then nobody is given any of these; of all others nothing
    /// that was reserved before what the store says. Who was silent for long did not hold: followed into their next generation, keys
    /// that another rule has still would reach tables that have left them.
    fn has_let_go(&self, standing: &Standing) -> bool {
        let mut state = self.state();
        let leaving = leaving(state.known.as_ref(), standing);
        if leaving.is_empty() {
            return true;
        }
        let left: BTreeSet<KeySpace> = leaving.values().cloned().collect();
        let leaving: BTreeSet<RuleName> = leaving.into_keys().collect();
        if leaving.is_subset(&state.held) && self.is_quiet_on(&state, &leaving) {
            return true;
        }
        let is_held = self.hold_all_of(&mut state, standing, &left);
        if is_held && self.is_quiet_on(&state, &leaving) {
            return true;
        }
        // Who has a transaction open is refused: keys that were had before may be native ids by now.
        left.iter().for_each(|keys| self.keys.leave(keys));
        if is_held {
            follow_generations_but(&self.keys, standing, &left);
        }
        false
    }

    /// New statements of all rules that have these keys wait, and so do requests for them on key ports. False: they cannot be told so.
    fn hold_all_of(
        &self,
        state: &mut State,
        standing: &Standing,
        left: &BTreeSet<KeySpace>,
    ) -> bool {
        let known = state.known.iter().flatten();
        let have_them = known
            .filter(|(_, source)| source.keys.as_ref().is_some_and(|keys| left.contains(keys)))
            .map(|(rule, _)| rule);
        let held: BTreeSet<RuleName> = state.held.iter().chain(have_them).cloned().collect();
        let mut standings = KeyStandings::of(standing);
        let in_use = left.difference(&standings.left).cloned();
        standings.held.extend(in_use.collect::<Vec<_>>());
        let standings = Some(standings);
        let ports_know = state.config.ports.is_empty() || state.standings == standings;
        if ports_know && state.held == held {
            return true;
        }
        tracing::info!(
            rules = ?held,
            "others have switched tables: new statements on them wait here until what is under way has ended"
        );
        let before = (
            std::mem::replace(&mut state.held, held),
            std::mem::replace(&mut state.standings, standings),
        );
        let published = self.publish(state);
        if let Err(error) = &published {
            tracing::error!(
                "cannot apply what is in force, keeping the previous configuration: {error:#}"
            );
            (state.held, state.standings) = before;
        }
        published.is_ok()
    }

    fn is_quiet_on(&self, state: &State, rules: &BTreeSet<RuleName>) -> bool {
        let traffic = &self.counters.traffic;
        let mut configured = state.config.rules.iter();
        rules.is_empty()
            || traffic.passthrough() == 0
                && configured.all(|rule| {
                    !rules.contains(&rule_name(rule)) || traffic.under_way(&rule.name()) == 0
                })
    }

    /// Takes what the store says, if it is new.
    fn learn(&self, standing: &Standing) {
        let (known, held) = (key_spaces_of(standing), held_by(standing));
        let standings = Some(KeyStandings::of(standing));
        follow_generations(&self.keys, standing);
        let mut state = self.state();
        // Connections to servers are not to follow what only key ports ask for.
        let ports_know = state.config.ports.is_empty() || state.standings == standings;
        if ports_know && state.known.as_ref() == Some(&known) && state.held == held {
            state.standings = standings;
            return;
        }
        // Once they have keys by the store's word, they leave them by it, and native ids go on above.
        let gives_keys = |spaces: &KeySpaces, rule: &RuleName| {
            spaces.get(rule).is_some_and(|its| its.keys.is_some())
        };
        let had = state.known.clone().unwrap_or_default();
        let mut waits_for_store = state.waits_for_store.clone();
        waits_for_store.retain(|rule| !gives_keys(&had, rule) && !gives_keys(&known, rule));
        let before = (
            state.known.replace(known),
            std::mem::replace(&mut state.standings, standings),
            std::mem::replace(&mut state.held, held),
            std::mem::replace(&mut state.waits_for_store, waits_for_store),
        );
        if let Err(error) = self.publish(&mut state) {
            tracing::error!(
                "cannot apply what is in force, keeping the previous configuration: {error:#}"
            );
            (
                state.known,
                state.standings,
                state.held,
                state.waits_for_store,
            ) = before;
        }
        // Once more, for the sources that this snapshot has made.
        follow_generations(&self.keys, standing);
    }
}

impl ClientConnections for Arc<InForce> {
    fn note_ahead(&self, ahead: Ahead) {
        let mut state = self.state();
        let mut now = state.ahead.clone();
        // What could not be looked at is as it was.
        now.extend(ahead);
        if now == state.ahead {
            return;
        }
        let before = std::mem::replace(&mut state.ahead, now);
        if let Err(error) = self.publish(&mut state) {
            tracing::error!(
                "cannot apply what is in force, keeping the previous configuration: {error:#}"
            );
            state.ahead = before;
        }
    }

    fn note_late(&self, rule: &RuleName) {
        let state = self.state();
        let mut rules = state.config.rules.iter();
        if let Some(configured) = rules.find(|configured| rule_name(configured) == *rule) {
            self.counters
                .add(Metric::LateTables, [&configured.name()], 1);
        }
    }

    fn hold(&self, standing: &Standing) -> bool {
        // Before the others hear that this program holds: one that starts in its place does not know of the attempt.
        if !self.keys.keep_standing(None) {
            return false;
        }
        // Another attempt may have ended while this program was silent.
        self.follow(standing)
    }

    fn is_quiet(&self) -> bool {
        let state = self.state();
        self.is_quiet_on(&state, &state.held)
    }

    fn in_the_way(&self) -> Option<String> {
        (!self.is_quiet()).then(|| in_the_way(&self.counters.listeners()))
    }

    fn is_unnamed(&self) -> bool {
        !self.is_quiet() && nobody_is_named(&self.counters.listeners())
    }

    fn follow(&self, standing: &Standing) -> bool {
        if !self.has_let_go(standing) {
            // The store hears that this program is there, and it does not go by what it has read: whoever starts in its place must not either.
            self.keys.keep_standing(None);
            return false;
        }
        self.learn(standing);
        // Tables that get no keys until the store was asked about them are not in what is kept.
        let is_known = self.state().ahead.values().all(BTreeMap::is_empty);
        self.keys.keep_standing(is_known.then_some(standing));
        true
    }
}
