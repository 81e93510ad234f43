//! Which worker id a PostgreSQL database issues snowflake ids with that is fed, and until when: pure rules, the same in the program and in the
//! model.
//!
//! The lease is the database's, in one life of its server's memory, and never a program's: whoever feeds it extends it by compare-and-swap on
//! (owner, epoch, bound). What is handed over begins at the bound that stood in the store, so the times of two hand-overs with one worker id
//! never meet, whatever became of either. A database whose hand-over was lost, or whose memory was, would have to begin in the future: it takes
//! another worker id, whose bound lies in the past by the store's clock. So nobody needs to know whether the one before still issues.

use std::collections::HashSet;

use keywright_core::{BeforeEpoch, Layout};
use thiserror::Error;

use super::LeaseRow;
use crate::worker_ids::IdRange;

/// How these leases are called in the table.
pub const SPACE: &str = "fed";

/// What a database was handed last, as far as it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handed {
    /// The worker id.
    pub worker_id: u32,
    /// The first moment that it may not issue, unix milliseconds.
    pub until_ms: i64,
}

/// A database that asks for time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeAsker {
    /// The database, in one life of its server's memory.
    pub owner: String,
    /// What it was handed last in this life of the memory.
    pub handed: Option<Handed>,
    /// The layout of its ids.
    pub layout: Layout,
}

/// What the store knows of all worker ids of databases that are fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FedIds<'a> {
    /// Those that were ever leased.
    pub rows: &'a [LeaseRow],
    /// Those that may be.
    pub range: IdRange,
    /// Others count as used until then, unix milliseconds, as do those whose bound another server wrote: a store that was made anew, that was
    /// restored, or whose standby was promoted may have forgotten.
    pub unknown_until_ms: i64,
    /// Until when databases had worker ids out of other stores, as far as the program has seen: this one gives out nothing before.
    pub elsewhere: &'a [Handed],
    /// The server that the rows are read on.
    pub server: &'a str,
}

impl<'a> FedIds<'a> {
    fn find(&self, worker_id: u32) -> Option<&'a LeaseRow> {
        self.rows.iter().find(|row| row.worker_id == worker_id)
    }

    /// This store handed nobody moments from then on.
    fn known_bound(&self, row: Option<&LeaseRow>) -> i64 {
        match row {
            Some(row) if row.server == self.server => row.hi_ms,
            Some(row) => row.hi_ms.max(self.unknown_until_ms),
            None => self.unknown_until_ms,
        }
    }

    /// The first of these hand-overs that the store knows less of: it has gone back, or is another one.
    pub(crate) fn behind<'b>(&self, seen: impl IntoIterator<Item = &'b Handed>) -> Option<Handed> {
        let is_behind =
            |handed: &Handed| self.known_bound(self.find(handed.worker_id)) < handed.until_ms;
        seen.into_iter().copied().find(is_behind)
    }

    /// Nor did any other.
    fn bound_of(&self, worker_id: u32, row: Option<&LeaseRow>) -> i64 {
        last_of(worker_id, self.elsewhere).map_or(self.known_bound(row), |until_ms| {
            self.known_bound(row).max(until_ms)
        })
    }
}

/// The last moment until which a worker id was handed over.
fn last_of(worker_id: u32, handed: &[Handed]) -> Option<i64> {
    let its = handed.iter().filter(|its| its.worker_id == worker_id);
    its.map(|its| its.until_ms).max()
}

/// How far ahead time is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// The store's clock, unix milliseconds.
    pub now_ms: i64,
    /// No bound is further ahead of it, milliseconds.
    pub ahead_ms: i64,
}

impl Ahead {
    /// No bound is later, unix milliseconds.
    pub fn end_ms(&self) -> i64 {
        self.now_ms.saturating_add(self.ahead_ms)
    }
}

/// A lease to be written, and what may be handed over once that is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeGrant {
    /// The worker id.
    pub worker_id: u32,
    /// Epoch and bound of the row that was found; `None` when one must be made.
    pub found: Option<(u64, i64)>,
    /// The epoch of the owner.
    pub epoch: u64,
    /// The first moment, unix milliseconds: the bound that stood in the store.
    pub from_ms: i64,
    /// The first moment after it: the bound.
    pub until_ms: i64,
    /// The owner had this worker id, which it does not go on with.
    pub leaves: Option<u32>,
}

/// Why no time is handed over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoTime {
    /// The store is older than what is known of it: others may have been handed what its rows do not show.
    #[error(
        "the store has gone back, or is another one: worker id {worker_id} was handed over until {until_ms}, unix milliseconds, and it knows of less"
    )]
    GoneBack {
        /// The worker id.
        worker_id: u32,
        /// How far.
        until_ms: i64,
    },
    /// No worker id has a bound that lies in the past.
    #[error(
        "all worker ids of {range} are in use, or may be, by databases that are fed; the next is free in {wait_ms} ms"
    )]
    NoneFree {
        /// Those that may be leased.
        range: IdRange,
        /// When the first will be, milliseconds from now.
        wait_ms: i64,
        /// It waits for what the store may have forgotten, and for nobody who is known to have one.
        is_unknown: bool,
    },
    /// As much as may be was handed over.
    #[error(
        "worker id {worker_id} was handed over until {until_ms}, unix milliseconds, and not more is by the store's clock"
    )]
    FarEnough {
        /// The worker id.
        worker_id: u32,
        /// How far.
        until_ms: i64,
    },
    /// No id is of now.
    #[error(transparent)]
    BeforeEpoch(#[from] BeforeEpoch),
    /// All databases of a store have one layout.
    #[error("the store's layout is \"{store}\", and the database's is \"{database}\"")]
    OtherLayout {
        /// The store's.
        store: String,
        /// The asker's.
        database: String,
    },
}

