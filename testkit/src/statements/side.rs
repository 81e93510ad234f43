//! One side: a session that runs a statement and shows what came of it, keys by their order.

use std::collections::BTreeSet;

use anyhow::Context;

use super::grammar::{Ask, Case};
use crate::corpus::transcript::{Ranks, show_fault, show_replies, show_row, show_statement};
use crate::corpus::{KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES};
use crate::{Reply, Result, SqlFault, Wire};

pub(super) const ROW_COUNT: &str = "SELECT ROW_COUNT()";
pub(super) const LAST_ID: &str = "SELECT LAST_INSERT_ID(), @@identity";

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

/// A session on one side.
pub(super) struct Session {
    wire: Wire,
    direct: Wire,
    schema: &'static str,
    side: usize,
    /// Keys that it was given before their rows.
    given: BTreeSet<String>,
}

impl Session {
    /// `side` 0: natively; `direct`: a connection to the server itself.
    pub(super) fn new(wire: Wire, direct: Wire, schema: &'static str, side: usize) -> Self {
        Self {
            wire,
            direct,
            schema,
            side,
            given: BTreeSet::new(),
        }
    }

    /// Runs a statement with what goes before and behind it.
    pub(super) fn run(&mut self, case: &Case, question: &str) -> Result<StatementResult> {
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
pub(super) fn reset(direct: &mut Wire, table: &str, side: usize) -> Result<()> {
    let (first, fence) = space(table)?;
    let counter = if side == 0 { first } else { fence };
    direct.run(format!("DELETE FROM {table} WHERE id = id"))?;
    direct.run(format!("ALTER TABLE {table} AUTO_INCREMENT = {counter}"))?;
    Ok(())
}
