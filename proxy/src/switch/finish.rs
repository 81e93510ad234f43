//! The ends of an attempt: what it fenced is lifted again, or the tables are native again.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use keywright_store::switch::{Phase, Recorded, RuleName, Standing};

use super::claim::Claim;
use super::conduct::{ClientConnections, Conductor, changing, store_error};
use super::servers::{self, Server};
use crate::schema::KeyColumn;

/// How long it may take to reach servers of which nothing was recorded, milliseconds: statements wait.
const UNRECORDED_MS_MAX: u64 = 1_000;
/// How many tables that were left are named.
const LEFT_TOLD_MAX: usize = 10;
/// How many tables are named whose column is full.
const FULL_TOLD_MAX: usize = 10;

impl<C: ClientConnections> Conductor<C> {
    /// The attempt was ended: whatever it may still do is killed, what it fenced is lifted, and then all are released.
    pub(super) async fn undo(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let recorded = self.board.recorded(attempt).await.map_err(store_error)?;
        let (mut reached, mut left) = self.reached(&recorded, standing).await?;
        let claim = Claim::of(attempt, standing.leader.as_deref());
        for server in &mut reached {
            claim.take_over(&mut server.conn).await?;
            let names = changing(standing);
            let its = servers::recorded_on(server, &self.config, &names, &recorded).await?;
            let found = (recorded.as_slice(), its.as_slice());
            let of_attempt = |its: &Recorded| !its.was_fenced;
            let unknown =
                servers::unknown_on(server, &self.config, &names, found, of_attempt).await?;
            self.may_leave(&unknown, standing)?;
            left.extend(unknown);
            let own = its.iter().filter(|(its, ..)| !its.was_fenced);
            let tables: Vec<(&KeyColumn, u64)> =
                own.map(|(its, _, column)| (column, its.counter)).collect();
            let of = (attempt, Phase::Ending);
            if self.lift_of_attempt(of, server, &tables).await?.is_none() {
                return Ok(());
            }
        }
        let above = left.iter().map(|its| its.counter).max();
        let released = self.board.release(attempt, above).await;
        if released.map_err(store_error)? {
            tracing::info!(
                attempt,
                "the switch was undone, and the tables are as before"
            );
        }
        Ok(())
    }

    /// The tags are closed: counters go on above what they may have issued.
    pub(super) async fn complete(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let recorded = self.board.recorded(attempt).await.map_err(store_error)?;
        let rules = standing.rules.iter().filter(|rule| rule.next.is_some());
        let above: BTreeMap<&RuleName, u64> = rules
            .filter_map(|rule| Some((&rule.rule, rule.above?)))
            .collect();
        let (mut reached, mut left) = self.reached(&recorded, standing).await?;
        let mut unknown = Vec::new();
        let mut full = Vec::new();
        let claim = Claim::of(attempt, standing.leader.as_deref());
        for server in &mut reached {
            claim.take_over(&mut server.conn).await?;
            let names = changing(standing);
            let its = servers::recorded_on(server, &self.config, &names, &recorded).await?;
            let mut tables = Vec::with_capacity(its.len());
            for (_, name, column) in &its {
                let Some(next) = above.get(name).copied() else {
                    bail!("the bound above which {} goes on is not known", name.tables);
                };
                tables.push((column, next));
            }
            let of = (attempt, Phase::Closed);
            let Some(its_full) = self.lift_of_attempt(of, server, &tables).await? else {
                return Ok(());
            };
            full.extend(its_full.into_iter().map(|(column, next)| {
                let (table, on) = (column.quoted_table(), &server.identity);
                format!("{table} on {on} (from {next} on)")
            }));
            let found = (recorded.as_slice(), its.as_slice());
            // Here a table is to lose the fence that it had before the attempt.
            let on_server = servers::unknown_on(server, &self.config, &names, found, |_| true);
            unknown.extend(on_server.await?);
        }
        self.may_leave(&unknown, standing)?;
        left.extend(unknown);
        if self.board.complete(attempt).await.map_err(store_error)? {
            tell_native(attempt, &left);
            tell_full(attempt, &full);
        }
        Ok(())
    }

    /// The servers that can be reached, and what was recorded of others, which are left as they are: another one has taken their place, or
    /// they were away for so long that nobody is held up for them any more. What they have of a fence only refuses ids, and is put right when they
    /// are there again.
    async fn reached<'a>(
        &self,
        recorded: &'a [Recorded],
        standing: &Standing,
    ) -> Result<(Vec<Server>, Vec<&'a Recorded>)> {
        let wait_ms_max = self.limits.wait_ms_max;
        let servers = servers::connect_to_some(
            &self.config,
            match recorded.is_empty() {
                true => wait_ms_max.min(UNRECORDED_MS_MAX),
                false => wait_ms_max,
            },
        );
        let servers = servers.await;
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
        if !is_replaced && !self.is_held_up_long(standing) {
            bail!("the switch cannot be finished from here now: no listener reaches {where_is}");
        }
        tracing::warn!(
            "the switch is finished without a server that no listener reaches: {where_is}"
        );
        Ok((servers, left))
    }

    /// Whether whoever could finish the attempt better has had time for it.
    fn is_held_up_long(&self, standing: &Standing) -> bool {
        let limits = &self.limits;
        standing.age_ms > limits.peer_wait_ms.saturating_add(limits.wait_ms_max)
    }

    /// Whether tables may be left fenced that are none of a rule here. A program that has the rule lifts the fences later, and sooner if it
    /// finishes the attempt itself.
    fn may_leave(&self, unknown: &[&Recorded], standing: &Standing) -> Result<()> {
        let Some(its) = unknown.first() else {
            return Ok(());
        };
        let table = format!("{}.{}", its.schema, its.table);
        if !self.is_held_up_long(standing) {
            bail!(
                "the switch cannot be finished from here now: no rule of it here has the table {table}"
            );
        }
        tracing::warn!(
            table,
            "the switch is finished without a table that no rule of it here has: a program that has one lifts its fence"
        );
        Ok(())
    }
}

/// What was left as it was keeps its fence, and nobody lifts it where the rule is in no file any more.
fn tell_native(attempt: u64, left: &[&Recorded]) {
    if left.is_empty() {
        tracing::info!(attempt, "the tables are native again");
        return;
    }
    let named = left.iter().take(LEFT_TOLD_MAX);
    let named = named.map(|its| format!("{}.{} on {}", its.schema, its.table, its.server));
    let tables = named.collect::<Vec<_>>().join(", ");
    tracing::warn!(
        attempt,
        left = left.len(),
        tables,
        "the tables are native again, but for some that keep their fence until a program that has their rule, and reaches them, lifts it: keep the rule in a file until then"
    );
}

/// They are native again, and that is of no use to them.
fn tell_full(attempt: u64, full: &[String]) {
    if full.is_empty() {
        return;
    }
    let tables = full.iter().take(FULL_TOLD_MAX).map(String::as_str);
    let tables = tables.collect::<Vec<_>>().join(", ");
    tracing::warn!(
        attempt,
        full = full.len(),
        tables,
        "these tables are native again, and number no row: keys or rows reach the largest number of their column, so the server refuses each INSERT \
         without an id. Make the column larger, then set AUTO_INCREMENT to the number that is named here, if it is below"
    );
}
