//! Everything that may happen to a server, mixed by a seed, while ids are drawn; every id that a client saw is checked.
//!
//! Ids are drawn in big batches, so that a hundred million come in minutes, and kept as runs of consecutive ones, so that they
//! fit into little memory.

mod conductor;
mod counts;
mod databases;
mod drawer;
mod event;
mod findings;
mod identity;
mod keyspace;
mod ledger;
mod session;
mod verdict;
mod world;

use std::time::Duration;

pub use counts::{Counts, Report};
pub use keyspace::{KeySpaceReport, KeySpaceSoak, StoreKind};
pub use ledger::{Draw, Ledger, Repeated};
pub use verdict::{Verdict, judge};

use crate::Result;
use conductor::Conductor;

/// A soak that is about to be.
#[derive(Debug, Clone, Copy)]
pub struct Soak {
    seed: u64,
    length: Duration,
}

impl Soak {
    /// With that seed, or one that is drawn.
    #[must_use]
    pub fn new(seed: Option<u64>, length: Duration) -> Soak {
        Soak {
            seed: seed.unwrap_or_else(|| fastrand::u64(..)),
            length,
        }
    }

    /// What plays it again, as far as timing lets it.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Lets everything happen.
    ///
    /// # Errors
    /// An id was seen twice, the server failed with what it must not fail with, or ids stopped coming.
    pub fn run(self) -> Result<Report> {
        Conductor::begin(self.seed)?.conduct(self.length)
    }
}
