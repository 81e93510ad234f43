//! Requests while the wall clock reads earlier than it did. Keys do not repeat whatever they get: the word only grows.

use std::sync::atomic::{AtomicI64, Ordering};

use keywright_core::{Cause, ClockDecision, ClockPolicy, SpareState, decide};

use crate::failure::Failure;
use crate::lease::space::Space;
use crate::settings::SnowflakeSettings;

/// What the clock has read at most, and the policy for when it reads less.
#[derive(Debug)]
pub(super) struct ClockWatch {
    policy: ClockPolicy,
    wait_ms_max: u64,
    spare: SpareState,
    /// The highest reading that keys were issued with, unix milliseconds.
    highest_ms: AtomicI64,
}

impl ClockWatch {
    /// Readable keys tell no more than a moment: they always go on.
    pub(super) fn new(space: Space, settings: &SnowflakeSettings) -> Self {
        Self {
            policy: match space {
                Space::Snowflake => settings.clock_policy,
                Space::Readable => ClockPolicy::Carry,
            },
            wait_ms_max: settings.clock_wait_ms_max,
            spare: settings.layout.spare_state(),
            highest_ms: AtomicI64::new(i64::MIN),
        }
    }

    /// What to do with what the clock reads now, and that. The highest reading is looked at before the clock is: a later one that
    /// another thread adds meanwhile is no step back.
    #[inline]
    pub(super) fn decide(&self, read_ms: impl FnOnce() -> i64) -> (ClockDecision, i64) {
        if self.policy == ClockPolicy::Carry {
            return (ClockDecision::Issue, read_ms());
        }
        let highest_ms = self.highest_ms.load(Ordering::Acquire);
        let now_ms = read_ms();
        let decision = decide(
            self.policy,
            now_ms,
            highest_ms,
            self.wait_ms_max,
            self.spare,
        );
        (decision, now_ms)
    }

    /// Keys were issued with this reading.
    #[inline]
    pub(super) fn issued_at(&self, now_ms: i64) {
        if self.policy != ClockPolicy::Carry {
            self.highest_ms.fetch_max(now_ms, Ordering::Release);
        }
    }

    /// The error for a clock that is so many milliseconds behind.
    pub(super) fn behind(&self, behind_ms: u64) -> Failure {
        let message = format!(
            "the clock reads {behind_ms} ms earlier than it did, and clock_policy {} issues no keys then",
            self.policy
        );
        Failure::new(Cause::ClockBehind, message)
            .hint("retry when the clock has caught up, or set clock_policy = \"carry\"")
    }
}
