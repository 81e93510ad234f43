//! What each program's configuration wanted for a rule when that was in force: only what is new is a reason to switch.

use super::switch_rows::key_space;
use super::{Link, StoreError, Transaction, column, values};
use crate::switch::space::KeySpace;
use crate::switch::state::{RuleName, WantedKeys};

/// All that configurations want, and where.
#[derive(Debug)]
pub(crate) struct ReadWanted;

impl Transaction<Vec<(String, WantedKeys)>> for ReadWanted {
    async fn run(&self, link: &mut Link) -> Result<Vec<(String, WantedKeys)>, StoreError> {
        let select = "SELECT place, table_pattern, column_name, key_space FROM keywright_wanted";
        let rows = link.rows(select, Vec::new()).await?;
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
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let WantedKeys { rule, keys } = &self.wanted;
        let keys = keys.as_ref().map(KeySpace::to_string);
        let or_update = link.words().or_update("place, table_pattern, column_name");
        let write = format!(
            "INSERT INTO keywright_wanted (place, table_pattern, column_name, key_space) VALUES (?, ?, ?, ?) \
             {or_update} key_space = ?"
        );
        let values = values![&self.place, &rule.tables, &rule.column, keys.clone(), keys];
        link.change(write, values).await?;
        Ok(())
    }
}
