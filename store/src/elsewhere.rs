//! What other stores say of a tag.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use keywright_core::{Cause, Tag};
use tokio::runtime::Handle;

use crate::failure::{Failure, broken_off};
use crate::home::{Refused, Standing};
use crate::store::home_rows::{FoundHome, ReadHome, TagIn};
use crate::store::ranges::LookAtTags;
use crate::store::tag_denied::unsettled;

/// What stands in a store of a tag; one that keeps no rows says only whether it has it.
#[derive(Debug, Clone)]
pub(crate) enum Stands {
    Nothing,
    Row(Box<FoundHome>),
    /// A tag of another system's, or one behind a key port.
    Others,
}

/// How the other stores are asked whether they have a tag open.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    others: Vec<(TagIn, Handle, IsRanges)>,
    /// What rows say whose ids come from here.
    mark: String,
    /// Tags that none of them has.
    certain: Mutex<HashSet<Tag>>,
}

/// Whether a store gives ranges and keeps no rows.
pub(crate) type IsRanges = bool;

impl Elsewhere {
    pub(crate) fn new(others: Vec<(TagIn, Handle, IsRanges)>, mark: String) -> Self {
        Self {
            others,
            mark,
            certain: Mutex::default(),
        }
    }

    /// That no other store has a tag open. What was found once stays: rows that say so stay closed.
    ///
    /// # Errors
    /// One has; one cannot be asked.
    pub(crate) async fn has_no_other(&self, tag: &Tag) -> Result<(), Failure> {
        let certain = || self.certain.lock().unwrap_or_else(PoisonError::into_inner);
        if certain().contains(tag) {
            return Ok(());
        }
        for (of, handle, is_ranges) in &self.others {
            let of = TagIn {
                tag: tag.clone(),
                ..of.clone()
            };
            let (name, store) = (of.name.clone(), Arc::clone(&of.store));
            let stands = stands(of, handle, *is_ranges).await.map_err(|failure| {
                let message = format!(
                    "whether store \"{name}\" has tag \"{tag}\" open too is not known: {failure}"
                );
                Failure::new(Cause::TagHomeUnknown, message)
            })?;
            let keeps_rows = store.dialect.is_own() && !is_ranges;
            let refused = match stands {
                Stands::Others => Some(Refused::Open.failure(tag.as_str(), &name)),
                Stands::Row(found) if is_open(&found) => {
                    Some(Refused::Open.failure(tag.as_str(), &name))
                }
                Stands::Row(found) => match found.row.standing {
                    Standing::Elsewhere(its) if its == self.mark => None,
                    Standing::Elsewhere(_)
                    | Standing::Open
                    | Standing::Opening(_)
                    | Standing::Native(_) => Some(unsettled(tag, &name)),
                },
                // Somebody could make it there.
                Stands::Nothing => keeps_rows.then(|| unsettled(tag, &name)),
            };
            if let Some(failure) = refused {
                return Err(failure);
            }
        }
        certain().insert(tag.clone());
        Ok(())
    }
}

pub(crate) fn is_open(found: &FoundHome) -> bool {
    found.row.standing == Standing::Open && !found.row.is_dropped
}

pub(crate) async fn stands(
    of: TagIn,
    handle: &Handle,
    is_ranges: IsRanges,
) -> Result<Stands, Failure> {
    let asked = handle.spawn(async move {
        let store = Arc::clone(&of.store);
        if is_ranges {
            let look = LookAtTags {
                store: Arc::clone(&store),
                tags: vec![of.tag.clone()],
            };
            let looked = store
                .run_in_turn(look)
                .await
                .map_err(|error| store.failure(&error))?;
            let mut refused = looked.refused.iter();
            return Ok(
                match refused.any(|(_, failure)| failure.cause() == Cause::TagUnknown) {
                    true => Stands::Nothing,
                    false => Stands::Others,
                },
            );
        }
        let is_own = store.dialect.is_own();
        let found = store.run_in_turn(ReadHome(of)).await;
        let found = found.map_err(|error| store.failure(&error))??;
        Ok(match found {
            None => Stands::Nothing,
            Some(found) if is_own => Stands::Row(Box::new(found)),
            Some(_) => Stands::Others,
        })
    });
    asked.await.unwrap_or_else(broken_off)
}
