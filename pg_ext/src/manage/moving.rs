//! A tag that moves to a store, or back: `keywright tag move` calls these functions. Each is one step, a transaction of its own, and may be repeated.
//!
//! To the store:
//! 1. `keywright.source` says on every standby, then here, that the tag is fed, with a number that is one higher. From then on nothing is issued
//!    of a native tag whose row does not have that number, whatever catalogue the server has.
//! 2. `move_to_fed`: the word is closed and drained under its gate, behind the locks of its sequences; the row says `fed`, and the largest id
//!    that may have been issued, with the gap for what did not arrive.
//! 3. When that has committed, the store opens its tag above.
//! 4. `move_opened`: the tag is of the store's key space. Only now it asks for ids.
//!
//! And back:
//! 5. The store closes its tag for everybody, and names one heir: this database, in this life of its memory.
//! 6. `move_to_native`: the heir, and nobody else, commits that its row is native again, for the number of the setting, above all that the store gave.
//!
//! Why in this order. Before 2 has committed the database may go on natively after a crash, so nothing that it may issue is given by the store (3 before
//! 2 repeats ids). A catalogue of before 2 comes back by a promotion or a backup: the setting forbids it to issue (1 after 3 repeats ids). A catalogue
//! of between 2 and 6 is fed, and is given only what nobody had, or nothing by a store that is closed. Before 5 the store gives ids above any bound
//! that 6 could name (6 before 5 repeats ids). A copy of the database, or a standby, could take step 6 as well: so the heir is a life of one server's
//! memory, which no copy has, and which ends with the server; then the owner's word makes another, who says how far the lost one may have come.
//! A catalogue of after 6 is a native one as any other, until the setting counts the next move.
//! `store/tests/move_model` checks all orders.

use keywright_core::cause::Cause;
use keywright_core::key_space::key_space_mark;
use keywright_core::residue::Residue;
use keywright_core::tag::Tag;
use keywright_core::writer::Note;
use pgrx::iter::TableIterator;
use pgrx::{name, pg_extern};

use crate::arguments::required;
use crate::cache;
use crate::catalog::extension::Extension;
use crate::catalog::statements::run;
use crate::catalog::tag_rows::{self, Known, TagRow};
use crate::catalog::{cached, damage, sequences, suggest};
use crate::durable::flush;
use crate::durable::locks::Wanted;
use crate::failure::{Failure, OrRaise};
use crate::identity::writer;
use crate::manage::closing::{close, hold, name as tag_name, until_then};
use crate::manage::hand_over::hex;
use crate::manage::lower_bound::restart;
use crate::manage::row::{change_row, locked_existing};
use crate::refill::{fed, segment, segment_plan};
use crate::server::{changes, clock, cluster, log, process, sequence};
use crate::shmem::area::Feeding;
use crate::shmem::key::Source;
use crate::shmem::reuse::Closing;
use crate::{arguments, guard, settings};

type Standing = TableIterator<
    'static,
    (
        name!(source, String),
        name!(number, i32),
        name!(before, i32),
        name!(setting, i32),
        name!(above, i64),
        name!(key_space, Option<i64>),
        name!(incarnation, String),
        name!(system, String),
        name!(database, i64),
    ),
>;

/// Where a tag stands, once all that says so is durable here and on the standbys that the configuration demands.
#[pg_extern(sql = false)]
fn keywright_tag_move(tag: Option<&[u8]>) -> Standing {
    let standing = || {
        guard::may_manage("tag_move")?;
        guard::require_preload()?;
        let tag = arguments::tag_of(tag)?;
        let (_, row) = existing(&tag, &cached::extension()?)?;
        flush::make_durable(until_then(), &|| tag_name(&tag))?;
        let key_space = match row.source {
            Source::Native => None,
            Source::Fed => sequence::last(row.note),
        };
        let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
        let end = segment_plan::end_of(sequence::last(row.sequence));
        let above = end.max(row.start).max(1);
        Ok::<_, Failure>(TableIterator::once((
            row.source.name().to_owned(),
            row.moves.number.cast_signed(),
            row.moves.before.cast_signed(),
            settings::moves_of(&tag).cast_signed(),
            flush::last_of(above)?,
            key_space,
            format!("{:032x}", feeding.incarnation()),
            cluster::system_identifier().to_string(),
            i64::from(process::database().to_u32()),
        )))
    };
    standing().or_raise()
}

