//! Tables that bring a fence to their rule: renamed out of another rule's pattern, or restored from a dump.
//!
//! The server makes no ids for them, and their counter is gone: what is highest in them tells whether keys are still to have their ids. That is read of
//! tables that are new to their rule, and of no others: those that were there have got keys, or ids that applications brought on purpose.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use keywright_store::Failure;
use keywright_store::switch::{Dropped, KeySpace, Phase, RuleName};

use super::conduct::{ClientConnections, Conductor, store_error};
use super::fence::Reading;
use super::later::{AheadTable, Given, tell_ahead};
use super::servers::{self, Server};
use crate::schema::KeyColumn;

/// A rule, and a table of it as it is quoted.
pub(super) type RuleTable = (RuleName, String);

/// The tables that a rule has on a server.
#[derive(Debug)]
struct Seen {
    /// What the rule gave them then.
    keys: KeySpace,
    tables: BTreeSet<String>,
}

/// The tables of rules that give keys, from one look at the servers to the next: pure.
#[derive(Debug, Default)]
pub(super) struct SeenTables {
    /// By the server's identity and the rule.
    seen: BTreeMap<(String, RuleName), Seen>,
}

impl SeenTables {
    /// Forgets what does not give these keys any more, or not there: when it does again, the switch has looked at all its tables.
    pub(super) fn keep(&mut self, given: &Given) {
        self.seen.retain(|(server, rule), seen| {
            let now = given.get(rule);
            now.is_some_and(|(keys, servers)| *keys == seen.keys && servers.contains(server))
        });
    }

    /// A look at a server has found these tables with a fence, and these without (but for those that get no keys until they have one). Which of the first
    /// are new: none where their rule is looked at for the first time there. They stay new until they are added.
    fn look(
        &mut self,
        server: &str,
        given: &Given,
        (fenced, others): (&BTreeSet<RuleTable>, &BTreeSet<RuleTable>),
    ) -> BTreeSet<RuleTable> {
        self.keep(given);
        let mut new = BTreeSet::new();
        for (rule, (keys, servers)) in given {
            if !servers.iter().any(|its| its == server) {
                continue;
            }
            let of_rule = |all: &BTreeSet<RuleTable>| -> BTreeSet<String> {
                let its = all.iter().filter(|(its, _)| its == rule);
                its.map(|(_, table)| table.clone()).collect()
            };
            let (fenced, others) = (of_rule(fenced), of_rule(others));
            let place = (server.to_owned(), rule.clone());
            let seen = self.seen.entry(place).or_insert_with(|| Seen {
                keys: keys.clone(),
                tables: fenced.clone(),
            });
            seen.tables.retain(|table| fenced.contains(table));
            let its = fenced.difference(&seen.tables);
            new.extend(its.map(|table| (rule.clone(), table.clone())));
            // Whoever fences one of these looks at its ids.
            seen.tables.extend(others);
        }
        new
    }

    /// A table is not new any more.
    pub(super) fn add(&mut self, server: &str, (rule, table): (&RuleName, &str)) {
        let seen = self.seen.get_mut(&(server.to_owned(), rule.clone()));
        if let Some(seen) = seen {
            seen.tables.insert(table.to_owned());
        }
    }
}

impl<C: ClientConnections> Conductor<C> {
    /// Of a server's fenced tables those that are new to their rule, and have an id above all that was reserved of its keys: they get no keys until the
    /// switch was repeated. Where ids of one may be among those that were reserved, these are dropped. Hidden keys may be any, so that what is highest
    /// tells nothing of them. `may_have_dropped` is set before that.
    ///
    /// # Errors
    /// The store fails, or the server.
    pub(super) async fn brought_on(
        &mut self,
        server: &mut Server,
        given: &Given,
        (fenced, others): (Vec<(RuleName, KeyColumn)>, &BTreeSet<RuleTable>),
        may_have_dropped: &mut bool,
    ) -> Result<Vec<AheadTable>> {
        let named = fenced.iter();
        let named: BTreeSet<RuleTable> = named
            .map(|(name, column)| (name.clone(), column.quoted_table()))
            .collect();
        let found = (&named, others);
        let new = self.seen_tables.look(&server.identity, given, found);
        let mut ahead = Vec::new();
        for (name, column) in fenced {
            let table = column.quoted_table();
            let Some((keys, _)) = given.get(&name) else {
                continue;
            };
            if !new.contains(&(name.clone(), table.clone())) {
                continue;
            }
            if self.mend(keys, &column).is_some() {
                self.seen_tables.add(&server.identity, (&name, &table));
                continue;
            }
            let above = match servers::above_rows(&mut server.conn, &column).await {
                Ok(above) => above,
                Err(error) => {
                    tracing::warn!(
                        table,
                        "whether the table has ids that are still to be given is not known: {error:#}"
                    );
                    continue;
                }
            };
            *may_have_dropped = true;
            let settled = self.is_settled(server, (&name, keys, &column), above);
            if settled.await? {
                self.seen_tables.add(&server.identity, (&name, &table));
                continue;
            }
            let span = self.board.span(keys).await.map_err(store_error)?;
            if span.is_none_or(|span| above > span.bound) {
                let place = (server.identity.clone(), table);
                if !self.held_back.knows(&place, None) {
                    tell_ahead(&column, above, None, self.held_back.has_rule(&name));
                }
                ahead.push((name, column, None));
            }
        }
        Ok(ahead)
    }

