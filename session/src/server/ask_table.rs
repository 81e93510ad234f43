//! How the session asks about a table. It asks for columns by preparing a SELECT, and for the right to insert by preparing an INSERT. Neither is executed.

use keywright_rewrite::{KeyForm, ResultColumn, TableName, quote_name};
use keywright_wire::capability::EXTENDED_METADATA;
use keywright_wire::packets::{
    column_names, error_of, only_column, prepared_id, result_columns, write_close,
};

use crate::connection::Connection;
use crate::job::Job;
use crate::rules::{KeyColumnState, Rule};
use crate::server::column_names::ASK_RESULTS_CHARSET;
use crate::server::context::Named;
use crate::server::probe::Probe;
use crate::server::question::{KeyThere, Question, says_no_table};
use crate::step::Step;

/// Error numbers of the server: no such column, no privilege to read the table, or the column.
const NO_COLUMN: u16 = 1054;
const NO_SELECT: u16 = 1142;
const NO_SELECT_OF_COLUMN: u16 = 1143;
/// What the server says to an account that may not insert into a table, be it there or not: no right in the schema, or to the table; and of a name that no
/// table has: it is too long, or no schema's, or no table's.
const NO_INSERT: [u16; 5] = [1044, 1142, 1059, 1102, 1103];

impl Connection {
    /// Whether a table has its rule's column, and room in it. The session asks before each statement on a table that lacked the column at
    /// the last schema refresh. Of newer tables and of views it asks until the answer is yes.
    pub(crate) fn key_there(
        &self,
        table: &TableName,
        index: usize,
        rule: &Rule,
    ) -> Result<KeyThere, Question> {
        let (schema, name) = self.named(table);
        let if_untold = match self.rules.key_column_state(schema, name) {
            KeyColumnState::Present if !self.context.doubts_tables => return Ok(KeyThere::Yes),
            KeyColumnState::Present if self.context.has_key(schema, name) => {
                return Ok(KeyThere::Yes);
            }
            KeyColumnState::Present if !rule.column.is_ascii() => return Ok(KeyThere::Yes),
            KeyColumnState::Present => KeyThere::Yes,
            KeyColumnState::TooNarrow if rule.form != KeyForm::Integer => {
                return Ok(KeyThere::Narrow);
            }
            KeyColumnState::TooNarrow => KeyThere::Narrow,
            KeyColumnState::NoTable if self.context.has_key(schema, name) => {
                return Ok(KeyThere::Yes);
            }
            // In another character set it would be another name.
            KeyColumnState::NoTable if !rule.column.is_ascii() => return Ok(KeyThere::Yes),
            KeyColumnState::NoTable => KeyThere::Yes,
            KeyColumnState::Missing => KeyThere::No,
        };
        match self.table_report.key {
            Some(KeyThere::Untold) => Ok(if_untold),
            // The view has changed, and the server refuses what was made for the old one.
            Some(KeyThere::No) if self.rules.view(index).is_some() => Ok(KeyThere::Yes),
            Some(there) => Ok(there),
            None => Err(Question::Key(table.clone(), index)),
        }
    }

    /// Whether the key column of a table refuses NULL where the server is strict. Of tables that no schema refresh has shown the server is asked.
    pub(crate) fn is_not_null(
        &self,
        table: &TableName,
        index: usize,
        rule: &Rule,
    ) -> Result<bool, Question> {
        let (schema, name) = self.named(table);
        let known = match self.rules.key_column_state(schema, name) {
            KeyColumnState::Present if !self.context.doubts_tables => {
                self.rules.is_not_null(schema, name)
            }
            KeyColumnState::Present | KeyColumnState::NoTable | KeyColumnState::Missing => None,
            // It may be of any type, such as one that makes something else of NULL.
            KeyColumnState::TooNarrow => Some(false),
        };
        match known.or_else(|| self.context.is_not_null(schema, name)) {
            Some(is_not_null) => Ok(is_not_null),
            // The account may not ask: then what was seen last has to do, as it does for the key itself.
            None if self.table_report.key == Some(KeyThere::Untold) => {
                let is_present =
                    self.rules.key_column_state(schema, name) == KeyColumnState::Present;
                Ok(is_present && self.rules.is_not_null(schema, name) == Some(true))
            }
            None if self.table_report.key.is_some() => Ok(self.table_report.is_not_null),
            // In another character set it would be another name.
            None if !rule.column.is_ascii() => Ok(false),
            None => Err(Question::Key(table.clone(), index)),
        }
    }

