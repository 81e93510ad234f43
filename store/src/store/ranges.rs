//! Ranges of tags out of a key port of another program, or of a Redis: what SQL does on other engines, `INCRBY` does here.

mod granting;
mod key_port;
mod plain;

use std::sync::Arc;

use keywright_core::{Cause, Tag};

use super::tag_request::{Denied, Granted, ReservationRequest};
use super::{Link, Store, StoreError, Transaction};
use crate::engine::redis::{RedisLink, ServerKind};
use crate::failure::Failure;

/// Takes a range.
pub(super) async fn reserve(
    request: &ReservationRequest<'_>,
    link: &mut RedisLink,
) -> Result<Result<Granted, Denied>, StoreError> {
    match link.kind {
        ServerKind::KeyPort => key_port::reserve(request, link).await,
        ServerKind::Plain => plain::reserve(request, link).await,
    }
}

/// Has all later ids lie above one, by the word of somebody who knows how far ids were given, and who may have said that this may use the tag up. The first id
/// that nobody was given.
pub(super) async fn advance(
    store: &Store,
    tag: &Tag,
    (id, may_use_up): (u64, bool),
    link: &mut RedisLink,
) -> Result<Result<u64, Failure>, StoreError> {
    match link.kind {
        ServerKind::Plain => plain::advance(store, tag, (id, may_use_up), link).await,
        ServerKind::KeyPort => {
            let message = format!(
                "the bound of tag \"{tag}\" is not in the key port at {}, but in the store behind it",
                link.host
            );
            let failure = Failure::new(Cause::StoreUnavailable, message);
            Ok(Err(failure.hint(
                "keywright advance with the configuration of that program",
            )))
        }
    }
}

/// A look at tags that changes nothing.
#[derive(Debug)]
pub(crate) struct LookAtTags {
    pub(crate) store: Arc<Store>,
    pub(crate) tags: Vec<Tag>,
}

/// What a look at tags found.
#[derive(Debug)]
pub(crate) struct Looked {
    /// What the one who was asked is no good for, or not now.
    pub(crate) weaknesses: Vec<String>,
    /// Tags of which no range can be had, and why.
    pub(crate) refused: Vec<(Tag, Failure)>,
}

impl Transaction<Looked> for LookAtTags {
    async fn run(&self, link: &mut Link) -> Result<Looked, StoreError> {
        let mut weaknesses = link.server.weaknesses.clone();
        let Some(redis) = link.ranges() else {
            return Ok(Looked {
                weaknesses,
                refused: Vec::new(),
            });
        };
        let mut refused = Vec::new();
        for tag in &self.tags {
            let looked = match redis.kind {
                ServerKind::KeyPort => key_port::look(tag, redis).await,
                ServerKind::Plain => {
                    let looked = plain::look(&self.store, tag, redis).await;
                    looked.map(|looked| looked.map(|()| None))
                }
            };
            match looked {
                Ok(Ok(not_now)) => weaknesses.extend(not_now),
                Ok(Err(failure)) => refused.push((tag.clone(), failure)),
                Err(error) => {
                    let error = StoreError::from(error);
                    match error.cause() {
                        // Of all tags.
                        Cause::StoreUnavailable => return Err(error),
                        _ => refused.push((tag.clone(), self.store.failure(&error))),
                    }
                }
            }
        }
        Ok(Looked {
            weaknesses,
            refused,
        })
    }
}
