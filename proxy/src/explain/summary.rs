//! What would become of the statements of a general query log, counted by rule.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::BufRead;

use anyhow::{Context, Result, bail};
use keywright_rewrite::{InsertHead, Kind, kind, quote_string};
use keywright_session::imagine::{Decision, Imagined};

use super::Explainer;
use crate::explain::general_log::{Entry, GeneralLog};

/// Connections of a log that are open at once at most: what is known of each is kept.
const CONNECTIONS_MAX: usize = 100_000;

impl Explainer<'_> {
    /// Counts what would become of all statements of a log. `database` is that of connections which were there before it began.
    ///
    /// # Errors
    /// It cannot be read, or has too many connections open at once.
    pub fn log(&self, log: impl BufRead, database: Option<&str>) -> Result<Summary> {
        let before = database.map(|name| name.as_bytes().to_vec());
        // A statement just above the limit is cut, and refused as too long.
        let limit = self.config.limits.rewrite_bytes_max.saturating_add(1);
        let mut log = GeneralLog::new(log, limit);
        let mut connections: HashMap<u64, Connection> = HashMap::new();
        let mut summary = Summary::default();
        while let Some(line) = log.next_line().context("reading the log")? {
            let connection = connections.entry(line.connection);
            let connection =
                connection.or_insert_with(|| Connection::new(self.connect(before.clone())));
            match line.entry {
                Entry::Version(_) | Entry::Other => {}
                Entry::Connect(database) => {
                    summary.connections += 1;
                    *connection = Connection::new(self.connect(database));
                }
                Entry::Database(name) => connection
                    .imagined
                    .use_database(&name, &mut self.examples()),
                Entry::Reset => {
                    let database = connection.imagined.database().map(<[u8]>::to_vec);
                    *connection = Connection::new(self.connect(database));
                }
                Entry::Quit => drop(connections.remove(&line.connection)),
                Entry::Query(text) => {
                    let kind = kind(&text, &self.modes());
                    connection.carries_out = matches!(kind, Kind::Execute | Kind::ExecuteImmediate);
                    connection.prepares = text
                        .strip_suffix(b"...")
                        .filter(|_| kind == Kind::Prepare)
                        .map(<[u8]>::to_vec);
                    if connection.prepares.is_none() {
                        self.count(connection, &text, line.number, &mut summary);
                    }
                }
                Entry::Prepare(text) => {
                    if let Some(mut prepare) = connection.prepares.take() {
                        let has_escapes = !self.modes().no_backslash_escapes;
                        quote_string(&text, has_escapes, &mut prepare);
                        self.count(connection, &prepare, line.number, &mut summary);
                    }
                }
                // What EXECUTE carries out follows it in the log; it was counted as the EXECUTE.
                Entry::Execute(_) if connection.carries_out => connection.carries_out = false,
                Entry::Execute(text) => self.count(connection, &text, line.number, &mut summary),
            }
            if connections.len() > CONNECTIONS_MAX {
                bail!("the log has more than {CONNECTIONS_MAX} connections open at once");
            }
        }
        Ok(summary)
    }

    fn count(&self, connection: &mut Connection, text: &[u8], number: u64, summary: &mut Summary) {
        let imagined = &mut connection.imagined;
        let report = imagined.query(text, &mut self.examples());
        summary.statements += 1;
        if imagined.lost_sql_mode() {
            summary.lost_sql_mode.get_or_insert(number);
        }
        let no_database = imagined.database().is_none() && report.rule.is_none();
        if no_database && self.may_be_ruled(text) {
            summary.no_database.get_or_insert((number, 0)).1 += 1;
        }
        let (decision, message) = match report.decision {
            Decision::Rewritten { .. } => (Counted::Rewritten, None),
            Decision::Refused { construct, message } => {
                (Counted::Refused(construct), Some(message))
            }
            Decision::Passed { construct } => (Counted::Passed(construct), None),
            Decision::Untouched | Decision::Observed => (Counted::Untouched, None),
            Decision::ColumnsNotKnown { .. } => (Counted::ColumnsNotKnown, None),
            Decision::NullNotKnown { .. } => (Counted::NullNotKnown, None),
            Decision::ByValue => (Counted::ByValue, None),
        };
        let rule = report.rule.map(|index| self.rules.configured(index));
        let counted = summary.by_rule.entry((rule, decision));
        let first = Met {
            count: 0,
            first: number,
            message,
        };
        counted.or_insert(first).count += 1;
    }

    /// Whether a statement without database could be for a table with a rule.
    fn may_be_ruled(&self, text: &[u8]) -> bool {
        InsertHead::read(text, &self.modes()).is_ok_and(|head| {
            head.table.schema.is_none() && self.rules.may_match(None, &head.table.table)
        })
    }

    /// A summary for people.
    pub fn report(&self, summary: &Summary) -> String {
        let mut out = String::new();
        let Summary {
            statements,
            connections,
            ..
        } = summary;
        let _ = writeln!(
            out,
            "{statements} statements; {connections} connections begin in the log"
        );
        let mut rules: Vec<Option<usize>> = (0..self.config.rules.len()).map(Some).collect();
        rules.push(None);
        for rule in rules {
            let _ = match rule {
                Some(rule) => writeln!(out, "rule {}", self.name(rule)),
                None => writeln!(out, "no rule"),
            };
            let of_rule = summary.by_rule.iter().filter(|((of, _), _)| *of == rule);
            for ((_, decision), met) in of_rule {
                let (count, first) = (met.count, met.first);
                let _ = write!(
                    out,
                    "  {count:>9}  {}; the first on line {first}",
                    decision.name()
                );
                if let Some(message) = &met.message {
                    let _ = write!(out, ": {message}");
                }
                out.push('\n');
            }
        }
        if let Some((line, count)) = summary.no_database {
            let _ = writeln!(
                out,
                "{count} INSERTs, the first on line {line}, are of connections whose database the log does not show: name it with --database"
            );
        }
        if let Some(line) = summary.lost_sql_mode {
            let _ = writeln!(
                out,
                "sql_mode was set to something that the log does not show, first on line {line}: what followed was read in the mode before"
            );
        }
        out
    }
}