    /// Which changes of tables what is known of the statement's table is behind.
    pub(crate) fn judged_at(&self) -> u64 {
        let asked_at = self.table_report.asked_at;
        asked_at.unwrap_or_else(|| self.schema_changes())
    }

    /// Puts a question to the server, or waits until the program has.
    pub(crate) fn ask(&mut self, question: &Question) -> Step {
        self.table_report.asked_at = Some(self.judged_at());
        let mut text = b"SELECT ".to_vec();
        let (mut between, mut end): (&[u8], &[u8]) = (b" FROM ", b"");
        let (table, probe) = match question {
            Question::Hidden(table) => {
                let (schema, name) = self.named(table);
                return self.ask_hidden((schema.to_vec(), name.to_vec()));
            }
            Question::Shown(table, answers) => {
                // A switch need not wait for that.
                self.leave();
                self.table_report.awaited = Some((table.clone(), *answers));
                return Step::Wait;
            }
            Question::Result(query) => {
                return self.ask_by_preparing(query, Probe::Result);
            }
            Question::KeyType(query) => {
                return self.ask_by_preparing(query, Probe::KeyType);
            }
            Question::ResultsCharset => {
                return self.ask_by_text(ASK_RESULTS_CHARSET, Probe::ResultsCharset);
            }
            Question::Columns(table, index) => {
                text.push(b'*');
                (table, Probe::Columns(*index))
            }
            Question::Missing(table) => {
                text.push(b'1');
                (table, Probe::Missing)
            }
            Question::Insert(table) => {
                text = b"INSERT".to_vec();
                between = b" INTO ";
                end = b" () VALUES ()";
                (table, Probe::Insert)
            }
            Question::Key(table, index) => {
                let rule = self.rules.rules().get(*index);
                let column = rule.map_or("", |rule| &rule.column);
                quote_name(column.as_bytes(), &mut text);
                let (schema, name) = self.named(table);
                let named = (schema.to_vec(), name.to_vec());
                (table, Probe::Key(named, *index))
            }
        };
        text.extend_from_slice(between);
        if let Some(schema) = &table.schema {
            quote_name(schema, &mut text);
            text.push(b'.');
        }
        quote_name(&table.table, &mut text);
        text.extend_from_slice(end);
        self.ask_by_preparing(&text, probe)
    }

    /// The answer to [`Question::Columns`].
    pub(crate) fn answer_columns(&mut self, index: usize, answer: &[u8]) -> Job {
        self.close_question(answer);
        let is_missing = error_of(answer).is_some_and(says_no_table);
        // Forwarded, it would find the table if that came meanwhile, and the server would number its rows.
        if is_missing && self.rewrites(index) {
            return self.fail_own(answer);
        }
        // After another error the columns stay unknown.
        self.table_report.missing = is_missing;
        let columns = self.columns_in_texts(column_names(answer).unwrap_or_default());
        self.table_report.are_names_unread = columns.is_none();
        self.table_report.columns = columns;
        Job::Idle
    }

    /// The answer to [`Question::Missing`].
    pub(crate) fn answer_missing(&mut self, answer: &[u8]) -> Job {
        self.close_question(answer);
        let error = error_of(answer);
        if error.is_some_and(says_no_table) {
            return self.fail_own(answer);
        }
        let report = &mut self.table_report;
        report.missing = false;
        // It has come meanwhile, and what was said before is not of it. A server that says now this and now that is not asked for ever.
        if error.is_none() && !report.has_come {
            report.has_come = true;
            (report.key, report.columns) = (None, None);
        }
        Job::Idle
    }

    /// The answer to [`Question::Insert`].
    pub(crate) fn answer_may_insert(&mut self, answer: &[u8]) -> Job {
        self.close_question(answer);
        let error = error_of(answer);
        if error.is_some_and(|error| says_no_table(error) || NO_INSERT.contains(&error)) {
            return self.fail_own(answer);
        }
        self.table_report.may_insert = true;
        Job::Idle
    }

