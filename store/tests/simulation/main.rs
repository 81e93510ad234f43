//! A deterministic simulation of several issuers around one store: replies are lost, issuers crash, pause and stop, clocks
//! step, leases are taken over, a replica is promoted that lacks what was written last. The decisions are the service's own;
//! one checker: no id twice. Known-bad rules run in the same world, and the checker has to find each of them out.
//!
//! Every run follows from its seed. `KEYWRIGHT_SEEDS` sets how many are run, `KEYWRIGHT_SEED` runs one and prints it.

#![allow(unreachable_pub, reason = "modules of one test binary")]

mod issuer;
mod lease_call;
#[path = "../common/seeds.rs"]
mod seeds;
mod store;
mod tag_call;
mod world;

use seeds::number_from;
use world::{Rules, run};

/// Runs by default.
const SEEDS: u64 = 4_000;

/// Runs at most to find a fault that needs much to coincide: what one server lost, nobody who looks, and that server back.
const SEEDS_OF_RARE_FAULTS: u64 = 200_000;

#[test]
fn no_id_is_issued_twice() {
    if let Some(seed) = number_from("KEYWRIGHT_SEED") {
        let outcome = run(seed, Rules::Sound, true);
        assert_eq!(outcome.violation, None);
        return;
    }
    let seeds = number_from("KEYWRIGHT_SEEDS").unwrap_or(SEEDS);
    let (mut tag_ids, mut snowflakes, mut spare_ids, mut takeovers) = (0, 0, 0, 0);
    let (mut promotions, mut rebuilds, mut reused) = (0, 0, 0);
    for seed in 0..seeds {
        let outcome = run(seed, Rules::Sound, false);
        if let Some(violation) = outcome.violation {
            panic!("seed {seed}: {violation}\nreplay: KEYWRIGHT_SEED={seed}");
        }
        tag_ids += outcome.tag_ids;
        snowflakes += outcome.snowflakes;
        spare_ids += outcome.spare_ids;
        takeovers += outcome.takeovers;
        promotions += outcome.promotions;
        rebuilds += outcome.rebuilds;
        reused += outcome.returned_used;
    }
    println!(
        "{seeds} seeds: {tag_ids} ids of a tag, {snowflakes} snowflake ids, {spare_ids} of a spare worker, {takeovers} takeovers, {promotions} promotions, {rebuilds} servers that came back, {reused} rests used again"
    );
    // A simulation in which nothing happens proves nothing.
    assert!(tag_ids > seeds * 100 && snowflakes > seeds * 100);
    assert!(spare_ids > seeds * 2);
    assert!(takeovers > seeds * 2 && promotions > seeds / 4 && reused > seeds / 4);
    assert!(rebuilds > seeds / 20);
}

/// Runs seeds until the checker finds a repeated id of the kind that the fault is about.
fn assert_found(rules: Rules, kind: &str) {
    assert_found_in(SEEDS, rules, kind);
}

fn assert_found_in(seeds: u64, rules: Rules, kind: &str) {
    let found = (0..seeds).find_map(|seed| {
        let violation = run(seed, rules, false).violation?;
        violation.contains(kind).then_some((seed, violation))
    });
    match found {
        Some((seed, violation)) => println!("{rules:?}: found by seed {seed}: {violation}"),
        None => panic!("{rules:?}: {seeds} seeds did not find the duplicate"),
    }
}

#[test]
fn finds_a_lease_that_is_only_a_time_to_live() {
    assert_found(Rules::TimeToLiveOnly, "snowflake");
}

#[test]
fn finds_an_addition_that_overshoots() {
    assert_found(Rules::FetchAdd, "the tag");
}

#[test]
fn finds_publication_after_an_unknown_outcome() {
    assert_found(Rules::PublishUnknown, "the tag");
}

#[test]
fn finds_an_extension_that_does_not_compare() {
    assert_found(Rules::ExtendBlindly, "snowflake");
}

#[test]
fn finds_a_spare_word_that_begins_anew() {
    assert_found(Rules::SpareBeginsAnew, "snowflake");
}

#[test]
fn finds_a_rest_that_is_handed_back_and_used() {
    assert_found(Rules::HandBackAndKeep, "the tag");
}

#[test]
fn finds_a_promoted_replica_without_a_gap() {
    assert_found(Rules::NoGap, "the tag");
}

#[test]
fn finds_rests_that_survive_a_promotion() {
    assert_found(Rules::KeepForeignRests, "the tag");
}

#[test]
fn finds_rests_that_come_back_with_their_server() {
    assert_found_in(SEEDS_OF_RARE_FAULTS, Rules::KeepUnlessLookedFor, "the tag");
}
