//! A second world: who a database is changes, in transactions that may fail, while its sessions issue.
//!
//! Databases are made and dropped, extensions too, worker ids and layouts (in some runs buckets and time zones) change hands, and
//! words in shared memory are closed and passed on. The tags and clocks of the first world are left out; the words, bounds, floors and the register are core's own.

mod checker;
mod commands;
mod drops;
mod extend;
mod rules;
mod run;
mod session;
mod state;
mod words;
mod world;

use std::time::Instant;

use rules::Rules;

use crate::{SEEDS, assert_found, number_from};

#[test]
fn no_identity_issues_what_another_did() {
    if let Some(seed) = number_from("KEYWRIGHT_SEED") {
        let outcome = run::run(seed, Rules::Sound, true);
        println!("seed {seed}: {} ids issued", outcome.issued);
        assert_eq!(outcome.violation, None);
        return;
    }
    let seeds = number_from("KEYWRIGHT_SEEDS").unwrap_or(SEEDS);
    let began = Instant::now();
    let mut sum = run::Outcome::default();
    for seed in 0..seeds {
        let outcome = run::run(seed, Rules::Sound, false);
        if let Some(violation) = outcome.violation {
            panic!("seed {seed}: {violation}\nreplay: cargo xtask simulate --seed {seed}");
        }
        sum.issued += outcome.issued;
        sum.voids += outcome.voids;
        sum.crashes += outcome.crashes;
        sum.passed_on += outcome.passed_on;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds of identities, {} ids, {} crashes, {} slots passed on, no repetition, {seconds:.1} s",
        sum.issued, sum.crashes, sum.passed_on
    );
    println!(
        "{} ids of a first identity that was rolled back, and forgotten by a crash",
        sum.voids
    );
    // A simulation in which nothing happens proves nothing.
    assert!(sum.issued as u64 > seeds * 50, "hardly anything was issued");
    assert!(
        seeds < 1000 || sum.passed_on as u64 > seeds / 10,
        "hardly a slot was passed on"
    );
    assert!(
        sum.voids < sum.issued / 20,
        "too much is beyond the promise"
    );
}

fn assert_rules_found(rules: Rules) {
    assert_found(&format!("{rules:?}"), |seed| {
        run::run(seed, rules, false).violation
    });
}

#[test]
fn finds_an_uncommitted_identity_that_issues() {
    assert_rules_found(Rules::UncommittedIssues);
}

#[test]
fn finds_floors_that_are_moments_between_layouts() {
    assert_rules_found(Rules::MomentsBetweenLayouts);
}

#[test]
fn finds_an_extension_dropped_without_a_note() {
    assert_rules_found(Rules::DropExtensionNotesNothing);
}

#[test]
fn finds_a_bound_noted_while_sessions_issue_on() {
    assert_rules_found(Rules::NotedWhileIssuing);
}

#[test]
fn finds_a_closed_word_that_a_leaving_session_opens() {
    assert_rules_found(Rules::LeavingReopens);
}

#[test]
fn finds_a_zone_that_is_forgotten() {
    assert_rules_found(Rules::ZoneNotNoted);
}

#[test]
fn finds_a_bound_that_is_counted_late() {
    assert_rules_found(Rules::BoundCountsLate);
}

#[test]
fn finds_a_slot_passed_on_before_the_note_is_committed() {
    assert_rules_found(Rules::PassedOnBeforeCommit);
}

#[test]
fn finds_a_key_read_after_the_swap() {
    assert_rules_found(Rules::KeyAfterSwap);
}

#[test]
fn finds_a_generation_not_looked_at_again() {
    assert_rules_found(Rules::NoSecondLook);
}

#[test]
fn finds_a_layout_that_the_register_does_not_follow() {
    assert_rules_found(Rules::RegistersLayoutOnly);
}

#[test]
fn finds_a_word_that_a_session_gets_after_the_others_were_closed() {
    assert_rules_found(Rules::ClosesOnlyWhatThereIs);
}

#[test]
fn finds_one_word_noted_where_there_are_two() {
    assert_rules_found(Rules::NotesOneWordOfMany);
}

#[test]
fn finds_a_word_that_goes_on_where_it_was_stopped() {
    assert_rules_found(Rules::GoesOnWhereItStopped);
}
