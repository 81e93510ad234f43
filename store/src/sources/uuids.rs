//! UUIDs: made in the process, from time and randomness.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keywright_core::KeyBatch;
use uuid::{ContextV7, Timestamp, Uuid};

use crate::clock::Clock;
use crate::spec::{UuidForm, UuidVersion};

/// Where this process's UUIDs come from.
#[derive(Debug)]
pub(crate) struct UuidMaker {
    clock: Arc<dyn Clock>,
    /// Counts within a millisecond, and does not go back with the clock.
    v7: Mutex<ContextV7>,
    /// The time of the last version 1 UUID, in its units. Only grows, so that none comes twice when the clock is set back.
    v1_ticks: AtomicU64,
    v1_sequence: u16,
    v1_node: [u8; 6],
}

/// Version 1 counts 100 ns since 1582-10-15.
const V1_TICKS_PER_MS: u64 = 10_000;
const V1_EPOCH_MS: u64 = 12_219_292_800_000;

impl UuidMaker {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let random = Uuid::new_v4().into_bytes();
        let [a, b, c, d, e, f, _, _, _, _, g, h, ..] = random;
        Self {
            clock,
            v7: Mutex::new(ContextV7::new()),
            v1_ticks: AtomicU64::new(0),
            v1_sequence: u16::from_be_bytes([g, h]) & 0x3fff,
            // The multicast bit keeps a random node apart from every real one.
            v1_node: [a | 1, b, c, d, e, f],
        }
    }

    /// `count` UUIDs in the form asked for.
    pub(crate) fn make(&self, version: UuidVersion, form: UuidForm, count: u64) -> KeyBatch {
        let uuids = (0..count).map(|_| self.one(version));
        match form {
            UuidForm::Text36 => {
                KeyBatch::Texts(uuids.map(|uuid| uuid.hyphenated().to_string()).collect())
            }
            UuidForm::Text32 => {
                KeyBatch::Texts(uuids.map(|uuid| uuid.simple().to_string()).collect())
            }
            UuidForm::Bytes16 => KeyBatch::Bytes(uuids.map(Uuid::into_bytes).collect()),
        }
    }

    fn one(&self, version: UuidVersion) -> Uuid {
        match version {
            UuidVersion::V1 => Uuid::new_v1(
                Timestamp::from_gregorian_time(self.v1_tick(), self.v1_sequence),
                &self.v1_node,
            ),
            UuidVersion::V4 => Uuid::new_v4(),
            UuidVersion::V7 => {
                let context = self.v7.lock().unwrap_or_else(PoisonError::into_inner);
                let ms = u64::try_from(self.clock.wall_ms()).unwrap_or(0);
                let nanos = u32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000;
                Uuid::new_v7(Timestamp::from_unix(&*context, ms / 1_000, nanos))
            }
        }
    }

    fn v1_tick(&self) -> u64 {
        let ms = u64::try_from(self.clock.wall_ms()).unwrap_or(0);
        let now = (ms + V1_EPOCH_MS) * V1_TICKS_PER_MS;
        let next = |last: u64| last.saturating_add(1).max(now);
        let last = self
            .v1_ticks
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(next(last))
            });
        next(last.unwrap_or_else(|last| last))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::thread;

    use keywright_core::{KeyBatch, Readings};

    use super::UuidMaker;
    use crate::clock::Clock;
    use crate::spec::{UuidForm, UuidVersion};

    #[derive(Debug)]
    struct SetClock(AtomicI64);

    impl Clock for SetClock {
        fn wall_ms(&self) -> i64 {
            self.0.load(Ordering::Relaxed)
        }

        fn readings(&self) -> Readings {
            Readings {
                wall_ms: self.wall_ms(),
                boot_ms: 0,
            }
        }
    }

    fn texts(maker: &UuidMaker, version: UuidVersion, count: u64) -> Vec<String> {
        match maker.make(version, UuidForm::Text36, count) {
            KeyBatch::Texts(texts) => texts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn versions_and_forms_are_what_was_asked_for() {
        let maker = UuidMaker::new(Arc::new(SetClock(AtomicI64::new(1_763_000_000_000))));
        for (version, digit) in [
            (UuidVersion::V1, '1'),
            (UuidVersion::V4, '4'),
            (UuidVersion::V7, '7'),
        ] {
            for text in texts(&maker, version, 3) {
                assert_eq!(text.chars().nth(14), Some(digit), "{text}");
                assert_eq!(text.len(), 36);
            }
            let KeyBatch::Texts(short) = maker.make(version, UuidForm::Text32, 1) else {
                panic!("not a text");
            };
            assert_eq!(short.first().map(String::len), Some(32));
            assert_eq!(maker.make(version, UuidForm::Bytes16, 5).len(), 5);
        }
        let v1 = uuid::Uuid::parse_str(&texts(&maker, UuidVersion::V1, 1)[0]).unwrap();
        let (seconds, _) = v1.get_timestamp().unwrap().to_unix();
        assert_eq!(seconds, 1_763_000_000);
        assert_eq!(v1.get_node_id().unwrap()[0] & 1, 1);
    }

    /// The pages tell operators to restart a program whose clock was ahead.
    #[test]
    fn times_stay_where_the_clock_was_ahead_until_another_program_begins() {
        const RIGHT_MS: i64 = 1_763_000_000_000;
        const AHEAD_MS: i64 = 400 * 86_400_000;
        let clock = Arc::new(SetClock(AtomicI64::new(RIGHT_MS)));
        let maker = UuidMaker::new(Arc::<SetClock>::clone(&clock));
        let mut v7 = texts(&maker, UuidVersion::V7, 1);
        clock.0.store(RIGHT_MS + AHEAD_MS, Ordering::Relaxed);
        v7.extend(texts(&maker, UuidVersion::V7, 1));
        clock.0.store(RIGHT_MS + 1, Ordering::Relaxed);
        v7.extend(texts(&maker, UuidVersion::V7, 1));
        assert!(v7.is_sorted(), "{v7:?}");
        let restarted = UuidMaker::new(clock);
        let after = texts(&restarted, UuidVersion::V7, 1);
        assert!(after.first() < v7.get(1), "{after:?}, {v7:?}");
    }

    #[test]
    fn version_7_ascends_and_version_1_is_distinct_when_the_clock_goes_back() {
        let clock = Arc::new(SetClock(AtomicI64::new(1_763_000_000_000)));
        let maker = UuidMaker::new(Arc::<SetClock>::clone(&clock));
        let (mut v7, mut v1) = (Vec::new(), Vec::new());
        for step in [0, 1, -5_000, 3, 100, -1, 10_000] {
            clock.0.fetch_add(step, Ordering::Relaxed);
            v7.extend(texts(&maker, UuidVersion::V7, 200));
            v1.extend(texts(&maker, UuidVersion::V1, 200));
        }
        assert!(v7.is_sorted_by(|a, b| a < b));
        assert_eq!(v1.iter().collect::<HashSet<_>>().len(), v1.len());
    }

    #[test]
    fn threads_get_distinct_version_1() {
        let maker = Arc::new(UuidMaker::new(Arc::new(SetClock(AtomicI64::new(
            1_763_000_000_000,
        )))));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let maker = Arc::clone(&maker);
                thread::spawn(move || texts(&maker, UuidVersion::V1, 20_000))
            })
            .collect();
        let all: Vec<String> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }
}
