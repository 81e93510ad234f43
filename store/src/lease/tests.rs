use keywright_core::{BeforeEpoch, Layout, Moment, Preset};

use super::{
    Claimant, Era, HeldLease, LeaseRow, NoLease, Standing, TakeoverLimits, plan_claim, standing,
};
use crate::worker_ids::{IdRange, Leasable};

pub(super) const NOW_MS: i64 = 1_795_219_200_000;

pub(super) const LIMITS: TakeoverLimits = TakeoverLimits {
    now_ms: NOW_MS,
    lead_ms_max: 10_000,
    skew_ms_max: 7_000,
    window_ms: 5_000,
};

pub(super) fn row(worker_id: u32, owner: Option<&str>) -> LeaseRow {
    LeaseRow {
        worker_id,
        owner: owner.map(str::to_owned),
        holder: owner.map(|owner| format!("{owner} pid 1")),
        epoch: 4,
        hi_ms: NOW_MS + 1_000,
        layout: Preset::Twitter.layout(),
        server: "a".to_owned(),
        expired: false,
    }
}

pub(super) fn claimant(wanted: Option<u32>, layout: Layout) -> Claimant {
    Claimant {
        owner: "me".to_owned(),
        wanted,
        worker_id_max: 2,
        leasable: Leasable::ANY,
        layout,
        server: "a".to_owned(),
        floor_state: 0,
        last: None,
        gone_back_from_ms: None,
        generation: None,
    }
}

pub(super) fn twitter(wanted: Option<u32>) -> Claimant {
    claimant(wanted, Preset::Twitter.layout())
}

#[test]
fn one_s_own_then_a_free_then_a_new_worker_id() {
    let chosen = |rows: &[LeaseRow]| {
        plan_claim(rows, &twitter(None), &LIMITS, &Era::default()).map(|claim| claim.worker_id)
    };
    assert_eq!(chosen(&[]), Ok(0));
    assert_eq!(chosen(&[row(0, Some("you")), row(1, None)]), Ok(1));
    assert_eq!(chosen(&[row(0, None), row(1, Some("me"))]), Ok(1));
    assert_eq!(chosen(&[row(0, Some("you")), row(1, Some("you"))]), Ok(2));
    let expired = LeaseRow {
        expired: true,
        ..row(1, Some("you"))
    };
    assert_eq!(chosen(&[row(0, Some("you")), expired]), Ok(1));
    let all = [row(0, Some("x")), row(1, Some("y")), row(2, Some("z"))];
    assert_eq!(chosen(&all), Err(NoLease::NoneFree { worker_id_max: 2 }));
}

#[test]
fn only_what_may_be_leased_is_chosen() {
    let within = |first, last| Claimant {
        leasable: Leasable {
            within: IdRange { first, last },
            without: None,
        },
        ..twitter(None)
    };
    let chosen = |rows: &[LeaseRow], claimant: &Claimant| {
        plan_claim(rows, claimant, &LIMITS, &Era::default()).map(|claim| claim.worker_id)
    };
    assert_eq!(chosen(&[], &within(1, 2)), Ok(1));
    assert_eq!(chosen(&[row(0, None)], &within(1, 2)), Ok(1));
    assert_eq!(chosen(&[row(1, Some("you"))], &within(1, 2)), Ok(2));
    // One that it had before the range was said goes, too.
    assert_eq!(chosen(&[row(0, Some("me"))], &within(1, 2)), Ok(1));
    let none = chosen(&[row(1, Some("you"))], &within(1, 1));
    assert_eq!(none, Err(NoLease::NoneFree { worker_id_max: 2 }));
}

#[test]
fn a_worker_id_in_use_is_refused() {
    let refused = plan_claim(
        &[row(1, Some("you"))],
        &twitter(Some(1)),
        &LIMITS,
        &Era::default(),
    );
    // By the words of the list of worker ids.
    let told = refused.unwrap_err().to_string();
    assert_eq!(told, "worker id 1 is leased by you pid 1");
}

