//! Why a worker id cannot be had.

use keywright_core::BeforeEpoch;
use thiserror::Error;

use crate::worker_ids::{NumberTable, WorkerIds};

/// What to do about a clock that reads a moment before the layout's epoch.
pub(crate) const BEFORE_EPOCH_HINT: &str = "set the clock, or give the layout an epoch in the past";

/// Why there is no lease.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoLease {
    /// The worker id insisted on is another's.
    #[error("worker id {worker_id} is leased by {holder}")]
    InUse {
        /// The worker id.
        worker_id: u32,
        /// The machine and process that hold it, as `keywright worker list` says them.
        holder: String,
    },
    /// The table has given more than the layout has.
    #[error(
        "table {table} has given number {number}, and the layout's largest worker id is {worker_id_max}"
    )]
    NumbersUsedUp {
        /// The table.
        table: NumberTable,
        /// The number.
        number: u64,
        /// The layout's largest.
        worker_id_max: u32,
    },
    /// The table gives numbers a second time: it was made anew, or brought back from a backup.
    #[error(
        "table {table} has given number {worker_id}, which is not above all that it has given before"
    )]
    NumberKnown {
        /// The table.
        table: NumberTable,
        /// The number.
        worker_id: u32,
    },
    /// All are taken.
    #[error("all worker ids from 0 to {worker_id_max} that may be leased are")]
    NoneFree {
        /// The layout's largest.
        worker_id_max: u32,
    },
    /// Buckets of readable ids are divided among several stores, and this one is not open.
    #[error("it is not known which buckets this store leases")]
    BucketsClosed,
    /// It has none of them.
    #[error("other stores lease all buckets, and this one has none")]
    NoBuckets,
    /// Numbers that are leased here are assigned to databases elsewhere, or set by hand.
    #[error("worker ids are {recorded} in the store, and {configured} in this configuration")]
    OtherWorkerIds {
        /// What the store has recorded.
        recorded: Box<WorkerIds>,
        /// What the configuration says.
        configured: Box<WorkerIds>,
    },
    /// Somebody issues with another layout now.
    #[error("worker id {worker_id} is leased with layout \"{layout}\"")]
    OtherLayout {
        /// The worker id.
        worker_id: u32,
        /// Its layout.
        layout: String,
    },
    /// Ids of the new layout could repeat old ones.
    #[error(
        "ids of layout \"{new}\" could repeat ids that worker id {worker_id} issued with layout \"{old}\""
    )]
    LayoutOverlap {
        /// The worker id.
        worker_id: u32,
        /// Its layout.
        old: String,
        /// The layout asked for.
        new: String,
    },
    /// The store is older than what this process knows of it: others may have issued what the rows do not show.
    #[error(
        "the store has gone back: the bound of worker id {worker_id} was {bound_ms}, and is lower, or gone"
    )]
    GoneBack {
        /// The worker id that this process had.
        worker_id: u32,
        /// The bound that was committed, unix milliseconds.
        bound_ms: i64,
    },
    /// Tables have gone over to these keys, or left them, and this process does not know yet.
    #[error(
        "leases are of generation {generation} now, and this program follows generation {followed}"
    )]
    Superseded {
        /// The generation that it follows.
        followed: u64,
        /// What it is.
        generation: u64,
    },
    /// The clock reads a moment that no id is of: whoever takes a worker id over by it would begin where others have begun, or will.
    #[error(transparent)]
    BeforeEpoch(#[from] BeforeEpoch),
    /// The layout cannot express the time at which it would have to start.
    #[error("the time bits of layout \"{layout}\" have run out")]
    LayoutRanOut {
        /// The layout.
        layout: String,
    },
}

impl NoLease {
    /// Whether each attempt uses a number up that never comes again.
    pub(crate) fn uses_a_number_up(&self) -> bool {
        match self {
            Self::NumbersUsedUp {
                table: _,
                number: _,
                worker_id_max: _,
            }
            | Self::NumberKnown {
                table: _,
                worker_id: _,
            } => true,
            Self::InUse {
                worker_id: _,
                holder: _,
            }
            | Self::NoneFree { worker_id_max: _ }
            | Self::BucketsClosed
            | Self::NoBuckets
            | Self::OtherWorkerIds {
                recorded: _,
                configured: _,
            }
            | Self::OtherLayout {
                worker_id: _,
                layout: _,
            }
            | Self::LayoutOverlap {
                worker_id: _,
                old: _,
                new: _,
            }
            | Self::GoneBack {
                worker_id: _,
                bound_ms: _,
            }
            | Self::Superseded {
                followed: _,
                generation: _,
            }
            | Self::BeforeEpoch(_)
            | Self::LayoutRanOut { layout: _ } => false,
        }
    }
}
