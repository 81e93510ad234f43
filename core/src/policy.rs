//! What to do when the wall clock reads earlier than it did.
//!
//! None of the policies is needed for uniqueness: the word only grows whatever the clock does. They decide whether
//! ids may run ahead of the clock (`carry`), or the caller waits, or gets an error, or gets an id of the spare
//! worker that tells the clock's own time.

use std::fmt;

/// What happens after a clock step back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockPolicy {
    /// Go on from the last state (March). The default.
    Carry,
    /// Wait for the clock while it is a little behind, refuse when it is more (the first half of the second fix in
    /// the clock-rollback article, which forgets to read the clock again).
    Wait,
    /// Refuse until the clock has caught up (Twitter).
    Refuse,
    /// Issue with the spare bit set, from a word and a bound of its own (the second half of that fix, which keeps
    /// no word of its own and repeats itself); when the clock steps back again, that word carries.
    SpareWorker,
}

impl ClockPolicy {
    /// All policies.
    pub const ALL: [Self; 4] = [Self::Carry, Self::Wait, Self::Refuse, Self::SpareWorker];

    /// The name used in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Carry => "carry",
            Self::Wait => "wait",
            Self::Refuse => "refuse",
            Self::SpareWorker => "spare_worker",
        }
    }

    /// The policy of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

impl fmt::Display for ClockPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Whether there is a spare word to issue from: [`crate::Layout::spare_state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpareState {
    /// The layout has no spare bit.
    Absent,
    /// The layout has a spare bit.
    Available,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockDecision {
    /// Take states from the worker's own word.
    Issue,
    /// Take states from the spare word.
    IssueSpare,
    /// Sleep for so many milliseconds, **read the clock again** and decide again.
    WaitMs(u64),
    /// Raise an error.
    Refuse {
        /// How far the clock is behind, milliseconds.
        behind_ms: u64,
    },
}

/// Decides by how far `wall_ms` is behind `highest_ms`, the highest reading that ids were issued with.
///
/// A reading counts as seen once ids were taken with it, not before: one that is refused as a step forward must not
/// make every later reading look late. Both are readings less the skew of [`crate::Observation`].
pub fn decide(
    policy: ClockPolicy,
    wall_ms: i64,
    highest_ms: i64,
    wait_ms_max: u64,
    spare: SpareState,
) -> ClockDecision {
    let behind_ms = u64::try_from(highest_ms.saturating_sub(wall_ms)).unwrap_or(0);
    if behind_ms == 0 {
        return ClockDecision::Issue;
    }
    match (policy, spare) {
        (ClockPolicy::Carry, SpareState::Absent | SpareState::Available)
        | (ClockPolicy::SpareWorker, SpareState::Absent) => ClockDecision::Issue,
        (ClockPolicy::Wait, SpareState::Absent | SpareState::Available)
            if behind_ms <= wait_ms_max =>
        {
            ClockDecision::WaitMs(behind_ms)
        }
        (ClockPolicy::Wait | ClockPolicy::Refuse, SpareState::Absent | SpareState::Available) => {
            ClockDecision::Refuse { behind_ms }
        }
        (ClockPolicy::SpareWorker, SpareState::Available) => ClockDecision::IssueSpare,
    }
}
