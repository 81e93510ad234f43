//! Queries that copy rows with their keys.

use super::grammar::Writer;
use super::tables::{Role, Table};

/// Where rows with keys are: each with what may stand before its columns' names.
const SOURCES: &[(&str, &str)] = &[
    ("c", ""),
    ("c", ""),
    ("c", "c."),
    ("{db}.c", "c."),
    ("c AS d", "d."),
    ("`c` d", "`d`."),
    ("cv", ""),
    ("cv d", "d."),
    ("(SELECT * FROM c) d", "d."),
    ("(SELECT * FROM c ORDER BY id LIMIT 3) d", "d."),
    ("c LEFT JOIN u v ON c.a = v.a", "c."),
    ("u v RIGHT JOIN c ON c.a = v.a", "c."),
    ("c JOIN u v USING (a)", "c."),
];

/// Keys that are columns there, and some that are not.
const KEYS: &[&str] = &[
    "id",
    "id",
    "id",
    "id",
    "z",
    "n",
    "u",
    "s",
    "f",
    "`id`",
    "id AS k",
    "u k",
    "id AS 'k'",
    "id+0",
    "(id)",
    "-id",
    "MAX(id)",
    "nosuch",
];

impl Writer<'_> {
    /// Rows with their keys out of another table.
    pub(super) fn copy(&mut self, table: &Table, columns: &[Role]) -> String {
        if columns == table.columns && self.one_in(2) {
            return self.copy_of_all(table);
        }
        let mut text = self
            .choose(&["SELECT ", "SELECT ", "select ", "SELECT ALL "])
            .to_owned();
        if self.one_in(12) {
            text = "SELECT DISTINCT ".to_owned();
        }
        let (from, of) = self.random.choice(SOURCES).copied().unwrap_or(SOURCES[0]);
        for (number, &role) in columns.iter().enumerate() {
            if number > 0 {
                text += ",";
            }
            text += self.nothing();
            text += &match role {
                Role::Key => self.key_of(of),
                Role::Number if self.one_in(2) => format!("{of}a"),
                Role::Text if self.one_in(2) => format!("{of}b"),
                Role::Number | Role::Text => self.value(role).to_owned(),
            };
        }
        text += self.gap();
        text += "FROM ";
        text += from;
        if self.one_in(2) {
            let condition = self.choose(&["id > 800", "z > 0", "id <> 803", "n > 0", "id < 0"]);
            text += &format!(" WHERE {of}{condition}");
        }
        if self.one_in(10) {
            let by = self.choose(&["id", "id WITH ROLLUP", "n", "id HAVING 1"]);
            text += &format!(" GROUP BY {of}{by}");
        }
        text += &self.copy_tail(of);
        if self.one_in(12) {
            text += &format!(" UNION ALL {}", self.copy_of_all(table));
        }
        text
    }

    fn key_of(&mut self, of: &str) -> String {
        let key = self.choose(KEYS);
        match key.split_at_checked(1) {
            Some(("(", rest)) => format!("({of}{rest}"),
            Some(("-", rest)) => format!("-{of}{rest}"),
            _ if key.starts_with("MAX(") => key.replace('(', &format!("({of}")),
            _ => format!("{of}{key}"),
        }
    }

    /// All columns, as they stand.
    fn copy_of_all(&mut self, table: &Table) -> String {
        let from = match self.one_in(3) {
            // One of its rows asks for a key.
            true => format!("z_{}", table.name),
            false => format!("c_{}", table.name),
        };
        let mut text = match self.random.u8(0..6) {
            0 => format!("SELECT {from}.* FROM {from}"),
            1 => format!("SELECT d.* FROM {from} AS d"),
            2 => format!("SELECT `d` . * FROM {{db}}.{from} d"),
            3 => format!("SELECT * FROM (SELECT * FROM {from}) d"),
            4 => format!("TABLE {from}"),
            _ => format!("SELECT * FROM {from}"),
        };
        if !text.starts_with("TABLE") && self.one_in(2) {
            text += self.choose(&[
                " WHERE id > 0",
                " WHERE id >= 0",
                " WHERE a = 1",
                " WHERE 0",
            ]);
        }
        text += &self.copy_tail("");
        text
    }

    fn copy_tail(&mut self, of: &str) -> String {
        let mut text = String::new();
        if self.one_in(3) {
            text += &format!(" ORDER BY {of}id");
            text += self.choose(&["", "", " DESC", " LIMIT 2", " LIMIT 1,2"]);
        }
        if self.one_in(10) {
            text += self.choose(&[" FOR UPDATE", " LOCK IN SHARE MODE"]);
        }
        text
    }
}

/// Makes the tables that rows are copied from.
pub(super) fn sources(tables: &[Table]) -> String {
    let mut made = "CREATE TABLE c (id BIGINT NOT NULL, a INT, b VARCHAR(60), n INT, z TINYINT UNSIGNED NOT NULL, \
                    u BIGINT UNSIGNED NOT NULL, s VARCHAR(10) NOT NULL, f DOUBLE NOT NULL);
         INSERT INTO c VALUES (800, 1, 'x', NULL, 0, 810, '820', 830.5), (801, 2, 'y', 841, 1, 811, '821', 831.5),
             (802, 3, NULL, 842, 2, 812, '82x', 832), (803, 5, 'z', 0, 3, 813, '0', 0);
         CREATE VIEW cv AS SELECT * FROM c;"
        .to_owned();
    for Table { name, columns, .. } in tables {
        let definition = columns.map(|role| match role {
            Role::Key => "id BIGINT NOT NULL",
            Role::Number => "a INT",
            Role::Text => "b VARCHAR(60)",
        });
        let definition = definition.join(", ");
        for (of, last) in [("c", 852), ("z", 0)] {
            made += &format!(
                "CREATE TABLE {of}_{name} ({definition});
                 INSERT INTO {of}_{name} (id, a, b) VALUES (850, 1, 'x'), (851, 2, 'y'), ({last}, 3, 'z');"
            );
        }
    }
    made
}
