//! Reserving: one transaction on a tag's row.

use std::sync::Arc;

use keywright_core::residue::Residue;
use keywright_core::{Cause, Tag};

use super::former::{read_any_row, record, record_last};
use super::look_back::{begin_looked_at, judge, tell};
use super::order_rows::is_active;
use super::returned::{Worthless, discard, take_returned};
use super::tag_denied::{
    ambiguous, another_key_space, dropped, eaten, may_be_open, ordered, settling, superseded,
    unknown, untaken,
};
use super::tag_hiding::{hiding_of, refuse_other};
use super::tag_read::{closed_here, is_dropped, key_space, order_of, standing_of};
use super::tag_request::{Denied, Granted, ReservationRequest};
use super::{Link, Row, Store, StoreError, Transaction, Value, column, ranges, values};
use crate::dialect::{Dialect, SKEW_MS_MAX};
use crate::failure::Failure;
use crate::home::Standing;
use crate::reserve::{
    Ask, Recorded, Reservation, TagRow, gap_before, number_past_rest, plan_reservation,
};
use crate::tag_order::TagOrder;

impl Transaction<Result<Granted, Denied>> for ReservationRequest<'_> {
    /// One transaction: lock the row, read it, write by compare-and-swap, commit. Any failure, also one in COMMIT, is an
    /// error to the caller, which publishes nothing then.
    async fn run(&self, link: &mut Link) -> Result<Result<Granted, Denied>, StoreError> {
        let result = match link.ranges() {
            Some(redis) => ranges::reserve(self, redis).await?,
            None => {
                // In tables of other systems nobody tells others what he has seen.
                if !begin_looked_at(self.store, self.store.dialect.is_own(), link).await? {
                    return Ok(Err(Denied::Settling(settling())));
                }
                let place = self.store.losses.place(&link.server.identity);
                let result = reserve(self, link).await?;
                let is_kept = match &result {
                    Err(Denied::GoneBack(gone_back)) => {
                        tell(gone_back, self.store, self.tag, link).await?
                    }
                    result => result.is_ok(),
                };
                link.end(is_kept).await?;
                if result.is_ok() {
                    self.store.losses.note_recorded(place);
                }
                result
            }
        };
        if let Ok(granted) = &result {
            let bound = granted.bound();
            self.store.note_seen(self.tag, bound);
            let key_space = granted.key_space.to_string();
            self.store.note_bound(self.tag, (key_space, bound));
        }
        Ok(result)
    }
}

async fn reserve(
    request: &ReservationRequest<'_>,
    link: &mut Link,
) -> Result<Result<Granted, Denied>, StoreError> {
    let store = request.store;
    let rows = link
        .rows(store.select_row(), values![request.tag.as_str()])
        .await?;
    let found = match the_only(&rows, store, request.tag)? {
        Ok(found) => found,
        Err(denied) => return Ok(Err(denied)),
    };
    let (row, now_ms) = match read_any_row(store, found, request.tag, request.residue, link).await?
    {
        Ok(read) => read,
        Err(denied) => return Ok(Err(denied)),
    };
    if let Err(denied) = may_be_asked(request, found, link).await? {
        return Ok(Err(denied));
    }
    let (generation, key_space): (u64, _) = (column(found, "generation")?, key_space(found)?);
    if let Err(denied) = is_of_key_space(request, &key_space) {
        return Ok(Err(denied));
    }
    let seen = request.seen.max(store.seen_of(request.tag, &key_space));
    if let Some(gone_back) = judge(store, request.tag, (found, &row), (seen, now_ms))? {
        return Ok(Err(Denied::GoneBack(gone_back)));
    }
    // Data that was put back may be of an older generation.
    if let Err(denied) = is_followed(request, generation) {
        return Ok(Err(denied));
    }
    let after_ms = match store.dialect.is_own() {
        true => life_began_behind(found, now_ms, link)?,
        false => None,
    };
    let ask = Ask {
        residue: row.residue,
        want: request.steps.want(&row, request.uptime_ms),
        need: request.need,
        floor: request.floor,
        now_ms,
    };
    record(store, found, &row, now_ms, link).await?;
    record_last(store, link).await?;
    if let Some(worthless) = worthless(request, &row) {
        discard(request, worthless, link).await?;
    }
    Ok(take(request, link, (row, generation, after_ms), &ask)
        .await?
        .map(|taken| Granted {
            start: taken.start,
            end: taken.end,
            residue: taken.row.residue,
            row: taken.row,
            id_max: Some(taken.row.id_max),
            server: link.server.identity.clone(),
            gap: taken.gap,
            was_returned: taken.was_returned,
            generation,
            key_space,
        }))
}

/// A range that was taken, and the tag's row as it is from now on where that says more.
struct Taken {
    start: u64,
    end: u64,
    gap: u64,
    was_returned: bool,
    row: TagRow,
}

