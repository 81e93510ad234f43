//! The ends of an attempt: what it fenced is lifted again, or the tables are native again.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use keywright_store::switch::{Phase, Recorded, RuleName, Standing};

use super::conduct::{ClientConnections, Conductor, changing, store_error};
use super::fence::{Outcome, kill, lift};
use super::servers::{self, Server};
use crate::schema::KeyColumn;

impl<C: ClientConnections> Conductor<C> {
    /// The attempt was ended: whatever it may still do is killed, what it fenced is lifted, and then all are released.
    pub(super) async fn undo(&self, attempt: u64, standing: &Standing) -> Result<()> {
        let recorded = self.board.recorded(attempt).await.map_err(store_error)?;
        for server in &mut self.reached(&recorded).await? {
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
        if self.board.release(attempt).await.map_err(store_error)? {
            tracing::info!(attempt, "the tables are as they were before the switch");
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
        for server in &mut self.reached(&recorded).await? {
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

    /// The servers that can be reached, if all that was recorded is of these.
    async fn reached(&self, recorded: &[Recorded]) -> Result<Vec<Server>> {
        if recorded.is_empty() {
            return Ok(Vec::new());
        }
        let servers = self.some_servers().await;
        let is_reached = |its: &Recorded| servers.iter().any(|to| to.identity == its.server);
        match recorded.iter().find(|its| !is_reached(its)) {
            Some(its) => bail!(
                "the switch cannot be finished from here now: no listener reaches {}, where {}.{} is",
                its.server,
                its.schema,
                its.table
            ),
            None => Ok(servers),
        }
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
