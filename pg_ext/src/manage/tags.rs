//! The SQL functions that manage tags. They run as the owner of the extension (SECURITY DEFINER); who may call them is
//! decided by GRANT EXECUTE.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::residue::Residue;
use keywright_core::tag::Tag;
use keywright_core::writer::Note;
use pgrx::{pg_extern, pg_sys};

use crate::cache::{self, tag_entry};
use crate::catalog::extension::Extension;
use crate::catalog::secrets::{self, Hidden};
use crate::catalog::statements::{change, run};
use crate::catalog::tag_rows::{self, Known};
use crate::catalog::{cached, damage, sequences};
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::failure::{Failure, OrRaise};
use crate::identity::{drops, writer};
use crate::manage::closing::{name, until_then};
use crate::manage::definition::{self, Definition, number, numbers};
use crate::manage::row::{change_row, locked, locked_existing};
use crate::manage::{hide, restored};
use crate::refill::{fed, segment, segment_plan};
use crate::server::{changes, clock, relation, sequence};
use crate::settings;
use crate::shmem::area;
use crate::shmem::key::Source;
use crate::{arguments, guard};

/// What kind of tag is made.
#[derive(Clone, Copy)]
pub enum Kind {
    /// This database reserves its ids, which may hide how many there are.
    Native(Option<hide::HideRequest>),
    /// Its ids come from a store.
    Fed,
}

impl Kind {
    fn source(self) -> Source {
        match self {
            Self::Native(_) => Source::Native,
            Self::Fed => Source::Fed,
        }
    }

    /// A native tag of a name that was moved to a store issues nothing here.
    fn refuse_where_moved(self, tag: &Tag, number: u32) -> Result<(), Failure> {
        match self {
            Self::Native(_) => guard::may_be_native(tag, number),
            Self::Fed => Ok(()),
        }
    }

    fn hide(self) -> Option<hide::HideRequest> {
        match self {
            Self::Native(request) => request,
            Self::Fed => None,
        }
    }
}

/// Makes a tag, or brings a dropped one back.
///
/// # Errors
/// The tag exists, or its numbers do not fit together or lie below what was issued, or it had another source.
pub fn create(
    tag: &Tag,
    definition: &Definition,
    kind: Kind,
    forget_issued: bool,
) -> Result<(), Failure> {
    let extension = cached::extension()?;
    let mut skip_to_start = None;
    let mut known = tag_rows::known(tag, &extension)?;
    if known.as_ref().is_some_and(|known| known.dropped) {
        known = locked(tag, &extension)?;
    }
    match known {
        Some(Known { dropped: false, .. }) => {
            return Err(exists(tag));
        }
        Some(old) if !forget_issued => {
            kind.refuse_where_moved(tag, old.moves.number)?;
            if old.source != kind.source() {
                return Err(had_another_source(tag, old.source));
            }
            hide::refuse_change(tag, &old, kind.hide(), &extension)?;
            revive(tag, definition, &old)?;
            skip_to_start = definition.start.filter(|start| *start > 0);
        }
        old => {
            kind.refuse_where_moved(tag, 0)?;
            if let Some(old) = &old {
                drop_sequences(tag, old.id)?;
                secrets::forget(old.id)?;
            }
            let chosen = kind.hide().map(hide::HideRequest::chosen);
            let generation = old
                .as_ref()
                .map_or(1, |old| old.generation.saturating_add(1));
            let generation =
                hide::generation(tag, generation, chosen.as_ref(), &extension, forget_issued)?;
            insert_row(
                tag,
                (definition, kind.source()),
                (old.as_ref(), generation),
                chosen.as_ref(),
                &extension,
            )?;
        }
    }
    changes::announce(extension.tag_table);
    cache::forget();
    // What is left in memory of a dropped tag lies below the start it was given now.
    match skip_to_start {
        Some(start) if area::is_there() => restored::go_on_from(tag, start),
        Some(_) | None => Ok(()),
    }
}

