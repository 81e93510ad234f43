//! Running one scenario on one side.

use anyhow::{Context, bail};

use super::keys::{KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES};
use super::scenario::{Action, Bound, Expect, How, Scenario, Step};
use super::side::{Side, TwinKeys};
use super::transcript::{show_fault, show_replies, show_row, show_statement};
use crate::wire::command;
use crate::{Flavour, Login, Param, Reply, Result, Wire};

/// The server's error for what cannot be prepared.
const NOT_PREPARABLE: u16 = 1295;

/// A table's quoted name, out of information_schema.
const NAME: &str = "CONCAT(table_schema, '.`', REPLACE(table_name, '`', '``'), '`')";

/// What stands between a statement's answer and what the session says of it.
pub(super) const AFTERWARDS: &str = "\nthen ";

/// One way of running a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// As text, nothing between the statements.
    Text,
    /// As text, and after each statement what the session says of it.
    TextThenIds,
    /// As text, and after each statement its warnings.
    TextThenWarnings,
    /// Prepared, where the server can.
    Prepared,
}

impl Pass {
    pub(super) const ALL: [Pass; 4] = [
        Pass::Text,
        Pass::TextThenIds,
        Pass::TextThenWarnings,
        Pass::Prepared,
    ];

    fn question(self) -> Option<&'static str> {
        match self {
            Pass::Text | Pass::Prepared => None,
            Pass::TextThenIds => Some("SELECT LAST_INSERT_ID(), ROW_COUNT(), @@identity"),
            Pass::TextThenWarnings => Some("SHOW WARNINGS"),
        }
    }
}

/// What was seen of each step, then of the tables.
#[derive(Debug)]
pub(super) struct Visible {
    pub(super) steps: Vec<String>,
    pub(super) tables: String,
}

/// Runs the scenario in a schema of its own, which [`clean_up`] drops.
pub(super) fn run(
    scenario: &Scenario,
    flavour: Flavour,
    side: &Side,
    pass: Pass,
    number: usize,
) -> Result<Visible> {
    let schema = schema_of(side, number);
    let mut direct = Wire::connect_tcp(side.direct_port, &Login::root(""))?;
    set_up(&mut direct, scenario, side, &schema)?;
    let wire = Wire::connect_tcp(side.port, &Login::root(&schema))?;
    let mut session = Session {
        wire,
        direct,
        schema: &schema,
        pass,
    };
    let mut steps = Vec::new();
    for step in &scenario.steps {
        let seen = session
            .step(step, flavour, side)
            .with_context(|| format!("line {}, {pass:?}: the connection", step.line))?;
        steps.push(seen.replace(&schema, "SCHEMA"));
    }
    // What it still has locked or open goes with it.
    let Session {
        wire, mut direct, ..
    } = session;
    drop(wire);
    let tables = dump(&mut direct, &schema)?;
    Ok(Visible { steps, tables })
}

/// Drops what [`run`] made. Not before every side is done: a server that drops routines reads those of others again, which
/// their sessions see as a warning.
pub(super) fn clean_up(side: &Side, number: usize) -> Result<()> {
    let mut direct = Wire::connect_tcp(side.direct_port, &Login::root(""))?;
    for schema in schemas(&schema_of(side, number)) {
        direct.run(format!("DROP DATABASE IF EXISTS {schema}"))?;
    }
    Ok(())
}

/// As long on every side: lengths are in what is compared.
fn schema_of(side: &Side, number: usize) -> String {
    format!("{}_{number:06}", side.schema_prefix)
}

/// The scenario's schema and the one to change to.
fn schemas(schema: &str) -> [String; 2] {
    [schema.to_owned(), format!("{schema}_2")]
}

fn with_schema(text: &[u8], schema: &str) -> Vec<u8> {
    let places = [("{db}", schema.to_owned()), ("{DB}", schema.to_uppercase())];
    let mut found = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let place = places
            .iter()
            .find_map(|(place, name)| Some((rest.strip_prefix(place.as_bytes())?, name)));
        if let Some((after, name)) = place {
            found.extend(name.as_bytes());
            rest = after;
        } else {
            found.push(*first);
            rest = after;
        }
    }
    found
}

/// Makes the schemas of [`run`] for what is to be there before a proxy starts.
pub(super) fn set_up_ahead(scenario: &Scenario, side: &Side, number: usize) -> Result<()> {
    let mut direct = Wire::connect_tcp(side.direct_port, &Login::root(""))?;
    set_up(&mut direct, scenario, side, &schema_of(side, number))
}

