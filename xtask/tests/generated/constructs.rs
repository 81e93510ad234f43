//! The page of statements is made of the corpora: what is rewritten and refused, and where a client can tell the difference.

use std::collections::BTreeMap;
use std::fs;

use keywright_testkit::Result;
use keywright_testkit::docs::{generated_part, table};

use crate::files;

const PAGE: &str = "docs/reference/constructs.md";
/// Longest statement that is shown, characters. Shorter ones say what they are about.
const EXAMPLE_CHARS_MAX: usize = 110;
/// What the outcome of a statement that is refused begins with.
const UNSUPPORTED: &str = "unsupported: ";

/// A statement of the rewriter's corpus.
struct Line {
    /// What the comment above says of the lines below it.
    about: String,
    statement: String,
    /// The first line of the outcome.
    outcome: String,
}

fn lines() -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for file in files("rewrite/tests/corpus")? {
        let text = fs::read_to_string(file)?;
        let (mut about, mut statement) = (String::new(), None::<String>);
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("// ") {
                about = comment.to_owned();
            } else if let Some(outcome) = line.strip_prefix("    ") {
                if let Some(statement) = statement.take() {
                    let (about, outcome) = (about.clone(), outcome.to_owned());
                    lines.push(Line {
                        about,
                        statement,
                        outcome,
                    });
                }
            } else if !line.is_empty() && !line.starts_with('[') {
                statement = Some(line.to_owned());
            }
        }
    }
    assert!(lines.len() > 500, "only {} statements", lines.len());
    Ok(lines)
}

/// Code in a cell of a table: bars are escaped by whoever makes the table.
fn code(text: &str) -> String {
    let fence = if text.contains('`') { "``" } else { "`" };
    let blank = if text.contains('`') { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

fn is_short(text: &str) -> bool {
    text.chars().count() <= EXAMPLE_CHARS_MAX
}

#[test]
fn what_is_rewritten_is_shown() -> Result<()> {
    let mut shown: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in lines()? {
        // Of prepared statements the outcome tells more than the text.
        let is_rewritten = !line.outcome.contains("  -- ")
            && ["INSERT", "REPLACE", "LOAD", "insert", "replace", "load"]
                .iter()
                .any(|word| line.outcome.starts_with(word));
        if is_rewritten
            && is_short(&line.statement)
            && is_short(&line.outcome)
            && !shown.contains(&line.about)
        {
            rows.push([code(&line.statement), code(&line.outcome)]);
            shown.push(line.about);
        }
    }
    assert!(rows.len() > 15, "only {} kinds", rows.len());
    let head = ["statement", "sent to the server, with keys from 100"];
    let text = table(head, rows);
    generated_part(PAGE, "rewritten", &text)
}

#[test]
fn what_is_refused_is_listed() -> Result<()> {
    let mut examples: BTreeMap<String, String> = BTreeMap::new();
    for line in lines()? {
        let Some((_, construct)) = line.outcome.split_once(UNSUPPORTED) else {
            continue;
        };
        let example = examples
            .entry(construct.to_owned())
            .or_insert_with(|| line.statement.clone());
        if line.statement.chars().count() < example.chars().count() {
            *example = line.statement;
        }
    }
    assert!(examples.len() > 30, "only {} constructs", examples.len());
    let rows = examples
        .iter()
        .map(|(construct, example)| [construct.clone(), code(example)]);
    generated_part(PAGE, "refused", &table(["construct", "example"], rows))
}

#[test]
fn deviations_are_listed() -> Result<()> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for directory in [
        "tests/corpus",
        "tests/corpus_of_views",
        "tests/corpus_of_names",
    ] {
        for file in files(directory)? {
            let mut scenario = String::new();
            for line in fs::read_to_string(file)?.lines() {
                if let Some(name) = line.strip_prefix("=== ") {
                    scenario = name.to_owned();
                } else if let Some((mark, what)) = line.split_once(' ')
                    && matches!(mark, "@deviates" | "@deviates_after")
                {
                    let scenarios = found.entry(what.to_owned()).or_default();
                    if !scenarios.contains(&scenario) {
                        scenarios.push(scenario.clone());
                    }
                }
            }
        }
    }
    assert!(found.len() > 5, "only {} deviations", found.len());
    let rows = found.into_iter().map(|(what, scenarios)| {
        let more = scenarios.len().saturating_sub(3);
        let mut seen: Vec<String> = scenarios.into_iter().take(3).collect();
        if more > 0 {
            seen.push(format!("and {more} more"));
        }
        [what, seen.join("; ")]
    });
    generated_part(
        PAGE,
        "deviations",
        &table(["what differs, and why", "seen in the scenarios"], rows),
    )
}
