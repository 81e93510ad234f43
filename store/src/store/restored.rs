//! A store that was brought back from a backup: whatever it says is of a while ago, and somebody says of how long.

use std::sync::Arc;

use keywright_core::Tag;
use uuid::Uuid;

use super::tag_read::read_row;
use super::{Link, Store, StoreError, Transaction, assigned_admin, values};
use crate::dialect::Dialect;
use crate::reserve::gap_after_loss;
use crate::residue::Residue;

/// A tag of a store that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredTag {
    /// Its name.
    pub tag: String,
    /// The first id that nobody was given, as far as the backup knows.
    pub next: u64,
    /// Ids that are left out before the next one, because they may have been given since.
    pub gap: u64,
}

/// Has everything count as written by another server: bounds of so long ago, with a gap above each, and no lease or rest is anybody's.
#[derive(Debug)]
pub(crate) struct Restore {
    pub(crate) store: Arc<Store>,
    /// How long ids may have been given of which the backup knows nothing, milliseconds.
    pub(crate) lost_ms: i64,
}

impl Transaction<Vec<RestoredTag>> for Restore {
    async fn run(&self, link: &mut Link) -> Result<Vec<RestoredTag>, StoreError> {
        link.begin().await?;
        // No server is called so.
        let nobody = format!("restored {}", Uuid::new_v4().simple());
        link.change(
            "UPDATE keywright_worker SET server = ?, owner = NULL, epoch = epoch + 1",
            values![&nobody],
        )
        .await?;
        link.change("DELETE FROM keywright_returned", Vec::new())
            .await?;
        assigned_admin::restore(link).await?;
        let tags = match self.store.dialect {
            Dialect::Keywright => self.tags(&nobody, link).await?,
            // Their tables do not say who wrote last, and when.
            Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Vec::new(),
        };
        link.commit().await?;
        Ok(tags)
    }
}

impl Restore {
    async fn tags(&self, nobody: &str, link: &mut Link) -> Result<Vec<RestoredTag>, StoreError> {
        let store = &self.store;
        let now_ms = store.words.now_ms();
        let update = format!(
            "UPDATE {} SET server = ?, reserved_ids = COALESCE(reserved_ids, 2 * step), rate_per_s = COALESCE(rate_per_s, 0), \
             reserved_ms = CASE WHEN reserved_ms < {now_ms} - ? THEN reserved_ms ELSE {now_ms} - ? END",
            store.segment_table
        );
        let values = values![nobody, self.lost_ms, self.lost_ms];
        link.change(update, values).await?;
        let names = format!("SELECT tag FROM {} ORDER BY tag", store.segment_table);
        let identity = link.server.identity.clone();
        let mut tags = Vec::new();
        for found in link.rows(names, Vec::new()).await? {
            let name: String = found.first()?;
            // Nobody could use one whose name is not valid.
            let Ok(tag) = Tag::parse(&name) else { continue };
            let Some(row) = link.first(store.select_row(), values![&name]).await? else {
                continue;
            };
            if let Ok((row, now_ms)) = read_row(store, &row, &identity, &tag, Residue::ALL)? {
                tags.push(RestoredTag {
                    tag: name,
                    next: row.ends.first_free(row.number),
                    gap: gap_after_loss(&row, now_ms),
                });
            }
        }
        Ok(tags)
    }
}