struct Connection {
    imagined: Imagined,
    /// The last statement was EXECUTE, or EXECUTE IMMEDIATE.
    carries_out: bool,
    /// It was `PREPARE name FROM`, whose text MySQL writes in an entry of its own.
    prepares: Option<Vec<u8>>,
}

impl Connection {
    fn new(imagined: Imagined) -> Self {
        Self {
            imagined,
            carries_out: false,
            prepares: None,
        }
    }
}

/// What would become of the statements of a log.
#[derive(Debug, Default)]
pub struct Summary {
    /// How many there were.
    pub statements: u64,
    /// How many connections began in it.
    pub connections: u64,
    pub(super) by_rule: BTreeMap<(Option<usize>, Counted), Met>,
    /// INSERTs that a rule could be for if the database were known: the first's line, how many.
    pub(super) no_database: Option<(u64, u64)>,
    pub(super) lost_sql_mode: Option<u64>,
}

/// How often something became of statements.
#[derive(Debug)]
pub(super) struct Met {
    pub(super) count: u64,
    /// The line of the first.
    pub(super) first: u64,
    /// What its client would be told.
    pub(super) message: Option<String>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    Rewritten,
    Refused(&'static str),
    Passed(&'static str),
    ColumnsNotKnown,
    NullNotKnown,
    ByValue,
    Untouched,
}

impl Counted {
    fn name(&self) -> String {
        match self {
            Self::Rewritten => "rewritten".to_owned(),
            Self::Refused(construct) => format!("refused ({construct})"),
            Self::Passed(construct) => format!("passed without keys ({construct})"),
            Self::ColumnsNotKnown => {
                "without column list, which needs a listener's admin url".to_owned()
            }
            Self::NullNotKnown => {
                "with a key that may be NULL, which needs a listener's admin url".to_owned()
            }
            Self::ByValue => "with a key whose value the server is asked for first".to_owned(),
            Self::Untouched => "passed as they are".to_owned(),
        }
    }
}
