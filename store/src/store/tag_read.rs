//! Reading a tag's row: numbers out of a table that anybody may have edited.

use std::sync::Arc;

use keywright_core::{Cause, Tag};

use super::gone_back::marked;
use super::tag_hiding;
use super::tag_request::Denied;
use super::{Row, Store, StoreError, column};
use crate::dialect::Dialect;
use crate::engine::facts::ServerFacts;
use crate::failure::Failure;
use crate::home::{OPEN_NOWHERE, Standing};
use crate::moving::{Heir, Refused};
use crate::reserve::{LastReservation, StepNumbers, TagRow};
use crate::tag_order::TagOrder;
use keywright_core::residue::{Residue, ResidueError};

/// The row as it stands there, and the store's clock. `here`: the server, `wanted`: the ids that the caller uses. What may be missing behind another
/// server's is seen of other rows, too: [`super::former`].
pub(super) fn plain_row(
    store: &Store,
    row: &Row,
    here: &ServerFacts,
    tag: &Tag,
    wanted: Residue,
) -> Result<Result<(TagRow, i64), Denied>, StoreError> {
    let damaged = |problem: String| {
        let table = store.segment_table.plain();
        Ok(Err(Denied::Other(Failure::new(
            Cause::BoundDamaged,
            format!("the row of tag \"{tag}\" in {table} is unusable: {problem}"),
        ))))
    };
    let (step, policy) = match step_numbers(store, row)?.check() {
        Ok(checked) => checked,
        Err(error) => return damaged(error.to_string()),
    };
    let residue = match table_residue(store, row)? {
        Ok(Residue::ALL) => wanted,
        Ok(table) if wanted == Residue::ALL => table,
        Ok(_) => return damaged("it has a delta of its own, so no stride can be used".to_owned()),
        Err(error) => return damaged(error.to_string()),
    };
    let own = own_columns(store, row, here)?;
    let now_ms = column(row, "now_ms")?;
    let row = TagRow {
        number: column(row, "number")?,
        ends: store.dialect.ends(),
        id_max: own.id_max,
        step,
        policy,
        residue,
        refill_percent: own.refill_percent,
        last: own.last,
    };
    Ok(Ok((row, now_ms)))
}

/// Whether the tag was dropped, which only Keywright's own are.
pub(super) fn is_dropped(store: &Store, row: &Row) -> Result<bool, StoreError> {
    match store.dialect {
        Dialect::Keywright => Ok(column::<Option<i64>>(row, "dropped_ms")?.is_some()),
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Ok(false),
    }
}

/// In which order its ids are issued: other systems' tables know one only.
///
/// # Errors
/// Inside: there stands something else.
pub(super) fn order_of(
    store: &Store,
    row: &Row,
    tag: &Tag,
) -> Result<Result<TagOrder, Failure>, StoreError> {
    match store.dialect {
        Dialect::Keywright => {
            let text: String = column(row, "issue_order")?;
            Ok(TagOrder::parse(&text).ok_or_else(|| {
                let message = format!("issue_order of tag \"{tag}\" is \"{text}\"");
                Failure::new(Cause::BoundDamaged, message)
            }))
        }
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Ok(Ok(TagOrder::Distinct)),
    }
}

/// Who issues a tag's ids natively.
///
/// # Errors
/// Inside: there stands something else.
pub(super) fn heir_of(row: &Row, tag: &Tag) -> Result<Result<Option<Heir>, Failure>, StoreError> {
    Ok(match standing_of(row, tag)? {
        Ok(Standing::Open) => Ok(None),
        Ok(Standing::Native(heir)) => Ok(Some(heir)),
        Ok(standing @ (Standing::Opening(_) | Standing::Elsewhere(_))) => {
            Err(closed_here(tag, &standing))
        }
        Err(failure) => Err(failure),
    })
}

/// What a row is for those who would reserve of it.
///
/// # Errors
/// Inside: there stands something else.
pub(super) fn standing_of(row: &Row, tag: &Tag) -> Result<Result<Standing, Failure>, StoreError> {
    let text: Option<String> = column(row, "heir")?;
    let standing = Standing::parse(text.as_deref());
    Ok(standing.ok_or_else(|| {
        let message = format!("heir of tag \"{tag}\" is \"{}\"", text.unwrap_or_default());
        Failure::new(Cause::BoundDamaged, message)
    }))
}

