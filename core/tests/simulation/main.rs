//! A deterministic simulation of issuers, stores, clocks and disasters around core's own types.
//!
//! Every run follows from its seed. `KEYWRIGHT_SEEDS` sets how many are run, `KEYWRIGHT_SEED` runs one and prints its
//! schedule. Known-bad algorithms run in the same world, and the checker has to find each of them out.

#![allow(unreachable_pub, reason = "modules of one test binary")]

mod checker;
mod events;
mod evidence;
mod identity;
mod job;
mod printed;
mod printed_run;
mod rules;
mod schedule;
mod server;
mod store;
mod tag_call;
mod time_call;
mod time_takeover;
mod world;

use std::env;
use std::time::Instant;

use rules::Rules;

/// Runs by default.
const SEEDS: u64 = 10_000;

fn number_from(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
    )
}

#[test]
fn no_id_is_issued_twice() {
    if let Some(seed) = number_from("KEYWRIGHT_SEED") {
        let outcome = schedule::run(seed, Rules::Sound, true);
        println!(
            "seed {seed}: {} ids issued, {} words without a promise",
            outcome.issued, outcome.voids
        );
        assert_eq!(outcome.violation, None);
        return;
    }
    let seeds = number_from("KEYWRIGHT_SEEDS").unwrap_or(SEEDS);
    let began = Instant::now();
    let (mut issued, mut lossy, mut saved) = (0, 0, 0);
    for seed in 0..seeds {
        let outcome = schedule::run(seed, Rules::Sound, false);
        if let Some(violation) = outcome.violation {
            panic!("seed {seed}: {violation}\nreplay: cargo xtask simulate --seed {seed}");
        }
        issued += outcome.issued;
        lossy += outcome.voids;
        saved += outcome.saved_by_gap;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{seeds} seeds, {issued} ids, no repetition, {seconds:.1} s");
    println!(
        "{saved} takeovers where a gap kept lost ids apart, {lossy} words that lost more than is promised"
    );
    // A simulation in which nothing happens proves nothing.
    assert!(issued as u64 > seeds * 50, "hardly anything was issued");
    assert!(
        seeds < 1000 || saved > lossy / 2,
        "the promise after a loss is hardly tested"
    );
}

/// Runs seeds until the checker finds a repeated id.
fn assert_found(name: &str, run: impl Fn(u64) -> Option<String>) {
    let found = (0..SEEDS).find_map(|seed| run(seed).map(|violation| (seed, violation)));
    match found {
        Some((seed, violation)) => println!("{name}: found by seed {seed}: {violation}"),
        None => panic!("{name}: {SEEDS} seeds did not find the duplicate"),
    }
}

fn assert_rules_found(rules: Rules) {
    assert_found(&format!("{rules:?}"), |seed| {
        schedule::run(seed, rules, false).violation
    });
}

#[test]
fn finds_a_bound_saved_after_issuing() {
    assert_rules_found(Rules::SavedAfterIssuing);
}

#[test]
fn finds_a_reservation_in_the_callers_transaction() {
    assert_rules_found(Rules::InCallersTransaction);
}

#[test]
fn finds_publication_after_a_cancelled_wait() {
    assert_rules_found(Rules::PublishedAfterCancel);
}

#[test]
fn finds_the_note_written_before_the_bound() {
    assert_rules_found(Rules::NoteBeforeBound);
}

#[test]
fn finds_bounds_that_do_not_follow_the_worker_id() {
    assert_rules_found(Rules::OwnRecordOnly);
}

#[test]
fn finds_a_worker_id_used_without_taking_it_over() {
    assert_rules_found(Rules::NoTakeoverOnMove);
}

#[test]
fn finds_an_overshooting_addition() {
    assert_rules_found(Rules::FetchAdd);
}

#[test]
fn finds_a_bound_raised_before_the_cursor_moved() {
    assert_rules_found(Rules::HiFirst);
}

#[test]
fn finds_no_gap_by_the_standbys_own_record() {
    assert_rules_found(Rules::NoGapByOwnRecord);
}

#[test]
fn finds_a_gap_counted_from_the_own_refill_and_capped() {
    assert_rules_found(Rules::OwnRefillCapped);
}

#[test]
fn finds_a_rate_averaged_over_idleness() {
    assert_rules_found(Rules::AverageRate);
}

#[test]
fn finds_a_keepalive_taken_as_evidence() {
    assert_rules_found(Rules::KeepaliveIsEvidence);
}

#[test]
fn finds_an_own_commit_taken_as_evidence() {
    assert_rules_found(Rules::OwnCommitIsEvidence);
}

#[test]
fn finds_a_generator_per_backend() {
    assert_found("per-backend generator", printed_run::per_backend);
}

#[test]
fn finds_the_base_sequence_step_after_the_fourth_rollback() {
    assert_found("base-sequence step, few ids", |seed| {
        printed_run::base_sequence_step(seed, 1)
    });
}

#[test]
fn finds_the_base_sequence_step_after_many_ids_in_a_millisecond() {
    assert_found("base-sequence step, 1500 ids in a millisecond", |seed| {
        printed_run::base_sequence_step(seed, 1500)
    });
}

#[test]
fn finds_the_spare_worker_that_does_not_read_the_clock_again() {
    assert_found("spare worker, waiting", |seed| {
        printed_run::spare_worker(seed, i64::MAX)
    });
}

#[test]
fn finds_the_spare_worker_at_a_second_rollback() {
    assert_found("spare worker, changing", |seed| {
        printed_run::spare_worker(seed, 0)
    });
}
