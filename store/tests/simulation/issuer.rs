//! One issuer: what a process has in memory.

use keywright_core::{Buffer, Readings, VirtualClock};
use keywright_store::lease::{HeldLease, Words};
use keywright_store::reserve::StepTrack;

use crate::lease_call::LeaseReply;
use crate::tag_call::Grant;

/// A process.
#[derive(Debug)]
pub struct Issuer {
    pub owner: String,
    pub buffer: Buffer,
    /// Of the mutant that adds instead of comparing: next id and bound.
    pub mutant: (u64, u64),
    pub steps: StepTrack,
    pub look_for_returned: bool,
    /// Servers on which the ranges in memory were reserved.
    pub origins: Vec<u32>,
    /// The answer that is on its way; `None` inside: it is lost.
    pub tag_reply: Option<Option<Grant>>,
    /// Of the lease that it holds, or held last.
    pub words: Option<Words>,
    /// Of the mutant whose spare word begins anew.
    pub spare_anew: Option<Words>,
    pub held: Option<HeldLease>,
    pub clock: VirtualClock,
    pub lease_reply: Option<Option<LeaseReply>>,
    /// What this machine's wall clock reads too much.
    pub wall_offset_ms: i64,
    /// The highest reading that ids were issued with.
    pub highest_ms: i64,
}

impl Issuer {
    pub fn new(owner: String, wall_offset_ms: i64) -> Issuer {
        Issuer {
            owner,
            buffer: Buffer::new(),
            mutant: (0, 0),
            steps: StepTrack::default(),
            look_for_returned: true,
            origins: Vec::new(),
            tag_reply: None,
            words: None,
            spare_anew: None,
            held: None,
            clock: VirtualClock::default(),
            lease_reply: None,
            wall_offset_ms,
            highest_ms: i64::MIN,
        }
    }

    pub fn readings(&self, now_ms: i64) -> Readings {
        Readings {
            wall_ms: now_ms + self.wall_offset_ms,
            boot_ms: now_ms.unsigned_abs() - 1_700_000_000_000,
        }
    }

    /// The first state above all that it has issued.
    pub fn next(&self) -> u64 {
        self.words.as_ref().map_or(0, Words::next)
    }
}
