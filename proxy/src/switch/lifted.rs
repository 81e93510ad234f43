//! Tables that number their rows natively, behind a fence that was lifted. Their counter may come to where the fence would be: what is recorded of them in
//! the store tells that end from a fence which somebody has left.
//!
//! A table is recorded behind the statement that lifts its fence, or by the next look, if whoever lifted it could not. The moment in between is all
//! in which a counter that comes to its end is taken for a fence.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use keywright_store::switch::{Phase, RuleName, Standing, TableName};

use super::conduct::{ClientConnections, Conductor, store_error};
use super::fence::{Outcome, lift, not_altered};
use super::left::next_of;
use super::servers::{self, Server};
use crate::schema::{KeyColumn, may_share_tables};

/// As what is recorded has it.
pub(super) fn table_name(column: &KeyColumn) -> TableName {
    (column.schema.clone(), column.table.clone())
}

impl<C: ClientConnections> Conductor<C> {
    /// Lifts the fences of an attempt's tables on a server, each to a counter of its own, and records that. Which of them are full; `None`: somebody
    /// else has finished the attempt. Where it is recorded already nothing is done again.
    pub(super) async fn lift_of_attempt<'a>(
        &self,
        of: (u64, Phase),
        server: &mut Server,
        tables: &[(&'a KeyColumn, u64)],
    ) -> Result<Option<Vec<(&'a KeyColumn, u64)>>> {
        let mut columns = tables.iter();
        let before = match columns.any(|(column, _)| column.may_end_at_fence()) {
            true => self.lifted_on(&server.identity).await?,
            false => BTreeSet::new(),
        };
        let mut lifted = BTreeSet::new();
        let done = self
            .lift_each(of, server, (tables, &before), &mut lifted)
            .await;
        // Whatever has become of the others.
        let noted = self.note_lifted(of, &server.identity, lifted).await;
        let full = done?;
        noted?;
        Ok(full)
    }

    /// `lifted` is given those that are to be recorded.
    async fn lift_each<'a>(
        &self,
        (attempt, phase): (u64, Phase),
        server: &mut Server,
        (tables, before): (&[(&'a KeyColumn, u64)], &BTreeSet<TableName>),
        lifted: &mut BTreeSet<TableName>,
    ) -> Result<Option<Vec<(&'a KeyColumn, u64)>>> {
        let mut full = Vec::new();
        for (column, next) in tables.iter().copied() {
            let table = table_name(column);
            if before.contains(&table) {
                continue;
            }
            let ask = async || self.board.is_in(attempt, phase).await;
            let outcome = lift(&mut server.conn, column, next, ask).await?;
            if let Some(why) = outcome.obstacle(column) {
                bail!(why);
            }
            match outcome {
                Outcome::Over => return Ok(None),
                Outcome::Full => full.push((column, next)),
                Outcome::Done if column.may_end_at_fence() => {
                    lifted.insert(table);
                }
                Outcome::Done | Outcome::Blocked(_) | Outcome::NotAltered => {}
            }
        }
        Ok(Some(full))
    }

    /// Lifts fences that are left on these tables. `native` is given those that are to be recorded: their counter may come to where their fence was.
    /// Inside: what was wrong with a table, which keeps none from the others.
    ///
    /// # Errors
    /// The server cannot be looked at any more.
    pub(super) async fn lift_tables(
        &self,
        server: &mut Server,
        (tables, recorded): (&[(RuleName, KeyColumn)], &BTreeSet<TableName>),
        standing: &Standing,
        (native, has_lifted): (&mut BTreeSet<TableName>, &mut bool),
    ) -> Result<Result<()>> {
        let identity = server.identity.clone();
        let mut looked = Ok(());
        for (name, column) in tables.iter().filter(|(_, column)| column.auto_increment) {
            let of_table = (name, column);
            let Some(next) = next_of(of_table, (standing, identity.as_str())) else {
                continue;
            };
            let table = table_name(column);
            if recorded.contains(&table) {
                continue;
            }
            if !column.fenced {
                if column.may_end_at_fence() && column.counter.is_some() {
                    native.insert(table);
                }
                continue;
            }
            let ask = async || {
                let now = self.board.standing().await?;
                let is_left = next_of(of_table, (&now, identity.as_str())) == Some(next);
                // Somebody else may have lifted it meanwhile.
                let is_lifted = column.may_end_at_fence()
                    && self.board.lifted(&identity).await?.contains(&table);
                Ok(is_left && !is_lifted)
            };
            match lift(&mut server.conn, column, next, ask).await {
                Ok(Outcome::Done) => {
                    tracing::info!(table = column.quoted_table(), "fence lifted");
                    *has_lifted = true;
                    if column.may_end_at_fence() {
                        native.insert(table);
                    }
                }
                // The next look comes back to it.
                Ok(Outcome::Over | Outcome::Blocked(_)) => {}
                // Statements are not sent again for it: the server refuses them with or without a fence.
                Ok(Outcome::Full) => {}
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

    /// What is recorded of a server's tables.
    pub(super) async fn lifted_on(&self, server: &str) -> Result<BTreeSet<TableName>> {
        self.board.lifted(server).await.map_err(store_error)
    }

    /// Records tables, as they were found while this attempt was the last one, and in this phase. Where another one has come since, it may have fenced
    /// them, and the next look comes back to them.
    pub(super) async fn note_lifted(
        &self,
        of: (u64, Phase),
        server: &str,
        tables: BTreeSet<TableName>,
    ) -> Result<()> {
        if tables.is_empty() {
            return Ok(());
        }
        let noted = self.board.note_lifted(of, server, tables).await;
        noted.map(drop).map_err(store_error)
    }

    /// Forgets what is recorded of tables that are not there any more, of those of this program's rules. One that comes in their place may have a fence,
    /// as out of a dump. `tables`: those that are there.
    pub(super) async fn forget_gone(
        &self,
        server: &mut Server,
        (names, tables): (&BTreeSet<RuleName>, &[(RuleName, KeyColumn)]),
        recorded: &BTreeSet<TableName>,
    ) -> Result<()> {
        let there: BTreeSet<TableName> = tables
            .iter()
            .map(|(_, column)| table_name(column))
            .collect();
        let switched = servers::switched(&self.config);
        let mut gone = BTreeSet::new();
        for table in recorded.difference(&there) {
            let (schema, name) = (table.0.as_str(), table.1.as_str());
            let full_name = format!("{schema}.{name}");
            // Others have other rules, and see to those themselves.
            let mut own = names.intersection(&switched);
            if own.any(|rule| may_share_tables(&rule.tables, &full_name))
                && !servers::may_be_there(&mut server.conn, (schema, name)).await
            {
                gone.insert(table.clone());
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        let forgotten = self.board.forget_lifted(&server.identity, gone).await;
        forgotten.map_err(store_error)
    }
}
