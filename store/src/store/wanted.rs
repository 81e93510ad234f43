//! What each proxy's configuration wanted for a rule when that was in force: only what is new is a reason to switch.

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::switch_rows::key_space;
use super::{Link, StoreError, Transaction, column};
use crate::switch::space::KeySpace;
use crate::switch::state::{RuleName, WantedKeys};

/// All that configurations want, and where.
#[derive(Debug)]
pub(crate) struct ReadWanted;

impl Transaction<Vec<(String, WantedKeys)>> for ReadWanted {
    async fn run(self, link: &mut Link) -> Result<Vec<(String, WantedKeys)>, StoreError> {
        let select = "SELECT place, table_pattern, column_name, key_space FROM keywright_wanted";
        let rows: Vec<Row> = link.conn.query(select).await?;
        rows.iter()
            .map(|row| {
                let rule = RuleName {
                    tables: column(row, "table_pattern")?,
                    column: column(row, "column_name")?,
                };
                let keys = key_space(row, "key_space")?;
                Ok((column(row, "place")?, WantedKeys { rule, keys }))
            })
            .collect()
    }
}

/// Records what a configuration wants, once it is in force.
#[derive(Debug)]
pub(crate) struct RecordWanted {
    pub(crate) place: String,
    pub(crate) wanted: WantedKeys,
}

impl Transaction<()> for RecordWanted {
    async fn run(self, link: &mut Link) -> Result<(), StoreError> {
        let WantedKeys { rule, keys } = &self.wanted;
        let keys = keys.as_ref().map(KeySpace::to_string);
        let write = "INSERT INTO keywright_wanted (place, table_pattern, column_name, key_space) VALUES (?, ?, ?, ?) \
                     ON DUPLICATE KEY UPDATE key_space = ?";
        let values = (&self.place, &rule.tables, &rule.column, &keys, &keys);
        link.conn.exec_drop(write, values).await?;
        Ok(())
    }
}
