//! Keys that are asked for before a statement.

use super::grammar::{Ask, Writer};
use super::tables::Table;

impl Writer<'_> {
    pub(super) fn ask(&mut self, table: &Table) -> Ask {
        let count = self.random.choice([1, 1, 1, 2, 5]).unwrap_or(1);
        let mut asked = self.choose(&["NEXT", "NEXT", "next"]).to_owned();
        asked += self.gap();
        asked += &match count {
            1 if !self.one_in(4) => self.choose(&["VALUE", "value"]).to_owned(),
            _ => format!("{count}{}VALUES", self.gap()),
        };
        asked += self.gap();
        asked += self.choose(&["FOR", "FOR", "for"]);
        asked += self.gap();
        asked += &match self.random.u8(0..4) {
            0 => format!("`{}`", table.name),
            1 => format!("{{db}}.{}", table.name),
            2 => format!("{{db}} . `{}`", table.name),
            _ => table.name.to_owned(),
        };
        let alias = self.choose(&["k", "k", "`a b`", "`a``b`", "value"]);
        let alias_written = match self.one_in(2) {
            true => format!("{}AS{}{alias}", self.gap(), self.gap()),
            false => format!("{}{alias}", self.gap()),
        };
        let before = self.nothing();
        let select = self.choose(&["SELECT", "SELECT", "select"]);
        let gap = self.gap();
        let end = if self.one_in(8) {
            self.choose(&[";", " ;", " -- x", "/* x */"])
        } else {
            ""
        };
        let mut native = format!("SELECT 1 AS {alias}");
        for _ in 1..count {
            native += " UNION ALL SELECT 1";
        }
        Ask {
            text: format!("{before}{select}{gap}{asked}{alias_written}{end}"),
            native,
            is_prepared: self.one_in(3),
        }
    }
}
