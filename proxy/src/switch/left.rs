//! Fences that are left on tables that are native again, and rules that have left the switch, whose tables keep theirs.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use keywright_session::Mode;
use keywright_store::switch::{InForce, Phase, RuleName, Standing};

use super::conduct::{ClientConnections, Conductor, store_error};
use super::servers::{self, Server, name_of};
use crate::config::{Config, Configured};
use crate::schema::{self, Extent, KeyColumn, may_share_tables};

impl<C: ClientConnections> Conductor<C> {
    /// Lifts fences of tables that are native again: a server that took over may not have heard of that. Those of a rule that has left the switch
    /// stay, whatever the store says of its name: it gives keys by itself. So do those of tables that a rule in force may be for, too: by other files it
    /// may be their rule. Nor is anything done to tables of which is recorded that they number their rows natively: what looks like a fence is the end of
    /// their counter, and rows that had its last ids may be gone. Those that are seen without a fence are recorded. `has_lifted` is set where some were lifted.
    ///
    /// # Errors
    /// The store fails, or a server, which keeps none from the others.
    pub async fn lift_left(&self, has_lifted: &mut bool) -> Result<()> {
        let standing = self.board.standing().await.map_err(store_error)?;
        let native = standing.rules.iter().filter(|rule| is_native_again(rule));
        let names: BTreeSet<RuleName> = native.map(|rule| rule.rule.clone()).collect();
        if !self.can_lead() || names.is_empty() || standing.phase != Phase::None {
            return Ok(());
        }
        let mut looked = Ok(());
        for server in &mut self.some_servers().await {
            looked = match self
                .lift_left_on(server, (&names, &standing), has_lifted)
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
        (names, standing): (&BTreeSet<RuleName>, &Standing),
        has_lifted: &mut bool,
    ) -> Result<Result<()>> {
        let tables = servers::columns_of(server, &self.config, names).await?;
        // Behind the tables: what is recorded of one is forgotten before it is fenced.
        let recorded = self.lifted_on(&server.identity).await?;
        let there = (names, tables.as_slice());
        let gone = self.forget_gone(server, there, &recorded).await;
        let mut native = BTreeSet::new();
        let of_tables = (tables.as_slice(), &recorded);
        let to = (&mut native, has_lifted);
        let lifted = self.lift_tables(server, of_tables, standing, to).await;
        // Whatever has become of the others.
        let of = (standing.attempt, Phase::None);
        let noted = self.note_lifted(of, &server.identity, native).await;
        Ok(lifted?.and(gone).and(noted))
    }
}

/// Whether the store says of a rule that it is native again, and above what counters go on.
fn is_native_again(rule: &InForce) -> bool {
    rule.keys.is_none() && rule.above.is_some()
}

/// From where the counter of a native rule's table goes on once its fence is lifted; `None`: the fence stays. By other files another rule may have been the
/// table's when it had keys: it goes on above those of all that are native again.
pub(super) fn next_of(
    (name, column): (&RuleName, &KeyColumn),
    (standing, server): (&Standing, &str),
) -> Option<u64> {
    let native = || standing.rules.iter().filter(|rule| is_native_again(rule));
    let is_native = native().any(|rule| rule.rule == *name);
    if standing.phase != Phase::None || !is_native || may_have_keys(column, (standing, server)) {
        return None;
    }
    let table = format!("{}.{}", column.schema, column.table);
    let may_have_been_its = |rule: &&InForce| {
        rule.rule.column.eq_ignore_ascii_case(&name.column)
            && may_share_tables(&rule.rule.tables, &table)
    };
    let above = native().filter(|rule| rule.rule == *name || may_have_been_its(rule));
    above.filter_map(|rule| rule.above).max()
}

/// Whether a rule that gives keys on this server, as the store says, may be for a table.
fn may_have_keys(column: &KeyColumn, (standing, server): (&Standing, &str)) -> bool {
    let table = format!("{}.{}", column.schema, column.table);
    let gives_keys =
        |rule: &&InForce| rule.keys.is_some() && rule.servers.iter().any(|its| its == server);
    let mut rules = standing.rules.iter().filter(gives_keys);
    rules.any(|rule| may_share_tables(&rule.rule.tables, &table))
}

/// Rules that are native again, and have left the switch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// They have.
    pub rules: Vec<RuleName>,
    /// They have if this program's servers have tables of theirs ([`with_tables_here`]). It may be that only others have the rule, for servers of their own:
    /// their tables are nothing to this configuration.
    pub in_doubt: Vec<RuleName>,
}

