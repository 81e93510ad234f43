use keywright_core::residue::Residue;
use keywright_core::{Step, StepPolicy};
use proptest::prelude::*;

use super::{
    Ask, Ends, LastReservation, Returned, StepNumbers, StepTrack, TagRow, choose_returned,
    gap_after_loss, has_gone_back, number_past_rest, plan_reservation,
};

fn step(ids: i64) -> Step {
    Step::new(ids).unwrap()
}

fn row(number: u64, ends: Ends) -> TagRow {
    TagRow {
        number,
        ends,
        id_max: 1_000_000,
        step: step(100),
        policy: StepPolicy {
            step_min: step(50),
            step_max: step(400),
            cover_ms: 1_000,
        },
        residue: Residue::ALL,
        refill_percent: 50,
        last: None,
    }
}

fn ask(want: u64, need: u64) -> Ask {
    Ask {
        residue: Residue::ALL,
        want,
        need,
        floor: 0,
        now_ms: 1_795_219_200_000,
    }
}

/// First id, last id, new number.
fn plan(row: &TagRow, ask: &Ask) -> (u64, u64, u64) {
    let planned = plan_reservation(row, ask).unwrap();
    (planned.start, planned.end - 1, planned.number)
}

#[test]
fn ranges_end_where_the_others_say_they_end() {
    // Leaf: max_id 1 and 100 more give 1 to 100, and 101 is next.
    assert_eq!(plan(&row(1, Ends::NextId), &ask(100, 0)), (1, 100, 101));
    // tinyid: (0, 100].
    assert_eq!(plan(&row(0, Ends::LastId), &ask(100, 0)), (1, 100, 100));
    // Neither 10 nor 111, whichever of both is somebody else's.
    assert_eq!(plan(&row(10, Ends::Unknown), &ask(100, 0)), (11, 110, 111));
}

#[test]
fn zero_is_never_reserved() {
    assert_eq!(plan(&row(0, Ends::NextId), &ask(10, 0)), (1, 10, 11));
}

#[test]
fn the_store_does_not_go_back_behind_what_was_given() {
    let behind = Ask {
        floor: 500,
        ..ask(10, 0)
    };
    assert_eq!(plan(&row(7, Ends::NextId), &behind), (500, 509, 510));
}

#[test]
fn a_larger_request_gets_a_larger_range_up_to_the_last_id() {
    assert_eq!(
        plan(&row(1, Ends::NextId), &ask(10, 5_000)),
        (1, 5_000, 5_001)
    );
    let near = row(999_991, Ends::NextId);
    assert_eq!(plan(&near, &ask(100, 0)), (999_991, 1_000_000, 1_000_001));
    assert_eq!(plan(&near, &ask(100, 10)), (999_991, 1_000_000, 1_000_001));
    let refused = plan_reservation(&near, &ask(100, 11)).unwrap_err();
    assert_eq!(refused.at, 1_000_000);
    assert!(plan_reservation(&row(1_000_001, Ends::NextId), &ask(1, 0)).is_err());
}

#[test]
fn another_server_s_number_is_left_behind_by_a_gap() {
    let now_ms = ask(1, 0).now_ms;
    let last = |same_server| {
        Some(LastReservation {
            same_server,
            at_ms: now_ms - 10_000,
            ids: 100,
            rate_per_s: 16,
        })
    };
    let ours = TagRow {
        last: last(true),
        ..row(1, Ends::NextId)
    };
    assert_eq!(plan(&ours, &ask(10, 0)).0, 1);
    let theirs = TagRow {
        last: last(false),
        ..row(1, Ends::NextId)
    };
    // Twice 100 rounded up to 256, and twice 16 a second for 10 s.
    assert!(plan(&theirs, &ask(10, 0)).0 > 256 + 320);
}

/// A row after reservations of so many ids each, with so many milliseconds between them; and the moment of the last.
fn reserved(reservations: &[(i64, u64)]) -> (TagRow, i64) {
    let mut row = row(1, Ends::NextId);
    let mut now_ms = ask(1, 0).now_ms;
    for (after_ms, ids) in reservations {
        now_ms += after_ms;
        let planned = plan_reservation(
            &row,
            &Ask {
                now_ms,
                ..ask(*ids, 0)
            },
        )
        .unwrap();
        row.number = planned.number;
        row.last = Some(LastReservation {
            same_server: true,
            at_ms: planned.recorded.at_ms,
            ids: planned.recorded.ids,
            rate_per_s: planned.recorded.rate_per_s,
        });
    }
    (row, now_ms)
}

/// What is left out by another server so long after the last reservation, milliseconds.
fn gap(reservations: &[(i64, u64)], later_ms: i64) -> u64 {
    let (row, now_ms) = reserved(reservations);
    let last = row.last.map(|last| LastReservation {
        same_server: false,
        ..last
    });
    gap_after_loss(&TagRow { last, ..row }, now_ms + later_ms)
}

/// A backup of the night lacks what the day after used, and the day before was as fast.
#[test]
fn a_gap_is_for_the_fastest_use_so_far() {
    let day = [(2_000, 20_000); 3];
    let night = [(3_600_000, 100); 3];
    let all = [day.as_slice(), night.as_slice()].concat();
    let lost_ms = 600_000;
    assert!(
        gap(&all, lost_ms) >= 2 * 10_000 * 600,
        "{}",
        gap(&all, lost_ms)
    );
    assert!(gap(&night, lost_ms) < 10_000);
}

