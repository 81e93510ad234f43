//! Raising bounds: somebody who knows how far ids were given says so.

use std::sync::Arc;

use keywright_core::residue::Residue;
use keywright_core::{Cause, Layout, Tag};

use super::former::{read_any_row, record, record_last};
use super::gone_back::{behind, failure_above};
use super::returned::discard_all;
use super::switch_rows::lock;
use super::tag_denied::unknown;
use super::tag_hiding::{hiding_of, refuse_other};
use super::tag_read::{closed_here, standing_of};
use super::{Link, Store, StoreError, Transaction, ranges, values};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::home::Standing;
use crate::lease::space::Space;
use crate::reserve::{TagRow, gap_after_loss};
use crate::use_up::Extent;

/// Above what all later ids are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Above {
    /// Those of a tag.
    Tag {
        /// The tag.
        tag: Tag,
        /// The highest id that was given.
        id: u64,
    },
    /// Snowflake ids, of all worker ids.
    Snowflake {
        /// The highest id that was given.
        id: i64,
    },
    /// Snowflake ids, of all worker ids.
    SnowflakeMoment {
        /// A moment that is later than those of all ids that were given, unix milliseconds.
        unix_ms: i64,
    },
    /// Readable ids, of all buckets.
    ReadableMoment {
        /// The same.
        unix_ms: i64,
    },
}

/// A tag's number to be raised. What others have handed back is thrown away, and what they will hand back from below.
#[derive(Debug)]
pub(crate) struct AdvanceTag {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
    pub(crate) id: u64,
    pub(crate) by: By,
}

/// Who has a tag's number raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// Somebody who knows how far ids were given, also since the store has gone back.
    Operator {
        /// He has said that the tag may be left none of its ids, or almost none.
        may_use_up: bool,
    },
    /// A program that has found an id, and knows of no others.
    Program,
}

impl By {
    /// An id that was found was given, whatever that leaves.
    fn may_use_up(self) -> bool {
        match self {
            Self::Operator { may_use_up } => may_use_up,
            Self::Program => true,
        }
    }
}

impl Transaction<Result<u64, Failure>> for AdvanceTag {
    /// One transaction; the first id that nobody was given.
    async fn run(&self, link: &mut Link) -> Result<Result<u64, Failure>, StoreError> {
        if let Some(redis) = link.ranges() {
            let may_use_up = self.by.may_use_up();
            return ranges::advance(&self.store, &self.tag, (self.id, may_use_up), redis).await;
        }
        link.begin().await?;
        let advanced = self.advance(link).await?;
        link.end(advanced.is_ok()).await?;
        Ok(advanced)
    }
}

impl AdvanceTag {
    async fn advance(&self, link: &mut Link) -> Result<Result<u64, Failure>, StoreError> {
        let (store, tag) = (&self.store, &self.tag);
        let found = link
            .first(store.select_row(), values![tag.as_str()])
            .await?;
        let Some(found) = found else {
            return Ok(Err(unknown(store, tag)));
        };
        if store.dialect.is_own()
            && let Ok(standing @ Standing::Elsewhere(_)) = standing_of(&found, tag)?
        {
            return Ok(Err(closed_here(tag, &standing)));
        }
        // Who does not know that keys are not the numbers may name a key.
        let hiding = match hiding_of(store, &found, tag)? {
            Ok(hiding) => hiding,
            Err(failure) => return Ok(Err(failure)),
        };
        let caller = store.hidden.of(tag).map(AsRef::as_ref);
        if let Err(failure) = refuse_other(tag, hiding.as_ref(), caller) {
            return Ok(Err(failure));
        }
        let (row, now_ms) = match read_any_row(store, &found, tag, Residue::ALL, link).await? {
            Ok(read) => read,
            Err(denied) => return Ok(Err(denied.told(tag))),
        };
        let behind = behind(store, &found)?;
        if let (Some(seen), By::Program) = (behind, self.by) {
            let free = row.ends.first_free(row.number);
            return Ok(Err(failure_above(tag, (seen, free), self.id)));
        }
        // What a program has seen was given, whatever the highest id is that somebody knows of.
        let seen = behind.map_or(0, |seen| seen.saturating_sub(1));
        let id = self.id.max(seen);
        if id > row.id_max {
            return Ok(Err(self.beyond_the_end(id, &row, hiding.is_some())));
        }
        // A gap that is still to be left out stays: this may be the highest id that somebody has seen, not the highest that was given.
        let free = row.ends.first_free(row.number);
        let gap = gap_after_loss(&row, now_ms);
        let free = free.saturating_add(gap);
        if let Err(failure) = self.refuse_using_up(free, row.id_max, behind) {
            return Ok(Err(failure));
        }
        let next = id.saturating_add(1);
        // A gap that was told is left out from here on, however large it would be later.
        if free >= next && behind.is_none() && gap == 0 {
            // What was reserved and not given yet may be below.
            discard_all(store, tag, next, link).await?;
            return Ok(Ok(free));
        }
        // A row that says that it has gone back is written in any case.
        let number = row.ends.number_for(next.max(free));
        // Of one that gave none yet the first is the one that it goes on at.
        if store.dialect.is_own() && gap == 0 {
            let table = &store.segment_table;
            let update = format!("UPDATE {table} SET start_id = ? WHERE tag = ? AND start_id = hi");
            link.change(update, values![number, tag.as_str()]).await?;
        }
        record(store, &found, &row, now_ms, link).await?;
        record_last(store, link).await?;
        let mut values = Vec::new();
        if store.dialect == Dialect::Keywright {
            values.extend(values![link.server.identity.as_str()]);
        }
        values.extend(values![number, tag.as_str(), row.number]);
        let update = store.dialect.advance_row(
            &store.segment_table,
            store.words,
            gap > 0 || behind.is_some() || row.last.is_none(),
        );
        link.change_one(update, values).await?;
        discard_all(store, tag, next, link).await?;
        Ok(Ok(row.ends.first_free(number)))
    }

