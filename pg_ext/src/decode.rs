//! The SQL functions that read ids.

use keywright_core::cause::Cause;
use keywright_core::layout::{Decoded, FloorError, Layout};
use keywright_core::readable;
use keywright_core::zone::Zone;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, pg_extern};

use crate::backend::BackendCell;
use crate::failure::{Failure, OrRaise};
use crate::{session, text, zone};

/// Microseconds from the unix epoch to the server's, 2000-01-01.
const SERVER_EPOCH_US: i64 = 946_684_800_000_000;

const LAYOUT_HINT: &str =
    "Name the layout the id was issued with, for instance snowflake_decode(id, 'leaf').";
const MOMENT_HINT: &str = "A layout has ids from its epoch until its time bits run out.";

/// A moment in unix milliseconds as the server writes it.
pub fn timestamp(unix_ms: i64) -> Result<TimestampWithTimeZone, Failure> {
    unix_ms
        .checked_mul(1_000)
        .and_then(|us| us.checked_sub(SERVER_EPOCH_US))
        .and_then(|us| TimestampWithTimeZone::try_from(us).ok())
        .ok_or_else(|| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                format!("{unix_ms} ms since 1970 is beyond what a timestamp can hold"),
            )
            .hint(LAYOUT_HINT)
        })
}

pub fn unix_ms(moment: TimestampWithTimeZone) -> Result<i64, Failure> {
    let us: i64 = moment.into();
    if us == i64::MIN || us == i64::MAX {
        return Err(
            Failure::new(Cause::ArgumentOutOfRange, "no id has an infinite moment")
                .hint(MOMENT_HINT),
        );
    }
    us.checked_add(SERVER_EPOCH_US)
        .map(|us| us.div_euclid(1_000))
        .ok_or_else(|| {
            Failure::new(Cause::ArgumentOutOfRange, "the moment is out of range").hint(MOMENT_HINT)
        })
}

/// Reads a layout; the last one read is kept, because a query names the same one for every row.
fn parse(text: &[u8]) -> Result<Layout, Failure> {
    const TEXT_BYTES_KEPT_MAX: usize = 64;
    static LAST: BackendCell<Option<(usize, [u8; TEXT_BYTES_KEPT_MAX], Layout)>> =
        BackendCell::new(None);
    if let Some((bytes, kept, layout)) = LAST.get()
        && kept.get(..bytes) == Some(text)
    {
        return Ok(layout);
    }
    let layout = text::read(text)
        .map_err(|error| no_layout(&format!("not a layout: {error}"), None))
        .and_then(|text| {
            Layout::parse(text).map_err(|error| no_layout(&error.to_string(), error.meant()))
        })?;
    let mut kept = [0; TEXT_BYTES_KEPT_MAX];
    if let Some(place) = kept.get_mut(..text.len()) {
        place.copy_from_slice(text);
        LAST.set(Some((text.len(), kept, layout)));
    }
    Ok(layout)
}

fn no_layout(message: &str, meant: Option<&str>) -> Failure {
    let meant = meant.map_or_else(String::new, |meant| format!("Did you mean \"{meant}\"? "));
    Failure::new(Cause::LayoutInvalid, message).hint(format!(
        "{meant}Name a preset (twitter, leaf, baidu, shardingsphere, sonyflake, instagram, js53) or the fields from high to \
         low, such as 'time=41,datacenter=5,worker=5,sequence=12,epoch=1288834974657,tick=1ms'."
    ))
}

/// Reads a layout given by a user.
///
/// # Errors
/// All that is wrong with it, and what layouts look like.
pub fn layout_of(text: &[u8]) -> Result<Layout, Failure> {
    parse(text)
}

fn decoded(id: i64, layout: &Layout) -> Result<Decoded, Failure> {
    layout
        .decode(id)
        .map_err(|error| Failure::new(Cause::IdForeign, error.to_string()).hint(LAYOUT_HINT))
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
        timestamp(parts.issued_at_ms)?,
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
    layout.floor(unix_ms(moment)?).map_err(|error| {
        Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(match error {
            FloorError::TimeNotHighest => "Compare snowflake_timestamp(id) with the moment.",
            FloorError::Time(_) => MOMENT_HINT,
        })
    })
}

#[pg_extern(sql = false)]
fn keywright_decode_as(id: i64, layout: &[u8]) -> Fields {
    parse(layout)
        .and_then(|layout| fields(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_decode(id: i64) -> Fields {
    session::layout()
        .and_then(|layout| fields(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_timestamp_as(id: i64, layout: &[u8]) -> TimestampWithTimeZone {
    parse(layout)
        .and_then(|layout| timestamp(decoded(id, &layout)?.issued_at_ms))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_timestamp(id: i64) -> TimestampWithTimeZone {
    session::layout()
        .and_then(|layout| timestamp(decoded(id, &layout)?.issued_at_ms))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_worker_as(id: i64, layout: &[u8]) -> i32 {
    parse(layout)
        .and_then(|layout| worker(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_worker(id: i64) -> i32 {
    session::layout()
        .and_then(|layout| worker(id, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_sequence_as(id: i64, layout: &[u8]) -> i64 {
    parse(layout)
        .and_then(|layout| Ok(decoded(id, &layout)?.sequence.cast_signed()))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_sequence(id: i64) -> i64 {
    session::layout()
        .and_then(|layout| Ok(decoded(id, &layout)?.sequence.cast_signed()))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_floor_as(moment: TimestampWithTimeZone, layout: &[u8]) -> i64 {
    parse(layout)
        .and_then(|layout| floor(moment, &layout))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_floor(moment: TimestampWithTimeZone) -> i64 {
    session::layout()
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
            "A readable id has 27 characters: time yyMMddHHmmssSSS, business code, and 8 digits.",
        )
    };
    text::read(id)
        .map_err(|error| foreign(format!("not a readable id: {error}")))
        .and_then(|id| readable::parse(id, zone).map_err(|error| foreign(error.to_string())))
        .and_then(|parts| {
            Ok(TableIterator::once((
                timestamp(parts.unix_ms)?,
                parts.biz.as_str().to_owned(),
                i32::from(parts.bucket),
                parts.sequence.cast_signed(),
            )))
        })
}

#[pg_extern(sql = false)]
fn keywright_readable_decode_as(id: &[u8], zone: &[u8]) -> ReadableFields {
    zone::parse(zone)
        .and_then(|zone| readable_fields(id, zone))
        .or_raise()
}

#[pg_extern(sql = false)]
fn keywright_readable_decode(id: &[u8]) -> ReadableFields {
    session::zone()
        .and_then(|zone| readable_fields(id, zone))
        .or_raise()
}
