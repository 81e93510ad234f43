//! How a passthrough connection ends once there are rules: between two statements where these can be told apart, and after a time limit
//! anyhow, since tables cannot be switched before.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use keywright_session::Rest;
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// A server that has said nothing for so long after its last bytes has ended its answer, milliseconds.
const REST_MS: u64 = 1_000;
/// How long the end of statement and transaction is waited for, milliseconds.
const LEAVE_MS_MAX: u64 = 60_000;

/// The wait for the place to end it.
pub(crate) struct Leaving {
    until: Instant,
    /// What it perhaps rests at, and since when.
    rests: Option<(u64, Instant)>,
    timer: Pin<Box<Sleep>>,
}

impl Leaving {
    pub(crate) fn new() -> Self {
        let until = Instant::now() + Duration::from_millis(LEAVE_MS_MAX);
        Self {
            until,
            rests: None,
            timer: Box::pin(sleep_until(until)),
        }
    }

    /// Whether it ends now; if not, the task is woken when it does.
    pub(crate) fn poll(&mut self, rest: Rest, context: &mut Context<'_>) -> bool {
        let now = Instant::now();
        let at = self.at(rest, now);
        if at <= now {
            return true;
        }
        self.timer.as_mut().reset(at);
        let wait = std::pin::pin!(unconstrained(self.timer.as_mut()));
        wait.poll(context).is_ready()
    }

    fn at(&mut self, rest: Rest, now: Instant) -> Instant {
        let at = match rest {
            Rest::Yes => now,
            Rest::Busy => self.until,
            Rest::Perhaps(parts) => {
                let since = match self.rests {
                    Some((same, since)) if same == parts => since,
                    Some(_) | None => now,
                };
                self.rests = Some((parts, since));
                since + Duration::from_millis(REST_MS)
            }
        };
        at.min(self.until)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use keywright_session::Rest;
    use tokio::time::Instant;

    use super::{LEAVE_MS_MAX, Leaving, REST_MS};

    #[tokio::test]
    async fn it_ends_where_nothing_is_under_way_and_in_the_end_anyhow() {
        let now = Instant::now();
        let later = |ms| now + Duration::from_millis(ms);
        let mut leaving = Leaving::new();
        leaving.until = later(LEAVE_MS_MAX);
        assert_eq!(leaving.at(Rest::Yes, now), now);
        assert_eq!(leaving.at(Rest::Busy, now), later(LEAVE_MS_MAX));
        assert_eq!(leaving.at(Rest::Perhaps(1), now), later(REST_MS));
        assert_eq!(leaving.at(Rest::Perhaps(1), later(500)), later(REST_MS));
        // More has come.
        let next = leaving.at(Rest::Perhaps(2), later(900));
        assert_eq!(next, later(900 + REST_MS));
        let last = later(LEAVE_MS_MAX - 1);
        assert_eq!(leaving.at(Rest::Perhaps(3), last), later(LEAVE_MS_MAX));
    }
}
