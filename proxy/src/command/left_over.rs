//! What is left where somebody has gone past the switch: fences of tables to which nobody gives keys, and rules that give some and that a
//! configuration does not have. Nothing else says why INSERTs fail there.

use std::path::Path;
use std::time::Duration;

use keywright_proxy::config::{Config, Configured};
use keywright_proxy::schema::{self, Finding, Severity, Snapshot, may_share_tables};
use keywright_proxy::switch::{rule_name, server_identities};
use keywright_store::Keys;
use keywright_store::switch::{
    InForce, KeySpace, Peer, Phase, RuleName, Standing, Switchboard, WantedKeys,
};
use tokio::time::timeout;

use super::fence_owners::{Owners, owners};
use super::wanted::{host_of, named, place_of};

/// A place whose configuration has a rule.
#[derive(Debug, Clone, Copy)]
struct Elsewhere<'a> {
    place: &'a str,
    /// The program on its host that was heard of last, of those that have not said that they end; which file a program reads the store does not
    /// know. `None`: all have, or were forgotten.
    program: Option<&'a Peer>,
}

/// How long the store is waited for, milliseconds: a program that starts while it is away is not to wait for this, too.
const STORE_MS_MAX: u64 = 1_000;

async fn standing(board: &Switchboard) -> Option<Standing> {
    let asked = timeout(Duration::from_millis(STORE_MS_MAX), board.standing());
    asked.await.ok()?.ok()
}

/// What the store says before servers are looked at, where that matters for [`fences`]. `board` is none of a program's own: what is read here
/// nobody goes by.
pub(super) async fn before(config: &Config, board: &Switchboard) -> Option<Standing> {
    match is_asked_before(config) {
        true => standing(board).await,
        false => None,
    }
}

/// Of rules that give keys there is nothing to be said.
fn is_asked_before(config: &Config) -> bool {
    config.observing().any(|rule| rule.is_switched)
}

/// Tables with a fence whose rules give no keys, by server. `before`: what [`before`] has said.
pub(super) async fn fences(
    config: &Config,
    (board, before): (&Switchboard, Option<Standing>),
    snapshots: &[Option<&Snapshot>],
) -> Vec<Vec<Finding>> {
    let snapshots = snapshots.iter();
    let all: Vec<(Option<&Snapshot>, Vec<Finding>)> = snapshots
        .map(|snapshot| {
            (
                *snapshot,
                found(config, *snapshot, &Owners::new(), |_, _| true),
            )
        })
        .collect();
    if all.iter().all(|(_, found)| found.is_empty()) {
        return all.into_iter().map(|(_, found)| found).collect();
    }
    // Where the store has not answered just now, nobody waits for it again.
    let is_away = before.is_none() && is_asked_before(config);
    let after = match is_away {
        true => None,
        false => standing(board).await,
    };
    let standings = before.as_ref().zip(after.as_ref());
    let is_native = |rule: &Configured, is_kept: bool| {
        let of_switch = |(before, after)| stays_native((&rule_name(rule), is_kept), before, after);
        !rule.is_switched || standings.is_some_and(of_switch)
    };
    let mut told = Vec::new();
    for (snapshot, of_any) in all {
        let owners = match of_any.is_empty() {
            true => Owners::new(),
            false => owners(snapshot, (board, after.as_ref())).await,
        };
        told.push(found(config, snapshot, &owners, is_native));
    }
    told
}

fn found(
    config: &Config,
    snapshot: Option<&Snapshot>,
    owners: &Owners,
    is_native: impl Fn(&Configured, bool) -> bool,
) -> Vec<Finding> {
    let Some(snapshot) = snapshot else {
        return Vec::new();
    };
    schema::left_fences(snapshot, config, is_native, |column| {
        let table = (column.schema.clone(), column.table.clone());
        owners.get(&table).cloned()
    })
}

/// Whether a rule's tables were native all the time in between, and no program lifts their fence. `is_kept`: none does anyway.
fn stays_native((rule, is_kept): (&RuleName, bool), before: &Standing, after: &Standing) -> bool {
    let mut rules = after.rules.iter();
    let known = rules.find(|known| known.rule == *rule);
    before.attempt == after.attempt
        && before.phase == Phase::None
        && after.phase == Phase::None
        // Where the switch has taken keys back, programs know above what counters go on.
        && known.is_none_or(|known| known.keys.is_none() && (is_kept || known.above.is_none()))
}