fn set_up(direct: &mut Wire, scenario: &Scenario, side: &Side, schema: &str) -> Result<()> {
    for schema in schemas(schema) {
        direct.run(format!("DROP DATABASE IF EXISTS {schema}"))?;
        direct.run(format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4"))?;
    }
    direct.run(format!("USE {schema}"))?;
    for sql in &scenario.setup {
        for reply in direct.query(with_schema(sql, schema))? {
            if let Reply::Failed(fault) = reply {
                let sql = sql.escape_ascii();
                return Err(fault).with_context(|| format!("setting up with {sql}"));
            }
        }
    }
    for ((ending, table), first) in KEY_SPACES
        .into_iter()
        .zip((KEY_FIRST..).step_by(KEY_SPACE_SIZE as usize))
    {
        let first = match side.keys {
            TwinKeys::Native => first,
            TwinKeys::NativeElsewhere => first + KEY_SPACE_SIZE / 2,
            // The server must not be able to issue.
            TwinKeys::Fenced => u64::MAX,
        };
        let found = direct.rows(format!(
            "SELECT {NAME} FROM information_schema.columns
             WHERE table_schema = '{schema}{ending}' AND table_name = '{table}' AND extra LIKE '%auto_increment%'"
        ))?;
        for table in found.concat() {
            direct.run(format!("ALTER TABLE {table} AUTO_INCREMENT = {first}"))?;
        }
    }
    Ok(())
}

struct Session<'a> {
    wire: Wire,
    direct: Wire,
    schema: &'a str,
    pass: Pass,
}

impl Session<'_> {
    fn step(&mut self, step: &Step, flavour: Flavour, side: &Side) -> Result<String> {
        let refused = matches!(step.expect, Expect::Refused(_));
        if step.only.is_some_and(|only| only != flavour) || (refused && !side.is_proxied()) {
            return Ok(String::new());
        }
        let mut seen = match &step.action {
            Action::Sql {
                text,
                how,
                local_file,
            } => {
                self.wire.set_local_file(local_file.clone());
                self.sql(&with_schema(text, self.schema), how)?
            }
            Action::Elsewhere(text) => {
                show_replies(&self.direct.query(with_schema(text, self.schema))?)
            }
            Action::InitDb(schema) => {
                let schema = with_schema(schema, self.schema);
                show_replies(&self.wire.command(command::INIT_DB, &schema)?)
            }
            Action::Ping => show_replies(&self.wire.command(command::PING, b"")?),
            Action::ResetConnection => {
                show_replies(&self.wire.command(command::RESET_CONNECTION, b"")?)
            }
            Action::ChangeUser => {
                self.wire.change_user(&Login::root(self.schema))?;
                String::new()
            }
        };
        if let Expect::Refused(construct) = &step.expect {
            if !seen.contains("error 1235 (42000)") || !seen.contains(construct.as_str()) {
                bail!("a refusal that names {construct:?} was expected, not: {seen}");
            }
            return Ok(String::new());
        }
        if let (Some(question), Action::Sql { .. }) = (self.pass.question(), &step.action) {
            seen.push_str(AFTERWARDS);
            seen.push_str(&show_replies(&self.wire.query(question)?));
        }
        Ok(seen)
    }

    fn sql(&mut self, text: &[u8], how: &How) -> Result<String> {
        match (how, self.pass) {
            (How::Params(lists), _) => self.prepared(text, lists),
            (How::Both, Pass::Prepared) => self.prepared(text, &[Vec::new()]),
            (How::Both, Pass::Text | Pass::TextThenIds | Pass::TextThenWarnings)
            | (How::Text, _) => Ok(show_replies(&self.wire.query(text)?)),
        }
    }

    fn prepared(&mut self, text: &[u8], lists: &[Vec<Bound>]) -> Result<String> {
        let statement = match self.wire.prepare(text)? {
            Ok(statement) => statement,
            Err(fault) if fault.errno == NOT_PREPARABLE => {
                return Ok(show_replies(&self.wire.query(text)?));
            }
            Err(fault) => return Ok(show_fault(&fault)),
        };
        let mut seen = show_statement(&statement);
        for bounds in lists {
            let mut params = Vec::with_capacity(bounds.len());
            for (bound, number) in bounds.iter().zip(0..) {
                params.push(match bound {
                    Bound::Now(param) => param.clone(),
                    Bound::LongData(value) => {
                        self.wire.send_long_data(&statement, number, value)?;
                        Param::Long
                    }
                });
            }
            seen.push('\n');
            seen.push_str(&show_replies(&self.wire.execute(&statement, &params)?));
        }
        self.wire.close(&statement)?;
        Ok(seen)
    }
}

/// All rows of all tables, as somebody else sees them.
fn dump(direct: &mut Wire, schema: &str) -> Result<String> {
    let tables = direct.rows(format!(
        "SELECT {NAME} FROM information_schema.tables
         WHERE table_schema LIKE '{schema}%' AND table_type = 'BASE TABLE' ORDER BY 1"
    ))?;
    let mut seen = String::new();
    for table in tables.concat() {
        seen.push_str(&table.replace(schema, "SCHEMA"));
        for reply in direct.query(format!("SELECT * FROM {table} ORDER BY 1"))? {
            match reply {
                Reply::Rows(rows) => {
                    for row in &rows.rows {
                        seen.push('\n');
                        seen.push_str(&show_row(row));
                    }
                }
                Reply::Done(_) => bail!("no rows of {table}"),
                Reply::Failed(fault) => return Err(fault.into()),
            }
        }
        seen.push('\n');
    }
    Ok(seen)
}
