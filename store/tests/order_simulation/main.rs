//! A deterministic simulation of programs that issue keys of an ordered tag, of the store with their lease, and of clients: programs are
//! stopped and go on, crash, give up and are cut off, answers are lost and late, clocks differ. The decisions are the program's own; one checker: a request that
//! was sent after a reply had been read gets a larger id. Known-bad rules run in the same world, and the checker has to find each of them out.
//!
//! Every run follows from its seed. `KEYWRIGHT_SEEDS` sets how many are run, `KEYWRIGHT_SEED` runs one.

#![allow(unreachable_pub, reason = "modules of one test binary")]

mod divider;
mod node;
#[path = "../common/seeds.rs"]
mod seeds;
mod store;
mod world;

use std::ops::Range;

use node::Flaw;
use seeds::number_from;
use world::{Outcome, World};

/// Runs by default.
const SEEDS: u64 = 400;
/// Runs at most to find a fault.
const SEEDS_OF_FAULTS: u64 = 4_000;

/// Those that the environment names.
fn seeds_to_run() -> Range<u64> {
    match number_from("KEYWRIGHT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_from("KEYWRIGHT_SEEDS").unwrap_or(SEEDS),
    }
}

fn run(seed: u64, flaws: &'static [Flaw]) -> Outcome {
    World::new(seed, flaws).run()
}

#[test]
fn no_request_gets_an_id_below_one_that_was_read_before_it_was_sent() {
    let seeds = seeds_to_run();
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
        all.robbed += outcome.robbed;
    }
    println!(
        "{count} seeds: {} replies, {} takeovers, {} requests that came too late to a program",
        all.replies, all.takeovers, all.late
    );
    // A simulation in which nothing happens proves nothing.
    assert!(all.replies > count * 500 && all.takeovers > count * 3 && all.late > count);
    // While clocks and store are what they should be, nobody is told that his time was over before it was.
    assert_eq!(all.robbed, 0);
}

/// What cannot be, as far as a program knows, makes it keep away for two times to live.
#[test]
fn who_finds_another_in_his_place_too_early_keeps_away() {
    let (mut robbed, seeds) = (0, SEEDS / 4);
    for seed in 0..seeds {
        let outcome = World::with_robbers(seed).run();
        assert_eq!(outcome.too_soon, None, "seed {seed}");
        robbed += outcome.robbed;
    }
    println!("{seeds} seeds: {robbed} times somebody else had the lease too early");
    assert!(robbed > seeds);
}

/// Clocks are set and run as they like, and a server of the store that takes another's place may lack what was acknowledged.
#[test]
fn what_is_strict_needs_no_clock() {
    let seeds = seeds_to_run();
    let count = seeds.end - seeds.start;
    let mut all = Outcome::default();
    for seed in seeds {
        let outcome = World::strict(seed, &[]).run();
        if let Some(inversion) = outcome.inversion {
            panic!("seed {seed}: {inversion}\nreplay: KEYWRIGHT_SEED={seed}");
        }
        all.replies += outcome.replies;
        all.takeovers += outcome.takeovers;
    }
    println!(
        "{count} seeds: {} replies, {} takeovers",
        all.replies, all.takeovers
    );
    assert!(all.replies > count * 200 && all.takeovers > count * 5);
}

/// Programs divide slots into one group or into two, so the tag has another lease for the one than for the other, and the store's number changes
/// meanwhile, wherever it breaks off.
#[test]
fn programs_with_other_numbers_of_groups_are_never_both_active() {
    for world in [World::divided, World::divided_strict] {
        let mut all = Outcome::default();
        for seed in 0..SEEDS {
            let outcome = world(seed, &[]).run();
            if let Some(inversion) = outcome.inversion {
                panic!("seed {seed}: {inversion}");
            }
            all.replies += outcome.replies;
            all.takeovers += outcome.takeovers;
            all.divisions += outcome.divisions;
        }
        println!(
            "{SEEDS} seeds: {} replies, {} takeovers, {} other numbers of groups",
            all.replies, all.takeovers, all.divisions
        );
        assert!(all.replies > SEEDS * 100 && all.takeovers > SEEDS * 3);
        assert!(all.divisions > SEEDS);
    }
}

/// Runs seeds until the checker finds an inversion.
fn assert_found(flaws: &'static [Flaw]) {
    assert_found_in(World::new, flaws);
}

fn assert_found_in(world: fn(u64, &'static [Flaw]) -> World, flaws: &'static [Flaw]) {
    let found =
        (0..SEEDS_OF_FAULTS).find_map(|seed| Some((seed, world(seed, flaws).run().inversion?)));
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

#[test]
fn finds_a_confirmation_that_was_sent_before_the_request_was_read() {
    assert_found_in(World::strict, &[Flaw::JoinUnderWay]);
}

#[test]
fn finds_a_confirmation_that_does_not_name_the_epoch() {
    assert_found_in(World::strict, &[Flaw::ConfirmWithoutEpoch]);
}

#[test]
fn finds_replies_that_go_without_knowing() {
    assert_found_in(World::strict, &[Flaw::LetGoOnUnknown]);
}

#[test]
fn finds_a_confirmation_of_another_server() {
    assert_found_in(World::strict, &[Flaw::ConfirmOnAnyServer]);
}

#[test]
fn finds_a_program_that_does_not_read_the_number_of_groups() {
    assert_found_in(World::divided, &[Flaw::NumberNotRead]);
}

#[test]
fn finds_a_number_of_groups_that_changes_while_a_program_is_active() {
    assert_found_in(World::divided, &[Flaw::DivideWithoutWaiting]);
}

/// The store's look at the number when it reserves would be enough for that, too; so that is left away.
#[test]
fn finds_a_number_of_groups_that_changes_without_the_leases() {
    let flaws = &[Flaw::DivideWithoutEpoch, Flaw::ReserveInAnyEpoch];
    assert_found_in(World::divided, flaws);
}

/// What a program reserves in an epoch that is over it cannot issue; so the store may look at the epoch without a lock.
#[test]
fn what_is_reserved_too_late_is_not_issued() {
    for seed in 0..SEEDS {
        for world in [World::new, World::strict] {
            let inversion = world(seed, &[Flaw::ReserveInAnyEpoch]).run().inversion;
            assert_eq!(inversion, None, "seed {seed}");
        }
    }
}
