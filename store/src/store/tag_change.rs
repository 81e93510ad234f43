//! Changing and dropping tags.

use std::sync::Arc;

use keywright_core::{Cause, Step, Tag};

use super::gone_back::behind;
use super::tag_admin::rule_for;
use super::tag_denied::{dropped, unknown};
use super::tag_read::{closed_here, is_dropped, standing_of};
use super::{Link, Row, Store, StoreError, Transaction, column, values};
use crate::failure::Failure;
use crate::home::Standing;
use crate::reserve::StepNumbers;

/// Longest description, characters.
const DESCRIPTION_CHARS_MAX: usize = 256;
/// Longest time that a reservation should last, seconds: a week.
const COVER_S_MAX: u32 = 604_800;

/// What is to be otherwise of a tag. Programs read it with their next reservation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagChange {
    /// Ids per reservation; a tenth of it at first.
    pub step: Option<Step>,
    /// The step never goes below.
    pub step_min: Option<Step>,
    /// The step never goes above.
    pub step_max: Option<Step>,
    /// How long a reservation should last, seconds.
    pub cover_s: Option<u32>,
    /// Refill when so many percent of a reservation are left.
    pub refill_percent: Option<u32>,
    /// A description for people.
    pub description: Option<String>,
}

impl TagChange {
    /// That each of it can be so.
    ///
    /// # Errors
    /// [`Cause::ArgumentOutOfRange`]: what cannot.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let refuse = |message: String| Err(Failure::new(Cause::ArgumentOutOfRange, message));
        if let Some(cover_s) = self.cover_s.filter(|its| *its > COVER_S_MAX) {
            return refuse(format!("cover_s is at most {COVER_S_MAX}, not {cover_s}"));
        }
        let percent = self.refill_percent;
        if let Some(percent) = percent.filter(|its| !(1..=99).contains(its)) {
            return refuse(format!("refill_percent is 1 to 99, not {percent}"));
        }
        let is_text = |text: &&String| {
            text.chars().count() <= DESCRIPTION_CHARS_MAX && !text.contains(char::is_control)
        };
        match self.description.as_ref().is_none_or(|its| is_text(&its)) {
            true => Ok(()),
            false => refuse(format!(
                "a description has at most {DESCRIPTION_CHARS_MAX} characters, and no control characters"
            )),
        }
    }
}

/// A tag's row, locked until the transaction ends.
pub(super) async fn row_of(
    store: &Store,
    tag: &Tag,
    link: &mut Link,
) -> Result<Result<Row, Failure>, StoreError> {
    let row = link
        .first(store.select_row(), values![tag.as_str()])
        .await?;
    match row {
        None => Ok(Err(unknown(store, tag))),
        Some(row) if is_dropped(store, &row)? => Ok(Err(dropped(tag))),
        Some(row) => Ok(Ok(row)),
    }
}

/// Changes what may be changed while programs run.
#[derive(Debug)]
pub(crate) struct AlterTag {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
    pub(crate) change: TagChange,
}

impl Transaction<Result<(), Failure>> for AlterTag {
    async fn run(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        link.begin().await?;
        let altered = self.alter(link).await?;
        link.end(altered.is_ok()).await?;
        Ok(altered)
    }
}

impl AlterTag {
    async fn alter(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        let row = match row_of(&self.store, &self.tag, link).await? {
            Ok(row) => row,
            Err(failure) => return Ok(Err(failure)),
        };
        let change = &self.change;
        let step = |given: Option<Step>, name: &str| match given {
            Some(step) => Ok(i64::try_from(step.get()).unwrap_or(i64::MAX)),
            None => column::<i64>(&row, name),
        };
        let numbers = StepNumbers {
            step: step(change.step, "step")?,
            step_min: step(change.step_min, "step_min")?,
            step_max: step(change.step_max, "step_max")?,
            cover_ms: 0,
        };
        if let Err(failure) = check(&numbers) {
            return Ok(Err(failure));
        }
        let number = |given: Option<u32>, name: &str| match given {
            Some(number) => Ok(u64::from(number)),
            None => column::<u64>(&row, name),
        };
        let update = format!(
            "UPDATE {} SET step = ?, step_min = ?, step_max = ?, cover_s = ?, refill_percent = ?, \
             description = COALESCE(?, description) WHERE tag = ?",
            self.store.segment_table
        );
        let values = values![
            numbers.step,
            numbers.step_min,
            numbers.step_max,
            number(change.cover_s, "cover_s")?,
            number(change.refill_percent, "refill_percent")?,
            change.description.clone(),
            self.tag.as_str(),
        ];
        // MySQL does not count a row that was so before.
        link.change(update, values).await?;
        Ok(Ok(()))
    }
}

