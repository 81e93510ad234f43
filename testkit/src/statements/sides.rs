//! The two sides: a server's own tables, and a proxy before their twins.

use std::collections::BTreeSet;
use std::{fmt, fs};

use anyhow::Context;

use super::changes::procedure;
use super::copies::sources;
use super::grammar::{Ask, Case};
use super::tables::{TABLES, Table};
use crate::corpus::transcript::{Ranks, show_fault, show_replies, show_row, show_statement};
use crate::corpus::{KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES};
use crate::{
    Flavour, Login, ProxyConfig, ProxyProcess, Reply, Result, SqlFault, Upstream, Wire, make_store,
};

/// As long on both sides: lengths are in what is compared.
const SCHEMAS: [&str; 2] = ["twin_n", "twin_p"];

/// The proxy refuses what it cannot rewrite exactly.
const NOT_SUPPORTED: u16 = 1235;

/// Lines of a log that are shown of a connection that broke.
const LAST_LINES: usize = 40;

/// What a statement that was refused names stands between these.
const NAMED: [&str; 2] = ["cannot fill in a key exactly in ", ", on a table"];

const ROW_COUNT: &str = "SELECT ROW_COUNT()";
const LAST_ID: &str = "SELECT LAST_INSERT_ID(), @@identity";

/// What the session says of a statement afterwards; one of them, in turn.
const QUESTIONS: [&str; 3] = [LAST_ID, "SHOW WARNINGS", ROW_COUNT];

/// A server, and a proxy before it.
pub(super) struct Rig {
    server: Upstream,
    proxy: ProxyProcess,
}

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

/// What one side showed of one statement, keys by their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatementResult {
    /// What came of asking for keys.
    pub(super) asked: String,
    pub(super) reply: String,
    pub(super) afterwards: String,
    pub(super) table: String,
    /// The error it ended with.
    pub(super) errno: Option<u16>,
}

impl Rig {
    pub(super) fn start(flavour: Flavour) -> Result<Rig> {
        let server = Upstream::start(flavour)?;
        for schema in SCHEMAS {
            server.run(
                "mysql",
                &format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4"),
            )?;
            server.run(
                schema,
                "CREATE TABLE u (a INT PRIMARY KEY, b VARCHAR(60), n INT, minus INT, `offset` INT);
                 INSERT INTO u VALUES (1, 'one', NULL, 0, 4), (2, 'two', 760, 1, 3), (3, 'one', 0, 2, 2), (4, '5', NULL, 3, 1);
                 CREATE TABLE u3 (n INT, a INT, b VARCHAR(60)); INSERT INTO u3 VALUES (NULL, 1, 'x'), (770, 2, 'y'), (0, 3, 'z')",
            )?;
            server.run(schema, &sources(&TABLES))?;
            for table in &TABLES {
                server.run(
                    schema,
                    &format!("CREATE TABLE {} ({}", table.name, table.definition),
                )?;
                server.run(schema, &procedure(table))?;
            }
        }
        let spaces = || {
            let firsts = (KEY_FIRST..).step_by(KEY_SPACE_SIZE as usize);
            KEY_SPACES
                .iter()
                .zip(firsts)
                .filter(|((schema, table), _)| {
                    schema.is_empty() && TABLES.iter().any(|known| known.name == *table)
                })
        };
        let tags: Vec<(&str, u64)> = spaces()
            .map(|((_, table), first)| (*table, first))
            .collect();
        let store = make_store(&server, "twin_store", &tags)?;
        let mut config = ProxyConfig::before(&server, &store);
        for ((_, table), _) in spaces() {
            config = config.rule(
                &format!("{}.{table}", SCHEMAS[1]),
                &format!("segment:{table}"),
            );
        }
        for rule in &mut config.rules {
            // All key spaces fit INT. Counters are set by hand, between cases.
            rule.push_str("bits_max = 31\nfence = false\n");
        }
        // It says why a connection ends.
        let log = ("KEYWRIGHT_LOG", "info,keywright_proxy=debug");
        config.environment = vec![(log.0.to_owned(), log.1.to_owned())];
        let proxy = ProxyProcess::start(config)?;
        let rig = Rig { server, proxy };
        for (side, schema) in SCHEMAS.into_iter().enumerate() {
            let mut direct = rig.server.wire(schema)?;
            for table in &TABLES {
                reset(&mut direct, table.name, side)?;
            }
        }
        Ok(rig)
    }

