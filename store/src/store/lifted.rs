//! The tables that number their rows natively again, behind a fence that was lifted: recorded, read and forgotten.
//!
//! The counter of a column whose numbers are used up comes to where the fence would be, and nothing on the server tells the one from the other, once the
//! last rows are deleted. Whoever lifted it would have the server make ids of these rows again. So what is recorded here is no fence. It is forgotten
//! in the transaction behind which a table is fenced, so that a fence which an attempt leaves behind is lifted all the same.
//!
//! A store that was restored may have too few of these, and then an end is taken for a fence, until tables were seen without one; or too many, of tables
//! that were fenced since: such a fence stays until somebody lifts it by hand, and refuses ids meanwhile.

use std::collections::BTreeSet;

use super::fence_records::{forget_lifted, place_of};
use super::switch_rows::lock;
use super::{Link, StoreError, Transaction, column, values};
use crate::switch::state::{Phase, TableName};

/// Rows that one statement writes at most.
const ROWS_MAX: usize = 100;

/// What is recorded of a server's tables.
#[derive(Debug)]
pub(crate) struct ReadLifted {
    pub(crate) server: String,
}

impl Transaction<BTreeSet<TableName>> for ReadLifted {
    async fn run(&self, link: &mut Link) -> Result<BTreeSet<TableName>, StoreError> {
        let select = "SELECT schema_name, table_name FROM keywright_lifted WHERE server = ?";
        let rows = link.rows(select, values![&self.server]).await?;
        let mut found = BTreeSet::new();
        for row in &rows {
            found.insert((column(row, "schema_name")?, column(row, "table_name")?));
        }
        Ok(found)
    }
}

/// Records tables of a server that were seen without a fence, or whose fence was lifted, while this attempt was the last one, and in this phase. False: another
/// one has come since, and may have fenced them.
#[derive(Debug)]
pub(crate) struct NoteLifted {
    pub(crate) attempt: u64,
    pub(crate) phase: Phase,
    pub(crate) server: String,
    pub(crate) tables: BTreeSet<TableName>,
}

impl Transaction<bool> for NoteLifted {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        link.begin().await?;
        let locked = lock(link).await?;
        let stands = locked.attempt == self.attempt && locked.phase == self.phase;
        if stands {
            self.write(link).await?;
        }
        link.end(stands).await?;
        Ok(stands)
    }
}

impl NoteLifted {
    async fn write(&self, link: &mut Link) -> Result<(), StoreError> {
        let all: Vec<&TableName> = self.tables.iter().collect();
        for tables in all.chunks(ROWS_MAX) {
            let rows = vec!["(?, ?, ?)"; tables.len()].join(", ");
            let write = link.words().insert_new(&format!(
                "keywright_lifted (server, schema_name, table_name) VALUES {rows}"
            ));
            let mut values = Vec::new();
            for table in tables {
                values.extend(place_of(&self.server, table));
            }
            link.change(write, values).await?;
        }
        Ok(())
    }
}

/// Tables are not there any more: one that comes in their place, as out of a dump, may have a fence.
#[derive(Debug)]
pub(crate) struct ForgetLifted {
    pub(crate) server: String,
    pub(crate) tables: BTreeSet<TableName>,
}

impl Transaction<()> for ForgetLifted {
    /// Each by itself: what is still there is forgotten by the next look.
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        for table in &self.tables {
            forget_lifted(&self.server, table, link).await?;
        }
        Ok(())
    }
}
