//! Ranges of tags out of a key port of another program, or of a Redis: what SQL does on other engines, `INCRBY` does here.

mod key_port;
mod plain;

use std::sync::Arc;

use keywright_core::{Cause, Tag};

use super::tag_request::{Denied, Granted, ReservationRequest};
use super::{Link, Store, StoreError, Transaction};
use crate::engine::redis::judge::Misfit;
use crate::engine::redis::{RedisLink, ServerKind};
use crate::failure::Failure;
use crate::reserve::{Ends, StepNumbers, TagRow};

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

/// Has all later ids lie above one, by the word of somebody who knows how far ids were given. The first id that nobody was given.
pub(super) async fn advance(
    store: &Store,
    tag: &Tag,
    id: u64,
    link: &mut RedisLink,
) -> Result<Result<u64, Failure>, StoreError> {
    match link.kind {
        ServerKind::Plain => plain::advance(store, tag, id, link).await,
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
    /// What the one who was asked is no good for.
    pub(crate) weaknesses: Vec<String>,
    /// Tags of which no range can be had, and why.
    pub(crate) refused: Vec<(Tag, Failure)>,
}

impl Transaction<Looked> for LookAtTags {
    async fn run(&self, link: &mut Link) -> Result<Looked, StoreError> {
        let weaknesses = link.server.weaknesses.clone();
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
                ServerKind::Plain => plain::look(&self.store, tag, redis).await,
            };
            match looked {
                Ok(Ok(())) => {}
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

/// How many ids to ask for; the tag's row as other stores have one. `most`: ids of one range at most.
fn size(request: &ReservationRequest<'_>, most: u64) -> Result<(u64, TagRow), Denied> {
    let tags = request.store.tags;
    let numbers = StepNumbers {
        step: tags.step,
        step_min: tags.step,
        step_max: tags.step_max,
        cover_ms: tags.cover_ms,
    };
    let (step, policy) = numbers.check().map_err(|error| {
        let failure = Failure::new(Cause::ArgumentOutOfRange, error.to_string());
        Denied::Other(failure)
    })?;
    let row = TagRow {
        number: 0,
        ends: Ends::NextId,
        id_max: request.store.id_max,
        step,
        policy,
        residue: request.residue,
        refill_percent: tags.refill_percent,
        last: None,
    };
    let need = request.residue.width_of(request.need);
    if need > most {
        let failure = Failure::new(
            Cause::ArgumentOutOfRange,
            format!(
                "one range of tag \"{}\" has at most {most} ids there, and {need} are wanted",
                request.tag
            ),
        );
        let hint = "ask for fewer, or raise range_ids_max there; here it should be no larger";
        return Err(Denied::TooLarge(failure.hint(hint)));
    }
    let want = request.steps.want(&row, request.uptime_ms);
    let want = request
        .residue
        .width_of(want)
        .max(need)
        .clamp(1, most.max(1));
    Ok((want, row))
}

/// The highest id that is known to be taken: by anybody in this program, or as others tell.
fn taken(request: &ReservationRequest<'_>) -> u64 {
    let next = request.seen.max(request.floor);
    let next = next.max(request.store.seen(request.tag));
    next.saturating_sub(1)
}

fn granted(
    request: &ReservationRequest<'_>,
    row: TagRow,
    (start, end): (u64, u64),
    (server, key_space): (String, Arc<str>),
) -> Granted {
    Granted {
        start,
        end,
        residue: request.residue,
        row: TagRow { number: end, ..row },
        server,
        gap: 0,
        was_returned: false,
        generation: 0,
        key_space,
    }
}

/// A reply that names no range.
fn misfit(tag: &Tag, host: &str, misfit: Misfit) -> Failure {
    match misfit {
        Misfit::Lower { was, is } => gone_back(tag, host, was, is),
        Misfit::TooLarge => Failure::new(
            Cause::TagExhausted,
            format!("tag \"{tag}\" at {host} has no ids left"),
        ),
        Misfit::NotPositive => Failure::new(
            Cause::BoundDamaged,
            format!("tag \"{tag}\" at {host} is below 1"),
        ),
    }
}

/// It gives ids that are taken, as far as this program has seen: here, or in tables.
fn gone_back(tag: &Tag, host: &str, was: u64, is: u64) -> Failure {
    let failure = Failure::new(
        Cause::BoundDamaged,
        format!(
            "tag \"{tag}\" at {host} has gone back, or tables have ids of their own: it is at {is}, and ids up to {was} are taken"
        ),
    );
    failure.hint(format!(
        "keywright advance {tag} --above {was}, or the highest id in use if that is higher, where the counter is"
    ))
}

/// The same name stands for another tag now.
fn another_key_space(tag: &Tag, host: &str) -> Denied {
    let failure = Failure::new(
        Cause::BoundDamaged,
        format!(
            "tag \"{tag}\" at {host} is another one now than before: it was made anew, or the store behind it was"
        ),
    );
    let hint = "keywright advance above all that was given, if that is not done yet; then start the program again";
    Denied::AnotherKeySpace(failure.hint(hint))
}
