//! What a refill remembers from one attempt to the next.

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::reserve::StepTrack;
use crate::settings::Limits;

/// What only the refill task knows.
pub(super) struct Refilling {
    pub(super) steps: StepTrack,
    pub(super) began: Instant,
    /// Whether ranges may lie in the store that were handed back.
    pub(super) look_for_returned: bool,
    pub(super) backoff: Backoff,
    pub(super) last: Option<(Instant, u64)>,
    /// Nothing was reserved yet, and as far as is known nobody has asked for keys.
    pub(super) is_unasked: bool,
    /// First id behind the ranges that the buffer's last indices are of, while each began where the one before it ended.
    pub(super) end: Option<u64>,
    /// The epoch for which ids of an ordered tag were asked for last.
    pub(super) epoch: Option<u64>,
    /// The store did not answer the last time.
    pub(super) is_away: bool,
}

impl Refilling {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            steps: StepTrack::default(),
            began: Instant::now(),
            look_for_returned: true,
            backoff: Backoff::new(limits.backoff_ms_min, limits.backoff_ms_max),
            last: None,
            is_unasked: true,
            end: None,
            epoch: None,
            is_away: false,
        }
    }
}
