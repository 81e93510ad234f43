//! What comes after a switch: servers that took over, tables that came later, and such as have ids of their own that are still to be
//! given.
//!
//! A server cannot always be told from another by what it says of itself. So a table that was seen with ids and without its fence, or with one of which
//! the store knows nothing, gets no keys, wherever it is, until the switch was repeated, if these are above all that its keys' source has reserved.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use keywright_store::switch::{
    Dropped, IdSpan, InForce, KeySpace, LateTable, Phase, RuleName, Standing, missing,
};

use super::brought::{Given, Lack, Unsettled, fenced_table};
use super::conduct::{Ahead, ClientConnections, Conductor, store_error};
use super::fence::{Outcome, Reading, fence, not_altered};
use super::held_back::{Found, HeldTable, Remedy};
use super::servers::{self, Server};
use crate::schema::KeyColumn;

/// When tables are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Right behind a switch, or before the first statement.
    BehindSwitch,
    Again,
    /// The store cannot be asked what was reserved, so any ids may be above that.
    WithoutStore,
}

impl<C: ClientConnections> Conductor<C> {
    /// The rules of this program that give keys by the switch, and have a server on which these are not in force, or a table with ids of its own on one
    /// that could be looked at.
    pub async fn on_unknown_servers(&self, standing: &Standing) -> BTreeSet<RuleName> {
        if !self.can_lead() {
            return BTreeSet::new();
        }
        let servers = self.some_servers().await;
        let switched = servers::switched(&self.config);
        let is_unknown_server = |rule: &&InForce| {
            let mut servers = servers.iter();
            let is_ahead = self.held_back.repeated().contains(&rule.rule);
            rule.keys.is_some()
                && switched.contains(&rule.rule)
                && (is_ahead || servers.any(|server| !rule.servers.contains(&server.identity)))
        };
        let rules = standing.rules.iter().filter(is_unknown_server);
        rules.map(|rule| rule.rule.clone()).collect()
    }

    /// Whether a table of a rule that gives keys has ids of its own that are still to be given, on a server that could be looked at.
    pub fn has_ahead(&self) -> bool {
        !self.held_back.repeated().is_empty()
    }

    /// Whether a table gets no keys because another rule in force gives it others.
    pub fn has_of_others(&self) -> bool {
        self.held_back.has_of_others()
    }

    /// Fences tables that came later, of rules that give keys, and records those that have brought a fence. Such as have ids above all that was
    /// reserved get no keys until keys go on above them; where a table's ids may be among those that were reserved, these are dropped. Tables that wait
    /// for the switch to be repeated are left to it, unless it cannot be soon: whoever writes past the programs would make ids until then.
    ///
    /// # Errors
    /// The store fails, or a server, which keeps none from the others.
    pub async fn fence_missing(&mut self) -> Result<()> {
        if !self.can_lead() {
            return Ok(());
        }
        let standing = self.standing().await?;
        let given = Given::of(&standing);
        if given.is_empty() || standing.phase != Phase::None {
            return Ok(());
        }
        let can_repeat = missing(self.limits.peer_wait_ms, &standing).is_none();
        self.held_back.begin_look();
        let mut servers = Vec::new();
        let mut has_dropped = false;
        let mut fenced = Ok(());
        for mut server in self.some_servers().await {
            let its = self.fence_missing_on(&mut server, &given, can_repeat, &mut has_dropped);
            match its.await {
                Ok(its) => {
                    servers.push(server);
                    fenced = fenced.and(its);
                }
                Err(error) => fenced = fenced.and(Err(error)),
            }
        }
        if has_dropped {
            // Others do with their next step. Where something is in the way of that here, so does this one.
            let standing = self.standing().await?;
            self.connections().follow(&standing);
        }
        let looked = self.look_ahead(&mut servers, &given, Look::Again);
        fenced.and(looked.await)
    }

    /// `has_dropped` is set where programs are to drop what they have reserved. Inside: what was wrong with a table, which keeps none from the others.
    ///
    /// # Errors
    /// The server cannot be looked at any more.
    async fn fence_missing_on(
        &self,
        server: &mut Server,
        given: &Given,
        can_repeat: bool,
        has_dropped: &mut bool,
    ) -> Result<Result<()>> {
        let mut fenced = Ok(());
        for table in self.unsettled(server, given, true).await? {
            let place = (server.identity.clone(), table.column.quoted_table());
            let Some((keys, _)) = given.get(&table.rule) else {
                continue;
            };
            match table.lack {
                Lack::Fence | Lack::Record => {}
                Lack::Rule(_) => continue,
            }
            // Its lock does not come.
            let Some(next) = table.next else {
                continue;
            };
            let waits = self.held_back.has(&place);
            if waits && (can_repeat || !self.is_reserved(keys, next).await?) {
                continue;
            }
            match self.fence_late(server, keys, &table).await {
                Ok(its) => *has_dropped |= its,
                Err(error) => {
                    fenced = fenced.and(Err(error));
                    // The table's lock goes with the connection.
                    servers::connect_again(server, &self.config).await?;
                }
            }
        }
        Ok(fenced)
    }

