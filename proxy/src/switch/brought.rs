//! Tables whose ids keys may meet: they have no fence, or have brought one, or have keys by another rule in force.
//!
//! A table that is renamed out of another rule's pattern, or restored from a dump, may bring a fence. Its counter is gone then, so its highest row is what
//! tells how far its ids have come. The store knows which tables have their fence by which rule; a fence of which it knows nothing was brought.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use keywright_store::switch::{FencedTable, InForce, KeySpace, Origin, RuleName, Standing, origin};

use super::conduct::{ClientConnections, Conductor, store_error};
use super::servers::{self, Server};
use crate::schema::{KeyColumn, may_share_tables};

/// The server would answer at another time: a lock did not come, a deadlock, the statement was ended, or took too long (MySQL, MariaDB).
const NOT_NOW: [u16; 5] = [1205, 1213, 1317, 3024, 1969];

/// What is recorded of a server's tables, by schema and name.
type Recorded = BTreeMap<(String, String), FencedTable>;

/// The rules that give keys.
pub(super) struct Given {
    /// Their keys, and the servers on which they are in force.
    keys: BTreeMap<RuleName, (KeySpace, Vec<String>)>,
    /// All rules.
    rules: Vec<InForce>,
}

impl Given {
    pub(super) fn of(standing: &Standing) -> Self {
        let rules = standing.rules.iter();
        let keys = rules.filter_map(|rule| {
            let keys = rule.keys.clone()?;
            Some((rule.rule.clone(), (keys, rule.servers.clone())))
        });
        Self {
            keys: keys.collect(),
            rules: standing.rules.clone(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn get(&self, rule: &RuleName) -> Option<&(KeySpace, Vec<String>)> {
        self.keys.get(rule)
    }

    fn names(&self) -> BTreeSet<RuleName> {
        self.keys.keys().cloned().collect()
    }
}

/// What a table lacks that is to have keys by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lack {
    /// Its fence.
    Fence,
    /// It has a fence, of which nothing is recorded.
    Record,
    /// It has other keys by another rule in force: why it gets none of these, for people.
    Rule(String),
}

/// Such a table.
pub(super) struct Unsettled {
    pub(super) rule: RuleName,
    pub(super) column: KeyColumn,
    /// The first id that neither the server has made nor a row has, as far as that is known without a lock; `None`: whoever has the table's lock kept
    /// it from being read.
    pub(super) next: Option<u64>,
    pub(super) lack: Lack,
}

impl<C: ClientConnections> Conductor<C> {
    /// Those of a server's tables that are to have a fence and lack something. Where the store cannot be asked, a fence is taken for one that was
    /// recorded.
    ///
    /// # Errors
    /// The store fails, or the server.
    pub(super) async fn unsettled(
        &self,
        server: &mut Server,
        given: &Given,
        is_store_asked: bool,
    ) -> Result<Vec<Unsettled>> {
        let mut tables = servers::columns_of(server, &self.config, &given.names()).await?;
        let recorded = match is_store_asked {
            // Behind the tables: whoever sets a fence has recorded it before.
            true => Some(self.recorded_of(server, given, &tables).await?),
            false => None,
        };
        tables.retain(|(name, column)| {
            servers::wants_fence(&self.config, name)
                && column.auto_increment
                && column.can_have_fence()
        });
        let mut found = Vec::new();
        for (rule, column) in tables {
            let of_table = (&rule, &column);
            let lack = self.lack(server, given, of_table, recorded.as_ref());
            let Some(lack) = lack else {
                continue;
            };
            let next = match lack {
                Lack::Fence => Some(column.counter.unwrap_or(0)),
                Lack::Record => above_rows(server, &column).await?,
                Lack::Rule(_) => Some(0),
            };
            found.push(Unsettled {
                rule,
                column,
                next,
                lack,
            });
        }
        Ok(found)
    }

    /// What a table lacks. On a server on which the keys are not in force nobody gets any, and whoever brings them into force there sees to all of its
    /// tables. Hidden keys may be any: what is highest tells nothing, and a fence may be one that somebody has set by the statement which the log names.
    fn lack(
        &self,
        server: &Server,
        given: &Given,
        (rule, column): (&RuleName, &KeyColumn),
        recorded: Option<&Recorded>,
    ) -> Option<Lack> {
        let without_record = (!column.fenced).then_some(Lack::Fence);
        let Some((keys, servers)) = given.get(rule) else {
            return without_record;
        };
        let Some(recorded) = recorded.filter(|_| servers.contains(&server.identity)) else {
            return without_record;
        };
        let table = fenced_table(server, (rule, keys), column);
        let its = recorded.get(&(column.schema.clone(), column.table.clone()));
        match origin(&table, its, &given.rules) {
            Origin::Others(other, other_keys) => {
                let table = column.quoted_table();
                let why = of_other(&table, (&other, &other_keys), (rule, keys));
                Some(Lack::Rule(why))
            }
            Origin::Known | Origin::Brought if !column.fenced => Some(Lack::Fence),
            Origin::Known => None,
            Origin::Brought => self.mend(keys, column).is_none().then_some(Lack::Record),
        }
    }

    /// What is recorded of a server's tables. That of a table of this program's rules which is not there any more is forgotten.
    async fn recorded_of(
        &self,
        server: &mut Server,
        given: &Given,
        tables: &[(RuleName, KeyColumn)],
    ) -> Result<Recorded> {
        let there: BTreeSet<(&str, &str)> = tables
            .iter()
            .map(|(_, column)| (column.schema.as_str(), column.table.as_str()))
            .collect();
        let switched = servers::switched(&self.config);
        let mut recorded = Recorded::new();
        for its in self.fenced_on(&server.identity).await? {
            let table = (its.schema.as_str(), its.table.as_str());
            // Others have other rules, and see to those themselves; and accounts that see more.
            if !there.contains(&table)
                && given.get(&its.rule).is_some()
                && switched.contains(&its.rule)
                && !servers::may_be_there(&mut server.conn, table).await
            {
                self.board.forget_fenced(its).await.map_err(store_error)?;
                continue;
            }
            recorded.insert((its.schema.clone(), its.table.clone()), its);
        }
        Ok(recorded)
    }

    async fn fenced_on(&self, server: &str) -> Result<Vec<FencedTable>> {
        self.board.fenced(server).await.map_err(store_error)
    }

    /// Why tables of these rules cannot be switched by this configuration, for people: other rules in force give them other keys. Fences would be lifted,
    /// or keys brought into force, that are not these rules'.
    pub(super) async fn of_others(
        &self,
        server: &mut Server,
        (names, standing): (&BTreeSet<RuleName>, &Standing),
    ) -> Result<Vec<String>> {
        let given = Given::of(standing);
        let recorded = self.fenced_on(&server.identity).await?;
        let may_be_of = |name: &RuleName, its: &FencedTable| {
            let gives_others = given.get(name).is_some_and(|(keys, _)| *keys != its.keys);
            let table = format!("{}.{}", its.schema, its.table);
            *name != its.rule && gives_others && may_share_tables(&name.tables, &table)
        };
        let mut all = recorded.iter();
        if !all.any(|its| names.iter().any(|name| may_be_of(name, its))) {
            return Ok(Vec::new());
        }
        let recorded = recorded.into_iter();
        let recorded: Recorded = recorded
            .map(|its| ((its.schema.clone(), its.table.clone()), its))
            .collect();
        let tables = servers::tables_of(server, &self.config, names).await?;
        let lacks = tables.iter().filter_map(|(rule, column)| {
            let lack = self.lack(server, &given, (rule, column), Some(&recorded))?;
            match lack {
                Lack::Rule(why) => Some(why),
                Lack::Fence | Lack::Record => None,
            }
        });
        Ok(lacks.collect())
    }

    /// The statement by which a table gets keys again, where the switch does not help: no key is above its ids.
    pub(super) fn mend(&self, keys: &KeySpace, column: &KeyColumn) -> Option<String> {
        let hiding = keys
            .tag()
            .and_then(|tag| self.config.store.hidden_tags().of(tag));
        hiding.map(|_| column.fence_statement())
    }
}

/// A table that has its fence, or gets it, by a rule.
pub(super) fn fenced_table(
    server: &Server,
    (rule, keys): (&RuleName, &KeySpace),
    column: &KeyColumn,
) -> FencedTable {
    FencedTable {
        server: server.identity.clone(),
        schema: column.schema.clone(),
        table: column.table.clone(),
        rule: rule.clone(),
        keys: keys.clone(),
    }
}

/// The first id above all rows of a table. One that cannot be read may have any; `None`: it cannot be read now.
async fn above_rows(server: &mut Server, column: &KeyColumn) -> Result<Option<u64>> {
    let error = match servers::above_rows(&mut server.conn, column).await {
        Ok(above) => return Ok(Some(above)),
        Err(error) => error,
    };
    // A connection that has failed says nothing of the table.
    let code = match error.downcast_ref::<mysql_async::Error>() {
        Some(mysql_async::Error::Server(refusal)) => refusal.code,
        Some(_) | None => return Err(error),
    };
    let above = above_unread(code);
    if above.is_some() {
        tracing::warn!(
            table = column.quoted_table(),
            "the table came with a fence, and which ids it has is not known: {error:#}"
        );
    }
    Ok(above)
}

/// The same of a table of which the server answers with this error.
fn above_unread(error: u16) -> Option<u64> {
    (!NOT_NOW.contains(&error)).then_some(u64::MAX)
}

/// Why a table gets no keys of a rule that has others by another one, for people.
fn of_other(
    table: &str,
    (other, other_keys): (&RuleName, &KeySpace),
    (rule, keys): (&RuleName, &KeySpace),
) -> String {
    let named = |rule: &RuleName, keys: &KeySpace| {
        let RuleName { tables, column } = rule;
        format!("rule {tables}.{column} (\"{keys}\")")
    };
    format!(
        "{table} has keys by {}, which is in force, and by this program's file it would get those of {}: start the program with the rules in the order that \
         other files have, or set mode = \"observe\" first in both",
        named(other, other_keys),
        named(rule, keys)
    )
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_store::switch::{KeySpace, RuleName};

    use super::{above_unread, of_other};

    /// The switch of all tables of the rule would be repeated for an ALTER TABLE of one.
    #[test]
    fn a_table_that_is_locked_is_not_taken_for_one_that_has_any_ids() {
        for (error, above) in [
            (1205, None),
            (1213, None),
            (1317, None),
            (3024, None),
            (1969, None),
            // No privilege, no such column, a damaged table.
            (1142, Some(u64::MAX)),
            (1054, Some(u64::MAX)),
            (1034, Some(u64::MAX)),
        ] {
            assert_eq!(above_unread(error), above, "{error}");
        }
    }

    #[test]
    fn both_rules_are_named_and_what_is_to_be_done() {
        let rule = |tables: &str| RuleName {
            tables: tables.to_owned(),
            column: "id".to_owned(),
        };
        let space = |tag: &str| KeySpace::Tag(Tag::parse(tag).unwrap());
        let told = of_other(
            "`shop`.`orders`",
            (&rule("shop.o*"), &space("one")),
            (&rule("shop.*e*"), &space("two")),
        );
        for words in [
            "`shop`.`orders` has keys by rule shop.o*.id (\"segment:one\")",
            "it would get those of rule shop.*e*.id (\"segment:two\")",
            "set mode = \"observe\" first in both",
        ] {
            assert!(told.contains(words), "{told}");
        }
    }
}
