mod kept;
mod meanwhile;

use keywright_core::slot::SlotGroups;
use keywright_core::{Step, StepPolicy, Tag};

use super::*;
use crate::clock::SystemClock;
use crate::reserve::{Ends, TagRow};
use crate::seat::Seat;
use crate::sources::source::{Source, Supply};
use crate::sources::stats::{Remaining, SourceStats};
use crate::spec::KeySpec;

const LIMITS: Limits = Limits {
    connections_max: 1,
    store_ms_max: 1_000,
    wait_ms_max: 1_000,
    waiters_max: 1,
    backoff_ms_min: 1,
    backoff_ms_max: 1,
    range_ids_max: 1_000,
};

/// Of a program that does not stand for the lease of ordered tags.
fn seat() -> Arc<Seat> {
    Arc::new(Seat::new(
        Arc::new(SystemClock),
        SlotGroups::ONE.of(b"orders"),
    ))
}

fn granted(residue: Residue, start: u64, end: u64) -> Granted {
    let step = Step::new(100).unwrap();
    Granted {
        start,
        end,
        residue,
        row: TagRow {
            number: end,
            ends: Ends::NextId,
            id_max: u64::MAX,
            step,
            last: None,
            policy: StepPolicy {
                step_min: step,
                step_max: step,
                cover_ms: 900_000,
            },
            residue,
            refill_percent: 20,
        },
        id_max: Some(1_000),
        server: "s".to_owned(),
        gap: 0,
        was_returned: false,
        generation: 0,
        key_space: "k".into(),
    }
}

/// What is handed back of these ranges, of which so many keys were taken.
fn handed_back(residue: Residue, ranges: &[(u64, u64)], taken: u64) -> Vec<(u64, u64)> {
    let limits = LIMITS;
    let tag = Tag::parse("orders").unwrap();
    let supply = SegmentSupply::new("segment:orders".to_owned(), (tag, residue), &limits, seat());
    let mut state = Refilling::new(&limits);
    for (start, end) in ranges {
        assert!(accept(
            &supply,
            &mut state,
            &granted(residue, *start, *end),
            0
        ));
    }
    for _ in 0..taken {
        assert!(supply.try_take(1, true).is_some());
    }
    let rests = supply.take_rest(true);
    rests.iter().map(|rest| (rest.start, rest.end)).collect()
}

#[test]
fn ranges_of_others_are_not_handed_back() {
    let class = Residue::new(10, 5).unwrap();
    for (first, second) in [
        ((11, 111), (113, 213)),
        ((1, 101), (105, 305)),
        ((1, 96), (100, 200)),
    ] {
        for taken in 0..10 {
            for (start, end) in handed_back(class, &[first, second], taken) {
                let of_one = [first, second]
                    .iter()
                    .any(|(from, to)| *from <= start && end <= *to);
                assert!(of_one, "{start}..{end} of {first:?} and {second:?}");
            }
        }
    }
}

#[test]
fn a_range_without_an_id_of_ours_does_not_bridge_a_hole() {
    let class = Residue::new(10, 5).unwrap();
    let ranges = [(1, 101), (102, 104), (104, 204)];
    for taken in 0..10 {
        for (start, end) in handed_back(class, &ranges, taken) {
            // 101 is somebody else's.
            assert!(end <= 101 || 101 < start, "{start}..{end}");
        }
    }
}

#[test]
fn ranges_that_continue_each_other_are_handed_back_as_one() {
    let class = Residue::new(10, 5).unwrap();
    assert_eq!(handed_back(class, &[(1, 101), (101, 201)], 3), [(35, 196)]);
    assert_eq!(
        handed_back(class, &[(1, 101), (101, 103), (103, 201)], 3),
        [(35, 196)]
    );
    assert_eq!(
        handed_back(Residue::ALL, &[(1, 101), (101, 201)], 3),
        [(4, 201)]
    );
    assert_eq!(
        handed_back(Residue::ALL, &[(1, 101), (102, 201)], 3),
        [(4, 101), (102, 201)]
    );
}

