//! Fences that are left on tables that are native again.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use keywright_store::switch::{InForce, Phase, RuleName, Standing};

use super::conduct::{ClientConnections, Conductor, store_error};
use super::fence::{Outcome, lift, not_altered};
use super::servers::{self, Server};
use crate::schema::{KeyColumn, may_share_tables};

impl<C: ClientConnections> Conductor<C> {
    /// Lifts fences of tables that are native again: a server that took over may not have heard of that. Those of a rule that has left the switch
    /// stay, whatever the store says of its name: it gives keys by itself. So do those of tables that a rule in force may be for, too: by other files it
    /// may be their rule. `has_lifted` is set where some were.
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
            looked = match self
                .lift_left_on(server, (&above, &standing), has_lifted)
                .await
            {
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
        (above, standing): (&BTreeMap<&RuleName, u64>, &Standing),
        has_lifted: &mut bool,
    ) -> Result<Result<()>> {
        let names = above.keys().map(|name| (*name).clone()).collect();
        let mut tables = servers::columns_of(server, &self.config, &names).await?;
        let identity = server.identity.clone();
        tables.retain(|(_, column)| {
            column.auto_increment
                && column.fenced
                && !may_have_keys(column, (standing, identity.as_str()))
        });
        let mut looked = Ok(());
        for (name, column) in &tables {
            let ask = async || {
                let now = self.board.standing().await?;
                let is_native = |rule: &InForce| rule.rule == *name && rule.keys.is_none();
                Ok(now.phase == Phase::None
                    && now.rules.iter().any(is_native)
                    && !may_have_keys(column, (&now, identity.as_str())))
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

/// Whether a rule that gives keys on this server, as the store says, may be for a table.
fn may_have_keys(column: &KeyColumn, (standing, server): (&Standing, &str)) -> bool {
    let table = format!("{}.{}", column.schema, column.table);
    let gives_keys =
        |rule: &&InForce| rule.keys.is_some() && rule.servers.iter().any(|its| its == server);
    let mut rules = standing.rules.iter().filter(gives_keys);
    rules.any(|rule| may_share_tables(&rule.rule.tables, &table))
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_store::switch::{InForce, KeySpace, Phase, RuleName, Standing};

    use super::may_have_keys;
    use crate::schema::KeyColumn;

    fn rule(tables: &str, gives_keys: bool) -> InForce {
        InForce {
            rule: RuleName {
                tables: tables.to_owned(),
                column: "id".to_owned(),
            },
            keys: gives_keys.then(|| KeySpace::Tag(Tag::parse("a").unwrap())),
            next: None,
            above: Some(7),
            servers: vec!["here".to_owned()],
        }
    }

    /// Its fence would be lifted while programs with another order of rules give it keys.
    #[test]
    fn a_table_for_which_another_rule_gives_keys_is_no_native_one() {
        for (tables, gives_keys, server, may) in [
            ("shop.or*", true, "here", true),
            ("shop.or*", false, "here", false),
            ("shop.or*", true, "there", false),
            ("shop.line*", true, "here", false),
        ] {
            let standing = Standing {
                attempt: 3,
                phase: Phase::None,
                leader: None,
                age_ms: 0,
                rules: vec![rule("shop.orders", false), rule(tables, gives_keys)],
                generations: Vec::new(),
                key_space_ids: Vec::new(),
                peers: Vec::new(),
            };
            let column = KeyColumn {
                schema: "shop".to_owned(),
                table: "orders".to_owned(),
                ..KeyColumn::default()
            };
            let found = may_have_keys(&column, (&standing, server));
            assert_eq!(found, may, "{tables} {gives_keys} {server}");
        }
    }
}
