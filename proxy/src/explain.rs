//! What would become of statements: one, or all of a general query log.

pub mod general_log;
mod json;
pub mod known;
mod why;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::BufRead;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use keywright_rewrite::{InsertHead, Kind, Modes, RowsFrom, kind, load_target, quote_string};
use keywright_session::imagine::{Columns, Decision, Explained, Imagine, Imagined, State};
use keywright_session::{Mode, Rule, Rules, SessionFacts};

use crate::config::Config;
use crate::explain::general_log::{Entry, GeneralLog};
use crate::explain::known::{Examples, Known};
use crate::schema::TableFacts;

/// Connections of a log that are open at once at most: what is known of each is kept.
const CONNECTIONS_MAX: usize = 100_000;

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
                vec![(
                    "because",
                    "NULL and 0 ask for a key, another integer is one; it is refused where the value is no integer".to_owned(),
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
    by_rule: BTreeMap<(Option<usize>, Counted), Met>,
    /// INSERTs that a rule could be for if the database were known: the first's line, how many.
    no_database: Option<(u64, u64)>,
    lost_sql_mode: Option<u64>,
}

/// How often something became of statements.
#[derive(Debug)]
struct Met {
    count: u64,
    /// The line of the first.
    first: u64,
    /// What its client would be report.
    message: Option<String>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Rewritten,
    Refused(&'static str),
    Passed(&'static str),
    ColumnsNotKnown,
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
            Self::ByValue => "with a key whose value the server is asked for first".to_owned(),
            Self::Untouched => "passed as they are".to_owned(),
        }
    }
}
