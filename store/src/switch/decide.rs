//! What a program does next about the attempt that the store holds: pure, one function.

use super::state::{Peer, Phase, Standing};

/// How much later than whoever began an attempt others step in, milliseconds.
const OTHERS_LATER_MS: u64 = 1_000;

/// What a program knows of itself.
#[derive(Debug, Clone, Copy)]
pub struct Participant<'a> {
    /// As the store knows it.
    pub program: &'a str,
    /// It has connections of its own to the servers of all its listeners.
    pub can_lead: bool,
    /// The attempt for which new statements wait.
    pub holds: Option<u64>,
    /// Nothing is under way on the tables that the attempt is about.
    pub is_quiet: bool,
    /// How long an attempt may take, milliseconds.
    pub wait_ms_max: u64,
    /// Whoever was silent for so long holds nobody up, milliseconds.
    pub peer_wait_ms: u64,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Follow what is in force, and release what waits.
    Follow,
    /// Let new statements wait for this attempt.
    Hold(u64),
    /// Tell the store that they do, and that nothing is under way.
    Acknowledge(u64),
    /// All hold: fence the tables and commit, or close the tags.
    Carry(u64),
    /// It takes too long: end it in the store.
    End(u64),
    /// Kill its sessions, lift its fences, release.
    Undo(u64),
    /// The tags are closed: let counters go on, lift the fences, release.
    Complete(u64),
    /// Look again.
    Wait,
}

/// Decides. How old the attempt is, and for how long nothing was heard of others, the store says by its clock. Whoever asks puts in what it has measured
/// itself where that is more: a clock that was set back would keep everybody waiting.
pub fn decide(me: &Participant<'_>, store: &Standing) -> Next {
    let attempt = store.attempt;
    let leads = me.can_lead && store.leader.as_deref() == Some(me.program);
    // Whoever began it is given time to end it himself, while he is there.
    let grace = if leads { 0 } else { OTHERS_LATER_MS };
    let is_left = !leads && !is_leader_there(store);
    let is_late = is_left || store.age_ms > me.wait_ms_max.saturating_add(grace);
    match store.phase {
        Phase::None => Next::Follow,
        _ if me.holds != Some(attempt) => Next::Hold(attempt),
        Phase::Holding if is_late => Next::End(attempt),
        // Statements are not to wait until that is certain.
        Phase::Holding if leads && missing(me.peer_wait_ms, store).is_some() => Next::End(attempt),
        Phase::Holding if !has_held(me.program, store) => match me.is_quiet {
            true => Next::Acknowledge(attempt),
            false => Next::Wait,
        },
        Phase::Holding if leads && all_hold(me, store) => Next::Carry(attempt),
        Phase::Ending if me.can_lead && (leads || is_late) => Next::Undo(attempt),
        Phase::Closed if me.can_lead && (leads || is_late) => Next::Complete(attempt),
        Phase::Holding | Phase::Ending | Phase::Closed => Next::Wait,
    }
}

fn has_held(program: &str, store: &Standing) -> bool {
    let mut peers = store.peers.iter();
    peers.any(|peer| peer.program == program && peer.held == Some(store.attempt))
}

/// Whether whoever began the attempt has not left, and was heard of lately. Anybody may end and undo an attempt at any time: who takes a leader
/// for gone that is not costs it its attempt, and nothing else.
fn is_leader_there(store: &Standing) -> bool {
    let mut peers = store.peers.iter();
    peers.any(|peer| store.leader.as_ref() == Some(&peer.program) && !peer.is_silent())
}

/// A program of which nothing was heard lately, and that may be there all the same: an attempt would wait for it, and who has not
/// begun one yet waits until it is heard of or holds nobody up any more.
pub fn missing(peer_wait_ms: u64, store: &Standing) -> Option<&Peer> {
    let holds = |peer: &Peer| store.phase != Phase::None && peer.held == Some(store.attempt);
    let mut peers = store.peers.iter().filter(|peer| !holds(peer));
    peers.find(|peer| peer.is_silent() && peer.silent_ms <= peer_wait_ms)
}