#[test]
fn it_starts_at_the_old_bound_and_further_where_that_may_be_lost() {
    let start = |rows: &[LeaseRow]| {
        let claim = plan_claim(rows, &twitter(Some(1)), &LIMITS, &Era::default()).unwrap();
        (claim.epoch, claim.plan.start_ms - NOW_MS)
    };
    assert_eq!(start(&[row(1, None)]), (5, 1_000));
    let elsewhere = LeaseRow {
        server: "b".to_owned(),
        ..row(1, None)
    };
    assert_eq!(start(&[elsewhere]), (5, 17_001));
    assert_eq!(start(&[]), (1, 17_001));
}

#[test]
fn it_starts_above_what_it_issued_itself_whatever_the_row_says() {
    let layout = Preset::Twitter.layout();
    let issued_until = layout.state_at(NOW_MS + 3_000) + 5;
    let back = Claimant {
        floor_state: issued_until,
        ..twitter(Some(1))
    };
    let lowered = plan_claim(&[row(1, Some("me"))], &back, &LIMITS, &Era::default()).unwrap();
    assert_eq!(lowered.plan.start_state, issued_until);
    assert!(layout.state_at(lowered.plan.bound_ms) >= lowered.plan.hi_state);
    assert!(lowered.plan.hi_state > issued_until);
    let ahead = LeaseRow {
        hi_ms: NOW_MS + 9_000,
        ..row(1, Some("me"))
    };
    let plan = plan_claim(&[ahead], &back, &LIMITS, &Era::default())
        .unwrap()
        .plan;
    assert_eq!(plan.start_ms, NOW_MS + 9_000);
}

#[test]
fn a_store_that_went_back_leases_nothing_to_those_who_saw_more() {
    let had = |published_ms: i64, server: &str| HeldLease {
        worker_id: 1,
        owner: "me".to_owned(),
        epoch: 4,
        published_ms: NOW_MS + published_ms,
        attempted_ms: NOW_MS + published_ms,
        server: server.to_owned(),
        generation: 0,
    };
    let after = |last| Claimant {
        last: Some(last),
        ..twitter(None)
    };
    let refused = |rows: &[LeaseRow], claimant: &Claimant| {
        matches!(
            plan_claim(rows, claimant, &LIMITS, &Era::default()),
            Err(NoLease::GoneBack { worker_id: 1, .. })
        )
    };
    // Rows are at NOW_MS + 1,000.
    let rows = [row(0, None), row(1, None)];
    assert!(!refused(&rows, &after(had(1_000, "a"))));
    assert!(refused(&rows, &after(had(1_001, "a"))));
    assert!(
        refused(&rows[..1], &after(had(1_000, "a"))),
        "its row is gone"
    );
    // What an asynchronous replica has lost is covered by a gap.
    assert!(!refused(&rows, &after(had(1_001, "b"))));
    // Known once, it takes all rows to make up for it.
    let known = Claimant {
        gone_back_from_ms: Some(NOW_MS + 2_000),
        ..after(had(2_000, "a"))
    };
    let raised = |worker_id| LeaseRow {
        hi_ms: NOW_MS + 2_000,
        ..row(worker_id, None)
    };
    assert!(refused(&[row(0, None), raised(1)], &known));
    assert!(!refused(&[raised(0), raised(1)], &known));
}

/// Whatever the rows say: by such a clock, whoever has lost them begins where others began.
#[test]
fn nobody_takes_a_worker_id_over_before_the_epoch() {
    let layout = Layout::parse("leaf,epoch=2027-01-01").unwrap();
    let epoch_ms = layout.epoch_ms();
    let ask = |rows: &[LeaseRow], now_ms| {
        let limits = TakeoverLimits { now_ms, ..LIMITS };
        plan_claim(rows, &claimant(None, layout), &limits, &Era::default())
    };
    let had = LeaseRow {
        hi_ms: epoch_ms + 9_000,
        layout,
        ..row(0, Some("me"))
    };
    for now_ms in [0, NOW_MS, epoch_ms - 1] {
        for rows in [vec![], vec![had.clone()]] {
            let refused = NoLease::BeforeEpoch(BeforeEpoch {
                now: Moment(now_ms),
                epoch: Moment(epoch_ms),
            });
            assert_eq!(ask(&rows, now_ms), Err(refused));
        }
    }
    let first = ask(&[], epoch_ms).unwrap();
    assert_eq!(first.plan.start_ms, epoch_ms + 17_001);
    let again = ask(&[had], epoch_ms).unwrap();
    assert_eq!(again.plan.start_ms, epoch_ms + 9_000);
}

