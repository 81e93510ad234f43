//! A tag's row as one of several stores has it: read, made to wait, closed and opened; one transaction each. Why in this way stands in
//! [`crate::home`].

mod closing;
mod opening;
mod standings;

use std::sync::Arc;

use keywright_core::residue::Residue;
use keywright_core::{Cause, Step, Tag};

use super::former::read_row;
use super::tag_admin::TagOptions;
use super::tag_denied::ordered;
use super::tag_hiding::hiding_of;
use super::tag_left::is_left_by_tables;
use super::tag_read::{is_dropped, key_space, order_of, standing_of};
use super::{Link, Row, Store, StoreError, Transaction, Value, column, values};
use crate::failure::Failure;
use crate::home::{HomeRow, Refused, Standing};
use crate::reserve::gap_after_loss;
use crate::tag_order::TagOrder;

pub(crate) use closing::{ClaimHome, CloseHome};
pub(crate) use opening::{OpenHome, PrepareHome, RecordClosed};
pub(crate) use standings::{ReadStandings, Standings};

/// A tag in a store of several.
#[derive(Debug, Clone)]
pub(crate) struct TagIn {
    pub(crate) store: Arc<Store>,
    /// The store's name.
    pub(crate) name: String,
    pub(crate) tag: Tag,
}

/// What stands in a row.
#[derive(Debug, Clone)]
pub(crate) struct FoundHome {
    pub(crate) row: HomeRow,
    /// Column `hi`.
    number: u64,
    /// The first id that was ever given.
    pub(crate) start: u64,
    /// The stores in which it is closed, by mark.
    pub(crate) closed_in: Option<String>,
    /// The most ids per second that were ever used of it.
    pub(crate) rate_per_s: u64,
    /// How programs reserve of it.
    pub(crate) options: TagOptions,
    /// Tables went over to it and left it, by the rules of this store.
    pub(crate) is_left_by_tables: bool,
}

impl TagIn {
    fn refused(&self, refused: &Refused) -> Failure {
        refused.failure(self.tag.as_str(), &self.name)
    }

    /// The row, locked until the transaction ends. Tables of other systems say only whether there is one.
    async fn find(
        &self,
        link: &mut Link,
    ) -> Result<Result<Option<FoundHome>, Failure>, StoreError> {
        let (store, tag) = (&self.store, &self.tag);
        let row = link
            .first(store.select_row(), values![tag.as_str()])
            .await?;
        let Some(row) = row else {
            return Ok(Ok(None));
        };
        let standing = match store.dialect.is_own() {
            true => standing_of(&row, tag)?,
            false => Ok(Standing::Open),
        };
        let standing = match standing {
            Ok(standing) => standing,
            Err(failure) => return Ok(Err(failure)),
        };
        let (read, now_ms) = match read_row(store, &row, tag, Residue::ALL, link).await? {
            Ok(read) => read,
            Err(denied) => {
                return Ok(Err(denied.told(tag)));
            }
        };
        // What another server may have given since it wrote last counts as given.
        let free = read.ends.first_free(read.number);
        let free = free.saturating_add(gap_after_loss(&read, now_ms));
        let (start, closed_in) = match store.dialect.is_own() {
            true => (column(&row, "start_id")?, column(&row, "closed_in")?),
            false => (1, None),
        };
        let options = TagOptions {
            start: free,
            id_max: read.id_max,
            step: read.step,
            ..TagOptions::with_step(read.step)
        };
        Ok(Ok(Some(FoundHome {
            row: HomeRow {
                free: free.max(store.seen(tag)),
                key_space: key_space(&row)?.to_string(),
                standing,
                is_dropped: is_dropped(store, &row)?,
            },
            number: read.number,
            start,
            closed_in,
            rate_per_s: read.last.map_or(0, |last| last.rate_per_s),
            options: own_options(&row, store, options)?,
            is_left_by_tables: is_left_by_tables(tag, &row, link).await?,
        })))
    }

