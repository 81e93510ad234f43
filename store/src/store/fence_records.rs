//! The rows that say which tables have their fence by which rule: written, and deleted.

use super::{Link, StoreError, Value, values};
use crate::switch::fenced::FencedTable;
use crate::switch::state::TableName;

/// Rows that one statement writes at most.
const ROWS_MAX: usize = 100;

/// What a table's row is found by.
pub(super) fn place(table: &FencedTable) -> Vec<Value> {
    values![&table.server, &table.schema, &table.table]
}

/// Records a table, or records it anew: it is to have its fence.
pub(super) async fn record(table: &FencedTable, link: &mut Link) -> Result<(), StoreError> {
    let write = format!(
        "INSERT INTO keywright_fenced (server, schema_name, table_name, table_pattern, column_name, key_space) \
         VALUES (?, ?, ?, ?, ?, ?) {} table_pattern = ?, column_name = ?, key_space = ?",
        link.words().or_update("server, schema_name, table_name")
    );
    let FencedTable { rule, keys, .. } = table;
    let mut values = place(table);
    values.extend(values![&rule.tables, &rule.column, keys.to_string()]);
    values.extend(values![&rule.tables, &rule.column, keys.to_string()]);
    link.change(write, values).await?;
    let name = (table.schema.clone(), table.table.clone());
    forget_lifted(&table.server, &name, link).await
}

/// The attempt is in force: of its tables these have their fence, by the rules that they have now.
pub(super) async fn record_all(
    attempt: u64,
    tables: &[FencedTable],
    link: &mut Link,
) -> Result<(), StoreError> {
    forget_tables(attempt, link).await?;
    forget_lifted_of(attempt, link).await?;
    for tables in tables.chunks(ROWS_MAX) {
        let rows = vec!["(?, ?, ?, ?, ?, ?)"; tables.len()].join(", ");
        let write = format!(
            "INSERT INTO keywright_fenced (server, schema_name, table_name, table_pattern, column_name, key_space) VALUES {rows}"
        );
        let mut values = Vec::new();
        for table in tables {
            let FencedTable { rule, keys, .. } = table;
            values.extend(place(table));
            values.extend(values![&rule.tables, &rule.column, keys.to_string()]);
        }
        link.change(write, values).await?;
    }
    Ok(())
}

/// The attempt's rules are native again: fences that are left of them say nothing any more.
pub(super) async fn forget_all(attempt: u64, link: &mut Link) -> Result<(), StoreError> {
    forget_tables(attempt, link).await?;
    let of_rules = "DELETE FROM keywright_fenced WHERE EXISTS (SELECT 1 FROM keywright_rule r \
                    WHERE r.table_pattern = keywright_fenced.table_pattern \
                    AND r.column_name = keywright_fenced.column_name AND r.attempt = ?)";
    link.change(of_rules, values![attempt]).await?;
    Ok(())
}

/// Forgets the tables of an attempt.
async fn forget_tables(attempt: u64, link: &mut Link) -> Result<(), StoreError> {
    let forget = "DELETE FROM keywright_fenced WHERE EXISTS (SELECT 1 FROM keywright_switch_table t \
                  WHERE t.server = keywright_fenced.server AND t.schema_name = keywright_fenced.schema_name \
                  AND t.table_name = keywright_fenced.table_name AND t.attempt = ?)";
    link.change(forget, values![attempt]).await?;
    Ok(())
}

/// What the row of a table whose fence was lifted is found by.
pub(super) fn place_of(server: &str, (schema, table): &TableName) -> Vec<Value> {
    values![server, schema, table]
}

/// A table is to be fenced: that its fence was lifted is forgotten.
pub(super) async fn forget_lifted(
    server: &str,
    table: &TableName,
    link: &mut Link,
) -> Result<(), StoreError> {
    let forget =
        "DELETE FROM keywright_lifted WHERE server = ? AND schema_name = ? AND table_name = ?";
    link.change(forget, place_of(server, table)).await?;
    Ok(())
}

/// The same of all tables of an attempt: they have keys from now on, or are to lose their fence.
pub(super) async fn forget_lifted_of(attempt: u64, link: &mut Link) -> Result<(), StoreError> {
    let forget = "DELETE FROM keywright_lifted WHERE EXISTS (SELECT 1 FROM keywright_switch_table t \
                  WHERE t.server = keywright_lifted.server AND t.schema_name = keywright_lifted.schema_name \
                  AND t.table_name = keywright_lifted.table_name AND t.attempt = ?)";
    link.change(forget, values![attempt]).await?;
    Ok(())
}