/// Takes a rest that was handed back, or makes a reservation.
async fn take(
    request: &ReservationRequest<'_>,
    link: &mut Link,
    (row, generation, after_ms): (TagRow, u64, Option<i64>),
    ask: &Ask,
) -> Result<Result<Taken, Denied>, StoreError> {
    if request.returned
        && let Some(rest) = take_returned(request, generation, link).await?
    {
        return Ok(Ok(Taken {
            start: rest.start,
            end: rest.end,
            gap: 0,
            was_returned: true,
            row: pass_rest(request, link, row, generation).await?,
        }));
    }
    let reservation = match planned(request.tag, &row, ask) {
        Ok(reservation) => reservation,
        Err(denied) => return Ok(Err(denied)),
    };
    let recorded = Recorded {
        at_ms: reservation
            .recorded
            .at_ms
            .max(after_ms.map_or(i64::MIN, |ms| ms.saturating_add(1))),
        ..reservation.recorded
    };
    let reservation = Reservation {
        recorded,
        ..reservation
    };
    write(request, link, &row, &reservation, generation).await?;
    Ok(Ok(Taken {
        start: reservation.start,
        end: reservation.end,
        gap: reservation.gap,
        was_returned: false,
        row,
    }))
}

/// Behind which moment all is dated that is written in this life of the server that wrote a row, unix milliseconds; nothing: it has had no other, or is not the one
/// that is asked. Dated by a clock that was set back, the row would be of the life before, again and again.
fn life_began_behind(found: &Row, now_ms: i64, link: &Link) -> Result<Option<i64>, StoreError> {
    let server: Option<String> = column(found, "server")?;
    let former_ms: Option<i64> = column(found, "former_ms")?;
    // Dated further ahead, nobody would look at the row.
    let ahead_ms = now_ms.saturating_add(SKEW_MS_MAX);
    let is_here = server.as_deref() == Some(&*link.server.identity);
    Ok(former_ms.filter(|former_ms| is_here && *former_ms < ahead_ms))
}

/// The row of a tag that is there, out of those that have its name.
fn the_only<'r>(
    rows: &'r [Row],
    store: &Store,
    tag: &Tag,
) -> Result<Result<&'r Row, Denied>, StoreError> {
    Ok(match rows {
        [found] if is_dropped(store, found)? => Err(Denied::Other(dropped(tag))),
        [found] => Ok(found),
        [] => Err(Denied::Other(unknown(store, tag))),
        [_, ..] => Err(ambiguous(store, tag)),
    })
}

/// That who asks may have ids of the tag whose row this is.
async fn may_be_asked(
    request: &ReservationRequest<'_>,
    row: &Row,
    link: &mut Link,
) -> Result<Result<(), Denied>, StoreError> {
    if let Err(denied) = in_order(request, row, link).await? {
        return Ok(Err(denied));
    }
    if let Some(failure) = closed(request.store, row, request.tag)? {
        return Ok(Err(Denied::Other(failure)));
    }
    hidden_alike(request, row)
}

/// That what who asks has of the tag is of the same key space, and what the database has that is to be handed the range.
fn is_of_key_space(request: &ReservationRequest<'_>, key_space: &Arc<str>) -> Result<(), Denied> {
    match &request.key_space {
        Some(known) if known != key_space => {
            return Err(Denied::AnotherKeySpace(another_key_space(request.tag)));
        }
        Some(_) | None => {}
    }
    let receiver = request.receiver;
    let refused = receiver.and_then(|receiver| untaken(request.tag, receiver, key_space));
    refused.map_or(Ok(()), |failure| Err(Denied::Other(failure)))
}

/// That it follows the tag's generation.
fn is_followed(request: &ReservationRequest<'_>, generation: u64) -> Result<(), Denied> {
    match request.generation {
        Some(followed) if followed != generation => {
            Err(superseded(request.tag, followed, generation))
        }
        Some(_) | None => Ok(()),
    }
}

/// What of the rests that were handed back nobody may have any more.
fn worthless(request: &ReservationRequest<'_>, row: &TagRow) -> Option<Worthless> {
    match row.last {
        Some(last) if last.same_server => request.returned.then_some(Worthless::OfOtherServers),
        Some(_) => Some(Worthless::All),
        // Tables of other systems do not say who wrote last.
        None => Some(Worthless::OfOtherServers),
    }
}

fn planned(tag: &Tag, row: &TagRow, ask: &Ask) -> Result<Reservation, Denied> {
    plan_reservation(row, ask).map_err(|exhausted| {
        let is_nothing_left = plan_reservation(row, &Ask { need: 0, ..*ask }).is_err();
        match gap_before(row, ask) > 0 && is_nothing_left {
            true => eaten(tag, row),
            false => Denied::Exhausted(exhausted),
        }
    })
}

