//! Key columns of the tables that rules are for.

use std::collections::HashSet;

use anyhow::Result;
use keywright_rewrite::{Flavour, quote_name, quote_string};
use keywright_session::{Rules, SeenTable, Sighting};
use keywright_store::{KeyKind, KeySpec, OWN_TABLES};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use crate::config::{Config, Configured};
use crate::handshake::server_of;

/// Schemas that belong to the server.
pub(super) const OWN_SCHEMAS: &str = "'mysql', 'information_schema', 'performance_schema', 'sys'";
/// The column of a rule in one of its tables.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// Which of the rules.
    pub rule: usize,
    /// The table's schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The column.
    pub name: String,
    /// Its type as the server writes it, in lower case.
    pub data_type: String,
    /// Characters of a column of text.
    pub length: u64,
    /// Whether it is AUTO_INCREMENT.
    pub auto_increment: bool,
    /// The AUTO_INCREMENT from which on the server makes no key for this column.
    pub fence: u64,
    /// Whether that is what the table has.
    pub fenced: bool,
    /// The next id that the server would make, as far as it tells.
    pub counter: Option<u64>,
    /// The table's engine.
    pub engine: String,
}

/// Whether the server compares names of schemas and tables without case (`lower_case_table_names`).
///
/// # Errors
/// The server cannot be asked.
pub async fn lower_case(server: &mut Conn) -> Result<bool> {
    let setting: Option<u64> = server
        .query_first("SELECT @@lower_case_table_names")
        .await?;
    Ok(setting != Some(0))
}

/// The key columns of all tables with a rule but the store's own, in the order of schema and table.
///
/// # Errors
/// The server cannot be asked.
pub async fn key_columns(server: &mut Conn, rules: &Rules) -> Result<Vec<Column>> {
    Ok(key_columns_and_keyless(server, rules).await?.0)
}

/// The same, and the tables that match a rule and have no column of its name.
pub(super) async fn key_columns_and_keyless(
    server: &mut Conn,
    rules: &Rules,
) -> Result<(Vec<Column>, Vec<SeenTable>)> {
    // MySQL remembers figures of tables for a day unless told otherwise; MariaDB has no such setting.
    let _ = server
        .query_drop("SET SESSION information_schema_stats_expiry = 0")
        .await;
    let rows: Vec<Row> = server
        .query(format!(
            "SELECT c.table_schema, c.table_name, c.column_name, c.column_type, c.character_maximum_length, c.extra, \
             t.auto_increment, t.engine \
             FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) \
             WHERE t.table_type = 'BASE TABLE' AND c.table_schema NOT IN ({OWN_SCHEMAS}) \
             ORDER BY c.table_schema, c.table_name"
        ))
        .await?;
    let rows: Vec<Row> = rows
        .into_iter()
        .filter(|row| !OWN_TABLES.contains(&text(row, 1).as_str()))
        .collect();
    let flavour = flavour(server).await?;
    let columns = rows.iter().filter_map(|row| column(row, rules, flavour));
    let columns: Vec<Column> = columns.collect();
    let with_key: HashSet<(&str, &str)> = columns
        .iter()
        .map(|column| (column.schema.as_str(), column.table.as_str()))
        .collect();
    let mut tables: Vec<(String, String)> = rows
        .iter()
        .map(|row| (text(row, 0), text(row, 1)))
        .collect();
    tables.dedup();
    tables.retain(|(schema, table)| {
        rules.find(schema.as_bytes(), table.as_bytes()).is_some()
            && !with_key.contains(&(schema, table))
    });
    let without = tables.into_iter().map(|(schema, name)| SeenTable {
        schema,
        name,
        sighting: Sighting::Without,
    });
    Ok((columns, without.collect()))
}

/// A column's type and length out of a row of which they are the last two.
pub(super) fn text(row: &Row, index: usize) -> String {
    let value: Option<Option<String>> = row.get(index);
    value.flatten().unwrap_or_default()
}

pub(super) fn number(row: &Row, index: usize) -> Option<u64> {
    row.get::<Option<u64>, usize>(index).flatten()
}

