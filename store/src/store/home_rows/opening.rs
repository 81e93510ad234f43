//! A row that waits, and opens.

use keywright_core::Cause;
use uuid::Uuid;

use super::super::former::record_last;
use super::super::returned::discard_all;
use super::super::tag_admin::TagOptions;
use super::super::{Link, StoreError, Transaction, values};
use super::{FoundHome, TagIn};
use crate::failure::Failure;
use crate::home::{Plan, Refused, Source, Standing, Waiting, listed, plan_open, plan_prepare};

/// Has a tag's row wait until the others are closed in its favour: its key space.
#[derive(Debug)]
pub(crate) struct PrepareHome {
    pub(crate) of: TagIn,
    pub(crate) options: TagOptions,
    /// Where the tag is.
    pub(crate) source: Source,
}

impl Transaction<Result<Plan<Waiting>, Failure>> for PrepareHome {
    async fn run(&self, link: &mut Link) -> Result<Result<Plan<Waiting>, Failure>, StoreError> {
        link.begin().await?;
        let prepared = self.prepare(link).await?;
        link.end(matches!(prepared, Ok(Plan::Change(_)))).await?;
        Ok(prepared)
    }
}

impl PrepareHome {
    async fn prepare(&self, link: &mut Link) -> Result<Result<Plan<Waiting>, Failure>, StoreError> {
        let found = match self.of.find(link).await? {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        let fresh = Uuid::new_v4().simple().to_string();
        let row = found.as_ref().map(|found| &found.row);
        let plan = plan_prepare(row, &fresh, &self.source);
        let plan = match plan {
            Ok(plan) => plan,
            Err(refused) => return Ok(Err(self.of.refused(&refused))),
        };
        let Plan::Change(Waiting { key_space, before }) = &plan else {
            return Ok(Ok(plan));
        };
        let opening = Standing::Opening(before.clone());
        let options = &self.options;
        match &found {
            None => {
                let row = (&opening, key_space.as_str());
                if !self.of.insert(row, options, link).await? {
                    return Ok(Err(self.of.made_meanwhile()));
                }
            }
            Some(found) => {
                let set = "key_space_id = ?, heir = ?, dropped_ms = NULL, id_max = ?, step = ?, step_min = ?, step_max = ?, \
                           cover_s = ?, refill_percent = ?";
                let values = values![
                    key_space.as_str(),
                    opening.text(),
                    options.id_max.min(self.of.store.id_max),
                    options.step.get(),
                    options.step_min.get(),
                    options.step_max.get(),
                    options.cover_s,
                    options.refill_percent,
                ];
                self.of.change(found, (set, values), link).await?;
            }
        }
        Ok(Ok(plan))
    }
}

/// Opens a tag's row, above what all the others gave, which are closed in its favour: the first id that it gives.
#[derive(Debug)]
pub(crate) struct OpenHome {
    pub(crate) of: TagIn,
    pub(crate) key_space: String,
    /// The first id that none of the others gave.
    pub(crate) bound: u64,
    /// The first id of the tag that any of them gave; `None`: none gave any.
    pub(crate) start: Option<u64>,
    /// The most ids per second that were ever used of it where it was.
    pub(crate) rate_per_s: u64,
    /// The stores in which it is closed: as its last home listed them, and more.
    pub(crate) closed_in: (Option<String>, Vec<String>),
    /// That of this store.
    pub(crate) mark: String,
}

impl Transaction<Result<Plan<u64>, Failure>> for OpenHome {
    async fn run(&self, link: &mut Link) -> Result<Result<Plan<u64>, Failure>, StoreError> {
        link.begin().await?;
        let opened = self.open(link).await?;
        link.end(matches!(opened, Ok(Plan::Change(_)))).await?;
        Ok(opened)
    }
}

impl OpenHome {
    async fn open(&self, link: &mut Link) -> Result<Result<Plan<u64>, Failure>, StoreError> {
        let found = match self.of.find(link).await? {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        let row = found.as_ref().map(|found| &found.row);
        let plan = match plan_open(row, &self.key_space, self.bound) {
            Ok(plan) => plan,
            Err(refused) => return Ok(Err(self.of.refused(&refused))),
        };
        let (Plan::Change(first), Some(found)) = (&plan, &found) else {
            return Ok(Ok(plan));
        };
        if *first > found.options.id_max {
            let message = format!(
                "tag \"{}\" of store \"{}\" ends below {first}",
                self.of.tag, self.of.name
            );
            return Ok(Err(Failure::new(Cause::TagExhausted, message)));
        }
        let (known, more) = &self.closed_in;
        let closed_in = match listed(known.as_deref(), more, Some(&self.mark)) {
            Ok(closed_in) => closed_in,
            Err(failure) => return Ok(Err(failure)),
        };
        // Of a row that gave some itself, its own first counts too.
        let own = (found.start < found.row.free).then_some(found.start);
        let start = match (self.start, own) {
            (Some(theirs), Some(own)) => theirs.min(own),
            (Some(first), None) | (None, Some(first)) => first,
            (None, None) => *first,
        };
        let set = format!(
            "hi = ?, start_id = ?, heir = NULL, closed_in = ?, server = ?, rate_per_s = ?, reserved_ids = 0, reserved_ms = {}",
            self.of.store.words.now_ms()
        );
        let values = values![
            *first,
            start,
            closed_in,
            link.server.identity.as_str(),
            self.rate_per_s.max(found.rate_per_s),
        ];
        record_last(&self.of.store, link).await?;
        self.of.change(found, (&set, values), link).await?;
        discard_all(&self.of.store, &self.of.tag, *first, link).await?;
        Ok(Ok(plan))
    }
}

/// Lists further stores in an open row.
#[derive(Debug)]
pub(crate) struct RecordClosed {
    pub(crate) of: TagIn,
    pub(crate) key_space: String,
    pub(crate) marks: Vec<String>,
}

impl Transaction<Result<(), Failure>> for RecordClosed {
    async fn run(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        link.begin().await?;
        let recorded = self.record(link).await?;
        link.end(recorded.is_ok()).await?;
        Ok(recorded)
    }
}

impl RecordClosed {
    async fn record(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        let found = match self.of.find(link).await? {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        let is_it = |found: &FoundHome| {
            found.row.key_space == self.key_space && found.row.standing == Standing::Open
        };
        let Some(found) = found.filter(is_it) else {
            return Ok(Err(self.of.refused(&Refused::Overtaken)));
        };
        let closed_in = match listed(found.closed_in.as_deref(), &self.marks, None) {
            Ok(closed_in) => closed_in,
            Err(failure) => return Ok(Err(failure)),
        };
        if closed_in != found.closed_in {
            let change = ("closed_in = ?", values![closed_in]);
            self.of.change(&found, change, link).await?;
        }
        Ok(Ok(()))
    }
}
