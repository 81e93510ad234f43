use super::{Action, Candidate, Holder, LeaseRow, Renewal, Tenure, Written};

const TTL_MS: u64 = 1_000;

fn row(epoch: u64, number: u64, holder: Holder) -> LeaseRow {
    let server = "one".to_owned();
    LeaseRow {
        renewal: Renewal {
            server,
            epoch,
            number,
        },
        holder,
    }
}

fn of(owner: &str, ttl_ms: u64) -> Holder {
    Holder::Program {
        owner: owner.to_owned(),
        address: "127.0.0.1:6399".to_owned(),
        ttl_ms,
    }
}

fn candidate() -> Candidate {
    Candidate::new(TTL_MS)
}

/// One that took over at this moment.
fn active_since(now_ms: u64) -> Candidate {
    let mut candidate = candidate();
    let free = row(4, 9, Holder::Nobody);
    assert!(candidate.has_read(&free, now_ms).is_some());
    candidate.took_over(5, Written::Yes, now_ms, now_ms + 50);
    candidate
}

#[test]
fn a_lease_that_is_renewed_is_not_taken() {
    let mut candidate = candidate();
    for second in 0..10 {
        let renewed = row(3, second, of("other", TTL_MS));
        assert_eq!(candidate.has_read(&renewed, second * 900), None);
    }
    let last = row(3, 9, of("other", TTL_MS));
    assert_eq!(candidate.has_read(&last, 8_100 + 999), None);
    let taken = candidate.has_read(&last, 8_100 + 1_000);
    let wanted = Action::TakeOver {
        seen: last.renewal,
        epoch: 4,
    };
    assert_eq!(taken, Some(wanted));
}

#[test]
fn the_longer_time_to_live_counts() {
    let mut candidate = candidate();
    let held = row(3, 1, of("other", 3 * TTL_MS));
    assert_eq!(candidate.has_read(&held, 0), None);
    assert_eq!(candidate.has_read(&held, 2_999), None);
    assert!(candidate.has_read(&held, 3_000).is_some());
}

#[test]
fn the_same_of_another_server_is_another() {
    let mut candidate = candidate();
    let held = row(3, 1, of("other", TTL_MS));
    assert_eq!(candidate.has_read(&held, 0), None);
    let mut promoted = held;
    promoted.renewal.server = "two".to_owned();
    assert_eq!(candidate.has_read(&promoted, 5_000), None);
    assert!(candidate.has_read(&promoted, 6_000).is_some());
}

#[test]
fn what_was_released_is_taken_at_once_unless_another_server_has_less() {
    let mut candidate = candidate();
    assert_eq!(
        candidate.has_read(&row(7, 70, of("other", TTL_MS)), 0),
        None
    );
    let mut back = row(6, 60, Holder::Nobody);
    back.renewal.server = "two".to_owned();
    assert_eq!(candidate.has_read(&back, 100), None);
    // And in an epoch that nobody has had.
    let taken = candidate.has_read(&back, 1_100);
    assert!(matches!(taken, Some(Action::TakeOver { epoch: 8, .. })));
    assert!(
        candidate
            .has_read(&row(7, 71, Holder::Nobody), 1_200)
            .is_some()
    );
}

/// Its data was put back: what was issued since is not known to it.
#[test]
fn nothing_is_taken_of_a_server_that_has_gone_back() {
    let mut candidate = candidate();
    let held = row(7, 70, of("other", TTL_MS));
    assert_eq!(candidate.has_read(&held, 0), None);
    for back in [
        row(6, 60, Holder::Nobody),
        row(7, 69, of("other", TTL_MS)),
        row(0, 0, Holder::Nobody),
    ] {
        for now_ms in [100, 5_100, 90_000] {
            assert_eq!(candidate.has_read(&back, now_ms), None);
            assert_eq!(candidate.gone_back_from(), Some(7));
        }
    }
    // It is as far as it was.
    assert!(
        candidate
            .has_read(&row(7, 71, Holder::Nobody), 90_100)
            .is_some()
    );
    assert_eq!(candidate.gone_back_from(), None);
    // The active one finds out when it renews.
    let mut active = active_since(0);
    active.renewed(5, Written::No, 300, 950);
    assert_eq!(active.has_read(&row(4, 8, Holder::Nobody), 5_000), None);
    assert_eq!(active.gone_back_from(), Some(5));
}

