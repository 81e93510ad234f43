//! Raising bounds: somebody who knows how far ids were given says so.

use std::sync::Arc;

use keywright_core::{Cause, Layout, Tag};
use mysql_async::prelude::Queryable;
use mysql_async::{Params, Row, Value};

use super::tag_read::read_row;
use super::tag_request::Denied;
use super::tag_rows::unknown;
use super::{Link, Store, StoreError, Transaction, is_missing_table};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::lease::space::Space;
use crate::residue::Residue;

/// Above what all later ids are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Above {
    /// Those of a tag.
    Tag {
        /// The tag.
        tag: Tag,
        /// The highest id that was given.
        id: u64,
    },
    /// Snowflake ids, of all worker ids.
    Snowflake {
        /// The highest id that was given.
        id: i64,
    },
    /// Snowflake ids, of all worker ids.
    SnowflakeMoment {
        /// A moment that is later than those of all ids that were given, unix milliseconds.
        unix_ms: i64,
    },
    /// Readable ids, of all buckets.
    ReadableMoment {
        /// The same.
        unix_ms: i64,
    },
}

/// A tag's number to be raised. What others have handed back below is thrown away.
#[derive(Debug)]
pub(crate) struct AdvanceTag {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
    pub(crate) id: u64,
}

impl Transaction<Result<u64, Failure>> for AdvanceTag {
    /// One transaction; the first id that nobody was given.
    async fn run(self, link: &mut Link) -> Result<Result<u64, Failure>, StoreError> {
        link.conn.query_drop("START TRANSACTION").await?;
        let advanced = self.advance(link).await?;
        link.conn
            .query_drop(if advanced.is_ok() {
                "COMMIT"
            } else {
                "ROLLBACK"
            })
            .await?;
        Ok(advanced)
    }
}

impl AdvanceTag {
    async fn advance(&self, link: &mut Link) -> Result<Result<u64, Failure>, StoreError> {
        let (store, tag) = (&self.store, &self.tag);
        let select = store.dialect.select_row(&store.segment_table, true);
        let found: Option<Row> = link.conn.exec_first(select, (tag.as_str(),)).await?;
        let Some(found) = found else {
            return Ok(Err(unknown(store, tag)));
        };
        let identity = link.server.identity.clone();
        let row = match read_row(store, &found, &identity, tag, Residue::ALL)? {
            Ok((row, _)) => row,
            Err(Denied::Other(failure) | Denied::Superseded(failure)) => return Ok(Err(failure)),
            Err(Denied::Exhausted(exhausted)) => {
                let message = format!("tag \"{tag}\" is {exhausted}");
                return Ok(Err(Failure::new(Cause::TagExhausted, message)));
            }
        };
        if self.id > row.id_max {
            let message = format!(
                "{} is beyond {}, the largest id of tag \"{tag}\"",
                self.id, row.id_max
            );
            return Ok(Err(Failure::new(Cause::ArgumentOutOfRange, message)));
        }
        let (free, next) = (row.ends.first_free(row.number), self.id.saturating_add(1));
        if free >= next {
            return Ok(Ok(free));
        }
        let number = row.ends.number_for(next);
        let mut values: Vec<Value> = vec![number.into(), tag.as_str().into(), row.number.into()];
        if store.dialect == Dialect::Keywright {
            values.insert(0, identity.into());
        }
        let update = store.dialect.advance_row(&store.segment_table);
        link.conn
            .exec_drop(update, Params::Positional(values))
            .await?;
        if link.conn.affected_rows() != 1 {
            return Err(StoreError::NotLocked);
        }
        self.discard_rests(link).await?;
        Ok(Ok(row.ends.first_free(number)))
    }

    async fn discard_rests(&self, link: &mut Link) -> Result<(), StoreError> {
        let delete = "DELETE FROM keywright_returned WHERE segment_table = ? AND tag = ?";
        let table = self.store.segment_table.plain();
        let values = (table.as_str(), self.tag.as_str());
        match link
            .conn
            .exec_drop(delete, values)
            .await
            .map_err(StoreError::from)
        {
            Err(error) if is_missing_table(&error) => Ok(()),
            result => result,
        }
    }
}

/// The bounds of all worker ids of a space to be raised to a moment. Whoever holds a lease takes it anew, above that.
#[derive(Debug)]
pub(crate) struct AdvanceLeases {
    pub(crate) space: Space,
    /// Unix milliseconds.
    pub(crate) bound_ms: i64,
}

impl AdvanceLeases {
    /// Above a snowflake id: the moment behind the tick in which it was given.
    pub(crate) fn above(id: i64, layout: &Layout) -> Self {
        Self {
            space: Space::Snowflake,
            bound_ms: layout.unix_ms_of(layout.tick_above(id)),
        }
    }
}

impl Transaction<i64> for AdvanceLeases {
    /// Leases whose bound is there already stay whose they are.
    async fn run(self, link: &mut Link) -> Result<i64, StoreError> {
        let update = "UPDATE keywright_worker SET hi_ms = ?, server = ?, epoch = epoch + 1, owner = NULL \
                      WHERE space = ? AND hi_ms < ?";
        let server = link.server.identity.clone();
        let values = (self.bound_ms, server, self.space.name(), self.bound_ms);
        link.conn.exec_drop(update, values).await?;
        Ok(self.bound_ms)
    }
}
