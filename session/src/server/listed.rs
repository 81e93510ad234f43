//! Tables that the last schema refresh has shown, for connections whose rules are older: they go by the tables of their beginning.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::rules::in_lower_case;
use crate::server::met_table::MetTable;

/// What the last schema refresh of one server has shown: tables with the columns of their rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListedTables {
    server: Arc<[u8]>,
    lower_case: bool,
    /// Schema, name as the server compares them, and column.
    tables: BTreeSet<(String, String, String)>,
}

impl ListedTables {
    /// Of this server, in the words of the store: schema, name, and the column of the rule. `lower_case`: whether it compares names without case.
    pub fn new<'a>(
        server: &[u8],
        lower_case: bool,
        tables: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Self {
        let mut listed = Self {
            server: Arc::from(server),
            lower_case,
            tables: BTreeSet::new(),
        };
        for (schema, name, column) in tables {
            let table = (listed.name(schema), listed.name(name), column.to_owned());
            listed.tables.insert(table);
        }
        listed
    }

    /// Its server; empty where none was read.
    pub fn server(&self) -> &Arc<[u8]> {
        &self.server
    }

    /// Whether a table is one of these.
    pub(super) fn has(&self, table: &MetTable) -> bool {
        if self.server != table.server {
            return false;
        }
        let (schema, name) = (self.name(&table.schema), self.name(&table.name));
        self.tables.contains(&(schema, name, table.column.clone()))
    }

    /// A name as the server compares it.
    fn name(&self, name: &str) -> String {
        match self.lower_case {
            true => in_lower_case(name),
            false => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ListedTables, MetTable};

    fn table(server: &str, schema: &str, name: &str, column: &str) -> MetTable {
        MetTable {
            server: Arc::from(server.as_bytes()),
            schema: schema.to_owned(),
            name: name.to_owned(),
            column: column.to_owned(),
        }
    }

    #[test]
    fn tables_are_told_apart_as_their_server_does() {
        let tables = [("Shop", "Orders", "id")];
        let with_case = ListedTables::new(b"s", false, tables.into_iter());
        let without_case = ListedTables::new(b"s", true, tables.into_iter());
        for (table, is_with, is_without) in [
            (table("s", "Shop", "Orders", "id"), true, true),
            (table("s", "shop", "ORDERS", "id"), false, true),
            (table("t", "Shop", "Orders", "id"), false, false),
            (table("s", "Shop", "Orders", "nr"), false, false),
            (table("s", "Shop", "Items", "id"), false, false),
        ] {
            assert_eq!(with_case.has(&table), is_with, "{table:?}");
            assert_eq!(without_case.has(&table), is_without, "{table:?}");
        }
    }
}
