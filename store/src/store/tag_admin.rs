//! Making and listing tags.

use std::sync::Arc;

use keywright_core::{Cause, Step, Tag};
use uuid::Uuid;

use super::former::record_last;
use super::gone_back::{behind, failure_above};
use super::order_rows::may_lose;
use super::returned::discard_all;
use super::switch_rows::{lock, rules};
use super::tag_hiding::{self, TagHiding, hiding_of, refuse_other};
use super::tag_read::{closed_here, is_dropped, is_foreign, order_of, standing_of};
use super::{Link, Row, Store, StoreError, Transaction, column, values};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::home::Standing;
use crate::switch::space::KeySpace;
use crate::switch::state::{InForce, RuleName};
use crate::tag_order::TagOrder;

/// A tag to be made in Keywright's own table.
#[derive(Debug, Clone, Copy)]
pub struct TagOptions {
    /// First id, at least 1.
    pub start: u64,
    /// Largest id.
    pub id_max: u64,
    /// Ids per reservation; a tenth of it at first.
    pub step: Step,
    /// The step never goes below.
    pub step_min: Step,
    /// The step never goes above.
    pub step_max: Step,
    /// How long a reservation should last, seconds.
    pub cover_s: u32,
    /// Refill when so many percent of a reservation are left.
    pub refill_percent: u32,
    /// In which order its ids are issued. It stays so for good.
    pub order: TagOrder,
}

impl TagOptions {
    /// As the table's own defaults, with a step.
    pub fn with_step(step: Step) -> Self {
        let largest = Step::new(Step::MAX).unwrap_or(step);
        Self {
            start: 1,
            id_max: i64::MAX.cast_unsigned(),
            step,
            step_min: step,
            step_max: largest,
            cover_s: 900,
            refill_percent: 50,
            order: TagOrder::Distinct,
        }
    }
}

/// A tag, as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagListing {
    /// Its name in the table; other systems allow what Keywright does not.
    pub tag: String,
    /// The first id that nobody was given: `hi`, or what follows from `max_id`.
    pub next: u64,
    /// The same as far as a program has seen, where the row says that the store has gone back.
    pub gone_back_from: Option<u64>,
    /// The store was restored, or is on another server, since the row was written: it may lack ids that were given last, and the next reservation leaves a
    /// gap out.
    pub may_lack_ids: bool,
    /// The largest id that it may issue, where its table says so.
    pub id_max: Option<u64>,
    /// Column `step`.
    pub step: u64,
    /// In which order its ids are issued; what stands there is none where nobody knows.
    pub order: Option<TagOrder>,
    /// The permutation that its numbers are sent through, or what is wrong with it; nothing: keys are the numbers.
    pub hiding: Result<Option<TagHiding>, String>,
}

/// How far a tag has come, for somebody who raises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagBound {
    /// The first id that nobody was given, by its row.
    pub next: u64,
    /// The largest id that it may issue, where its table says so.
    pub id_max: Option<u64>,
    /// The first id that nobody was given as far as a program has seen, where the row says that the store has gone back.
    pub gone_back_from: Option<u64>,
}

/// Makes a tag. It begins above all that was reserved of one of that name: of one that was dropped, and of one that is lost as far as this
/// program has seen.
#[derive(Debug)]
pub(crate) struct CreateTag {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
    pub(crate) options: TagOptions,
    /// Only if no rule is for it.
    pub(crate) alone: bool,
    /// Nobody reserves of it before it is opened: it may be open in another store.
    pub(crate) waits: bool,
}

impl Transaction<Result<(), Failure>> for CreateTag {
    async fn run(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        let hiding = self.store.hidden.of(&self.tag);
        if hiding.is_some() && self.options.order.is_ordered() {
            let message = format!(
                "tag \"{}\" cannot be ordered: it hides its volume",
                self.tag
            );
            return Ok(Err(Failure::new(Cause::HideKeyMismatch, message)));
        }
        if self.options.order == TagOrder::Strict
            && let Some(why) = link.may_lose().await?
        {
            return Ok(Err(may_lose(&why)));
        }
        link.begin().await?;
        if self.alone
            && let Some(failure) = rule_for(&self.tag, link).await?
        {
            link.rollback().await?;
            return Ok(Err(failure));
        }
        match self.insert(link).await {
            Ok(()) => {
                let place = self.store.losses.place(&link.server.identity);
                record_last(&self.store, link).await?;
                link.commit().await?;
                self.store.losses.note_recorded(place);
                return Ok(Ok(()));
            }
            // In PostgreSQL nothing more is done in this transaction.
            Err(error) if error.is_duplicate() => link.rollback().await?,
            Err(error) => return Err(error),
        }
        link.begin().await?;
        let made = self.make_anew(link).await?;
        link.end(made.is_ok()).await?;
        Ok(made)
    }
}

