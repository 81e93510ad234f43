use keywright_core::{Layout, Preset};

use super::{first_above, first_above_foreign, first_above_granted};
use crate::lease::tests::{LIMITS, NOW_MS, row, twitter};
use crate::lease::{Era, LeaseRow, plan_claim};

#[test]
fn a_bound_of_another_server_reaches_as_far_as_a_takeover_leaves_out() {
    for hi_ms in [NOW_MS - 86_400_000, NOW_MS + 1_000, NOW_MS + 60_000] {
        let foreign = LeaseRow {
            hi_ms,
            server: "b".to_owned(),
            ..row(0, None)
        };
        let rows = std::slice::from_ref(&foreign);
        let claim = plan_claim(rows, &twitter(None), &LIMITS, &Era::default()).unwrap();
        let layout = &foreign.layout;
        let first = layout.smallest_id_from(claim.plan.start_state >> layout.sequence_bits());
        let reach = first_above_foreign(&foreign, layout, &LIMITS);
        assert_eq!(reach, first.cast_unsigned());
        assert!(reach > first_above(&foreign));
    }
}

#[test]
fn what_was_granted_before_the_server_was_started_reaches_as_far_as_a_claim_leaves_out() {
    let layout = Preset::Twitter.layout();
    let put_back = LeaseRow {
        hi_ms: NOW_MS - 3_600_000,
        ..row(1, None)
    };
    for up_ms in [0, 5_000, 600_000] {
        let started_ms = Some(NOW_MS - up_ms);
        let era = Era {
            started_ms,
            ..Era::default()
        };
        let rows = std::slice::from_ref(&put_back);
        let claim = plan_claim(rows, &twitter(Some(1)), &LIMITS, &era).unwrap();
        let first = layout.smallest_id_from(claim.plan.start_state >> layout.sequence_bits());
        for rows in [rows, &[]] {
            let reach = first_above_granted(rows, &layout, started_ms, &LIMITS);
            assert!(reach <= first.cast_unsigned());
            assert!(
                reach
                    > layout
                        .floor(NOW_MS - up_ms + 17_000)
                        .unwrap()
                        .cast_unsigned()
            );
        }
    }
    assert_eq!(first_above_granted(&[put_back], &layout, None, &LIMITS), 0);
}

/// One that was left long ago does not count: its ids may lie far above those of today.
#[test]
fn what_was_granted_in_another_layout_counts_while_that_is_in_use() {
    let layout = Preset::Twitter.layout();
    let greater = Layout::parse("twitter,epoch=2001-01-01").unwrap();
    let reach = |rows: &[LeaseRow]| first_above_granted(rows, &layout, Some(NOW_MS), &LIMITS);
    let of_greater = |owner| LeaseRow {
        layout: greater,
        hi_ms: NOW_MS - 3_600_000,
        ..row(0, owner)
    };
    let granted_ms = NOW_MS + 17_000;
    let above = greater.floor(granted_ms).unwrap().cast_unsigned();
    assert!(reach(&[of_greater(Some("you"))]) > above);
    assert!(reach(&[of_greater(None)]) > above);
    assert_eq!(reach(&[of_greater(None), row(1, None)]), reach(&[]));
}
