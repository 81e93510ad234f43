//! Who does what at the same time, and what must hold whatever comes of it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64 as Count;

use loom::sync::Mutex;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use crate::buffer::Buffer;
use crate::gate::Holder;
use crate::generation::{Generation, Word};
use crate::segment::SegmentWord;
use crate::snowflake::SnowflakeWord;
use crate::sync::Ordering;

/// One of them, by name.
pub type Scene = (&'static str, fn());

pub const SCENES: [Scene; 9] = [
    (
        "takers and a publisher of a segment",
        takers_and_a_publisher_of_a_segment,
    ),
    (
        "takers and a publisher of states",
        takers_and_a_publisher_of_states,
    ),
    ("a taker and who drains", a_taker_and_who_drains),
    (
        "a segment is passed on under a taker",
        passed_on_under_a_taker::<SegmentWord>,
    ),
    (
        "states are passed on under a taker",
        passed_on_under_a_taker::<SnowflakeWord>,
    ),
    (
        "a segment is passed on under takers of both owners",
        passed_on_under_both_owners::<SegmentWord>,
    ),
    (
        "states are passed on under takers of both owners",
        passed_on_under_both_owners::<SnowflakeWord>,
    ),
    ("two refill behind a gate", two_refill_behind_a_gate),
    (
        "a taker, a publisher and who hands back",
        a_taker_a_publisher_and_who_hands_back,
    ),
];

/// A word of either kind.
trait Taking: Word + Default + Send + Sync + 'static {
    fn take_one(&self) -> Option<u64>;
    fn publish(&self, start: u64, end: u64);
    fn drain(&self);
    fn cursor(&self) -> u64;
}

impl Taking for SegmentWord {
    fn take_one(&self) -> Option<u64> {
        self.take(1).ok()
    }
    fn publish(&self, start: u64, end: u64) {
        self.publish(start, end);
    }
    fn drain(&self) {
        self.drain();
    }
    fn cursor(&self) -> u64 {
        self.cursor()
    }
}

impl Taking for SnowflakeWord {
    fn take_one(&self) -> Option<u64> {
        // A clock that is far behind.
        self.take(0, 1).ok()
    }
    fn publish(&self, start: u64, end: u64) {
        self.publish(start, end);
    }
    fn drain(&self) {
        self.drain();
    }
    fn cursor(&self) -> u64 {
        self.next()
    }
}

/// What was taken: nothing comes twice, and nothing that was not published.
#[derive(Debug, Default)]
struct Taken(std::sync::Mutex<Vec<u64>>);

impl Taken {
    fn new() -> Arc<Self> {
        Arc::default()
    }

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

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Two take while a range is published that does not continue the one before.
fn takers_and_a_publisher_of_a_segment() {
    let (word, taken) = (Arc::new(SegmentWord::new()), Taken::new());
    word.publish(1, 3);
    let takers = [1, 2].map(|count| {
        let (word, taken) = (Arc::clone(&word), Arc::clone(&taken));
        thread::spawn(move || {
            for _ in 0..2 {
                if let Ok(first) = word.take(count) {
                    taken.add(first, count);
                }
            }
        })
    });
    word.publish(10, 12);
    join(takers);
    taken.are_of(&[(1, 3), (10, 12)]);
}

/// The same of a snowflake word; the clock of one of them is behind.
fn takers_and_a_publisher_of_states() {
    let (word, taken) = (Arc::new(SnowflakeWord::new()), Taken::new());
    word.publish(4, 5);
    let takers = [1, 20].map(|now| {
        let (word, taken) = (Arc::clone(&word), Arc::clone(&taken));
        thread::spawn(move || {
            for _ in 0..2 {
                if let Ok(first) = word.take(now, 1) {
                    taken.add(first, 1);
                }
            }
        })
    });
    // Above a gap, as after a promotion.
    word.publish(20, 23);
    join(takers);
    taken.are_of(&[(4, 5), (20, 23)]);
}

/// Whoever drains knows what was not issued before, and that nothing below is any more.
fn a_taker_and_who_drains() {
    let (word, taken) = (Arc::new(SnowflakeWord::new()), Taken::new());
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
    assert_eq!(word.hi(), 7);
    // By another word, or another server.
    for state in not_issued..7 {
        taken.add(state, 1);
    }
    join([taker]);
}

/// What a slot of shared memory has of this: the gate apart.
#[derive(Default)]
struct Slot<W> {
    word: W,
    generation: Generation,
    /// Whose it is; read and written under the directory's lock.
    key: AtomicU64,
}

/// The first owner's ids end where the second one's begin anew, so that an equal cursor proves nothing.
const FIRST: (u64, u64) = (2, 3);
const SECOND: (u64, u64) = (2, 6);

impl<W: Taking> Slot<W> {
    /// Of the first owner.
    fn new() -> Arc<Self> {
        let slot = Self::default();
        slot.key.store(1, Ordering::Relaxed);
        slot.word.publish(FIRST.0, FIRST.1);
        let _ = slot.generation.get();
        Arc::new(slot)
    }

