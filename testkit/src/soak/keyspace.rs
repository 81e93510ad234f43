//! One key space over everything that issues of it: databases that are fed, tables behind listeners, key ports. Servers, programs and the
//! store are killed, paused, copied, promoted and restored, mixed by a seed, while ids are drawn; every id that a client saw is checked.

mod conductor;
mod drawer;
mod event;
mod fleet;
mod issuer;
mod report;
mod rows;
mod store;

use std::time::Duration;

pub use report::KeySpaceReport;
pub use store::StoreKind;

use crate::Result;
use conductor::Conductor;

/// A soak that is about to be.
#[derive(Debug, Clone, Copy)]
pub struct KeySpaceSoak {
    seed: u64,
    length: Duration,
    ids_min: u64,
    store: StoreKind,
}

impl KeySpaceSoak {
    /// With that seed, or one that is drawn; for so long, and until so many ids were seen.
    #[must_use]
    pub fn new(
        seed: Option<u64>,
        length: Duration,
        ids_min: u64,
        store: StoreKind,
    ) -> KeySpaceSoak {
        KeySpaceSoak {
            seed: seed.unwrap_or_else(|| fastrand::u64(..)),
            length,
            ids_min,
            store,
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
    /// An id was seen twice, something failed that must not, or ids stopped coming.
    pub fn run(self) -> Result<KeySpaceReport> {
        Conductor::begin(self.seed, self.store)?.conduct(self.length, self.ids_min)
    }
}