    /// Makes a row that nobody reserves of. False: somebody else has made one.
    async fn insert(
        &self,
        (standing, key_space): (&Standing, &str),
        options: &TagOptions,
        link: &mut Link,
    ) -> Result<bool, StoreError> {
        let store = &self.store;
        let insert = format!(
            "INSERT INTO {} (tag, hi, id_max, step, step_min, step_max, cover_s, refill_percent, \
             server, reserved_ids, reserved_ms, rate_per_s, key_space_id, issue_order, start_id, heir) \
             VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, 0, {}, 0, ?, ?, 1, ?)",
            store.segment_table,
            store.words.now_ms()
        );
        let values = values![
            self.tag.as_str(),
            options.id_max.min(store.id_max),
            options.step.get(),
            options.step_min.get(),
            options.step_max.get(),
            options.cover_s,
            options.refill_percent,
            link.server.identity.as_str(),
            key_space,
            TagOrder::Distinct.name(),
            standing.text(),
        ];
        match link.change_one(insert, values).await {
            Ok(()) => Ok(true),
            Err(error) if error.is_duplicate() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Changes the row, if it is still what was found.
    async fn change(
        &self,
        found: &FoundHome,
        (set, mut values): (&str, Vec<Value>),
        link: &mut Link,
    ) -> Result<(), StoreError> {
        let standing = found.row.standing.text();
        let heir = match &standing {
            Some(_) => "heir = ?",
            None => "heir IS NULL",
        };
        let update = format!(
            "UPDATE {} SET {set} WHERE tag = ? AND hi = ? AND key_space_id = ? AND {heir}",
            self.store.segment_table
        );
        values.extend(values![
            self.tag.as_str(),
            found.number,
            found.row.key_space.as_str()
        ]);
        values.extend(standing.map(Value::from));
        link.change_one(update, values).await
    }

    /// Somebody else has made the row in the meantime.
    fn made_meanwhile(&self) -> Failure {
        self.refused(&Refused::Overtaken)
    }
}

/// What only Keywright's own table says.
fn own_options(row: &Row, store: &Store, options: TagOptions) -> Result<TagOptions, StoreError> {
    if !store.dialect.is_own() {
        return Ok(options);
    }
    let step = |name: &str| -> Result<Step, StoreError> {
        Ok(Step::new(column(row, name)?).unwrap_or(options.step))
    };
    Ok(TagOptions {
        step_min: step("step_min")?,
        step_max: step("step_max")?,
        cover_s: column(row, "cover_s")?,
        refill_percent: column(row, "refill_percent")?,
        ..options
    })
}

/// Reads a tag's row.
#[derive(Debug)]
pub(crate) struct ReadHome(pub(crate) TagIn);

impl Transaction<Result<Option<FoundHome>, Failure>> for ReadHome {
    async fn run(&self, link: &mut Link) -> Result<Result<Option<FoundHome>, Failure>, StoreError> {
        link.begin().await?;
        let found = self.0.find(link).await?;
        link.rollback().await?;
        Ok(found)
    }
}

/// Why a tag stays in its store: its ids are ordered, or hide their volume.
#[derive(Debug)]
pub(crate) struct CheckMovable(pub(crate) TagIn);

impl Transaction<Result<(), Failure>> for CheckMovable {
    async fn run(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        let (store, tag) = (&self.0.store, &self.0.tag);
        link.begin().await?;
        let row = link
            .first(store.select_row(), values![tag.as_str()])
            .await?;
        link.rollback().await?;
        let Some(row) = row else {
            return Ok(Err(self.0.refused(&Refused::Missing)));
        };
        Ok(match order_of(store, &row, tag)? {
            Ok(TagOrder::Distinct) => {
                hiding_of(store, &row, tag)?.and_then(|hiding| match hiding {
                    None => Ok(()),
                    Some(_) => {
                        let message = format!(
                            "tag \"{tag}\" hides its volume: only the store without tags has such"
                        );
                        Err(Failure::new(Cause::HideKeyMismatch, message))
                    }
                })
            }
            Ok(TagOrder::Monotonic | TagOrder::Strict) => Err(ordered(tag)),
            Err(failure) => Err(failure),
        })
    }
}
