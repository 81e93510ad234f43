//! The SQL functions that read ids.

use keywright_core::cause::Cause;
use keywright_core::layout::{DecodeError, Decoded, FloorError, Layout};
use keywright_core::readable;
use keywright_core::zone::Zone;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, pg_extern};

use crate::arguments;
use crate::catalog::cached;
use crate::failure::{Failure, OrRaise};
use crate::server::{text, timestamp};

fn decoded(id: i64, layout: &Layout) -> Result<Decoded, Failure> {
    layout.decode(id).map_err(|error| {
        Failure::new(Cause::IdForeign, error.to_string()).hint(match error {
            DecodeError::Negative { .. } => "No layout has negative ids: look where it comes from.",
            DecodeError::UnusedBits { .. } => timestamp::LAYOUT_HINT,
        })
    })
}

type Fields = TableIterator<
    'static,
    (
        name!(issued_at, TimestampWithTimeZone),
        name!(datacenter_id, Option<i32>),
        name!(worker_id, i32),
        name!(sequence, i64),
    ),
>;

fn fields(id: i64, layout: &Layout) -> Result<Fields, Failure> {
    let parts = decoded(id, layout)?;
    Ok(TableIterator::once((
        timestamp::of_unix_ms(parts.issued_at_ms)?,
        parts.datacenter_id.map(u32::cast_signed),
        parts.worker_id.cast_signed(),
        parts.sequence.cast_signed(),
    )))
}

fn worker(id: i64, layout: &Layout) -> Result<i32, Failure> {
    let parts = decoded(id, layout)?;
    let datacenter = parts.datacenter_id.unwrap_or(0);
    Ok(((datacenter << layout.worker_bits()) | parts.worker_id).cast_signed())
}

fn floor(moment: TimestampWithTimeZone, layout: &Layout) -> Result<i64, Failure> {
    layout.floor(timestamp::unix_ms(moment)?).map_err(|error| {
        Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(match error {
            FloorError::TimeNotHighest => "Compare snowflake_timestamp(id) with the moment.",
            FloorError::Time(_) => timestamp::MOMENT_HINT,
        })
    })
}

#[pg_extern(sql = false)]
fn keywright_decode_as(id: i64, layout: &[u8]) -> Fields {
    arguments::layout(layout)
        .and_then(|layout| fields(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_decode(id: i64) -> Fields {
    cached::layout()
        .and_then(|layout| fields(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_timestamp_as(id: i64, layout: &[u8]) -> TimestampWithTimeZone {
    arguments::layout(layout)
        .and_then(|layout| timestamp::of_unix_ms(decoded(id, &layout)?.issued_at_ms))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_timestamp(id: i64) -> TimestampWithTimeZone {
    cached::layout()
        .and_then(|layout| timestamp::of_unix_ms(decoded(id, &layout)?.issued_at_ms))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_worker_as(id: i64, layout: &[u8]) -> i32 {
    arguments::layout(layout)
        .and_then(|layout| worker(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_worker(id: i64) -> i32 {
    cached::layout()
        .and_then(|layout| worker(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_sequence_as(id: i64, layout: &[u8]) -> i64 {
    arguments::layout(layout)
        .and_then(|layout| Ok(decoded(id, &layout)?.sequence.cast_signed()))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_sequence(id: i64) -> i64 {
    cached::layout()
        .and_then(|layout| Ok(decoded(id, &layout)?.sequence.cast_signed()))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_floor_as(moment: TimestampWithTimeZone, layout: &[u8]) -> i64 {
    arguments::layout(layout)
        .and_then(|layout| floor(moment, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_floor(moment: TimestampWithTimeZone) -> i64 {
    cached::layout()
        .and_then(|layout| floor(moment, &layout))
        .or_raise()
}

type ReadableFields = TableIterator<
    'static,
    (
        name!(issued_at, TimestampWithTimeZone),
        name!(biz, String),
        name!(bucket, i32),
        name!(sequence, i32),
    ),
>;

fn readable_fields(id: &[u8], zone: Zone) -> Result<ReadableFields, Failure> {
    let foreign = |message: String| {
        Failure::new(Cause::IdForeign, message).hint(
            "A readable id has 27 ASCII characters: time yyMMddHHmmssSSS, business code, and 8 digits.",
        )
    };
    text::read(id)
        .map_err(|error| foreign(format!("not a readable id: {error}")))
        .and_then(|id| readable::parse(id, zone).map_err(|error| foreign(error.to_string())))
        .and_then(|parts| {
            Ok(TableIterator::once((
                timestamp::of_unix_ms(parts.unix_ms)?,
                parts.biz.as_str().to_owned(),
                i32::from(parts.bucket),
                parts.sequence.cast_signed(),
            )))
        })
}

#[pg_extern(sql = false)]
fn keywright_readable_decode_as(id: &[u8], zone: &[u8]) -> ReadableFields {
    arguments::zone(zone)
        .and_then(|zone| readable_fields(id, zone))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_readable_decode(id: &[u8]) -> ReadableFields {
    cached::zone()
        .and_then(|zone| readable_fields(id, zone))
        .or_raise()
}
