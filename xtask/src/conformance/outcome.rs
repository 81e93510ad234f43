//! What a suite said of each of its tests.

use std::collections::BTreeMap;
use std::fmt;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Passed,
    Failed,
    Skipped,
}

/// The tests by name.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    tests: BTreeMap<String, End>,
    /// What the scripts say they saw in a test.
    seen: BTreeMap<String, String>,
}

impl Outcome {
    /// Lines such as `PASSED tests/test_a.py::test_b`, as pytest prints them with `-rA`; of scripts also `SEEN script::step - what`.
    pub(super) fn of_pytest(output: &str) -> Outcome {
        let read = |line: &str| {
            let (word, rest) = line.split_once(' ')?;
            let end = match word {
                "PASSED" | "XPASS" => End::Passed,
                "FAILED" | "ERROR" => End::Failed,
                "XFAIL" => End::Skipped,
                _ => return None,
            };
            // The reason stands behind the name.
            let name = rest.split(" - ").next()?;
            name.contains("::").then(|| (name.to_owned(), end))
        };
        // Skipped tests are named by place, several at once. SQLAlchemy names the test too, and then reasons in any order.
        let skipped = output
            .lines()
            .filter(|line| line.starts_with("SKIPPED "))
            .map(|line| line.split_once("' : ").map_or(line, |(name, _)| name))
            .map(|name| (name.to_owned(), End::Skipped));
        let seen = |line: &str| {
            let (name, what) = line.strip_prefix("SEEN ")?.split_once(" - ")?;
            Some((name.to_owned(), what.to_owned()))
        };
        Outcome {
            tests: output.lines().filter_map(read).chain(skipped).collect(),
            seen: output.lines().filter_map(seen).collect(),
        }
    }

    /// Lines such as `test a::b ... ok`, as cargo's tests print them.
    pub(super) fn of_cargo(output: &str) -> Outcome {
        let read = |line: &str| {
            let (name, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
            let end = match end {
                "ok" => End::Passed,
                "FAILED" => End::Failed,
                ignored if ignored.starts_with("ignored") => End::Skipped,
                _ => return None,
            };
            Some((name.to_owned(), end))
        };
        Outcome {
            tests: output.lines().filter_map(read).collect(),
            seen: BTreeMap::new(),
        }
    }

    fn count(&self, end: End) -> usize {
        self.tests.values().filter(|&&other| other == end).count()
    }

    pub(super) fn passed(&self) -> usize {
        self.count(End::Passed)
    }

    pub(super) fn summary(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed(),
            self.count(End::Failed),
            self.count(End::Skipped)
        )
    }

    /// How a test ended; none if there is no such test.
    pub(super) fn end(&self, name: &str) -> Option<End> {
        self.tests.get(name).copied()
    }

    /// Each test that ended otherwise in the other run or saw something else, or that only one of them has.
    pub(super) fn differences(&self, other: &Outcome) -> Vec<Difference> {
        let mut names: Vec<&String> = self.tests.keys().chain(other.tests.keys()).collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .map(|name| Difference {
                name: name.clone(),
                ours: self.end(name),
                theirs: other.end(name),
                parting: parting(self.seen.get(name), other.seen.get(name)),
            })
            .filter(|difference| {
                difference.ours != difference.theirs || difference.parting.is_some()
            })
            .collect()
    }
}

/// Characters that are shown of what two runs saw, from shortly before they part.
const PARTING_LEN: usize = 160;

/// Both texts where they part, if they do.
fn parting(ours: Option<&String>, theirs: Option<&String>) -> Option<[String; 2]> {
    let [ours, theirs] =
        [ours, theirs].map(|text| text.map_or_else(Vec::new, |text| text.chars().collect()));
    let same = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(PARTING_LEN / 2);
    let shown = |text: &[char]| text.iter().skip(from).take(PARTING_LEN).collect();
    (ours != theirs).then(|| [shown(&ours), shown(&theirs)])
}

/// A test that ended otherwise in another run, or saw something else.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) name: String,
    pub(super) ours: Option<End>,
    pub(super) theirs: Option<End>,
    /// What either saw, from where it is another.
    parting: Option<[String; 2]>,
}

impl Difference {
    /// Whether both runs have the test, by this name.
    pub(super) fn is_in_both(&self) -> bool {
        self.ours.is_some() && self.theirs.is_some()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |end: Option<End>| end.map_or("absent".to_owned(), |end| format!("{end:?}"));
        let (ours, theirs) = (show(self.ours), show(self.theirs));
        write!(f, "{}: {ours} → {theirs}", self.name)?;
        if let Some([ours, theirs]) = &self.parting {
            write!(f, "\n        direct  …{ours}…\n        through …{theirs}…")?;
        }
        Ok(())
    }
}
