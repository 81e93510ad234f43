//! One step of a program through the switch: it asks the store, decides, and does one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use keywright_store::Failure;
use keywright_store::switch::{
    Change, InForce, Next, Participant, Phase, RuleName, Standing, Switchboard, decide,
    why_given_up,
};
use tokio::time::{Instant, sleep, timeout};

use super::held_back::HeldBack;
use super::own_time::OwnTime;
use super::servers::{self, Server};
use super::silences::Silences;
use crate::config::Config;

/// How often a program says that it is there, milliseconds.
const BEAT_MS: u64 = 1_000;
/// How long connections have from [`Next::Hold`] on to say what they have under way, milliseconds, before an attempt that is late is given up.
const NAMES_MS_MAX: u64 = 1_000;
/// How often it is looked whether they have, milliseconds.
const NAMES_LOOK_MS: u64 = 10;

/// Tables that get no keys, by schema and name: they have ids of their own that are still to be given, or keys by another rule. By the listener's place, of
/// those whose servers could be looked at. With what their clients are told, where no switch puts them right.
pub type Ahead = BTreeMap<usize, BTreeMap<(String, String), Option<String>>>;

/// The connections of a program's clients.
pub trait ClientConnections {
    /// New statements on the tables that the attempt is about wait from now on. False: something is under way by what was in force
    /// before.
    fn hold(&self, standing: &Standing) -> bool;
    /// Whether nothing is under way on these tables.
    fn is_quiet(&self) -> bool;
    /// Who has something under way there, for people; `None`: nobody.
    fn in_the_way(&self) -> Option<String>;
    /// Whether something is under way there, and no connection has come to say so yet.
    fn is_unnamed(&self) -> bool;
    /// These tables get no keys, and others do again.
    fn note_ahead(&self, ahead: Ahead);
    /// A table of this rule came late, with ids that may be keys.
    fn note_late(&self, rule: &RuleName);
    /// All follow what is in force, and nobody waits any more. False: something is under way by what was in force before.
    fn follow(&self, standing: &Standing) -> bool;
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// An attempt, milliseconds.
    pub wait_ms_max: u64,
    /// Whoever was silent for so long holds nobody up, milliseconds.
    pub peer_wait_ms: u64,
}

impl Limits {
    /// What is asked of servers in one step. Meanwhile this program follows nobody, nor does it say that it is there while nothing is
    /// switched: who is silent for too long is not waited for.
    ///
    /// # Errors
    /// They take too long, or that of what is asked.
    pub async fn in_time<T>(self, asked: impl Future<Output = Result<T>>) -> Result<T> {
        // To connect to those that can be reached takes one such time at most.
        let servers_ms_max = self
            .wait_ms_max
            .saturating_mul(4)
            .max(self.peer_wait_ms / 2);
        match timeout(Duration::from_millis(servers_ms_max), asked).await {
            Ok(answered) => answered,
            Err(_) => Err(anyhow!("the servers took longer than {servers_ms_max} ms")),
        }
    }
}

/// A program in the switch.
pub struct Conductor<C> {
    pub(super) board: Switchboard,
    pub(super) config: Arc<Config>,
    pub(super) limits: Limits,
    connections: C,
    holds: Option<u64>,
    /// Since when.
    held_at: Option<Instant>,
    /// The attempt that this program ended last, and why, until that is told.
    ended: Option<(u64, String)>,
    /// The last attempt of which was said whom it waited for.
    told: Option<u64>,
    /// Why one was given up, until somebody has taken it.
    given_up: Option<String>,
    /// What was said to the store last, and when.
    beat: Option<(Option<u64>, Instant)>,
    /// For how long others were silent while the store answered.
    silences: Silences,
    /// What the program has measured itself.
    own_time: OwnTime,
    /// The attempt behind which tables were looked at last, and what was in force.
    pub(super) looked_at: Option<(u64, Vec<InForce>)>,
    /// Tables that get no keys, of rules that give some.
    pub(super) held_back: HeldBack,
}

/// The rules that the attempt is about.
pub(super) fn changing(standing: &Standing) -> BTreeSet<RuleName> {
    let rules = standing.rules.iter().filter(|rule| rule.next.is_some());
    rules.map(|rule| rule.rule.clone()).collect()
}

