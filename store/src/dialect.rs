//! Whose table the tags are in, and how a reservation is spelled there.
//!
//! Running servers of the other systems stay correct beside us, with whatever step we use. Leaf writes `max_id + step` and
//! reads the number back under the row's lock, so its range is the part that it added itself. tinyid and `id_generator`
//! compare `max_id` and `version` with what they read, and try again when we came between. Neither trusts a number that
//! was read before its own write, and neither do we.

use std::fmt;

use crate::engine::words::Words;
use crate::reserve::Ends;

/// Stands in a row in place of the server that wrote the bound, before the bound that was seen, where the row was put back. No server is called so.
pub(crate) const GONE_BACK: &str = "gone back behind ";

/// How far the clocks of two servers differ, at most, milliseconds: a reservation that is further ahead says nothing of when it was made.
pub(crate) const SKEW_MS_MAX: i64 = 600_000;

/// Whose table the tags are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Keywright's own, `sql/mysql/keywright_store.sql`.
    Keywright,
    /// Meituan's Leaf.
    Leaf,
    /// The table of the Dewu article.
    IdGenerator,
    /// DiDi's tinyid.
    Tinyid,
}

impl Dialect {
    const ALL: [Self; 4] = [Self::Keywright, Self::Leaf, Self::IdGenerator, Self::Tinyid];

