//! Rows of information_schema.

use mysql_async::Row;

/// Schemas that belong to the server.
pub(super) const OWN_SCHEMAS: &str = "'mysql', 'information_schema', 'performance_schema', 'sys'";

/// A schema and a name in it, as the server writes them.
pub(super) type Name = (String, String);

/// The text in a column; empty where there is none.
pub(super) fn text(row: &Row, index: usize) -> String {
    let value: Option<Option<String>> = row.get(index);
    value.flatten().unwrap_or_default()
}

pub(super) fn number(row: &Row, index: usize) -> Option<u64> {
    row.get::<Option<u64>, usize>(index).flatten()
}