#[test]
fn another_layout_must_give_greater_ids_and_wait_for_leases() {
    let greater = Layout::parse("twitter,epoch=2001-01-01").unwrap();
    let smaller = Preset::ShardingSphere.layout();
    let plan = |rows: &[LeaseRow], layout| {
        plan_claim(rows, &claimant(Some(2), layout), &LIMITS, &Era::default())
    };
    let live = plan(&[row(1, Some("you"))], greater);
    assert!(matches!(
        live,
        Err(NoLease::OtherLayout { worker_id: 1, .. })
    ));
    let overlap = plan(&[row(1, None)], smaller);
    assert!(matches!(
        overlap,
        Err(NoLease::LayoutOverlap { worker_id: 1, .. })
    ));
    assert!(plan(&[row(1, None)], greater).is_ok());
}

#[test]
fn only_what_we_wrote_ourselves_is_ours() {
    let held = HeldLease {
        worker_id: 1,
        owner: "me".to_owned(),
        epoch: 4,
        published_ms: 100,
        attempted_ms: 200,
        server: "a".to_owned(),
        generation: 0,
    };
    let found = |owner: &str, epoch, hi_ms| LeaseRow {
        epoch,
        hi_ms,
        ..row(1, Some(owner))
    };
    let check = |row: Option<LeaseRow>, server| standing(row.as_ref(), &held, server);
    assert_eq!(
        check(Some(found("me", 4, 100)), "a"),
        Standing::Ours { hi_ms: 100 }
    );
    assert_eq!(
        check(Some(found("me", 4, 200)), "a"),
        Standing::Ours { hi_ms: 200 }
    );
    for (row, server) in [
        (None, "a"),
        (Some(found("me", 4, 150)), "a"),
        (Some(found("me", 5, 100)), "a"),
        (Some(found("you", 4, 100)), "a"),
        (Some(found("me", 4, 100)), "b"),
    ] {
        assert_eq!(check(row, server), Standing::Lost);
    }
}

/// Of a store that was put back under programs that run: one of them may have been granted more than its row says, and has not noticed.
#[test]
fn it_starts_above_all_that_was_granted_before_the_server_was_started() {
    let start = |started_ms: Option<i64>, hi_ms: i64| {
        let era = Era {
            started_ms,
            ..Era::default()
        };
        let old = LeaseRow {
            hi_ms: NOW_MS + hi_ms,
            ..row(1, None)
        };
        let claim = plan_claim(&[old], &twitter(Some(1)), &LIMITS, &era).unwrap();
        claim.plan.start_ms - NOW_MS
    };
    // Any bound before that lies within the lead, by a clock that was ahead by the skew.
    assert_eq!(start(Some(NOW_MS), -60_000), 17_001);
    assert_eq!(start(Some(NOW_MS - 3_000), -60_000), 14_001);
    assert_eq!(start(Some(NOW_MS - 3_000), 20_000), 20_000);
    // Later, and where nobody says it, by the row alone.
    assert!(start(Some(NOW_MS - 30_000), -60_000) <= 0);
    assert_eq!(start(None, -60_000), -60_000);
}

/// Its ids are greater than all that the rows tell of, and smaller than some that a holder may have been granted beyond.
#[test]
fn another_layout_gives_greater_ids_than_all_that_was_granted_before_the_server_was_started() {
    // Twitter's epoch, and half a minute.
    let later = Layout::parse("twitter,epoch=1288835004657").unwrap();
    let old = LeaseRow {
        hi_ms: NOW_MS - 60_000,
        ..row(1, None)
    };
    let plan = |started_ms: i64| {
        let era = Era {
            started_ms: Some(started_ms),
            ..Era::default()
        };
        let rows = std::slice::from_ref(&old);
        plan_claim(rows, &claimant(Some(2), later), &LIMITS, &era)
    };
    assert!(plan(NOW_MS - 600_000).is_ok());
    let overlap = plan(NOW_MS);
    assert!(
        matches!(overlap, Err(NoLease::LayoutOverlap { worker_id: 1, .. })),
        "{overlap:?}"
    );
}

