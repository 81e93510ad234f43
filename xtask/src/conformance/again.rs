//! Tests that ended otherwise through the proxy are run again on both legs: some end now so, now so by themselves.
//!
//! One that is known: `should_reconnect` of mysql_async sends, in the same moment, COM_RESET_CONNECTION on one connection and
//! KILL of that connection on another, and expects the first to win. Of 80 runs on a busy machine 4 failed direct, 12 and 21
//! through the proxy, and 24 through HAProxy, as anything between makes both ways longer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use keywright_testkit::Flavour;

use super::leg::{Leg, WorkDir};
use super::listed;
use super::outcome::{Difference, End};
use super::suite::Suite;

/// How often tests are run again on each leg.
const RUNS: usize = 5;

/// Runs again what differs, prints what came of it, and says whether something stays different.
pub(super) fn confirm(
    (suite, flavour, leg): (Suite, Flavour, Leg),
    source: &Path,
    differences: &[Difference],
) -> Result<bool> {
    let mut unlisted = Vec::new();
    for difference in differences {
        match listed::reason(suite, flavour, difference) {
            Some(reason) => println!("    {difference}, listed: {reason}"),
            None => unlisted.push(difference),
        }
    }
    let (names, absent): (Vec<_>, Vec<_>) = unlisted
        .into_iter()
        .partition(|difference| difference.is_in_both());
    for difference in &absent {
        println!("    {difference}");
    }
    let mut confirmed = !absent.is_empty();
    if leg == Leg::Rewriting {
        // What an application has done once cannot be done again.
        names
            .iter()
            .for_each(|difference| println!("    {difference}"));
        return Ok(confirmed || !names.is_empty());
    }
    if !names.is_empty() {
        let tests: Vec<String> = names.iter().map(|one| one.name.clone()).collect();
        let direct = ends(
            &WorkDir::start(suite, source, flavour, Leg::Direct)?,
            suite,
            source,
            &tests,
        )?;
        let through = ends(
            &WorkDir::start(suite, source, flavour, leg)?,
            suite,
            source,
            &tests,
        )?;
        for difference in names {
            let steady = is_steady(difference, &direct, &through);
            let word = if steady {
                "not again in"
            } else {
                "and again in"
            };
            println!("    {difference}, {word} {RUNS} runs");
            confirmed |= !steady;
        }
    }
    Ok(confirmed)
}

/// How tests ended in several runs.
type Ends = BTreeMap<String, BTreeSet<Option<End>>>;

fn ends(place: &WorkDir, suite: Suite, source: &Path, tests: &[String]) -> Result<Ends> {
    let mut ends = Ends::new();
    for _ in 0..RUNS {
        let outcome = suite.run(source, place.port(), tests)?;
        for test in tests {
            let end = outcome.end(test);
            ends.entry(test.clone()).or_default().insert(end);
        }
    }
    Ok(ends)
}

/// Whether the test never again ended through the proxy as it never did direct.
fn is_steady(difference: &Difference, direct: &Ends, through: &Ends) -> bool {
    let mut expected = direct.get(&difference.name).cloned().unwrap_or_default();
    expected.insert(difference.ours);
    let seen = through.get(&difference.name);
    seen.is_some_and(|seen| seen.is_subset(&expected))
}
