//! Fences that are left on tables that are native again.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use keywright_store::switch::{InForce, Phase, RuleName};

use super::conduct::{ClientConnections, Conductor, store_error};
use super::fence::{Outcome, lift, not_altered};
use super::servers::{self, Server};

impl<C: ClientConnections> Conductor<C> {
    /// Lifts fences of tables that are native again: a server that took over may not have heard of that. Those of a rule that has left the switch
    /// stay, whatever the store says of its name: it gives keys by itself. `has_lifted` is set where some were.
    ///
    /// # Errors
    /// The store fails, or a server, which keeps none from the others.
    pub async fn lift_left(&self, has_lifted: &mut bool) -> Result<()> {
        let standing = self.board.standing().await.map_err(store_error)?;
        let native = standing.rules.iter().filter(|rule| rule.keys.is_none());
        let above: BTreeMap<&RuleName, u64> = native
            .filter_map(|rule| Some((&rule.rule, rule.above?)))
            .collect();
        if !self.can_lead() || above.is_empty() || standing.phase != Phase::None {
            return Ok(());
        }
        let mut looked = Ok(());
        for server in &mut self.some_servers().await {
            looked = match self.lift_left_on(server, &above, has_lifted).await {
                Ok(lifted) => looked.and(lifted),
                Err(error) => looked.and(Err(error)),
            };
        }
        looked
    }

    /// Inside: what was wrong with a table, which keeps none from the others.
    ///
    /// # Errors
    /// The server cannot be looked at any more.
    async fn lift_left_on(
        &self,
        server: &mut Server,
        above: &BTreeMap<&RuleName, u64>,
        has_lifted: &mut bool,
    ) -> Result<Result<()>> {
        let names = above.keys().map(|name| (*name).clone()).collect();
        let mut tables = servers::columns_of(server, &self.config, &names).await?;
        tables.retain(|(_, column)| column.auto_increment && column.fenced);
        let mut looked = Ok(());
        for (name, column) in &tables {
            let ask = async || {
                let now = self.board.standing().await?;
                let is_native = |rule: &InForce| rule.rule == *name && rule.keys.is_none();
                Ok(now.phase == Phase::None && now.rules.iter().any(is_native))
            };
            let next = above.get(name).copied().unwrap_or(0);
            match lift(&mut server.conn, column, next, ask).await {
                Ok(Outcome::Done) => {
                    tracing::info!(table = column.quoted_table(), "fence lifted");
                    *has_lifted = true;
                }
                // The next look comes back to it.
                Ok(Outcome::Over | Outcome::Blocked(_)) => {}
                Ok(Outcome::NotAltered) => looked = looked.and(Err(anyhow!(not_altered(column)))),
                Err(error) => {
                    looked = looked.and(Err(error.into()));
                    // The table's lock goes with the connection.
                    servers::connect_again(server, &self.config).await?;
                }
            }
        }
        Ok(looked)
    }
}
