use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use keywright_core::{BoundReached, Exhausted, SegmentWord, SnowflakeWord, TickError};
use proptest::prelude::*;

#[test]
fn zero_is_empty() {
    let states = SnowflakeWord::new();
    assert_eq!(states.take(0, 1), Err(BoundReached { end: 1, hi: 0 }));
    assert_eq!(
        states.take(u64::MAX, 1),
        Err(BoundReached {
            end: u64::MAX,
            hi: 0
        })
    );
    assert_eq!(SegmentWord::new().take(1), Err(Exhausted { remaining: 0 }));
}

#[test]
fn the_sequence_carries_and_the_clock_may_go_back() {
    let word = SnowflakeWord::new();
    word.publish(0, 1000 << 12);
    assert_eq!(word.take(10 << 12, 4096), Ok(10 << 12));
    assert_eq!(
        word.take(10 << 12, 1),
        Ok(11 << 12),
        "carried into the next tick"
    );
    assert_eq!(
        word.take(3 << 12, 1),
        Ok((11 << 12) + 1),
        "the clock went back"
    );
    assert_eq!(word.take(20 << 12, 1), Ok(20 << 12), "the clock is ahead");
}

#[test]
fn nothing_is_taken_past_the_bound() {
    let word = SnowflakeWord::new();
    word.publish(5, 10);
    assert_eq!(word.take(0, 6), Err(BoundReached { end: 11, hi: 10 }));
    assert_eq!(word.take(0, 5), Ok(5));
    assert_eq!(word.take(0, 1), Err(BoundReached { end: 11, hi: 10 }));
    word.publish(0, 8);
    assert_eq!(
        (word.next(), word.hi()),
        (10, 10),
        "publication never goes back"
    );
    word.publish(0, 20);
    word.drain();
    assert_eq!((word.next(), word.hi()), (20, 20));
}

#[test]
fn a_batch_stays_in_its_tick() {
    let word = SnowflakeWord::new();
    word.publish(0, 100 << 4);
    assert_eq!(word.take_in_tick(0, 10, 4), Ok(0));
    assert_eq!(word.take_in_tick(0, 7, 4), Ok(16), "6 were left");
    assert_eq!(word.take_in_tick(0, 9, 4), Ok(23), "exactly 9 are left");
    assert_eq!(
        word.take_in_tick(0, 17, 4),
        Err(TickError::TooMany {
            n: 17,
            tick_ids: 16
        })
    );
    assert!(matches!(
        word.take_in_tick(100 << 4, 1, 4),
        Err(TickError::Bound(_))
    ));
    assert!(matches!(
        word.take_in_tick(u64::MAX, 2, 4),
        Err(TickError::Bound(_))
    ));
}

#[test]
fn a_continuing_segment_keeps_what_is_left() {
    let word = SegmentWord::new();
    word.publish(100, 110);
    assert_eq!(word.take(4), Ok(100));
    word.publish(110, 120);
    assert_eq!(word.take(10), Ok(104), "across both ranges");
    word.publish(200, 210);
    assert_eq!(
        word.take(1),
        Ok(200),
        "what was left before the gap is given up"
    );
    assert_eq!(word.take(10), Err(Exhausted { remaining: 9 }));
    word.advance(205);
    assert_eq!((word.cursor(), word.remaining()), (205, 5));
    word.advance(300);
    assert_eq!(word.remaining(), 0);
    assert_eq!(word.take(u64::MAX), Err(Exhausted { remaining: 0 }));
}

proptest! {
    #[test]
    fn batches_are_consecutive_and_in_one_tick(calls in prop::collection::vec((0u64..200, 1u64..=16), 1..50)) {
        let word = SnowflakeWord::new();
        word.publish(0, u64::MAX >> 1);
        let mut after_last = 0;
        for (now, n) in calls {
            let first = word.take_in_tick(now << 4, n, 4).unwrap();
            prop_assert!(first >= after_last.max(now << 4));
            prop_assert_eq!(first >> 4, (first + n - 1) >> 4);
            after_last = first + n;
        }
        prop_assert_eq!(word.next(), after_last);
    }
}

const THREADS: u64 = 8;
const TAKES: u64 = 10_000;

/// Runs `take` in many threads while `publish` runs in another; the ids of all, each thread's strictly increasing.
fn race(take: impl Fn(u64) -> Option<u64> + Sync, publish: impl Fn(u64) + Sync) -> Vec<u64> {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if is_done.load(Ordering::Acquire) {
                    break;
                }
                publish(round);
                if round % 64 == 0 {
                    thread::yield_now();
                }
            }
        });
        let takers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let take = &take;
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while ids.len() < TAKES as usize {
                        match take(thread) {
                            Some(id) => ids.push(id),
                            None => thread::yield_now(),
                        }
                    }
                    assert!(
                        ids.windows(2).all(|pair| pair[0] < pair[1]),
                        "not increasing"
                    );
                    ids
                })
            })
            .collect();
        let ids = takers
            .into_iter()
            .flat_map(|taker| taker.join().expect("taker"))
            .collect();
        is_done.store(true, Ordering::Release);
        ids
    })
}

#[test]
fn threads_never_share_a_state() {
    let word = SnowflakeWord::new();
    let ids = race(
        |thread| word.take(thread * 16, 1).ok(),
        // Every other publication leaves a gap below its start.
        |round| word.publish(round * 64 + (round % 2) * 32, round * 64 + 64),
    );
    assert_eq!(ids.len() as u64, THREADS * TAKES);
    assert!(
        ids.iter().all(|id| id / 64 % 2 == 0 || id % 64 >= 32),
        "a state of a gap was issued"
    );
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn threads_never_share_an_id_of_a_segment() {
    let word = SegmentWord::new();
    let ids = race(
        |_| word.take(1).ok(),
        |round| {
            if word.remaining() < 500 {
                // 1000 ids each, every third after a gap of 1000.
                let start = word.hi() + 1000 * u64::from(round % 3 == 0);
                word.publish(start, start + 1000);
            }
        },
    );
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}
