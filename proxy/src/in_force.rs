//! What connections follow: the configuration, and for rules that are switched what the store says is in force.

pub mod context;
mod following;
mod in_the_way;
pub(crate) mod key_log;
mod moves;
pub(crate) mod snapshot;
mod sources;
mod state;
pub(crate) mod updates;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use keywright_session::{Mode, Traffic};
use keywright_store::Keys;
use keywright_store::switch::{RuleName, Standing};
use tokio::sync::watch;

use crate::config::{Config, Configured};
use crate::handshake::password::OwnKey;
use crate::in_force::snapshot::ConfigSnapshot;
use crate::in_force::sources::{follow_generations, held_by};
use crate::in_force::state::State;
use crate::metrics::Counters;
use crate::schema::TableFacts;
use crate::switch::{Ahead, KeyStandings, rule_name};
use crate::users::PortUsers;

pub use moves::Moves;
pub use sources::{KeySpaces, Source, effective, effective_on_reload, key_spaces_of};

/// The snapshot of a program, made anew whenever one of the things changes that they are made of.
pub struct InForce {
    keys: Keys,
    counters: Arc<Counters>,
    own_key: Arc<OwnKey>,
    users: Option<PortUsers>,
    state: Mutex<State>,
    give: watch::Sender<Arc<ConfigSnapshot>>,
}

impl InForce {
    /// Of a program that begins. `standing`: what the store said; `None` if it did not answer. `waits_for_store`: rules whose tables may have had
    /// keys without the switch, so that native ids among them could be given again: statements wait until they are switched.
    ///
    /// # Errors
    /// A source of keys cannot be made.
    pub fn new(
        keys: Keys,
        counters: Arc<Counters>,
        own_key: Arc<OwnKey>,
        (config, seen): (Arc<Config>, Vec<TableFacts>),
        (standing, waits_for_store): (Option<&Standing>, BTreeSet<RuleName>),
    ) -> Result<Self> {
        let state = State {
            config,
            seen,
            known: standing.map(key_spaces_of),
            standings: standing.map(KeyStandings::of),
            held: standing.map(held_by).unwrap_or_default(),
            waits_for_store,
            ahead: Ahead::new(),
            version: counters.traffic.version(),
        };
        // Which of its ports have users stays as it is while the program runs.
        let users = state.config.has_users().then(|| {
            let wait_ms_max = state.config.store.wait_ms_max();
            PortUsers::follow(&keys, state.config.users_stale_s_max, wait_ms_max)
        });
        let snapshot = state.snapshot(&keys, &counters, &own_key, users.as_ref())?;
        if let Some(standing) = standing {
            // Behind it: its sources are those of the snapshot.
            follow_generations(&keys, standing);
        }
        Ok(Self {
            keys,
            counters,
            own_key,
            users,
            state: Mutex::new(state),
            give: watch::channel(Arc::new(snapshot)).0,
        })
    }

    /// What connections follow.
    pub fn snapshot(&self) -> watch::Receiver<Arc<ConfigSnapshot>> {
        self.give.subscribe()
    }

    /// The configuration as it is in force.
    pub fn config(&self) -> Config {
        let state = self.state();
        effective(&state.config, state.known.as_ref())
    }

    /// Has statements that wait for other rules try again.
    pub fn renew(&self) {
        if let Err(error) = self.publish(&mut self.state()) {
            tracing::error!(
                "cannot apply what is in force, keeping the previous configuration: {error:#}"
            );
        }
    }

    /// What connections have under way.
    pub fn traffic(&self) -> &Traffic {
        &self.counters.traffic
    }

