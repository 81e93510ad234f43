//! keywright.adopt and adopt_snowflake: a column goes over to a tag or to snowflake ids. They run as the caller, who must own
//! the table.

use std::ffi::CStr;

use keywright_core::cause::Cause;
use keywright_core::layout::{FloorError, Layout};
use keywright_core::residue::Residue;
use keywright_core::tag::Tag;
use pgrx::{PgLogLevel, pg_extern, pg_sys};

use crate::catalog::extension::Extension;
use crate::catalog::secrets::Hidden;
use crate::catalog::tag_rows::{self, Known};
use crate::catalog::{cached, sequences};
use crate::columns::column::{Column, Purpose, refused};
use crate::columns::filler::{self, Filler};
use crate::columns::relatives::{self, Parent};
use crate::columns::release;
use crate::failure::{Failure, OrRaise};
use crate::issue::snowflake;
use crate::manage::definition::{self, Definition, ID_MAX};
use crate::manage::tags::{self, Kind};
use crate::manage::{begin_at, row};
use crate::refill::segment;
use crate::server::role::AsOwner;
use crate::server::{clock, sequence, timestamp};
use crate::{arguments, guard};

/// How many ids a new tag reserves at once.
const STEP: i64 = 1_000;

#[pg_extern(sql = false)]
fn keywright_adopt(
    tag: Option<&[u8]>,
    relation: Option<pg_sys::Oid>,
    column: Option<&CStr>,
) -> i64 {
    let adopt = || {
        guard::may_manage("adopt")?;
        let (Some(tag), Some(relation), Some(column)) = (tag, relation, column) else {
            return Err(Failure::new(
                Cause::ArgumentNull,
                "adopt needs a tag, a table and a column; none may be null",
            )
            .hint("For instance SELECT keywright.adopt('orders', 'orders', 'id')."));
        };
        adopt(
            &arguments::parse_tag(tag)?,
            &Column::lock(relation, column, Purpose::Adopt)?,
        )
    };
    adopt().or_raise()
}

#[pg_extern(sql = false)]
fn keywright_adopt_snowflake(relation: Option<pg_sys::Oid>, column: Option<&CStr>) -> i64 {
    let adopt = || {
        guard::may_manage("adopt_snowflake")?;
        let (Some(relation), Some(column)) = (relation, column) else {
            return Err(Failure::new(
                Cause::ArgumentNull,
                "adopt_snowflake needs a table and a column; none may be null",
            )
            .hint("For instance SELECT keywright.adopt_snowflake('orders', 'id')."));
        };
        adopt_snowflake(&Column::lock(relation, column, Purpose::Adopt)?)
    };
    adopt().or_raise()
}

/// Returns the first id.
fn adopt(tag: &Tag, column: &Column) -> Result<i64, Failure> {
    if let Some(parent) = Parent::of(column) {
        let arguments = &parent.arguments;
        return Err(parent.refusal(&format!("SELECT keywright.adopt('{tag}', {arguments})")));
    }
    let filler = Filler::Tag(tag.clone());
    let above = largest_used(column, &filler)?;
    if above >= ID_MAX {
        return Err(
            refused(&format!("it is at {above}, and ids end at {ID_MAX}")).hint(
                "Look for rows with ids far above all others, and for a sequence that was set there.",
            ),
        );
    }
    let start = {
        let extension = cached::extension()?;
        let steps = steps(column)?;
        let (is_computed, is_unknown) = (column.is_computed(), column.is_filled_by_others());
        let is_adopted = column.fillers()?.contains(&filler);
        let _owner = AsOwner::new(extension.owner);
        let start =
            begin_above(tag, above, &steps, &extension).map_err(|failure| {
                match is_adopted && failure.cause() == Cause::TagExists {
                    true => adopted_already(failure, tag),
                    false => failure,
                }
            })?;
        if is_computed {
            warn_of_computed(tag);
        }
        if is_unknown {
            warn_of_unknown(tag);
        }
        start
    };
    turn_over(column, &filler)?;
    Ok(start)
}

/// Which numbers the column's sequence gives.
struct Steps {
    class: Option<Residue>,
    end: Option<i64>,
}

