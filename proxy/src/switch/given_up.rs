//! Why an attempt did not come far enough in time, for people.

use keywright_store::switch::{Peer, Standing};

/// Of whom nothing was heard for so long it is said, milliseconds: programs say every second that they are there.
const SILENT_MS: u64 = 3_000;

/// The attempt of this standing is given up. `own`: whom it waits for of the clients of this program (`me`). Whoever is silent for longer than
/// `peer_wait_ms` holds nobody up.
pub(super) fn told(
    standing: &Standing,
    (me, own): (&str, Option<String>),
    peer_wait_ms: u64,
) -> String {
    let peers = || standing.peers.iter();
    let is_there = |leader: &String| peers().any(|peer| peer.program == *leader);
    let is_left = !standing.leader.as_ref().is_some_and(is_there);
    let left = is_left.then(|| "the program that began it has ended".to_owned());
    let waited_for = peers().filter(|peer| {
        peer.program != me && peer.held != Some(standing.attempt) && peer.silent_ms <= peer_wait_ms
    });
    let why: Vec<String> = own
        .into_iter()
        .chain(left)
        .chain(waited_for.map(of_peer))
        .collect();
    match why.is_empty() {
        true => "the switch took too long, and is given up".to_owned(),
        false => format!(
            "the switch took too long, and is given up: {}",
            why.join("; ")
        ),
    }
}

fn of_peer(peer: &Peer) -> String {
    let Peer {
        holder, silent_ms, ..
    } = peer;
    match *silent_ms > SILENT_MS {
        true => format!(
            "program {holder} was not heard of for {} s",
            silent_ms / 1_000
        ),
        false => {
            format!("program {holder} has statements under way on the tables: its log names them")
        }
    }
}

#[cfg(test)]
mod tests {
    use keywright_store::switch::{Peer, Phase, Standing};

    use super::told;

    fn peer(program: &str, held: Option<u64>, silent_ms: u64) -> Peer {
        Peer {
            program: program.to_owned(),
            holder: format!("host pid {program}"),
            silent_ms,
            held,
        }
    }

    #[test]
    fn whoever_is_waited_for_is_named() {
        let begun = "the switch took too long, and is given up";
        let own = "connection 222 of app";
        let busy = "program host pid 2 has statements under way on the tables: its log names them";
        let silent = "program host pid 2 was not heard of for 4 s";
        let ended = "the program that began it has ended";
        for (own, leader, other, why) in [
            (None, "1", peer("2", Some(7), 0), String::new()),
            (Some(own), "1", peer("2", Some(7), 0), format!(": {own}")),
            (None, "1", peer("2", Some(6), 0), format!(": {busy}")),
            (
                Some(own),
                "1",
                peer("2", None, 0),
                format!(": {own}; {busy}"),
            ),
            (None, "2", peer("2", None, 4_321), format!(": {silent}")),
            // It holds nobody up any more.
            (None, "1", peer("2", None, 60_001), String::new()),
            (None, "3", peer("2", Some(7), 0), format!(": {ended}")),
        ] {
            let standing = Standing {
                attempt: 7,
                phase: Phase::Holding,
                leader: Some(leader.to_owned()),
                age_ms: 0,
                rules: Vec::new(),
                generations: Vec::new(),
                key_space_ids: Vec::new(),
                peers: vec![peer("1", None, 0), other],
            };
            let own = own.map(str::to_owned);
            assert_eq!(
                told(&standing, ("1", own), 60_000),
                format!("{begun}{why}"),
                "{standing:?}"
            );
        }
    }
}
