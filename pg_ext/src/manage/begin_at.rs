//! An existing tag begins where the ids of a column end that it takes over.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::tag::Tag;

use crate::cache;
use crate::catalog::tag_rows::{self, Known};
use crate::catalog::{cached, damage, sequences, suggest};
use crate::durable::locks::Wanted;
use crate::failure::Failure;
use crate::manage::restored;
use crate::manage::row::change_row;
use crate::manage::tags::require_native;
use crate::server::{changes, sequence};
use crate::{guard, settings};

/// Has an existing tag that has issued nothing yet begin at `start` or later. Nobody can begin to use it before the
/// transaction ends, and then it begins there. The caller has locked its row, which comes before its sequences. Returns its first id.
///
/// # Errors
/// It has issued ids, or nothing says whether it has, ends before `start`, or is held up by another transaction.
pub fn begin_at(tag: &Tag, known: &Known, start: i64) -> Result<i64, Failure> {
    let extension = cached::extension()?;
    let hint = format!(
        "Run keywright advance {tag} --above {} where the store is, then ALTER the column's default.",
        start.saturating_sub(1)
    );
    require_native(tag, known.source, &hint)?;
    guard::may_be_native(tag, known.moves.number)?;
    let sequence = sequences::of_tag(known.id)?;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let unused = || sequence::last(sequence).is_none();
    if unused() {
        Wanted::alone(&[sequence]).lock(deadline, &|| format!("tag \"{tag}\""))?;
    }
    if !unused() {
        return Err(Failure::new(
            Cause::TagExists,
            format!("tag \"{tag}\" exists already and has issued ids"),
        )
        .hint("Choose another tag; or drop this one with keywright.drop_tag, if nothing uses it, to go on above its ids."));
    }
    if !restored::is_unused(sequences::note_of_tag(known.id)?) {
        return Err(damage::bound_unknown(tag.as_str(), known.hidden.is_some()));
    }
    let row = tag_rows::find(tag, &extension)?.ok_or_else(|| suggest::unknown_tag(tag))?;
    let start = start.max(row.start.cast_signed());
    if start >= row.end_max.cast_signed() {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("tag \"{tag}\" ends before {start}"),
        )
        .hint(format!(
            "Raise its end first with SELECT keywright.alter_tag('{tag}', max => n)."
        )));
    }
    change_row(
        (tag, known.id),
        "UPDATE keywright.tag SET start = $2 WHERE id OPERATOR(pg_catalog.=) $1",
        &[known.id.into(), start.into()],
    )?;
    changes::announce(extension.tag_table);
    cache::forget();
    Ok(start)
}
