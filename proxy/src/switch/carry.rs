//! The step that all others lead to: every program holds, so the tables are fenced and the attempt is committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use keywright_store::switch::{
    CommitRefusal, Committed, FencedTable, InForce, KeySpace, Phase, Reached, Recorded, RuleName,
    Standing, keys_in_force,
};
use tokio::time::timeout;

use super::brought::fenced_table;
use super::claim::Claim;
use super::conduct::{ClientConnections, Conductor, changing, store_error};
use super::fence::{Outcome, Reading, fence, probe};
use super::held_back::ServerTable;
use super::servers::{self, Server};
use crate::schema::{self, KeyColumn, quoted};

/// How long is looked for more that is in the way, milliseconds, where something is. A slow server is not to keep that back.
const MORE_MS_MAX: u64 = 500;

/// Fences that may be there.
struct OwnFences {
    rules: BTreeSet<RuleName>,
    tables: BTreeSet<ServerTable>,
    /// What the store says of all rules.
    known: Vec<InForce>,
}

impl OwnFences {
    fn has(&self, rule: &RuleName, table: &ServerTable) -> bool {
        self.rules.contains(rule) || self.tables.contains(table)
    }
}

impl<C: ClientConnections> Conductor<C> {
    /// All hold: fences all tables and commits; where they go back to native, records them and closes their tags.
    pub(super) async fn carry(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let names = changing(standing);
        let switched = servers::switched(&self.config);
        if let Some(name) = names.difference(&switched).next() {
            return Err(given_up(&format!("rule {} is not configured", name.tables)));
        }
        let is_back = standing.rules.iter().any(|rule| rule.next == Some(None));
        let own = self.own_fences(attempt, standing).await?;
        let mut servers = servers::connect(&self.config).await?;
        let claim = Claim::of(attempt, standing.leader.as_deref());
        for server in &mut servers {
            if !claim.take(&mut server.conn).await? {
                let why = format!("another connection locks tables on {}", server.identity);
                return Err(given_up(&why));
            }
            self.look_for_obstacles(server, (&names, is_back)).await?;
            let others = self.of_others(server, (&names, standing)).await?;
            if !others.is_empty() {
                return Err(given_up(&others.join("; ")));
            }
        }
        let mut seen = BTreeSet::new();
        for server in &mut servers {
            let own = (!is_back).then_some(&own);
            match self.carry_tables(attempt, server, &names, own).await? {
                Some(tables) => seen.extend(tables),
                None => return Ok(()),
            }
        }
        let keys_of = coming(standing);
        let keep: BTreeSet<RuleName> = keeping(standing);
        let mut reached = Reached::default();
        for server in &mut servers {
            let to = ((&keys_of, &keep), &mut reached);
            self.read_reached(server, (&names, &seen), to).await?;
        }
        let identities = servers.iter().map(|server| server.identity.clone());
        let committed = self.board.commit(attempt, reached, identities.collect());
        match committed.await.map_err(store_error)? {
            Committed::Done => tracing::info!(attempt, "the switch is in force"),
            Committed::Over => {}
            Committed::Unknown(keys) => {
                let why = format!("\"{keys}\" is not in the store");
                return Err(given_up(&why));
            }
            Committed::Refused(keys, refusal) => {
                let why = format!("\"{keys}\": {refusal}{}", self.mends(refusal));
                return Err(given_up(&why));
            }
        }
        Ok(())
    }

    /// What lets the tables of hidden keys have keys again that have lost their fence.
    fn mends(&self, refusal: CommitRefusal) -> String {
        let mends = self.held_back.mends();
        match refusal {
            CommitRefusal::NotEmpty(_) if !mends.is_empty() => {
                let mends: Vec<&str> = mends.into_iter().collect();
                format!(
                    ". Of tables that have lost their fence, if all their ids are keys of the tag: {}",
                    mends.join("; ")
                )
            }
            CommitRefusal::NotEmpty(_)
            | CommitRefusal::Exhausted(_)
            | CommitRefusal::Foreign
            | CommitRefusal::GoneBack(_)
            | CommitRefusal::Hidden
            | CommitRefusal::Ahead(_, _)
            | CommitRefusal::BeforeEpoch(_) => String::new(),
        }
    }

    /// An error where something on a server is in the way.
    async fn look_for_obstacles(
        &self,
        server: &mut Server,
        (names, is_back): (&BTreeSet<RuleName>, bool),
    ) -> Result<()> {
        let replication = schema::replication(&mut server.conn).await?;
        let mut found = schema::obstacles(&replication, &self.config).found;
        if !is_back {
            let unfit = servers::unfit(server, &self.config, names);
            if found.is_empty() {
                found = unfit.await?;
            } else if let Ok(Ok(more)) = timeout(Duration::from_millis(MORE_MS_MAX), unfit).await {
                found.extend(more);
            }
        }
        match found.is_empty() {
            true => Ok(()),
            false => Err(given_up(&found.join("; "))),
        }
    }

