//! Queries whose rows are inserted.

use super::grammar::Writer;
use super::tables::{Role, Table};
use super::values::usual_key_in_query;

const ORDERED: &str = " ORDER BY 1";

impl Writer<'_> {
    /// Rows out of a query.
    pub(super) fn query(&mut self, table: &Table, columns: &[Role], text: &mut String) {
        *text += self.gap();
        if self.one_in(4) {
            let copy = self.copy(table, columns);
            *text += &match self.one_in(8) {
                true => format!("({copy})"),
                false => copy,
            };
            return;
        }
        if self.one_in(6) {
            *text += &self.mixed(columns);
            return;
        }
        let params_before = self.params.as_ref().map(Vec::len);
        let first = self.simple(columns);
        match self.random.u8(0..16) {
            0..3 => {
                let second = self.simple(columns);
                let operator = self.choose(&[
                    "UNION",
                    "UNION ALL",
                    "UNION DISTINCT",
                    "EXCEPT",
                    "INTERSECT",
                    "union all",
                    "MINUS",
                    "UNION/**/ALL",
                ]);
                *text += &match self.random.u8(0..4) {
                    0 => format!("({first}) {operator} ({second})"),
                    1 => format!("{first} {operator} ({second})"),
                    _ => format!("{first} {operator} {second}"),
                };
                if self.one_in(4) {
                    let tail = self.choose(&[ORDERED, " LIMIT 2", " ORDER BY a LIMIT 1"]);
                    *text += &in_settled_order(tail, columns);
                }
            }
            3 => *text += &format!("({first})"),
            4 => *text += &format!("(({first}))"),
            5 => *text += &format!("WITH c AS ({first}) SELECT * FROM c"),
            6 => *text += &format!("WITH c AS (SELECT 1 AS x) {first}"),
            7 => *text += &format!("(WITH c AS (SELECT 1 AS x) {first})"),
            8 => *text += &format!("SELECT * FROM ({first}) d"),
            9 => {
                let second = self.simple(columns);
                *text += &format!("SELECT * FROM ({first} UNION ALL {second}) d");
            }
            10 => {
                // The first query is left out, with its parameters.
                if let (Some(params), Some(before)) = (&mut self.params, params_before) {
                    params.truncate(before);
                }
                *text += self.choose(&[
                    "TABLE u3",
                    "VALUES (NULL,1,'x'),(0,2,'y')",
                    "SELECT * FROM u3",
                    "SELECT u3.* FROM u3",
                    "VALUES ROW(NULL,1,'x'),ROW(790,2,'y')",
                ])
            }
            _ => *text += &first,
        }
    }

    /// Rows of which some bring a key and others may ask for one, with little else that is a reason to refuse them.
    fn mixed(&mut self, columns: &[Role]) -> String {
        if self.one_in(3) {
            return self.rolled_up(columns);
        }
        let mut text = self.arm(columns);
        for _ in 0..self.random.choice([1, 1, 2]).unwrap_or(1) {
            text += self.choose(&[
                " UNION ALL ",
                " UNION ALL ",
                " UNION ",
                "\nunion all\n",
                " UNION/**/ALL ",
                " UNION DISTINCT ",
            ]);
            text += &self.arm(columns);
        }
        if self.one_in(5) {
            let tail = self.choose(&[ORDERED, " LIMIT 2", " LIMIT 1,5"]);
            text += &in_settled_order(tail, columns);
        }
        text
    }

    /// A part of a union.
    fn arm(&mut self, columns: &[Role]) -> String {
        let values: Vec<&str> = columns
            .iter()
            .map(|role| match role {
                Role::Key => self.choose(&["700", "701", "702", "703", "NULL", "NULL", "0", "'0'"]),
                Role::Number => self.choose(&["1", "2", "3"]),
                Role::Text => self.choose(&["'x'", "'y'", "NULL"]),
            })
            .collect();
        let from = self.choose(&["", "", " FROM DUAL", " FROM u WHERE a = 1"]);
        format!("SELECT {}{from}", values.join(","))
    }

    /// A query whose last row has NULL for what its rows are grouped by: the key, or another column.
    fn rolled_up(&mut self, columns: &[Role]) -> String {
        let values: Vec<&str> = columns
            .iter()
            .map(|role| match role {
                Role::Key => self.choose(&["700 AS k", "701 k", "NULL AS k", "0 AS k"]),
                Role::Number => self.choose(&["COUNT(*)", "MAX(a)", "SUM(a)"]),
                Role::Text => self.choose(&["MAX(b)", "MIN(b)"]),
            })
            .collect();
        let by = match columns.iter().position(|&role| role == Role::Key) {
            Some(place) if self.one_in(2) => (place + 1).to_string(),
            Some(_) => self.choose(&["k", "k", "a"]).to_owned(),
            None => "a".to_owned(),
        };
        let rollup = self.choose(&[" WITH ROLLUP", " WITH ROLLUP", " with/**/rollup", ""]);
        format!("SELECT {} FROM u GROUP BY {by}{rollup}", values.join(","))
    }

    /// A query of one table, or of none.
    fn simple(&mut self, columns: &[Role]) -> String {
        let mut text = self
            .choose(&[
                "SELECT",
                "SELECT",
                "SELECT",
                "select",
                "SELECT DISTINCT",
                "SELECT ALL",
                "SELECT STRAIGHT_JOIN",
                "SELECT SQL_NO_CACHE",
                "SELECT SQL_SMALL_RESULT",
            ])
            .to_owned();
        text += self.gap();
        let from = !self.one_in(3);
        text += &self.select_list(columns, from);
        text += &match from {
            true => self.of_table() + &self.sorted(),
            false => self.of_no_table(),
        };
        text
    }

    fn select_list(&mut self, columns: &[Role], from: bool) -> String {
        let mut text = String::new();
        for (number, &role) in columns.iter().enumerate() {
            if number > 0 {
                text += ",";
                text += self.nothing();
            }
            text += self.selected(role, from);
            if self.one_in(10) {
                text += self.choose(&[" AS x", " y", " AS `z`", " AS 'w'"]);
            }
        }
        text
    }

    /// What stands for a column; `from`: there is a table.
    fn selected(&mut self, role: Role, from: bool) -> &'static str {
        match role {
            Role::Key if from && self.one_in(5) => self.choose(&[
                "n",
                "u.n",
                "a",
                "MAX(n)",
                "MIN(a)",
                "COUNT(*)",
                "SUM(n)",
                "ROW_NUMBER() OVER ()",
                "GROUPING(a)",
                "d.n",
                "minus",
                "a+n",
            ]),
            Role::Key if self.one_in(2) => usual_key_in_query(self.random),
            Role::Number if from && self.one_in(2) => self.choose(&[
                "a",
                "u.a",
                "a+1",
                "a + b",
                "b / 3 - -a",
                "round(b * `offset`, 1)",
                "MAX(a)",
                "COUNT(*)",
                "minus",
                "`offset`",
                "RANK() OVER (ORDER BY a)",
            ]),
            Role::Text if from && self.one_in(2) => self.choose(&[
                "b",
                "u.b",
                "MAX(b)",
                "GROUP_CONCAT(b)",
                "UPPER(b)",
                "concat(b, a / 7)",
            ]),
            Role::Key | Role::Number | Role::Text => self.value(role),
        }
    }

    /// What follows the list of a query that has no table.
    fn of_no_table(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(4) {
            text += self.choose(&[
                " FROM DUAL",
                " FROM dual WHERE 1",
                " WHERE 1",
                " HAVING 1",
                " LIMIT 1",
                " WHERE NOT EXISTS (SELECT 1 FROM u WHERE 0)",
            ]);
        }
        text
    }

    /// The table, and which of its rows.
    fn of_table(&mut self) -> String {
        let mut text = self.gap().to_owned();
        text += "FROM";
        text += self.gap();
        text += self.choose(&[
            "u",
            "u",
            "u",
            "`u`",
            "{db}.u",
            "u AS d",
            "u d",
            "(SELECT * FROM u) d",
            "u JOIN u v USING (a)",
            "u minus",
            "u LEFT JOIN u v ON u.a = v.n",
            "u, (SELECT 1 AS one) o",
            "(u)",
        ]);
        if self.one_in(3) {
            text += self.gap();
            text += self.choose(&[
                "WHERE a > 1",
                "WHERE 1",
                "WHERE a IN (1,3)",
                "WHERE b LIKE '%'",
                "WHERE n IS NULL",
                "WHERE a = @k",
                "WHERE a BETWEEN 1 AND 2",
            ]);
        }
        text
    }

    /// How rows are grouped and sorted, and how many.
    fn sorted(&mut self) -> String {
        let mut text = String::new();
        let mut grouped = false;
        if self.one_in(4) {
            grouped = true;
            text += self.gap();
            text += self.choose(&[
                "GROUP BY a",
                "GROUP BY a WITH ROLLUP",
                "GROUP BY 1",
                "GROUP BY 1 WITH ROLLUP",
                "GROUP BY 1 WITH ROLLUP",
                "GROUP BY 1, 2 WITH ROLLUP",
                "GROUP BY b",
                "GROUP BY ROLLUP (a)",
                "GROUP BY a, b WITH ROLLUP",
                "GROUP BY n",
            ]);
        }
        if self.one_in(if grouped { 3 } else { 15 }) {
            text += self.gap();
            text += self.choose(&["HAVING a > 1", "HAVING COUNT(*) > 0", "HAVING 1"]);
        }
        if self.one_in(5) {
            text += self.gap();
            text += self.choose(&[
                "ORDER BY a",
                "ORDER BY a DESC",
                "ORDER BY 2",
                "ORDER BY `offset`",
                "ORDER BY offset",
                "ORDER BY minus",
                "ORDER BY b, a",
                "ORDER BY NULL",
            ]);
        }
        if self.one_in(6) {
            text += self.gap();
            text += self.choose(&[
                "LIMIT 2",
                "LIMIT 1,1",
                "LIMIT 1 OFFSET 1",
                "LIMIT 0",
                "FOR UPDATE",
                "LOCK IN SHARE MODE",
            ]);
        }
        text
    }
}

/// What follows, with further columns where it orders by one: rows that are alike in that come as the server likes, and get their
/// keys so.
fn in_settled_order(tail: &str, columns: &[Role]) -> String {
    let mut text = tail.to_owned();
    if tail == ORDERED {
        for place in 2..=columns.len() {
            text += &format!(",{place}");
        }
    }
    text
}
