//! What would become of statements, as JSON.

use keywright_session::Mode;
use keywright_session::imagine::{Decision, Explained};
use serde::Serialize;

use super::Explainer;
use super::summary::{Counted, Met, Summary};

const REWRITTEN: &str = "rewritten";
const REFUSED: &str = "refused";
const PASSED: &str = "passed";
const UNTOUCHED: &str = "untouched";
const COLUMNS_NOT_KNOWN: &str = "columns_not_known";
const NULL_NOT_KNOWN: &str = "null_not_known";
const BY_VALUE: &str = "by_value";

/// One statement.
#[derive(Serialize)]
struct Statement {
    rule: Option<Rule>,
    /// `rewritten`, `refused`, `passed`, `observed`, `untouched`, `columns_not_known`, `null_not_known` or `by_value`.
    outcome: &'static str,
    construct: Option<&'static str>,
    /// What it becomes; its keys are examples.
    statement: Option<String>,
    error: Option<String>,
    because: Option<String>,
    notes: Vec<String>,
}

/// All of a log.
#[derive(Serialize)]
struct Log {
    statements: u64,
    connections: u64,
    rules: Vec<OfRule>,
    /// INSERTs that a rule could be for, if the database of their connection were known.
    inserts_without_database: Option<First>,
    /// The line from which on sql_mode is not known.
    sql_mode_lost_line: Option<u64>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct OfRule {
    rule: Option<Rule>,
    outcomes: Vec<Outcome>,
}

#[derive(Serialize)]
struct Outcome {
    outcome: &'static str,
    construct: Option<&'static str>,
    error: Option<String>,
    #[serde(flatten)]
    met: First,
}

#[derive(Serialize)]
struct First {
    count: u64,
    first_line: u64,
}

#[derive(Serialize)]
struct Rule {
    /// Its place in the configuration, from 1.
    number: usize,
    table: String,
    column: String,
    key: String,
    mode: &'static str,
    /// The view that the statement goes through.
    view: Option<String>,
}

impl Statement {
    /// Of a statement that is passed as it is, `because` says why.
    fn new(report: Explained, rule: Option<Rule>, because: Option<String>) -> Self {
        let mut of = Self {
            rule,
            outcome: "",
            construct: None,
            statement: None,
            error: None,
            because,
            notes: Vec::new(),
        };
        of.outcome = match report.decision {
            Decision::Rewritten { text } => {
                of.statement = Some(String::from_utf8_lossy(&text).into_owned());
                REWRITTEN
            }
            Decision::Refused { construct, message } => {
                (of.construct, of.error) = (Some(construct), Some(message));
                REFUSED
            }
            Decision::Passed { construct } => {
                of.construct = Some(construct);
                PASSED
            }
            Decision::Observed => "observed",
            Decision::Untouched => UNTOUCHED,
            Decision::ColumnsNotKnown { .. } => COLUMNS_NOT_KNOWN,
            Decision::NullNotKnown { .. } => NULL_NOT_KNOWN,
            Decision::ByValue => BY_VALUE,
        };
        of
    }
}

impl Explainer<'_> {
    /// What would become of one statement. `notes` say what is not known of the server.
    ///
    /// # Errors
    /// The encoder refuses: a fault of this program.
    pub fn statement_json(
        &self,
        text: &str,
        database: Option<&str>,
        notes: Vec<String>,
    ) -> serde_json::Result<String> {
        let (report, database) = self.imagine(text, database);
        let rule = report.rule.and_then(|rule| self.rule_json(rule));
        let because = (report.decision == Decision::Untouched).then(|| {
            let why = self.why_untouched(report.rule, text.as_bytes(), database.as_deref());
            why.to_owned()
        });
        let statement = Statement::new(report, rule, because);
        serde_json::to_string(&Statement { notes, ..statement })
    }

    /// A summary of a log.
    ///
    /// # Errors
    /// The encoder refuses: a fault of this program.
    pub fn report_json(&self, summary: &Summary, notes: Vec<String>) -> serde_json::Result<String> {
        let outcome = |((_, decision), met): (&(Option<usize>, Counted), &Met)| {
            let (outcome, construct) = match decision {
                Counted::Rewritten => (REWRITTEN, None),
                Counted::Refused(construct) => (REFUSED, Some(*construct)),
                Counted::Passed(construct) => (PASSED, Some(*construct)),
                Counted::ColumnsNotKnown => (COLUMNS_NOT_KNOWN, None),
                Counted::NullNotKnown => (NULL_NOT_KNOWN, None),
                Counted::ByValue => (BY_VALUE, None),
                Counted::Untouched => (UNTOUCHED, None),
            };
            Outcome {
                outcome,
                construct,
                error: met.message.clone(),
                met: First {
                    count: met.count,
                    first_line: met.first,
                },
            }
        };
        let all = (0..self.config.rules.len()).map(Some).chain([None]);
        let rules = all.map(|rule| {
            let of_rule = summary.by_rule.iter().filter(|((of, _), _)| *of == rule);
            OfRule {
                rule: rule.and_then(|rule| self.configured_json(rule)),
                outcomes: of_rule.map(outcome).collect(),
            }
        });
        let without_database = summary
            .no_database
            .map(|(first_line, count)| First { count, first_line });
        serde_json::to_string(&Log {
            statements: summary.statements,
            connections: summary.connections,
            rules: rules.collect(),
            inserts_without_database: without_database,
            sql_mode_lost_line: summary.lost_sql_mode,
            notes,
        })
    }

    /// A rule that a statement goes by, and the view that it goes through.
    fn rule_json(&self, rule: usize) -> Option<Rule> {
        let configured = self.configured_json(self.rules.configured(rule))?;
        let column = self.rules.rules().get(rule)?.column.clone();
        let view = self.rules.view(rule);
        Some(Rule {
            column,
            view: view.map(|view| format!("{}.{}", view.schema, view.name)),
            ..configured
        })
    }

    /// A rule as the configuration has it.
    fn configured_json(&self, rule: usize) -> Option<Rule> {
        let configured = self.config.rules.get(rule)?;
        let table = &configured.rule.table;
        Some(Rule {
            number: rule + 1,
            table: format!("{}.{}", table.schema(), table.table()),
            column: configured.rule.column.clone(),
            key: configured.spec.to_string(),
            mode: match configured.rule.mode {
                Mode::Rewrite => "rewrite",
                Mode::Observe => "observe",
            },
            view: None,
        })
    }
}
