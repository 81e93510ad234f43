//! Temporary tables, each of which hides a rule's table of the same name: whether one is there is known, or the server is asked.

use keywright_rewrite::{InsertHead, quote_name};
use keywright_wire::bytes::Reader;
use keywright_wire::packets::{only_row, packets};

use crate::connection::Connection;
use crate::server::context::{Named, Temporary};
use crate::server::probe::Probe;
use crate::server::question::Described;
use crate::step::Step;

/// How many temporary tables are remembered. The rows of one that is not get keys of the rule whose table it hides.
const TEMPORARY_MAX: usize = 256;

/// Asks what a table is.
pub(crate) const SHOW_CREATE: &[u8] = b"SHOW CREATE TABLE ";
/// The columns of the answer, and how its text begins for a temporary table.
const COLUMNS: usize = 2;
const BEGINNING: &[u8] = b"CREATE TEMPORARY TABLE";

impl Connection {
    /// Whether a temporary table of that name is there.
    pub(crate) fn hides(&self, schema: &[u8], table: &[u8]) -> bool {
        let mut tables = self.context.temporary.iter();
        tables.any(|there| !there.is_doubtful && self.is_named(there, schema, table))
    }

    /// Whether an INSERT is into a temporary table that is there: those have no triggers.
    pub(crate) fn is_into_temporary(&self, insert: &[u8]) -> bool {
        if self.context.temporary.is_empty() {
            return false;
        }
        InsertHead::read(insert, &self.context.modes).is_ok_and(|head| {
            let database = self.context.database.as_deref().unwrap_or_default();
            let schema = head.table.schema.as_deref().unwrap_or(database);
            self.hides(schema, &head.table.table)
        })
    }

    fn is_named(&self, there: &Temporary, schema: &[u8], table: &[u8]) -> bool {
        let (of, name) = &there.name;
        self.rules.same_name(of, schema) && self.rules.same_name(name, table)
    }

    /// Whether one of these may be a table with a rule, and not a temporary one that hides it.
    pub(crate) fn drops_ruled(&self, dropped: &[Named]) -> bool {
        let mut dropped = dropped.iter();
        dropped.any(|(schema, name)| {
            self.rules.find(schema, name).is_some() && !self.hides(schema, name)
        })
    }

    /// A statement that makes and drops tables was answered.
    pub(crate) fn tables_changed(&mut self, dropped: &[Named], made: Vec<Named>, succeeded: bool) {
        for (schema, name) in dropped {
            let of = |there: &Temporary| self.is_named(there, schema, name);
            let Some(at) = self.context.temporary.iter().position(of) else {
                continue;
            };
            if succeeded {
                self.context.temporary.swap_remove(at);
                self.context.note_renamed();
            } else {
                // Of several tables those that are there are dropped, although another is not.
                self.doubt_table(at);
            }
        }
        // Where nothing else is known neither is the database of a name without schema.
        let is_known = succeeded && self.context.known;
        self.note_temporary(made, is_known);
    }

    /// Notes tables that were made, or may have been.
    pub(crate) fn note_temporary(&mut self, made: Vec<Named>, is_known: bool) {
        for name in made {
            if self.rules.find(&name.0, &name.1).is_none() {
                continue;
            }
            let of = |there: &Temporary| self.is_named(there, &name.0, &name.1);
            let at = self.context.temporary.iter().position(of);
            let at = match at {
                Some(at) => at,
                None if self.context.temporary.len() >= TEMPORARY_MAX => continue,
                None => {
                    let is_doubtful = false;
                    self.context.temporary.push(Temporary { name, is_doubtful });
                    self.context.note_renamed();
                    self.context.temporary.len() - 1
                }
            };
            if !is_known {
                self.doubt_table(at);
            }
        }
    }

    fn doubt_table(&mut self, at: usize) {
        if let Some(table) = self.context.temporary.get_mut(at) {
            table.is_doubtful = true;
            self.context.known = false;
        }
    }

    /// Asks for the first that is doubtful; `None`: none is.
    pub(crate) fn ask_temporary(&mut self) -> Option<Step> {
        let mut tables = self.context.temporary.iter();
        let named = tables.find(|table| table.is_doubtful)?.name.clone();
        Some(self.ask_hidden(named))
    }

    /// Asks whether a table is a temporary one.
    pub(crate) fn ask_hidden(&mut self, named: Named) -> Step {
        let (schema, name) = &named;
        let mut text = SHOW_CREATE.to_vec();
        quote_name(schema, &mut text);
        text.push(b'.');
        quote_name(name, &mut text);
        self.ask_by_text(&text, Probe::Temporary(named))
    }

    /// The server's answer: an error where there is no table at all.
    pub(crate) fn answer_temporary(&mut self, name: &Named, answer: &[u8]) {
        let is_there = self.tells_temporary(answer) == Some(true);
        let described = match is_there {
            true => Described::Temporary,
            false => Described::Other,
        };
        self.table_report.described = Some((name.clone(), described));
        let mut tables = self.context.temporary.iter();
        let at = tables.position(|table| table.name == *name);
        match at.and_then(|at| Some((at, self.context.temporary.get_mut(at)?))) {
            Some((_, table)) if is_there => table.is_doubtful = false,
            Some((at, _)) => {
                self.context.temporary.swap_remove(at);
                self.context.note_renamed();
            }
            None if is_there => self.note_temporary(vec![name.clone()], true),
            None => {}
        }
        // One that is not remembered is not asked for again either.
        if !is_there || !self.hides(&name.0, &name.1) {
            self.context.note_seen(name);
        }
    }

    fn tells_temporary(&self, answer: &[u8]) -> Option<bool> {
        let packets = packets(answer)?;
        let (_, first) = packets.first()?;
        // A view is described by more.
        if Reader(first).lenenc()? != u64::try_from(COLUMNS).ok()? {
            return None;
        }
        let mut row = Reader(only_row(answer, COLUMNS, self.deprecates_eof())?);
        row.text()?;
        // The client may have chosen a character set with two or four bytes for each of these.
        let text = row.text()?.iter().filter(|byte| **byte != 0);
        Some(text.take(BEGINNING.len()).eq(BEGINNING))
    }
}
