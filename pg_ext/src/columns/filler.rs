//! What of keywright fills a column, up to where it may have issued, and the default that stands for it.

use keywright_core::cause::Cause;
use keywright_core::residue::Residue;
use keywright_core::tag::Tag;
use pgrx::pg_sys;

use crate::catalog::{cached, node, sequences, tag_rows};
use crate::failure::Failure;
use crate::identity::bounds::Sequences;
use crate::issue::{snowflake, tag};
use crate::manage::definition::ID_MAX;
use crate::manage::feed_time;
use crate::server::role::AsOwner;
use crate::server::sequence;
use crate::shmem::key::{Source, TimeKind};

/// A source of ids for a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filler {
    /// next_biz_id of a tag.
    Tag(Tag),
    /// snowflake_id().
    Snowflake,
}

/// Why a default that calls keywright shows no source.
pub enum FillerError {
    /// It is more than one call.
    Unclear,
    /// What it names cannot be a tag.
    NoTag,
}

impl Filler {
    /// The one that a default calls, as the server writes it; `schema`, with its dot, is the extension's.
    ///
    /// # Errors
    /// The default is more than a call with the tag in quotes, or the text in quotes cannot be a tag.
    pub fn of_default(default: &[u8], schema: &[u8]) -> Result<Self, FillerError> {
        let call = default.strip_prefix(schema).unwrap_or(default);
        if call == b"snowflake_id()" {
            return Ok(Self::Snowflake);
        }
        let tag = call
            .strip_prefix(b"next_biz_id('")
            .and_then(|rest| rest.strip_suffix(b"'::text)"))
            .ok_or(FillerError::Unclear)?;
        let tag = std::str::from_utf8(tag).map_err(|_| FillerError::NoTag)?;
        Tag::parse(tag)
            .map(Self::Tag)
            .map_err(|_| FillerError::NoTag)
    }

    /// The SQL expression that yields the default as text.
    pub fn default_expression(&self) -> String {
        // A tag needs no quoting: it has neither quotes nor backslashes.
        let call = match self {
            Self::Tag(tag) => format!("%I.next_biz_id(%L)', n.nspname, '{tag}'"),
            Self::Snowflake => "%I.snowflake_id()', n.nspname".to_owned(),
        };
        format!(
            "(SELECT format('{call}) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
             WHERE e.extname = 'keywright')"
        )
    }

    /// No id that it has issued so far is greater than this, whether it was inserted or not.
    ///
    /// # Errors
    /// As for taking an id: one is taken, so that whatever a takeover leaves out is below the bound.
    pub fn issued_up_to(&self) -> Result<i64, Failure> {
        let _owner = AsOwner::new(cached::extension()?.owner);
        match self {
            Self::Tag(tag) => tag_issued_up_to(tag),
            Self::Snowflake => snowflake_issued_up_to(),
        }
    }

    /// Which numbers it issues.
    ///
    /// # Errors
    /// keywright's tables cannot be read.
    pub fn class(&self) -> Result<Residue, Failure> {
        let _owner = AsOwner::new(cached::extension()?.owner);
        match self {
            Self::Tag(tag) => {
                let known = tag_rows::known(tag, &cached::extension()?)?;
                Ok(known.map_or(Residue::ALL, |known| known.class))
            }
            Self::Snowflake => Ok(Residue::ALL),
        }
    }

    /// The last number that it may issue, where it has an end of its own.
    ///
    /// # Errors
    /// keywright's tables cannot be read.
    pub fn end(&self) -> Result<Option<i64>, Failure> {
        match self {
            Self::Tag(tag) => {
                let row = tag_rows::find(tag, &cached::extension()?)?;
                // The end of hidden ids is that of their bits.
                let row = row.filter(|row| row.hidden.is_none());
                let last = row.map(|row| row.end_max.saturating_sub(1).cast_signed());
                Ok(last.filter(|last| *last < ID_MAX))
            }
            Self::Snowflake => Ok(None),
        }
    }

    /// The sequence whose rights say who may use it; `None` for snowflake ids, which everybody may.
    ///
    /// # Errors
    /// keywright's tables cannot be read.
    pub fn rights(&self) -> Result<Option<pg_sys::Oid>, Failure> {
        match self {
            Self::Tag(tag) => tag_sequence(tag),
            Self::Snowflake => Ok(None),
        }
    }
}

