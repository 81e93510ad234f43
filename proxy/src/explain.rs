//! What would become of statements: one, or all of a general query log.

pub mod general_log;
mod json;
pub mod known;
mod summary;
mod why;

use std::fmt::Write as _;
use std::sync::Arc;

use keywright_rewrite::{InsertHead, KeyForm, Modes, RowsFrom, kind, load_target};
use keywright_session::imagine::{Columns, Decision, Explained, Imagine, Imagined, State};
use keywright_session::{Mode, Rule, Rules, SessionFacts};

use crate::config::Config;
use crate::explain::known::{Examples, Known};
use crate::schema::TableFacts;

pub use summary::Summary;

/// Explains statements on one listener.
pub struct Explainer<'a> {
    config: &'a Config,
    known: &'a Known,
    rules: Arc<Rules>,
}

impl<'a> Explainer<'a> {
    /// With the configured rules, as if none of them only observed.
    pub fn new(config: &'a Config, known: &'a Known) -> Explainer<'a> {
        let rules = config.rules.iter().map(|configured| Rule {
            mode: Mode::Rewrite,
            ..configured.rule.clone()
        });
        // A table that is not there may be where the statement is meant for: it is not asked of the server.
        let facts = TableFacts {
            has_all: false,
            ..known.facts.clone()
        };
        let rules = facts.rules(rules);
        Explainer {
            config,
            known,
            rules: Arc::new(rules),
        }
    }

    fn connect(&self, database: Option<Vec<u8>>) -> Imagined {
        let state = State {
            database: database.clone(),
            sql_mode: self.known.sql_mode.clone().into_bytes(),
            charset: b"utf8mb4".to_vec(),
            increment: self.known.increment,
        };
        let facts = SessionFacts {
            server: self.known.server,
            capabilities: 0,
            collation: 0,
            user: Vec::new(),
            database,
            status: 0,
            limits: self.config.limits,
        };
        Imagined::new(Arc::clone(&self.rules), facts, state)
    }

    fn examples(&self) -> Examples<'a> {
        Examples {
            known: self.known,
            config: self.config,
        }
    }

    /// What would become of a statement, and the database that is chosen behind it.
    fn imagine(&self, text: &str, database: Option<&str>) -> (Explained, Option<Vec<u8>>) {
        let database = database.map(|name| name.as_bytes().to_vec());
        let mut imagined = self.connect(database);
        let report = imagined.query(text.as_bytes(), &mut self.examples());
        let database = imagined.database().map(<[u8]>::to_vec);
        (report, database)
    }

    /// What would become of one statement, for people.
    pub fn statement(&self, text: &str, database: Option<&str>) -> String {
        let (report, database) = self.imagine(text, database);
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = match report.rule {
            Some(rule) => writeln!(out, "rule       {}", self.name(rule)),
            None => writeln!(out, "rule       none"),
        };
        let (decision, more) = self.in_words(&report, text, database.as_deref());
        let _ = write!(out, "statement  {decision}");
        for (name, value) in more {
            let _ = write!(out, "\n{name:10} {value}");
        }
        out
    }

    /// The rule as the configuration has it, and the view that a statement goes through.
    fn name(&self, rule: usize) -> String {
        let configured = self.config.rules.get(self.rules.configured(rule));
        let (Some(configured), Some(of_view)) = (configured, self.rules.rules().get(rule)) else {
            return String::new();
        };
        let column = &of_view.column;
        let Rule { table, mode, .. } = &configured.rule;
        let through = match self.rules.view(rule) {
            Some(view) => format!(", through the view {}.{}", view.schema, view.name),
            None => String::new(),
        };
        let observes = match mode {
            Mode::Rewrite => "",
            Mode::Observe => ", only observing until mode = \"rewrite\"",
        };
        format!(
            "{}: {}.{}, column {column}, key {}{through}{observes}",
            self.rules.configured(rule) + 1,
            table.schema(),
            table.table(),
            configured.spec
        )
    }

    fn in_words(
        &self,
        report: &Explained,
        text: &str,
        database: Option<&[u8]>,
    ) -> (String, Vec<(&'static str, String)>) {
        match &report.decision {
            Decision::Rewritten { text } => (
                "rewritten; its keys here are examples".to_owned(),
                vec![("becomes", String::from_utf8_lossy(text).into_owned())],
            ),
            Decision::Refused { construct, message } => (
                format!("refused ({construct})"),
                vec![("error", message.clone())],
            ),
            Decision::Passed { construct } => (
                format!("passed without keys, as the rule's on_unsupported says ({construct})"),
                Vec::new(),
            ),
            Decision::Observed => ("passed: its rule only observes".to_owned(), Vec::new()),
            Decision::Untouched => {
                let why = self.why_untouched(report.rule, text.as_bytes(), database);
                (format!("passed as it is: {why}"), Vec::new())
            }
            Decision::ByValue => (
                "rewritten, or passed with its own key: the server is asked for the key's value first".to_owned(),
                vec![("because", self.by_value(report.rule).to_owned())],
            ),
            Decision::NullNotKnown { schema, table } => (
                "passed with its own keys, or refused".to_owned(),
                vec![(
                    "because",
                    format!(
                        "a key may be NULL, and whether the column of {}.{} is NOT NULL is not known: that needs a listener's admin url",
                        String::from_utf8_lossy(schema),
                        String::from_utf8_lossy(table)
                    ),
                )],
            ),
            Decision::ColumnsNotKnown { schema, table } => (
                "rewritten, or passed where it brings its own key".to_owned(),
                vec![(
                    "because",
                    format!(
                        "it has no column list, and the columns of {}.{} are not known: that needs a listener's admin url",
                        String::from_utf8_lossy(schema),
                        String::from_utf8_lossy(table)
                    ),
                )],
            ),
        }
    }

    /// What the value of a computed key decides.
    fn by_value(&self, rule: Option<usize>) -> &'static str {
        let rule = rule.and_then(|rule| self.rules.rules().get(rule));
        match rule.map_or(KeyForm::Integer, |rule| rule.form) {
            KeyForm::Integer => {
                "NULL and 0 ask for a key, another integer is one; it is refused where the value is no integer"
            }
            KeyForm::Text | KeyForm::Bytes => {
                "only NULL asks for a key, anything else is one; it is refused where the server warns of it"
            }
        }
    }

    /// Whether the server that was asked has the table that a statement is to insert into; `None`: that is not known, or it is to insert into
    /// none.
    pub fn has_table(&self, text: &[u8], database: Option<&[u8]>) -> Option<bool> {
        let modes = self.modes();
        let table = match InsertHead::read(text, &modes) {
            Ok(head) => head.table,
            Err(_) => load_target(text, &modes)
                .filter(|_| kind(text, &modes).facts().rows == RowsFrom::File)?,
        };
        let schema = table.schema.as_deref().or(database)?;
        match self.examples().columns(schema, &table.table) {
            Columns::Known(_) => Some(true),
            Columns::NoTable => Some(false),
            Columns::NotKnown => None,
        }
    }

    fn modes(&self) -> Modes {
        Modes {
            ansi_quotes: self.known.sql_mode.contains("ANSI_QUOTES"),
            no_backslash_escapes: self.known.sql_mode.contains("NO_BACKSLASH_ESCAPES"),
            no_auto_value_on_zero: None,
            strict: None,
            empty_is_null: self.known.sql_mode.contains("EMPTY_STRING_IS_NULL"),
            charset: keywright_rewrite::CharsetClass::Safe,
            server: self.known.server,
        }
    }
}