    /// The name used in settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keywright => "keywright",
            Self::Leaf => "leaf",
            Self::IdGenerator => "id_generator",
            Self::Tinyid => "tinyid",
        }
    }

    /// The dialect of that name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Whether it is Keywright's own.
    pub(crate) fn is_own(self) -> bool {
        self == Self::Keywright
    }

    /// What the table is usually called.
    pub(crate) fn default_table(self) -> &'static str {
        match self {
            Self::Keywright => "keywright_segment",
            Self::Leaf => "leaf_alloc",
            Self::IdGenerator => "id_generator",
            Self::Tinyid => "tiny_id_info",
        }
    }

    /// What the number in the row means. Leaf hands out `max_id − step ≤ id < max_id` (`SegmentIDGenImpl`: the value starts
    /// at `max_id − step` and must stay below `max_id`); tinyid `max_id − step < id ≤ max_id` (`SegmentId`: "(currentId,
    /// maxId]").
    pub(crate) fn ends(self) -> Ends {
        match self {
            Self::Keywright | Self::Leaf => Ends::NextId,
            Self::IdGenerator => Ends::Unknown,
            Self::Tinyid => Ends::LastId,
        }
    }

    /// The column with the tag's name.
    pub(crate) fn tag_column(self) -> &'static str {
        match self {
            Self::Keywright => "tag",
            Self::Leaf => "biz_tag",
            Self::IdGenerator => "biz_key",
            Self::Tinyid => "biz_type",
        }
    }

    /// The columns that a reservation needs, all under the same names in every dialect.
    fn columns(self) -> &'static str {
        match self {
            Self::Keywright => {
                "hi AS number, id_max, step, step_min, step_max, cover_s, refill_percent, \
                 server, reserved_ids, reserved_ms, rate_per_s, generation, key_space_id, dropped_ms, issue_order, \
                 start_id, heir, closed_in, hide_bits, hide_fingerprint"
            }
            Self::Leaf | Self::IdGenerator => {
                "max_id AS number, step, 0 AS generation, '' AS key_space_id"
            }
            Self::Tinyid => {
                "max_id AS number, step, delta, remainder, 0 AS generation, '' AS key_space_id"
            }
        }
    }

    /// The columns that the table of another system must have: those that are read, and those that are written.
    fn needed_columns(self) -> &'static [&'static str] {
        match self {
            Self::Keywright => &[],
            Self::Leaf => &["biz_tag", "max_id", "step"],
            Self::IdGenerator => &["biz_key", "max_id", "step", "version", "update_time"],
            Self::Tinyid => &[
                "biz_type",
                "max_id",
                "step",
                "delta",
                "remainder",
                "version",
                "update_time",
            ],
        }
    }

    /// What the reader can do where the server does not find `name`, if that is the table of another system, or a column that it must have.
    /// `init` makes neither.
    pub(crate) fn hint(self, table: &TableName, name: &str) -> Option<String> {
        let name = name.rsplit('.').next().unwrap_or(name);
        let columns = self.needed_columns();
        let is_its_own = !columns.is_empty() && name.eq_ignore_ascii_case(&table.table);
        (is_its_own || columns.contains(&name)).then(|| {
            format!(
                "dialect {} needs table {} with the columns {}",
                self.name(),
                table.plain(),
                columns.join(", ")
            )
        })
    }

    /// Reads when the server that wrote a row was found to be another one's predecessor.
    fn former(self) -> &'static str {
        match self {
            Self::Keywright => {
                ", (SELECT MAX(former.newest_ms) FROM keywright_former_server former WHERE former.server = mine.server) AS former_ms"
            }
            Self::Leaf | Self::IdGenerator | Self::Tinyid => "",
        }
    }

    /// Reads a tag's row; until the transaction ends nobody else can.
    pub(crate) fn select_row(self, table: &TableName, words: Words) -> String {
        let (now_ms, former) = (words.now_ms(), self.former());
        format!(
            "SELECT {}, {now_ms} AS now_ms{former} FROM {table} mine WHERE {} = ?{}",
            self.columns(),
            self.tag_column(),
            words.for_update()
        )
    }

    /// Reads the names, numbers, steps and orders of all tags that were not dropped, and where those of Keywright's own table end.
    pub(crate) fn select_all(self, table: &TableName) -> String {
        let (number, order, those) = match self {
            Self::Keywright => (
                "hi",
                ", id_max, issue_order, hide_bits, hide_fingerprint, server, reserved_ms",
                " WHERE dropped_ms IS NULL",
            ),
            Self::Leaf | Self::IdGenerator | Self::Tinyid => {
                ("max_id", ", 'distinct' AS issue_order", "")
            }
        };
        let (tag, former) = (self.tag_column(), self.former());
        format!(
            "SELECT {tag} AS tag, {number} AS number, step{order}{former} FROM {table} mine{those} ORDER BY {tag}"
        )
    }

    /// Reads the number of a tag that was not dropped, and in Keywright's own table its end and who wrote it: (tag).
    pub(crate) fn select_bound(self, table: &TableName) -> String {
        let (columns, those) = match self {
            Self::Keywright => ("hi AS number, id_max, server", " AND dropped_ms IS NULL"),
            Self::Leaf | Self::IdGenerator | Self::Tinyid => ("max_id AS number", ""),
        };
        let tag = self.tag_column();
        format!("SELECT {columns} FROM {table} WHERE {tag} = ?{those}")
    }

    /// Moves the number, if it is still what was read: (new number, tag, old number), in Keywright's own table preceded by
    /// who reserved, how many, when, and the highest rate, and followed by the generation.
    pub(crate) fn update_row(self, table: &TableName) -> String {
        match self {
            Self::Keywright => format!(
                "UPDATE {table} SET server = ?, reserved_ids = ?, reserved_ms = ?, rate_per_s = ?, hi = ? \
                 WHERE tag = ? AND hi = ? AND generation = ? AND heir IS NULL"
            ),
            Self::Leaf => {
                format!("UPDATE {table} SET max_id = ? WHERE biz_tag = ? AND max_id = ?")
            }
            Self::IdGenerator => format!(
                "UPDATE {table} SET update_time = NOW(), version = version + 1, max_id = ? \
                 WHERE biz_key = ? AND max_id = ?"
            ),
            Self::Tinyid => format!(
                "UPDATE {table} SET update_time = NOW(), version = version + 1, max_id = ? \
                 WHERE biz_type = ? AND max_id = ?"
            ),
        }
    }

    /// Moves the number on where a rest is used, as [`Dialect::update_row`] does, if it is still what was read: (new number, tag, old
    /// number), in Keywright's own table followed by the generation. Who reserved last, how many and when stays there: it is not a reservation.
    pub(crate) fn pass_row(self, table: &TableName) -> String {
        match self {
            Self::Keywright => format!(
                "UPDATE {table} SET hi = ? WHERE tag = ? AND hi = ? AND generation = ? AND heir IS NULL"
            ),
            Self::Leaf | Self::IdGenerator | Self::Tinyid => self.update_row(table),
        }
    }

    /// Moves the number without a reservation, as [`Dialect::update_row`] does; in Keywright's own table preceded by the server
    /// only, so that no gap is left out for what somebody else wrote. `ends_gap`: a gap was left out with it, so that nothing is missing now. Else it says nothing
    /// of when ids were reserved, and how fast they go.
    pub(crate) fn advance_row(self, table: &TableName, words: Words, ends_gap: bool) -> String {
        let now_ms = words.now_ms();
        match self {
            Self::Keywright => {
                let last = match ends_gap {
                    true => format!("reserved_ids = 0, reserved_ms = {now_ms}"),
                    false => format!(
                        "reserved_ids = COALESCE(reserved_ids, 0), reserved_ms = COALESCE(reserved_ms, {now_ms})"
                    ),
                };
                format!(
                    "UPDATE {table} SET server = ?, {last}, rate_per_s = COALESCE(rate_per_s, 0), hi = ? \
                     WHERE tag = ? AND hi = ?"
                )
            }
            Self::Leaf | Self::IdGenerator | Self::Tinyid => self.update_row(table),
        }
    }
}

