//! Comparing what two sides saw.

use std::collections::BTreeMap;
use std::thread;

use anyhow::{Context, bail};

use super::run::{AFTERWARDS, Pass, Visible, clean_up, run, set_up_ahead};
use super::scenario::{Action, Expect, Scenario};
use super::side::Side;
use super::transcript::{Ranks, none_differ};
use crate::{Flavour, Result};

/// What came of comparing.
#[derive(Debug, Default)]
pub struct Report {
    /// How many statements and commands were run, each counted once however often it was.
    pub statements: usize,
    /// How many of them the proxy refuses.
    pub refused: usize,
    /// The known differences that were seen.
    pub deviations: Vec<String>,
    /// What should not be: each a difference, shown from both sides.
    pub faults: Vec<String>,
}

impl Report {
    /// # Errors
    /// There were faults; the error shows them.
    pub fn check(&self) -> Result<()> {
        none_differ(&self.faults, self.statements)
    }
}

/// Makes the schemas of one side already, so that a proxy that starts afterwards knows what is in them. [`compare`] makes them
/// anew.
///
/// # Errors
/// A scenario could not be set up.
pub fn set_up(scenarios: &[Scenario], flavour: Flavour, side: &Side<'_>) -> Result<()> {
    for (scenario, number) in numbered(scenarios, flavour) {
        for number in (number..).take(Pass::ALL.len()) {
            set_up_ahead(scenario, side, number)?;
        }
    }
    Ok(())
}

/// The scenarios of a flavour, each with the number of its first pass.
fn numbered(scenarios: &[Scenario], flavour: Flavour) -> impl Iterator<Item = (&Scenario, usize)> {
    let wanted = scenarios
        .iter()
        .filter(move |scenario| scenario.is_for(flavour));
    wanted.zip((0..).step_by(Pass::ALL.len()))
}

/// Runs every scenario in every way on both sides.
///
/// # Errors
/// A scenario could not be set up, or a connection broke.
pub fn compare(
    scenarios: &[Scenario],
    flavour: Flavour,
    native: &Side<'_>,
    other: &Side<'_>,
) -> Result<Report> {
    let mut report = Report::default();
    for (scenario, number) in numbered(scenarios, flavour) {
        report.statements += scenario.step_count();
        let mut differences: BTreeMap<usize, Difference> = BTreeMap::new();
        for (pass, number) in Pass::ALL.into_iter().zip(number..) {
            let compared = compare_pass(scenario, flavour, [native, other], pass, number);
            match compared.with_context(|| format!("scenario {:?}", scenario.name)) {
                Ok(found) => found.into_iter().for_each(|(step, difference)| {
                    let known = differences
                        .get(&step)
                        .is_some_and(|known| known.is_in_answer || !difference.is_in_answer);
                    if !known {
                        differences.insert(step, difference);
                    }
                }),
                Err(error) => report
                    .faults
                    .push(format!("{} [{pass:?}]\n    {error:#}", scenario.name)),
            }
        }
        // Two native sides show no deviation of the proxy's.
        let deviations_of = other.is_proxied().then_some(flavour);
        judge(scenario, deviations_of, differences, &mut report);
    }
    Ok(report)
}

/// What both sides saw of a step, which was not the same.
struct Difference {
    text: String,
    /// Not only in what the session said of the statement afterwards.
    is_in_answer: bool,
}

/// The differences of a pass by step; what is in the tables counts as one more step.
fn compare_pass(
    scenario: &Scenario,
    flavour: Flavour,
    sides: [&Side<'_>; 2],
    pass: Pass,
    number: usize,
) -> Result<Vec<(usize, Difference)>> {
    let [native, other] = thread::scope(|scope| {
        let threads =
            sides.map(|side| scope.spawn(move || run(scenario, flavour, side, pass, number)));
        threads.map(|thread| match thread.join() {
            Ok(seen) => seen,
            Err(_) => bail!("a side panicked"),
        })
    });
    for side in sides {
        clean_up(side, number)?;
    }
    let (native, other) = (native.context("native")?, other.context("the other side")?);
    let shown = [&native, &other].map(|seen| normalised(scenario, seen));
    let [native, other] = shown;
    let steps = native.iter().zip(&other).enumerate();
    let differing = steps.filter(|(_, (native, other))| native != other);
    Ok(differing
        .map(|(step, (native, other))| {
            let text = format!(
                "[{pass:?}]\n    native: {}\n    other:  {}",
                indented(native),
                indented(other)
            );
            let difference = Difference {
                text,
                is_in_answer: answer_of(native) != answer_of(other),
            };
            (step, difference)
        })
        .collect())
}

/// The steps and the tables with keys by their order.
fn normalised(scenario: &Scenario, seen: &Visible) -> Vec<String> {
    // What is known to differ must not change the order of the rest.
    let alike = scenario
        .steps
        .iter()
        .zip(&seen.steps)
        .filter(|(step, _)| !matches!(step.expect, Expect::Deviates(_) | Expect::DeviatesAfter(_)))
        .map(|(_, seen)| seen.as_str());
    let ranks = Ranks::of(alike.chain([seen.tables.as_str()]));
    let all = seen.steps.iter().chain([&seen.tables]);
    all.map(|text| ranks.applied_to(text)).collect()
}

fn answer_of(seen: &str) -> &str {
    seen.split_once(AFTERWARDS)
        .map_or(seen, |(answer, _)| answer)
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n            ")
}

fn judge(
    scenario: &Scenario,
    deviations_of: Option<Flavour>,
    mut differences: BTreeMap<usize, Difference>,
    report: &mut Report,
) {
    for (number, step) in scenario.steps.iter().enumerate() {
        let shown = match &step.action {
            Action::Sql { text, .. } | Action::Elsewhere(text) => text.escape_ascii().to_string(),
            Action::InitDb(_) | Action::Ping | Action::ResetConnection | Action::ChangeUser => {
                format!("{:?}", step.action)
            }
        };
        let place = format!("{} (line {}): {shown}", scenario.name, step.line);
        let may_deviate =
            deviations_of.is_some_and(|flavour| step.only.is_none_or(|only| only == flavour));
        match (&step.expect, differences.remove(&number)) {
            (Expect::Refused(_), _) => report.refused += 1,
            (Expect::Same, None) => {}
            (Expect::Same, Some(difference)) => {
                report.faults.push(format!("{place} {}", difference.text));
            }
            (Expect::DeviatesAfter(_), Some(difference)) if difference.is_in_answer => {
                report.faults.push(format!("{place} {}", difference.text));
            }
            (Expect::Deviates(reason) | Expect::DeviatesAfter(reason), Some(_)) => {
                report.deviations.push(format!("{place}: {reason}"));
            }
            (Expect::Deviates(reason) | Expect::DeviatesAfter(reason), None) if may_deviate => {
                report
                    .faults
                    .push(format!("{place}: no deviation any more ({reason})"));
            }
            (Expect::Deviates(_) | Expect::DeviatesAfter(_), None) => {}
        }
    }
    // What is left is of the tables.
    for difference in differences.into_values() {
        report
            .faults
            .push(format!("{}: the tables {}", scenario.name, difference.text));
    }
}
