//! INSERTs out of a grammar, run natively on a table and through the proxy on its twin, which must not be told apart.
//!
//! The server that a statement's key would come from is the judge: what it answers, what is in the tables afterwards and what the
//! session says of the statement. Keys are compared by their order, as in [`crate::corpus`]. What the proxy refuses with error
//! 1235 must have changed nothing. Keys that were asked for before a statement must not come again. A round is a session on either side, and follows from its seed alone.

mod asks;
mod changes;
mod copies;
mod grammar;
mod listed;
mod queries;
mod rig;
mod side;
mod sides;
mod tables;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::corpus::transcript::none_differ;
use crate::{Flavour, Result};
use grammar::Case;
use rig::Rig;
use sides::Comparison;

/// Statements of one session.
const ROUND: usize = 25;

/// So many differences are enough to look at.
const FAULTS_MAX: usize = 40;

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// So many statements,
    pub statements_max: usize,
    /// and no longer than this.
    pub time_max: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Found {
    /// How many statements were run on both sides.
    pub statements: usize,
    /// How many the server accepted natively.
    pub accepted: usize,
    /// How many the proxy refused, by what it named.
    pub refused: BTreeMap<String, usize>,
    /// How many differed in a way that is known, by its name.
    pub listed: BTreeMap<&'static str, usize>,
    /// Those that differed in another way, each shown from both sides, with the seed of its round.
    pub faults: Vec<String>,
}

impl Found {
    /// # Errors
    /// There were differences that nobody has listed; the error shows them.
    pub fn check(&self) -> Result<()> {
        none_differ(&self.faults, self.statements)
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused: usize = self.refused.values().sum();
        writeln!(
            formatter,
            "{} statements, {} accepted by the server, {refused} refused by the proxy, {} differ unexpectedly",
            self.statements,
            self.accepted,
            self.faults.len()
        )?;
        for (construct, count) in &self.refused {
            writeln!(formatter, "    refused, {construct}: {count}")?;
        }
        for (name, count) in &self.listed {
            writeln!(formatter, "    known to differ, {name}: {count}")?;
        }
        Ok(())
    }
}

/// A seed that nobody chose.
#[must_use]
pub fn any_seed() -> u32 {
    fastrand::u32(..)
}

/// Runs rounds, beginning with the one of that seed; each next one's is one higher.
///
/// # Errors
/// A server or the proxy does not start, or a connection broke.
pub fn compare(flavour: Flavour, seed: u64, extent: Extent) -> Result<Found> {
    let rig = Rig::start(flavour)?;
    let began = Instant::now();
    let mut found = Found::default();
    for seed in seed.. {
        let enough =
            found.statements >= extent.statements_max || began.elapsed() >= extent.time_max;
        if enough || found.faults.len() >= FAULTS_MAX {
            break;
        }
        round(&rig, flavour, seed, &mut found)?;
    }
    Ok(found)
}

fn round(rig: &Rig, flavour: Flavour, seed: u64, found: &mut Found) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    let prelude = grammar::prelude(&mut random, flavour);
    let mut sessions = rig.sessions(&prelude)?;
    for _ in 0..ROUND {
        let case = Case::draw(&mut random, flavour);
        let outcome = sessions.run(&case).with_context(|| {
            let name = flavour.name();
            format!("seed {seed}, {name}: {prelude:?}\n{}", rig.last_words())
        })?;
        found.statements += 1;
        found.accepted += usize::from(outcome.accepted);
        match outcome.verdict {
            Comparison::Same => continue,
            Comparison::Refused(construct) => {
                *found.refused.entry(construct).or_default() += 1;
            }
            Comparison::Differs(difference) => match listed::name(flavour, &case, &difference) {
                Some(name) => *found.listed.entry(name).or_default() += 1,
                None => found.faults.push(format!(
                    "seed {seed}, {}: {prelude:?}\n{case}\n{difference}",
                    flavour.name()
                )),
            },
        }
        // The sessions no longer know the same of what was before.
        sessions = rig.sessions(&prelude)?;
    }
    Ok(())
}