/// Its ids may grow faster, and be greater by now if anybody made any.
#[test]
fn a_layout_that_was_left_long_ago_is_not_in_the_way_behind_a_start_of_the_server() {
    const YEAR_MS: i64 = 365 * 86_400_000;
    let new = Layout::parse("twitter,epoch=946684800000").unwrap();
    let old = LeaseRow {
        hi_ms: NOW_MS - YEAR_MS,
        layout: Layout::parse("baidu,epoch=1690000000000").unwrap(),
        ..row(1, None)
    };
    let since = LeaseRow {
        hi_ms: NOW_MS - 60_000,
        layout: new,
        ..row(0, None)
    };
    let era = Era {
        started_ms: Some(NOW_MS),
        ..Era::default()
    };
    let plan = |rows: &[LeaseRow]| plan_claim(rows, &claimant(Some(2), new), &LIMITS, &era);
    assert!(plan(&[old.clone(), since]).is_ok());
    let overlap = plan(&[old]);
    assert!(
        matches!(overlap, Err(NoLease::LayoutOverlap { worker_id: 1, .. })),
        "{overlap:?}"
    );
}

/// It says nothing of a store that has gone back: whoever knows that it has takes nothing.
#[test]
fn a_server_that_was_started_makes_up_for_no_bound_that_is_lost() {
    let holder = Claimant {
        last: Some(HeldLease {
            worker_id: 1,
            owner: "me".to_owned(),
            epoch: 4,
            published_ms: NOW_MS + 2_000,
            attempted_ms: NOW_MS + 2_000,
            server: "a".to_owned(),
            generation: 0,
        }),
        ..twitter(None)
    };
    let era = Era {
        started_ms: Some(NOW_MS),
        ..Era::default()
    };
    for rows in [vec![row(1, None)], Vec::new()] {
        let refused = plan_claim(&rows, &holder, &LIMITS, &era);
        assert!(
            matches!(refused, Err(NoLease::GoneBack { .. })),
            "{refused:?}"
        );
    }
}

/// A bound that is lost with its row counts as long as ids without a row may begin below it.
#[test]
fn a_row_that_is_lost_is_made_up_for_by_where_all_begin() {
    let holder = Claimant {
        last: Some(HeldLease {
            worker_id: 1,
            owner: "me".to_owned(),
            epoch: 4,
            published_ms: NOW_MS + 50_000,
            attempted_ms: NOW_MS + 50_000,
            server: "a".to_owned(),
            generation: 0,
        }),
        ..twitter(None)
    };
    let known = Claimant {
        gone_back_from_ms: Some(NOW_MS + 50_000),
        ..holder.clone()
    };
    for claimant in [&holder, &known] {
        let begins_at = |floor_ms| {
            let era = Era {
                floor_ms,
                ..Era::default()
            };
            plan_claim(&[], claimant, &LIMITS, &era).map(|claim| claim.plan.start_ms)
        };
        let refused = begins_at(NOW_MS + 49_999);
        assert!(
            matches!(refused, Err(NoLease::GoneBack { .. })),
            "{refused:?}"
        );
        assert_eq!(begins_at(NOW_MS + 50_000), Ok(NOW_MS + 50_000));
    }
}

#[test]
fn leases_of_another_generation_begin_later_and_are_not_had_by_who_does_not_follow() {
    let era = Era {
        generation: 3,
        floor_ms: NOW_MS + 4_000,
        started_ms: None,
    };
    let ask = |rows: &[LeaseRow], generation| {
        let claimant = Claimant {
            generation,
            ..twitter(None)
        };
        plan_claim(rows, &claimant, &LIMITS, &era).map(|claim| claim.plan.start_ms)
    };
    let superseded = NoLease::Superseded {
        followed: 2,
        generation: 3,
    };
    assert_eq!(ask(&[row(1, None)], Some(2)), Err(superseded));
    for generation in [None, Some(3)] {
        // Its own bound is lower.
        assert_eq!(ask(&[row(0, None)], generation), Ok(NOW_MS + 4_000));
        // Never leased: now and a gap, which is higher.
        assert!(ask(&[], generation).unwrap() >= NOW_MS + 4_000);
    }
}
