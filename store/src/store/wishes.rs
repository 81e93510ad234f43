//! What each proxy's configuration wanted for a rule when that was in force: only what is new is a reason to switch.

use keywright_core::Tag;
use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::switch_rows::tag;
use super::{AsyncTalk, Link, StoreError, column};
use crate::switch::{RuleName, Wish};

/// All that was wished, and where.
#[derive(Debug)]
pub(crate) struct ReadWishes;

impl AsyncTalk<Vec<(String, Wish)>> for ReadWishes {
    async fn with(self, link: &mut Link) -> Result<Vec<(String, Wish)>, StoreError> {
        let select = "SELECT place, table_pattern, column_name, tag FROM keywright_wish";
        let rows: Vec<Row> = link.conn.query(select).await?;
        rows.iter()
            .map(|row| {
                let rule = RuleName {
                    tables: column(row, "table_pattern")?,
                    column: column(row, "column_name")?,
                };
                let tag = tag(row, "tag")?;
                Ok((column(row, "place")?, Wish { rule, tag }))
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
        let Wish { rule, tag } = &self.wish;
        let tag = tag.as_ref().map(Tag::as_str);
        let write = "INSERT INTO keywright_wish (place, table_pattern, column_name, tag) VALUES (?, ?, ?, ?) \
                     ON DUPLICATE KEY UPDATE tag = ?";
        let values = (&self.place, &rule.tables, &rule.column, tag, tag);
        link.conn.exec_drop(write, values).await?;
        Ok(())
    }
}