    /// Whether no key that is still to be given can be an id of a table: there is none below `above`, or those that were reserved are dropped. The server makes
    /// none for it, so that no lock is needed. Programs drop them with their next step.
    async fn is_settled(
        &self,
        server: &mut Server,
        (name, keys, column): (&RuleName, &KeySpace, &KeyColumn),
        above: u64,
    ) -> Result<bool> {
        let reading = Reading {
            counter: above,
            above_rows: above,
            was_fenced: false,
        };
        let dropped = self.may_fence(name, keys, reading).await;
        match dropped.map_err(store_error)? {
            Dropped::All(span) => {
                self.tell_late(server, (name, column), (span, reading))
                    .await?;
                Ok(true)
            }
            Dropped::Nothing => Ok(true),
            Dropped::Not => Ok(false),
        }
    }

    /// The statement by which a table gets keys again, where the switch does not help: no key is above its ids.
    pub(super) fn mend(&self, keys: &KeySpace, column: &KeyColumn) -> Option<String> {
        let hiding = keys
            .tag()
            .and_then(|tag| self.config.store.hidden_tags().of(tag));
        hiding.map(|_| column.fence_statement())
    }

    /// Under a table's lock: whether its rule gives keys now, and its ids are not above all that was reserved of these. What is left of
    /// that is dropped if they may be among it.
    pub(super) async fn may_fence(
        &self,
        name: &RuleName,
        keys: &KeySpace,
        reading: Reading,
    ) -> Result<Dropped, Failure> {
        let now = self.board.standing().await?;
        let mut rules = now.rules.iter();
        let gives = rules.any(|rule| rule.rule == *name && rule.keys.as_ref() == Some(keys));
        match now.phase == Phase::None && gives {
            // Somebody else was faster.
            true if reading.was_fenced => Ok(Dropped::Nothing),
            true => self.board.drop_reserved(keys, reading.counter).await,
            false => Ok(Dropped::Not),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use keywright_core::Tag;
    use keywright_store::switch::{KeySpace, RuleName};

    use super::{Given, RuleTable, SeenTables};

    fn rule(tables: &str) -> RuleName {
        RuleName {
            tables: tables.to_owned(),
            column: "id".to_owned(),
        }
    }

    /// One rule on one server.
    fn given(rule_name: &str, tag: &str, server: &str) -> Given {
        let keys = KeySpace::Tag(Tag::parse(tag).unwrap());
        BTreeMap::from([(rule(rule_name), (keys, vec![server.to_owned()]))])
    }

    fn tables(rule_name: &str, names: &[&str]) -> BTreeSet<RuleTable> {
        let names = names.iter();
        names
            .map(|name| (rule(rule_name), (*name).to_owned()))
            .collect()
    }

    fn look(seen: &mut SeenTables, given: &Given, fenced: &[&str], others: &[&str]) -> Vec<String> {
        let (fenced, others) = (tables("y", fenced), tables("y", others));
        let new = seen.look("s", given, (&fenced, &others));
        new.into_iter().map(|(_, table)| table).collect()
    }

    #[test]
    fn a_table_is_new_that_was_not_there_and_brings_a_fence() {
        let (mut seen, given) = (SeenTables::default(), given("y", "a", "s"));
        let none: [&str; 0] = [];
        assert_eq!(look(&mut seen, &given, &["one"], &[]), none);
        for _ in 0..2 {
            assert_eq!(look(&mut seen, &given, &["one", "two"], &[]), ["two"]);
        }
        seen.add("s", (&rule("y"), "two"));
        assert_eq!(look(&mut seen, &given, &["one", "two"], &[]), none);
        // Fenced later by whoever looks at its ids.
        assert_eq!(look(&mut seen, &given, &["one"], &["two", "three"]), none);
        assert_eq!(look(&mut seen, &given, &["one", "two", "three"], &[]), none);
        // It was away, or got no keys before it had its fence.
        assert_eq!(look(&mut seen, &given, &["one"], &[]), none);
        assert_eq!(look(&mut seen, &given, &["one", "two"], &[]), ["two"]);
    }

    #[test]
    fn a_rule_is_looked_at_for_the_first_time_where_its_keys_come_into_force() {
        let mut seen = SeenTables::default();
        let none: [&str; 0] = [];
        let (a, b) = (given("y", "a", "s"), given("y", "b", "s"));
        // It had no table at all.
        assert_eq!(look(&mut seen, &a, &[], &[]), none);
        assert_eq!(look(&mut seen, &a, &["one"], &[]), ["one"]);
        assert_eq!(look(&mut seen, &b, &["one", "two"], &[]), none);
        // On another server its keys are not in force here.
        let elsewhere = given("y", "b", "t");
        assert_eq!(look(&mut seen, &elsewhere, &["three"], &[]), none);
        assert_eq!(look(&mut seen, &b, &["one", "three"], &[]), none);
        // Native meanwhile.
        seen.keep(&Given::new());
        assert_eq!(look(&mut seen, &b, &["one", "four"], &[]), none);
    }
}