/// The columns with which an index begins, as [`Column::full_name`] has them: their largest value is found at once.
///
/// # Errors
/// The server cannot be asked.
pub async fn first_of_indexes(server: &mut Conn) -> Result<HashSet<[String; 3]>> {
    let rows: Vec<Row> = server
        .query(format!(
            "SELECT table_schema, table_name, column_name FROM information_schema.statistics \
             WHERE seq_in_index = 1 AND table_schema NOT IN ({OWN_SCHEMAS})"
        ))
        .await?;
    let names = rows
        .iter()
        .map(|row| [0, 1, 2].map(|index| text(row, index)));
    Ok(names.collect())
}

async fn flavour(server: &mut Conn) -> Result<Flavour> {
    let version: Option<String> = server.query_first("SELECT VERSION()").await?;
    let version = version.unwrap_or_default();
    Ok(server_of(version.as_bytes()).map_or(Flavour::MySql, |server| server.flavour))
}

fn column(row: &Row, rules: &Rules, flavour: Flavour) -> Option<Column> {
    let (schema, table, name) = (text(row, 0), text(row, 1), text(row, 2));
    let (rule, its) = rules.find(schema.as_bytes(), table.as_bytes())?;
    let column = its.column.eq_ignore_ascii_case(&name).then(|| Column {
        rule,
        schema,
        table,
        name,
        data_type: text(row, 3).to_lowercase(),
        length: number(row, 4).unwrap_or(0),
        auto_increment: text(row, 5).contains("auto_increment"),
        fence: u64::MAX,
        fenced: false,
        counter: number(row, 6),
        engine: text(row, 7),
    })?;
    let fence = column.fence_on(flavour);
    Some(Column {
        fence,
        fenced: column.counter == Some(fence),
        ..column
    })
}

impl Column {
    /// `` `schema`.`table` ``
    pub fn quoted_table(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }

    /// Schema, table and column.
    pub fn full_name(&self) -> [String; 3] {
        [&self.schema, &self.table, &self.name].map(String::clone)
    }

    /// `` `column` ``
    pub fn quoted_name(&self) -> String {
        quoted(&self.name)
    }

    /// The largest number that a column of integers holds; `None` for others.
    pub fn integer_max(&self) -> Option<u64> {
        let kind = &self.data_type;
        let bits = [("tinyint", 8), ("smallint", 16), ("mediumint", 24)]
            .into_iter()
            .chain([("int", 32), ("bigint", 64)])
            .find(|(name, _)| kind.starts_with(name))
            .map(|(_, bits): (&str, u32)| bits)?;
        let signed = u32::from(!kind.contains("unsigned"));
        Some(u64::MAX >> (64 - bits + signed))
    }

    /// Whether it has a counter, of an engine that keeps no fence.
    pub(super) fn lacks_engine(&self) -> bool {
        self.auto_increment && !self.engine.eq_ignore_ascii_case("InnoDB")
    }

    /// InnoDB refuses every generation from its largest number on. MariaDB, when it opens a table anew, as after a restart,
    /// believes in no number further than one above the column's largest, and begins behind the highest id instead; that one
    /// it refuses too.
    fn fence_on(&self, flavour: Flavour) -> u64 {
        match (flavour, self.integer_max()) {
            (Flavour::MariaDb, Some(max)) => max.saturating_add(1),
            (Flavour::MariaDb, None) | (Flavour::MySql, _) => u64::MAX,
        }
    }