    /// Whether all ids of a table, which are below `next`, are below what was reserved of its keys, as far as that is known without a lock.
    async fn is_reserved(&self, keys: &KeySpace, next: u64) -> Result<bool> {
        let span = self.board.span(keys).await.map_err(store_error)?;
        Ok(span.is_some_and(|span| next <= span.bound))
    }

    /// Before connections follow what is in force for the first time: looks at the tables that give keys from now on. Behind a switch all
    /// of them have their fence; one that has ids and none was not part of it, and its ids may be among those that others reserved. Of a server that
    /// cannot be asked nothing is known, as before; the next look comes back to it.
    pub(super) async fn look_before(&mut self, standing: &Standing) {
        let now = (standing.attempt, standing.rules.clone());
        if !self.can_lead() || self.looked_at.as_ref() == Some(&now) {
            return;
        }
        let given = Given::of(standing);
        // What was to be repeated was by the rules before.
        self.held_back.begin_look();
        if !given.is_empty() {
            let mut servers = self.some_servers().await;
            let limits = self.limits;
            let looked = self.look_ahead(&mut servers, &given, Look::BehindSwitch);
            tell_not_known(limits.in_time(looked).await);
        }
        self.looked_at = Some(now);
    }

    /// Before statements go by what was in force when the program was there last, and the store cannot be asked: tables that have no fence
    /// get no keys, and whether one has brought its fence is not known. When the store is back, the look before what it says comes to them again.
    pub async fn look_without_store(&mut self, standing: &Standing) {
        let given = Given::of(standing);
        if !self.can_lead() || given.is_empty() {
            return;
        }
        let mut servers = self.some_servers().await;
        let limits = self.limits;
        let looked = self.look_ahead(&mut servers, &given, Look::WithoutStore);
        tell_not_known(limits.in_time(looked).await);
    }

    /// Has connections give no keys to tables that are ahead.
    ///
    /// # Errors
    /// The store fails, or a server, which keeps none from the others.
    async fn look_ahead(
        &mut self,
        servers: &mut [Server],
        given: &Given,
        look: Look,
    ) -> Result<()> {
        let mut noted = Ahead::new();
        let mut found = Found::default();
        let mut looked = Ok(());
        for server in servers {
            let ahead = match self.ahead_on(server, given, look).await {
                Ok(ahead) => ahead,
                Err(error) => {
                    looked = looked.and(Err(error));
                    continue;
                }
            };
            let mut tables = BTreeMap::new();
            for (column, its) in ahead {
                let place = (server.identity.clone(), column.quoted_table());
                tables.insert((column.schema, column.table), its.remedy.told());
                found.tables.insert(place, its);
            }
            let listeners = server.listeners.iter();
            noted.extend(listeners.map(|listener| (*listener, tables.clone())));
            found.servers.insert(server.identity.clone());
        }
        found.is_all = noted.len() == self.config.listeners.len();
        self.held_back.learn(found);
        self.connections().note_ahead(noted);
        looked
    }

    /// Those of a server's tables that lack their fence, or have brought one, whose next id is above all that was reserved of their keys, so that the
    /// server has made some; right behind a switch all that have ids which keys may have. They stay so until they have their fence, and it is recorded. On a
    /// server on which the keys are not in force nobody gets any yet. And those that have keys by another rule.
    async fn ahead_on(
        &self,
        server: &mut Server,
        given: &Given,
        look: Look,
    ) -> Result<Vec<(KeyColumn, HeldTable)>> {
        let mut ahead = Vec::new();
        let is_store_asked = look != Look::WithoutStore;
        for table in self.unsettled(server, given, is_store_asked).await? {
            let Some((keys, of)) = given.get(&table.rule) else {
                continue;
            };
            if !of.contains(&server.identity) {
                continue;
            }
            let place = (server.identity.clone(), table.column.quoted_table());
            let Some(next) = table.next else {
                let begins = look == Look::BehindSwitch;
                let held = self.held_back.unread(&place, &table.rule, begins);
                ahead.extend(held.map(|held| (table.column, held)));
                continue;
            };
            let remedy = match (&table.lack, self.mend(keys, &table.column)) {
                (Lack::Rule(why), _) => Remedy::Rules(why.clone()),
                (Lack::Fence | Lack::Record, Some(statement)) => Remedy::Statement(statement),
                (Lack::Fence | Lack::Record, None) => Remedy::Switch,
            };
            let is_held = match remedy {
                Remedy::Rules(_) | Remedy::Look => true,
                Remedy::Statement(_) | Remedy::Switch => {
                    self.is_above(keys, next, look).await? || self.held_back.has(&place)
                }
            };
            if !is_held {
                continue;
            }
            if !self.held_back.knows(&place, &remedy) {
                let is_told = self.held_back.has_rule(&table.rule);
                tell_ahead(&table, next, &remedy, is_told);
            }
            let Unsettled { rule, column, .. } = table;
            ahead.push((column, HeldTable { rule, remedy }));
        }
        Ok(ahead)
    }