/// Why nobody reserves of a tag that another store has, or is to have.
pub(crate) fn closed_here(tag: &Tag, standing: &Standing) -> Failure {
    let why = |message: String| Failure::new(Cause::TagMoved, message);
    match standing {
        Standing::Open => why(format!("tag \"{tag}\" is open")),
        Standing::Opening(_) => why(format!(
            "tag \"{tag}\" is about to open here: a move or an init is under way, or broke off"
        ))
        .hint("run that again, which goes on"),
        Standing::Elsewhere(_) => why(format!(
            "tag \"{tag}\" is closed here: its ids come from another store"
        ))
        .hint(format!(
            "was it moved? Use the configuration that has that store; {OPEN_NOWHERE}"
        )),
        Standing::Native(heir) => Refused::AnothersIds(heir.clone()).failure(tag.as_str()),
    }
}

/// The id that was drawn when the tag was made; it has none in other systems' tables, or where it was made by hand.
pub(super) fn key_space(row: &Row) -> Result<Arc<str>, StoreError> {
    let id: String = column(row, "key_space_id")?;
    Ok(id.into())
}

fn step_numbers(store: &Store, row: &Row) -> Result<StepNumbers, StoreError> {
    let step: i64 = column(row, "step")?;
    match store.dialect {
        Dialect::Keywright => Ok(StepNumbers {
            step,
            step_min: column(row, "step_min")?,
            step_max: column(row, "step_max")?,
            cover_ms: column::<u64>(row, "cover_s")?.saturating_mul(1_000),
        }),
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Ok(StepNumbers {
            step,
            step_min: step,
            step_max: store.tags.step_max,
            cover_ms: store.tags.cover_ms,
        }),
    }
}

/// tinyid divides a tag's ids among databases by their remainder; NULL stands for delta 1 and remainder 0 there.
fn table_residue(store: &Store, row: &Row) -> Result<Result<Residue, ResidueError>, StoreError> {
    match store.dialect {
        Dialect::Tinyid => {
            let delta: Option<i64> = column(row, "delta")?;
            let remainder: Option<i64> = column(row, "remainder")?;
            Ok(Residue::new(delta.unwrap_or(1), remainder.unwrap_or(0)))
        }
        Dialect::Keywright | Dialect::Leaf | Dialect::IdGenerator => Ok(Ok(Residue::ALL)),
    }
}

/// What only Keywright's own table says.
struct OwnColumns {
    id_max: u64,
    refill_percent: u32,
    last: Option<LastReservation>,
}

fn own_columns(store: &Store, row: &Row, here: &ServerFacts) -> Result<OwnColumns, StoreError> {
    match store.dialect {
        Dialect::Keywright => Ok(OwnColumns {
            id_max: column::<u64>(row, "id_max")?
                .min(store.id_max)
                .min(largest_hidden(row)?),
            refill_percent: column(row, "refill_percent")?,
            last: last(row, here)?,
        }),
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Ok(OwnColumns {
            id_max: i64::MAX.cast_unsigned(),
            refill_percent: store.tags.refill_percent,
            last: None,
        }),
    }
}

/// The largest number that has a key, where numbers are hidden.
fn largest_hidden(row: &Row) -> Result<u64, StoreError> {
    let hiding = tag_hiding::read(row)?.ok().flatten();
    Ok(hiding.map_or(u64::MAX, |hiding| hiding.bits.largest()))
}

/// Whether a server wrote the bound from which this one may not have all: another one, or this one in a life that ended, when it was made anew from its successor
/// and came back under its name.
pub(super) fn is_foreign(row: &Row, here: &ServerFacts) -> Result<bool, StoreError> {
    let server: Option<String> = column(row, "server")?;
    let at_ms: Option<i64> = column(row, "reserved_ms")?;
    let former_ms: Option<i64> = column(row, "former_ms")?;
    Ok(server.is_some_and(|server| {
        let is_of_before = |former_ms| at_ms.is_none_or(|at_ms| former_ms >= at_ms);
        let has_returned = former_ms.is_some_and(is_of_before);
        // One that comes back to its group takes over what the others have, and they go on meanwhile.
        server != here.identity || !here.is_in_group && has_returned
    }))
}

fn last(row: &Row, here: &ServerFacts) -> Result<Option<LastReservation>, StoreError> {
    let server: Option<String> = column(row, "server")?;
    let at_ms: Option<i64> = column(row, "reserved_ms")?;
    let ids: Option<u64> = column(row, "reserved_ids")?;
    let rate_per_s: Option<u64> = column(row, "rate_per_s")?;
    let same_server = !is_foreign(row, here)?;
    Ok(match (server, at_ms, ids) {
        (Some(server), Some(at_ms), Some(ids)) => Some(LastReservation {
            // What was seen above the bound of one that was put back is more than any gap.
            same_server: same_server || marked(&server).is_some(),
            at_ms,
            ids,
            rate_per_s: rate_per_s.unwrap_or(0),
        }),
        (Some(_) | None, Some(_) | None, Some(_) | None) => None,
    })
}
