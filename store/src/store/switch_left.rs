//! Rules that have left the switch: above what the counters of their tables went on is forgotten.

use super::switch_rows::lock;
use super::{Link, StoreError, Transaction, values};
use crate::switch::state::RuleName;

/// Forgets it of these rules, of those that are native, and that no attempt is about: nobody lifts a fence by it any more. What is in force, and what is
/// under way, stays as it is.
#[derive(Debug)]
pub(crate) struct ForgetAbove {
    pub(crate) rules: Vec<RuleName>,
}

impl Transaction<()> for ForgetAbove {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        link.begin().await?;
        // As whoever begins an attempt, or ends one.
        lock(link).await?;
        let forget = "UPDATE keywright_rule SET above = NULL \
                      WHERE table_pattern = ? AND column_name = ? AND key_space IS NULL AND attempt IS NULL";
        for RuleName { tables, column } in &self.rules {
            link.change(forget, values![tables, column]).await?;
        }
        link.commit().await
    }
}
