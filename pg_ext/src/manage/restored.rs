//! Rows that a dump brings back: of keywright.tag, one without the sequences behind it or the other way round; of keywright.node,
//! beside what was set here already.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::tag::Tag;
use keywright_core::writer::Note;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::pg_sys;
use pgrx::pg_trigger;
use pgrx::pgbox::AllocatedByPostgres;
use pgrx::trigger_support::PgTrigger;

use crate::cache;
use crate::catalog::extension::Extension;
use crate::catalog::statements::run;
use crate::catalog::tag_rows::{self, Known};
use crate::catalog::{cached, damage, node, sequences};
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::durable::turn::Urgency;
use crate::failure::{Failure, OrRaise};
use crate::identity::{promotion, register, writer};
use crate::manage::own_tables;
use crate::refill::{segment, segment_plan, tag_siblings};
use crate::server::{changes, clock, process, query, relation, sequence};
use crate::shmem::key::TimeKind;
use crate::{guard, settings};

/// Called for every new row of keywright.tag, whoever inserts it: `create_tag` or a dump that is being restored.
#[pg_trigger(sql = false)]
fn keywright_tag_inserted<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, Infallible> {
    let row = trigger.new();
    let id = row
        .as_ref()
        .and_then(|row| row.get_by_name::<i32>("id").ok().flatten());
    id.ok_or_else(|| damage::damaged("a row of keywright.tag has no id"))
        .and_then(settle_sequences)
        .or_raise();
    Ok(row)
}

/// Called for the first row of keywright.node, and for one that a dump brings where migrations set layout and time zone.
#[pg_trigger(sql = false)]
fn keywright_node_inserted<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, Infallible> {
    let row = trigger.new();
    let text = |column: &str| {
        let row = row.as_ref()?;
        row.get_by_name::<String>(column).ok().flatten()
    };
    let source = text("snowflake_source");
    let bucket = row
        .as_ref()
        .and_then(|row| row.get_by_name::<i32>("readable_bucket").ok().flatten());
    let is_needed = match (text("layout"), text("readable_zone"), source) {
        (Some(layout), Some(zone), Some(source)) => {
            is_node_needed((&layout, &zone, &source), bucket).or_raise()
        }
        // Not null, says the table.
        (None, _, _) | (_, None, _) | (_, _, None) => true,
    };
    if is_needed && bucket.is_some() {
        announce().or_raise();
    }
    Ok(row.filter(|_| is_needed))
}

/// Sessions that have a bucket ask again: the row says that another one was chosen.
fn announce() -> Result<(), Failure> {
    changes::announce(cached::extension()?.node_table);
    cache::forget();
    Ok(())
}

/// Whether a row of keywright.node must come in, or says what is there already.
///
/// # Errors
/// It says something else than what is in force: ids of the one and of the other could meet, and nobody compared them.
fn is_node_needed(
    (layout, zone, source): (&str, &str, &str),
    bucket: Option<i32>,
) -> Result<bool, Failure> {
    let query = "SELECT layout, readable_zone, snowflake_source, readable_bucket::pg_catalog.text FROM keywright.node";
    let found = query::one_row(query, &[], |row| {
        [1, 2, 3, 4].map(|column| row.get::<String>(column).unwrap_or_default())
    });
    let refused = || {
        Failure::new(
            Cause::LayoutOverlap,
            "this database has another layout or time zone, or another source of snowflake ids, than the row that comes into keywright.node",
        )
        .detail("Ids of the one and of the other could meet.")
        .hint(format!(
            "Before anything is issued or restored, run SELECT keywright.set_layout('{layout}'), \
             SELECT keywright.set_readable_zone('{zone}') and SELECT keywright.set_snowflake_source('{source}'). \
             Leave --clean out, and restore into a new database: pg_restore --clean drops the extension, and what was set with it."
        ))
    };
    match found {
        Some([its_layout, its_zone, its_source, its_bucket])
            if (layout, zone, source) == (&*its_layout, &*its_zone, &*its_source) =>
        {
            match bucket {
                Some(bucket) if its_bucket.is_empty() => Err(no_bucket_chosen(bucket)),
                Some(_) | None => Ok(false),
            }
        }
        Some(_) => Err(refused()),
        // The zone of a bucket is compared before the next id.
        None if is_layout_of_here(layout)? => Ok(true),
        None => Err(refused()),
    }
}

/// The row is there and says of no bucket that it was chosen, as the one from the dump does: its word would be lost, and the worker id would be the bucket.
fn no_bucket_chosen(bucket: i32) -> Failure {
    Failure::new(
        Cause::LayoutOverlap,
        format!(
            "readable bucket {bucket} was chosen where the row that comes into keywright.node is from, and this database has chosen none"
        ),
    )
    .detail("Its worker id may be a bucket that another database has chosen.")
    .hint(format!(
        "Before anything is issued or restored, run SELECT keywright.set_readable_bucket({bucket}), or choose another one where the original lives on."
    ))
}

/// Whether nothing was issued here with another layout, or will be.
fn is_layout_of_here(layout: &str) -> Result<bool, Failure> {
    // In force without a row.
    if layout == node::LAYOUT_DEFAULT {
        return Ok(true);
    }
    let layout = Layout::parse(layout).map_err(|error| damage::damaged(&error.to_string()))?;
    let register = register::read()?;
    let mut workers = register
        .held_by(process::database().to_u32())
        .filter(|(number, _)| TimeKind::of(*number) == TimeKind::Snowflake)
        .peekable();
    if workers.peek().is_some() {
        return Ok(workers.all(|(_, held)| held.layout == layout));
    }
    Ok(sequence::last(sequences::named("snowflake_bound")?).is_none())
}

