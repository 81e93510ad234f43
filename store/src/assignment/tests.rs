use keywright_core::Mark;

use super::*;

fn mark(asks: u32, random: u128) -> Mark {
    Mark { asks, random }
}

pub(super) fn database(oid: u32) -> DatabaseName {
    DatabaseName {
        system: "7".to_owned(),
        oid,
        place: format!("db:5432/{oid}"),
    }
}

pub(super) fn row(worker_id: u32, mark: Mark) -> AssignedRow {
    AssignedRow {
        worker_id,
        state: AssignmentState::Assigned,
        mark,
        next: None,
        asks: mark.asks,
        is_used: true,
        bound_ms: None,
        database: database(worker_id),
        assigned_at_ms: 0,
        asked_at_ms: 0,
        released_at_ms: None,
        is_restored: false,
        report: None,
    }
}

fn asker(mark: Mark, worker_id: Option<u32>) -> Asker {
    Asker {
        mark,
        worker_id,
        is_same_life: true,
        database: database(worker_id.unwrap_or(1)),
    }
}

fn numbers(rows: &[AssignedRow], next_id: u32) -> Numbers<'_> {
    Numbers {
        rows,
        range: IdRange { first: 5, last: 7 },
        next_id,
        is_restored: false,
    }
}

#[test]
fn numbers_are_given_in_their_order_and_each_once() {
    let plan = |rows: &[AssignedRow], next_id| {
        let ask = plan_ask(&numbers(rows, next_id), &asker(mark(0, 9), None));
        ask.map(|ask| (ask.worker_id, ask.from))
    };
    assert_eq!(plan(&[], 5), Ok((5, Found::New)));
    assert_eq!(plan(&[row(5, mark(1, 1))], 6), Ok((6, Found::New)));
    let all = [5, 6, 7].map(|id| row(id, mark(1, id.into())));
    let range = IdRange { first: 5, last: 7 };
    assert_eq!(plan(&all, 8), Err(Refused::NoneLeft { range }));
}

#[test]
fn what_was_released_first_is_given_again_when_nothing_else_is_left() {
    let mut rows = [5, 6, 7].map(|id| row(id, mark(1, id.into())));
    for (row, at_ms) in rows.iter_mut().zip([30, 20, 10]) {
        row.state = AssignmentState::Released;
        row.released_at_ms = Some(at_ms);
    }
    rows[2].state = AssignmentState::Retired;
    let plan = |next_id| plan_ask(&numbers(&rows, next_id), &asker(mark(0, 9), None)).unwrap();
    assert_eq!(plan(7).from, Found::New);
    assert_eq!(
        (plan(8).worker_id, plan(8).from),
        (6, Found::Released { asks: 1 })
    );
}

/// Each mark that the row knows may be the database's; each other one is a copy's.
#[test]
fn a_database_is_known_by_either_mark_and_a_copy_by_none() {
    let (old, sent, other) = (mark(3, 1), mark(4, 2), mark(3, 7));
    let its = AssignedRow {
        next: Some(sent),
        asks: 4,
        ..row(5, old)
    };
    let rows = [its];
    let plan = |mark, worker_id| plan_ask(&numbers(&rows, 6), &asker(mark, worker_id));
    for known in [old, sent] {
        for worker_id in [Some(5), None] {
            let ask = plan(known, worker_id).unwrap();
            assert_eq!((ask.worker_id, ask.from), (5, Found::Own { asks: 4 }));
            assert_eq!(ask.asks, 5, "each ask counts");
        }
    }
    assert!(matches!(
        plan(other, Some(5)),
        Err(Refused::Stale { worker_id: 5, .. })
    ));
    // Who has no number yet gets one of its own, whatever it was copied from.
    assert_eq!(plan(other, None).unwrap().from, Found::New);
}

/// One that was confirmed may have its number, and nobody knows.
#[test]
fn a_number_that_was_confirmed_goes_to_the_same_life_only() {
    let its = row(5, mark(3, 1));
    let unconfirmed = AssignedRow {
        is_used: false,
        ..row(6, mark(3, 2))
    };
    let rows = [its, unconfirmed];
    let plan = |mark, is_same_life| {
        let asker = Asker {
            is_same_life,
            ..asker(mark, None)
        };
        plan_ask(&numbers(&rows, 7), &asker).map(|ask| ask.worker_id)
    };
    assert_eq!(plan(mark(3, 1), true), Ok(5));
    let refused = Err(Refused::MayBeAnothers { worker_id: 5 });
    assert_eq!(plan(mark(3, 1), false), refused);
    assert_eq!(plan(mark(3, 2), true), Ok(6));
    assert_eq!(plan(mark(3, 2), false), Ok(6));
}

#[test]
fn what_was_given_up_is_nobodys() {
    for state in [AssignmentState::Released, AssignmentState::Retired] {
        let its = AssignedRow {
            state,
            ..row(5, mark(3, 1))
        };
        let asked = plan_ask(&numbers(&[its], 6), &asker(mark(3, 1), Some(5)));
        assert!(matches!(asked, Err(Refused::Stale { worker_id: 5, .. })));
    }
}

#[test]
fn a_store_that_went_back_is_told_from_a_copy() {
    let rows = [row(5, mark(3, 1))];
    let plan = |numbers: &Numbers<'_>, mark, id| plan_ask(numbers, &asker(mark, Some(id)));
    // Of an ask that the store does not know.
    let behind = Err(Refused::StoreBehind { worker_id: 5 });
    assert_eq!(plan(&numbers(&rows, 6), mark(4, 2), 5), behind);
    let behind = Err(Refused::StoreBehind { worker_id: 6 });
    assert_eq!(plan(&numbers(&rows, 6), mark(1, 2), 6), behind);
    // Somebody has said since up to which number they were given.
    let lost = plan(&numbers(&rows, 7), mark(1, 2), 6).unwrap();
    assert_eq!(lost.from, Found::Lost);
}

#[test]
fn after_a_restore_whoever_comes_first_goes_on_and_nothing_new_is_given() {
    let its = AssignedRow {
        is_restored: true,
        ..row(5, mark(3, 1))
    };
    let rows = [its];
    let restored = Numbers {
        is_restored: true,
        ..numbers(&rows, 6)
    };
    for unknown in [mark(3, 8), mark(9, 8)] {
        let ask = plan_ask(&restored, &asker(unknown, Some(5))).unwrap();
        assert_eq!(ask.from, Found::Own { asks: 3 });
        assert!(ask.asks > unknown.asks.max(3));
    }
    // A database elsewhere is not the one that the row names.
    let elsewhere = Asker {
        database: database(99),
        ..asker(mark(2, 8), Some(5))
    };
    assert!(matches!(
        plan_ask(&restored, &elsewhere),
        Err(Refused::Stale { .. })
    ));
    let new = plan_ask(&restored, &asker(mark(0, 8), None));
    assert_eq!(new, Err(Refused::Restored));
}
