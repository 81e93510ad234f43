//! What is left where somebody has gone past the switch: fences of tables to which nobody gives keys, and rules that give some and that a
//! configuration does not have. Nothing else says why INSERTs fail there.

use std::time::Duration;

use keywright_proxy::config::{Config, Configured};
use keywright_proxy::schema::{self, Finding, Snapshot};
use keywright_proxy::switch::{rule_name, server_identities};
use keywright_store::Keys;
use keywright_store::switch::{InForce, Phase, RuleName, Standing, Switchboard};
use tokio::time::timeout;

use super::wanted::named;

/// How long the store is waited for, milliseconds: a program that starts while it is away is not to wait for this, too.
const STORE_MS_MAX: u64 = 1_000;

async fn standing(board: &Switchboard) -> Option<Standing> {
    let asked = timeout(Duration::from_millis(STORE_MS_MAX), board.standing());
    asked.await.ok()?.ok()
}

/// What the store says before servers are looked at, where that matters for [`fences`]. `board` is none of a program's own: what is read here
/// nobody goes by.
pub(super) async fn before(config: &Config, board: &Switchboard) -> Option<Standing> {
    // Of rules that give keys there is nothing to be said.
    config.observing().find(|rule| rule.is_switched)?;
    standing(board).await
}

/// Tables with a fence whose rules give no keys, by server. `before`: what [`before`] has said.
pub(super) async fn fences(
    config: &Config,
    (board, before): (&Switchboard, Option<Standing>),
    snapshots: &[Option<&Snapshot>],
) -> Vec<Vec<Finding>> {
    let found = |is_native: &dyn Fn(&Configured) -> bool| -> Vec<Vec<Finding>> {
        let snapshots = snapshots.iter();
        snapshots
            .map(|snapshot| match snapshot {
                Some(snapshot) => schema::left_fences(snapshot, config, is_native),
                None => Vec::new(),
            })
            .collect()
    };
    let all = found(&|_: &Configured| true);
    if all.iter().all(Vec::is_empty) {
        return all;
    }
    let after = match before.is_some() {
        true => standing(board).await,
        false => None,
    };
    let standings = before.zip(after);
    found(&|rule: &Configured| {
        let of_switch = || {
            let standings = standings.as_ref();
            standings.is_some_and(|(before, after)| stays_native(&rule_name(rule), before, after))
        };
        !rule.is_switched || of_switch()
    })
}

/// Whether a rule's tables were native all the time in between, and no program lifts their fence.
fn stays_native(rule: &RuleName, before: &Standing, after: &Standing) -> bool {
    let mut rules = after.rules.iter();
    let known = rules.find(|known| known.rule == *rule);
    before.attempt == after.attempt
        && before.phase == Phase::None
        && after.phase == Phase::None
        // Where the switch has taken keys back, programs know above what counters go on.
        && known.is_none_or(|known| known.keys.is_none() && known.above.is_none())
}

/// Rules that give keys on servers behind these listeners, and that the configuration does not have. That the store cannot be asked is told
/// elsewhere.
pub(super) async fn rules(config: &Config, keys: &Keys) -> Vec<String> {
    let Some(standing) = standing(&Switchboard::new(keys)).await else {
        return Vec::new();
    };
    let mut left = not_here(config, &standing);
    if left.is_empty() {
        return Vec::new();
    }
    // Others may serve other servers with this store.
    let servers = server_identities(config).await;
    left.retain(|rule| rule.servers.iter().any(|server| servers.contains(server)));
    left.into_iter().map(told).collect()
}

fn not_here<'a>(config: &Config, standing: &'a Standing) -> Vec<&'a InForce> {
    let is_here = |rule: &RuleName| config.rules.iter().any(|its| rule_name(its) == *rule);
    let rules = standing.rules.iter();
    rules
        .filter(|known| known.keys.is_some() && !is_here(&known.rule))
        .collect()
}

fn told(known: &InForce) -> String {
    let RuleName { tables, column } = &known.rule;
    format!(
        "the store says that rule {tables}, column {column}, gives keys from {} on a server behind a listener, and this configuration has no such \
         rule: INSERTs on its tables pass without a key, and the fence refuses them (167, on MySQL 1467). Write the rule again, unless none come \
         here; to take its keys back, set it to mode = \"observe\" then, and send SIGHUP",
        named(known.keys.as_ref())
    )
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_proxy::config::Config;
    use keywright_store::switch::{InForce, KeySpace, Phase, RuleName, Standing};

    use super::{not_here, stays_native};

    fn name(tables: &str) -> RuleName {
        RuleName {
            tables: tables.to_owned(),
            column: "id".to_owned(),
        }
    }

    fn standing(attempt: u64, phase: Phase, rules: Vec<InForce>) -> Standing {
        Standing {
            attempt,
            phase,
            leader: None,
            age_ms: 0,
            rules,
            generations: Vec::new(),
            key_space_ids: Vec::new(),
            peers: Vec::new(),
        }
    }

    fn known(tables: &str, gives_keys: bool, above: Option<u64>) -> InForce {
        InForce {
            rule: name(tables),
            keys: gives_keys.then(|| KeySpace::Tag(Tag::parse("a").unwrap())),
            next: None,
            above,
            servers: Vec::new(),
        }
    }

    #[test]
    fn a_fence_is_left_where_no_switch_was_under_way_and_no_program_lifts_it() {
        let rules = || {
            vec![
                known("a.keys", true, None),
                known("a.back", false, Some(7)),
                known("a.by_hand", false, None),
            ]
        };
        let before = standing(3, Phase::None, rules());
        for (tables, is_left) in [
            ("a.keys", false),
            ("a.back", false),
            ("a.by_hand", true),
            ("a.never", true),
        ] {
            let is_native = stays_native(&name(tables), &before, &before);
            assert_eq!(is_native, is_left, "{tables}");
        }
        // Its fences come and go.
        for after in [
            standing(4, Phase::None, rules()),
            standing(3, Phase::Holding, rules()),
        ] {
            assert!(
                !stays_native(&name("a.never"), &before, &after),
                "{after:?}"
            );
            assert!(
                !stays_native(&name("a.never"), &after, &before),
                "{after:?}"
            );
        }
    }

    #[test]
    fn a_rule_that_gives_keys_is_missed() {
        let config = Config::parse(
            "[store]\nurl = \"mysql://root@127.0.0.1:1/s\"\n\
             [[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\nadmin = \"mysql://root@127.0.0.1:3\"\n\
             [[rule]]\ntable = \"a.here\"\ncolumn = \"id\"\nkey = \"segment:a\"\n",
        )
        .unwrap();
        let rules = vec![
            known("a.here", true, None),
            known("a.gone", true, None),
            known("a.native", false, None),
        ];
        let standing = standing(3, Phase::None, rules);
        let missed: Vec<&str> = not_here(&config, &standing)
            .into_iter()
            .map(|its| its.rule.tables.as_str())
            .collect();
        assert_eq!(missed, ["a.gone"]);
    }
}