/// Makes the sequences of the tag with this id where they are missing, and has them belong to the table of tags: a dump
/// knows neither, because the table is the extension's.
///
/// # Errors
/// As of [`run`].
pub fn settle_sequences(id: i32) -> Result<(), Failure> {
    for (place, name) in sequences::names_of_tag(id).into_iter().enumerate() {
        if let Some(there) = relation::find(c"keywright", &name) {
            // Of a dump, which grants what its original had behind this.
            own_tables::take_back_counters(there)?;
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
        let made = sequences::named(&name)?;
        own_tables::take_back(made)?;
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
        let id = query::one_row_as(extension.owner, next, &[], |row| row.get::<i32>(1))
            .flatten()
            .ok_or_else(|| damage::damaged("keywright.tag_id_seq gives no number"))?;
        let is_taken = tag_rows::is_there(id, extension)
            || sequences::names_of_tag(id)
                .iter()
                .any(|name| relation::find(c"keywright", name).is_some());
        if !is_taken {
            return Ok(id);
        }
    }
}

/// The last id that a tag reserved; `None` if it reserved none, or nothing says so.
pub fn reserved_to(id: i32) -> Option<i64> {
    let sequence = sequences::of_tag(id).ok()?;
    sequence::last(sequence)
}

/// Whether a tag's note says that nothing was reserved yet: then there need be no bound.
pub fn is_unused(note: pg_sys::Oid) -> bool {
    let note = sequence::last(note).and_then(Note::unpack);
    note.is_some_and(|note| note.is_first)
}

/// Whoever advances a tag says how far it was used: where nothing else says it, that is its bound from now on, or what this server's memory knows to be
/// reserved, if that is more. Whether it was needed. The caller has locked the tag's row, so nobody else says the same until the transaction ends.
///
/// # Errors
/// Not preloaded, read-only, or the tag ends below.
pub fn vouch(tag: &Tag, known: &Known, above: u64) -> Result<bool, Failure> {
    guard::require_preload()?;
    guard::require_writable("advance_tag")?;
    let extension = cached::extension()?;
    let Known { id, generation, .. } = *known;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let mut before = None;
    if let [Some(bound), Some(note)] =
        sequences::names_of_tag(id).map(|name| relation::find(c"keywright", &name))
    {
        let name = || format!("tag \"{tag}\"");
        Wanted::to_change(&[bound, note]).lock(deadline, &name)?;
        before = sequence::last(note).and_then(Note::unpack);
        let is_known = sequence::last(bound).is_some() || is_unused(note);
        if is_known && !writer::current().may_have_lost(before.as_ref()) {
            return Ok(false);
        }
    }
    let last = above.cast_signed();
    let row = "SELECT FROM keywright.tag WHERE id OPERATOR(pg_catalog.=) $1 AND max OPERATOR(pg_catalog.>=) $2 FOR NO KEY UPDATE";
    if run(row, &[id.into(), last.into()])? == 0 {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("{above} is beyond the end of tag \"{tag}\""),
        )
        .hint(format!(
            "Name the largest id in use. If it is right, the tag's end was lost: raise it first with SELECT keywright.alter_tag('{tag}', max => n)."
        )));
    }
    if let Some(note) = &before {
        promotion::learn(note)?;
    }
    settle_sequences(id)?;
    let bound = sequences::of_tag(id)?;
    let reserved = sequence::last(bound).unwrap_or(0);
    let known_end = tag_siblings::known_end(tag, extension.oid, generation.cast_unsigned());
    let reserved = reserved.max(flush::last_of(known_end.max(1))?);
    sequence::set(bound, reserved.max(last));
    let note = Note::new(writer::current(), clock::wall_ms(), 1, 0).at_peak_since(before.as_ref());
    sequence::set(sequences::note_of_tag(id)?, note.pack());
    cache::forget();
    Ok(true)
}

/// Has a tag that was dropped, and is brought back, go on from `start`.
///
/// # Errors
/// As for taking an id.
pub fn go_on_from(tag: &Tag, start: i64) -> Result<(), Failure> {
    let advanced = segment::advance(tag, start.cast_unsigned().saturating_sub(1));
    advanced.map(drop).map_err(|failure| {
        if failure.cause() != Cause::BoundDamaged {
            return failure;
        }
        // With this transaction it stays dropped.
        let advice = failure.advice().to_owned();
        failure.hint(format!(
            "Bring the tag back without start first: SELECT keywright.create_tag('{tag}'). {advice}"
        ))
    })
}

/// As [`vouch`], of a tag that issues no ids of its own here, as `moved` says: a move to a store asks how far it was used, too. Returns the first id
/// above its bound.
///
/// # Errors
/// As of [`vouch`]; it was not needed, which is `moved`; or it is not durable in time.
pub fn vouch_moved(tag: &Tag, known: &Known, above: u64, moved: Failure) -> Result<u64, Failure> {
    if !vouch(tag, known, above)? {
        return Err(moved);
    }
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    flush::make_durable(Urgency::Needed { deadline }, &|| format!("tag \"{tag}\""))?;
    Ok(segment_plan::end_of(sequence::last(sequences::of_tag(
        known.id,
    )?)))
}