/// Decides what is handed over to a database, from all rows, which are locked. `seen` is what databases are known to have been handed, whichever
/// they are.
///
/// # Errors
/// [`NoTime`].
pub fn plan_time(
    ids: &FedIds<'_>,
    asker: &TimeAsker,
    seen: &[Handed],
    ahead: &Ahead,
) -> Result<TimeGrant, NoTime> {
    if let Some(row) = ids.rows.iter().find(|row| row.layout != asker.layout) {
        return Err(NoTime::OtherLayout {
            store: row.layout.to_string(),
            database: asker.layout.to_string(),
        });
    }
    if let Some(handed) = ids.behind(seen.iter().chain(&asker.handed)) {
        return Err(NoTime::GoneBack {
            worker_id: handed.worker_id,
            until_ms: handed.until_ms,
        });
    }
    asker.layout.check_begun(ahead.now_ms)?;
    match asker
        .handed
        .and_then(|handed| own(ids, asker, handed, (seen, ahead)))
    {
        Some((row, from_ms)) => extend(row, from_ms, ahead),
        None => claim(ids, asker, ahead),
    }
}

/// The row of what the asker was handed, and where it goes on, if it goes on with it.
fn own<'a>(
    ids: &FedIds<'a>,
    asker: &TimeAsker,
    handed: Handed,
    (seen, ahead): (&[Handed], &Ahead),
) -> Option<(&'a LeaseRow, i64)> {
    let row = ids.find(handed.worker_id)?;
    let is_others = |others: &[Handed], from_ms: i64| {
        last_of(row.worker_id, others).is_some_and(|until_ms| until_ms > from_ms)
    };
    let is_in_range = ids.range.has(row.worker_id) && !is_others(ids.elsewhere, handed.until_ms);
    if row.server != ids.server {
        // Whatever was lost: nobody else can have had it before the moment until which the asker has it, and nobody is known to have it after.
        let goes_on = handed.until_ms > ahead.now_ms
            && handed.until_ms >= row.hi_ms
            && !is_others(seen, handed.until_ms);
        return (is_in_range && goes_on).then_some((row, handed.until_ms));
    }
    let goes_on = row.hi_ms == handed.until_ms || row.hi_ms <= ahead.now_ms;
    let is_own = row.owner.as_ref() == Some(&asker.owner);
    (is_in_range && is_own && goes_on).then_some((row, row.hi_ms))
}

fn extend(row: &LeaseRow, from_ms: i64, ahead: &Ahead) -> Result<TimeGrant, NoTime> {
    let until_ms = end_of(&row.layout, ahead);
    if until_ms <= from_ms {
        return Err(NoTime::FarEnough {
            worker_id: row.worker_id,
            until_ms: from_ms,
        });
    }
    Ok(TimeGrant {
        worker_id: row.worker_id,
        found: Some((row.epoch, row.hi_ms)),
        epoch: row.epoch,
        from_ms,
        until_ms,
        leaves: None,
    })
}

/// The one whose bound lies furthest back; one that was never leased only if there is none.
fn claim(ids: &FedIds<'_>, asker: &TimeAsker, ahead: &Ahead) -> Result<TimeGrant, NoTime> {
    let in_range = ids.rows.iter().filter(|row| ids.range.has(row.worker_id));
    let bounds = in_range.map(|row| (ids.bound_of(row.worker_id, Some(row)), row));
    let oldest = bounds.min_by_key(|(bound_ms, row)| (*bound_ms, row.worker_id));
    let never = never_leased(ids, &asker.layout);
    let (worker_id, found, from_ms) = match (oldest, never) {
        (Some((bound_ms, row)), _) if bound_ms <= ahead.now_ms => {
            (row.worker_id, Some((row.epoch, row.hi_ms)), bound_ms)
        }
        (_, Some((bound_ms, worker_id))) if bound_ms <= ahead.now_ms => (worker_id, None, bound_ms),
        (oldest, never) => {
            let oldest_ms = oldest.map(|(bound_ms, _)| bound_ms);
            let never_ms = never.map(|(bound_ms, _)| bound_ms);
            let free_ms = oldest_ms.into_iter().chain(never_ms).min();
            return Err(NoTime::NoneFree {
                range: ids.range,
                wait_ms: free_ms.unwrap_or(i64::MAX).saturating_sub(ahead.now_ms),
                is_unknown: free_ms == Some(ids.unknown_until_ms),
            });
        }
    };
    let mut rows = ids.rows.iter();
    let left =
        rows.find(|row| row.owner.as_ref() == Some(&asker.owner) && row.worker_id != worker_id);
    Ok(TimeGrant {
        worker_id,
        found,
        epoch: found.map_or(1, |(epoch, _)| epoch.saturating_add(1)),
        from_ms,
        until_ms: end_of(&asker.layout, ahead),
        leaves: left.map(|row| row.worker_id),
    })
}

/// Of those that were never leased the one whose bound lies furthest back, and that bound.
fn never_leased(ids: &FedIds<'_>, layout: &Layout) -> Option<(i64, u32)> {
    let leased: HashSet<u32> = ids.rows.iter().map(|row| row.worker_id).collect();
    let all = (ids.range.first..=ids.range.last)
        .take_while(|worker_id| *worker_id <= layout.worker_id_max());
    let never = all.filter(|worker_id| !leased.contains(worker_id));
    never
        .map(|worker_id| (ids.bound_of(worker_id, None), worker_id))
        .min()
}

/// The last tick that ends within what may be handed over.
fn end_of(layout: &Layout, ahead: &Ahead) -> i64 {
    layout.unix_ms_of(layout.state_at(ahead.end_ms()) >> layout.sequence_bits())
}

#[cfg(test)]
mod tests;
