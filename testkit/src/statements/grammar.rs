//! One INSERT after another, out of a seed.

use std::fmt;

use fastrand::Rng;

use super::changes::Change;
use super::tables::{Role, TABLES, Table};
use super::values::{bound, bound_key, choose, key, number, text};
use crate::{Flavour, Param};

/// One of so many that are prepared and list no columns meets another order of these.
const MOVES_ONE_IN: u8 = 6;

/// One of so many meets each of the other changes.
const CHANGES_ONE_IN: u8 = 40;

/// Before one of so many keys are asked for.
const ASKS_ONE_IN: u8 = 12;

/// Statements that a session begins with.
pub(super) fn prelude(random: &mut Rng, flavour: Flavour) -> Vec<String> {
    const MODES: &[&str] = &[
        "",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "ANSI_QUOTES",
        "NO_AUTO_VALUE_ON_ZERO",
        "NO_BACKSLASH_ESCAPES",
        "PIPES_AS_CONCAT",
        "HIGH_NOT_PRECEDENCE",
        "IGNORE_SPACE",
        "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES",
        "TRADITIONAL",
        "ANSI",
        "STRICT_TRANS_TABLES,NO_ZERO_DATE",
    ];
    const CHARSETS: &[&str] = &[
        "utf8mb4", "latin1", "gbk", "sjis", "binary", "big5", "ascii",
    ];
    let variables = ["@k = NULL", "@s = '751'", "@d = 0.4", "@n = 1"];
    let mut prelude: Vec<String> = variables.iter().map(|set| format!("SET {set}")).collect();
    if random.u8(0..3) == 0 {
        prelude.push("SET @k = 750".to_owned());
    }
    if random.bool() {
        let oracle = flavour == Flavour::MariaDb && random.u8(0..10) == 0;
        let mode = if oracle {
            "ORACLE"
        } else {
            choose(random, MODES)
        };
        prelude.push(format!("SET sql_mode = '{mode}'"));
    }
    if random.u8(0..4) == 0 {
        prelude.push(format!("SET NAMES {}", choose(random, CHARSETS)));
    }
    prelude
}

/// One statement.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) table: &'static Table,
    /// Comes first of all.
    pub(super) ask: Option<Ask>,
    pub(super) text: String,
    /// Prepared and executed with these; else it is sent as text.
    pub(super) params: Option<Vec<Param>>,
    pub(super) change: Change,
    /// That comes between PREPARE and execution; else before both.
    pub(super) is_late: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ask) = &self.ask {
            let how = if ask.is_prepared { ", prepared" } else { "" };
            writeln!(formatter, "    {}{how}", ask.text.escape_debug())?;
        }
        write!(formatter, "    {}", self.text.escape_debug())?;
        if let Some(params) = &self.params {
            write!(formatter, "\n    prepared, {params:?}")?;
        }
        let when = if self.is_late {
            "before it is executed"
        } else {
            "at first"
        };
        match self.change {
            Change::None => Ok(()),
            Change::Moved => write!(formatter, "\n    {when} MODIFY {}", self.table.moves[0]),
            Change::Renamed | Change::HiddenByCall | Change::HiddenByExecute => {
                write!(formatter, "\n    {when} {:?}", self.change)
            }
        }
    }
}

impl Case {
    /// Whether rows may stay out, or take the place of others, without an error.
    pub(super) fn may_leave_out(&self) -> bool {
        let text = self.text.to_ascii_uppercase();
        let mut words = ["IGNORE", "DUPLICATE", "REPLACE"].iter();
        words.any(|word| text.contains(word))
    }

    pub(super) fn draw(random: &mut Rng, flavour: Flavour) -> Case {
        let table = random.choice(&TABLES).unwrap_or(&TABLES[0]);
        let prepared = random.u8(0..4) == 0;
        let mut writer = Writer {
            random,
            flavour,
            params: prepared.then(Vec::new),
            lists_columns: true,
            ignores: false,
        };
        let text = writer.insert(table);
        let change = writer.change(&text);
        let is_late = prepared && (change == Change::Moved || writer.random.bool());
        let asks = writer.one_in(ASKS_ONE_IN);
        Case {
            table,
            ask: asks.then(|| writer.ask(table)),
            text,
            params: writer.params,
            change,
            is_late,
        }
    }
}