/// Rules that give keys on servers behind these listeners, and that the configuration, which was read from `file`, does not have. That the
/// store cannot be asked is told elsewhere.
pub(super) async fn rules((config, file): (&Config, &Path), keys: &Keys) -> Vec<Finding> {
    let board = Switchboard::new(keys);
    let Some(standing) = standing(&board).await else {
        return Vec::new();
    };
    let mut left = not_here(config, &standing);
    if left.is_empty() {
        return Vec::new();
    }
    // Others may serve other servers with this store.
    let servers = server_identities(config).await;
    left.retain(|rule| rule.servers.iter().any(|server| servers.contains(server)));
    let all_wanted = timeout(Duration::from_millis(STORE_MS_MAX), board.all_wanted());
    // Where the store does not say, nobody else is sure to have them.
    let all_wanted = match all_wanted.await {
        Ok(Ok(all_wanted)) => all_wanted,
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    let place = place_of(file);
    let holder = keywright_store::holder();
    let mut others = standing.peers.clone();
    others.retain(|peer| peer.holder != holder);
    let told = left.into_iter().map(|known| {
        let has_it = elsewhere(known, &place, (all_wanted.as_slice(), others.as_slice()));
        told(known, has_it, is_of_another(&known.rule, config))
    });
    told.collect()
}

/// One of the same name that is not switched is another rule, unless it gives the same keys: those of a tag that has moved to another store.
fn not_here<'a>(config: &Config, standing: &'a Standing) -> Vec<&'a InForce> {
    let is_here = |known: &InForce| {
        let mut rules = config
            .rules
            .iter()
            .filter(|its| rule_name(its) == known.rule);
        rules.any(|its| its.is_switched || KeySpace::of(&its.spec) == known.keys)
    };
    let rules = standing.rules.iter();
    rules
        .filter(|known| known.keys.is_some() && !is_here(known))
        .collect()
}

/// Another place than this one whose configuration has the rule, and these keys: of several, the one on whose host a program was heard of last.
fn elsewhere<'a>(
    known: &InForce,
    place: &str,
    (all_wanted, programs): (&'a [(String, WantedKeys)], &'a [Peer]),
) -> Option<Elsewhere<'a>> {
    let has_it = |(at, its): &&(String, WantedKeys)| {
        at != place && its.rule == known.rule && its.keys == known.keys
    };
    let places = all_wanted.iter().filter(has_it).map(|(at, _)| Elsewhere {
        place: at,
        program: heard_last(at, programs),
    });
    places.min_by_key(|its| its.program.map_or(u64::MAX, |program| program.silent_ms))
}

/// Of programs on the host of a place.
fn heard_last<'a>(place: &str, programs: &'a [Peer]) -> Option<&'a Peer> {
    let host = host_of(place)?;
    let there = programs.iter();
    there
        .filter(|program| program.host() == Some(host))
        .min_by_key(|program| program.silent_ms)
}

impl Elsewhere<'_> {
    /// That it does, and whether anybody goes by it. Since when nobody does is not known: one that was killed long ago may have been silent for
    /// longer than others that have stopped since.
    fn has_it(&self) -> String {
        let Self { place, program } = self;
        match program.is_some_and(|program| !program.is_silent()) {
            true => format!("That of {place} has it"),
            false => format!("That of {place} had it, and no program on that host is heard of now"),
        }
    }
}

/// Whether a rule here may be for tables of that one.
fn is_of_another(rule: &RuleName, config: &Config) -> bool {
    let mut rules = config.rules.iter();
    rules.any(|its| may_share_tables(&rule_name(its).tables, &rule.tables))
}

