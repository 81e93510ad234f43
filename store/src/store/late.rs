//! Tables that came to a rule after its tables had gone over to keys, and whose ids may be among these.

use std::sync::Arc;

use keywright_core::Tag;

use super::switch_commit::raise;
use super::switch_rows::lock;
use super::switch_snowflakes::{now_ms, raise_leases, reserved_snowflakes};
use super::{Link, Store, StoreError, Transaction, column, values};
use crate::switch::commit::{SnowflakeStart, floor_after};
use crate::switch::space::KeySpace;
use crate::switch::state::{Dropped, IdSpan, LateTable, Phase};

/// What was found is forgotten, hours.
const FORGET_H: u64 = 30 * 24;

/// Which ids keys may have.
#[derive(Debug)]
pub(crate) struct ReadSpan {
    pub(crate) store: Arc<Store>,
    pub(crate) keys: KeySpace,
}

impl Transaction<Option<IdSpan>> for ReadSpan {
    async fn run(&self, link: &mut Link) -> Result<Option<IdSpan>, StoreError> {
        span(&self.store, &self.keys, link).await
    }
}

/// `None`: there is no such tag.
async fn span(
    store: &Store,
    keys: &KeySpace,
    link: &mut Link,
) -> Result<Option<IdSpan>, StoreError> {
    match keys {
        KeySpace::Tag(tag) => span_of_tag(store, tag, link).await,
        KeySpace::Snowflake => {
            let bound = reserved_snowflakes(link).await?;
            let first = "SELECT snowflake_first FROM keywright_switch WHERE id = 1";
            let first = link.first(first, Vec::new()).await?;
            Ok(Some(IdSpan {
                first: first.map_or(Ok(0), |row| row.first())?,
                bound,
            }))
        }
    }
}

/// Its row is locked until the transaction ends, if there is one.
async fn span_of_tag(
    store: &Store,
    tag: &Tag,
    link: &mut Link,
) -> Result<Option<IdSpan>, StoreError> {
    let table = &store.segment_table;
    let for_update = store.words.for_update();
    let select = format!("SELECT first_id, hi, hide_bits FROM {table} WHERE tag = ?{for_update}");
    let row = link.first(select, values![tag.as_str()]).await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let hide_bits: Option<i64> = column(&row, "hide_bits")?;
    if hide_bits.is_some() {
        // Any id of a table's own may be a key: there are none below all keys, nor does it help to drop what was reserved.
        return Ok(Some(IdSpan { first: 1, bound: 1 }));
    }
    let first: Option<u64> = column(&row, "first_id")?;
    Ok(Some(IdSpan {
        first: first.unwrap_or(0),
        bound: column(&row, "hi")?,
    }))
}

/// Keys below `next` that were reserved are given no more.
#[derive(Debug)]
pub(crate) struct DropReserved {
    pub(crate) store: Arc<Store>,
    pub(crate) snowflakes: SnowflakeStart,
    pub(crate) keys: KeySpace,
    pub(crate) next: u64,
}

impl Transaction<Dropped> for DropReserved {
    async fn run(&self, link: &mut Link) -> Result<Dropped, StoreError> {
        link.begin().await?;
        let dropped = self.drop_reserved(link).await?;
        let is_kept = match dropped {
            Dropped::All(_) => true,
            Dropped::Nothing | Dropped::Not => false,
        };
        link.end(is_kept).await?;
        Ok(dropped)
    }
}

impl DropReserved {
    /// In a transaction that has begun.
    pub(super) async fn drop_reserved(&self, link: &mut Link) -> Result<Dropped, StoreError> {
        let locked = lock(link).await?;
        let span = span(&self.store, &self.keys, link).await?;
        let Some(span) = span.filter(|its| locked.phase == Phase::None && self.next <= its.bound)
        else {
            return Ok(Dropped::Not);
        };
        if self.next <= span.first {
            return Ok(Dropped::Nothing);
        }
        match &self.keys {
            KeySpace::Tag(tag) => raise(&self.store, tag, None, link).await?,
            KeySpace::Snowflake => {
                let now_ms = now_ms(link).await?;
                let Ok(floor_ms) = floor_after(self.next, &self.snowflakes, now_ms) else {
                    return Ok(Dropped::Not);
                };
                raise_leases(floor_ms, 0, link).await?;
            }
        }
        Ok(Dropped::All(span))
    }
}

/// Notes what was found of a table.
#[derive(Debug)]
pub(crate) struct NoteLate {
    pub(crate) late: LateTable,
}

impl Transaction<()> for NoteLate {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let words = link.words();
        let (now, or_update) = (
            words.now(),
            words.or_update("server, schema_name, table_name"),
        );
        let write = format!(
            "INSERT INTO keywright_late (server, schema_name, table_name, report, noted_at) \
             VALUES (?, ?, ?, ?, {now}) {or_update} report = ?, noted_at = {now}"
        );
        let LateTable {
            server,
            schema,
            table,
            report,
        } = &self.late;
        link.change(write, values![server, schema, table, report, report])
            .await?;
        let forget = format!(
            "DELETE FROM keywright_late WHERE noted_at < {}",
            words.hours_ago(FORGET_H)
        );
        link.change(forget, Vec::new()).await?;
        Ok(())
    }
}

/// Reads it all, for people.
#[derive(Debug)]
pub(crate) struct ReadLate;

impl Transaction<Vec<String>> for ReadLate {
    async fn run(&self, link: &mut Link) -> Result<Vec<String>, StoreError> {
        let read = format!(
            "SELECT report, {} AS found_at FROM keywright_late ORDER BY noted_at, server, schema_name, table_name",
            link.words().readable("noted_at")
        );
        let rows = link.rows(read, Vec::new()).await?;
        let told = rows.iter().map(|row| {
            let (report, at): (String, String) = (column(row, "report")?, column(row, "found_at")?);
            Ok(format!("{report} (found {at} UTC)"))
        });
        told.collect()
    }
}
