//! Clients that cannot be accepted, mostly since too many files are open: tried again after a pause, and told of when that begins, now and then, and
//! when it is over.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

/// How long an acceptor pauses when it cannot accept a client, milliseconds.
const PAUSE_MS: u64 = 50;
/// How often it is told that clients cannot be accepted, at most, seconds.
const TOLD_AFTER_S: u64 = 60;
/// Who is accepted so long after the last failure shows that they are over, seconds: where files run short, somebody is let in now and then.
const OVER_AFTER_S: u64 = 1;

/// Those of one acceptor.
#[derive(Debug)]
pub(crate) struct AcceptFailures {
    /// Where clients are accepted.
    bind: String,
    /// When one was told of last.
    told: Option<Instant>,
    /// When the last one was, unless they are over.
    last: Option<Instant>,
    /// Whether one was told of since they began.
    is_told: bool,
}

impl AcceptFailures {
    pub(crate) fn new(bind: &str) -> Self {
        Self {
            bind: bind.to_owned(),
            told: None,
            last: None,
            is_told: false,
        }
    }

    /// A client was accepted.
    pub(crate) fn accepted(&mut self) {
        // Mostly there was none, and nobody asks what time it is.
        if self.last.is_some() && self.ends(Instant::now()) {
            tracing::info!(bind = self.bind, "clients are accepted again");
        }
    }

    /// None could be accepted. Returns when it is to be tried again.
    pub(crate) async fn failed(&mut self, error: &io::Error) {
        if self.begins(Instant::now()) {
            tracing::warn!(bind = self.bind, %error, "clients cannot be accepted");
        }
        tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
    }

    /// Notes a failure; whether it is told of.
    fn begins(&mut self, now: Instant) -> bool {
        self.last = Some(now);
        let pause = Duration::from_secs(TOLD_AFTER_S);
        let is_due = self
            .told
            .is_none_or(|told| now.saturating_duration_since(told) >= pause);
        if is_due {
            self.told = Some(now);
            self.is_told = true;
        }
        is_due
    }

    /// Notes a client; whether it is told that they are over.
    fn ends(&mut self, now: Instant) -> bool {
        let pause = Duration::from_secs(OVER_AFTER_S);
        let is_over = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) >= pause);
        if !is_over {
            return false;
        }
        self.last = None;
        mem::take(&mut self.is_told)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::AcceptFailures;

    /// They were told of twenty times a second.
    #[test]
    fn failures_are_told_of_when_they_begin_each_minute_and_when_they_are_over() {
        let mut failures = AcceptFailures::new("127.0.0.1:6033");
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        assert!(!failures.ends(at(0)));
        let told = |failures: &mut AcceptFailures, from: u64, until: u64| {
            let mut told = Vec::new();
            for ms in (from..until).step_by(50) {
                if failures.begins(at(ms)) {
                    told.push(ms);
                }
                // A file was closed meanwhile, and the next client has none.
                assert!(!failures.ends(at(ms + 20)));
            }
            told
        };
        assert_eq!(told(&mut failures, 100, 130_000), [100, 60_100, 120_100]);
        assert!(failures.ends(at(131_000)));
        assert!(!failures.ends(at(131_001)));
        // Soon after, and over before the minute is.
        assert!(told(&mut failures, 140_000, 150_000).is_empty());
        assert!(!failures.ends(at(151_000)));
        assert_eq!(told(&mut failures, 170_000, 190_000), [180_100]);
        assert!(failures.ends(at(191_000)));
    }
}