/// Makes the row; its sequences come with it (see [`restored`](crate::manage::restored)).
fn insert_row(
    tag: &Tag,
    (definition, source): (&Definition, Source),
    (old, generation): (Option<&Known>, i32),
    chosen: Option<&hide::Chosen>,
    extension: &Extension,
) -> Result<(), Failure> {
    if let Some(old) = old {
        change_row(
            (tag, old.id),
            "DELETE FROM keywright.tag WHERE id OPERATOR(pg_catalog.=) $1",
            &[old.id.into()],
        )?;
    }
    let id = restored::free_id(extension)?;
    let hidden = chosen.map(|chosen| Hidden::of(&chosen.hiding));
    let class = definition.class.unwrap_or(Residue::ALL);
    let [increment, remainder] = numbers(class);
    // Somebody else may have made the tag meanwhile; waiting for that transaction is what a unique index does.
    change(
        "tag",
        "INSERT INTO keywright.tag \
         (tag, generation, step, step_min, step_max, start, max, id, source, hide_bits, hide_fingerprint, increment, remainder) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (tag) DO NOTHING",
        &[
            tag.as_str().into(),
            generation.into(),
            number(definition.step).into(),
            number(definition.step_min).into(),
            number(definition.step_max).into(),
            definition.start.unwrap_or(1).into(),
            definition.max.into(),
            id.into(),
            source.name().into(),
            hidden
                .as_ref()
                .map(|hidden| i32::from(hidden.bits.get()))
                .into(),
            hidden.map(|hidden| hidden.fingerprint).into(),
            increment.into(),
            remainder.into(),
        ],
    )?;
    match tag_rows::known(tag, extension)? {
        Some(made) if made.id == id => {}
        Some(_) => return Err(exists(tag)),
        None => return Err(damage::intercepted("tag")),
    }
    // Where session_replication_role is replica, no trigger has made them.
    if !sequences::are_of_tag(id) {
        restored::settle_sequences(id)?;
    }
    match source {
        Source::Native => {}
        // Its first range says of which key space it is.
        Source::Fed => return Ok(()),
    }
    if let Some(chosen) = chosen {
        secrets::keep(id, &chosen.key)?;
    }
    // So that a standby which never got the first reservation knows, when it is promoted, that there may have been one.
    let step = class.width_of(definition.step.get());
    let note = Note::new(writer::current(), clock::wall_ms(), step, step).before_the_first();
    sequence::set(sequences::note_of_tag(id)?, note.pack());
    Ok(())
}

fn exists(tag: &Tag) -> Failure {
    Failure::new(Cause::TagExists, format!("tag \"{tag}\" exists already"))
        .hint("Change it with keywright.alter_tag or keywright.advance_tag.")
}

/// Ids of the one source may lie among those of the other.
fn had_another_source(tag: &Tag, source: Source) -> Failure {
    Failure::new(
        Cause::TagExists,
        format!(
            "tag \"{tag}\" was a {} tag when it was dropped",
            source.name()
        ),
    )
    .hint(
        "Choose another name; or, if none of its ids is kept anywhere, say forget_issued => true.",
    )
}

/// Fails for a tag whose numbers are the store's.
pub(super) fn require_native(tag: &Tag, source: Source, hint: &str) -> Result<(), Failure> {
    match source {
        Source::Native => Ok(()),
        Source::Fed => Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!(
                "the ids of tag \"{tag}\" come from a store, which says where they begin and end"
            ),
        )
        .hint(hint)),
    }
}

/// A bound that somebody set lower than what was reserved would be forgotten with the tag's place in memory.
fn put_back(tag: &Tag, sequence: pg_sys::Oid, end: u64) -> Result<(), Failure> {
    let is_lower = || segment_plan::end_of(sequence::last(sequence)) < end;
    if is_lower() {
        let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
        Wanted::alone(&[sequence]).lock(deadline, &|| format!("tag \"{tag}\""))?;
        if is_lower() {
            sequence::set(sequence, flush::last_of(end)?);
        }
    }
    Ok(())
}

/// Not before those who use them are done: they may be waited for no longer than for a refill.
fn drop_sequences(tag: &Tag, id: i32) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let names = sequences::names_of_tag(id);
    let there = names
        .iter()
        .filter_map(|name| relation::find(c"keywright", name));
    let there: Vec<_> = there.collect();
    Wanted::to_drop(&there).lock(deadline, &|| format!("tag \"{tag}\""))?;
    run(
        &format!("DROP SEQUENCE IF EXISTS keywright.tag_{id}, keywright.tag_{id}_note"),
        &[],
    )
    .map(drop)
}

