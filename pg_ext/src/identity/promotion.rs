//! What a promotion costs: noticed when a database first meets a note of its server's former life, kept in sequences beside
//! the notes. A reset of the server's log (`pg_resetwal`) begins another life, too.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::evidence::{Loss, Promotion, Received, Word, lost_ms};
use keywright_core::writer::{Note, Writer};
use pgrx::pg_sys;

use crate::catalog::{cached, sequences, tables};
use crate::durable::locks::Wanted;
use crate::durable::turn::Urgency;
use crate::durable::{flush, wait};
use crate::failure::Failure;
use crate::identity::writer;
use crate::server::received::{self, Alone};
use crate::server::{clock, latch, log, query, sequence, wal};
use crate::{guard, settings};

/// What the owner can say of a promotion.
pub const HINT: &str = "Run SELECT keywright.promoted(lost => interval '3 s') with the time for which the lost primary issued ids \
                    that this server did not receive, at most.";
/// Tags whose notes are looked at, of the oldest and of the newest: each look takes a lock until the transaction ends.
const TAGS_LOOKED_AT: i64 = 50;

/// The sequences that keep a promotion.
struct Sequences {
    promotion: pg_sys::Oid,
    loss: pg_sys::Oid,
    left_out: pg_sys::Oid,
}

impl Sequences {
    fn find() -> Result<Self, Failure> {
        Ok(Self {
            promotion: sequences::named("promotion")?,
            loss: sequences::named("promotion_loss")?,
            left_out: sequences::named("promotion_left_out")?,
        })
    }
}

/// A promotion as it is kept.
#[derive(Clone, Copy)]
pub struct Kept {
    /// When, from where, by whose word.
    pub promotion: Promotion,
    /// How long the primary may have gone on alone.
    pub loss: Loss,
}

impl Kept {
    /// The same, once it shows that it was a reset of the log: another session had locked the notes that tell. Whoever has acknowledged it took it for a
    /// promotion.
    fn as_reset(self) -> Self {
        let promotion = Promotion {
            is_reset: true,
            is_acknowledged: false,
            ..self.promotion
        };
        Self { promotion, ..self }
    }
}

/// What keywright.health tells of promotions.
pub enum Status {
    /// Nothing here was written by another writer.
    None,
    /// Something was, and nothing has been issued since.
    Unnoticed {
        /// Whether by this server, before its log was reset.
        is_reset: bool,
    },
    /// It was noticed, and so many ids of tags were left out.
    Noticed(Kept, u64),
}

fn kept(sequences: &Sequences, writer: &Writer) -> Option<Kept> {
    let kept = Kept {
        promotion: sequence::last(sequences.promotion).and_then(Promotion::unpack)?,
        loss: sequence::last(sequences.loss).and_then(Loss::unpack)?,
    };
    let mark = writer.mark();
    (kept.promotion.mark == mark && kept.loss.mark == mark).then_some(kept)
}

fn alone() -> Result<Alone, Failure> {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    loop {
        if let Some(alone) = received::try_alone() {
            return Ok(alone);
        }
        if Instant::now() >= deadline {
            return Err(wait::timed_out("another session that notes a promotion"));
        }
        latch::sleep(Duration::from_millis(10));
    }
}

/// Ids that a tag leaves out because another writer wrote `note`. The caller runs as the owner of the extension.
///
/// # Errors
/// Another session notes the promotion for too long.
pub fn tag_gap(note: &Note, writer: &Writer) -> Result<u64, Failure> {
    let kept = notice(writer, Some(note))?;
    Ok(note.tag_gap_after(lost_ms(note, &kept.promotion, &kept.loss)))
}

/// How far the clock of the lost primary may have been ahead when its bounds were written by another writer: as far as is
/// set, or as long as the owner says that it went on. The caller runs as the owner of the extension.
///
/// # Errors
/// As [`tag_gap`].
pub fn skew_ms_max(note: Option<Note>) -> Result<u64, Failure> {
    let skew_ms = settings::failover_skew_ms_max();
    let writer = writer::current();
    if note.is_none_or(|note| note.is_of(&writer)) {
        return Ok(skew_ms);
    }
    let kept = notice(&writer, note.as_ref())?;
    Ok(match kept.promotion.word {
        Word::Estimate => skew_ms,
        Word::Owner => skew_ms.max(kept.loss.ms),
    })
}

/// A note is about to be replaced, because the owner of its tag has vouched. If it shows that the log was reset, later ones may not. The caller runs as the
/// owner of the extension.
///
/// # Errors
/// As [`tag_gap`].
pub fn learn(note: &Note) -> Result<(), Failure> {
    let writer = writer::current();
    if writer.was_reset_since(note) && kept(&Sequences::find()?, &writer).is_some() {
        notice(&writer, Some(note))?;
    }
    Ok(())
}