    /// What server and proxy logged last: a connection that broke may be the server's own end.
    pub(super) fn last_words(&self) -> String {
        let server = fs::read_to_string(self.server.log_file()).unwrap_or_default();
        let last = |name: &str, log: &str| {
            let lines: Vec<&str> = log.lines().collect();
            let from = lines.len().saturating_sub(LAST_LINES);
            format!("{name} logged last:\n{}", lines[from..].join("\n"))
        };
        [
            last("the server", &server),
            last("the proxy", &self.proxy.log()),
        ]
        .join("\n")
    }

    /// A session on either side that has run these.
    pub(super) fn sessions(&self, prelude: &[String]) -> Result<Sessions> {
        let open = |port: u16, schema: &'static str, side: usize| {
            let mut wire = Wire::connect_tcp(port, &Login::root(schema))?;
            for sql in prelude {
                wire.run(sql).with_context(|| format!("{sql:?}"))?;
            }
            Ok::<_, anyhow::Error>(Session {
                wire,
                direct: self.server.wire(schema)?,
                schema,
                side,
                given: BTreeSet::new(),
            })
        };
        Ok(Sessions {
            native: open(self.server.port(), SCHEMAS[0], 0)?,
            proxied: open(self.proxy.port(), SCHEMAS[1], 1)?,
            turn: 0,
            before: None,
        })
    }
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

struct Session {
    wire: Wire,
    direct: Wire,
    schema: &'static str,
    side: usize,
    /// Keys that it was given before their rows.
    given: BTreeSet<String>,
}

impl Session {
    fn run(&mut self, case: &Case, question: &str) -> Result<StatementResult> {
        let text = case.text.replace("{db}", self.schema);
        let mut asked = match &case.ask {
            Some(ask) => self.ask(ask)?,
            None => String::new(),
        };
        let mut is_changed = false;
        if !case.is_late {
            is_changed = self.change(case)?;
        }
        let (mut reply, errno) = match &case.params {
            None => shown(&self.wire.query(&text)?),
            Some(params) => match self.wire.prepare(&text)? {
                Err(fault) => (show_fault(&fault), Some(fault.errno)),
                Ok(statement) => {
                    if case.is_late {
                        is_changed = self.change(case)?;
                    }
                    let replies = self.wire.execute(&statement, params)?;
                    self.wire.close(&statement)?;
                    let (reply, errno) = shown(&replies);
                    (format!("{}\n{reply}", show_statement(&statement)), errno)
                }
            },
        };
        let mut afterwards = show_replies(&self.wire.query(question)?);
        // What such a statement left behind would be taken for the next one's.
        if (errno.is_some() || case.may_leave_out()) && question != LAST_ID {
            afterwards.push('\n');
            afterwards.push_str(&show_replies(&self.wire.query(LAST_ID)?));
        }
        let name = case.table.name;
        let mut table = self.dump(case, is_changed)?;
        for key in self.given.iter().filter(|_| self.side == 1) {
            if table.contains(&format!("\"{key}\"")) {
                asked.push_str("\na row has a key that was given before");
            }
        }
        if is_changed {
            self.change_back(case)?;
        }
        // A statement that failed may have moved the counter of the server's own keys, and another definition loses that of one that cannot
        // issue.
        if !table.is_empty() || self.side == 0 || is_changed {
            reset(&mut self.direct, name, self.side)?;
        }
        let ranks = Ranks::of(
            [&reply, &afterwards, &table]
                .into_iter()
                .map(String::as_str),
        );
        for text in [&mut reply, &mut afterwards, &mut table] {
            *text = ranks.applied_to(text).replace(self.schema, "SCHEMA");
        }
        Ok(StatementResult {
            asked,
            reply,
            afterwards,
            table,
            errno,
        })
    }

