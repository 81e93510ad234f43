//! What shared memory says of this database, for the views keywright.stats and keywright.tags.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use keywright_core::cause::Cause;
use keywright_core::register::Number;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, pg_extern};

use crate::failure::{Failure, OrRaise};
use crate::keys::TimeKey;
use crate::session;
use crate::shm::{TagSlot, TimeSlot};
use crate::words::{self, TimeKind};
use crate::{clock, decode, shm, snowflake, sys};

fn moment(unix_ms: &AtomicI64) -> Result<Option<TimestampWithTimeZone>, Failure> {
    match unix_ms.load(Ordering::Relaxed) {
        ..=0 => Ok(None),
        unix_ms => decode::timestamp(unix_ms).map(Some),
    }
}

fn figure(counter: &AtomicU64) -> i64 {
    i64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn wait_ms(wait_us: &AtomicU64) -> f64 {
    wait_us.load(Ordering::Relaxed) as f64 / 1_000.0
}

type TagFigures = TableIterator<
    'static,
    (
        name!(tag, String),
        name!(generation, i32),
        name!(current_id, Option<i64>),
        name!(remaining, i64),
        name!(step, Option<i64>),
        name!(refills, i64),
        name!(last_refill, Option<TimestampWithTimeZone>),
        name!(waits, i64),
        name!(wait_ms, f64),
    ),
>;

#[pg_extern(sql = false)]
fn keywright_tag_figures() -> TagFigures {
    let rows = || {
        let extension = session::extension()?;
        shm::slots::<TagSlot>()
            .into_iter()
            .filter(|(_, key)| {
                key.is_of(sys::database(), extension.oid) && sys::is_relation(key.sequence())
            })
            .map(|(tag, key)| {
                let slot = tag.slot;
                let used = slot.refills.load(Ordering::Relaxed) > 0;
                Ok((
                    key.tag(),
                    key.generation().cast_signed(),
                    used.then(|| slot.word.cursor().saturating_sub(1).cast_signed()),
                    slot.word.remaining().cast_signed(),
                    used.then(|| figure(&slot.step)),
                    figure(&slot.refills),
                    moment(&slot.last_refill_ms)?,
                    figure(&slot.waits),
                    wait_ms(&slot.wait_us),
                ))
            })
            .collect::<Result<Vec<_>, Failure>>()
    };
    TableIterator::new(rows().or_raise())
}

type WordFigures = TableIterator<
    'static,
    (
        name!(kind, String),
        name!(worker_id, Option<i32>),
        name!(layout, Option<String>),
        name!(current_id, Option<i64>),
        name!(issued, i64),
        name!(bound, Option<TimestampWithTimeZone>),
        name!(lead_ms, Option<i64>),
        name!(refills, i64),
        name!(last_refill, Option<TimestampWithTimeZone>),
        name!(waits, i64),
        name!(wait_ms, f64),
        name!(fenced, bool),
    ),
>;

type WordRow = (
    String,
    Option<i32>,
    Option<String>,
    Option<i64>,
    i64,
    Option<TimestampWithTimeZone>,
    Option<i64>,
    i64,
    Option<TimestampWithTimeZone>,
    i64,
    f64,
    bool,
);

/// The row of a word that issued nothing since the server started.
fn unused_row(kind: &str, worker_id: Option<i32>, layout: Option<String>, fenced: bool) -> WordRow {
    (
        kind.to_owned(),
        worker_id,
        layout,
        None,
        0,
        None,
        None,
        0,
        None,
        0,
        0.0,
        fenced,
    )
}

fn word_row(kind: &str, key: &TimeKey, is_snowflake: bool) -> Result<WordRow, Failure> {
    let layout = key.layout;
    let worker_id = match key.number() {
        Number::Worker(worker) => Some(worker.cast_signed()),
        Number::Bucket(_) => None,
    };
    let layout_name = is_snowflake.then(|| layout.to_string());
    let Some(word) = shm::find::<TimeSlot>(key) else {
        return Ok(unused_row(kind, worker_id, layout_name, false));
    };
    let slot = word.slot;
    let used = slot.refills.load(Ordering::Relaxed) > 0;
    let next = slot.main.word.next();
    let lead_ms = layout.unix_ms_of(next >> layout.sequence_bits()) - clock::wall_ms();
    Ok((
        kind.to_owned(),
        worker_id,
        layout_name,
        (used && is_snowflake)
            .then(|| layout.compose(next.saturating_sub(1), key.worker_part(false))),
        figure(&slot.issued),
        moment(&slot.main.bound_ms)?,
        used.then_some(lead_ms),
        figure(&slot.refills),
        moment(&slot.last_refill_ms)?,
        figure(&slot.waits),
        wait_ms(&slot.wait_us),
        false,
    ))
}

fn is_fenced(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Fenced | Cause::WorkerIdUnset | Cause::IdentityUncommitted
    )
}

#[pg_extern(sql = false)]
fn keywright_word_figures() -> WordFigures {
    snowflake::settle();
    let rows = || {
        session::require_preload()?;
        let mut rows = Vec::new();
        match words::key(TimeKind::Snowflake) {
            Ok(key) => rows.push(word_row("snowflake", &key, true)?),
            Err(failure) if is_fenced(failure.cause()) => {
                let layout = session::layout()?.to_string();
                rows.push(unused_row("snowflake", None, Some(layout), true));
            }
            Err(failure) => return Err(failure),
        }
        match words::key(TimeKind::Readable) {
            Ok(key) => rows.push(word_row("readable", &key, false)?),
            Err(failure) if is_fenced(failure.cause()) => {
                rows.push(unused_row("readable", None, None, true));
            }
            Err(failure) => return Err(failure),
        }
        Ok(rows)
    };
    TableIterator::new(rows().or_raise())
}
