//! Nobody breaks a session with bytes: conversations that are cut, bent and joined at random, from both sides, in chunks of
//! any size. What must hold at every step is asserted in `drive`. A failure names its seed.

mod client;
#[path = "../drive/mod.rs"]
mod drive;
mod server;

use std::panic::{AssertUnwindSafe, catch_unwind};

use drive::{Heard, Recorded, deprecates_eof, drive, has_attributes};
use fastrand::Rng;
use server::Server;

/// Conversations per test; the variable asks for more.
const SEEDS: u64 = 4_000;
const SEEDS_VARIABLE: &str = "KEYWRIGHT_HOSTILE_SEEDS";

/// Runs one conversation per seed.
fn with_seeds(run: impl Fn(u64, &mut Rng)) {
    let asked = std::env::var(SEEDS_VARIABLE)
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    for seed in 0..asked.unwrap_or(SEEDS) {
        let run = AssertUnwindSafe(|| run(seed, &mut Rng::with_seed(seed)));
        if let Err(panic) = catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Changes some bytes: bits, lengths, cuts, repetitions.
fn spoil(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            bytes.push(random.u8(..));
        }
        let at = random.usize(..bytes.len());
        match random.u8(0..7) {
            0 | 1 => bytes[at] ^= 1 << random.u8(0..8),
            2 => bytes[at] = client::pick(random, &[0, 1, 0x7F, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF]),
            3 => bytes.truncate(at),
            4 => {
                bytes.remove(at);
            }
            5 => bytes.insert(at, random.u8(..)),
            _ => {
                let part = bytes[at..].to_vec();
                let to = random.usize(..=at);
                bytes.splice(to..to, part);
            }
        }
    }
}

/// Whole, byte by byte, and in chunks: it comes to the same.
fn in_chunks(random: &mut Rng, run: impl Fn(&mut dyn FnMut() -> usize) -> Heard) -> Heard {
    let whole = run(&mut || usize::MAX);
    let bytes = run(&mut || 1);
    assert!(bytes == whole, "byte by byte {bytes}\nwhole {whole}");
    let mut sizes = random.fork();
    let chunks = run(&mut || sizes.usize(1..40));
    assert!(chunks == whole, "in chunks {chunks}\nwhole {whole}");
    whole
}

#[test]
fn conversations_come_to_the_same_in_any_chunks() {
    let rewritten = std::cell::Cell::new(0);
    with_seeds(|seed, random| {
        let choice = random.u8(..);
        let mut commands = Vec::new();
        client::conversation(has_attributes(choice), random, &mut commands);
        let heard = in_chunks(random, |chunk| {
            let mut server = Server::new(seed, deprecates_eof(choice), 0);
            drive(choice, &commands, &[], &mut server, chunk)
        });
        rewritten.set(rewritten.get() + heard.rewritten);
    });
    // Else these conversations show nothing.
    assert!(
        rewritten.get() > SEEDS / 5,
        "{} statements got keys",
        rewritten.get()
    );
}

#[test]
fn spoiled_commands_and_answers_break_nothing() {
    with_seeds(|seed, random| {
        let choice = random.u8(..);
        let mut commands = Vec::new();
        client::conversation(has_attributes(choice), random, &mut commands);
        if random.bool() {
            spoil(random, &mut commands);
        }
        let wrong = random.u8(..);
        in_chunks(random, |chunk| {
            let mut server = Server::new(seed, deprecates_eof(choice), wrong);
            drive(choice, &commands, &[], &mut server, chunk)
        });
    });
}

#[test]
fn spoiled_recordings_break_nothing() {
    with_seeds(|seed, random| {
        let choice = random.u8(..);
        let mut commands = Vec::new();
        client::conversation(has_attributes(choice), random, &mut commands);
        let mut server = Server::new(seed, deprecates_eof(choice), 0);
        drive(choice, &commands, &[], &mut server, || usize::MAX);
        let mut answers = server.said;
        spoil(random, &mut answers);
        if random.bool() {
            spoil(random, &mut commands);
        }
        in_chunks(random, |chunk| {
            drive(choice, &commands, &answers, &mut Recorded, chunk)
        });
    });
}

#[test]
fn noise_breaks_nothing() {
    with_seeds(|_, random| {
        let choice = random.u8(..);
        let mut noise = || -> Vec<u8> {
            let len = random.usize(..300);
            let mut bytes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            // Short packets, or nothing but their lengths is ever read.
            for at in [1, 2] {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = 0;
                }
            }
            bytes
        };
        let (client, upstream) = (noise(), noise());
        in_chunks(random, |chunk| {
            drive(choice, &client, &upstream, &mut Recorded, chunk)
        });
    });
}
