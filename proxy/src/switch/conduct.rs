//! One step of a program through the switch: it asks the store, decides, and does one thing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use keywright_store::Failure;
use keywright_store::switch::{
    Change, Committed, InForce, KeySpace, Me, Next, Phase, Reached, Recorded, RuleName, Standing,
    Switchboard, decide,
};
use tokio::time::{Instant, timeout};

use super::fence::{Outcome, Reading, fence, kill, lift, probe};
use super::servers::{self, Server};
use crate::config::Config;
use crate::schema::{self, KeyColumn, quoted};

/// How often a program says that it is there, milliseconds.
const BEAT_MS: u64 = 1_000;

/// Tables that have no fence and ids of their own that are still to be given, by schema and name; by the listener's place, of those
/// whose servers could be looked at.
pub type Ahead = BTreeMap<usize, BTreeSet<(String, String)>>;

/// The connections of a program's clients.
pub trait ClientConnections {
    /// New statements on the tables that the attempt is about wait from now on. False: something is under way by what was in force
    /// before.
    fn hold(&self, standing: &Standing) -> bool;
    /// Whether nothing is under way on these tables.
    fn is_quiet(&self) -> bool;
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

/// A program in the switch.
pub struct Conductor<C> {
    pub(super) board: Switchboard,
    pub(super) config: Arc<Config>,
    limits: Limits,
    connections: C,
    holds: Option<u64>,
    /// What was said to the store last, and when.
    beat: Option<(Option<u64>, Instant)>,
    /// The store did not answer the last time.
    has_lost_store: bool,
    /// Since when it answers again; `None`: it always did.
    answers_since: Option<Instant>,
    /// The attempt behind which tables were looked at last, and what was in force.
    pub(super) looked_at: Option<(u64, Vec<InForce>)>,
    /// Rules that give keys and have tables with ids and without fence.
    pub(super) ahead: BTreeSet<RuleName>,
    /// These tables, by server.
    pub(super) held_back: BTreeSet<(String, String)>,
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
            beat: None,
            has_lost_store: false,
            answers_since: None,
            looked_at: None,
            ahead: BTreeSet::new(),
            held_back: BTreeSet::new(),
        }
    }

    /// Another configuration.
    pub fn configure(&mut self, config: Arc<Config>, limits: Limits) {
        self.limits = limits;
        self.config = config;
    }

    /// Whether this program has connections of its own to the servers of all its listeners.
    pub fn can_lead(&self) -> bool {
        let mut listeners = self.config.listeners.iter();
        listeners.all(|listener| listener.admin.is_some())
    }

    /// Whether statements wait for an attempt.
    pub fn is_holding(&self) -> bool {
        self.holds.is_some()
    }

    /// Its connections.
    pub fn connections(&self) -> &C {
        &self.connections
    }

    /// Begins to let tables go over. False: somebody else is at it, or something else is in force.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn begin(&self, changes: &[Change]) -> Result<bool> {
        let begun = self.board.begin(changes).await.map_err(store_error)?;
        if let Some(attempt) = begun {
            tracing::info!(attempt, ?changes, "tables are to go over");
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
        let me = Me {
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
                self.holds = Some(attempt);
            }
            Next::Acknowledge(attempt) => self.say(Some(attempt)).await?,
            Next::Carry(attempt) => self.try_to_carry(attempt, &standing).await?,
            Next::End(attempt) => {
                if self.board.end(attempt).await.map_err(store_error)? {
                    tracing::warn!(attempt, "the switch took too long, and is given up");
                }
            }
            Next::Undo(attempt) => self.undo(attempt, &standing).await?,
            Next::Complete(attempt) => self.complete(attempt, &standing).await?,
            Next::Wait => self.say_again(self.beat.and_then(|(held, _)| held)).await?,
        }
        Ok(next)
    }

    /// What the store says. While it was away nobody was heard of: that is no silence of theirs.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn standing(&mut self) -> Result<Standing> {
        let standing = self.board.standing().await;
        let had_lost_store = std::mem::replace(&mut self.has_lost_store, standing.is_err());
        let mut standing = standing.map_err(store_error)?;
        if had_lost_store {
            self.answers_since = Some(Instant::now());
        }
        if let Some(since) = self.answers_since {
            let answers_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            for peer in &mut standing.peers {
                peer.silent_ms = peer.silent_ms.min(answers_ms);
            }
        }
        Ok(standing)
    }

    async fn say(&mut self, held: Option<u64>) -> Result<()> {
        let said = self.board.beat(held).await;
        self.has_lost_store |= said.is_err();
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

    /// Whatever goes wrong, statements do not wait for it until the attempt is late.
    async fn try_to_carry(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let limit = Duration::from_millis(self.limits.wait_ms_max);
        let carried = match timeout(limit, self.carry(attempt, standing)).await {
            Ok(carried) => carried,
            Err(_) => Err(anyhow!("the servers took longer than switch_wait_ms_max")),
        };
        if carried.is_err() {
            // It may have come into force: then there is nothing to end.
            self.board.end(attempt).await.map_err(store_error)?;
        }
        carried
    }

    /// All hold: fences all tables and commits; where they go back to native, records them and closes their tags.
    async fn carry(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let names = changing(standing);
        let configured: BTreeSet<RuleName> =
            self.config.rules.iter().map(servers::name_of).collect();
        if let Some(name) = names.iter().find(|name| !configured.contains(name)) {
            self.give_up(attempt, format!("rule {} is not configured", name.tables))
                .await?;
        }
        let is_back = standing.rules.iter().any(|rule| rule.next == Some(None));
        let own = self.own_fences(attempt, standing).await?;
        let mut servers = servers::connect(&self.config).await?;
        for server in &mut servers {
            let replication = schema::replication(&mut server.conn).await?;
            let mut found = schema::obstacles(&replication, &self.config).found;
            if !is_back {
                found.extend(servers::narrow(server, &self.config, &names).await?);
            }
            if !found.is_empty() {
                self.give_up(attempt, found.join("; ")).await?;
            }
        }
        let keys_of = coming(standing);
        let mut reached = Reached::default();
        let mut seen = BTreeSet::new();
        for server in &mut servers {
            for (name, column) in servers::tables_of(server, &self.config, &names).await? {
                let is_own = own.rules.contains(&name)
                    || own
                        .tables
                        .contains(&(server.identity.clone(), column.quoted_table()));
                let done = match is_back {
                    true => self.note(attempt, server, &column).await?,
                    false if column.fenced && !is_own => {
                        let table = column.quoted_table();
                        return self
                            .give_up(attempt, format!("{table} has a fence already, of another rule or out of a dump: lift it first, and see that no other tag gives it keys"))
                            .await;
                    }
                    false => self.fence(attempt, server, (&name, &column)).await?,
                };
                match done {
                    Outcome::Done => {
                        seen.insert((server.identity.clone(), column.quoted_table()));
                    }
                    Outcome::Over => return Ok(()),
                    Outcome::Blocked(blocker) => {
                        let who = blocker.map_or_else(String::new, |its| format!(": {its}"));
                        let table = column.quoted_table();
                        self.give_up(attempt, format!("{table} is locked{who}"))
                            .await?;
                    }
                }
            }
        }
        for server in &mut servers {
            for (name, column) in servers::tables_of(server, &self.config, &names).await? {
                let table = (server.identity.clone(), column.quoted_table());
                if !seen.contains(&table) {
                    // It has a counter of its own and no fence.
                    self.give_up(attempt, format!("{} was made meanwhile", table.1))
                        .await?;
                }
                let above = servers::above_rows(&mut server.conn, &column).await?;
                if let Some(keys) = keys_of.get(&name) {
                    let place = (&*server.identity, &*column.schema, &*column.table);
                    reached.add_table(place, keys);
                    reached.add_rows(keys, above);
                }
            }
            for (name, above) in servers::above_others(server, &self.config, &names).await? {
                if let Some(keys) = keys_of.get(&name) {
                    reached.add_rows(keys, above);
                }
            }
            if servers::identity(&mut server.conn).await? != server.identity {
                self.give_up(attempt, "a server is another one now".to_owned())
                    .await?;
            }
        }
        let identities = servers.iter().map(|server| server.identity.clone());
        let committed = self.board.commit(attempt, reached, identities.collect());
        match committed.await.map_err(store_error)? {
            Committed::Done => tracing::info!(attempt, "the switch is in force"),
            Committed::Over => {}
            Committed::Unknown(keys) => {
                let why = format!("\"{keys}\" is not in the store");
                self.give_up(attempt, why).await?;
            }
            Committed::Refused(keys, refusal) => {
                let why = format!("\"{keys}\": {refusal}");
                self.give_up(attempt, why).await?;
            }
        }
        Ok(())
    }

    /// The fences that may be there: those of tables that give keys, and of this attempt.
    async fn own_fences(&self, attempt: u64, standing: &Standing) -> Result<OwnFences> {
        let recorded = self.board.recorded(attempt).await.map_err(store_error)?;
        let rules = standing.rules.iter().filter(|rule| rule.keys.is_some());
        Ok(OwnFences {
            rules: rules.map(|rule| rule.rule.clone()).collect(),
            tables: recorded
                .into_iter()
                .map(|its| {
                    let table = format!("{}.{}", quoted(&its.schema), quoted(&its.table));
                    (its.server, table)
                })
                .collect(),
        })
    }

    /// Always an error: why.
    async fn give_up(&self, attempt: u64, why: String) -> Result<()> {
        self.board.end(attempt).await.map_err(store_error)?;
        bail!("the switch is given up: {why}")
    }

    async fn fence(
        &self,
        attempt: u64,
        server: &mut Server,
        (name, column): (&RuleName, &KeyColumn),
    ) -> Result<Outcome> {
        if !self.is_holding_for(attempt).await? {
            return Ok(Outcome::Over);
        }
        let Server { conn, identity, .. } = server;
        let is_fenced = servers::wants_fence(&self.config, name);
        let record = async |reading: Reading| {
            let recorded = recorded(identity, column, reading);
            self.board.record(attempt, recorded).await
        };
        Ok(fence(conn, column, is_fenced, record).await?)
    }

    /// Before a lock is waited for: where nobody holds any more, transactions on the table would be its victims (1213).
    async fn is_holding_for(&self, attempt: u64) -> Result<bool> {
        self.board
            .is_in(attempt, Phase::Holding)
            .await
            .map_err(store_error)
    }

    /// For whoever completes it.
    async fn note(&self, attempt: u64, server: &mut Server, column: &KeyColumn) -> Result<Outcome> {
        if !self.is_holding_for(attempt).await? {
            return Ok(Outcome::Over);
        }
        // Behind the commit there is only one way, and it needs the lock.
        if let Some(blocked) = probe(&mut server.conn, column).await? {
            return Ok(blocked);
        }
        let reading = Reading {
            counter: 0,
            above_rows: 0,
            was_fenced: true,
            session: 0,
        };
        let recorded = recorded(&server.identity, column, reading);
        match self
            .board
            .record(attempt, recorded)
            .await
            .map_err(store_error)?
        {
            true => Ok(Outcome::Done),
            false => Ok(Outcome::Over),
        }
    }

    /// The attempt was ended: whatever it may still do is killed, what it fenced is lifted, and then all are released.
    async fn undo(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let recorded = self.board.recorded(attempt).await.map_err(store_error)?;
        let (mut reached, left) = self.reached(&recorded, standing).await?;
        for server in &mut reached {
            let names = changing(standing);
            let its = servers::recorded_on(server, &self.config, &names, &recorded).await?;
            for session in its.iter().map(|(its, _, _)| its.session_id) {
                if session != 0 {
                    kill(&mut server.conn, session).await?;
                }
            }
            for (its, _, column) in its.iter().filter(|(its, _, _)| !its.was_fenced) {
                let ask = async || self.board.is_in(attempt, Phase::Ending).await;
                let lifted = lift(&mut server.conn, column, its.counter, ask).await?;
                if is_over(lifted, column)? {
                    return Ok(());
                }
            }
        }
        let above = left.iter().map(|its| its.counter).max();
        let released = self.board.release(attempt, above).await;
        if released.map_err(store_error)? {
            tracing::info!(attempt, "the tables are as they were before the switch");
        }
        Ok(())
    }

    /// The tags are closed: counters go on above what they may have issued.
    async fn complete(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let recorded = self.board.recorded(attempt).await.map_err(store_error)?;
        let rules = standing.rules.iter().filter(|rule| rule.next.is_some());
        let above: BTreeMap<&RuleName, u64> = rules
            .filter_map(|rule| Some((&rule.rule, rule.above?)))
            .collect();
        let (mut reached, _) = self.reached(&recorded, standing).await?;
        for server in &mut reached {
            let names = changing(standing);
            let its = servers::recorded_on(server, &self.config, &names, &recorded).await?;
            for (_, name, column) in &its {
                let Some(next) = above.get(name).copied() else {
                    bail!("the bound above which {} goes on is not known", name.tables);
                };
                let ask = async || self.board.is_in(attempt, Phase::Closed).await;
                let lifted = lift(&mut server.conn, column, next, ask).await?;
                if is_over(lifted, column)? {
                    return Ok(());
                }
            }
        }
        if self.board.complete(attempt).await.map_err(store_error)? {
            tracing::info!(attempt, "the tables are native again");
        }
        Ok(())
    }

    /// The servers that can be reached soon: others wait for this program meanwhile.
    pub(super) async fn some_servers(&self) -> Vec<Server> {
        servers::connect_to_some(&self.config, self.limits.wait_ms_max).await
    }

    /// The servers that can be reached, and what was recorded of others, which are left as they are: another one has taken their place, or
    /// they were away for so long that nobody is held up for them any more. What they have of a fence only refuses ids, and is put right when they
    /// are there again.
    async fn reached<'a>(
        &self,
        recorded: &'a [Recorded],
        standing: &Standing,
    ) -> Result<(Vec<Server>, Vec<&'a Recorded>)> {
        if recorded.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let servers = self.some_servers().await;
        let is_reached = |its: &Recorded| servers.iter().any(|to| to.identity == its.server);
        let left: Vec<&Recorded> = recorded.iter().filter(|its| !is_reached(its)).collect();
        let Some(its) = left.first() else {
            return Ok((servers, left));
        };
        let where_is = format!("{}, where {}.{} is", its.server, its.schema, its.table);
        let answering: usize = servers.iter().map(|server| server.listeners.len()).sum();
        // Who led has reached them by its own listeners. Somebody else may have others.
        let is_replaced = standing.leader.as_deref() == Some(self.board.program())
            && answering == self.config.listeners.len();
        let wait_ms = self.limits.wait_ms_max;
        if !is_replaced && standing.age_ms <= self.limits.peer_wait_ms.saturating_add(wait_ms) {
            bail!("the switch cannot be finished from here now: no listener reaches {where_is}");
        }
        tracing::warn!(
            "the switch is finished without a server that no listener reaches: {where_is}"
        );
        Ok((servers, left))
    }
}

