//! Rows of keywright.tag: read as the extension's owner, in the newest committed state and this transaction's own.

use keywright_core::residue::Residue;
use keywright_core::step::Step;
use keywright_core::tag::Tag;
use pgrx::pg_sys;

use crate::catalog::extension::Extension;
use crate::catalog::secrets::Hidden;
use crate::catalog::{damage, sequences, suggest, tables};
use crate::failure::Failure;
use crate::server::query;
use crate::shmem::key::Source;

/// How often a tag was moved to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moves {
    /// As `keywright.source` counts: of a native tag, for which number it was returned; 0: never.
    pub number: u32,
    /// The number that it had as a native tag before it was moved last.
    pub before: u32,
}

impl Moves {
    fn of(number: Option<i32>, before: Option<i32>) -> Result<Self, Failure> {
        let numbers = number.zip(before).and_then(|(number, before)| {
            Some((u32::try_from(number).ok()?, u32::try_from(before).ok()?))
        });
        let (number, before) =
            numbers.ok_or_else(|| damage::damaged("a tag's number of moves is negative"))?;
        Ok(Self { number, before })
    }
}

/// A row of keywright.tag with its sequences.
pub struct TagRow {
    /// Which life of the tag.
    pub generation: u32,
    /// Where its ranges come from.
    pub source: Source,
    /// How often it was moved.
    pub moves: Moves,
    /// The bound; of a fed tag the largest id that was handed over.
    pub sequence: pg_sys::Oid,
    /// The note beside it; of a fed tag its key space.
    pub note: pg_sys::Oid,
    /// First full reservation.
    pub step: Step,
    /// Smallest reservation the step policy may choose.
    pub step_min: Step,
    /// Largest.
    pub step_max: Step,
    /// First id.
    pub start: u64,
    /// One above the last id.
    pub end_max: u64,
    /// What its numbers go through, and the name of its secret.
    pub hidden: Option<(i32, Hidden)>,
    /// Part of a reservation that is left when the next refill starts, percent; `None`: the setting says it.
    pub refill_threshold_percent: Option<u32>,
    /// Which numbers are ids.
    pub class: Residue,
}

/// The definition of a tag that exists and is not dropped.
pub fn find(tag: &Tag, extension: &Extension) -> Result<Option<TagRow>, Failure> {
    tables::lock(extension.tag_table)?;
    let row = query::one_row_as(
        extension.owner,
        "SELECT id, generation, step, step_min, step_max, start, max, hide_bits, hide_fingerprint, source, refill_threshold_percent, move_number, move_before, increment, remainder FROM keywright.tag \
         WHERE tag OPERATOR(pg_catalog.=) $1 AND dropped_at IS NULL",
        &[tag.as_str().into()],
        |row| {
            let numbers = [3, 4, 5, 6, 7].map(|column| row.get::<i64>(column).unwrap_or(-1));
            let (hidden, source) = (Hidden::of_row(row, [8, 9]), row.get::<String>(10));
            let percent = row.get::<i32>(11);
            let moves = Moves::of(row.get::<i32>(12), row.get::<i32>(13));
            let class = class_of(row.get::<i32>(14), row.get::<i32>(15));
            (
                row.get::<i32>(1),
                row.get::<i32>(2),
                numbers,
                (hidden, source, percent, moves, class),
            )
        },
    );
    let Some((
        Some(id),
        Some(generation),
        [step, step_min, step_max, start, max],
        (hidden, source, percent, moves, class),
    )) = row
    else {
        return Ok(None);
    };
    let (hidden, source, class) = (hidden?, source_of(source)?, class?);
    if class != Residue::ALL && (hidden.is_some() || source == Source::Fed) {
        return Err(damage::damaged(
            "a tag that is fed, or hides its volume, has an increment",
        ));
    }
    if hidden.is_some() && source == Source::Fed {
        return Err(damage::damaged("a fed tag has hide_bits"));
    }
    let is_within = |hidden: &Hidden| start > 0 && max.cast_unsigned() <= hidden.bits.largest();
    if !hidden.as_ref().is_none_or(is_within) {
        return Err(damage::damaged(
            "a tag has numbers that its hidden ids have no bits for",
        ));
    }
    if !sequences::are_of_tag(id) {
        return Err(damage::bound_unknown(tag.as_str(), hidden.is_some()));
    }
    let step_of = |number| Step::new(number).map_err(|error| damage::damaged(&error.to_string()));
    let unsigned = |number: i64| {
        u64::try_from(number).map_err(|_| damage::damaged("a tag's range is negative"))
    };
    Ok(Some(TagRow {
        moves: moves?,
        generation: u32::try_from(generation)
            .map_err(|_| damage::damaged("a tag's generation is negative"))?,
        source,
        sequence: sequences::of_tag(id)?,
        note: sequences::note_of_tag(id)?,
        step: step_of(step)?,
        step_min: step_of(step_min)?,
        step_max: step_of(step_max)?,
        start: unsigned(start)?,
        end_max: unsigned(max)?.saturating_add(1),
        hidden: hidden.map(|hidden| (id, hidden)),
        refill_threshold_percent: percent.map(refill_threshold).transpose()?,
        class,
    }))
}