/// Those of the tags that fill the column now; else those of its sequences.
fn steps(column: &Column) -> Result<Steps, Failure> {
    let (mut class, mut end) = (column.class()?, column.end()?);
    let fillers = column.fillers()?;
    if !fillers.is_empty() {
        let of_tags = release::one_class(&fillers)?;
        class = Some(of_tags)
            .filter(|of_tags| *of_tags != Residue::ALL)
            .or(class);
        let last = release::end_of(&fillers)?;
        end = Some(last.min(end.unwrap_or(i64::MAX))).filter(|last| *last < i64::MAX);
    }
    Ok(Steps { class, end })
}

/// Has the tag issue above `above`, in the steps that the column's sequence went in: a new one, one that was dropped, or one that was
/// never used. Returns its first id.
fn begin_above(
    tag: &Tag,
    above: i64,
    Steps { class, end }: &Steps,
    extension: &Extension,
) -> Result<i64, Failure> {
    let definition = |start| {
        Definition::new(Some(start), STEP, (None, None), *end, None)
            .map(|definition| definition.of_class(*class))
    };
    let last = end.unwrap_or(ID_MAX);
    let first = |start: i64, class: Residue| {
        let first = class.first_from(start.cast_unsigned());
        let first = first.filter(|first| *first <= last.cast_unsigned());
        first.map(u64::cast_signed).ok_or_else(|| {
            refused(&format!(
                "it is at {above}, and no id is left up to {last} that its sequence may give"
            ))
            .hint("Give the sequence another end or INCREMENT first, if that takes nobody else's numbers.")
        })
    };
    first(above.saturating_add(1), class.unwrap_or(Residue::ALL))?;
    let known = row::locked(tag, extension)?;
    let of_tag = known.as_ref().map(|known| known.class);
    let start = match known {
        Some(known) if !known.dropped => {
            if let Some(class) = class.filter(|class| *class != known.class) {
                return Err(other_steps(tag, &known, class));
            }
            if let Some(end) = *end {
                ends_by(tag, end, extension)?;
            }
            if let Some(hidden) = known.hidden.as_ref().filter(|_| above > 0) {
                return Err(not_empty(tag, above, hidden));
            }
            let start = begin_at::begin_at(tag, &known, above + 1)?;
            return first(start, known.class);
        }
        Some(known) => {
            let issued = sequence::last(sequences::of_tag(known.id)?);
            issued.unwrap_or(0).max(above).saturating_add(1)
        }
        None => above + 1,
    };
    tags::create(tag, &definition(start)?, Kind::Native(None), false)?;
    segment::advance(tag, start.cast_unsigned() - 1)?;
    first(start, class.or(of_tag).unwrap_or(Residue::ALL))
}

/// The column's own tag has issued ids, of course.
fn adopted_already(failure: Failure, tag: &Tag) -> Failure {
    failure
        .detail("The column takes its ids from this tag already.")
        .hint(format!(
            "Nothing is to be done, unless a partition has another default: ALTER TABLE ... ALTER ... SET DEFAULT next_biz_id('{tag}') there. Do not drop \
             the tag, or INSERTs fail."
        ))
}

/// Refuses a tag that goes on where the column's sequence ends: what comes there may be another database's.
fn ends_by(tag: &Tag, end: i64, extension: &Extension) -> Result<(), Failure> {
    let ends_later = tag_rows::find(tag, extension)?
        .is_some_and(|row| row.end_max > end.cast_unsigned().saturating_add(1));
    if !ends_later {
        return Ok(());
    }
    Err(
        refused(&format!(
            "its sequence ends at {end}, and tag \"{tag}\" later"
        ))
        .hint(format!(
            "If other databases have what comes then, SELECT keywright.alter_tag('{tag}', max => {end}) first; if nobody has, \
             ALTER SEQUENCE ... NO MAXVALUE."
        )),
    )
}

/// Ids of a tag are the numbers themselves.
fn warn_of_computed(tag: &Tag) {
    Failure::new(
        Cause::AdoptRefused,
        "the column's default computed its values out of a sequence's numbers",
    )
    .detail(format!("Ids of tag \"{tag}\" are all numbers above them."))
    .hint("If others have some of those numbers, release the column, and give the tag an increment and a remainder, or a max.")
    .report(PgLogLevel::WARNING);
}

/// Rows that were deleted, and what was given and not inserted, nobody knows of.
fn warn_of_unknown(tag: &Tag) {
    Failure::new(
        Cause::AdoptRefused,
        "the column's default names no sequence, so how far it came is not known",
    )
    .detail(format!("Tag \"{tag}\" begins above the rows that are there."))
    .hint(format!(
        "If it gave greater ids, run SELECT keywright.advance_tag('{tag}', above => n) with the greatest of them in the same transaction."
    ))
    .report(PgLogLevel::WARNING);
}