/// Fences that may be there.
struct OwnFences {
    rules: BTreeSet<RuleName>,
    /// Server and table.
    tables: BTreeSet<(String, String)>,
}

/// The rules that the attempt is about.
fn changing(standing: &Standing) -> BTreeSet<RuleName> {
    let rules = standing.rules.iter().filter(|rule| rule.next.is_some());
    rules.map(|rule| rule.rule.clone()).collect()
}

/// The keys that rules go over to.
fn coming(standing: &Standing) -> BTreeMap<RuleName, KeySpace> {
    let rules = standing.rules.iter();
    let coming = rules.filter_map(|rule| Some((rule.rule.clone(), rule.next.clone()??)));
    coming.collect()
}

fn recorded(server: &str, column: &KeyColumn, reading: Reading) -> Recorded {
    Recorded {
        server: server.to_owned(),
        schema: column.schema.clone(),
        table: column.table.clone(),
        counter: reading.counter,
        was_fenced: reading.was_fenced,
        session_id: reading.session,
    }
}

/// Whether somebody else has finished it.
fn is_over(outcome: Outcome, column: &KeyColumn) -> Result<bool> {
    match outcome {
        Outcome::Done => Ok(false),
        Outcome::Over => Ok(true),
        Outcome::Blocked(blocker) => {
            let who = blocker.map_or_else(String::new, |its| format!(": {its}"));
            bail!("{} is locked{who}", column.quoted_table())
        }
    }
}