    /// Asks for keys.
    fn ask(&mut self, ask: &Ask) -> Result<String> {
        let text = match self.side {
            0 => &ask.native,
            _ => &ask.text,
        };
        let text = text.replace("{db}", self.schema);
        let replies = match ask.is_prepared {
            false => self.wire.query(&text)?,
            true => match self.wire.prepare(&text)? {
                Err(fault) => return Ok(show_fault(&fault)),
                Ok(statement) => {
                    let mut replies = self.wire.execute(&statement, &[])?;
                    replies.extend(self.wire.execute(&statement, &[])?);
                    self.wire.close(&statement)?;
                    replies
                }
            },
        };
        let mut seen = String::new();
        let found = replies.iter().filter_map(|reply| match reply {
            Reply::Rows(rows) => Some(&rows.rows),
            Reply::Done(_) | Reply::Failed(_) => None,
        });
        for key in found.flatten() {
            let key = key.first().map(ToString::to_string);
            let is_new = key.is_some_and(|key| self.given.insert(key));
            if self.side == 1 && !is_new {
                seen.push_str("a key was given twice\n");
            }
        }
        for reply in &replies {
            seen += &match reply {
                Reply::Rows(rows) => {
                    let names = rows
                        .columns
                        .iter()
                        .map(|of| of.name.escape_ascii().to_string());
                    let names: Vec<String> = names.collect();
                    format!("{} rows of {}\n", rows.rows.len(), names.join(", "))
                }
                Reply::Done(_) | Reply::Failed(_) => show_replies(std::slice::from_ref(reply)),
            };
        }
        seen += &show_replies(&self.wire.query(ROW_COUNT)?);
        Ok(seen)
    }

    /// As an application does it, on its own connection. Returns whether there is something to be undone.
    fn change(&mut self, case: &Case) -> Result<bool> {
        let (first, _) = space(case.table.name)?;
        let made = case.change.made(case.table, first);
        for sql in &made {
            self.wire.run(sql)?;
        }
        Ok(!made.is_empty())
    }

    fn change_back(&mut self, case: &Case) -> Result<()> {
        if let Some(sql) = case.change.undone(case.table) {
            self.wire.run(sql)?;
        }
        Ok(())
    }

    /// The table's rows, behind those of the one that hides it.
    fn dump(&mut self, case: &Case, is_changed: bool) -> Result<String> {
        let name = case.table.name;
        let key = if is_changed { case.change.key() } else { "id" };
        let select = format!("SELECT {key}, a, b FROM {name} ORDER BY {key}, a");
        let mut seen = String::new();
        if is_changed && case.change.hides() {
            seen = rows(self.wire.query(&select)?, name)?;
        }
        seen += &rows(self.direct.query(&select)?, name)?;
        Ok(seen)
    }
}

fn rows(replies: Vec<Reply>, table: &str) -> Result<String> {
    let mut seen = String::new();
    for reply in replies {
        match reply {
            Reply::Rows(rows) => {
                for row in &rows.rows {
                    seen.push_str(&show_row(row));
                    seen.push('\n');
                }
            }
            Reply::Done(_) => anyhow::bail!("no rows of {table}"),
            Reply::Failed(fault) => return Err(fault.into()),
        }
    }
    Ok(seen)
}

fn shown(replies: &[Reply]) -> (String, Option<u16>) {
    let errno = replies.iter().find_map(|reply| match reply {
        Reply::Failed(SqlFault { errno, .. }) => Some(*errno),
        Reply::Done(_) | Reply::Rows(_) => None,
    });
    (show_replies(replies), errno)
}

/// The first key of a table's key space, and the counter of a table that cannot issue.
fn space(table: &str) -> Result<(u64, u64)> {
    let place = KEY_SPACES
        .iter()
        .position(|(schema, name)| schema.is_empty() && *name == table);
    let place = place.context("a table without a key space")?;
    Ok((KEY_FIRST + KEY_SPACE_SIZE * place as u64, u64::MAX))
}

/// Empties a table and puts its counter where it began; the twin's cannot issue.
fn reset(direct: &mut Wire, table: &str, side: usize) -> Result<()> {
    let (first, fence) = space(table)?;
    let counter = if side == 0 { first } else { fence };
    direct.run(format!("DELETE FROM {table} WHERE id = id"))?;
    direct.run(format!("ALTER TABLE {table} AUTO_INCREMENT = {counter}"))?;
    Ok(())
}