/// Returns the largest id that the tag may have issued.
#[pg_extern(sql = false)]
fn keywright_move_to_fed(tag: Option<&[u8]>, number: Option<i32>) -> i64 {
    let moved = || {
        let (tag, number) = begin("move_to_fed", tag, number)?;
        move_to_fed(&tag, number)
    };
    moved().or_raise()
}

#[pg_extern(sql = false)]
fn keywright_move_opened(tag: Option<&[u8]>, number: Option<i32>, key_space: Option<&[u8]>) {
    let opened = || {
        let number = number_of(number)?;
        guard::may_manage("move_opened")?;
        guard::require_preload()?;
        let tag = arguments::tag_of(tag)?;
        let mark = key_space_mark(hex(key_space, "the key space")?);
        let (_, row) = existing(&tag, &cached::extension()?)?;
        if row.source != Source::Fed || row.moves.number != number {
            return Err(out_of_turn(
                &tag,
                &row,
                "only a tag that was moved is opened",
            ));
        }
        Wanted::to_change(&[row.sequence, row.note])
            .lock(until_then().deadline(), &|| tag_name(&tag))?;
        match sequence::last(row.note) {
            Some(noted) if noted.cast_unsigned() != mark => {
                return Err(fed::another_key_space(tag.as_str()));
            }
            Some(_) => {}
            None => sequence::set(row.note, mark.cast_signed()),
        }
        flush::make_durable(until_then(), &|| tag_name(&tag))
    };
    opened().or_raise();
}

#[pg_extern(sql = false)]
fn keywright_move_to_native(
    tag: Option<&[u8]>,
    number: Option<i32>,
    incarnation: Option<&[u8]>,
    key_space: Option<&[u8]>,
    above: Option<i64>,
) {
    let moved = || {
        let heir = hex(incarnation, "the incarnation")?;
        let mark = key_space_mark(hex(key_space, "the key space")?);
        let above = required(above, "the largest id that the store gave")?;
        let (tag, number) = begin("move_to_native", tag, number)?;
        move_to_native(&tag, number, heir, (mark, above))
    };
    moved().or_raise();
}

/// What both ways begin with: who calls knows what the server was told.
fn begin(function: &str, tag: Option<&[u8]>, number: Option<i32>) -> Result<(Tag, u32), Failure> {
    guard::may_manage(function)?;
    guard::require_preload()?;
    let tag = arguments::tag_of(tag)?;
    let number = number_of(number)?;
    let moves = settings::moves_of(&tag);
    if moves == number {
        return Ok((tag, number));
    }
    Err(Failure::new(
        Cause::TagMoved,
        format!("keywright.source says move {moves} of tag \"{tag}\", not {number}"),
    )
    .hint("Set it on every standby, then here, and restart the server; then begin anew."))
}

fn number_of(number: Option<i32>) -> Result<u32, Failure> {
    let number = required(number, "the number of the move")?;
    u32::try_from(number).map_err(|_| {
        Failure::new(
            Cause::ArgumentOutOfRange,
            format!("{number} counts no moves"),
        )
        .hint("Give what keywright.source says.")
    })
}

fn existing(tag: &Tag, extension: &Extension) -> Result<(Known, TagRow), Failure> {
    let known = tag_rows::existing(tag, extension)?;
    let row = tag_rows::find(tag, extension)?.ok_or_else(|| suggest::unknown_tag(tag))?;
    Ok((known, row))
}

fn out_of_turn(tag: &Tag, row: &TagRow, why: &str) -> Failure {
    Failure::new(
        Cause::TagMoved,
        format!(
            "tag \"{tag}\" is a {} tag of move {}: {why}",
            row.source.name(),
            row.moves.number
        ),
    )
    .hint("Let keywright tag move take the steps in their order.")
}