    /// Refuses what would use the tag up, unless that was said. `seen`: what a program has seen, where the store has gone back.
    fn refuse_using_up(&self, free: u64, id_max: u64, seen: Option<u64>) -> Result<(), Failure> {
        let extent = Extent { free, id_max, seen };
        match self.by.may_use_up() {
            true => Ok(()),
            false => extent.leave_enough(&self.tag, self.id),
        }
    }

    /// Why a tag does not go on above an id, which is the one that was named or the last that a program has seen, and what can be done.
    fn beyond_the_end(&self, id: u64, row: &TagRow, is_hidden: bool) -> Failure {
        let (store, tag, end) = (&self.store, &self.tag, row.id_max);
        let message = match id > self.id {
            true => format!(
                "a program has seen ids of tag \"{tag}\" up to {id}, beyond {end}, its largest id now"
            ),
            false => format!("{id} is beyond {end}, the largest id of tag \"{tag}\""),
        };
        let failure = Failure::new(Cause::ArgumentOutOfRange, message);
        if !store.dialect.is_own() || id > store.id_max {
            return failure.hint("no tag has larger ids: is it a number of this tag?");
        }
        if is_hidden {
            return failure.hint(format!(
                "--above takes the number behind a key: keywright tag number {tag} KEY. A tag that has no numbers left cannot get more: use another tag"
            ));
        }
        failure.hint(format!(
            "if its columns hold larger ids, first raise the end of the tag, then do this again: UPDATE {} SET id_max = N WHERE tag = '{tag}', N above {id}; if \
             they do not, use another tag",
            store.segment_table.plain()
        ))
    }
}

/// The bounds of all worker ids of a space to be raised to a moment, and of those that nobody has leased yet, or whose rows were lost. Whoever
/// holds a lease takes it anew, above that.
#[derive(Debug)]
pub(crate) struct AdvanceLeases {
    pub(crate) space: Space,
    /// Unix milliseconds.
    pub(crate) bound_ms: i64,
}

impl AdvanceLeases {
    /// Above a snowflake id: the moment behind the tick in which it was given.
    pub(crate) fn above(id: i64, layout: &Layout) -> Self {
        Self {
            space: Space::Snowflake,
            bound_ms: layout.unix_ms_of(layout.tick_above(id)),
        }
    }
}

impl Transaction<i64> for AdvanceLeases {
    /// Leases whose bound is there already stay whose they are. Who wrote a bound stays: where it was another server, its last bounds may
    /// be missing, and the next takeover leaves a gap for them above this one.
    async fn run(&self, link: &mut Link) -> Result<i64, StoreError> {
        let update = "UPDATE keywright_worker SET hi_ms = ?, epoch = epoch + 1, owner = NULL \
                      WHERE space = ? AND hi_ms < ?";
        link.begin().await?;
        // As whoever takes a lease: this row first.
        lock(link).await?;
        let floor = self.space.floor();
        let raise = format!(
            "UPDATE keywright_switch SET {floor} = {} WHERE id = 1",
            link.words().greater(floor, "?")
        );
        link.change(raise, values![self.bound_ms]).await?;
        let values = values![self.bound_ms, self.space.name(), self.bound_ms];
        link.change(update, values).await?;
        link.commit().await?;
        Ok(self.bound_ms)
    }
}
