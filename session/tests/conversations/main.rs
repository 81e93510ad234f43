//! Conversations at random between a client, a session and a server, in all circumstances: statements of every kind and of both
//! corpora, prepared ones, rules that change, wrong answers, bytes in parts. Each has a number that repeats it.
//!
//! Here they show that a session comes to an end with all of them, and that they reach what there is to reach. `cargo xtask oracle`
//! compiles them against two sessions in lockstep. One that fails is cut down to what matters and printed.

mod circumstances;
mod client;
mod play;
mod reach;
mod scenarios;
mod server;
mod statements;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{available_parallelism, scope};
use std::time::Instant;

use circumstances::{Chunks, Circumstances};
use fastrand::Rng;
use play::{Conversation, play};
use reach::Reach;

/// How many conversations, and the number of the first.
const CONVERSATIONS: u64 = 4_000;
const CONVERSATIONS_VARIABLE: &str = "KEYWRIGHT_CONVERSATIONS";
const SEED_VARIABLE: &str = "KEYWRIGHT_SEED";
/// Fewer need not reach everything.
const REACH_MIN: u64 = 4_000;

fn pick<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

/// Changes some bytes.
fn spoil(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..3) {
        let at = random.usize(..bytes.len().max(1));
        match (random.u8(0..5), bytes.get_mut(at)) {
            (0 | 1, Some(byte)) => *byte ^= 1 << random.u8(0..8),
            (2, Some(byte)) => *byte = pick(random, &[0, 1, 0xFB, 0xFC, 0xFE, 0xFF]),
            (3, _) => bytes.truncate(at),
            (_, _) => bytes.insert(at.min(bytes.len()), random.u8(..)),
        }
    }
}

fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn conversation(seed: u64) -> Conversation {
    // Seeds that follow each other begin alike.
    let mut random = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let circumstances = Circumstances::any(&mut random);
    Conversation {
        seed,
        acts: client::acts(&circumstances, &mut random),
        circumstances,
    }
}

thread_local! {
    /// What the last panic said.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What a conversation fails with.
fn failure(of: &Conversation, reach: &mut Reach, log: &mut Option<Vec<String>>) -> Option<String> {
    let played = catch_unwind(AssertUnwindSafe(|| play(of, reach, log)));
    played.err().map(|_| SAID.take())
}

/// What is left of a conversation that fails while it still does.
fn cut_down(mut of: Conversation) -> Conversation {
    let fails = |of: &Conversation| failure(of, &mut Reach::default(), &mut None).is_some();
    let mut at = of.acts.len();
    while at > 0 {
        at -= 1;
        let mut without = of.clone();
        without.acts.remove(at);
        if fails(&without) {
            of = without;
        }
    }
    let simpler: [fn(&mut Conversation); 4] = [
        |of| of.circumstances.chunks = Chunks::Whole,
        |of| of.circumstances.in_place = false,
        |of| of.circumstances.wrong = 0,
        |of| of.acts.iter_mut().for_each(|act| act.is_pipelined = false),
    ];
    for change in simpler {
        let mut changed = of.clone();
        change(&mut changed);
        if fails(&changed) {
            of = changed;
        }
    }
    of
}

/// A conversation that fails, as far as it matters, and why.
fn report(seed: u64, nth: u64) -> String {
    let of = cut_down(conversation(seed));
    let mut log = Some(Vec::new());
    let said = failure(&of, &mut Reach::default(), &mut log);
    let said = said.unwrap_or_else(|| "it does not fail again".to_owned());
    let log = log.unwrap_or_default().join("\n");
    let circumstances = &of.circumstances;
    format!(
        "{circumstances:#?}\n{log}\n\n{said}\n\nconversation {seed}, the {nth}. of this run; {SEED_VARIABLE}={seed} repeats it"
    )
}

/// The conversations of one thread, of which each takes the next number that is left. The first that fails ends them all, and is
/// returned.
fn some(next: &AtomicU64, end: &AtomicU64, reach: &mut Reach) -> Option<u64> {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end.load(Ordering::Relaxed) {
            return None;
        }
        if failure(&conversation(seed), reach, &mut None).is_some() {
            // Others finish those that come before it.
            end.fetch_min(seed, Ordering::Relaxed);
            return Some(seed);
        }
    }
}

/// All of them, on each processor. The first that fails.
fn all(first: u64, count: u64, reach: &mut Reach) -> Option<u64> {
    let next = AtomicU64::new(first);
    let end = AtomicU64::new(first.saturating_add(count));
    let threads = available_parallelism().map_or(1, usize::from);
    let some = || {
        let mut reach = Reach::default();
        (some(&next, &end, &mut reach), reach)
    };
    scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        let mut failed = Vec::new();
        for thread in threads {
            let (seed, its) = thread.join().expect("what fails is caught");
            failed.extend(seed);
            reach.add(&its);
        }
        failed.into_iter().min()
    })
}

#[test]
fn conversations_come_to_an_end_and_reach_everything() {
    let first = asked(SEED_VARIABLE).unwrap_or(0);
    let count = asked(CONVERSATIONS_VARIABLE).unwrap_or(CONVERSATIONS);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| SAID.set(info.to_string())));
    let (started, mut reach) = (Instant::now(), Reach::default());
    let failed = all(first, count, &mut reach);
    let failed = failed.map(|seed| report(seed, seed - first + 1));
    std::panic::set_hook(hook);
    if let Some(report) = failed {
        panic!("{report}");
    }
    let took = started.elapsed().as_secs_f64();
    let steps = reach.steps;
    println!("{count} conversations, {steps} steps in {took:.1} s");
    if count >= REACH_MIN {
        let missing = reach.missing();
        assert!(missing.is_empty(), "never reached: {missing:?}");
    }
}