/// The rules that are native again, and whose tables have keys of which the switch knows nothing, or come back from such: by other rules of this
/// configuration, or of the one `before`, in whose place it comes. What the store says of the ids of their tables is not all that they have.
#[must_use]
pub fn left_the_switch(config: &Config, before: Option<&Config>, standing: &Standing) -> Left {
    let mut left = Left::default();
    let native = standing.rules.iter().filter(|rule| is_native_again(rule));
    for name in native.map(|rule| &rule.rule) {
        let now = others_for(name, config);
        let had = before.map_or_else(Vec::new, |before| others_for(name, before));
        // One that is for a part of its tables leaves it the others.
        let is_gone = !has_it(name, config);
        let is_same = |its: &RuleName| its.tables == name.tables;
        let is_taken = now.iter().any(|its| is_gone || is_same(its));
        if !is_taken && had.iter().all(|its| now.contains(its)) {
            continue;
        }
        let is_own = !is_gone
            || before.is_some_and(|before| has_it(name, before))
            || now.iter().chain(&had).any(is_same);
        match is_own {
            true => left.rules.push(name.clone()),
            false => left.in_doubt.push(name.clone()),
        }
    }
    left
}

/// Those of these rules that a server of this program has a table of which gets its keys past the switch, by this configuration or the one `before`; and
/// whether all servers could be looked at. Nobody can tell which tables are behind a listener without an account.
pub async fn with_tables_here(
    (config, before): (&Config, Option<&Config>),
    names: Vec<RuleName>,
) -> (Vec<RuleName>, Result<()>) {
    let mut listeners = config.listeners.iter();
    if names.is_empty() || listeners.any(|listener| listener.admin.is_none()) {
        return (names, Ok(()));
    }
    let mut found = BTreeSet::new();
    let mut looked = Ok(());
    let mut led_to: usize = 0;
    // One after the other.
    let listeners = u64::try_from(config.listeners.len()).unwrap_or(u64::MAX);
    let wait_ms_max = config.switch_wait_ms_max.saturating_mul(listeners);
    for mut server in servers::connect_to_some(config, wait_ms_max).await {
        led_to = led_to.saturating_add(server.listeners.len());
        for config in [Some(config), before].into_iter().flatten() {
            match schema::inspect(&mut server.conn, config, Extent::Tables).await {
                Ok(snapshot) => {
                    let columns = schema::key_columns(&snapshot, config);
                    found.extend(past_the_switch(&columns, config, &names));
                }
                Err(error) => looked = Err(error),
            }
        }
    }
    if led_to < config.listeners.len() {
        looked = looked.and(Err(anyhow!("a server cannot be reached")));
    }
    (found.into_iter().collect(), looked)
}

/// Those of these rules that one of the tables may be for, which gets its keys past the switch.
fn past_the_switch(columns: &[KeyColumn], config: &Config, names: &[RuleName]) -> Vec<RuleName> {
    let is_for = |name: &RuleName, column: &KeyColumn| {
        let table = format!("{}.{}", column.schema, column.table);
        let mut its = config.rules.get(column.rule).into_iter();
        its.any(|rule| {
            gives_keys_past_it(rule) && rule.rule.column.eq_ignore_ascii_case(&name.column)
        }) && may_share_tables(&name.tables, &table)
    };
    let names = names.iter();
    let names = names.filter(|name| columns.iter().any(|column| is_for(name, column)));
    names.cloned().collect()
}

/// Whether a configuration has that rule of the switch.
fn has_it(name: &RuleName, config: &Config) -> bool {
    config.rules.iter().any(|rule| is_it(name, rule))
}

fn is_it(name: &RuleName, rule: &Configured) -> bool {
    rule.is_switched && name_of(rule) == *name
}

fn gives_keys_past_it(rule: &Configured) -> bool {
    !rule.is_switched && rule.rule.mode == Mode::Rewrite
}