#[test]
fn ranges_of_an_older_generation_are_dropped_also_when_they_come_late() {
    let tag = Tag::parse("orders").unwrap();
    let supply = SegmentSupply::new(
        "segment:orders".to_owned(),
        (tag, Residue::ALL),
        &LIMITS,
        seat(),
    );
    let mut state = Refilling::new(&LIMITS);
    let granted = |start, end, generation| Granted {
        generation,
        ..granted(Residue::ALL, start, end)
    };
    assert!(accept(&supply, &mut state, &granted(1, 11, 0), 0));
    assert!(supply.try_take(1, true).is_some());
    supply.follow(1);
    assert_eq!(supply.remaining(), 0);
    assert!(accept(&supply, &mut state, &granted(11, 21, 0), 0));
    assert_eq!(supply.remaining(), 0, "a late answer was believed");
    assert!(accept(&supply, &mut state, &granted(31, 41, 1), 0));
    assert_eq!(supply.remaining(), 10);
    let rests = supply.take_rest(true);
    assert_eq!(
        rests.iter().map(|rest| rest.generation).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn what_lies_among_ids_of_tables_is_dropped_also_when_it_comes_late() {
    let tag = Tag::parse("orders").unwrap();
    let name = "segment:orders".to_owned();
    let class = Residue::new(2, 1).unwrap();
    let supply = SegmentSupply::new(name, (tag, class), &LIMITS, seat());
    let mut state = Refilling::new(&LIMITS);
    let granted = |start, end| granted(class, start, end);
    assert!(accept(&supply, &mut state, &granted(1, 21), 0));
    assert!(supply.try_take(1, true).is_some());
    // All that is left lies above.
    supply.leave_out(3);
    assert_eq!(supply.remaining(), 9);
    supply.leave_out(4);
    assert_eq!(supply.remaining(), 0);
    supply.leave_out(31);
    assert!(accept(&supply, &mut state, &granted(21, 41), 0));
    assert_eq!(supply.remaining(), 0, "a late answer was believed");
    // Never back.
    supply.leave_out(5);
    assert!(accept(&supply, &mut state, &granted(29, 51), 0));
    assert_eq!(supply.remaining(), 0);
    assert!(accept(&supply, &mut state, &granted(31, 51), 0));
    assert_eq!(supply.remaining(), 10);
}

#[test]
fn what_comes_late_of_keys_that_tables_have_left_is_dropped() {
    let tag = Tag::parse("orders").unwrap();
    let name = "segment:orders".to_owned();
    let supply = SegmentSupply::new(name, (tag, Residue::ALL), &LIMITS, seat());
    let mut state = Refilling::new(&LIMITS);
    let granted = |start, end| granted(Residue::ALL, start, end);
    assert!(accept(&supply, &mut state, &granted(1, 11), 0));
    supply.leave();
    assert_eq!(supply.remaining(), 0);
    assert!(accept(&supply, &mut state, &granted(11, 21), 0));
    assert_eq!(supply.remaining(), 0, "a late answer was believed");
    supply.follow(0);
    assert!(accept(&supply, &mut state, &granted(21, 31), 0));
    assert_eq!(supply.remaining(), 10);
}

/// Keys that are left are given while none can be reserved, and where nobody has asked for any it is not known that none can be.
#[test]
fn a_source_gives_nothing_that_has_no_keys_and_cannot_reserve() {
    let tag = Tag::parse("orders").unwrap();
    let name = "segment:orders".to_owned();
    let supply = SegmentSupply::new(name, (tag.clone(), Residue::ALL), &LIMITS, seat());
    let supply = Arc::new(supply);
    let source = Source::new(
        KeySpec::Segment(tag),
        LIMITS.range_ids_max,
        Supply::Segment(Arc::clone(&supply)),
    );
    let away = || {
        let failure = Failure::new(Cause::StoreUnavailable, "away");
        supply.demand.failed(failure, 0, Outlook::MayPass);
    };
    assert!(!source.gives_nothing());
    away();
    assert!(source.gives_nothing());
    supply.demand.want_no_more();
    assert!(!source.gives_nothing(), "nobody wants any");
    supply.demand.want();
    let mut state = Refilling::new(&LIMITS);
    let two = granted(Residue::ALL, 1, 3);
    assert!(accept(&supply, &mut state, &two, 0));
    away();
    assert!(!source.gives_nothing(), "two are left");
    assert!(supply.try_take(2, true).is_some());
    assert!(source.gives_nothing());
}

/// What is told of it is as of the last reservation; a key port does not say where the tag ends.
#[test]
fn what_a_tag_has_left_is_told_from_the_first_reservation_on() {
    let tag = Tag::parse("orders").unwrap();
    let name = "segment:orders".to_owned();
    let supply = SegmentSupply::new(name, (tag, Residue::ALL), &LIMITS, seat());
    let mut state = Refilling::new(&LIMITS);
    let left = || SourceStats::of(&supply.demand, Remaining::Keys(0), None).tag_left;
    let granted = |start, end| granted(Residue::ALL, start, end);
    assert_eq!(left(), None);
    assert!(accept(&supply, &mut state, &granted(1, 11), 0));
    assert_eq!(left(), Some(990));
    // A rest that was handed back lies below the bound.
    let mut rest = granted(11, 21);
    rest.row.number = 501;
    rest.was_returned = true;
    assert!(accept(&supply, &mut state, &rest, 0));
    assert_eq!(left(), Some(500));
    let mut of_key_port = granted(501, 511);
    of_key_port.id_max = None;
    assert!(accept(&supply, &mut state, &of_key_port, 0));
    assert_eq!(left(), Some(500));
    let exhausted = TagExhausted { at: 1_000 };
    tell_exhausted(&supply, exhausted, 600);
    assert_eq!(left(), Some(500), "fewer may be had");
    tell_exhausted(&supply, exhausted, 0);
    assert_eq!(left(), Some(0));
}
