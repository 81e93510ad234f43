//! What the sources of one store have said of it, so that an outage is said once and not by each of them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keywright_core::Cause;
use tokio::time::Instant;

use crate::failure::Failure;

/// For so long what one source has said of the store the others need not say, seconds.
const SAID_S: u64 = 60;
/// Failures that are remembered; each source says of itself what goes beyond.
const SAID_MAX: usize = 16;

/// What was said lately.
#[derive(Debug, Default)]
pub(crate) struct StoreNews(Mutex<Vec<(Failure, Instant)>>);

impl StoreNews {
    /// Whether that is news: it is not of the store as a whole, or no source has said it lately. Whoever hears so says it.
    pub(super) fn is_news(&self, failure: &Failure, now: Instant) -> bool {
        if failure.cause() != Cause::StoreUnavailable {
            return true;
        }
        let mut said = self.said();
        said.retain(|(_, since)| now.duration_since(*since) < Duration::from_secs(SAID_S));
        if said.iter().any(|(its, _)| its == failure) {
            return false;
        }
        if said.len() < SAID_MAX {
            said.push((failure.clone(), now));
        }
        true
    }

    /// The source that has said so has keys again: the next time it is news.
    pub(super) fn is_over(&self, failure: &Failure) {
        self.said().retain(|(its, _)| its != failure);
    }

    fn said(&self) -> MutexGuard<'_, Vec<(Failure, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{Demand, Outlook};
    use super::*;

    fn failure(cause: Cause) -> Failure {
        Failure::new(cause, "no answer within 2000 ms")
    }

    /// Sources of one store, none of which can reserve.
    fn troubled(count: usize) -> Vec<Demand> {
        let news = Arc::new(StoreNews::default());
        let demands = (0..count).map(|number| {
            let demand = Demand::new(format!("segment:{number}"), 2_000, 10);
            demand.sharing(Arc::clone(&news))
        });
        let demands: Vec<Demand> = demands.collect();
        demands.iter().for_each(fail);
        demands
    }

    fn fail(demand: &Demand) {
        demand.failed(failure(Cause::StoreUnavailable), 0, Outlook::MayPass);
    }

    fn said(demands: &[Demand]) -> usize {
        let has_said = |demand: &&Demand| demand.trouble().as_ref().is_some_and(|its| its.is_said);
        demands.iter().filter(has_said).count()
    }

    #[test]
    fn an_outage_is_said_by_one_source_of_the_store() {
        let demands = troubled(300);
        assert_eq!(said(&demands), 1);
        // As long as it lasts.
        demands.iter().for_each(fail);
        assert_eq!(said(&demands), 1);
        // Who has said it has keys: others that have none say it.
        demands.iter().take(1).for_each(Demand::succeeded);
        demands.iter().skip(1).for_each(fail);
        assert_eq!(said(&demands), 1);
        // The next outage is another one.
        demands.iter().for_each(Demand::succeeded);
        demands.iter().for_each(fail);
        assert_eq!(said(&demands), 1);
    }

    #[test]
    fn what_one_tag_has_is_said_of_each() {
        let news = StoreNews::default();
        let now = Instant::now();
        let exhausted = failure(Cause::TagExhausted);
        assert!(news.is_news(&exhausted, now) && news.is_news(&exhausted, now));
    }

    #[test]
    fn what_lasts_is_said_again_by_another() {
        let news = StoreNews::default();
        let now = Instant::now();
        let away = failure(Cause::StoreUnavailable);
        assert!(news.is_news(&away, now) && !news.is_news(&away, now));
        assert!(!news.is_news(&away, now + Duration::from_secs(SAID_S - 1)));
        assert!(news.is_news(&away, now + Duration::from_secs(SAID_S)));
        // More than are remembered are all said.
        for number in 0..=2 * SAID_MAX {
            let other = Failure::new(Cause::StoreUnavailable, number.to_string());
            assert!(news.is_news(&other, now));
        }
        assert!(news.said().len() <= SAID_MAX);
    }
}
