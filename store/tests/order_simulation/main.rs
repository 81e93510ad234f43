//! A deterministic simulation of programs that issue keys of an ordered tag, of the store with their lease, and of clients: programs are
//! stopped and go on, crash, give up and are cut off, answers are lost and late, clocks differ. The decisions are the program's own; one checker: a request that
//! was sent after a reply had been read gets a larger id. Known-bad rules run in the same world, and the checker has to find each of them out.
//!
//! Every run follows from its seed. `KEYWRIGHT_SEEDS` sets how many are run, `KEYWRIGHT_SEED` runs one.

#![allow(unreachable_pub, reason = "modules of one test binary")]

mod node;
mod store;
mod world;

use std::env;

use node::Flaw;
use world::{Outcome, World};

/// Runs by default.
const SEEDS: u64 = 400;
/// Runs at most to find a fault.
const SEEDS_OF_FAULTS: u64 = 4_000;

fn number_from(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
    )
}

fn run(seed: u64, flaws: &'static [Flaw]) -> Outcome {
    World::new(seed, flaws).run()
}

#[test]
fn no_request_gets_an_id_below_one_that_was_read_before_it_was_sent() {
    let seeds = match number_from("KEYWRIGHT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_from("KEYWRIGHT_SEEDS").unwrap_or(SEEDS),
    };
    let count = seeds.end - seeds.start;
    let mut all = Outcome::default();
    for seed in seeds {
        let outcome = run(seed, &[]);
        if let Some(inversion) = outcome.inversion {
            panic!("seed {seed}: {inversion}\nreplay: KEYWRIGHT_SEED={seed}");
        }
        all.replies += outcome.replies;
        all.takeovers += outcome.takeovers;
        all.late += outcome.late;
    }
    println!(
        "{count} seeds: {} replies, {} takeovers, {} requests that came too late to a program",
        all.replies, all.takeovers, all.late
    );
    // A simulation in which nothing happens proves nothing.
    assert!(all.replies > count * 500 && all.takeovers > count * 3 && all.late > count);
}

/// Runs seeds until the checker finds an inversion.
fn assert_found(flaws: &'static [Flaw]) {
    let found = (0..SEEDS_OF_FAULTS).find_map(|seed| Some((seed, run(seed, flaws).inversion?)));
    match found {
        Some((seed, inversion)) => println!("{flaws:?}: found by seed {seed}: {inversion}"),
        None => panic!("{flaws:?}: {SEEDS_OF_FAULTS} seeds did not find the inversion"),
    }
}

#[test]
fn finds_a_check_that_is_made_once_for_several_reads() {
    assert_found(&[Flaw::CheckOncePerLoop]);
}

#[test]
fn finds_a_clock_that_is_read_before_the_request() {
    assert_found(&[Flaw::ClockBeforeRequest]);
}

#[test]
fn finds_a_takeover_that_does_not_name_the_renewal() {
    assert_found(&[Flaw::TakeOverWithoutRenewal]);
}

#[test]
fn finds_a_deadline_that_counts_from_the_answer() {
    assert_found(&[Flaw::DeadlineFromAnswer]);
}

#[test]
fn finds_a_standby_that_counts_from_when_it_asked() {
    assert_found(&[Flaw::WatchedSinceAsked]);
}

#[test]
fn finds_ranges_that_are_kept_for_a_later_epoch() {
    assert_found(&[Flaw::RangesOfAnyEpoch]);
}

#[test]
fn finds_a_program_that_issues_on_after_it_gave_up() {
    assert_found(&[Flaw::ReleaseBeforeStopping]);
}

#[test]
fn finds_ranges_that_count_as_those_of_a_later_epoch() {
    assert_found(&[Flaw::RangesOfWhenTheyCome]);
}

/// What a program reserves in an epoch that is over it cannot issue; so the store may look at the epoch without a lock.
#[test]
fn what_is_reserved_too_late_is_not_issued() {
    for seed in 0..SEEDS {
        let inversion = run(seed, &[Flaw::ReserveInAnyEpoch]).inversion;
        assert_eq!(inversion, None, "seed {seed}");
    }
}