/// A statement that asks for keys of a table. There is none natively: a query with as many rows stands for it.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) text: String,
    /// The query.
    pub(super) native: String,
    /// It is prepared, and executed twice.
    pub(super) is_prepared: bool,
}

pub(super) struct Writer<'a> {
    pub(super) random: &'a mut Rng,
    flavour: Flavour,
    pub(super) params: Option<Vec<Param>>,
    /// The statement names the columns that its values are for.
    lists_columns: bool,
    /// It says IGNORE.
    ignores: bool,
}

impl Writer<'_> {
    pub(super) fn one_in(&mut self, times: u8) -> bool {
        self.random.u8(0..times) == 0
    }

    pub(super) fn choose(&mut self, pool: &[&'static str]) -> &'static str {
        choose(self.random, pool)
    }

    fn is_maria(&self) -> bool {
        self.flavour == Flavour::MariaDb
    }

    /// What may stand between two words.
    pub(super) fn gap(&mut self) -> &'static str {
        if self.one_in(12) {
            self.choose(&[
                "\n",
                "\t",
                "  ",
                "/**/",
                "/* x */",
                " -- x\n",
                " #x\n",
                "\r\n",
                "/*! */",
                "/*!50000 */",
            ])
        } else {
            " "
        }
    }

    /// The same behind a text that may end in what a word need not be kept apart from.
    fn gap_behind(&mut self, text: &str) -> &'static str {
        let is_closed = text.ends_with([')', '\'', '"', '`', '?']);
        if is_closed && self.random.bool() {
            ""
        } else {
            self.gap()
        }
    }

    /// What may stand where nothing needs to.
    pub(super) fn nothing(&mut self) -> &'static str {
        if self.one_in(10) { self.gap() } else { "" }
    }

    fn change(&mut self, text: &str) -> Change {
        let mut params = self.params.iter().flatten();
        // MySQL keeps the types of the columns that they were for first: a text for a number stays one.
        let has_text = params.any(|param| matches!(param, Param::Text(_)));
        let keeps_types = has_text && !self.is_maria();
        let may_move = self.params.is_some() && !self.lists_columns;
        if may_move && self.one_in(MOVES_ONE_IN) && !keeps_types {
            return Change::Moved;
        }
        match self.random.u8(0..CHANGES_ONE_IN) {
            0 if !names_key(text) => Change::Renamed,
            1 if self.random.bool() => Change::HiddenByCall,
            1 => Change::HiddenByExecute,
            _ => Change::None,
        }
    }

    fn insert(&mut self, table: &'static Table) -> String {
        let mut text = String::new();
        text += self.nothing();
        let replace = self.one_in(10);
        text += match (replace, self.random.u8(0..4)) {
            (true, _) => "REPLACE",
            (false, 0) => "insert",
            (false, _) => "INSERT",
        };
        text += self.gap();
        if self.one_in(8) {
            text += if replace {
                "LOW_PRIORITY"
            } else {
                self.choose(&["LOW_PRIORITY", "HIGH_PRIORITY"])
            };
            text += self.gap();
        }
        self.ignores = !replace && self.one_in(8);
        if self.ignores {
            text += "IGNORE";
            text += self.gap();
        }
        if !self.one_in(5) {
            text += "INTO";
            text += self.gap();
        }
        text += &match self.random.u8(0..6) {
            0 => format!("`{}`", table.name),
            1 => format!("{{db}}.{}", table.name),
            2 => format!("`{{db}}` . `{}`", table.name),
            _ => table.name.to_owned(),
        };
        let set = self.one_in(8);
        let columns = if set {
            text += self.gap();
            self.some_columns(table)
        } else {
            self.column_list(table, &mut text)
        };
        if set {
            self.set(&columns, &mut text);
        } else if self.one_in(3) {
            self.query(table, &columns, &mut text);
        } else {
            self.rows(&columns, &mut text);
        }
        if !replace && self.one_in(6) && !(self.is_maria() && joins_in_a_set(&text)) {
            self.on_duplicate(&mut text);
        }
        if self.is_maria() && self.one_in(12) {
            text += self.gap_behind(&text);
            text += self.choose(&[
                "RETURNING id",
                "RETURNING id, a",
                "RETURNING *",
                "RETURNING a+1",
            ]);
        }
        text += self.nothing();
        if self.one_in(15) {
            text += self.choose(&[";", " ;", "; -- x", " /* x */"]);
        }
        text
    }

    /// All in another order, or some of them.
    fn some_columns(&mut self, table: &'static Table) -> Vec<Role> {
        let mut columns = table.columns.to_vec();
        self.random.shuffle(&mut columns);
        match self.random.u8(0..5) {
            0 => columns.retain(|&role| role != Role::Key),
            1 => columns.truncate(2),
            _ => {}
        }
        columns
    }

    fn column_list(&mut self, table: &'static Table, text: &mut String) -> Vec<Role> {
        let columns = match self.random.u8(0..6) {
            0 | 1 => {
                self.lists_columns = false;
                *text += self.gap();
                return table.columns.to_vec();
            }
            2 => table.columns.to_vec(),
            _ => self.some_columns(table),
        };
        *text += self.nothing();
        *text += "(";
        for (number, role) in columns.iter().enumerate() {
            if number > 0 {
                *text += ",";
            }
            *text += self.nothing();
            let name = role.name();
            *text += &match self.random.u8(0..8) {
                0 => format!("`{name}`"),
                1 => name.to_uppercase(),
                2 => format!("{}.{name}", table.name),
                _ => name.to_owned(),
            };
            *text += self.nothing();
        }
        *text += ")";
        *text += self.nothing();
        columns
    }

    pub(super) fn value(&mut self, role: Role) -> &'static str {
        if let Some(params) = &mut self.params
            && self.random.bool()
        {
            params.push(match role {
                Role::Key => bound_key(self.random, self.flavour),
                Role::Number | Role::Text => bound(self.random),
            });
            return "?";
        }
        match role {
            Role::Key => key(self.random),
            Role::Number => number(self.random),
            Role::Text => text(self.random),
        }
    }

    fn set(&mut self, columns: &[Role], text: &mut String) {
        *text += self.choose(&["SET", "set"]);
        *text += self.gap();
        for (number, &role) in columns.iter().enumerate() {
            if number > 0 {
                *text += ",";
            }
            *text += self.nothing();
            *text += role.name();
            *text += self.choose(&["=", " = ", ":=", " ="]);
            *text += self.value(role);
            *text += self.nothing();
        }
    }

    fn rows(&mut self, columns: &[Role], text: &mut String) {
        let row = !self.is_maria() && self.one_in(6);
        *text += self.choose(&["VALUES", "VALUES", "values", "VALUE"]);
        *text += if row { " " } else { self.nothing() };
        // Beside IGNORE some are often left out, or all.
        let counts = if self.ignores {
            [1, 2, 2, 3, 3, 4]
        } else {
            [1, 1, 1, 2, 2, 3]
        };
        let count = self.random.choice(counts).unwrap_or(1);
        for number in 0..count {
            if number > 0 {
                *text += ",";
                *text += self.nothing();
            }
            if row {
                *text += "ROW";
            }
            *text += "(";
            for (number, &role) in columns.iter().enumerate() {
                if number > 0 {
                    *text += ",";
                }
                *text += self.nothing();
                *text += self.value(role);
                *text += self.nothing();
            }
            *text += ")";
        }
        if !self.is_maria() && self.one_in(10) {
            *text += " AS n";
        }
    }

    fn on_duplicate(&mut self, text: &mut String) {
        *text += self.gap_behind(text);
        *text += "ON DUPLICATE KEY UPDATE";
        *text += self.gap();
        *text += self.choose(&[
            "a = 5",
            "id = id",
            "a = VALUES(a)",
            "b = CONCAT(b,'!')",
            "id = LAST_INSERT_ID(id)",
            "a=a+1,b='z'",
            "id=VALUES(id)",
            "a = n.a",
            "b = DEFAULT",
        ]);
    }
}

/// Whether the key's name stands in it.
fn names_key(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = text.split(|c| !is_word(c));
    words.any(|word| word.eq_ignore_ascii_case(Role::Key.name()))
}

/// Whether a query joins tables and is an arm of a set operation: ON DUPLICATE KEY UPDATE behind one with a column that is not found, or
/// not one alone, ends MariaDB 10.11 with signal 11, also without a proxy.
fn joins_in_a_set(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let has = |word| text.contains(word);
    has("JOIN") && ["UNION", "EXCEPT", "INTERSECT"].into_iter().any(has)
}
