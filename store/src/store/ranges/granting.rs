//! What of taking a range is the same wherever it comes from: how large it is, what it lies above, and what is said of one that does not fit.

use std::sync::Arc;

use keywright_core::{Cause, Tag};

use crate::engine::redis::judge::Misfit;
use crate::failure::Failure;
use crate::reserve::{Ends, StepNumbers, TagRow};
use crate::store::tag_request::{Denied, Granted, ReservationRequest};

/// How many ids to ask for; the tag's row as other stores have one. `most`: ids of one range at most.
pub(super) fn size(request: &ReservationRequest<'_>, most: u64) -> Result<(u64, TagRow), Denied> {
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
pub(super) fn taken(request: &ReservationRequest<'_>) -> u64 {
    let next = request.seen.max(request.floor);
    let next = next.max(request.store.seen(request.tag));
    next.saturating_sub(1)
}

pub(super) fn granted(
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
        id_max: Some(row.id_max),
        server,
        gap: 0,
        was_returned: false,
        generation: 0,
        key_space,
    }
}

/// A reply that names no range.
pub(super) fn misfit(tag: &Tag, host: &str, misfit: Misfit) -> Failure {
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
pub(super) fn gone_back(tag: &Tag, host: &str, was: u64, is: u64) -> Failure {
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
pub(super) fn another_key_space(tag: &Tag, host: &str) -> Denied {
    let failure = Failure::new(
        Cause::BoundDamaged,
        format!(
            "tag \"{tag}\" at {host} is another one now than before: it was made anew, or the store behind it was"
        ),
    );
    let hint = "keywright advance above all that was given, if that is not done yet; then start the program again";
    Denied::AnotherKeySpace(failure.hint(hint))
}
