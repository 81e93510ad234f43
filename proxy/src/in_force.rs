//! What connections follow: the configuration, and for rules that are switched what the store says is in force.

pub mod context;
mod in_the_way;
pub(crate) mod key_log;
mod moves;
pub(crate) mod snapshot;
mod sources;
mod state;
pub(crate) mod updates;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use keywright_session::{Mode, Traffic};
use keywright_store::Keys;
use keywright_store::switch::{KeySpace, RuleName, Standing};
use tokio::sync::watch;

use crate::config::{Config, Configured};
use crate::handshake::password::OwnKey;
use crate::in_force::in_the_way::{in_the_way, nobody_is_named};
use crate::in_force::snapshot::ConfigSnapshot;
use crate::in_force::sources::{follow_generations, follow_generations_but, held_by, leaving};
use crate::in_force::state::State;
use crate::metrics::{Counters, Metric};
use crate::schema::TableFacts;
use crate::switch::{Ahead, ClientConnections, KeyStandings, rule_name};
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
        state
            .waits_for_store
            .retain(|rule| !observed.contains(rule));
        state.waits_for_store.extend(gave);
        let before = (
            std::mem::replace(&mut state.config, config),
            std::mem::replace(&mut state.seen, seen),
            std::mem::replace(&mut state.known, known),
            std::mem::replace(&mut state.standings, standings),
        );
        let published = self.publish(&mut state);
        if let Some(standing) = first {
            follow_generations(&self.keys, standing);
        }
        if published.is_err() {
            (state.config, state.seen, state.known, state.standings) = before;
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
        state
            .waits_for_store
            .retain(|rule| !gives_keys(&had, rule) && !gives_keys(&known, rule));
        let before = (
            state.known.replace(known),
            std::mem::replace(&mut state.standings, standings),
            std::mem::replace(&mut state.held, held),
        );
        if let Err(error) = self.publish(&mut state) {
            tracing::error!(
                "cannot apply what is in force, keeping the previous configuration: {error:#}"
            );
            (state.known, state.standings, state.held) = before;
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
