//! Who issues keys of ordered tags: one program at a time, by a lease in the store ([`Candidate`]: what that is to one of them). Pure; times are
//! arguments.
//!
//! The promise is: a request that was sent after a reply had been read gets a larger id. Why it holds, as long as no machine's
//! `CLOCK_BOOTTIME` runs faster than another's by more than [`drift_ms`] allows for:
//! 1. The active program may issue until a moment of its own clock: that before it sent the renewal which succeeded last, and the time to
//!    live, less the drift. It compares its clock with that *after* a request was read. So at the moment of the comparison nobody else was
//!    active, and whatever the client had read before came from this program or from an earlier one.
//! 2. A standby takes over when it has read the same renewal twice, with a whole time to live between by its own clock, counted from when
//!    the first *had been* read; and only if that renewal still stands ([`Action::TakeOver`] is a compare-and-swap on it). Or at once, when the
//!    lease was released, which its holder does when it issues no more.
//!    What was read may be more than what the store says now. If the same server says it, its data was put back, and nothing is taken until
//!    somebody has said how far ids were given, which raises the epochs above all that were read. If another server says it, it lacks the
//!    last renewals: a lease that it calls free is waited for like one that somebody has.
//! 3. Each takeover is an epoch. The store reserves of ordered tags for the active epoch alone, so what a later epoch issues lies above all
//!    that an earlier one can have. A range is of one epoch, and nothing is taken of it in another ([`ranges`]).
//! 4. Within an epoch ids are taken in ascending order.
//!
//! Replies with ids of `strict` tags wait for a confirmation besides, and need no clock then ([`confirm`]).
//!
//! Where the slots of tags' names are divided into groups, there is a lease for each: another program may be active for each, and all of the
//! above holds of a group's tags by its lease ([`spread`]: who takes which). In how many groups is one number in the store, for all
//! programs; how it becomes another one, [`dividing`] argues.

mod candidate;
pub mod confirm;
pub mod dividing;
pub mod ranges;
pub mod spread;

pub use candidate::Candidate;

/// Which renewal of the lease it is. Another one whenever anything has changed: also when another server says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The server of the store that says so.
    pub server: String,
    /// Counts takeovers.
    pub epoch: u64,
    /// Counts takeovers, renewals and releases.
    pub number: u64,
}

/// Who has the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Nobody: it was given back by a program that issues no more.
    Nobody,
    /// A program.
    Program {
        /// Unique to one run of it.
        owner: String,
        /// Where its clients reach it.
        address: String,
        /// How long it may go without renewal, milliseconds.
        ttl_ms: u64,
    },
}

/// The lease as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// Which renewal it is.
    pub renewal: Renewal,
    /// Who has it.
    pub holder: Holder,
}

/// The right to issue: in this epoch, before that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenure {
    /// The epoch.
    pub epoch: u64,
    /// The first moment at which nothing may be issued any more, `CLOCK_BOOTTIME` in milliseconds.
    pub until_ms: u64,
}

impl Tenure {
    /// Whether something may be issued for a request that was read before the clock was.
    #[must_use]
    pub fn allows(self, epoch: u64, now_ms: u64) -> bool {
        self.epoch == epoch && now_ms < self.until_ms
    }
}

/// What the program is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Read the lease.
    Read,
    /// Take it, if this renewal still stands, in this epoch.
    TakeOver {
        /// What was seen last.
        seen: Renewal,
        /// The new epoch.
        epoch: u64,
    },
    /// Renew it, if it still is of this epoch and this program's.
    Renew {
        /// The epoch.
        epoch: u64,
    },
    /// Nothing, before this moment.
    Wait {
        /// By the same clock.
        until_ms: u64,
    },
}

/// What became of something that was written to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It stands.
    Yes,
    /// It does not: another renewal stood.
    No,
    /// Nobody knows.
    Unknown,
}

/// How far the clocks of two machines may go apart within a time to live.
#[must_use]
pub fn drift_ms(ttl_ms: u64) -> u64 {
    ttl_ms.div_ceil(10)
}

/// How often a lease is renewed.
#[must_use]
pub fn renew_ms(ttl_ms: u64) -> u64 {
    (ttl_ms / 5).max(1)
}

/// How often a standby reads it.
#[must_use]
pub fn read_ms(ttl_ms: u64) -> u64 {
    (ttl_ms / 100).clamp(1, 250)
}

#[cfg(test)]
mod tests;
