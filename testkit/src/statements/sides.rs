//! The two sides of a statement: a session of the server's own and one through the proxy, and whether they can be told apart.

use std::fmt;

use anyhow::Context;

use super::grammar::Case;
use super::side::{LAST_ID, ROW_COUNT, Session, StatementResult};
use super::tables::Table;
use crate::Result;

/// The proxy refuses what it cannot rewrite exactly.
const NOT_SUPPORTED: u16 = 1235;

/// What a statement that was refused names stands between these.
const NAMED: [&str; 2] = ["cannot fill in a key exactly in ", ", on a table"];

/// What the session says of a statement afterwards; one of them, in turn.
const QUESTIONS: [&str; 3] = [LAST_ID, "SHOW WARNINGS", ROW_COUNT];

/// How both sides took a statement.
pub(super) struct Outcome {
    pub(super) accepted: bool,
    pub(super) verdict: Comparison,
}

pub(super) enum Comparison {
    Same,
    /// The proxy refused it, and named that.
    Refused(String),
    Differs(Difference),
}

/// What was seen on either side.
pub(super) struct Difference {
    pub(super) native: StatementResult,
    pub(super) proxied: StatementResult,
    /// Whether the statement before was for a table of another engine.
    pub(super) is_behind_other_engine: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides = [
            ("native", &self.native, &self.proxied),
            ("proxied", &self.proxied, &self.native),
        ];
        for (name, side, other) in sides {
            writeln!(formatter, "  {name}")?;
            let parts = [
                ("asked ", &side.asked),
                ("", &side.reply),
                ("then ", &side.afterwards),
                ("table ", &side.table),
            ];
            for (part, text) in parts {
                let is_dull = |line: &&str| is_description(line) && other.reply.contains(*line);
                for line in text.lines().filter(|line| !is_dull(line)) {
                    writeln!(formatter, "    {part}{line}")?;
                }
            }
        }
        Ok(())
    }
}

/// Columns, and what ends rows: mostly the same on both sides but for its keys, and long.
fn is_description(line: &str) -> bool {
    line.starts_with("columns ")
        || line.starts_with("prepared, ")
        || line.starts_with("end affected")
}

/// A session on either side.
pub(super) struct Sessions {
    native: Session,
    proxied: Session,
    turn: usize,
    /// The table of the statement before.
    before: Option<&'static Table>,
}

impl Sessions {
    pub(super) fn new(native: Session, proxied: Session) -> Self {
        Self {
            native,
            proxied,
            turn: 0,
            before: None,
        }
    }

    /// Runs a statement on both, and compares what they show.
    pub(super) fn run(&mut self, case: &Case) -> Result<Outcome> {
        self.turn += 1;
        let question = QUESTIONS[self.turn % QUESTIONS.len()];
        let native = self.native.run(case, question);
        let native = native.with_context(|| format!("natively\n{case}"))?;
        let proxied = self.proxied.run(case, question);
        let proxied = proxied.with_context(|| format!("through the proxy\n{case}"))?;
        let before = self.before.replace(case.table);
        let is_behind_other_engine =
            before.is_some_and(|before| before.is_myisam() != case.table.is_myisam());
        let accepted = native.errno.is_none();
        let untouched = proxied.table.is_empty();
        let verdict = if proxied.errno == Some(NOT_SUPPORTED)
            && native.errno != Some(NOT_SUPPORTED)
            && untouched
            && native.asked == proxied.asked
        {
            Comparison::Refused(named(&proxied.reply))
        } else if native == proxied {
            Comparison::Same
        } else {
            Comparison::Differs(Difference {
                native,
                proxied,
                is_behind_other_engine,
            })
        };
        Ok(Outcome { accepted, verdict })
    }
}

/// What a refusal names.
fn named(reply: &str) -> String {
    let [before, after] = NAMED;
    let rest = reply.split_once(before).map_or(reply, |(_, rest)| rest);
    rest.split_once(after)
        .map_or(rest, |(name, _)| name)
        .chars()
        .take(70)
        .collect()
}