    /// Fences a server's tables, or records them where they go back (`own` is `None`); which ones. `None`: the attempt is over.
    async fn carry_tables(
        &self,
        attempt: u64,
        server: &mut Server,
        names: &BTreeSet<RuleName>,
        own: Option<&OwnFences>,
    ) -> Result<Option<Vec<ServerTable>>> {
        let mut seen = Vec::new();
        for (name, column) in servers::tables_of(server, &self.config, names).await? {
            let table = (server.identity.clone(), column.quoted_table());
            if own.is_some()
                && let Some(why) = servers::unfenceable(&self.config, &name, &column)
            {
                return Err(given_up(&why));
            }
            let done = match own {
                None => self.note(attempt, server, &column).await?,
                Some(own) if column.fenced && !own.has(&name, &table) => {
                    let why = self.of_others_fence(server, &column, own).await?;
                    return Err(given_up(&why));
                }
                Some(_) => self.fence(attempt, server, (&name, &column)).await?,
            };
            if let Some(why) = done.obstacle(&column) {
                return Err(given_up(&why));
            }
            if done == Outcome::Over {
                return Ok(None);
            }
            seen.push(table);
        }
        Ok(Some(seen))
    }

    /// Why a table cannot go over that has a fence which is not its rule's, for people.
    async fn of_others_fence(
        &self,
        server: &mut Server,
        column: &KeyColumn,
        own: &OwnFences,
    ) -> Result<String> {
        let table = column.quoted_table();
        let above = servers::above_rows(&mut server.conn, column).await?;
        if column.integer_max().is_some_and(|max| above > max) {
            return Ok(column.why_full());
        }
        let recorded = self.board.fenced(&server.identity).await;
        let recorded = recorded.map_err(store_error)?;
        let is_it = |its: &&FencedTable| its.schema == column.schema && its.table == column.table;
        let set_by = recorded.iter().find(is_it).and_then(|its| {
            let keys = keys_in_force(its, &own.known)?;
            Some((&its.rule, keys))
        });
        Ok(match set_by {
            Some(set_by) => schema::has_fence_by(&table, set_by),
            None => format!(
                "{table} has a fence already, of another rule, of another store or out of a dump: see that nobody else gives it keys, and lift it first, as keywright release says"
            ),
        })
    }

    /// How far the ids of a server's tables have come; an error where a table has come meanwhile.
    async fn read_reached(
        &self,
        server: &mut Server,
        (names, seen): (&BTreeSet<RuleName>, &BTreeSet<ServerTable>),
        ((keys_of, keep), reached): (
            (&BTreeMap<RuleName, KeySpace>, &BTreeSet<RuleName>),
            &mut Reached,
        ),
    ) -> Result<()> {
        for (name, column) in servers::tables_of(server, &self.config, names).await? {
            let table = (server.identity.clone(), column.quoted_table());
            if !seen.contains(&table) {
                // It has a counter of its own and no fence.
                return Err(given_up(&format!("{} was made meanwhile", table.1)));
            }
            if keys_of.contains_key(&name)
                && let Some(why) = servers::unfenceable(&self.config, &name, &column)
            {
                return Err(given_up(&why));
            }
            let above = servers::above_rows(&mut server.conn, &column).await?;
            if let Some(keys) = keys_of.get(&name) {
                let place = (&*server.identity, &*column.schema, &*column.table);
                reached.add_table(place, keys);
                if servers::wants_fence(&self.config, &name) {
                    let its = fenced_table(server, (&name, keys), &column);
                    reached.add_fenced(its);
                }
                reached.add_rows(keys, above, keep.contains(&name));
            }
        }
        for (name, above) in servers::above_others(server, &self.config, names).await? {
            if let Some(keys) = keys_of.get(&name) {
                reached.add_rows(keys, above, keep.contains(&name));
            }
        }
        if servers::identity(&mut server.conn).await? != server.identity {
            return Err(given_up("a server is another one now"));
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
            known: standing.rules.clone(),
        })
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
        // Behind the commit there is only one way, and it needs the lock and the statement.
        if let Some(blocked) = probe(&mut server.conn, column).await? {
            return Ok(blocked);
        }
        let reading = Reading {
            counter: 0,
            above_rows: 0,
            was_fenced: true,
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
}

/// Whoever has the attempt carried ends it: the reason does not wait for the store.
fn given_up(why: &str) -> Error {
    anyhow!("the switch is given up: {why}")
}

/// The keys that rules go over to.
fn coming(standing: &Standing) -> BTreeMap<RuleName, KeySpace> {
    let rules = standing.rules.iter();
    let coming = rules.filter_map(|rule| Some((rule.rule.clone(), rule.next.clone()??)));
    coming.collect()
}

/// The rules that have these keys already, on other servers.
fn keeping(standing: &Standing) -> BTreeSet<RuleName> {
    let rules = standing.rules.iter();
    let keeping =
        rules.filter(|rule| rule.keys.is_some() && rule.next.as_ref() == Some(&rule.keys));
    keeping.map(|rule| rule.rule.clone()).collect()
}

fn recorded(server: &str, column: &KeyColumn, reading: Reading) -> Recorded {
    Recorded {
        server: server.to_owned(),
        schema: column.schema.clone(),
        table: column.table.clone(),
        counter: reading.counter,
        was_fenced: reading.was_fenced,
    }
}