    /// Which version of the rules that is.
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// Whether another configuration leaves no table with a fence and without keys.
    ///
    /// # Errors
    /// It lacks a rule that gives keys, or one whose tables are being switched.
    pub fn may_leave(&self, config: &Config) -> Result<()> {
        let state = self.state();
        let known = state.known.iter().flatten();
        let gives_keys: BTreeSet<&RuleName> = known
            .filter(|(_, source)| source.keys.is_some())
            .map(|(rule, _)| rule)
            .collect();
        let here = state.config.rules.iter().filter(|rule| rule.is_switched);
        for rule in here.map(rule_name) {
            let mut kept = config.rules.iter();
            if kept.any(|kept| rule_name(kept) == rule && kept.is_switched) {
                continue;
            }
            let tables = &rule.tables;
            if gives_keys.contains(&rule) {
                bail!(
                    "tables of rule {tables} go by the switch: leave the rule, set mode = \"observe\" first, and send SIGHUP"
                );
            }
            if state.held.contains(&rule) {
                bail!(
                    "tables of rule {tables} are being switched: send SIGHUP again when that is over"
                );
            }
        }
        Ok(())
    }

    /// Another configuration, what was seen on the servers with it, and what the store says. Open connections take it.
    ///
    /// # Errors
    /// A source of keys cannot be made; all stays as it was.
    pub fn configure(
        &self,
        config: Arc<Config>,
        seen: Vec<TableFacts>,
        standing: Option<&Standing>,
    ) -> Result<()> {
        let mut state = self.state();
        // What others have switched meanwhile the next step learns, behind what is under way.
        let first = standing.filter(|_| state.known.is_none());
        let known = first.map(key_spaces_of).or_else(|| state.known.clone());
        let standings = first.map(KeyStandings::of);
        let standings = standings.or_else(|| state.standings.clone());
        // Who gave keys without the fence is not native, until it has gone over; who observed is.
        let rules = |mode: Mode, is_switched: bool| -> Vec<RuleName> {
            let rules = state.config.rules.iter();
            let is_such = |of: &&Configured| of.is_switched == is_switched && of.rule.mode == mode;
            rules.filter(is_such).map(rule_name).collect()
        };
        let (gave, observed) = (rules(Mode::Rewrite, false), rules(Mode::Observe, true));
        let mut waits_for_store = state.waits_for_store.clone();
        waits_for_store.retain(|rule| !observed.contains(rule));
        waits_for_store.extend(gave);
        let before = (
            std::mem::replace(&mut state.config, config),
            std::mem::replace(&mut state.seen, seen),
            std::mem::replace(&mut state.known, known),
            std::mem::replace(&mut state.standings, standings),
            std::mem::replace(&mut state.waits_for_store, waits_for_store),
        );
        let published = self.publish(&mut state);
        if let Some(standing) = first {
            follow_generations(&self.keys, standing);
        }
        if published.is_err() {
            (
                state.config,
                state.seen,
                state.known,
                state.standings,
                state.waits_for_store,
            ) = before;
        }
        published
    }

    /// What was seen on the servers. New connections take it; those that are open learn of it as they use the tables.
    ///
    /// # Errors
    /// A source of keys cannot be made.
    pub fn see(&self, seen: Vec<TableFacts>) -> Result<()> {
        let mut state = self.state();
        state.seen = seen;
        let snapshot = self.snapshot_of(&state)?;
        self.hand_out(snapshot);
        Ok(())
    }

    /// Connections follow it from here on. What only earlier ones gave keys of is given up.
    fn hand_out(&self, snapshot: ConfigSnapshot) {
        let used = snapshot.used();
        self.give.send_replace(Arc::new(snapshot));
        self.keys.use_only(&used);
    }

    fn snapshot_of(&self, state: &State) -> Result<ConfigSnapshot> {
        let users = self.users.as_ref();
        state.snapshot(&self.keys, &self.counters, &self.own_key, users)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is raised that is not there then.
    fn publish(&self, state: &mut State) -> Result<()> {
        state.version = state.version.saturating_add(1);
        match self.snapshot_of(state) {
            Ok(snapshot) => {
                self.counters.traffic.publish(state.version);
                self.hand_out(snapshot);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