/// Brings a dropped tag back. Its sequences were kept, so it goes on above what was issued.
fn revive(tag: &Tag, definition: &Definition, old: &Known) -> Result<(), Failure> {
    let issued = restored::reserved_to(old.id);
    if let Some(issued) = issued
        && definition.max <= issued
    {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("tag \"{tag}\" cannot end at {}", definition.max),
        )
        .detail(format!("It was dropped after issuing ids up to {issued}."))
        .hint(format!("Choose a max above {issued}.")));
    }
    if let (Some(start), Some(issued)) = (definition.start, issued)
        && start <= issued
    {
        return Err(Failure::new(
            Cause::TagExists,
            format!("tag \"{tag}\" was dropped after issuing ids up to {issued}, and {start} lies below"),
        )
        .hint("Leave start out to go on above; or, if no such id is kept anywhere, say forget_issued => true."));
    }
    let [increment, remainder] = numbers(definition.class.unwrap_or(old.class));
    change_row(
        (tag, old.id),
        "UPDATE keywright.tag SET dropped_at = NULL, step = $2, step_min = $3, step_max = $4, start = $5, max = $6, \
         refill_threshold_percent = NULL, increment = $7, remainder = $8 WHERE id OPERATOR(pg_catalog.=) $1",
        &[
            old.id.into(),
            number(definition.step).into(),
            number(definition.step_min).into(),
            number(definition.step_max).into(),
            definition.start.unwrap_or(1).into(),
            definition.max.into(),
            increment.into(),
            remainder.into(),
        ],
    )
}

#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn keywright_create_tag(
    tag: Option<&[u8]>,
    start: Option<i64>,
    step: Option<i64>,
    step_min: Option<i64>,
    step_max: Option<i64>,
    max: Option<i64>,
    forget_issued: Option<bool>,
    hide_bits: Option<i32>,
    hide_key: Option<&[u8]>,
    increment: Option<i32>,
    remainder: Option<i32>,
) {
    let make = || {
        guard::may_manage("create_tag")?;
        let tag = arguments::tag_of(tag)?;
        let request = hide::HideRequest::of(hide_bits, hide_key)?;
        let class = definition::class(increment, remainder, request.is_some())?;
        let definition = Definition::new(
            start,
            arguments::required(step, "step")?,
            (step_min, step_max),
            max,
            request.as_ref().map(hide::HideRequest::bits),
        )?
        .of_class(class)
        .with_an_id()?;
        let kind = Kind::Native(request);
        create(&tag, &definition, kind, forget_issued.unwrap_or(false))
    };
    make().or_raise();
}

#[pg_extern(sql = false)]
fn keywright_drop_tag(tag: Option<&[u8]>) {
    let drop_it = || {
        guard::may_manage("drop_tag")?;
        let tag = arguments::tag_of(tag)?;
        let extension = cached::extension()?;
        let old = locked_existing(&tag, &extension)?;
        old.require_sequences(&tag)?;
        let sequence = sequences::of_tag(old.id)?;
        // Whoever drops it by itself closes the tag, too: one after the other.
        Wanted::to_change(&[sequence]).lock(until_then().deadline(), &|| name(&tag))?;
        old.require_sequences(&tag)?;
        tag_entry::attach(&tag, sequence);
        change_row(
            (&tag, old.id),
            "UPDATE keywright.tag SET dropped_at = pg_catalog.now() WHERE id OPERATOR(pg_catalog.=) $1",
            &[old.id.into()],
        )?;
        let end = drops::close_tag(sequence)?;
        match old.source {
            Source::Native => put_back(&tag, sequence, end)?,
            // What was handed over the store says, also of what this server had before.
            Source::Fed => {}
        }
        changes::announce(extension.tag_table);
        cache::forget();
        Ok(())
    };
    drop_it().or_raise();
}

#[pg_extern(sql = false)]
fn keywright_advance_tag(tag: Option<&[u8]>, above: Option<i64>) -> i64 {
    let advance = || {
        guard::may_manage("advance_tag")?;
        let tag = arguments::tag_of(tag)?;
        let above = arguments::required(above, "the id to advance beyond")?;
        let above = u64::try_from(above).map_err(|_| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                format!("a tag advances beyond ids from 0 on, not {above}"),
            )
            .hint("Name the largest id in use; every later one is greater.")
        })?;
        // Before its sequences, which are altered where nothing says how far it was used.
        let known = locked_existing(&tag, &cached::extension()?)?;
        let hint = format!("Run keywright advance {tag} --above {above} where the store is.");
        require_native(&tag, known.source, &hint)?;
        if let Err(moved) = guard::may_be_native(&tag, known.moves.number) {
            return restored::vouch_moved(&tag, &known, above, moved);
        }
        restored::vouch(&tag, &known, above)?;
        segment::advance(&tag, above)
    };
    advance().or_raise().cast_signed()
}

#[pg_extern(sql = false)]
fn keywright_tag_reserved_to(id: i32) -> Option<i64> {
    restored::reserved_to(id).max(fed::handed_over_to(id))
}
