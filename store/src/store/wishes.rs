//! What each proxy's configuration wanted for a rule when that was in force: only what is new is a reason to switch.

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::switch_rows::key_space;
use super::{AsyncTalk, Link, StoreError, column};
use crate::switch::space::KeySpace;
use crate::switch::state::{RuleName, Wish};

/// All that was wished, and where.
#[derive(Debug)]
pub(crate) struct ReadWishes;

impl AsyncTalk<Vec<(String, Wish)>> for ReadWishes {
    async fn with(self, link: &mut Link) -> Result<Vec<(String, Wish)>, StoreError> {
        let select = "SELECT place, table_pattern, column_name, key_space FROM keywright_wish";
        let rows: Vec<Row> = link.conn.query(select).await?;
        rows.iter()
            .map(|row| {
                let rule = RuleName {
                    tables: column(row, "table_pattern")?,
                    column: column(row, "column_name")?,
                };
                let keys = key_space(row, "key_space")?;
                Ok((column(row, "place")?, Wish { rule, keys }))
            })
            .collect()
    }
}

/// Records a wish that is in force.
#[derive(Debug)]
pub(crate) struct RecordWish {
    pub(crate) place: String,
    pub(crate) wish: Wish,
}

impl AsyncTalk<()> for RecordWish {
    async fn with(self, link: &mut Link) -> Result<(), StoreError> {
        let Wish { rule, keys } = &self.wish;
        let keys = keys.as_ref().map(KeySpace::to_string);
        let write = "INSERT INTO keywright_wish (place, table_pattern, column_name, key_space) VALUES (?, ?, ?, ?) \
                     ON DUPLICATE KEY UPDATE key_space = ?";
        let values = (&self.place, &rule.tables, &rule.column, &keys, &keys);
        link.conn.exec_drop(write, values).await?;
        Ok(())
    }
}