    /// Gives it to the second owner, who publishes at once.
    fn pass_on(&self, directory: &Mutex<()>) {
        let lock = directory.lock().unwrap();
        self.word.drain();
        let write_key = || self.key.store(2, Ordering::Relaxed);
        self.generation.pass_on(&[&self.word], write_key);
        drop(lock);
        self.word.publish(SECOND.0, SECOND.1);
    }

    /// How many were taken of the second owner's word, by whomsoever.
    fn taken_of_second(&self) -> u64 {
        self.word.cursor() - SECOND.0
    }
}

/// What the first owner keeps after the second one's word is there, it took before.
fn passed_on_under_a_taker<W: Taking>() {
    let (slot, directory) = (Slot::<W>::new(), Mutex::new(()));
    let first = slot.generation.get();
    let taker = {
        let slot = Arc::clone(&slot);
        thread::spawn(move || slot.word.take_one().filter(|_| slot.generation.is(first)))
    };
    slot.pass_on(&directory);
    if let Some(id) = taker.join().unwrap() {
        assert!((FIRST.0..FIRST.1).contains(&id), "{id} is not the first's");
        assert_eq!(slot.taken_of_second(), 0, "an id of the second was kept");
    }
}

/// Takers look up whose the slot is, under the directory's lock, before the word is passed on or after.
fn passed_on_under_both_owners<W: Taking>() {
    let (slot, directory) = (Slot::<W>::new(), Arc::new(Mutex::new(())));
    let kept: Arc<[Count; 3]> = Arc::default();
    let (first, second) = (Taken::new(), Taken::new());
    let takers = [(); 2].map(|()| {
        let (slot, directory, kept) = (Arc::clone(&slot), Arc::clone(&directory), kept.clone());
        let (first, second) = (Arc::clone(&first), Arc::clone(&second));
        thread::spawn(move || {
            let lock = directory.lock().unwrap();
            let key = slot.key.load(Ordering::Relaxed);
            let generation = slot.generation.get();
            drop(lock);
            if let Some(id) = slot.word.take_one()
                && slot.generation.is(generation)
            {
                [&first, &second][usize::from(key == 2)].add(id, 1);
                kept[usize::from(key == 2)].fetch_add(1, Ordering::Relaxed);
                kept[2].fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    slot.pass_on(&directory);
    join(takers);
    first.are_of(&[FIRST]);
    second.are_of(&[SECOND]);
    let kept = |of: usize| kept[of].load(Ordering::Relaxed);
    let of_second = slot.taken_of_second();
    assert!(kept(1) <= of_second, "what the second has was not its own");
    assert!(kept(0) <= 2 - of_second, "an id of the second was kept");
    assert_eq!(kept(0) + kept(1), kept(2));
}

/// Two make a bound durable and publish, one of them again and again: what is published is never above what is durable.
fn two_refill_behind_a_gate() {
    #[derive(Default)]
    struct Guarded {
        gate: Holder,
        word: SegmentWord,
        /// What only those inside read and write, as the clock of a slot.
        durable: AtomicU64,
    }
    impl Guarded {
        fn refill(&self, process: i32) {
            if !self.gate.try_enter(process) {
                return;
            }
            let start = self.durable.load(Ordering::Relaxed);
            self.durable.store(start + 2, Ordering::Relaxed);
            self.word.publish(start, start + 2);
            assert_eq!(self.gate.get(), Some(process));
            self.gate.leave();
        }
    }
    let guarded = Arc::new(Guarded::default());
    guarded.durable.store(1, Ordering::Relaxed);
    guarded.refill(1);
    let taken = Taken::new();
    let others = [1, 2].map(|refills| {
        let (guarded, taken) = (Arc::clone(&guarded), Arc::clone(&taken));
        thread::spawn(move || {
            for _ in 0..refills {
                guarded.refill(refills);
            }
            if let Ok(id) = guarded.word.take(1) {
                taken.add(id, 1);
            }
        })
    });
    join(others);
    // Whoever begins here after a crash.
    let durable = guarded.durable.load(Ordering::Relaxed);
    assert!(guarded.word.hi() <= durable, "not durable");
    assert_eq!(guarded.gate.get(), None);
}

/// Two ranges at a time, one of which is filled again; and what is left is handed back.
fn a_taker_a_publisher_and_who_hands_back() {
    let (buffer, taken) = (Arc::new(Buffer::new()), Taken::new());
    assert!(buffer.publish(1, 3, 50));
    let taker = {
        let (buffer, taken) = (Arc::clone(&buffer), Arc::clone(&taken));
        thread::spawn(move || {
            if let Some(first) = buffer.take(1) {
                taken.add(first, 1);
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
    join([taker, other]);
    taken.are_of(&[(1, 3), (10, 12), (20, 22)]);
}
