//! Questions about a table that are put to the server before a statement on it. Each prepares a SELECT: nothing is carried out.

use keywright_rewrite::TableName;

use crate::after::Named;
use crate::answer::Shape;
use crate::packets::{
    COM_STMT_PREPARE, column_names, error_of, prepared_id, write_close, write_command,
};
use crate::rules::{Rule, Sighting};
use crate::session::{Gather, Session, Turn};
use crate::step::Step;

/// Error numbers of the server: no such table, no such schema, no schema chosen, no such column.
const NO_TABLE: u16 = 1146;
const NO_SCHEMA: u16 = 1049;
const NO_DATABASE: u16 = 1046;
const NO_COLUMN: u16 = 1054;

/// What must be known of a table.
#[derive(Debug)]
pub(crate) enum Question {
    /// Its live columns.
    Columns(TableName),
    /// Whether it has a column of that name.
    Key(TableName, String),
}

/// Whether a table has the column of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyThere {
    Yes,
    /// It has not, or there is no such table.
    No,
    /// The server does not say, for instance to an account that may only insert.
    Untold,
}

impl Session {
    /// Whether a table is without its rule's column. That is asked of those that were seen without, before each statement, and
    /// of those that were not there when the server was looked at, until it is known that they have it.
    pub(crate) fn lacks_key(
        &self,
        table: &TableName,
        index: usize,
        rule: &Rule,
    ) -> Result<bool, Question> {
        if self.rules.view(index).is_some() {
            return Ok(false);
        }
        let (schema, name) = self.named(table);
        let there = match self.rules.sighting(schema, name) {
            Sighting::With => return Ok(false),
            Sighting::Never if self.context.has_key(schema, name) => return Ok(false),
            // In another character set it would be another name.
            Sighting::Never if !rule.column.is_ascii() => return Ok(false),
            Sighting::Never => self.stage.key.map(|there| there == KeyThere::No),
            Sighting::Without => self.stage.key.map(|there| there != KeyThere::Yes),
        };
        there.ok_or_else(|| Question::Key(table.clone(), rule.column.clone()))
    }

    fn named<'a>(&'a self, table: &'a TableName) -> (&'a [u8], &'a [u8]) {
        let database = self.context.database.as_deref();
        let schema = table.schema.as_deref().or(database).unwrap_or_default();
        (schema, &table.table)
    }

    /// Puts a question to the server.
    pub(crate) fn ask(&mut self, question: &Question) -> Step {
        let mut text = b"SELECT ".to_vec();
        let (table, gather) = match question {
            Question::Columns(table) => {
                text.push(b'*');
                (table, Gather::Columns)
            }
            Question::Key(table, column) => {
                write_quoted(column.as_bytes(), &mut text);
                let (schema, name) = self.named(table);
                (table, Gather::Key((schema.to_vec(), name.to_vec())))
            }
        };
        text.extend_from_slice(b" FROM ");
        if let Some(schema) = &table.schema {
            write_quoted(schema, &mut text);
            text.push(b'.');
        }
        write_quoted(&table.table, &mut text);
        write_command(COM_STMT_PREPARE, &text, &mut self.up);
        self.answer.expect(Shape::Prepare);
        self.turn = Turn::Gather(gather);
        Step::Consumed(0)
    }

    /// The answer to [`Question::Columns`].
    pub(crate) fn answer_columns(&mut self, answer: &[u8]) {
        self.close_question(answer);
        // Of a table that is not there the server will say so itself. Otherwise the columns stay unknown.
        self.stage.missing = error_of(answer).is_some_and(says_no_table);
        self.stage.columns = Some(column_names(answer).unwrap_or_default());
    }

    /// The answer to [`Question::Key`].
    pub(crate) fn answer_key(&mut self, table: Named, answer: &[u8]) {
        self.close_question(answer);
        let there = match error_of(answer) {
            None => KeyThere::Yes,
            Some(error) if error == NO_COLUMN || says_no_table(error) => KeyThere::No,
            Some(_) => KeyThere::Untold,
        };
        if there == KeyThere::Yes {
            self.context.note_key(table);
        }
        self.stage.key = Some(there);
    }

    fn close_question(&mut self, answer: &[u8]) {
        if let Some(statement) = prepared_id(answer) {
            write_close(statement, &mut self.up);
        }
    }
}

fn says_no_table(error: u16) -> bool {
    matches!(error, NO_TABLE | NO_SCHEMA | NO_DATABASE)
}

/// Appends a name in backquotes.
fn write_quoted(name: &[u8], out: &mut Vec<u8>) {
    out.push(b'`');
    for byte in name {
        out.push(*byte);
        if *byte == b'`' {
            out.push(b'`');
        }
    }
    out.push(b'`');
}
