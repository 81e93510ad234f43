//! Which tables have their fence by which rule: recorded when the switch has come into force, and when a table gets its fence later.

use super::fence_records::{place, record};
use super::late::DropReserved;
use super::switch_rows::{key_space, lock, rules};
use super::{Link, Row, StoreError, Transaction, column, values};
use crate::switch::fenced::{FencedTable, Origin, origin};
use crate::switch::state::{Dropped, InForce, Phase, RuleName};

/// All that is recorded of a server's tables, or of those of all servers.
#[derive(Debug)]
pub(crate) struct ReadFenced {
    pub(crate) server: Option<String>,
}

impl Transaction<Vec<FencedTable>> for ReadFenced {
    async fn run(&self, link: &mut Link) -> Result<Vec<FencedTable>, StoreError> {
        let (those, values) = match &self.server {
            Some(server) => ("WHERE server = ? ", values![server]),
            None => ("", Vec::new()),
        };
        let select = format!(
            "SELECT server, schema_name, table_name, table_pattern, column_name, key_space FROM keywright_fenced \
             {those}ORDER BY server, schema_name, table_name"
        );
        let rows = link.rows(select, values).await?;
        rows.iter().map(fenced).collect()
    }
}

fn fenced(row: &Row) -> Result<FencedTable, StoreError> {
    let keys = key_space(row, "key_space")?.ok_or_else(|| StoreError::Column {
        column: "key_space".to_owned(),
        value: "nothing".to_owned(),
    })?;
    Ok(FencedTable {
        server: column(row, "server")?,
        schema: column(row, "schema_name")?,
        table: column(row, "table_name")?,
        rule: RuleName {
            tables: column(row, "table_pattern")?,
            column: column(row, "column_name")?,
        },
        keys,
    })
}

/// A table is to get its fence, or has brought one: it is recorded, and keys below its ids that were reserved are given no more. Whoever comes second
/// finds the record, and drops nothing.
#[derive(Debug)]
pub(crate) struct Admit {
    /// Of the table's keys.
    pub(crate) dropping: DropReserved,
    pub(crate) table: FencedTable,
    /// It has a fence.
    pub(crate) is_fenced: bool,
}

impl Transaction<Dropped> for Admit {
    async fn run(&self, link: &mut Link) -> Result<Dropped, StoreError> {
        link.begin().await?;
        let admitted = self.admit(link).await?;
        let is_kept = match admitted {
            Dropped::All(_) | Dropped::Nothing => true,
            Dropped::Not => false,
        };
        link.end(is_kept).await?;
        Ok(admitted)
    }
}

impl Admit {
    async fn admit(&self, link: &mut Link) -> Result<Dropped, StoreError> {
        let locked = lock(link).await?;
        let known = rules(link, None).await?;
        let known: Vec<InForce> = known.into_iter().map(|(rule, _)| rule).collect();
        let table = &self.table;
        let gives =
            |rule: &InForce| rule.rule == table.rule && rule.keys.as_ref() == Some(&table.keys);
        if locked.phase != Phase::None || !known.iter().any(gives) {
            return Ok(Dropped::Not);
        }
        let recorded = of_table(table, link).await?;
        match origin(table, recorded.as_ref(), &known) {
            Origin::Others(..) => return Ok(Dropped::Not),
            Origin::Known if self.is_fenced => return Ok(Dropped::Nothing),
            // Without a fence it may be another table of that name.
            Origin::Known | Origin::Brought => {}
        }
        let dropped = self.dropping.drop_reserved(link).await?;
        match dropped {
            Dropped::All(_) | Dropped::Nothing => record(table, link).await?,
            Dropped::Not => {}
        }
        Ok(dropped)
    }
}

async fn of_table(table: &FencedTable, link: &mut Link) -> Result<Option<FencedTable>, StoreError> {
    let select = "SELECT server, schema_name, table_name, table_pattern, column_name, key_space FROM keywright_fenced \
                  WHERE server = ? AND schema_name = ? AND table_name = ?";
    let row = link.first(select, place(table)).await?;
    row.as_ref().map(fenced).transpose()
}

/// A table is not there any more: one that comes in its place brings its fence, if it has one.
#[derive(Debug)]
pub(crate) struct ForgetFenced {
    /// Only if this is recorded of it still.
    pub(crate) table: FencedTable,
}

impl Transaction<()> for ForgetFenced {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let forget = "DELETE FROM keywright_fenced WHERE server = ? AND schema_name = ? AND table_name = ? \
                      AND table_pattern = ? AND column_name = ? AND key_space = ?";
        let FencedTable { rule, keys, .. } = &self.table;
        let mut values = place(&self.table);
        values.extend(values![&rule.tables, &rule.column, keys.to_string()]);
        link.change(forget, values).await?;
        Ok(())
    }
}
