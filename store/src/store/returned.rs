//! Rests of ranges: handed back when a process stops, taken out before they are used.

use std::sync::Arc;

use keywright_core::Tag;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Value};

use super::tag_request::ReservationRequest;
use super::{Link, Store, StoreError, Transaction, column, is_missing_table};
use crate::reserve::{Returned, choose_returned};

/// Returned ranges that one transaction reads.
const RETURNED_MAX: u32 = 1_000;

/// Which rests are worthless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worthless {
    /// Those handed back on another server: they may have been used there since.
    OfOtherServers,
    /// All: another server was written to, and whatever was handed back here before that may have been used meanwhile.
    All,
}

/// Throws worthless rests of a tag away; the tag's row is locked. A table that is not there has none.
///
/// Done with every reservation that finds another server's name, or none, at the tag, and not only before rests are looked
/// for: a replica is promoted with rests of its original that had been used there, and when the original is made anew from
/// the replica, its old name would make them good again.
pub(super) async fn discard(
    request: &ReservationRequest<'_>,
    worthless: Worthless,
    link: &mut Link,
) -> Result<(), StoreError> {
    let mut values: Vec<Value> = vec![
        request.store.segment_table.plain().into(),
        request.tag.as_str().into(),
    ];
    let condition = match worthless {
        Worthless::OfOtherServers => {
            values.push(link.server.identity.as_str().into());
            " AND server <> ?"
        }
        Worthless::All => "",
    };
    let delete =
        format!("DELETE FROM keywright_returned WHERE segment_table = ? AND tag = ?{condition}");
    let result = link
        .conn
        .exec_drop(delete, Params::Positional(values))
        .await;
    match result.map_err(StoreError::from) {
        Err(error) if is_missing_table(&error) => Ok(()),
        result => result,
    }
}

/// Takes a range that was handed back out of the store, after [`discard`]; the tag's row is locked, so nobody else is doing
/// the same.
pub(super) async fn take_returned(
    request: &ReservationRequest<'_>,
    generation: u64,
    link: &mut Link,
) -> Result<Option<Returned>, StoreError> {
    let table = request.store.segment_table.plain();
    let select = format!(
        "SELECT id, start_id, end_id FROM keywright_returned \
         WHERE segment_table = ? AND tag = ? AND generation = ? ORDER BY start_id LIMIT {RETURNED_MAX} FOR UPDATE"
    );
    let found = link
        .conn
        .exec(select, (table.as_str(), request.tag.as_str(), generation))
        .await;
    let rows: Vec<Row> = match found.map_err(StoreError::from) {
        Ok(rows) => rows,
        Err(error) if is_missing_table(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut ranges = Vec::with_capacity(rows.len());
    for row in &rows {
        ranges.push(Returned {
            key: column(row, "id")?,
            start: column(row, "start_id")?,
            end: column(row, "end_id")?,
        });
    }
    let Some(range) = choose_returned(&ranges, request.floor) else {
        return Ok(None);
    };
    let delete = "DELETE FROM keywright_returned WHERE id = ? AND start_id = ? AND end_id = ?";
    link.conn
        .exec_drop(delete, (range.key, range.start, range.end))
        .await?;
    if link.conn.affected_rows() == 1 {
        Ok(Some(range))
    } else {
        Err(StoreError::NotLocked)
    }
}

/// Rests to be handed back, and where each was reserved.
#[derive(Debug)]
pub(crate) struct Return {
    pub(crate) store: Arc<Store>,
    pub(crate) rests: Vec<Rest>,
}

/// A range that nobody else can take any more.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    pub(crate) tag: Tag,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The server on which it was reserved.
    pub(crate) server: String,
    /// The tag's generation then.
    pub(crate) generation: u64,
}

impl Transaction<usize> for Return {
    /// One transaction. A rest that was reserved on another server than this one is dropped: nothing says that this one has
    /// its reservation. So is one of an older generation: what it holds may be in the tables since.
    async fn run(self, link: &mut Link) -> Result<usize, StoreError> {
        let table = self.store.segment_table.plain();
        let here = link.server.identity.clone();
        link.conn.query_drop("START TRANSACTION").await?;
        let mut returned = 0;
        for rest in self.rests.iter().filter(|rest| rest.server == here) {
            if self.generation_of(rest, link).await? != Some(rest.generation) {
                continue;
            }
            let insert = "INSERT INTO keywright_returned (segment_table, tag, start_id, end_id, generation, server) \
                          VALUES (?, ?, ?, ?, ?, ?)";
            let values = (
                table.as_str(),
                rest.tag.as_str(),
                rest.start,
                rest.end,
                rest.generation,
                here.as_str(),
            );
            link.conn.exec_drop(insert, values).await?;
            returned += 1;
        }
        link.conn.query_drop("COMMIT").await?;
        Ok(returned)
    }
}

impl Return {
    /// The generation of a rest's tag, whose row is locked until the transaction ends; `None`: there is no such tag.
    async fn generation_of(&self, rest: &Rest, link: &mut Link) -> Result<Option<u64>, StoreError> {
        let select = self
            .store
            .dialect
            .select_row(&self.store.segment_table, true);
        let row: Option<Row> = link.conn.exec_first(select, (rest.tag.as_str(),)).await?;
        row.map(|row| column(&row, "generation")).transpose()
    }
}