/// The refusal of a tag that would issue ids between those of the column's sequence, which may be another database's.
fn other_steps(tag: &Tag, known: &Known, class: Residue) -> Failure {
    let [increment, remainder] = definition::numbers(class);
    refused(&format!(
        "its sequence goes on by {increment}, and tag \"{tag}\" by {}{}",
        known.class.modulus(),
        if known.class.modulus() == class.modulus() {
            ", from another remainder"
        } else {
            ""
        }
    ))
    .hint(format!(
        "If other databases have the numbers in between, SELECT keywright.alter_tag('{tag}', increment => {increment}, remainder => {remainder}) \
         first; if nobody has, ALTER SEQUENCE ... INCREMENT 1."
    ))
}

/// The refusal of a tag whose ids may be any: those that are there are among them.
fn not_empty(tag: &Tag, above: i64, hidden: &Hidden) -> Failure {
    refused(&format!(
        "ids up to {above} were used in it, and those of tag \"{tag}\", which hides its volume, are anywhere from 1 to {}",
        hidden.bits.largest()
    ))
    .hint("Such a tag takes over an empty column, whose sequence was never used. Adopt a tag without hide_bits, or give the rows new ids first.")
}

/// Returns an id that was taken to compare with: every later one is greater.
fn adopt_snowflake(column: &Column) -> Result<i64, Failure> {
    if let Some(parent) = Parent::of(column) {
        let arguments = &parent.arguments;
        return Err(parent.refusal(&format!("SELECT keywright.adopt_snowflake({arguments})")));
    }
    filler::require_native_snowflakes()?;
    let largest = largest_used(column, &Filler::Snowflake)?;
    let layout = cached::layout()?;
    if largest > 0 && layout.floor(clock::wall_ms()) == Err(FloorError::TimeNotHighest) {
        return Err(refused(&format!(
            "time is not the highest field of layout \"{layout}\", so snowflake ids may come that are smaller than {largest}"
        ))
        .hint("Use a tag with keywright.adopt."));
    }
    let next = snowflake::take(1)?.id(0);
    if largest >= next {
        return Err(not_above(largest, next, &layout)?);
    }
    turn_over(column, &Filler::Snowflake)?;
    Ok(next)
}

/// The refusal where snowflake ids have yet to come to what is there. They do within seconds after `release`, which goes on above all
/// that was reserved.
fn not_above(largest: i64, next: i64, layout: &Layout) -> Result<Failure, Failure> {
    let failure = refused(&format!(
        "it is at {largest}, and snowflake ids are at {next}"
    ));
    let from_ms = layout.unix_ms_of(layout.tick_above(largest));
    if from_ms >= layout.runs_out_at_ms() {
        return Ok(failure.hint(
            "Snowflake ids must be greater than all that is there. Use a tag with keywright.adopt.",
        ));
    }
    let from = timestamp::of_unix_ms(from_ms)?;
    Ok(failure.hint(format!(
        "Snowflake ids must be greater than all that is there, and are from {from} on. Wait until then, look for rows far above all \
         others, or use a tag with keywright.adopt."
    )))
}

fn turn_over(column: &Column, filler: &Filler) -> Result<(), Failure> {
    let others = relatives::with_the_same_source(column);
    column.set_default(&filler.default_expression())?;
    relatives::tell_of_those_that_stay(others);
    warn_of_narrow_references(column);
    Ok(())
}

/// The largest of what is stored and what sequences, and sources other than `filler`, may have given out.
fn largest_used(column: &Column, filler: &Filler) -> Result<i64, Failure> {
    let mut largest = column.largest()?;
    for other in column.fillers()?.iter().filter(|other| *other != filler) {
        largest = largest.max(other.issued_up_to()?);
    }
    Ok(largest)
}

/// A foreign key column of 32 bits stops taking the new ids when they outgrow it.
fn warn_of_narrow_references(column: &Column) {
    if let Some(narrow) = column.narrow_references() {
        Failure::new(
            Cause::AdoptRefused,
            "columns that refer to the adopted one are narrower than bigint",
        )
        .detail(format!("They are {narrow}."))
        .hint("ALTER them to bigint before the ids outgrow them.")
        .report(PgLogLevel::WARNING);
    }
}
