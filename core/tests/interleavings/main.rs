//! The words and the buffer, through the interleavings of those who take, publish, drain and pass on, with what the memory model of
//! C11 lets each of them see: x86 hides what other processors show.
//!
//! The sources are those of the library, compiled here with other atomic numbers (`sync`): loom's, which runs them in every order. An ordering that is
//! weakened must be found, or the model would show nothing. What it cannot show: that the bound must be read with acquire order, for a swap
//! in it always meets the newest value. The server's gate, which lets one publish at a time, is not part of it.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "of the library's sources only what is tested is used"
)]

#[path = "../../src/buffer.rs"]
mod buffer;
#[path = "../../src/generation.rs"]
mod generation;
#[path = "../../src/segment.rs"]
mod segment;
#[path = "../../src/snowflake.rs"]
mod snowflake;
mod sync;

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use buffer::Buffer;
use generation::Generation;
use segment::SegmentWord;
use snowflake::SnowflakeWord;
use sync::Weakened;

/// How often threads may be interrupted; `all`: without a limit, which takes long.
const PREEMPTIONS: &str = "KEYWRIGHT_PREEMPTIONS";

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match std::env::var(PREEMPTIONS).as_deref() {
        Ok("all") => None,
        Ok(count) => Some(count.parse().expect("a number of preemptions, or all")),
        Err(_) => Some(2),
    };
    builder.check(run);
}

/// Whether the model finds something wrong with an ordering weakened.
fn finds(weakened: Weakened, run: impl Fn() + Sync + Send + 'static) -> bool {
    sync::weaken(Some(weakened));
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model(run))).is_err();
    sync::weaken(None);
    found
}

/// What was taken: nothing comes twice, and nothing that was not published.
#[derive(Debug, Default)]
struct Taken(Mutex<Vec<u64>>);

impl Taken {
    fn add(&self, first: u64, count: u64) {
        let mut taken = self.0.lock().unwrap();
        for id in first..first + count {
            assert!(!taken.contains(&id), "{id} came twice");
            taken.push(id);
        }
    }

    fn are_of(&self, ranges: &[(u64, u64)]) {
        for id in self.0.lock().unwrap().iter() {
            let is_of = |(start, end): &(u64, u64)| (*start..*end).contains(id);
            assert!(ranges.iter().any(is_of), "{id} was not published");
        }
    }
}

fn taken() -> Arc<Taken> {
    Arc::new(Taken::default())
}

/// Two take while a range is published that does not continue the one before.
fn takers_and_a_publisher_of_a_segment() {
    let (word, taken) = (Arc::new(SegmentWord::new()), taken());
    word.publish(1, 3);
    let takers: Vec<_> = [1, 2]
        .map(|count| {
            let (word, taken) = (Arc::clone(&word), Arc::clone(&taken));
            thread::spawn(move || {
                for _ in 0..2 {
                    if let Ok(first) = word.take(count) {
                        taken.add(first, count);
                    }
                }
            })
        })
        .into();
    word.publish(10, 12);
    for taker in takers {
        taker.join().unwrap();
    }
    taken.are_of(&[(1, 3), (10, 12)]);
}

/// The same of a snowflake word; the clock of one of them is behind.
fn takers_and_a_publisher_of_states() {
    let (word, taken) = (Arc::new(SnowflakeWord::new()), taken());
    word.publish(4, 5);
    let takers: Vec<_> = [1, 20]
        .map(|now| {
            let (word, taken) = (Arc::clone(&word), Arc::clone(&taken));
            thread::spawn(move || {
                for _ in 0..3 {
                    if let Ok(first) = word.take(now, 1) {
                        taken.add(first, 1);
                    }
                }
            })
        })
        .into();
    // Above a gap, as after a promotion.
    word.publish(20, 23);
    for taker in takers {
        taker.join().unwrap();
    }
    taken.are_of(&[(4, 5), (20, 23)]);
}

/// Whoever drains knows what was not issued before, and that nothing below is any more.
fn a_taker_and_who_drains() {
    let (word, taken) = (Arc::new(SnowflakeWord::new()), taken());
    word.publish(4, 7);
    let taker = {
        let (word, taken) = (Arc::clone(&word), Arc::clone(&taken));
        thread::spawn(move || {
            for _ in 0..2 {
                if let Ok(first) = word.take(1, 1) {
                    taken.add(first, 1);
                }
            }
        })
    };
    let not_issued = word.drain();
    // By another word, or another server.
    for state in not_issued..7 {
        taken.add(state, 1);
    }
    taker.join().unwrap();
}