fn move_to_fed(tag: &Tag, number: u32) -> Result<i64, Failure> {
    let extension = cached::extension()?;
    locked_existing(tag, &extension)?;
    let (_, row) = existing(tag, &extension)?;
    hold(tag, &row)?;
    // Behind the locks: another session may have moved it meanwhile.
    let (known, row) = existing(tag, &extension)?;
    let bound = sequence::last(row.sequence);
    match row.source {
        Source::Fed if row.moves.number == number => {
            return flush::last_of(segment_plan::end_of(bound));
        }
        Source::Fed => return Err(out_of_turn(tag, &row, "it is fed already")),
        Source::Native => {}
    }
    if number <= row.moves.number {
        return Err(out_of_turn(
            tag,
            &row,
            "count keywright.source up for another move",
        ));
    }
    if known.hidden.is_some() {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!("tag \"{tag}\" hides its volume, which a fed tag does not"),
        )
        .hint("Feed a tag of another name."));
    }
    let note = sequence::last(row.note).and_then(Note::unpack);
    if known.class != Residue::ALL {
        return Err(Failure::new(
            Cause::ArgumentOutOfRange,
            format!(
                "tag \"{tag}\" has increment {}, which a fed tag has not",
                known.class.modulus()
            ),
        )
        .hint(format!(
            "Its ids need no increment any more where all databases are fed: SELECT keywright.alter_tag('{tag}', increment => 1, remainder => 0) \
             first, and advance the store's tag above the ids of all databases."
        )));
    }
    let step = row.step.get();
    let of_tag = (tag.as_str().to_owned(), step, known.hidden.is_some());
    let gap = segment::gap_of(&of_tag, (bound, note), &writer::current())?;
    let issued = close(row.sequence, Closing::Drop)?;
    let end = segment_plan::end_of(bound).max(issued).max(row.start);
    // Of a tag that begins at 0 and was never used 0 is left out: nothing lies below it.
    let last = flush::last_of(end.saturating_add(gap).max(1))?;
    let [bound_name, note_name] = sequences::names_of_tag(known.id);
    restart(&bound_name, row.sequence, last)?;
    // Of which key space it is the store is still to say.
    run(
        &format!("ALTER SEQUENCE keywright.{note_name} RESTART"),
        &[],
    )?;
    write(tag, &known, (Source::Fed, number), &extension)?;
    log::tell(&format!(
        "tag \"{tag}\" is fed, by move {number}: its own ids end at {last}"
    ));
    Ok(last)
}

fn move_to_native(
    tag: &Tag,
    number: u32,
    heir: u128,
    (mark, above): (u64, i64),
) -> Result<(), Failure> {
    let extension = cached::extension()?;
    locked_existing(tag, &extension)?;
    let (_, row) = existing(tag, &extension)?;
    hold(tag, &row)?;
    let (known, row) = existing(tag, &extension)?;
    match row.source {
        Source::Native if row.moves.number == number => return Ok(()),
        Source::Native => return Err(out_of_turn(tag, &row, "it is not fed")),
        Source::Fed if number < row.moves.number => {
            return Err(out_of_turn(tag, &row, "keywright.source has gone back"));
        }
        Source::Fed => {}
    }
    let feeding = Feeding::here().ok_or_else(guard::not_preloaded)?;
    if heir != feeding.incarnation() {
        return Err(Failure::new(
            Cause::TagMoved,
            format!("the store named another heir of tag \"{tag}\": the server has started anew since, or it is another one"),
        )
        .hint(format!(
            "Run keywright tag move {tag} --to native once more; it says what to do."
        )));
    }
    if let Some(noted) = sequence::last(row.note)
        && noted.cast_unsigned() != mark
    {
        return Err(fed::another_key_space(tag.as_str()));
    }
    let closed_end = close(row.sequence, Closing::Drop)?;
    let had = closed_end.max(segment_plan::end_of(sequence::last(row.sequence)));
    let end = segment_plan::end_of(Some(above));
    if end < had {
        return Err(Failure::new(
            Cause::BoundDamaged,
            format!(
                "the store has gone back: tag \"{tag}\" had ids up to {}, and the store gave them up to {above}",
                had.saturating_sub(1)
            ),
        )
        .hint("Is it an old backup? Run keywright store restored where the store is."));
    }
    let [bound_name, note_name] = sequences::names_of_tag(known.id);
    restart(&bound_name, row.sequence, above)?;
    let step = row.step.get();
    let note = Note::new(writer::current(), clock::wall_ms(), step, step);
    restart(&note_name, row.note, note.pack())?;
    write(tag, &known, (Source::Native, number), &extension)?;
    log::tell(&format!(
        "tag \"{tag}\" issues ids of its own again, above {above}"
    ));
    Ok(())
}

fn write(
    tag: &Tag,
    known: &Known,
    (source, number): (Source, u32),
    extension: &Extension,
) -> Result<(), Failure> {
    let number = i32::try_from(number).map_err(|_| damage::damaged("a move has no number"))?;
    change_row(
        (tag, known.id),
        "UPDATE keywright.tag SET source = $2, move_before = move_number, move_number = $3 WHERE id OPERATOR(pg_catalog.=) $1",
        &[known.id.into(), source.name().into(), number.into()],
    )?;
    changes::announce(extension.tag_table);
    cache::forget();
    Ok(())
}
