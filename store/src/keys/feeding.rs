//! Servers that a program feeds.

use std::sync::Arc;

use keywright_core::Tag;

use super::{Keys, broken_off, draining};
use crate::failure::Failure;
use crate::feed::{self, FeedStats, Feeder};
use crate::settings::FeedSettings;

impl Keys {
    /// Feeds a server from now on, until the clean stop.
    ///
    /// # Errors
    /// [`keywright_core::Cause::Draining`] after [`Keys::hand_back`].
    pub fn feed(&self, settings: FeedSettings) -> Result<(), Failure> {
        let mut sources = self.sources();
        if sources.closed {
            return Err(draining());
        }
        let feeder = Arc::new(Feeder::new(settings));
        sources.feeders.push(Arc::clone(&feeder));
        let limits = self.0.settings.limits;
        self.0.runtime.spawn(feed::run(
            feeder,
            Arc::clone(&self.0.store),
            limits,
            self.0.settings.snowflake.clone(),
        ));
        Ok(())
    }

    /// What is in the way of feeding a server: is it there, has the database the extension, may the user feed, and does the store say no less than it
    /// was handed. Changes nothing.
    pub async fn check_feed(&self, settings: &FeedSettings) -> Vec<Failure> {
        let (settings, store) = (settings.clone(), Arc::clone(&self.0.store));
        let check = self
            .0
            .runtime
            .spawn(async move { feed::check(&settings, &store).await });
        let found = check.await.unwrap_or_else(broken_off);
        found.unwrap_or_else(|failure| vec![failure])
    }

    /// The largest id of each tag that a server was handed. To this program, a store that reserved less counts as one that has gone back from here on.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub async fn handed_over(&self, settings: &FeedSettings) -> Result<Vec<(Tag, u64)>, Failure> {
        let (settings, store) = (settings.clone(), Arc::clone(&self.0.store));
        let ask = self
            .0
            .runtime
            .spawn(async move { feed::handed_over(&settings, &store).await });
        ask.await.unwrap_or_else(broken_off)
    }

    /// The same before the program gives anything. Where the store reserved less, its tags say so from here on, so that no other program reserves of them
    /// either.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub async fn learn_handed(&self, settings: &FeedSettings) -> Result<(), Failure> {
        let (settings, store) = (settings.clone(), Arc::clone(&self.0.store));
        let ask = self
            .0
            .runtime
            .spawn(async move { feed::learn(&settings, &store).await });
        ask.await.unwrap_or_else(broken_off)
    }

    /// Figures of the servers that are fed.
    pub fn feed_stats(&self) -> Vec<FeedStats> {
        let sources = self.sources();
        sources
            .feeders
            .iter()
            .map(|feeder| feeder.stats())
            .collect()
    }
}