fn refill_threshold(percent: i32) -> Result<u32, Failure> {
    let percent = u32::try_from(percent)
        .ok()
        .filter(|of| (1..100).contains(of));
    percent.ok_or_else(|| damage::damaged("a tag's refill_threshold_percent is not within 1 to 99"))
}

fn class_of(increment: Option<i32>, remainder: Option<i32>) -> Result<Residue, Failure> {
    let (increment, remainder) = (increment.unwrap_or(0), remainder.unwrap_or(0));
    Residue::new(increment.into(), remainder.into())
        .map_err(|error| damage::damaged(&error.to_string()))
}

fn source_of(name: Option<String>) -> Result<Source, Failure> {
    name.and_then(|name| Source::parse(&name))
        .ok_or_else(|| damage::damaged("nothing says where a tag's ids come from"))
}

/// A row of keywright.tag as far as managing needs it.
pub struct Known {
    /// What its sequences are named after.
    pub id: i32,
    /// Which life of the tag.
    pub generation: i32,
    /// Whether it issues no more.
    pub dropped: bool,
    /// Where its ranges come from.
    pub source: Source,
    /// How often it was moved.
    pub moves: Moves,
    /// What its numbers go through.
    pub hidden: Option<Hidden>,
    /// Which numbers are ids.
    pub class: Residue,
}

impl Known {
    /// Whether its sequences are there.
    ///
    /// # Errors
    /// A dump or a subscription brought the row without them.
    pub fn require_sequences(&self, tag: &Tag) -> Result<(), Failure> {
        match self.source {
            Source::Native if !sequences::are_of_tag(self.id) => {
                Err(damage::bound_unknown(tag.as_str(), self.hidden.is_some()))
            }
            Source::Native | Source::Fed => sequences::of_tag(self.id).map(drop),
        }
    }
}

/// The row of a tag, dropped or not.
///
/// # Errors
/// It cannot be read.
pub fn known(tag: &Tag, extension: &Extension) -> Result<Option<Known>, Failure> {
    tables::lock(extension.tag_table)?;
    let row = query::one_row_as(
        extension.owner,
        "SELECT id, generation, dropped_at IS NOT NULL, hide_bits, hide_fingerprint, source, move_number, move_before, increment, remainder FROM keywright.tag \
         WHERE tag OPERATOR(pg_catalog.=) $1",
        &[tag.as_str().into()],
        |row| {
            let numbers = (row.get::<i32>(1), row.get::<i32>(2), row.get::<bool>(3));
            let moves = Moves::of(row.get::<i32>(7), row.get::<i32>(8));
            let class = class_of(row.get::<i32>(9), row.get::<i32>(10));
            (
                numbers,
                (Hidden::of_row(row, [4, 5]), moves, class),
                row.get::<String>(6),
            )
        },
    );
    match row {
        None => Ok(None),
        Some(((Some(id), Some(generation), Some(dropped)), (hidden, moves, class), source)) => {
            Ok(Some(Known {
                id,
                generation,
                dropped,
                source: source_of(source)?,
                moves: moves?,
                hidden: hidden?,
                class: class?,
            }))
        }
        Some(((_, _, _), _, _)) => Err(damage::damaged("a row of keywright.tag has nulls")),
    }
}

/// Whether a row of that number is there.
pub fn is_there(id: i32, extension: &Extension) -> bool {
    let row = "SELECT true FROM keywright.tag WHERE id OPERATOR(pg_catalog.=) $1";
    query::one_row_as(extension.owner, row, &[id.into()], |_| ()).is_some()
}

/// The row of a tag that is there and not dropped.
///
/// # Errors
/// There is none.
pub fn existing(tag: &Tag, extension: &Extension) -> Result<Known, Failure> {
    known(tag, extension)?
        .filter(|known| !known.dropped)
        .ok_or_else(|| suggest::unknown_tag(tag))
}