    /// Whether ids below `next` may be above all that was reserved of these keys; right behind a switch, whether they may be keys.
    async fn is_above(&self, keys: &KeySpace, next: u64, look: Look) -> Result<bool> {
        let span = match look {
            Look::WithoutStore => None,
            Look::BehindSwitch | Look::Again => self.board.span(keys).await.map_err(store_error)?,
        };
        let is_behind_switch = look == Look::BehindSwitch;
        Ok(span.is_none_or(|span| next > span.bound || is_behind_switch && next > span.first))
    }

    /// Fences one of them, or records the fence that it has brought. True: programs are to drop what they have reserved.
    async fn fence_late(
        &self,
        server: &mut Server,
        keys: &KeySpace,
        Unsettled {
            rule, column, lack, ..
        }: &Unsettled,
    ) -> Result<bool> {
        let mut found = None;
        let table = fenced_table(server, (rule, keys), column);
        // Under the table's lock: others may have been faster, and then the record says so.
        let may = async |reading: Reading| {
            let admitted = self
                .board
                .admit(table.clone(), reading.was_fenced, reading.counter);
            let dropped = admitted.await?;
            if let Dropped::All(span) = dropped {
                found = Some((span, reading));
            }
            Ok(dropped != Dropped::Not)
        };
        match fence(&mut server.conn, column, true, may).await? {
            Outcome::Done => {
                let done = match lack {
                    Lack::Fence | Lack::Rule(_) => "fence applied",
                    Lack::Record => "the table came with a fence: it is its rule's from now on",
                };
                tracing::info!(table = column.quoted_table(), "{done}");
            }
            // The next look comes back to it.
            Outcome::Over | Outcome::Blocked(_) | Outcome::Full => {}
            Outcome::NotAltered => bail!(not_altered(column)),
        }
        if let Some((span, reading)) = found {
            self.tell_late(server, (rule, column), (span, reading))
                .await?;
        }
        Ok(found.is_some())
    }

    /// Ids that keys may have and that no key was given for are seen by what keys do not leave behind: rows below the first key, and a counter
    /// that is not the one behind the highest row.
    async fn tell_late(
        &self,
        server: &mut Server,
        (name, column): (&RuleName, &KeyColumn),
        (span, reading): (IdSpan, Reading),
    ) -> Result<()> {
        let lowest = servers::lowest(&mut server.conn, column).await?;
        let has_own = lowest.is_some_and(|lowest| lowest < span.first)
            || reading.above_rows < reading.counter;
        let (came, what) = match reading.was_fenced {
            true => ("with a fence", "the table came with a fence"),
            false => ("without its fence", "the table had no fence"),
        };
        if !has_own {
            tracing::info!(
                table = column.quoted_table(),
                counter = reading.counter,
                "{what}: keys that were reserved and not given are dropped"
            );
            return Ok(());
        }
        let mut listeners = server.listeners.iter();
        let listener = listeners.find_map(|at| self.config.listeners.get(*at));
        let upstream = listener.map_or("", |listener| listener.upstream.as_str());
        let report = format!(
            "{} on {upstream} came {came}, and with ids below {} that are not all keys, while keys are given from {} on: those that \
             were given may be among them. Compare its ids with other tables', unless its rows are copies of rows that had keys. Keys go on above",
            column.quoted_table(),
            reading.counter,
            span.first
        );
        tracing::warn!("{report}");
        self.connections().note_late(name);
        let noted = self.board.note_late(LateTable {
            server: server.identity.clone(),
            schema: column.schema.clone(),
            table: column.table.clone(),
            report,
        });
        noted.await.map_err(store_error)
    }
}

fn tell_not_known(looked: Result<()>) {
    if let Err(error) = looked {
        tracing::warn!("whether tables in force have their fence is not known: {error:#}");
    }
}

/// Once for each rule that has one which its switch puts right; of the others, each.
fn tell_ahead(
    Unsettled { column, lack, .. }: &Unsettled,
    next: u64,
    remedy: &Remedy,
    is_told: bool,
) {
    let table = column.quoted_table();
    let has = match lack {
        Lack::Fence | Lack::Rule(_) => "the table has ids and no fence",
        Lack::Record => "the table came with a fence, and has ids that are still to be given",
    };
    match remedy {
        Remedy::Rules(why) => {
            tracing::warn!(table, "the table gets no keys from this program: {why}");
        }
        Remedy::Statement(mend) => tracing::warn!(
            table,
            next,
            "{has}, and hidden keys may be any, so that it gets no keys. If all its ids are keys of its tag, as after TRUNCATE or in a copy: {mend}"
        ),
        Remedy::Look => {}
        Remedy::Switch if is_told => {}
        Remedy::Switch => tracing::warn!(
            table,
            next,
            "{has}: the switch is repeated, so that keys go on above them. What was given until now may be among them"
        ),
    }
}
