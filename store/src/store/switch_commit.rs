//! Recording counters, and the one transaction that makes a switch: the bound, the generation and what is in force.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_core::Tag;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::switch_rows::{clear, lock, rules, set_phase};
use super::{AsyncTalk, Link, Store, StoreError, column};
use crate::switch::{Bound, CommitRefusal, InForce, Phase, Recorded, bound_after};

/// Records a counter while its table is locked. False: the attempt is over, and nothing may be fenced.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) attempt: u64,
    pub(crate) recorded: Recorded,
}

impl AsyncTalk<bool> for Record {
    async fn with(self, link: &mut Link) -> Result<bool, StoreError> {
        let conn = &mut link.conn;
        conn.query_drop("START TRANSACTION").await?;
        let locked = lock(conn).await?;
        let stands = locked.attempt == self.attempt && locked.phase == Phase::Holding;
        if stands {
            let Recorded {
                server,
                schema,
                table,
                counter,
                was_fenced,
                session_id,
            } = &self.recorded;
            // Once more, after a failure, it is read behind the attempt's own fence: what was read first stands.
            conn.exec_drop(
                "INSERT INTO keywright_switch_table \
                 (server, schema_name, table_name, attempt, counter, was_fenced, session_id) VALUES (?, ?, ?, ?, ?, ?, ?) \
                 ON DUPLICATE KEY UPDATE counter = GREATEST(counter, ?), session_id = ?",
                (
                    server,
                    schema,
                    table,
                    self.attempt,
                    counter,
                    i64::from(*was_fenced),
                    session_id,
                    counter,
                    session_id,
                ),
            )
            .await?;
        }
        conn.query_drop(if stands { "COMMIT" } else { "ROLLBACK" })
            .await?;
        Ok(stands)
    }
}

/// What an attempt has recorded.
#[derive(Debug)]
pub(crate) struct ReadRecorded {
    pub(crate) attempt: u64,
}

impl AsyncTalk<Vec<Recorded>> for ReadRecorded {
    async fn with(self, link: &mut Link) -> Result<Vec<Recorded>, StoreError> {
        recorded(&mut link.conn, self.attempt).await
    }
}

async fn recorded(conn: &mut Conn, attempt: u64) -> Result<Vec<Recorded>, StoreError> {
    let select = "SELECT server, schema_name, table_name, counter, was_fenced, session_id FROM keywright_switch_table \
                  WHERE attempt = ? ORDER BY server, schema_name, table_name";
    let rows: Vec<Row> = conn.exec(select, (attempt,)).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(Recorded {
            server: column(row, "server")?,
            schema: column(row, "schema_name")?,
            table: column(row, "table_name")?,
            counter: column(row, "counter")?,
            was_fenced: column::<i64>(row, "was_fenced")? != 0,
            session_id: column(row, "session_id")?,
        });
    }
    Ok(found)
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It is in force.
    Done,
    /// The attempt is over.
    Over,
    /// This tag is not there.
    Unknown(Tag),
    /// This tag cannot issue, or cannot be left.
    Refused(Tag, CommitRefusal),
}

/// Makes the switch: to keys, or, where the attempt goes back to native, closes the tags.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) store: Arc<Store>,
    pub(crate) attempt: u64,
    /// Above every id that the tables have, as far as they have told.
    pub(crate) above: u64,
}

impl AsyncTalk<Committed> for Commit {
    async fn with(self, link: &mut Link) -> Result<Committed, StoreError> {
        link.conn.query_drop("START TRANSACTION").await?;
        let committed = self.commit(link).await?;
        let end = match committed {
            Committed::Done => "COMMIT",
            Committed::Over | Committed::Unknown(_) | Committed::Refused(..) => "ROLLBACK",
        };
        link.conn.query_drop(end).await?;
        Ok(committed)
    }
}

