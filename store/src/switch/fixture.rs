//! A program and others that it meets in an attempt, for tests of what it makes of them.

use super::decide::Participant;
use super::state::{Peer, Phase, Standing};

/// It has let statements wait for attempt 7, and nothing is under way.
pub(super) const ME: Participant<'static> = Participant {
    program: "me",
    can_lead: true,
    holds: Some(7),
    is_quiet: true,
    wait_ms_max: 2_000,
    peer_wait_ms: 60_000,
};

pub(super) fn peer(program: &str, held: Option<u64>, silent_ms: u64) -> Peer {
    Peer {
        program: program.to_owned(),
        holder: format!("host pid {program}"),
        silent_ms,
        seen_ms: 0,
        held,
    }
}

/// Attempt 7, begun by `leader`.
pub(super) fn standing(phase: Phase, leader: &str, age_ms: u64, peers: Vec<Peer>) -> Standing {
    Standing {
        attempt: 7,
        phase,
        leader: Some(leader.to_owned()),
        age_ms,
        rules: Vec::new(),
        generations: Vec::new(),
        key_space_ids: Vec::new(),
        peers,
    }
}