impl CreateTag {
    /// What it is for those who would reserve of it.
    fn standing(&self) -> Standing {
        match self.waits {
            true => Standing::Opening(None),
            false => Standing::Open,
        }
    }

    /// Why a dropped row must not be one that waits for the others to be closed: its ids came from elsewhere before it was dropped.
    fn may_not_wait(&self, row: &Row) -> Result<Option<Failure>, StoreError> {
        Ok(match standing_of(row, &self.tag)? {
            Ok(Standing::Open | Standing::Opening(None)) => None,
            Ok(
                standing @ (Standing::Opening(Some(_))
                | Standing::Elsewhere(_)
                | Standing::Native(_)),
            ) => Some(closed_here(&self.tag, &standing)),
            Err(failure) => Some(failure),
        })
    }

    /// Where its ids begin.
    fn start(&self) -> u64 {
        let seen = self.store.seen(&self.tag);
        self.options.start.max(seen).max(1)
    }

    /// Its largest number.
    fn id_max(&self) -> u64 {
        let hiding = self.store.hidden.of(&self.tag);
        let largest = hiding.map_or(u64::MAX, |hiding| hiding.bits().largest());
        self.options.id_max.min(self.store.id_max).min(largest)
    }

    /// One that was dropped goes on in its row: who reserved last, and how much, tells whether a gap is to be left out. So does its key
    /// space, since no id of it comes twice. One whose row says that it has gone back is refused: made in silence, it would give nothing.
    async fn make_anew(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        let row = link
            .first(self.store.select_row(), values![self.tag.as_str()])
            .await?;
        let row = match row {
            Some(row) if is_dropped(&self.store, &row)? => row,
            Some(_) | None => {
                let message = format!("tag \"{}\" exists already", self.tag);
                return Ok(Err(Failure::new(Cause::TagExists, message)));
            }
        };
        if self.waits
            && let Some(failure) = self.may_not_wait(&row)?
        {
            return Ok(Err(failure));
        }
        let hi: u64 = column(&row, "number")?;
        if let Some(seen) = behind(&self.store, &row)? {
            let known = self.start().saturating_sub(1);
            return Ok(Err(failure_above(&self.tag, (seen, hi), known)));
        }
        let options = &self.options;
        match order_of(&self.store, &row, &self.tag)? {
            Ok(order) if order == options.order => {}
            Ok(order) => return Ok(Err(other_order(&self.tag, order))),
            Err(failure) => return Ok(Err(failure)),
        }
        // Another permutation of the same numbers gives keys that were given.
        let hiding = match hiding_of(&self.store, &row, &self.tag)? {
            Ok(hiding) => hiding,
            Err(failure) => return Ok(Err(failure)),
        };
        let caller = self.store.hidden.of(&self.tag);
        if let Err(failure) = refuse_other(&self.tag, hiding.as_ref(), caller.map(AsRef::as_ref)) {
            return Ok(Err(failure));
        }
        let update = format!(
            "UPDATE {} SET hi = ?, id_max = ?, step = ?, step_min = ?, step_max = ?, cover_s = ?, refill_percent = ?, \
             server = COALESCE(server, ?), reserved_ids = COALESCE(reserved_ids, 0), reserved_ms = COALESCE(reserved_ms, {}), rate_per_s = COALESCE(rate_per_s, 0), \
             description = NULL, dropped_ms = NULL, heir = COALESCE(?, heir) WHERE tag = ? AND hi = ?",
            self.store.segment_table,
            self.store.words.now_ms()
        );
        record_last(&self.store, link).await?;
        let first = hi.max(self.start());
        let values = values![
            first,
            self.id_max(),
            options.step.get(),
            options.step_min.get(),
            options.step_max.get(),
            options.cover_s,
            options.refill_percent,
            link.server.identity.as_str(),
            self.standing().text(),
            self.tag.as_str(),
            hi,
        ];
        link.change_one(update, values).await?;
        // What lies below may be in tables since.
        discard_all(&self.store, &self.tag, first, link)
            .await
            .map(Ok)
    }