pub(super) fn store_error(failure: Failure) -> anyhow::Error {
    anyhow!("{failure}")
}

impl<C: ClientConnections> Conductor<C> {
    /// Of a program that begins now.
    pub fn new(board: Switchboard, config: Arc<Config>, limits: Limits, connections: C) -> Self {
        Self {
            board,
            config,
            limits,
            connections,
            holds: None,
            held_at: None,
            ended: None,
            told: None,
            given_up: None,
            beat: None,
            silences: Silences::default(),
            own_time: OwnTime::default(),
            looked_at: None,
            held_back: HeldBack::default(),
        }
    }

    /// Another configuration.
    pub fn configure(&mut self, config: Arc<Config>, limits: Limits) {
        self.limits = limits;
        self.config = config;
    }

    /// Whether this program has connections of its own to the servers of all its listeners. One that has key ports only knows no servers.
    pub fn can_lead(&self) -> bool {
        let mut listeners = self.config.listeners.iter();
        listeners.len() > 0 && listeners.all(|listener| listener.admin.is_some())
    }

    /// Whether statements wait for an attempt.
    pub fn is_holding(&self) -> bool {
        self.holds.is_some()
    }

    /// How long things may take.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Its connections.
    pub fn connections(&self) -> &C {
        &self.connections
    }

    /// Why an attempt was given up that did not come far enough, as the log has it; once.
    pub fn take_given_up(&mut self) -> Option<String> {
        self.given_up.take()
    }