/// Else a gap after a moment with several would take most of a tag.
#[test]
fn reservations_within_a_second_count_as_one() {
    let (row, _) = reserved(&[(0, 100), (5, 100), (5, 100), (980, 100), (1_010, 100)]);
    let last = row.last.unwrap();
    assert_eq!((last.ids, last.rate_per_s), (100, 300));
    // None of them is less lost for that.
    assert!(gap(&[(0, 100), (5, 4_000), (5, 100)], 0) >= 2 * 4_200);
}

#[test]
fn a_number_below_what_was_seen_is_noticed() {
    let now_ms = ask(10, 0).now_ms;
    assert!(!has_gone_back(&row(500, Ends::NextId), 500, now_ms));
    assert!(has_gone_back(&row(499, Ends::NextId), 500, now_ms));
    assert!(!has_gone_back(&row(499, Ends::LastId), 500, now_ms));
    // A promoted replica that lacks the last reservation.
    let replica = TagRow {
        last: Some(LastReservation {
            same_server: false,
            at_ms: now_ms,
            ids: 200,
            rate_per_s: 0,
        }),
        ..row(400, Ends::NextId)
    };
    assert!(!has_gone_back(&replica, 500, now_ms));
    assert!(has_gone_back(&replica, 50_000, now_ms));
}

#[test]
fn the_step_begins_small_and_follows_demand() {
    let row = row(1, Ends::NextId);
    let mut steps = StepTrack::default();
    let mut wanted = Vec::new();
    for now_ms in [0, 10, 20, 30, 40, 50, 3_050, 7_000] {
        wanted.push(steps.want(&row, now_ms));
        steps.reserved(&row, now_ms);
    }
    assert_eq!(wanted, [10, 100, 200, 400, 400, 400, 200, 100]);
}

#[test]
fn numbers_of_a_table_are_checked() {
    let numbers = |step, step_min, step_max| StepNumbers {
        step,
        step_min,
        step_max,
        cover_ms: 1,
    };
    assert!(numbers(100, 100, 1_000).check().is_ok());
    assert!(numbers(0, 1, 10).check().is_err());
    assert!(numbers(10, -1, 10).check().is_err());
    assert!(numbers(10, 1, i64::MAX).check().is_err());
}

#[test]
fn rests_are_used_from_the_lowest_above_what_was_given() {
    let range = |key, start, end| Returned { key, start, end };
    let ranges = [range(1, 50, 60), range(2, 10, 20), range(3, 30, 30)];
    assert_eq!(choose_returned(&ranges, 0), Some(range(2, 10, 20)));
    assert_eq!(choose_returned(&ranges, 11), Some(range(1, 50, 60)));
    assert_eq!(choose_returned(&ranges, 51), None);
}

#[test]
fn a_rest_that_is_used_shows_in_the_bound() {
    for ends in [Ends::NextId, Ends::LastId, Ends::Unknown] {
        let before = row(101, ends);
        let number = number_past_rest(&before).unwrap();
        let seen = ends.first_free(number);
        assert!(has_gone_back(&before, seen, 0), "{ends:?}");
        assert!(!has_gone_back(&row(number, ends), seen, 0), "{ends:?}");
    }
    assert_eq!(number_past_rest(&row(101, Ends::NextId)), Some(102));
    assert_eq!(number_past_rest(&row(100, Ends::LastId)), Some(101));
    // A tag may use up its last id for that, and none beyond.
    let last = row(1_000_000, Ends::NextId);
    assert_eq!(number_past_rest(&last), Some(1_000_001));
    assert_eq!(number_past_rest(&row(1_000_001, Ends::NextId)), None);
    assert_eq!(number_past_rest(&row(1_000_000, Ends::LastId)), None);
}

proptest! {
    /// Whatever several issuers ask for one after the other, their ranges follow each other and hold what was needed.
    #[test]
    fn ranges_never_overlap(
        start in 0..10_000_u64,
        asks in proptest::collection::vec((1..500_u64, 0..2_000_u64, 1..20_i64), 1..40),
        ends in prop_oneof![Just(Ends::NextId), Just(Ends::LastId), Just(Ends::Unknown)],
    ) {
        let mut number = start;
        let mut above = 0;
        for (want, need, modulus) in asks {
            let residue = Residue::new(modulus, modulus - 1).unwrap();
            let request = Ask { residue, ..ask(want, need) };
            let planned = plan_reservation(&TagRow { id_max: u64::MAX >> 1, ..row(number, ends) }, &request).unwrap();
            prop_assert!(planned.start > above || above == 0);
            prop_assert!(planned.start >= 1 && planned.start < planned.end);
            let usable = residue.index_from(planned.end) - residue.index_from(planned.start);
            prop_assert!(usable >= need.max(want));
            prop_assert!(planned.number > number);
            above = planned.end - 1;
            number = planned.number;
        }
    }
}

/// As behind a life of the server whose clock was ahead: nobody knows how long it lasted.
#[test]
fn a_reservation_dated_ahead_says_nothing_of_how_fast_ids_go() {
    let ask = ask(100, 0);
    let row = TagRow {
        last: Some(LastReservation {
            same_server: true,
            at_ms: ask.now_ms + 300_000,
            ids: 1_000_000,
            rate_per_s: 7,
        }),
        ..row(1, Ends::NextId)
    };
    let planned = plan_reservation(&row, &ask).unwrap();
    assert_eq!(planned.recorded.rate_per_s, 7);
}