/// What is kept of this writer's beginning; worked out and kept now if nothing is. What only shared memory knows is
/// gone after a restart: the notes that are left are older, never newer than the truth. `note`: what another writer wrote, which has led here.
fn notice(writer: &Writer, note: Option<&Note>) -> Result<Kept, Failure> {
    let sequences = Sequences::find()?;
    let shows_reset = note.is_some_and(|note| writer.was_reset_since(note));
    let is_right = |kept: &Kept| kept.promotion.is_reset || !shows_reset;
    if let Some(kept) = kept(&sequences, writer).filter(is_right) {
        return Ok(kept);
    }
    let alone = alone()?;
    let found = kept(&sequences, writer);
    let kept = match found {
        Some(kept) if is_right(&kept) => kept,
        Some(kept) => {
            let kept = kept.as_reset();
            write(&sequences, &kept);
            wal::flush();
            tell_reset(writer);
            kept
        }
        None => estimate(&sequences, writer, shows_reset)?,
    };
    drop(alone);
    Ok(kept)
}

fn estimate(sequences: &Sequences, writer: &Writer, shows_reset: bool) -> Result<Kept, Failure> {
    let now_ms = clock::wall_ms();
    let parent = parent_timeline(writer.timeline);
    let promotion = Promotion {
        is_reset: shows_reset || is_reset(writer)?,
        ..Promotion::new(writer, parent, now_ms, Word::Estimate)
    };
    let notes = tag_notes()?;
    let of_parent = notes
        .iter()
        .filter(|note| promotion.parent == Some(note.mark));
    let moments: Vec<i64> = of_parent.map(Note::at_ms).collect();
    let received = Received {
        commit_ms: received::last_commit_ms(),
        note_ms: Received::newest_note(&moments, now_ms),
        message: received::last_message(),
    };
    let before = sequence::last(sequences.loss).and_then(Loss::unpack);
    let lag_ms_max = before.map_or(0, |loss| loss.lag_ms_max());
    // Without any evidence each note speaks for itself.
    let ms = received.lost_ms(now_ms, lag_ms_max).unwrap_or(Loss::MS_MAX);
    let measured = received
        .heard_ms()
        .is_some_and(|heard_ms| heard_ms <= now_ms);
    let lag_ms_max = if measured {
        lag_ms_max.max(ms)
    } else {
        lag_ms_max
    };
    let kept = Kept {
        promotion,
        loss: Loss::new(promotion.mark, ms, lag_ms_max),
    };
    write(sequences, &kept);
    sequence::set(sequences.left_out, 0);
    wal::flush();
    if promotion.is_reset {
        tell_reset(writer);
    } else {
        log::tell(&format!(
            "database {} was promoted or copied; by estimate the original went on alone for {ms} ms at most ({received:?})",
            writer.database_oid
        ));
    }
    Ok(kept)
}

fn tell_reset(writer: &Writer) {
    log::tell(&format!(
        "the WAL was reset (pg_resetwal) after bounds of database {} were written: later ones may be lost",
        writer.database_oid
    ));
}

/// The loss first: only both together count.
fn write(sequences: &Sequences, kept: &Kept) {
    sequence::set(sequences.loss, kept.loss.pack());
    sequence::set(sequences.promotion, kept.promotion.pack());
}

/// The timeline from which `timeline` branched off: the last line of its history begins with it. Read as bytes: at its end the line has the name of a restore
/// point, in the encoding of the database where somebody made that.
fn parent_timeline(timeline: u32) -> Option<u32> {
    let history = format!("pg_wal/{timeline:08X}.history");
    let text = query::one_row_as(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT pg_catalog.pg_read_binary_file($1, 0, 1000000, true)",
        &[history.into()],
        |row| row.get::<Vec<u8>>(1),
    );
    let text = text.flatten()?;
    let mut ancestors = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii_start();
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit());
        let number = line.get(..digits.count())?;
        std::str::from_utf8(number).ok()?.parse().ok()
    });
    ancestors.next_back()
}

/// Notes of this database's tags, as many as may be looked at. Those of time words do not count as evidence: they are of a
/// clock that goes on when the wall clock is set back.
fn tag_notes() -> Result<Vec<Note>, Failure> {
    let extension = cached::extension()?;
    tables::lock(extension.tag_table)?;
    let ids = query::one_row_as(
        extension.owner,
        "SELECT pg_catalog.array_agg(id) FROM (\
         (SELECT id FROM keywright.tag WHERE source OPERATOR(pg_catalog.=) 'native' ORDER BY id LIMIT $1) UNION \
         (SELECT id FROM keywright.tag WHERE source OPERATOR(pg_catalog.=) 'native' ORDER BY id DESC LIMIT $1)) t",
        &[TAGS_LOOKED_AT.into()],
        |row| row.get::<Vec<i32>>(1),
    );
    let mut notes = Vec::new();
    for id in ids.flatten().unwrap_or_default() {
        // A tag that was restored without its sequences tells nothing.
        notes.extend(sequences::note_of_tag(id).ok().and_then(note_in));
    }
    Ok(notes)
}

