//! How old an attempt is, and for how long nothing was heard of others, as a program has measured it itself: pure. The store says both by its
//! clock, and when that is set back it says nothing of the time until it has caught up.

use std::collections::BTreeMap;

use keywright_store::switch::{Phase, Standing};
use tokio::time::Instant;

use super::silences::between_ms;

/// What is known, and since when. It is never longer than it was: what an answer tells of was so before it came, and when the store was asked
/// next it was not over.
#[derive(Debug, Default)]
pub(super) struct OwnTime {
    /// The attempt that is under way. A number alone comes again in a store that was put back.
    attempt: Option<((u64, Option<String>), Instant)>,
    /// By program.
    heard: BTreeMap<String, LastSaid>,
}

/// What a program has said last.
#[derive(Debug)]
struct LastSaid {
    /// When, by the store's clock, and for which attempt its statements wait.
    said: (u64, Option<u64>),
    /// Since when that is known.
    since: Instant,
}

impl OwnTime {
    /// The store does not answer: nobody can be heard of.
    pub(super) fn lose(&mut self) {
        self.heard.clear();
    }

    /// The store was asked, and has answered. Nothing in it is less than what was measured here.
    pub(super) fn learn(&mut self, (asked, answered): (Instant, Instant), standing: &mut Standing) {
        let attempt = (standing.attempt, standing.leader.clone());
        self.attempt = match self.attempt.take() {
            _ if standing.phase == Phase::None => None,
            Some((known, since)) if known == attempt => Some((known, since)),
            Some(_) | None => Some((attempt, answered)),
        };
        if let Some((_, since)) = &self.attempt {
            standing.age_ms = standing.age_ms.max(between_ms(*since, asked));
        }
        let known = std::mem::take(&mut self.heard);
        for peer in &mut standing.peers {
            let said = (peer.seen_ms, peer.held);
            let before = known.get(&peer.program).filter(|its| its.said == said);
            let since = before.map_or(answered, |its| its.since);
            peer.silent_ms = peer.silent_ms.max(between_ms(since, asked));
            self.heard
                .insert(peer.program.clone(), LastSaid { said, since });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use keywright_store::switch::{Peer, Phase, Standing};
    use tokio::time::Instant;

    use super::OwnTime;

    /// A program that asks the store at moments from a beginning on, milliseconds.
    struct Program {
        own_time: OwnTime,
        began: Instant,
    }

    impl Program {
        fn new() -> Self {
            Self {
                own_time: OwnTime::default(),
                began: Instant::now(),
            }
        }

        /// What it makes of an answer that comes at once: the age of the attempt, and for how long another one was silent.
        fn learn(&mut self, at_ms: u64, mut said: Standing) -> [u64; 2] {
            let now = self.began + Duration::from_millis(at_ms);
            self.own_time.learn((now, now), &mut said);
            [said.age_ms, said.peers[0].silent_ms]
        }
    }

    /// What the store says of an attempt and of another program, by a clock that was set back: no time passes.
    fn said(phase: Phase, attempt: u64, seen_ms: u64) -> Standing {
        Standing {
            attempt,
            phase,
            leader: Some("other".to_owned()),
            age_ms: 0,
            rules: Vec::new(),
            generations: Vec::new(),
            key_space_ids: Vec::new(),
            peers: vec![Peer {
                program: "other".to_owned(),
                holder: "host pid 2".to_owned(),
                silent_ms: 0,
                seen_ms,
                held: None,
            }],
        }
    }

    #[test]
    fn time_passes_while_the_clock_of_the_store_is_back() {
        let mut program = Program::new();
        let holding = |seen_ms| said(Phase::Holding, 7, seen_ms);
        assert_eq!(program.learn(0, holding(90_000)), [0, 0]);
        assert_eq!(program.learn(2_000, holding(90_000)), [2_000, 2_000]);
        // It is heard of.
        assert_eq!(program.learn(3_000, holding(50_000)), [3_000, 0]);
        assert_eq!(program.learn(4_000, holding(50_000)), [4_000, 1_000]);
        // In the next phase the attempt is as old.
        let closed = said(Phase::Closed, 7, 50_000);
        assert_eq!(program.learn(9_000, closed), [9_000, 6_000]);
        assert_eq!(
            program.learn(9_500, said(Phase::None, 7, 50_000)),
            [0, 6_500]
        );
        assert_eq!(
            program.learn(10_000, said(Phase::Holding, 8, 51_000)),
            [0, 0]
        );
        assert_eq!(
            program.learn(10_100, said(Phase::Holding, 9, 51_000)),
            [0, 100]
        );
    }

    #[test]
    fn what_the_store_says_counts_where_it_is_more() {
        let mut program = Program::new();
        let mut more = said(Phase::Holding, 7, 90_000);
        (more.age_ms, more.peers[0].silent_ms) = (5_000, 4_000);
        assert_eq!(program.learn(0, more.clone()), [5_000, 4_000]);
        assert_eq!(program.learn(1_000, more), [5_000, 4_000]);
    }

    #[test]
    fn an_outage_is_no_silence() {
        let mut program = Program::new();
        let holding = || said(Phase::Holding, 7, 90_000);
        assert_eq!(program.learn(0, holding()), [0, 0]);
        program.own_time.lose();
        assert_eq!(program.learn(80_000, holding()), [80_000, 0]);
        assert_eq!(program.learn(81_000, holding()), [81_000, 1_000]);
    }

    #[test]
    fn an_answer_that_comes_late_makes_nothing_longer() {
        let mut program = Program::new();
        let began = program.began;
        let at = |ms| began + Duration::from_millis(ms);
        for (asked, answered, expected) in [(0, 5_000, 0), (5_500, 9_000, 500)] {
            let mut standing = said(Phase::Holding, 7, 90_000);
            let asked_and_answered = (at(asked), at(answered));
            program.own_time.learn(asked_and_answered, &mut standing);
            assert_eq!(standing.age_ms, expected);
            assert_eq!(standing.peers[0].silent_ms, expected);
        }
    }
}