/// Whether all hold that were heard of lately.
fn all_hold(me: &Participant<'_>, store: &Standing) -> bool {
    store
        .peers
        .iter()
        .all(|peer| peer.held == Some(store.attempt) || peer.silent_ms > me.peer_wait_ms)
}

#[cfg(test)]
mod tests {
    use super::{Next, Participant, decide};
    use crate::switch::Phase;
    use crate::switch::fixture::{ME, peer, standing};

    #[test]
    fn an_attempt_goes_on_when_all_hold_that_are_not_silent() {
        for (mine, other, silent_ms, next) in [
            (None, None, 0, Next::Acknowledge(7)),
            (Some(6), Some(7), 0, Next::Acknowledge(7)),
            (Some(7), None, 0, Next::Wait),
            (Some(7), Some(6), 3_000, Next::Wait),
            (Some(7), Some(6), 3_001, Next::End(7)),
            (Some(7), Some(6), 60_000, Next::End(7)),
            (Some(7), Some(7), 60_000, Next::Carry(7)),
            (Some(7), None, 60_001, Next::Carry(7)),
            (Some(7), Some(7), 0, Next::Carry(7)),
        ] {
            let peers = vec![peer("me", mine, 0), peer("other", other, silent_ms)];
            let store = standing(Phase::Holding, "me", 100, peers);
            assert_eq!(decide(&ME, &store), next, "{store:?}");
        }
    }

    #[test]
    fn nobody_acknowledges_before_it_holds_and_is_quiet() {
        let all = vec![peer("me", None, 0), peer("other", Some(7), 0)];
        let store = standing(Phase::Holding, "other", 0, all);
        let new = Participant {
            holds: Some(6),
            ..ME
        };
        assert_eq!(decide(&new, &store), Next::Hold(7));
        let busy = Participant {
            is_quiet: false,
            ..ME
        };
        assert_eq!(decide(&busy, &store), Next::Wait);
    }

    #[test]
    fn whoever_did_not_begin_it_steps_in_later() {
        let all = || vec![peer("me", Some(7), 0), peer("other", Some(7), 0)];
        for (phase, next) in [
            (Phase::Holding, Next::End(7)),
            (Phase::Ending, Next::Undo(7)),
            (Phase::Closed, Next::Complete(7)),
        ] {
            let at = |leader, age_ms| decide(&ME, &standing(phase, leader, age_ms, all()));
            assert_eq!(at("me", 2_001), next);
            assert_eq!(at("other", 2_001), Next::Wait);
            assert_eq!(at("other", 3_001), next);
        }
        assert_eq!(
            decide(&ME, &standing(Phase::Ending, "me", 0, all())),
            Next::Undo(7)
        );
        assert_eq!(
            decide(&ME, &standing(Phase::None, "me", 0, all())),
            Next::Follow
        );
    }

    #[test]
    fn an_attempt_whose_leader_has_ended_is_not_waited_for() {
        for (phase, next) in [
            (Phase::Holding, Next::End(7)),
            (Phase::Ending, Next::Undo(7)),
            (Phase::Closed, Next::Complete(7)),
        ] {
            let me = || peer("me", Some(7), 0);
            // It has said so.
            let left = standing(phase, "other", 0, vec![me()]);
            assert_eq!(decide(&ME, &left), next);
            // It was killed, perhaps.
            let at = |silent_ms| {
                let all = vec![me(), peer("other", Some(7), silent_ms)];
                decide(&ME, &standing(phase, "other", 0, all))
            };
            assert_eq!(at(3_000), Next::Wait);
            assert_eq!(at(3_001), next);
        }
    }

    #[test]
    fn without_connections_of_its_own_a_program_only_holds_and_ends() {
        let follower = Participant {
            can_lead: false,
            ..ME
        };
        let all = || vec![peer("me", Some(7), 0)];
        for (phase, next) in [
            (Phase::Holding, Next::End(7)),
            (Phase::Ending, Next::Wait),
            (Phase::Closed, Next::Wait),
        ] {
            assert_eq!(
                decide(&follower, &standing(phase, "gone", 9_000, all())),
                next
            );
        }
    }
}