fn check(numbers: &StepNumbers) -> Result<(), Failure> {
    let refuse = |message: String| Err(Failure::new(Cause::ArgumentOutOfRange, message));
    if let Err(error) = numbers.check() {
        return refuse(error.to_string());
    }
    let (least, most) = (numbers.step_min, numbers.step_max);
    match least <= most {
        true => Ok(()),
        false => refuse(format!("step_min would be {least}, and step_max {most}")),
    }
}

/// Has nobody reserve of a tag any more. Its row stays: one of the same name that is made later goes on above.
#[derive(Debug)]
pub(crate) struct DropTag {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
}

impl Transaction<Result<u64, Failure>> for DropTag {
    /// The first id that nobody was given.
    async fn run(&self, link: &mut Link) -> Result<Result<u64, Failure>, StoreError> {
        link.begin().await?;
        let dropped = self.drop_it(link).await?;
        link.end(dropped.is_ok()).await?;
        Ok(dropped)
    }
}

impl DropTag {
    async fn drop_it(&self, link: &mut Link) -> Result<Result<u64, Failure>, StoreError> {
        if let Some(failure) = rule_for(&self.tag, link).await? {
            return Ok(Err(failure));
        }
        let row = match row_of(&self.store, &self.tag, link).await? {
            Ok(row) => row,
            Err(failure) => return Ok(Err(failure)),
        };
        // Its bound says how far it gave: it stays for the store that has the tag now.
        match standing_of(&row, &self.tag)? {
            Ok(standing @ Standing::Elsewhere(_)) => {
                return Ok(Err(closed_here(&self.tag, &standing)));
            }
            Ok(Standing::Open | Standing::Opening(_) | Standing::Native(_)) | Err(_) => {}
        }
        let hi: u64 = column(&row, "number")?;
        let (table, now_ms) = (&self.store.segment_table, self.store.words.now_ms());
        let update = format!("UPDATE {table} SET dropped_ms = {now_ms} WHERE tag = ? AND hi = ?");
        link.change_one(update, values![self.tag.as_str(), hi])
            .await?;
        // What a program has seen of one whose bound was put back was given, too.
        let seen = behind(&self.store, &row)?.unwrap_or(0);
        Ok(Ok(hi.max(seen)))
    }
}

#[cfg(test)]
mod tests {
    use super::TagChange;

    #[test]
    fn what_cannot_be_is_refused() {
        let of_cover = |cover_s| TagChange {
            cover_s: Some(cover_s),
            ..TagChange::default()
        };
        let of_percent = |percent| TagChange {
            refill_percent: Some(percent),
            ..TagChange::default()
        };
        let of_text = |text: &str| TagChange {
            description: Some(text.to_owned()),
            ..TagChange::default()
        };
        for change in [
            TagChange::default(),
            of_cover(0),
            of_cover(604_800),
            of_percent(1),
            of_percent(99),
            of_text(""),
            of_text(&"ü".repeat(256)),
        ] {
            assert_eq!(change.check(), Ok(()), "{change:?}");
        }
        for change in [
            of_cover(604_801),
            of_percent(0),
            of_percent(100),
            of_text("two\nlines"),
            of_text(&"x".repeat(257)),
        ] {
            assert!(change.check().is_err(), "{change:?}");
        }
    }
}