    /// What keeps the keys of a rule from fitting in, if anything.
    pub(crate) fn lacks_room(&self, configured: &Configured) -> Option<String> {
        let kind = &self.data_type;
        match configured.spec.kind() {
            KeyKind::Number => {
                let bits_max = configured.rule.bits_max;
                let largest = u64::MAX >> 64_u32.saturating_sub(bits_max);
                let has_room = self.integer_max().is_some_and(|max| max >= largest);
                (!has_room).then(|| {
                    format!(
                        "is {kind}, which has no room for keys of {bits_max} bits: make it bigint, or lower bits_max"
                    )
                })
            }
            KeyKind::Text { chars } => {
                let has_room = match kind.split('(').next() {
                    Some("uuid") => matches!(configured.spec, KeySpec::Uuid { .. }),
                    // As long as the longest of their members, and hold no others.
                    Some("enum" | "set") => false,
                    Some(_) | None => self.length >= u64::from(chars),
                };
                (!has_room).then(|| format!("is {kind}, and keys have {chars} characters"))
            }
            KeyKind::Bytes16 => {
                let has_room = kind.starts_with("binary(16)")
                    || kind.starts_with("varbinary") && self.length >= 16;
                (!has_room).then(|| format!("is {kind}, and keys have 16 bytes"))
            }
        }
    }
}

/// A name between backquotes.
pub(crate) fn quoted(name: &str) -> String {
    let mut out = Vec::new();
    quote_name(name.as_bytes(), &mut out);
    // Quoting adds ASCII, so nothing is lost.
    String::from_utf8_lossy(&out).into_owned()
}

/// A string between quotation marks, for sessions whose `sql_mode` is the default.
pub(crate) fn quoted_string(text: &str) -> String {
    let mut out = Vec::new();
    quote_string(text.as_bytes(), true, &mut out);
    // As above.
    String::from_utf8_lossy(&out).into_owned()
}

/// The columns of rules that are still there, with these.
pub(super) fn with_rule<'a>(
    config: &'a Config,
    columns: &'a [Column],
) -> impl Iterator<Item = (&'a Configured, &'a Column)> {
    columns
        .iter()
        .filter_map(|column| Some((config.rules.get(column.rule)?, column)))
}

#[cfg(test)]
mod tests {
    use super::Column;
    use crate::config::Config;

    #[test]
    fn columns_of_text_and_bytes_have_room_or_not() {
        for (key, data_type, length, has_room) in [
            ("uuid_v7", "char(36)", 36, true),
            ("uuid_v7", "char(35)", 35, false),
            ("uuid_v7:text32", "uuid", 0, true),
            ("readable:ORD", "uuid", 0, false),
            ("readable:ORD", "varchar(27)", 27, true),
            (
                "readable:ORD",
                "enum('of these, none is one of ours')",
                32,
                false,
            ),
            ("uuid_v4:bytes16", "binary(16)", 16, true),
            ("uuid_v4:bytes16", "varbinary(16)", 16, true),
            ("uuid_v4:bytes16", "varbinary(15)", 15, false),
            ("uuid_v4:bytes16", "char(36)", 36, false),
            ("uuid_v4", "bigint", 0, false),
        ] {
            let text = format!(
                "[store]\nurl = \"mysql://k@127.0.0.1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\n\
                 upstream = \"127.0.0.1:2\"\n[[rule]]\ntable = \"d.t\"\ncolumn = \"id\"\nkey = \"{key}\"\n"
            );
            let config = Config::parse(&text).unwrap();
            let column = Column {
                data_type: data_type.to_owned(),
                length,
                ..Column::default()
            };
            let lack = column.lacks_room(&config.rules[0]);
            assert_eq!(lack.is_none(), has_room, "{key} in {data_type}: {lack:?}");
        }
    }

    #[test]
    fn integers_have_their_limits() {
        for (data_type, max) in [
            ("tinyint(4)", Some(127)),
            ("tinyint unsigned", Some(255)),
            ("smallint(6)", Some(32_767)),
            ("mediumint(9) unsigned", Some(16_777_215)),
            ("int(11)", Some(2_147_483_647)),
            ("int unsigned", Some(4_294_967_295)),
            ("bigint(20)", Some(9_223_372_036_854_775_807)),
            ("bigint unsigned", Some(u64::MAX)),
            ("char(36)", None),
            ("decimal(20,0)", None),
        ] {
            let data_type = data_type.to_owned();
            let column = Column {
                data_type,
                ..Column::default()
            };
            assert_eq!(column.integer_max(), max, "{}", column.data_type);
        }
    }
}