/// `elsewhere`: a place that has the rule. `is_of_another`: a rule here may be for its tables.
fn told(known: &InForce, elsewhere: Option<Elsewhere<'_>>, is_of_another: bool) -> Finding {
    let RuleName { tables, column } = &known.rule;
    let left = format!(
        "the store says that rule {tables}, column {column}, gives keys from {} on a server behind a listener, and this configuration has no such \
         rule",
        named(known.keys.as_ref())
    );
    let refused = "pass without a key, and the fence refuses them (167, on MySQL 1467)";
    let back = "to take its keys back, set it to mode = \"observe\" then, and send SIGHUP";
    match (elsewhere, is_of_another) {
        (_, true) => Severity::Warning.of(format!(
            "{left}: INSERTs on its tables go by another rule here, if that is for them. Write the rule again, before that one; {back}"
        )),
        (Some(elsewhere), false) => Severity::Note.of(format!(
            "{left}. {}. If INSERTs on its tables come here, write it here, too: they {refused}",
            elsewhere.has_it()
        )),
        (None, false) => Severity::Warning.of(format!(
            "{left}: INSERTs on its tables {refused}. Write the rule again, unless none come here; {back}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::Tag;
    use keywright_proxy::config::Config;
    use keywright_proxy::schema::Severity;
    use keywright_store::switch::{InForce, KeySpace, Peer, Phase, RuleName, Standing, WantedKeys};

    use super::{Elsewhere, elsewhere, is_of_another, not_here, stays_native, told};

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
            let is_native = stays_native((&name(tables), false), &before, &before);
            assert_eq!(is_native, is_left, "{tables}");
            let is_native = stays_native((&name(tables), true), &before, &before);
            assert_eq!(is_native, tables != "a.keys", "{tables}");
        }
        // Its fences come and go.
        for after in [
            standing(4, Phase::None, rules()),
            standing(3, Phase::Holding, rules()),
        ] {
            assert!(
                !stays_native((&name("a.never"), false), &before, &after),
                "{after:?}"
            );
            assert!(
                !stays_native((&name("a.never"), false), &after, &before),
                "{after:?}"
            );
        }
    }

    #[test]
    fn a_rule_that_gives_keys_is_missed() {
        let config = Config::parse(
            "[store]\nurl = \"mysql://root@127.0.0.1:1/s\"\n\
             [[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\nadmin = \"mysql://root@127.0.0.1:3\"\n\
             [[rule]]\ntable = \"a.here\"\ncolumn = \"id\"\nkey = \"segment:a\"\n\
             [[rule]]\ntable = \"a.other\"\ncolumn = \"id\"\nkey = \"stride:b\"\noffset = 1\nincrement = 2\n",
        )
        .unwrap();
        let rules = vec![
            known("a.here", true, None),
            known("a.gone", true, None),
            known("a.other", true, None),
            known("a.native", false, None),
        ];
        let standing = standing(3, Phase::None, rules);
        let missed: Vec<&str> = not_here(&config, &standing)
            .into_iter()
            .map(|its| its.rule.tables.as_str())
            .collect();
        assert_eq!(missed, ["a.gone", "a.other"]);
        assert!(!is_of_another(&name("a.gone"), &config));
        assert!(is_of_another(&name("a.*"), &config));
    }

    #[test]
    fn a_rule_whose_tag_has_moved_to_another_store_is_not_missed() {
        let config = Config::parse(
            "[[store]]\nname = \"main\"\nurl = \"mysql://root@127.0.0.1:1/s\"\n\
             [[store]]\nname = \"far\"\nurl = \"mysql://root@127.0.0.1:4/s\"\ntags = [\"a\"]\n\
             [[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\nadmin = \"mysql://root@127.0.0.1:3\"\n\
             [[rule]]\ntable = \"a.here\"\ncolumn = \"id\"\nkey = \"segment:a\"\n",
        )
        .unwrap();
        assert!(config.rules.iter().all(|rule| !rule.is_switched));
        let standing = standing(3, Phase::None, vec![known("a.here", true, None)]);
        assert!(not_here(&config, &standing).is_empty());
    }

    #[test]
    fn a_rule_that_another_place_has_is_no_trouble_here() {
        let left = known("a.gone", true, None);
        let at = |place: &str, tables: &str, gives_keys: bool| {
            let InForce { rule, keys, .. } = known(tables, gives_keys, None);
            (place.to_owned(), WantedKeys { rule, keys })
        };
        for (wanted, has_it) in [
            (at("there", "a.gone", true), Some("there")),
            // It was here, and was taken out of the file.
            (at("here", "a.gone", true), None),
            (at("there", "a.gone", false), None),
            (at("there", "a.other", true), None),
        ] {
            let all_wanted = [wanted];
            let found = elsewhere(&left, "here", (all_wanted.as_slice(), &[]));
            assert_eq!(found.map(|its| its.place), has_it, "{all_wanted:?}");
        }
        let refused = "without a key";
        let there = Elsewhere {
            place: "there",
            program: None,
        };
        for (place, is_of_another, severity, is_refused) in [
            (Some(there), false, Severity::Note, true),
            (None, false, Severity::Warning, true),
            (Some(there), true, Severity::Warning, false),
            (None, true, Severity::Warning, false),
        ] {
            let said = told(&left, place, is_of_another);
            assert_eq!(said.severity, severity, "{said:?}");
            assert_eq!(said.message.contains(refused), is_refused, "{said:?}");
        }
    }

    #[test]
    fn whether_anybody_goes_by_another_file_is_said() {
        let left = known("a.gone", true, None);
        let wanted = WantedKeys {
            rule: left.rule.clone(),
            keys: left.keys.clone(),
        };
        let all_wanted =
            ["far /a.toml", "near /b.toml"].map(|place| (place.to_owned(), wanted.clone()));
        let peer = |holder: &str, silent_ms: u64| Peer {
            program: holder.to_owned(),
            holder: holder.to_owned(),
            silent_ms,
            seen_ms: 0,
            held: None,
        };
        let nobody = "That of far /a.toml had it, and no program on that host is heard of now. If";
        let silent = "That of near /b.toml had it, and no program on that host is heard of now. If";
        for (programs, said) in [
            (vec![], nobody),
            (vec![peer("other pid 1", 0)], nobody),
            (vec![peer("near pid 1", 125_000)], silent),
            (
                vec![peer("near pid 1", 125_000), peer("near pid 2", 3_000)],
                "That of near /b.toml has it. If",
            ),
            (
                vec![peer("near pid 1", 3_000), peer("far pid 2", 900)],
                "That of far /a.toml has it. If",
            ),
        ] {
            let known = (all_wanted.as_slice(), programs.as_slice());
            let found = elsewhere(&left, "here /c.toml", known);
            let finding = told(&left, found, false);
            assert_eq!(finding.severity, Severity::Note);
            assert!(finding.message.contains(said), "{programs:?} {finding:?}");
        }
    }
}