/// The rules of a configuration that give keys past the switch to tables which a rule of the switch is for, too: those before it, if it is there.
fn others_for(name: &RuleName, config: &Config) -> Vec<RuleName> {
    let before_it = config.rules.iter().take_while(|rule| !is_it(name, rule));
    let gives_keys = before_it.filter(|rule| {
        gives_keys_past_it(rule) && rule.rule.column.eq_ignore_ascii_case(&name.column)
    });
    let names = gives_keys.map(name_of);
    names
        .filter(|its| may_share_tables(&its.tables, &name.tables))
        .collect()
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_store::switch::{InForce, KeySpace, Phase, RuleName, Standing};

    use super::{Left, left_the_switch, may_have_keys, next_of, past_the_switch};
    use crate::config::Config;
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
            let standing = standing(vec![rule("shop.orders", false), rule(tables, gives_keys)]);
            let column = KeyColumn {
                schema: "shop".to_owned(),
                table: "orders".to_owned(),
                ..KeyColumn::default()
            };
            let found = may_have_keys(&column, (&standing, server));
            assert_eq!(found, may, "{tables} {gives_keys} {server}");
        }
    }

    fn standing(rules: Vec<InForce>) -> Standing {
        Standing {
            attempt: 3,
            phase: Phase::None,
            leader: None,
            age_ms: 0,
            rules,
            generations: Vec::new(),
            key_space_ids: Vec::new(),
            peers: Vec::new(),
        }
    }

    /// By other files it was the table's rule when that had its keys, and the server was away when they were closed.
    #[test]
    fn a_table_goes_on_above_the_keys_of_all_rules_that_may_have_been_its() {
        let column = KeyColumn {
            schema: "shop".to_owned(),
            table: "orders".to_owned(),
            ..KeyColumn::default()
        };
        let native = |tables: &str, column: &str, above: Option<u64>| {
            let mut native = rule(tables, false);
            native.rule.column = column.to_owned();
            native.above = above;
            native
        };
        let of = native("shop.orders", "id", Some(7)).rule;
        for (rules, next) in [
            (vec![native("shop.orders", "id", Some(7))], Some(7)),
            (vec![native("shop.orders", "id", None)], None),
            (vec![native("shop.or*", "id", Some(9))], None),
            (
                vec![
                    native("shop.or*", "ID", Some(9)),
                    native("shop.orders", "id", Some(7)),
                    native("shop.*", "number", Some(11)),
                    native("shop.line*", "id", Some(12)),
                ],
                Some(9),
            ),
        ] {
            let standing = standing(rules);
            let found = next_of((&of, &column), (&standing, "here"));
            assert_eq!(found, next, "{standing:?}");
        }
        let mut under_way = standing(vec![native("shop.orders", "id", Some(7))]);
        under_way.phase = Phase::Holding;
        assert_eq!(next_of((&of, &column), (&under_way, "here")), None);
    }

    const STRIDE: &str = "\"stride:b\"\noffset = 1\nincrement = 2";

    fn config(rules: &[(&str, &str)]) -> Config {
        let mut text = "[store]\nurl = \"mysql://root@127.0.0.1:1/s\"\n\
             [[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\n"
            .to_owned();
        for (tables, key) in rules {
            text += &format!("[[rule]]\ntable = \"{tables}\"\ncolumn = \"id\"\nkey = {key}\n");
        }
        Config::parse(&text).unwrap()
    }

    /// Its tables have ids that the switch has not seen, and whoever lifted their fence would have the server make these once more.
    #[test]
    fn a_rule_has_left_where_others_give_its_tables_keys_past_the_switch() {
        const SWITCHED: &str = "\"segment:a\"";
        const QUIET: &str = "\"stride:b\"\noffset = 1\nincrement = 2\nmode = \"observe\"";
        let orders = ("shop.orders", SWITCHED);
        let (same, wide, part) = (
            ("shop.orders", STRIDE),
            ("shop.*", STRIDE),
            ("shop.or?ers", STRIDE),
        );
        let not = Left::default;
        let left = || Left {
            rules: vec![rule("shop.orders", false).rule],
            ..Left::default()
        };
        // Another program's rule, perhaps, of another server's tables.
        let in_doubt = || Left {
            in_doubt: left().rules,
            ..Left::default()
        };
        for (before, now, expected) in [
            (None, &[orders][..], not()),
            (None, &[][..], not()),
            (None, &[same][..], left()),
            (None, &[wide][..], in_doubt()),
            (None, &[("shop.orders", QUIET)][..], not()),
            (None, &[("shop.line", STRIDE)][..], not()),
            // The first rule that matches is a table's.
            (None, &[same, orders][..], left()),
            (None, &[orders, same][..], not()),
            (None, &[orders, wide][..], not()),
            // Others of its tables are its own.
            (None, &[part, orders][..], not()),
            // Its tables come to another rule.
            (Some(&[orders][..]), &[wide][..], left()),
            (Some(&[orders, wide][..]), &[wide][..], left()),
            (Some(&[][..]), &[wide][..], in_doubt()),
            // Its tables come back.
            (Some(&[same][..]), &[orders][..], left()),
            (Some(&[same][..]), &[][..], left()),
            (Some(&[wide][..]), &[][..], in_doubt()),
            (Some(&[part, orders][..]), &[orders][..], left()),
            (Some(&[part, orders][..]), &[part, orders][..], not()),
            (Some(&[orders, wide][..]), &[orders][..], not()),
        ] {
            let before = before.map(config);
            let standing = standing(vec![rule("shop.orders", false)]);
            let found = left_the_switch(&config(now), before.as_ref(), &standing);
            assert_eq!(found, expected, "{now:?}");
        }
        let mut nothing_kept = rule("shop.orders", false);
        nothing_kept.above = None;
        for rules in [vec![rule("shop.orders", true)], vec![nothing_kept]] {
            let left = left_the_switch(&config(&[same]), None, &standing(rules));
            assert_eq!(left, not());
        }
    }

    /// A pattern for tables of all schemas says nothing of another server's.
    #[test]
    fn a_rule_whose_tables_are_on_other_servers_has_not_left() {
        let names = [rule("shop.orders", false).rule];
        for (rules, table, has_tables) in [
            (&[("*.orders", STRIDE)][..], "shop.orders", true),
            (&[("*.orders", STRIDE)][..], "crm.orders", false),
            (&[("*.orders", "\"segment:a\"")][..], "shop.orders", false),
        ] {
            let (schema, table) = table.split_once('.').unwrap();
            let column = KeyColumn {
                schema: schema.to_owned(),
                table: table.to_owned(),
                ..KeyColumn::default()
            };
            let found = past_the_switch(&[column], &config(rules), &names);
            assert_eq!(!found.is_empty(), has_tables, "{rules:?} {schema}");
        }
    }
}