#[test]
fn the_deadline_counts_from_before_the_renewal_was_sent() {
    let mut candidate = active_since(10_000);
    let until_ms = 10_000 + TTL_MS - 100;
    let tenure = Tenure { epoch: 5, until_ms };
    assert_eq!(candidate.tenure(), Some(tenure));
    assert!(tenure.allows(5, until_ms - 1));
    assert!(!tenure.allows(5, until_ms) && !tenure.allows(4, 0));
    assert_eq!(candidate.next(10_200), Action::Renew { epoch: 5 });
    candidate.renewed(5, Written::Unknown, 10_200, 10_700);
    assert_eq!(candidate.tenure(), Some(tenure));
    candidate.renewed(5, Written::Yes, 10_800, 10_850);
    assert_eq!(candidate.tenure().map(|its| its.until_ms), Some(11_700));
    assert_eq!(candidate.next(11_700), Action::Read);
    assert_eq!(candidate.tenure(), None);
}

#[test]
fn who_is_told_that_another_is_active_issues_nothing() {
    let mut candidate = active_since(0);
    candidate.renewed(5, Written::No, 300, 310);
    assert_eq!(candidate.tenure(), None);
    let mut candidate = active_since(0);
    candidate.lost(4, 950);
    assert!(candidate.tenure().is_some());
    candidate.lost(5, 950);
    assert_eq!(candidate.tenure(), None);
}

/// Its time was over, so another could take it: nothing is wrong.
#[test]
fn who_comes_too_late_stands_by_at_once() {
    let free = row(7, 30, Holder::Nobody);
    let told: [fn(&mut Candidate); 2] = [
        |candidate| candidate.renewed(5, Written::No, 300, 900),
        |candidate| candidate.lost(5, 900),
    ];
    for told in told {
        let mut candidate = active_since(0);
        told(&mut candidate);
        assert!(candidate.has_read(&free, 901).is_some());
    }
}

/// Its time was not over, so nobody could take it: clocks or the store are not what they should be.
#[test]
fn who_is_told_too_early_takes_nothing_for_two_times_to_live() {
    let free = row(7, 30, Holder::Nobody);
    let told: [fn(&mut Candidate); 2] = [
        |candidate| candidate.renewed(5, Written::No, 300, 899),
        |candidate| candidate.lost(5, 899),
    ];
    for told in told {
        let mut candidate = active_since(0);
        told(&mut candidate);
        assert_eq!(candidate.tenure(), None);
        // It reads on: clients want to know who is active.
        assert_eq!(candidate.next(1_000), Action::Read);
        assert_eq!(candidate.has_read(&free, 1_000), None);
        assert_eq!(candidate.next(2_898), Action::Read);
        assert_eq!(candidate.has_read(&free, 2_898), None);
        assert_eq!(candidate.next(2_899), Action::Read);
        assert!(candidate.has_read(&free, 2_899).is_some());
    }
}

#[test]
fn a_takeover_of_which_nobody_knows_is_followed_by_a_rest() {
    let mut candidate = candidate();
    assert!(candidate.has_read(&row(1, 1, Holder::Nobody), 0).is_some());
    candidate.took_over(2, Written::Unknown, 0, 500);
    assert_eq!(candidate.tenure(), None);
    assert_eq!(candidate.has_read(&row(9, 9, Holder::Nobody), 2_499), None);
    assert_eq!(candidate.next(2_499 + 10), Action::Read);
    // It may be its own by now, and is looked at as anybody's: so no two failures look like one.
    let own = row(2, 2, of("me", TTL_MS));
    assert_eq!(candidate.has_read(&own, 2_510), None);
    assert!(candidate.has_read(&own, 3_510).is_some());
}

#[test]
fn who_gives_up_lets_others_come_first() {
    let mut candidate = active_since(0);
    assert_eq!(candidate.demote(500), Some(5));
    assert_eq!(candidate.demote(500), None);
    let free = row(5, 11, Holder::Nobody);
    assert_eq!(candidate.has_read(&free, 510), None);
    assert!(candidate.has_read(&free, 1_500).is_some());
    let mut candidate = active_since(0);
    assert_eq!(candidate.leave(), Some(5));
    assert_eq!(candidate.next(99_999), Action::Wait { until_ms: u64::MAX });
    assert_eq!(candidate.has_read(&free, 99_999), None);
}