impl Commit {
    async fn commit(&self, link: &mut Link) -> Result<Committed, StoreError> {
        let locked = lock(&mut link.conn).await?;
        if locked.attempt != self.attempt || locked.phase != Phase::Holding {
            return Ok(Committed::Over);
        }
        let changing = rules(&mut link.conn, Some(self.attempt)).await?;
        let changing: Vec<InForce> = changing.into_iter().map(|(rule, _)| rule).collect();
        let left: BTreeSet<&Tag> = changing
            .iter()
            .filter_map(|rule| rule.tag.as_ref())
            .collect();
        let new: BTreeSet<&Tag> = changing
            .iter()
            .filter_map(|rule| rule.next.as_ref()?.as_ref())
            .collect();
        let mut bounds = Vec::new();
        for tag in left.iter().copied() {
            match self.bound(tag, link).await? {
                Some(bound) => bounds.push((tag, bound)),
                None => return Ok(Committed::Unknown(tag.clone())),
            }
        }
        let old: Vec<Bound> = bounds.iter().map(|(_, bound)| *bound).collect();
        let counters = recorded(&mut link.conn, self.attempt).await?;
        let counter = counters.iter().map(|its| its.counter).max().unwrap_or(0);
        let above = counter.max(self.above);
        for tag in &new {
            let Some(bound) = self.bound(tag, link).await? else {
                return Ok(Committed::Unknown((*tag).clone()));
            };
            match bound_after(bound, &old, above) {
                Ok(hi) => self.raise(tag, Some(hi), link).await?,
                Err(refusal) => return Ok(Committed::Refused((*tag).clone(), refusal)),
            }
        }
        for (tag, bound) in &bounds {
            if bound.is_foreign {
                return Ok(Committed::Refused((*tag).clone(), CommitRefusal::Foreign));
            }
            if !new.contains(tag) {
                self.raise(tag, None, link).await?;
            }
        }
        if new.is_empty() {
            self.close(&bounds, link).await?;
        } else {
            let adopt = "UPDATE keywright_rule SET tag = next_tag WHERE attempt = ?";
            link.conn.exec_drop(adopt, (self.attempt,)).await?;
            clear(&mut link.conn, self.attempt).await?;
            set_phase(&mut link.conn, Phase::None).await?;
        }
        Ok(Committed::Done)
    }

    /// Back to native: from here there is only one way.
    async fn close(&self, bounds: &[(&Tag, Bound)], link: &mut Link) -> Result<(), StoreError> {
        for (tag, bound) in bounds {
            let above = "UPDATE keywright_rule SET above = ? WHERE attempt = ? AND tag = ?";
            let values = (bound.hi, self.attempt, tag.as_str());
            link.conn.exec_drop(above, values).await?;
        }
        set_phase(&mut link.conn, Phase::Closed).await
    }

    /// A tag's bound; its row is locked until the transaction ends.
    async fn bound(&self, tag: &Tag, link: &mut Link) -> Result<Option<Bound>, StoreError> {
        let select = self
            .store
            .dialect
            .select_row(&self.store.segment_table, true);
        let row: Option<Row> = link.conn.exec_first(select, (tag.as_str(),)).await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let server: Option<String> = column(&row, "server")?;
        Ok(Some(Bound {
            hi: column(&row, "number")?,
            id_max: column(&row, "id_max")?,
            is_foreign: server.is_some_and(|server| server != link.server.identity),
        }))
    }

    /// Raises a tag's generation, and its bound; what was handed back is of an older generation then.
    async fn raise(&self, tag: &Tag, hi: Option<u64>, link: &mut Link) -> Result<(), StoreError> {
        let table = &self.store.segment_table;
        let update = format!(
            "UPDATE {table} SET generation = generation + 1, hi = COALESCE(?, hi) WHERE tag = ?"
        );
        link.conn.exec_drop(update, (hi, tag.as_str())).await?;
        if link.conn.affected_rows() != 1 {
            return Err(StoreError::NotLocked);
        }
        let delete = "DELETE FROM keywright_returned WHERE segment_table = ? AND tag = ?";
        let values = (table.plain(), tag.as_str());
        link.conn.exec_drop(delete, values).await?;
        Ok(())
    }
}
