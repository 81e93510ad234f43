//! Which range of a tag is reserved next, and what is said when there is none.

use std::sync::atomic::Ordering;

use keywright_core::cause::Cause;
use keywright_core::residue::Residue;
use keywright_core::segment::{RefillPlan, RefillRequest, plan_refill};

use crate::cache::tag_entry::TagEntry;
use crate::failure::Failure;
use crate::identity::promotion;
use crate::refill::tag_siblings;

/// The first id above a bound.
pub fn end_of(bound: Option<i64>) -> u64 {
    let last = bound.and_then(|last| u64::try_from(last).ok());
    last.map_or(0, |last| last.saturating_add(1))
}

/// A reservation whose outcome was unknown is ours still if nothing was written since: it is made again, not skipped.
fn bound_end(entry: &TagEntry, bound: Option<i64>) -> Option<u64> {
    let end = u64::try_from(bound?).ok()?.saturating_add(1);
    let slot = entry.slot();
    if end == slot.attempted_end.load(Ordering::Relaxed) {
        Some(slot.attempted_start.load(Ordering::Relaxed))
    } else {
        Some(end)
    }
}

/// Where a tag ends whose end cannot be raised, for a message.
pub fn furthest_end(entry: &TagEntry) -> Option<String> {
    if let Some(hiding) = entry.hiding
        && entry.end_max > hiding.bits().largest()
    {
        return Some(format!("ends where {} bits do", hiding.bits().get()));
    }
    (entry.end_max >= i64::MAX.unsigned_abs()).then(|| "ends where bigint does".to_owned())
}

/// How many ids one call could have at most: those behind the last number that it could not begin at.
fn ids_left(request: &RefillRequest, class: Residue) -> u64 {
    let first = request.end_max.saturating_sub(request.available());
    class
        .index_from(request.end_max)
        .saturating_sub(class.index_from(first))
}

/// The range that follows all that was reserved, and `gap`.
///
/// # Errors
/// The tag has not enough left.
pub fn plan(
    entry: &TagEntry,
    bound: Option<i64>,
    (need, want): (u64, u64),
    gap: u64,
) -> Result<RefillPlan, Failure> {
    let slot = entry.slot();
    let class = entry.class;
    // The last numbers before the end of a tag may hold an id of its class, or not: who asked looks again.
    let (needed, want) = if class == Residue::ALL {
        (need, want)
    } else {
        (need.min(1), want.max(class.width_of(need)))
    };
    let request = RefillRequest {
        bound_end: bound_end(entry, bound),
        start: entry.start.max(if slot.taken_over.load(Ordering::Relaxed) {
            0
        } else {
            tag_siblings::highest(entry.key)
        }),
        end_max: entry.end_max,
        word_hi: slot.word.hi(),
        remaining: slot.word.remaining(),
        need: needed,
        want,
        gap,
    };
    let written_end = end_of(bound);
    plan_refill(&request)
        .map(|plan| RefillPlan {
            end: plan.end.max(written_end),
            ..plan
        })
        .map_err(|_| {
            if gap > 0 && plan_refill(&RefillRequest { gap: 0, ..request }).is_ok() {
                return promotion::stranded(&entry.key.tag(), entry.end_max - 1, gap);
            }
            Failure::new(
                Cause::TagExhausted,
                format!(
                    "tag \"{}\" is exhausted at {}",
                    entry.key.tag(),
                    entry.end_max - 1
                ),
            )
            .detail(format!(
                "{} ids are left and {need} were asked for.",
                ids_left(&request, class)
            ))
            .hint(match furthest_end(entry) {
                Some(end) => format!("Use another tag: this one {end}."),
                None => format!(
                    "Raise its end with SELECT keywright.alter_tag('{}', max => n), or use another tag.",
                    entry.key.tag()
                ),
            })
        })
}
