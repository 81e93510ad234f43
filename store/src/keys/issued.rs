//! How far snowflake ids have come, for somebody who has tables do without them.

use super::Keys;
use crate::failure::Failure;
use crate::lease::first_above_granted;
use crate::store::switch_snowflakes::ReadIssued;

impl Keys {
    /// The first snowflake id above all that may have been issued until now: where counters go on when tables leave them.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn first_free_snowflake(&self) -> Result<u64, Failure> {
        let read = ReadIssued {
            layout: self.snowflakes().layout,
            takeover: self.takeover(),
            clock: self.clock(),
        };
        self.run(read).await
    }

    /// The same by the clock alone, for when the store cannot be asked: above all that anybody may have been granted until now with the configured layout.
    pub fn first_free_snowflake_by_clock(&self) -> u64 {
        first_above_granted(&[], &self.snowflakes().layout, &self.takeover())
    }
}
