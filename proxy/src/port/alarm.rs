//! One timer for several moments that move.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// Rings at the first of several moments.
#[derive(Default)]
pub(super) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready once the first moment that is set has come, with why it was set. It may be another one each time.
    pub(super) fn poll<T>(
        &mut self,
        first: Option<(Instant, T)>,
        waker: &mut Context<'_>,
    ) -> Poll<T> {
        let Some((at, why)) = first else {
            self.sleep = None;
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        // One that rings too early is set anew then: that is cheaper than to set it with each byte.
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        loop {
            ready!(sleep.as_mut().poll(waker));
            if Instant::now() >= at {
                return Poll::Ready(why);
            }
            sleep.as_mut().reset(at);
        }
    }
}
