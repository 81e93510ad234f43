//! Ranges out of a counter of a Redis: nobody answers for it, so it is doubted whenever it may have lost something.

use std::sync::Arc;

use keywright_core::{Cause, Tag};
use uuid::Uuid;

use super::granting::{another_key_space, gone_back, granted, misfit, size, taken};
use crate::engine::redis::RedisLink;
use crate::engine::redis::error::RedisError;
use crate::engine::redis::judge::{Misfit, Record, Standing, advanced, range, standing};
use crate::failure::Failure;
use crate::store::tag_request::{Denied, Granted, ReservationRequest};
use crate::store::{Store, StoreError};
use crate::use_up::Extent;

pub(super) async fn reserve(
    request: &ReservationRequest<'_>,
    link: &mut RedisLink,
) -> Result<Result<Granted, Denied>, StoreError> {
    let tag = request.tag;
    let counter = link.counter(tag.as_str()).await?;
    let taken = taken(request);
    let record = counter.record.as_ref();
    let is = standing(counter.number, record, &counter.life, taken);
    let Some(record) = counter.record.filter(|_| is == Standing::Good) else {
        return Ok(Err(doubted(tag, &link.host, is)));
    };
    let known = request.key_space.as_deref();
    if known.is_some_and(|known| known != record.key_space) {
        return Ok(Err(another_key_space(tag, &link.host)));
    }
    let most = u64::try_from(request.store.tags.step_max).unwrap_or(1);
    let most = most.max(request.residue.width_of(request.need));
    let (count, row) = match size(request, most) {
        Ok(sized) => sized,
        Err(denied) => return Ok(Err(denied)),
    };
    let before = counter.number.and_then(|number| u64::try_from(number).ok());
    let before = before.unwrap_or(0);
    let Some(bound) = before
        .checked_add(count)
        .filter(|bound| *bound < request.store.id_max)
    else {
        return Ok(Err(Denied::Other(misfit(
            tag,
            &link.host,
            Misfit::TooLarge,
        ))));
    };
    let key_space: Arc<str> = Arc::from(record.key_space.as_str());
    let record = Record { bound, ..record };
    let increased = link.increase_plain(tag.as_str(), count, &record).await?;
    if increased.life != record.life {
        return Ok(Err(doubted(tag, &link.host, Standing::AnotherLife)));
    }
    // Others may have counted on in between; nobody may have counted back.
    let range = match range(increased.last, count, taken.max(before)) {
        Ok(range) => range,
        Err(why) => return Ok(Err(Denied::Suspended(misfit(tag, &link.host, why)))),
    };
    Ok(Ok(granted(
        request,
        row,
        range,
        (link.host.clone(), key_space),
    )))
}

pub(super) async fn look(
    store: &Store,
    tag: &Tag,
    link: &mut RedisLink,
) -> Result<Result<(), Failure>, RedisError> {
    let counter = link.counter(tag.as_str()).await?;
    let seen = store.seen(tag).saturating_sub(1);
    let record = counter.record.as_ref();
    Ok(
        match standing(counter.number, record, &counter.life, seen) {
            Standing::Good => Ok(()),
            is => Err(doubt(tag, &link.host, is)),
        },
    )
}

/// Vouches for a counter, and raises it: in the life that the server has now, ranges may be taken of it again. `may_use_up`: also where that leaves it almost
/// no ids.
pub(super) async fn advance(
    store: &Store,
    tag: &Tag,
    (id, may_use_up): (u64, bool),
    link: &mut RedisLink,
) -> Result<Result<u64, Failure>, StoreError> {
    let counter = link.counter(tag.as_str()).await?;
    let seen = store.seen(tag).saturating_sub(1);
    let bound = advanced(counter.number, counter.record.as_ref(), seen, id);
    let before = match counter.number.map_or(Ok(0), u64::try_from) {
        Ok(before) if bound < store.id_max => before,
        Ok(_) => {
            let message = format!("{bound} is beyond the largest id of tag \"{tag}\"");
            let failure = Failure::new(Cause::ArgumentOutOfRange, message);
            return Ok(Err(failure.hint(
                "no counter goes further: is it a number of this tag? If it is, use another tag",
            )));
        }
        Err(_) => return Ok(Err(doubt(tag, &link.host, Standing::Negative))),
    };
    // All that was seen of it counts as given here, so that nothing is left to be excepted.
    let given = advanced(counter.number, counter.record.as_ref(), seen, 0);
    let extent = Extent {
        free: given.saturating_add(1),
        id_max: store.id_max.saturating_sub(1),
        seen: None,
    };
    if let (Err(failure), false) = (extent.leave_enough(tag, id), may_use_up) {
        return Ok(Err(failure));
    }
    let record = Record {
        life: counter.life,
        bound,
        key_space: match counter.record {
            Some(record) => record.key_space,
            None => Uuid::new_v4().to_string(),
        },
    };
    let by = bound.saturating_sub(before);
    let increased = link.increase_plain(tag.as_str(), by, &record).await?;
    if increased.life != record.life {
        return Ok(Err(doubt(tag, &link.host, Standing::AnotherLife)));
    }
    match u64::try_from(increased.last) {
        Ok(last) if last >= bound => Ok(Ok(last.saturating_add(1))),
        Ok(last) => Ok(Err(gone_back(tag, &link.host, bound, last))),
        Err(_) => Ok(Err(doubt(tag, &link.host, Standing::Negative))),
    }
}

/// What is held of it is given no more: others may be given the same, once somebody has vouched for the counter.
fn doubted(tag: &Tag, host: &str, standing: Standing) -> Denied {
    Denied::Suspended(doubt(tag, host, standing))
}

fn doubt(tag: &Tag, host: &str, standing: Standing) -> Failure {
    let vouch = format!(
        "stop all programs that take ids of it there, see that no other Redis counts it any more, then keywright advance {tag} --above N, the highest id that \
         was given"
    );
    match standing {
        Standing::Unknown => {
            let failure = Failure::new(
                Cause::TagUnknown,
                format!(
                    "nobody has vouched for tag \"{tag}\" at {host}: it is new there, or what was there is lost"
                ),
            );
            failure.hint(format!(
                "if it is new: keywright advance {tag} --above 0; else {vouch}"
            ))
        }
        Standing::AnotherLife => {
            let failure = Failure::new(
                Cause::Suspended,
                format!(
                    "tag \"{tag}\" is suspended: {host} has started anew, or another Redis has taken its place (its master_replid is another one), and it may \
                     lack ids that were taken"
                ),
            );
            failure.hint(vouch)
        }
        Standing::Lower { was, is } => gone_back(tag, host, was, is),
        // Of a good one nothing is doubted; what is said then is true of none.
        Standing::Negative | Standing::Good => {
            let failure = Failure::new(
                Cause::BoundDamaged,
                format!("the counter of tag \"{tag}\" at {host} is below zero"),
            );
            failure.hint(vouch)
        }
    }
}