    /// The answer to [`Question::Result`].
    pub(crate) fn answer_result(&mut self, answer: &[u8]) {
        let result = self.told_result(answer);
        let result = self.result_in_texts(result);
        self.table_report.are_names_unread = result.is_none();
        self.table_report.result = result;
    }

    /// The answer to [`Question::KeyType`], whose name no text has.
    pub(crate) fn answer_key_type(&mut self, answer: &[u8]) {
        self.table_report.result = Some(self.told_result(answer));
    }

    fn told_result(&mut self, answer: &[u8]) -> Vec<ResultColumn> {
        self.close_question(answer);
        let is_extended = self.facts.capabilities & EXTENDED_METADATA != 0;
        let columns = result_columns(answer, is_extended, self.deprecates_eof());
        let columns = columns.unwrap_or_default().into_iter();
        let result = columns.map(|column| ResultColumn {
            is_integer: column.of_type.integer_bits() > 0,
            is_not_null: column.of_type.is_not_null(),
            name: column.name,
        });
        result.collect()
    }

    /// The answer to [`Question::Key`].
    pub(crate) fn answer_key(&mut self, table: Named, index: usize, answer: &[u8]) -> Job {
        self.close_question(answer);
        let key_column = self.rules.key_column_state(&table.0, &table.1);
        let error = error_of(answer);
        self.table_report.missing = error.is_some_and(says_no_table);
        let there = match error {
            None => self.room(index, answer),
            Some(NO_COLUMN) => KeyThere::No,
            // The table may be created a moment later, and then the statement must have a key.
            Some(NO_SELECT | NO_SELECT_OF_COLUMN) => KeyThere::Untold,
            Some(error) if says_no_table(error) => KeyThere::Untold,
            Some(_) if key_column == KeyColumnState::Missing => return self.fail_own(answer),
            Some(_) => KeyThere::Untold,
        };
        let is_not_null = there == KeyThere::Yes && self.refuses_null(answer);
        if there == KeyThere::Yes
            && matches!(
                key_column,
                KeyColumnState::NoTable | KeyColumnState::Present
            )
        {
            self.context.note_key(table, is_not_null);
        }
        self.table_report.key = Some(there);
        self.table_report.is_not_null = is_not_null;
        Job::Idle
    }

    /// A statement with a key failed. If the column is missing, the table has changed.
    pub(crate) fn doubt_tables(&mut self, answer: &[u8]) {
        if error_of(answer) == Some(NO_COLUMN) {
            self.context.doubt_tables();
        }
    }

    /// How often tables may have been changed, as far as this connection knows.
    pub(crate) fn schema_changes(&self) -> u64 {
        let all = self.rules.schema().all();
        all.wrapping_add(self.context.doubts)
    }

    /// Whether the column that an answer describes has room for the keys of a rule, as far as that can be told: the room for text
    /// depends on the character set of the connection.
    fn room(&self, index: usize, answer: &[u8]) -> KeyThere {
        let is_extended = self.facts.capabilities & EXTENDED_METADATA != 0;
        let (Some(rule), Some(column)) = (
            self.rules.rules().get(index),
            only_column(answer, is_extended),
        ) else {
            return KeyThere::Yes;
        };
        let bits = column.integer_bits();
        let is_narrow = match rule.form {
            KeyForm::Integer if column.is_text() => return KeyThere::Text,
            KeyForm::Integer => bits < rule.bits_max,
            KeyForm::Text | KeyForm::Bytes => bits > 0,
        };
        match is_narrow {
            true => KeyThere::Narrow,
            false => KeyThere::Yes,
        }
    }

    /// Whether the column that an answer describes is NOT NULL, and of no type that makes something else of NULL.
    fn refuses_null(&self, answer: &[u8]) -> bool {
        let is_extended = self.facts.capabilities & EXTENDED_METADATA != 0;
        let column = only_column(answer, is_extended);
        column.is_some_and(|column| column.is_text() && column.is_not_null())
    }

    fn close_question(&mut self, answer: &[u8]) {
        if let Some(statement) = prepared_id(answer) {
            write_close(statement, &mut self.up);
        }
    }
}
