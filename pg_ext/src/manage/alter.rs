//! The SQL function that changes what a tag is made of: its step, its end, when it refills, and which numbers are ids.

use keywright_core::cause::Cause;
use keywright_core::tag::Tag;
use pgrx::{pg_extern, pg_sys};

use crate::cache;
use crate::catalog::{cached, suggest, tag_rows};
use crate::failure::{Failure, OrRaise};
use crate::manage::closing::begin_anew;
use crate::manage::definition::{self, Definition, number};
use crate::manage::row::{change_row, locked_existing};
use crate::manage::tags::require_native;
use crate::server::{changes, sequence};
use crate::{arguments, guard};

#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn keywright_alter_tag(
    tag: Option<&[u8]>,
    step: Option<i64>,
    step_min: Option<i64>,
    step_max: Option<i64>,
    max: Option<i64>,
    refill_threshold_percent: Option<i32>,
    increment: Option<i32>,
    remainder: Option<i32>,
) {
    let alter = || {
        guard::may_manage("alter_tag")?;
        let tag = arguments::tag_of(tag)?;
        let extension = cached::extension()?;
        let old = locked_existing(&tag, &extension)?;
        let row = tag_rows::find(&tag, &extension)?.ok_or_else(|| suggest::unknown_tag(&tag))?;
        let require_native = |hint| require_native(&tag, row.source, hint);
        if max.is_some() {
            require_native("Its end is the store's: change id_max of its row there.")?;
        }
        if refill_threshold_percent.is_some() {
            require_native("Its next range is asked for as soon as one is begun.")?;
        }
        let class = definition::class(increment, remainder, old.hidden.is_some())?;
        if class.is_some() {
            require_native("Whoever has a range of the store may issue all of it.")?;
        }
        let threshold = threshold(refill_threshold_percent, row.refill_threshold_percent)?;
        let max_now = (row.end_max - 1).cast_signed();
        let definition = Definition::new(
            None,
            step.unwrap_or_else(|| number(row.step)),
            (
                Some(step_min.unwrap_or_else(|| number(row.step_min))),
                Some(step_max.unwrap_or_else(|| number(row.step_max))),
            ),
            Some(max.unwrap_or(max_now)),
            old.hidden.as_ref().map(|hidden| hidden.bits),
        )?;
        refuse_below(&tag, definition.max, row.sequence)?;
        let is_shorter = max.is_some_and(|max| max < max_now);
        let changes_class = class.is_some_and(|class| class != old.class);
        if is_shorter || changes_class {
            // Else a session that knows the old end could reserve beyond the new one before this commits, or after.
            begin_anew(&tag, &old, &row)?;
            refuse_below(&tag, definition.max, row.sequence)?;
        }
        let [increment, remainder] = definition::numbers(class.unwrap_or(old.class));
        change_row(
            (&tag, old.id),
            "UPDATE keywright.tag SET step = $2, step_min = $3, step_max = $4, max = $5, refill_threshold_percent = $6, \
             increment = $7, remainder = $8 \
             WHERE id OPERATOR(pg_catalog.=) $1",
            &[
                old.id.into(),
                number(definition.step).into(),
                number(definition.step_min).into(),
                number(definition.step_max).into(),
                definition.max.into(),
                threshold.into(),
                increment.into(),
                remainder.into(),
            ],
        )?;
        changes::announce(extension.tag_table);
        cache::forget();
        Ok(())
    };
    alter().or_raise();
}

/// Fails if ids above `max` are reserved.
fn refuse_below(tag: &Tag, max: i64, bound: pg_sys::Oid) -> Result<(), Failure> {
    let reserved = sequence::last(bound).unwrap_or(0);
    if max >= reserved {
        return Ok(());
    }
    Err(Failure::new(
        Cause::ArgumentOutOfRange,
        format!("tag \"{tag}\" cannot end at {max}"),
    )
    .detail(format!("Ids up to {reserved} are reserved already."))
    .hint(format!("Choose a max from {reserved} on.")))
}

/// When a tag refills from now on, percent of a reservation: as was asked for, 0 for what the setting says, or as before.
fn threshold(wanted: Option<i32>, before: Option<u32>) -> Result<Option<i32>, Failure> {
    match wanted {
        None => Ok(before.and_then(|percent| i32::try_from(percent).ok())),
        Some(0) => Ok(None),
        Some(percent) if (1..100).contains(&percent) => Ok(Some(percent)),
        Some(percent) => Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("refill_threshold_percent {percent} is not within 1 to 99"),
        )
        .hint("With 0 the tag refills as keywright.refill_threshold_percent says.")),
    }
}