    /// Begins to let tables go over. False: somebody else is at it, or something else is in force.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn begin(&self, changes: &[Change]) -> Result<bool> {
        let begun = self.board.begin(changes).await.map_err(store_error)?;
        if let Some(attempt) = begun {
            tracing::info!(attempt, ?changes, "a switch begins");
        }
        Ok(begun.is_some())
    }

    /// Asks the store, and does the next thing.
    ///
    /// # Errors
    /// The store or a server fails; the next step tries again.
    pub async fn step(&mut self) -> Result<Next> {
        if self.beat.is_none() {
            // Before anything else, so that everybody waits for it.
            self.say(None).await?;
        }
        let standing = self.standing().await?;
        let me = Participant {
            program: self.board.program(),
            can_lead: self.can_lead(),
            holds: self.holds,
            is_quiet: self.connections.is_quiet(),
            wait_ms_max: self.limits.wait_ms_max,
            peer_wait_ms: self.limits.peer_wait_ms,
        };
        let next = decide(&me, &standing);
        match next {
            Next::Follow => {
                self.look_before(&standing).await;
                if !self.connections.follow(&standing) {
                    self.say_again(None).await?;
                    return Ok(Next::Wait);
                }
                self.holds = None;
                self.say_again(None).await?;
            }
            Next::Hold(attempt) => {
                if !self.connections.hold(&standing) {
                    self.say_again(None).await?;
                    return Ok(Next::Wait);
                }
                (self.holds, self.held_at) = (Some(attempt), Some(Instant::now()));
            }
            Next::Acknowledge(attempt) => self.say(Some(attempt)).await?,
            Next::Carry(attempt) => {
                let carried = self.try_to_carry(attempt, &standing);
                self.beating(attempt, carried).await?;
            }
            Next::End(attempt) => {
                self.wait_for_names().await;
                // Before the store hears of it: whoever is in the way may end meanwhile.
                let why = why_given_up(&standing, &me, self.connections.in_the_way());
                // The store may do it and not say so.
                self.ended = Some((attempt, why.clone()));
                if self.board.end(attempt).await.map_err(store_error)? {
                    self.tell_given_up(attempt, why);
                }
            }
            Next::Undo(attempt) => {
                self.tell_in_the_way(&standing);
                let undone = self.limits.in_time(self.undo(attempt, &standing));
                self.beating(attempt, undone).await?;
            }
            Next::Complete(attempt) => {
                let completed = self.limits.in_time(self.complete(attempt, &standing));
                self.beating(attempt, completed).await?;
            }
            Next::Wait => {
                self.tell_in_the_way(&standing);
                self.beat_again().await?;
            }
        }
        Ok(next)
    }

    /// Others have given an attempt up, and do not know the clients of this program, be it the one that began it. It may have been for another
    /// reason.
    fn tell_in_the_way(&mut self, standing: &Standing) {
        if standing.phase != Phase::Ending || self.told == Some(standing.attempt) {
            return;
        }
        let own = self.ended.take();
        if let Some((attempt, why)) = own.filter(|(ended, _)| *ended == standing.attempt) {
            return self.tell_given_up(attempt, why);
        }
        if let Some(own) = self.connections.in_the_way() {
            let why = format!("the switch is given up; it waited also for this program: {own}");
            self.tell_given_up(standing.attempt, why);
        }
    }

    /// An attempt may be late before connections have had a turn. Who was in the way is known only while it lasts.
    async fn wait_for_names(&self) {
        let Some(held_at) = self.held_at else {
            return;
        };
        let limit = Duration::from_millis(NAMES_MS_MAX);
        while self.connections.is_unnamed() && held_at.elapsed() < limit {
            sleep(Duration::from_millis(NAMES_LOOK_MS)).await;
        }
    }

    fn tell_given_up(&mut self, attempt: u64, why: String) {
        tracing::warn!(attempt, "{why}");
        (self.told, self.given_up) = (Some(attempt), Some(why));
    }

    /// Says that the program is there, and what it said last.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn beat_again(&mut self) -> Result<()> {
        self.say_again(self.beat.and_then(|(held, _)| held)).await
    }

    /// What the store says. While it was away nobody was heard of: that is no silence of theirs. While its clock is behind, the program's own counts.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn standing(&mut self) -> Result<Standing> {
        let asked = Instant::now();
        let standing = self.board.standing().await;
        if standing.is_err() {
            self.lose();
        }
        let mut standing = standing.map_err(store_error)?;
        let answered = Instant::now();
        self.silences.learn(answered, &mut standing.peers);
        self.own_time.learn((asked, answered), &mut standing);
        Ok(standing)
    }

    /// The store does not answer.
    fn lose(&mut self) {
        self.silences.lose();
        self.own_time.lose();
    }

    async fn say(&mut self, held: Option<u64>) -> Result<()> {
        let said = self.board.beat(held).await;
        if said.is_err() {
            self.lose();
        }
        said.map_err(store_error)?;
        self.beat = Some((held, Instant::now()));
        Ok(())
    }

    /// Only what is new, or was long ago.
    async fn say_again(&mut self, held: Option<u64>) -> Result<()> {
        match self.beat {
            Some((said, at)) if said == held && at.elapsed() < Duration::from_millis(BEAT_MS) => {
                Ok(())
            }
            Some(_) | None => self.say(held).await,
        }
    }

    /// Does what the attempt has come to, for which statements wait. Meanwhile others hear that the program is there: they take an attempt over
    /// whose leader they do not hear of.
    async fn beating<T>(&self, attempt: u64, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let beat = async {
                sleep(Duration::from_millis(BEAT_MS)).await;
                self.board.beat(Some(attempt)).await
            };
            tokio::select! {
                done = &mut work => return done,
                beat = beat => {
                    if let Err(failure) = beat {
                        tracing::debug!(%failure, "the store does not hear that the program is there");
                    }
                }
            }
        }
    }

    /// Whatever goes wrong, statements do not wait for it until the attempt is late.
    async fn try_to_carry(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let limit = Duration::from_millis(self.limits.wait_ms_max);
        let carried = match timeout(limit, self.carry(attempt, standing)).await {
            Ok(carried) => carried,
            Err(_) => Err(anyhow!("the servers took longer than switch_wait_ms_max")),
        };
        let Err(why) = carried else {
            return Ok(());
        };
        // It may have come into force: then there is nothing to end.
        match self.board.end(attempt).await {
            Ok(_) => Err(why),
            Err(failure) => Err(anyhow!("{why:#}; {failure}")),
        }
    }

    /// The servers that can be reached soon: others wait for this program meanwhile.
    pub(super) async fn some_servers(&self) -> Vec<Server> {
        servers::connect_to_some(&self.config, self.limits.wait_ms_max).await
    }
}
