//! Two ranges of a tag: what is taken, what is left, and threads that take while ranges are published.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use keywright_core::Buffer;

#[test]
fn a_rest_too_short_serves_shorter_requests() {
    let buffer = Buffer::new();
    assert!(buffer.publish(1, 11, 50));
    assert!(buffer.publish(100, 120, 50));
    assert_eq!(buffer.take(8), Some(1));
    assert_eq!(buffer.take(5), Some(100));
    assert_eq!(buffer.take(2), Some(9));
    assert_eq!(buffer.take(2), Some(105));
    assert_eq!(buffer.take(14), None);
    assert_eq!(buffer.remaining(), 13);
}

#[test]
fn a_continuing_range_lengthens_the_last() {
    let buffer = Buffer::new();
    assert!(buffer.publish(1, 11, 50));
    assert_eq!(buffer.take(6), Some(1));
    assert!(buffer.is_low());
    assert!(buffer.publish(11, 21, 50));
    assert!(!buffer.is_low());
    assert_eq!(buffer.take(10), Some(7));
}

#[test]
fn only_ascending_ranges_are_published() {
    let buffer = Buffer::new();
    assert!(buffer.publish(100, 110, 50));
    assert!(!buffer.publish(100, 110, 50));
    assert!(!buffer.publish(50, 60, 50));
    assert!(!buffer.publish(120, 120, 50));
    assert_eq!(buffer.remaining(), 10);
}

#[test]
fn the_rest_is_taken_once() {
    let buffer = Buffer::new();
    assert_eq!(buffer.lowest(), None);
    assert!(buffer.publish(1, 11, 50));
    assert!(buffer.publish(100, 120, 50));
    assert_eq!(buffer.take(3), Some(1));
    assert_eq!(buffer.lowest(), Some(4));
    assert_eq!(buffer.take_rest(), [(4, 11), (100, 120)]);
    assert_eq!((buffer.take(1), buffer.lowest()), (None, None));
    assert_eq!(buffer.take_rest(), []);
}

/// Threads take 1 to 7 at a time while ranges that do not continue each other are published under them.
#[test]
fn threads_get_each_index_once() {
    const RANGES: u64 = 30_000;
    const LEN: u64 = 11;
    let buffer = Arc::new(Buffer::new());
    let done = Arc::new(AtomicBool::new(false));
    let taken = Arc::new(AtomicU64::new(0));
    let takers: Vec<_> = (0..4_u64)
        .map(|taker| {
            let (buffer, done, taken) =
                (Arc::clone(&buffer), Arc::clone(&done), Arc::clone(&taken));
            thread::spawn(move || {
                let mut mine = Vec::new();
                for round in 0.. {
                    let count = (round + taker) % 7 + 1;
                    match buffer.take(count) {
                        Some(first) => {
                            mine.extend(first..first + count);
                            taken.fetch_add(count, Ordering::Relaxed);
                        }
                        None if done.load(Ordering::Acquire) && buffer.take(1).is_none() => {
                            break;
                        }
                        None => thread::yield_now(),
                    }
                }
                mine
            })
        })
        .collect();
    for range in 0..RANGES {
        // Two of three ranges leave a gap before them.
        let start = 1 + range * 2 * LEN + if range % 3 == 0 { 0 } else { range % 5 };
        while buffer.longest() > LEN / 2 {
            thread::yield_now();
        }
        assert!(buffer.publish(start, start + LEN, 50));
    }
    done.store(true, Ordering::Release);
    let mut all: Vec<u64> = takers
        .into_iter()
        .flat_map(|taker| taker.join().unwrap())
        .collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "an index was taken twice");
    assert!(count as u64 > RANGES * LEN / 2);
    for index in all {
        let (range, at) = ((index - 1) / (2 * LEN), (index - 1) % (2 * LEN));
        let gap = if range % 3 == 0 { 0 } else { range % 5 };
        assert!((gap..gap + LEN).contains(&at), "{index} is in no range");
    }
}