fn tag_sequence(tag: &Tag) -> Result<Option<pg_sys::Oid>, Failure> {
    let extension = cached::extension()?;
    tag_rows::known(tag, &extension)?
        .map(|known| sequences::of_tag(known.id))
        .transpose()
}

fn tag_issued_up_to(tag: &Tag) -> Result<i64, Failure> {
    let known = tag_rows::known(tag, &cached::extension()?)?;
    if let Some(hidden) = known.and_then(|known| known.hidden) {
        // Any id of its bits may have been among the first.
        return Ok(hidden.bits.largest().cast_signed());
    }
    let Some(sequence) = tag_sequence(tag)? else {
        return Err(Failure::new(
            Cause::AdoptRefused,
            format!("the column is filled by tag \"{tag}\", which does not exist"),
        )
        .detail("Nothing says how far it was used.")
        .hint(format!(
            "If you know which ids of it may be in use, or that there are none, run SELECT keywright.create_tag('{tag}', start => n) with \
             a greater n first; or set another default."
        )));
    };
    let is_fed = tag_rows::known(tag, &cached::extension()?)?
        .is_some_and(|known| known.source == Source::Fed);
    if is_fed {
        return Err(Failure::new(
            Cause::AdoptRefused,
            format!("the column is filled by tag \"{tag}\", whose ids come from a store"),
        )
        .detail("What others issue of the tag may lie among what a source of this table alone would.")
        .hint("Give the column another default by ALTER TABLE, with a sequence that begins above all ids of the tag in use anywhere."));
    }
    if let Err(failure) = tag::take(tag.as_bytes(), 1) {
        if failure.cause() == Cause::TagExhausted {
            let row = tag_rows::find(tag, &cached::extension()?)?;
            return Ok(row.map_or(0, |row| (row.end_max - 1).cast_signed()));
        }
        // A dropped tag issues no more.
        if failure.cause() != Cause::TagUnknown {
            return Err(failure);
        }
    }
    Ok(sequence::last(sequence).unwrap_or(0))
}

/// Fails where the time of snowflake ids is, or was, handed over: those of one worker id do not follow those of the one before.
pub fn require_native_snowflakes() -> Result<(), Failure> {
    let is_fed = node::read(&cached::extension()?)?.source == Source::Fed;
    if !is_fed && !feed_time::was_fed()? {
        return Ok(());
    }
    Err(Failure::new(
        Cause::AdoptRefused,
        "the time of this database's snowflake ids comes from a store",
    )
    .detail("Later ids are not greater than all earlier ones where the worker id changes.")
    .hint("Set the column's default by ALTER TABLE, when ids are greater than all that is in the column."))
}

fn snowflake_issued_up_to() -> Result<i64, Failure> {
    require_native_snowflakes()?;
    // Without a worker id in force nothing is issued any more.
    const ISSUES_NO_MORE: [Cause; 3] =
        [Cause::WorkerIdUnset, Cause::Suspended, Cause::LayoutRanOut];
    if let Err(failure) = snowflake::take(1)
        && !ISSUES_NO_MORE.contains(&failure.cause())
    {
        return Err(failure);
    }
    let sequences = Sequences::of(TimeKind::Snowflake)?;
    let mut bound_ms = None;
    for spare in [false, true] {
        bound_ms = bound_ms.max(sequence::last(sequences.track(spare)?));
    }
    let Some(bound_ms) = bound_ms else {
        return Ok(0);
    };
    let layout = cached::layout()?;
    let ticks = layout.ticks_at(bound_ms).unwrap_or(layout.ticks_max());
    // The bound may lie within a tick.
    Ok(layout.largest_id_below(ticks.saturating_add(1)).max(0))
}
