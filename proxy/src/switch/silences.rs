//! For how long nothing was heard of other programs, without the times in which the store did not answer: pure.

use std::collections::BTreeMap;

use keywright_store::switch::Peer;
use tokio::time::Instant;

/// How much later than the moment that it tells of an answer may come, milliseconds.
const ANSWER_MS: u64 = 1_000;

/// What is known of it. It is never longer than the store says.
#[derive(Debug, Default)]
pub(super) struct Silences {
    last: Option<Answer>,
    /// The store did not answer the last time.
    is_lost: bool,
    /// The last time in which it did not.
    outage: Option<Outage>,
}

/// What the store said at a moment, by program.
#[derive(Debug)]
struct Answer {
    at: Instant,
    silences: BTreeMap<String, Silence>,
}

#[derive(Debug, Clone, Copy)]
struct Silence {
    /// What the store says, milliseconds.
    told_ms: u64,
    /// Without outages before, milliseconds.
    counted_ms: u64,
}

/// A time in which the store did not answer.
#[derive(Debug)]
struct Outage {
    /// What it said last.
    before: Option<Answer>,
    over_at: Instant,
}

impl Silences {
    /// The store does not answer.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// The store has answered. Takes outages out of what it says.
    pub(super) fn learn(&mut self, now: Instant, peers: &mut [Peer]) {
        if std::mem::take(&mut self.is_lost) {
            self.outage = Some(Outage {
                before: self.last.take(),
                over_at: now,
            });
        }
        let mut silences = BTreeMap::new();
        for peer in peers {
            let told_ms = peer.silent_ms;
            if let Some(outage) = &self.outage {
                peer.silent_ms = told_ms.min(outage.counted_ms(peer, now));
            }
            let counted_ms = peer.silent_ms;
            let silence = Silence {
                told_ms,
                counted_ms,
            };
            silences.insert(peer.program.clone(), silence);
        }
        self.last = Some(Answer { at: now, silences });
    }
}

impl Outage {
    /// How long a program was silent before and since.
    fn counted_ms(&self, peer: &Peer, now: Instant) -> u64 {
        let since_ms = between_ms(self.over_at, now);
        let before = self.before.as_ref();
        let before_ms = before.map_or(0, |answer| answer.counted_ms(peer, now));
        before_ms.saturating_add(since_ms)
    }
}

impl Answer {
    /// How long a program had been silent by then; 0 if it was heard of later.
    fn counted_ms(&self, peer: &Peer, now: Instant) -> u64 {
        let Some(silence) = self.silences.get(&peer.program) else {
            return 0;
        };
        let unheard_ms = silence.told_ms.saturating_add(between_ms(self.at, now));
        match peer.silent_ms.saturating_add(ANSWER_MS) >= unheard_ms {
            true => silence.counted_ms,
            false => 0,
        }
    }
}

pub(super) fn between_ms(from: Instant, to: Instant) -> u64 {
    let between = to.saturating_duration_since(from);
    u64::try_from(between.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use keywright_store::switch::Peer;
    use tokio::time::Instant;

    use super::Silences;

    /// A program that asks the store at moments from a beginning on, milliseconds.
    struct Program {
        silences: Silences,
        began: Instant,
    }

    impl Program {
        fn new() -> Self {
            Self {
                silences: Silences::default(),
                began: Instant::now(),
            }
        }

        /// The store says that another one was last heard of at that moment. For how long it counts as silent.
        fn silence(&mut self, at_ms: u64, heard_ms: u64) -> u64 {
            let mut peers = [Peer {
                program: "other".to_owned(),
                holder: "host pid 2".to_owned(),
                silent_ms: at_ms - heard_ms,
                seen_ms: heard_ms,
                held: None,
            }];
            let now = self.began + Duration::from_millis(at_ms);
            self.silences.learn(now, &mut peers);
            peers[0].silent_ms
        }
    }

    #[test]
    fn while_the_store_answers_it_is_what_the_store_says() {
        let mut program = Program::new();
        assert_eq!(program.silence(100_000, 0), 100_000);
        assert_eq!(program.silence(101_000, 100_500), 500);
    }

    #[test]
    fn an_outage_is_no_silence_of_who_was_there() {
        let mut program = Program::new();
        assert_eq!(program.silence(10_000, 9_500), 500);
        program.silences.lose();
        assert_eq!(program.silence(90_000, 9_600), 500);
        assert_eq!(program.silence(92_000, 9_600), 2_500);
        // It is heard of again.
        assert_eq!(program.silence(93_000, 92_800), 200);
    }

    #[test]
    fn who_ended_long_before_an_outage_is_not_there_behind_it() {
        let mut program = Program::new();
        assert_eq!(program.silence(100_000, 0), 100_000);
        for back_ms in [103_000, 106_000] {
            program.silences.lose();
            assert!(program.silence(back_ms, 0) >= 100_000);
        }
        assert_eq!(program.silence(107_000, 0), 101_000);
    }

    #[test]
    fn who_was_heard_of_since_was_not_silent_before() {
        let mut program = Program::new();
        assert_eq!(program.silence(100_000, 0), 100_000);
        program.silences.lose();
        // It said something right before the outage.
        assert_eq!(program.silence(190_000, 101_500), 0);
        assert_eq!(program.silence(191_000, 101_500), 1_000);
    }

    #[test]
    fn behind_an_outage_at_the_start_all_are_waited_for() {
        let mut program = Program::new();
        program.silences.lose();
        assert_eq!(program.silence(100_000, 0), 0);
        assert_eq!(program.silence(101_000, 0), 1_000);
    }
}
