//! What shared memory says of this database, for the views keywright.stats and keywright.tags.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::register::Number;
use keywright_core::zone::Zone;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, pg_extern};

use crate::cache::time_entry;
use crate::catalog::cached;
use crate::failure::{Failure, OrRaise};
use crate::guard;
use crate::issue::snowflake;
use crate::server::{clock, process, relation, timestamp};
use crate::shmem::key::{TimeKey, TimeKind};
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::{directory, reuse};

fn moment(unix_ms: &AtomicI64) -> Result<Option<TimestampWithTimeZone>, Failure> {
    match unix_ms.load(Ordering::Relaxed) {
        ..=0 => Ok(None),
        unix_ms => timestamp::of_unix_ms(unix_ms).map(Some),
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
        let extension = cached::extension()?;
        let ours = process::database();
        directory::slots::<TagSlot>(|_, key| key.is_of(ours, extension.oid))
            .into_iter()
            .filter(|(tag, key)| relation::exists(key.sequence()) && !reuse::is_closed(tag.slot))
            .map(|(tag, key)| {
                let slot = tag.slot;
                let used = slot.taken_over.load(Ordering::Relaxed);
                Ok((
                    key.tag(),
                    key.generation().cast_signed(),
                    used.then(|| slot.word.cursor().saturating_sub(1).cast_signed()),
                    slot.word
                        .remaining()
                        .saturating_add(handed_over(slot))
                        .saturating_add(left(slot))
                        .cast_signed(),
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

/// Ids of a native tag that were left when the server was stopped, and that nobody needed yet.
fn left(slot: &TagSlot) -> u64 {
    let left = slot.left.get();
    left.map_or(0, |(start, end, _)| end.saturating_sub(start))
}

/// Ids of a fed tag that nobody needed yet.
fn handed_over(slot: &TagSlot) -> u64 {
    let next = slot.fed.next();
    next.map_or(0, |range| range.end.saturating_sub(range.start))
}

type WordFigures = TableIterator<
    'static,
    (
        name!(kind, String),
        name!(worker_id, Option<i32>),
        name!(layout, Option<String>),
        name!(bucket, Option<i32>),
        name!(zone, Option<String>),
        name!(current_id, Option<i64>),
        name!(issued, i64),
        name!(bound, Option<TimestampWithTimeZone>),
        name!(lead_ms, Option<i64>),
        name!(refills, i64),
        name!(last_refill, Option<TimestampWithTimeZone>),
        name!(waits, i64),
        name!(wait_ms, f64),
        name!(suspended, bool),
    ),
>;

type WordRow = (
    String,
    Option<i32>,
    Option<String>,
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

/// Who a word belongs to: worker id and layout of snowflake ids, bucket and time zone of readable ones.
struct Who {
    kind: TimeKind,
    number: Option<Number>,
    layout: Layout,
}

type WhoFields = (
    String,
    Option<i32>,
    Option<String>,
    Option<i32>,
    Option<String>,
);

impl Who {
    fn fields(&self) -> WhoFields {
        let layout = self.layout;
        let number = self.number.map(|number| match number {
            Number::Worker(worker) => worker.cast_signed(),
            Number::Bucket(bucket) => bucket.into(),
        });
        match self.kind {
            TimeKind::Snowflake => {
                let layout = Some(layout.to_string());
                ("snowflake".to_owned(), number, layout, None, None)
            }
            TimeKind::Readable => {
                let zone = Zone::of_layout(&layout).map(|zone| zone.to_string());
                ("readable".to_owned(), None, None, number, zone)
            }
        }
    }

    /// The row of a word that issued nothing since the server started.
    fn unused_row(&self, suspended: bool) -> WordRow {
        let (kind, worker_id, layout, bucket, zone) = self.fields();
        (
            kind, worker_id, layout, bucket, zone, None, 0, None, None, 0, None, 0, 0.0, suspended,
        )
    }
}

fn word_row(key: &TimeKey) -> Result<WordRow, Failure> {
    let layout = key.layout;
    let who = Who {
        kind: key.time_kind(),
        number: key.number().or(key.fed_worker().map(Number::Worker)),
        layout,
    };
    let Some(word) = directory::find::<TimeSlot>(key) else {
        return Ok(who.unused_row(false));
    };
    let is_snowflake = who.kind == TimeKind::Snowflake;
    let (kind, worker_id, layout_name, bucket, zone) = who.fields();
    let slot = word.slot;
    let used = slot.refills.load(Ordering::Relaxed) > 0;
    let next = slot.main.word.next();
    let lead_ms = layout.unix_ms_of(next >> layout.sequence_bits()) - clock::wall_ms();
    Ok((
        kind,
        worker_id,
        layout_name,
        bucket,
        zone,
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

fn is_suspended(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Suspended | Cause::WorkerIdUnset | Cause::IdentityUncommitted
    )
}

#[pg_extern(sql = false)]
fn keywright_word_figures() -> WordFigures {
    snowflake::settle();
    let rows = || {
        guard::require_preload()?;
        [TimeKind::Snowflake, TimeKind::Readable]
            .into_iter()
            .map(figures_of)
            .collect::<Result<Vec<_>, Failure>>()
    };
    TableIterator::new(rows().or_raise())
}

fn figures_of(kind: TimeKind) -> Result<WordRow, Failure> {
    match time_entry::key(kind) {
        Ok(key) => word_row(&time_entry::in_memory(&key).unwrap_or(key)),
        Err(failure) if is_suspended(failure.cause()) => {
            let layout = match kind {
                TimeKind::Snowflake => cached::layout()?,
                TimeKind::Readable => cached::zone()?.layout(),
            };
            let who = Who {
                kind,
                number: None,
                layout,
            };
            Ok(who.unused_row(true))
        }
        Err(failure) => Err(failure),
    }
}