    async fn insert(&self, link: &mut Link) -> Result<(), StoreError> {
        let options = &self.options;
        let hiding = self.store.hidden.of(&self.tag);
        let hiding = hiding.map(|hiding| TagHiding::of(hiding));
        let insert = format!(
            "INSERT INTO {} (tag, hi, id_max, step, step_min, step_max, cover_s, refill_percent, \
             server, reserved_ids, reserved_ms, rate_per_s, key_space_id, issue_order, start_id, heir, hide_bits, hide_fingerprint) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, {}, 0, ?, ?, ?, ?, ?, ?)",
            self.store.segment_table,
            self.store.words.now_ms()
        );
        let values = values![
            self.tag.as_str(),
            self.start(),
            self.id_max(),
            options.step.get(),
            options.step_min.get(),
            options.step_max.get(),
            options.cover_s,
            options.refill_percent,
            link.server.identity.as_str(),
            Uuid::new_v4().simple().to_string(),
            options.order.name(),
            self.start(),
            self.standing().text(),
            hiding.as_ref().map(|its| i64::from(its.bits.get())),
            hiding.as_ref().map(|its| its.fingerprint.clone()),
        ];
        link.change_one(insert, values).await
    }
}

/// Programs may have ids of one that was dropped, and issue them in the order that it had.
fn other_order(tag: &Tag, order: TagOrder) -> Failure {
    let failure = Failure::new(
        Cause::TagExists,
        format!(
            "tag \"{tag}\" was dropped, and its ids were {}",
            order.name()
        ),
    );
    failure.hint("make it with that order, or a tag of another name")
}

/// Why a tag is not its asker's alone: tables of a rule get its ids, or go over to it. No attempt begins before the transaction ends.
pub(super) async fn rule_for(tag: &Tag, link: &mut Link) -> Result<Option<Failure>, StoreError> {
    lock(link).await?;
    let is_it = |keys: Option<&KeySpace>| keys.and_then(KeySpace::tag) == Some(tag);
    let rules = rules(link, None).await?;
    let mut rules = rules.into_iter().map(|(rule, _)| rule);
    let found = rules.find(|rule| {
        let next = rule.next.as_ref().and_then(Option::as_ref);
        is_it(rule.keys.as_ref()) || is_it(next)
    });
    Ok(found.map(|InForce { rule, .. }| {
        let RuleName { tables, column } = rule;
        let message = format!("tag \"{tag}\" is that of the rule for {tables}.{column}");
        Failure::new(Cause::TagInUse, message)
    }))
}

/// Reads all tags.
#[derive(Debug)]
pub(crate) struct ListTags {
    pub(crate) store: Arc<Store>,
}

impl Transaction<Vec<TagListing>> for ListTags {
    async fn run(&self, link: &mut Link) -> Result<Vec<TagListing>, StoreError> {
        let select = self.store.dialect.select_all(&self.store.segment_table);
        let rows = link.rows(select, Vec::new()).await?;
        let ends = self.store.dialect.ends();
        rows.iter()
            .map(|row| {
                Ok(TagListing {
                    tag: column(row, "tag")?,
                    next: ends.first_free(column(row, "number")?),
                    gone_back_from: behind(&self.store, row)?,
                    may_lack_ids: match self.store.dialect {
                        Dialect::Keywright => is_foreign(row, &link.server)?,
                        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => false,
                    },
                    id_max: match self.store.dialect {
                        Dialect::Keywright => Some(column(row, "id_max")?),
                        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => None,
                    },
                    step: column(row, "step")?,
                    order: TagOrder::parse(&column::<String>(row, "issue_order")?),
                    hiding: match self.store.dialect {
                        Dialect::Keywright => tag_hiding::read(row)?,
                        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Ok(None),
                    },
                })
            })
            .collect()
    }
}

/// Reads how far one tag has come, whatever stands in the rows of others.
#[derive(Debug)]
pub(crate) struct ReadBound {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
}

impl Transaction<Option<TagBound>> for ReadBound {
    async fn run(&self, link: &mut Link) -> Result<Option<TagBound>, StoreError> {
        let store = &self.store;
        let select = store.dialect.select_bound(&store.segment_table);
        let Some(row) = link.first(select, values![self.tag.as_str()]).await? else {
            return Ok(None);
        };
        let next = store.dialect.ends().first_free(column(&row, "number")?);
        let id_max = match store.dialect {
            Dialect::Keywright => Some(column(&row, "id_max")?),
            Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => None,
        };
        Ok(Some(TagBound {
            next,
            id_max,
            gone_back_from: behind(store, &row)?,
        }))
    }
}