/// A slot goes to another owner while a taker of the first is under way: what he takes of the other's he throws away.
fn a_taker_and_who_passes_on() {
    let (word, generation) = (
        Arc::new(SegmentWord::new()),
        Arc::new(Generation::default()),
    );
    let (old, new) = (taken(), taken());
    // Where the old owner's cursor stands the new one's ids begin, so that an equal value proves nothing.
    word.publish(2, 4);
    let first = generation.get();
    let taker = {
        let (word, generation) = (Arc::clone(&word), Arc::clone(&generation));
        let old = Arc::clone(&old);
        thread::spawn(move || {
            for _ in 0..2 {
                if let Ok(id) = word.take(1)
                    && generation.is(first)
                {
                    old.add(id, 1);
                }
            }
        })
    };
    word.drain();
    let next = generation.pass_on(&[&*word], || {});
    word.publish(2, 6);
    let of_new = {
        let (word, generation) = (Arc::clone(&word), Arc::clone(&generation));
        let new = Arc::clone(&new);
        thread::spawn(move || {
            if let Ok(id) = word.take(1)
                && generation.is(next)
            {
                new.add(id, 1);
            }
        })
    };
    taker.join().unwrap();
    of_new.join().unwrap();
    // Of the first owner's range, before it was drained: never one of the other's.
    old.are_of(&[(2, 4)]);
    // Whoever took of the second word without noticing would have one of these and leave the cursor above it.
    let left = word.cursor();
    let used = u64::try_from(new.0.lock().unwrap().len()).unwrap();
    let thrown_away = left.saturating_sub(2).saturating_sub(used);
    assert!(thrown_away <= 2, "{left}");
}

/// What the first owner keeps after the second one's word is there, it took before.
fn what_is_kept_was_taken_of_the_own_word() {
    let (word, generation) = (
        Arc::new(SegmentWord::new()),
        Arc::new(Generation::default()),
    );
    word.publish(2, 3);
    let first = generation.get();
    let taker = {
        let (word, generation) = (Arc::clone(&word), Arc::clone(&generation));
        thread::spawn(move || {
            let id = word.take(1);
            (id.is_ok() && generation.is(first)).then_some(id)
        })
    };
    // Nothing of the first owner's is left: whatever is taken now is the other's.
    word.drain();
    let before = word.cursor();
    generation.pass_on(&[&*word], || {});
    word.publish(2, 6);
    let kept = taker.join().unwrap();
    let taken_of_new = word.cursor() - 2;
    // The old word had one id. Either it was taken before the draining, or the taker took one of the new word.
    if kept.is_some() {
        assert_eq!(taken_of_new, 0, "an id of the other owner was kept");
    }
    assert!(before >= 3);
}

/// Two ranges at a time, one of which is filled again; and what is left is handed back.
fn takers_a_publisher_and_who_hands_back() {
    let (buffer, taken) = (Arc::new(Buffer::new()), taken());
    assert!(buffer.publish(1, 3, 50));
    let taker = {
        let (buffer, taken) = (Arc::clone(&buffer), Arc::clone(&taken));
        thread::spawn(move || {
            for count in [2, 1] {
                if let Some(first) = buffer.take(count) {
                    taken.add(first, count);
                }
            }
        })
    };
    let other = {
        let (buffer, taken) = (Arc::clone(&buffer), Arc::clone(&taken));
        thread::spawn(move || {
            for (start, end) in buffer.take_rest() {
                taken.add(start, end - start);
            }
        })
    };
    for (start, end) in [(10, 12), (20, 22)] {
        assert!(buffer.publish(start, end, 50));
    }
    taker.join().unwrap();
    other.join().unwrap();
    taken.are_of(&[(1, 3), (10, 12), (20, 22)]);
}

#[test]
fn nothing_is_taken_twice_of_a_segment() {
    model(takers_and_a_publisher_of_a_segment);
}

#[test]
fn no_state_is_taken_twice() {
    model(takers_and_a_publisher_of_states);
}

#[test]
fn what_was_drained_is_not_taken_any_more() {
    model(a_taker_and_who_drains);
}

#[test]
fn nothing_goes_to_the_wrong_owner() {
    model(a_taker_and_who_passes_on);
    model(what_is_kept_was_taken_of_the_own_word);
}

#[test]
fn nothing_is_taken_twice_of_a_buffer() {
    model(takers_a_publisher_and_who_hands_back);
}

/// Each of them is needed.
#[test]
fn orderings_that_are_weakened_are_found() {
    let words: [fn(); 2] = [
        takers_and_a_publisher_of_a_segment,
        takers_and_a_publisher_of_states,
    ];
    for word in words {
        assert!(finds(Weakened::Publication, word));
    }
    for weakened in [Weakened::TakingIn, Weakened::PassingOn] {
        let found = finds(weakened, what_is_kept_was_taken_of_the_own_word);
        assert!(found, "{weakened:?}");
    }
}
