//! Why an attempt did not come far enough, for people.

use super::decide::Participant;
use super::state::{Peer, Standing};

/// The attempt of this standing is given up by `me`. `own`: whom it waits for of the clients of this program. Before it is late, it is given up
/// only because a program is not there, and nobody else is the reason.
pub fn why_given_up(standing: &Standing, me: &Participant<'_>, own: Option<String>) -> String {
    let is_late = standing.age_ms > me.wait_ms_max;
    let what = match is_late {
        true => "the switch took too long, and is given up",
        false => "the switch is given up",
    };
    let others = waited_for(standing, me)
        .filter(|peer| is_late || peer.is_silent())
        .map(of_peer);
    let why: Vec<String> = own
        .filter(|_| is_late)
        .into_iter()
        .chain(of_leader(standing, me))
        .chain(others)
        .collect();
    match why.is_empty() {
        true => what.to_owned(),
        false => format!("{what}: {}", why.join("; ")),
    }
}

/// That whoever began the attempt is not there any more, whatever it held.
fn of_leader(standing: &Standing, me: &Participant<'_>) -> Option<String> {
    let leader = standing.leader.as_deref();
    if leader == Some(me.program) {
        return None;
    }
    let mut peers = standing.peers.iter();
    match peers.find(|peer| leader == Some(peer.program.as_str())) {
        None => Some("the program that began it has ended".to_owned()),
        Some(peer) if peer.is_silent() => Some(format!(
            "program {}, which began it, was not heard of for {} s",
            peer.holder,
            peer.silent_ms / 1_000
        )),
        Some(_) => None,
    }
}

/// The others that do not hold yet. Whoever is silent for longer than `peer_wait_ms` holds nobody up, and a silent leader is told by itself.
fn waited_for<'a>(
    standing: &'a Standing,
    me: &'a Participant<'_>,
) -> impl Iterator<Item = &'a Peer> {
    standing.peers.iter().filter(move |peer| {
        let leads = standing.leader.as_ref() == Some(&peer.program);
        peer.program != me.program
            && peer.held != Some(standing.attempt)
            && peer.silent_ms <= me.peer_wait_ms
            && !(leads && peer.is_silent())
    })
}

fn of_peer(peer: &Peer) -> String {
    let holder = &peer.holder;
    match peer.is_silent() {
        true => format!(
            "program {holder} was not heard of for {} s",
            peer.silent_ms / 1_000
        ),
        false => format!(
            "program {holder} has not said that nothing is under way on the tables: see its log"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::why_given_up;
    use crate::switch::fixture::{ME, peer, standing};
    use crate::switch::{Peer, Phase};

    fn told_of(own: Option<&str>, leader: &str, age_ms: u64, other: Peer) -> String {
        let peers = vec![peer("me", None, 0), other];
        let standing = standing(Phase::Holding, leader, age_ms, peers);
        why_given_up(&standing, &ME, own.map(str::to_owned))
    }

    const OWN: &str = "connection 222 of app";
    const ENDED: &str = "the program that began it has ended";
    const KILLED: &str = "program host pid 2, which began it, was not heard of for 4 s";
    const SILENT: &str = "program host pid 2 was not heard of for 4 s";

    #[test]
    fn whoever_is_waited_for_is_named() {
        let busy =
            "program host pid 2 has not said that nothing is under way on the tables: see its log";
        for (own, leader, other, why) in [
            (None, "me", peer("2", Some(7), 0), String::new()),
            (Some(OWN), "me", peer("2", Some(7), 0), format!(": {OWN}")),
            (None, "me", peer("2", Some(6), 0), format!(": {busy}")),
            (
                Some(OWN),
                "me",
                peer("2", None, 0),
                format!(": {OWN}; {busy}"),
            ),
            (None, "2", peer("2", None, 0), format!(": {busy}")),
            (None, "me", peer("2", None, 4_321), format!(": {SILENT}")),
            (None, "2", peer("2", None, 4_321), format!(": {KILLED}")),
            (
                Some(OWN),
                "2",
                peer("2", Some(7), 4_321),
                format!(": {OWN}; {KILLED}"),
            ),
            // It holds nobody up any more.
            (None, "me", peer("2", None, 60_001), String::new()),
            (None, "3", peer("2", Some(7), 0), format!(": {ENDED}")),
        ] {
            let said = told_of(own, leader, 2_001, other.clone());
            let expected = format!("the switch took too long, and is given up{why}");
            assert_eq!(said, expected, "{own:?} {leader} {other:?}");
        }
    }

    #[test]
    fn before_it_is_late_only_who_is_not_there_is_the_reason() {
        for (leader, other, why) in [
            // It was killed: before it held, and behind that.
            ("2", peer("2", None, 4_321), KILLED),
            ("2", peer("2", Some(7), 4_321), KILLED),
            ("3", peer("2", None, 0), ENDED),
            ("me", peer("2", None, 4_321), SILENT),
        ] {
            let said = told_of(Some(OWN), leader, 2_000, other.clone());
            let expected = format!("the switch is given up: {why}");
            assert_eq!(said, expected, "{leader} {other:?}");
        }
        // Nobody knows why.
        let said = told_of(None, "me", 0, peer("2", Some(7), 0));
        assert_eq!(said, "the switch is given up");
    }
}
