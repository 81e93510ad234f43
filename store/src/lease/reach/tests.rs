use keywright_core::{Layout, Preset};

use super::{first_above, first_above_foreign, first_above_granted};
use crate::lease::marks::mark;
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
fn what_was_granted_until_now_or_seen_by_somebody_is_reached() {
    let layout = Preset::Twitter.layout();
    let put_back = LeaseRow {
        hi_ms: NOW_MS - 3_600_000,
        ..row(1, None)
    };
    let seen_ms = NOW_MS + 900_000;
    let marked = LeaseRow {
        holder: Some(mark(seen_ms, "you pid 1")),
        ..put_back.clone()
    };
    for (rows, reached_ms) in [
        (vec![], NOW_MS + 17_000),
        (vec![put_back.clone()], NOW_MS + 17_000),
        (vec![put_back, marked], seen_ms - 1),
    ] {
        let reach = first_above_granted(&rows, &layout, &LIMITS);
        assert!(reach > layout.floor(reached_ms).unwrap().cast_unsigned());
        assert!(reach < layout.floor(reached_ms + 1_000).unwrap().cast_unsigned());
    }
}

/// One that was left long ago does not count: its ids may lie far above those of today.
#[test]
fn what_was_granted_in_another_layout_counts_while_that_is_in_use() {
    let layout = Preset::Twitter.layout();
    let greater = Layout::parse("twitter,epoch=2001-01-01").unwrap();
    let reach = |rows: &[LeaseRow]| first_above_granted(rows, &layout, &LIMITS);
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