/// A table's name, quoted when written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableName {
    schema: Option<String>,
    table: String,
    quote: char,
}

impl TableName {
    /// Longest name of a table or schema, characters.
    const CHARS_MAX: usize = 64;

    /// `table` or `schema.table`, of ASCII letters, digits, `_` and `$`; and how an engine quotes names.
    pub(crate) fn parse(text: &str, quote: char) -> Option<Self> {
        let part = |text: &str| {
            let fits = (1..=Self::CHARS_MAX).contains(&text.len());
            let plain = text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$');
            (fits && plain).then(|| text.to_owned())
        };
        match text.split_once('.') {
            Some((schema, table)) => Some(Self {
                schema: Some(part(schema)?),
                table: part(table)?,
                quote,
            }),
            None => Some(Self {
                schema: None,
                table: part(text)?,
                quote,
            }),
        }
    }

    /// The same without its schema, where that is the one of the connection: rests are kept by the name, and one table is to have one.
    pub(crate) fn within(self, schema: Option<&str>) -> Self {
        match self.schema.as_deref() == schema {
            true => Self {
                schema: None,
                ..self
            },
            false => self,
        }
    }

    /// Without quotes, as in settings.
    pub(crate) fn plain(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.table),
            None => self.table.clone(),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = self.quote;
        if let Some(schema) = &self.schema {
            write!(formatter, "{quote}{schema}{quote}.")?;
        }
        write!(formatter, "{quote}{}{quote}", self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, TableName, Words};

    #[test]
    fn what_the_table_of_another_system_lacks_is_told_and_not_to_run_init() {
        let table = TableName::parse("ids.numbers", '`').unwrap();
        let hint = |dialect: Dialect, name| dialect.hint(&table, name);
        let told = "dialect id_generator needs table ids.numbers with the columns biz_key, max_id, step, version, update_time";
        for name in ["biz_key", "version", "ids.numbers", "ids.NUMBERS"] {
            assert_eq!(
                hint(Dialect::IdGenerator, name).as_deref(),
                Some(told),
                "{name}"
            );
        }
        // Those of tables that init makes.
        for name in ["expires_ms", "ids.keywright_worker"] {
            assert_eq!(hint(Dialect::Leaf, name), None, "{name}");
        }
        for name in ["max_id", "ids.numbers"] {
            assert_eq!(hint(Dialect::Keywright, name), None, "{name}");
        }
    }

    /// Statements name no column that is not asked for.
    #[test]
    fn the_columns_that_are_needed_are_those_of_the_statements() {
        let table = TableName::parse("numbers", '`').unwrap();
        for dialect in Dialect::ALL {
            let statements = [
                dialect.select_row(&table, Words::MySql),
                dialect.select_all(&table),
                dialect.select_bound(&table),
                dialect.update_row(&table),
            ]
            .join(" ");
            for column in dialect.needed_columns() {
                assert!(statements.contains(column), "{dialect:?}: {column}");
            }
            let is_needed = |column| dialect.needed_columns().contains(&column);
            for column in ["version", "update_time", "delta", "remainder"] {
                let is_named = !dialect.is_own() && statements.contains(column);
                assert_eq!(is_named, is_needed(column), "{dialect:?}: {column}");
            }
        }
    }

    #[test]
    fn names_are_plain_and_quoted() {
        let name = |text| TableName::parse(text, '`').map(|name| name.to_string());
        assert_eq!(name("leaf_alloc").as_deref(), Some("`leaf_alloc`"));
        assert_eq!(
            name("ids.leaf_alloc").as_deref(),
            Some("`ids`.`leaf_alloc`")
        );
        for bad in ["", "a`b", "a.b.c", "a b", ".a", "a."] {
            assert_eq!(name(bad), None, "{bad}");
        }
    }
}
