//! Rows of keywright.tag and the sequences behind them, which a dump may bring back one without the other.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::incarnation::Note;
use keywright_core::tag::Tag;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::pg_trigger;
use pgrx::pgbox::AllocatedByPostgres;
use pgrx::trigger_support::PgTrigger;

use crate::catalog::{self, one_row, run};
use crate::failure::{Failure, OrRaise};
use crate::locks::Wanted;
use crate::session::{self, Extension};
use crate::{clock, manage, settings, store, sys};

fn names(id: i32) -> [String; 2] {
    [format!("tag_{id}"), format!("tag_{id}_note")]
}

/// The failure of a tag whose row is there without what says how far it came.
pub fn bound_unknown(tag: &str) -> Failure {
    Failure::new(
        Cause::BoundDamaged,
        format!("nothing says how far tag \"{tag}\" was used"),
    )
    .detail("Its row in keywright.tag was restored without the value of its sequence.")
    .hint(format!(
        "Find the largest of its ids that is in use and run SELECT keywright.advance_tag('{tag}', that_id)."
    ))
}

/// Called for every new row of keywright.tag, whoever inserts it: `create_tag` or a dump that is being restored.
#[pg_trigger(sql = false)]
fn keywright_tag_inserted<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, Infallible> {
    let row = trigger.new();
    let id = row
        .as_ref()
        .and_then(|row| row.get_by_name::<i32>("id").ok().flatten());
    id.ok_or_else(|| catalog::damaged("a row of keywright.tag has no id"))
        .and_then(settle_sequences)
        .or_raise();
    Ok(row)
}

/// Makes the sequences of the tag with this id where they are missing, and has them belong to the table of tags: a dump
/// knows neither, because the table is the extension's.
fn settle_sequences(id: i32) -> Result<(), Failure> {
    for (place, name) in names(id).into_iter().enumerate() {
        if sys::relation(c"keywright", &name).is_some() {
            run(
                &format!("ALTER SEQUENCE keywright.{name} OWNER TO CURRENT_USER"),
                &[],
            )?;
            run(
                &format!("ALTER SEQUENCE keywright.{name} OWNED BY keywright.tag.id"),
                &[],
            )?;
            continue;
        }
        run(
            &format!(
                "CREATE SEQUENCE keywright.{name} MINVALUE 0 START 0 OWNED BY keywright.tag.id"
            ),
            &[],
        )?;
        if place == 0 {
            run(
                &format!("GRANT SELECT ON SEQUENCE keywright.{name} TO PUBLIC"),
                &[],
            )?;
        }
    }
    Ok(())
}

/// A number for a new tag that no row has, nor sequences which a dump of the schema alone brought: their rows may follow.
pub fn free_id(extension: &Extension) -> Result<i32, Failure> {
    loop {
        let next = "SELECT pg_catalog.nextval('keywright.tag_id_seq')::integer";
        let id = one_row(extension.owner, next, &[], |row| row.get::<i32>(1))
            .flatten()
            .ok_or_else(|| catalog::damaged("keywright.tag_id_seq gives no number"))?;
        let row = "SELECT true FROM keywright.tag WHERE id OPERATOR(pg_catalog.=) $1";
        let is_taken = one_row(extension.owner, row, &[id.into()], |_| ()).is_some()
            || names(id)
                .iter()
                .any(|name| sys::relation(c"keywright", name).is_some());
        if !is_taken {
            return Ok(id);
        }
    }
}

/// The last id that a tag reserved; `None` if it reserved none, or nothing says so.
pub fn reserved_to(id: i32) -> Option<i64> {
    let sequence = catalog::tag_sequence(id).ok()?;
    sys::sequence_last(sequence)
}

/// Whoever advances a tag says how far it was used: where nothing else says it, that is its bound from now on.
///
/// # Errors
/// Not preloaded, read-only, the tag does not exist, or ends below.
pub fn vouch(tag: &Tag, above: u64) -> Result<(), Failure> {
    session::require_preload()?;
    store::require_writable("advance_tag")?;
    let id = manage::existing(tag, &session::extension()?)?.id;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    if let [Some(bound), Some(note)] = names(id).map(|name| sys::relation(c"keywright", &name)) {
        let name = || format!("tag \"{tag}\"");
        Wanted::to_change(&[bound, note]).lock(deadline, &name)?;
        if sys::sequence_last(note).is_some() || sys::sequence_last(bound).is_some() {
            return Ok(());
        }
    }
    let last = above.cast_signed();
    // Until the transaction ends nobody else says the same.
    let row = "SELECT FROM keywright.tag WHERE id OPERATOR(pg_catalog.=) $1 AND max OPERATOR(pg_catalog.>=) $2 FOR UPDATE";
    if run(row, &[id.into(), last.into()])? == 0 {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("{above} is beyond the end of tag \"{tag}\""),
        )
        .hint("Name the largest id in use; if it is right, the tag's row was damaged."));
    }
    settle_sequences(id)?;
    let bound = catalog::tag_sequence(id)?;
    let known = sys::sequence_last(bound);
    sys::sequence_set(bound, known.unwrap_or(0).max(last));
    let note = Note::new(store::incarnation(), clock::wall_ms(), 1, 0);
    sys::sequence_set(catalog::tag_note(id)?, note.pack());
    session::forget();
    Ok(())
}
