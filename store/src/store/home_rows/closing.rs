//! A row that is closed in favour of another.

use std::collections::BTreeSet;

use keywright_core::{Cause, Tag};
use uuid::Uuid;

use super::super::returned::discard_all;
use super::super::switch_rows::{lock, rules};
use super::super::tag_admin::TagOptions;
use super::super::tag_left::left_by_tables;
use super::super::{Link, StoreError, Transaction, values};
use super::TagIn;
use crate::failure::Failure;
use crate::home::{Plan, Standing, plan_claim, plan_close};
use crate::switch::space::KeySpace;
use crate::switch::state::Phase;

/// Has a tag's row say that its ids come from another store: the first id that nobody was given of it.
#[derive(Debug)]
pub(crate) struct ClaimHome {
    pub(crate) of: TagIn,
    /// The key space of the tag's home.
    pub(crate) home: String,
    pub(crate) leads: BTreeSet<String>,
    /// How programs reserve of it there.
    pub(crate) options: TagOptions,
}

impl Transaction<Result<Plan<u64>, Failure>> for ClaimHome {
    async fn run(&self, link: &mut Link) -> Result<Result<Plan<u64>, Failure>, StoreError> {
        link.begin().await?;
        let claimed = self.claim(link).await?;
        link.end(matches!(claimed, Ok(Plan::Change(_)))).await?;
        Ok(claimed)
    }
}

impl ClaimHome {
    async fn claim(&self, link: &mut Link) -> Result<Result<Plan<u64>, Failure>, StoreError> {
        let found = match self.of.find(link).await? {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        let row = found.as_ref().map(|found| &found.row);
        let plan = plan_claim(row, &self.home, &self.leads);
        let plan = match plan {
            Ok(plan) => plan,
            Err(refused) => return Ok(Err(self.of.refused(&refused))),
        };
        let elsewhere = Standing::Elsewhere(self.home.clone());
        match (&plan, &found) {
            (Plan::AsItIs(_), _) => {}
            (Plan::Change(_), None) => {
                let its = Uuid::new_v4().simple().to_string();
                let row = (&elsewhere, its.as_str());
                if !self.of.insert(row, &self.options, link).await? {
                    return Ok(Err(self.of.made_meanwhile()));
                }
            }
            // The home would give what they number natively.
            (Plan::Change(_), Some(found)) if found.is_left_by_tables => {
                return Ok(Err(left_by_tables(&self.of.tag)));
            }
            (Plan::Change(_), Some(found)) => {
                let set = "heir = ?, dropped_ms = NULL";
                let values = values![elsewhere.text()];
                self.of.change(found, (set, values), link).await?;
                let of = &self.of;
                discard_all(&of.store, &of.tag, found.row.free, link).await?;
            }
        }
        Ok(Ok(plan))
    }
}

/// Closes a tag's row for everybody in favour of another: the bound, which stays in the row.
#[derive(Debug)]
pub(crate) struct CloseHome {
    pub(crate) of: TagIn,
    /// The key space of the row that opens then.
    pub(crate) target: String,
}

impl Transaction<Result<Plan<u64>, Failure>> for CloseHome {
    async fn run(&self, link: &mut Link) -> Result<Result<Plan<u64>, Failure>, StoreError> {
        link.begin().await?;
        let closed = self.close(link).await?;
        link.end(matches!(closed, Ok(Plan::Change(_)))).await?;
        Ok(closed)
    }
}

impl CloseHome {
    async fn close(&self, link: &mut Link) -> Result<Result<Plan<u64>, Failure>, StoreError> {
        if let Some(failure) = under_switch(&self.of.tag, link).await? {
            return Ok(Err(failure));
        }
        let found = match self.of.find(link).await? {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        // Also where it is closed already: nothing is to open then.
        if found.as_ref().is_some_and(|found| found.is_left_by_tables) {
            return Ok(Err(left_by_tables(&self.of.tag)));
        }
        let plan = plan_close(found.as_ref().map(|found| &found.row), &self.target);
        let plan = match plan {
            Ok(plan) => plan,
            Err(refused) => return Ok(Err(self.of.refused(&refused))),
        };
        if let (Plan::Change(bound), Some(found)) = (&plan, &found) {
            let values = values![*bound, Standing::Elsewhere(self.target.clone()).text()];
            let set = "hi = ?, heir = ?";
            self.of.change(found, (set, values), link).await?;
            discard_all(&self.of.store, &self.of.tag, *bound, link).await?;
        }
        Ok(Ok(plan))
    }
}

/// Why a tag stays where it is for now: tables are going over to it, or leave it. No attempt begins before the transaction ends.
async fn under_switch(tag: &Tag, link: &mut Link) -> Result<Option<Failure>, StoreError> {
    let locked = lock(link).await?;
    if locked.phase == Phase::None {
        return Ok(None);
    }
    let is_it = |keys: Option<&KeySpace>| keys.and_then(KeySpace::tag) == Some(tag);
    let mut rules = rules(link, Some(locked.attempt)).await?.into_iter();
    let found = rules.any(|(rule, _)| {
        let next = rule.next.as_ref().and_then(Option::as_ref);
        is_it(rule.keys.as_ref()) || is_it(next)
    });
    Ok(found.then(|| {
        let message = format!("tables are going over to tag \"{tag}\", or leave it");
        Failure::new(Cause::TagInUse, message).hint("run it again when the switch has ended")
    }))
}
