//! How far servers that are fed were handed ids of tags, against what the tags' rows say.

use std::sync::Arc;

use keywright_core::Tag;
use keywright_core::residue::Residue;

use super::former::read_any_row;
use super::gone_back::{behind, failure};
use super::look_back::{COMPARE_TAGS_MAX, compare_tags};
use super::tag_denied::untaken;
use super::tag_read::key_space;
use super::tag_request::Receiver;
use super::{Link, Store, StoreError, Transaction, values};
use crate::failure::Failure;
use crate::reserve::has_gone_back;

/// The largest id of a tag that databases of a server were handed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HandedIds {
    pub(crate) tag: Tag,
    pub(crate) last: u64,
    /// The mark of its key space; `None`: not known.
    pub(crate) key_space: Option<u64>,
}

impl HandedIds {
    /// The first id that was not handed over.
    pub(crate) fn bound(&self) -> u64 {
        self.last.saturating_add(1)
    }
}

/// Compares tags of which servers have just told with what this program has seen, and has all programs know where a row says less.
#[derive(Debug)]
pub(crate) struct ReportBehind {
    pub(crate) store: Arc<Store>,
    pub(crate) tags: Vec<Tag>,
}

impl Transaction<()> for ReportBehind {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        // Before the rows, as whoever compares.
        let bounds = self.store.bounds();
        let tags: Vec<&Tag> = self.tags.iter().collect();
        for some in tags.chunks(COMPARE_TAGS_MAX) {
            compare_tags(&self.store, &bounds, some, link).await?;
        }
        Ok(())
    }
}

/// What is wrong with tags, by what a server was handed of them. Changes nothing.
#[derive(Debug)]
pub(crate) struct JudgeHanded {
    pub(crate) store: Arc<Store>,
    pub(crate) handed: Vec<HandedIds>,
}

impl Transaction<Vec<Failure>> for JudgeHanded {
    async fn run(&self, link: &mut Link) -> Result<Vec<Failure>, StoreError> {
        let mut failures = Vec::new();
        if link.ranges().is_some() {
            return Ok(failures);
        }
        for handed in &self.handed {
            link.begin().await?;
            let judged = self.judge(handed, link).await;
            link.rollback().await?;
            match judged {
                // Of a row that cannot be read others tell.
                Err(StoreError::Column { .. }) => {}
                judged => failures.extend(judged?),
            }
        }
        Ok(failures)
    }
}

impl JudgeHanded {
    async fn judge(
        &self,
        handed: &HandedIds,
        link: &mut Link,
    ) -> Result<Option<Failure>, StoreError> {
        let (store, tag) = (&*self.store, &handed.tag);
        let select = store.select_row();
        // That it is missing others tell.
        let Some(found) = link.first(select, values![tag.as_str()]).await? else {
            return Ok(None);
        };
        let receiver = Receiver {
            mark: handed.key_space,
        };
        if let Some(failure) = untaken(tag, receiver, &key_space(&found)?) {
            return Ok(Some(failure));
        }
        let Ok((row, now_ms)) = read_any_row(store, &found, tag, Residue::ALL, link).await? else {
            return Ok(None);
        };
        let seen = handed.bound();
        // What the row says itself is told with it.
        let is_told = behind(store, &found)?.is_some_and(|told| told >= seen);
        let is_behind = !is_told && has_gone_back(&row, seen, now_ms);
        Ok(is_behind.then(|| failure(tag, seen, &row)))
    }
}