/// The note in a sequence, unless somebody holds it locked against changes.
fn note_in(sequence: pg_sys::Oid) -> Option<Note> {
    Wanted::to_change(&[sequence]).try_lock()?;
    sequence::last(sequence).and_then(Note::unpack)
}

/// Notes of tags and of time words.
fn all_notes() -> Result<Vec<Note>, Failure> {
    let mut notes = tag_notes()?;
    for name in ["snowflake_note", "readable_note"] {
        notes.extend(note_in(sequences::named(name)?));
    }
    Ok(notes)
}

/// Whether anything here was written by another writer and by none since.
fn is_changed(writer: &Writer) -> Result<bool, Failure> {
    Ok(all_notes()?.iter().any(|note| !note.is_of(writer)))
}

/// Whether it was a reset of the server's log that made another writer of this one.
fn is_reset(writer: &Writer) -> Result<bool, Failure> {
    // Else there is nothing to look for, and to lock.
    if writer.resets == 0 {
        return Ok(false);
    }
    Ok(all_notes()?.iter().any(|note| writer.was_reset_since(note)))
}

/// What is known of promotions. On a standby: of its primary's.
///
/// # Errors
/// keywright's own tables are damaged, or locked for too long.
pub fn status() -> Result<Status, Failure> {
    let sequences = Sequences::find()?;
    if received::is_in_recovery() {
        return Ok(Status::None);
    }
    let writer = writer::current();
    if let Some(mut kept) = kept(&sequences, &writer) {
        if !kept.promotion.is_reset && is_reset(&writer)? {
            kept = kept.as_reset();
        }
        let left_out = sequence::last(sequences.left_out).unwrap_or(0);
        return Ok(Status::Noticed(kept, left_out.max(0).unsigned_abs()));
    }
    Ok(if is_changed(&writer)? {
        Status::Unnoticed {
            is_reset: is_reset(&writer)?,
        }
    } else {
        Status::None
    })
}

/// Adds to the ids that were left out. The caller runs as the owner of the extension.
///
/// # Errors
/// As [`tag_gap`].
pub fn count_left_out(gap: u64) -> Result<(), Failure> {
    if gap == 0 {
        return Ok(());
    }
    let sequences = Sequences::find()?;
    let alone = alone()?;
    let before = sequence::last(sequences.left_out).unwrap_or(0);
    let gap = i64::try_from(gap).unwrap_or(i64::MAX);
    sequence::set(sequences.left_out, before.saturating_add(gap));
    drop(alone);
    Ok(())
}

/// The failure of a tag whose gap does not fit.
pub fn stranded(tag: &str, last: u64, gap: u64) -> Failure {
    Failure::new(
        Cause::TagExhausted,
        format!(
            "tag \"{tag}\" is exhausted at {last} by what it leaves out after a promotion or copy"
        ),
    )
    .detail(format!(
        "By estimate {gap} ids are left out, because the original may have issued them."
    ))
    .hint(HINT)
}

/// Changes what is kept of the promotion, durably.
pub fn change(function: &str, changed: impl FnOnce(Kept) -> Kept) -> Result<(), Failure> {
    guard::may_manage(function)?;
    // First of all: it waits for a DROP EXTENSION, and none begins until the transaction ends.
    tables::lock(cached::extension()?.tag_table)?;
    let writer = writer::current();
    let sequences = Sequences::find()?;
    if kept(&sequences, &writer).is_none() && !is_changed(&writer)? {
        return Err(Failure::new(
            Cause::NotPromoted,
            "this database has issued nothing before a promotion",
        )
        .detail(
            "All that keywright keeps here was written by this server, on its present timeline.",
        )
        .hint("Look at keywright.health after a promotion, or after restoring a copy."));
    }
    let before = notice(&writer, None)?;
    let shows_reset = is_reset(&writer)?;
    let alone = alone()?;
    let mut kept = kept(&sequences, &writer).unwrap_or(before);
    if shows_reset && !kept.promotion.is_reset {
        kept = kept.as_reset();
    }
    write(&sequences, &changed(kept));
    let urgency = Urgency::Needed {
        deadline: Instant::now() + Duration::from_millis(settings::refill_wait_ms_max()),
    };
    flush::make_durable(urgency, &|| "the note of the promotion".to_owned())?;
    drop(alone);
    Ok(())
}