/// That ids of an ordered tag go to the program that is active, and to nobody else.
async fn in_order(
    request: &ReservationRequest<'_>,
    row: &Row,
    link: &mut Link,
) -> Result<Result<(), Denied>, StoreError> {
    let tag = request.tag;
    let order = match order_of(request.store, row, tag)? {
        Ok(order) => order,
        Err(failure) => return Ok(Err(Denied::Other(failure))),
    };
    match (order, &request.right) {
        (TagOrder::Distinct, None) => Ok(Ok(())),
        (TagOrder::Distinct, Some(_)) => {
            let message = format!("tag \"{tag}\" was ordered, and is not any more");
            Ok(Err(Denied::Other(Failure::new(
                Cause::BoundDamaged,
                message,
            ))))
        }
        (TagOrder::Monotonic | TagOrder::Strict, None) => {
            Ok(Err(Denied::Ordered(order, ordered(tag))))
        }
        (TagOrder::Monotonic | TagOrder::Strict, Some(right)) => {
            match is_active(right, tag, link).await? {
                true => Ok(Ok(())),
                false => {
                    let message = format!(
                        "another program issues ids of ordered tags now, so none of \"{tag}\" are reserved here"
                    );
                    let failure = Failure::new(Cause::NobodyActive, message);
                    Ok(Err(Denied::NotActive(failure)))
                }
            }
        }
    }
}

/// Why nobody reserves of a tag: its ids come from elsewhere, or may.
fn closed(store: &Store, row: &Row, tag: &Tag) -> Result<Option<Failure>, StoreError> {
    if !store.dialect.is_own() {
        return Ok(None);
    }
    Ok(match standing_of(row, tag)? {
        Ok(Standing::Open) => not_closed_elsewhere(store, row, tag)?,
        Ok(standing @ (Standing::Opening(_) | Standing::Elsewhere(_) | Standing::Native(_))) => {
            Some(closed_here(tag, &standing))
        }
        Err(failure) => Some(failure),
    })
}

/// Why nobody who has these stores reserves of a tag: it may be open in another of them.
fn not_closed_elsewhere(
    store: &Store,
    row: &Row,
    tag: &Tag,
) -> Result<Option<Failure>, StoreError> {
    let closed_in: Option<String> = column(row, "closed_in")?;
    Ok(may_be_open(&store.others, closed_in.as_deref(), tag))
}

/// That who asks sends the ids through the permutation that the tag was made with. It takes all numbers, and keeps no order.
fn hidden_alike(
    request: &ReservationRequest<'_>,
    row: &Row,
) -> Result<Result<(), Denied>, StoreError> {
    let tag = request.tag;
    let hiding = match hiding_of(request.store, row, tag)? {
        Ok(hiding) => hiding,
        Err(failure) => return Ok(Err(Denied::HiddenOtherwise(failure))),
    };
    if let Err(failure) = refuse_other(tag, hiding.as_ref(), request.hiding) {
        return Ok(Err(Denied::HiddenOtherwise(failure)));
    }
    if hiding.is_some() && (request.right.is_some() || request.residue != Residue::ALL) {
        let message = format!("tag \"{tag}\" hides its volume, so it has no order and no stride");
        let failure = Failure::new(Cause::HideKeyMismatch, message);
        return Ok(Err(Denied::HiddenOtherwise(failure)));
    }
    Ok(Ok(()))
}

/// Makes a reservation.
async fn write(
    request: &ReservationRequest<'_>,
    link: &mut Link,
    row: &TagRow,
    reservation: &Reservation,
    generation: u64,
) -> Result<(), StoreError> {
    let store = request.store;
    let mut values = match store.dialect {
        Dialect::Keywright => values![
            link.server.identity.as_str(),
            reservation.recorded.ids,
            reservation.recorded.at_ms,
            reservation.recorded.rate_per_s,
        ],
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Vec::new(),
    };
    values.extend(values![
        reservation.number,
        request.tag.as_str(),
        row.number
    ]);
    if store.dialect.is_own() {
        values.extend(values![generation]);
    }
    let update = store.dialect.update_row(&store.segment_table);
    swap(request, link, (update, values), reservation.number).await
}

/// Has the bound tell that a rest is used, in the transaction that takes it out: the row as it is from now on. Without that a store that
/// was put back to before, with the same bound, would give it once more, and nobody could see it.
async fn pass_rest(
    request: &ReservationRequest<'_>,
    link: &mut Link,
    row: TagRow,
    generation: u64,
) -> Result<TagRow, StoreError> {
    let Some(number) = number_past_rest(&row) else {
        return Ok(row);
    };
    let store = request.store;
    let mut values = values![number, request.tag.as_str(), row.number];
    if store.dialect.is_own() {
        values.extend(values![generation]);
    }
    let update = store.dialect.pass_row(&store.segment_table);
    swap(request, link, (update, values), number).await?;
    Ok(TagRow { number, ..row })
}

/// Moves the number by compare-and-swap, so that a table whose engine has no row locks is safe too, and reads it back.
async fn swap(
    request: &ReservationRequest<'_>,
    link: &mut Link,
    (update, values): (String, Vec<Value>),
    number: u64,
) -> Result<(), StoreError> {
    let store = request.store;
    link.change_one(update, values).await?;
    let written = link
        .first(store.select_row(), values![request.tag.as_str()])
        .await?;
    match written.as_ref().map(|row| column::<u64>(row, "number")) {
        Some(Ok(found)) if found == number => Ok(()),
        Some(Ok(_) | Err(_)) | None => Err(StoreError::NotLocked),
    }
}
