use super::*;

const NOW_MS: i64 = 1_795_478_400_000;
const AHEAD: Ahead = Ahead {
    now_ms: NOW_MS,
    ahead_ms: 60_000,
};
const RANGE: IdRange = IdRange { first: 5, last: 7 };

fn twitter() -> Layout {
    Layout::parse("twitter").unwrap()
}

fn row(worker_id: u32, owner: Option<&str>, hi_ms: i64) -> LeaseRow {
    LeaseRow {
        worker_id,
        owner: owner.map(str::to_owned),
        holder: owner.map(|owner| format!("{owner} pid 1")),
        epoch: 3,
        hi_ms,
        layout: twitter(),
        server: "here".to_owned(),
        expired: false,
    }
}

fn asker(owner: &str, handed: Option<(u32, i64)>) -> TimeAsker {
    TimeAsker {
        owner: owner.to_owned(),
        handed: handed.map(|(worker_id, until_ms)| Handed {
            worker_id,
            until_ms,
        }),
        layout: twitter(),
    }
}

fn plan(rows: &[LeaseRow], asker: &TimeAsker, unknown_until_ms: i64) -> Result<TimeGrant, NoTime> {
    let ids = FedIds {
        rows,
        range: RANGE,
        unknown_until_ms,
        elsewhere: &[],
        server: "here",
    };
    plan_time(&ids, asker, &[], &AHEAD)
}

#[test]
fn one_that_goes_on_begins_at_its_bound() {
    let bound_ms = NOW_MS + 30_000;
    let rows = [row(5, Some("a"), bound_ms), row(6, None, 7)];
    let grant = plan(&rows, &asker("a", Some((5, bound_ms))), 0).unwrap();
    assert_eq!((grant.worker_id, grant.from_ms), (5, bound_ms));
    assert_eq!(grant.until_ms, NOW_MS + 60_000);
    assert_eq!((grant.epoch, grant.found), (3, Some((3, bound_ms))));
    // Again at once: there is nothing to add.
    let rows = [row(5, Some("a"), grant.until_ms)];
    let again = plan(&rows, &asker("a", Some((5, grant.until_ms))), 0);
    assert!(matches!(again, Err(NoTime::FarEnough { .. })), "{again:?}");
}

#[test]
fn one_whose_hand_over_was_lost_takes_a_worker_id_that_is_past() {
    let (known_ms, bound_ms) = (NOW_MS + 1_000, NOW_MS + 50_000);
    let rows = [row(5, Some("a"), bound_ms), row(6, Some("b"), NOW_MS)];
    for handed in [Some((5, known_ms)), None] {
        let grant = plan(&rows, &asker("a", handed), 0).unwrap();
        assert_eq!((grant.worker_id, grant.from_ms), (6, NOW_MS));
        assert_eq!((grant.epoch, grant.leaves), (4, Some(5)));
    }
    // Another life of the same server is another owner.
    let grant = plan(&rows, &asker("c", Some((5, bound_ms))), 0).unwrap();
    assert_eq!((grant.worker_id, grant.leaves), (6, None));
}

#[test]
fn nobody_begins_in_the_future() {
    let rows = [row(5, Some("a"), NOW_MS + 1), row(6, None, NOW_MS + 5)];
    // 7 was never leased, and a store that was made a moment ago may have forgotten it.
    let none = plan(&rows, &asker("c", None), NOW_MS + 3);
    let expected = NoTime::NoneFree {
        range: RANGE,
        wait_ms: 1,
        is_unknown: false,
    };
    assert_eq!(none, Err(expected));
    let grant = plan(&rows, &asker("c", None), NOW_MS).unwrap();
    assert_eq!((grant.worker_id, grant.found, grant.epoch), (7, None, 1));
    assert_eq!(grant.from_ms, NOW_MS);
}

#[test]
fn a_store_that_knows_less_hands_nothing_over() {
    let rows = [row(5, Some("a"), NOW_MS - 9)];
    for worker_id in [5, 6] {
        let behind = plan(&rows, &asker("b", Some((worker_id, NOW_MS))), 0);
        let expected = NoTime::GoneBack {
            worker_id,
            until_ms: NOW_MS,
        };
        assert_eq!(behind, Err(expected.clone()));
        let ids = FedIds {
            rows: &rows,
            range: RANGE,
            unknown_until_ms: 0,
            elsewhere: &[],
            server: "here",
        };
        let seen = [Handed {
            worker_id,
            until_ms: NOW_MS,
        }];
        let told = plan_time(&ids, &asker("b", None), &seen, &AHEAD);
        assert_eq!(told, Err(expected));
    }
}

#[test]
fn a_store_is_behind_what_it_knows_less_of() {
    let rows = [row(5, Some("a"), NOW_MS)];
    let ids = |server: &'static str| FedIds {
        rows: &rows,
        range: RANGE,
        unknown_until_ms: NOW_MS + 50_000,
        elsewhere: &[],
        server,
    };
    let handed = |worker_id, until_ms| Handed {
        worker_id,
        until_ms,
    };
    let (known, later) = (handed(5, NOW_MS), handed(5, NOW_MS + 1));
    assert_eq!(ids("here").behind(&[known]), None);
    assert_eq!(ids("here").behind(&[known, later]), Some(later));
    // What another server wrote, or nobody knows, counts as handed over until then.
    let (as_unknown, beyond) = (handed(5, NOW_MS + 50_000), handed(6, NOW_MS + 50_001));
    assert_eq!(ids("elsewhere").behind(&[later, as_unknown]), None);
    assert_eq!(ids("elsewhere").behind(&[beyond]), Some(beyond));
}

#[test]
fn what_another_server_wrote_may_be_as_far_as_any_bound() {
    let (until_ms, unknown_until_ms) = (NOW_MS + 10_000, NOW_MS + 50_000);
    let elsewhere = |owner, hi_ms| LeaseRow {
        server: "elsewhere".to_owned(),
        ..row(5, owner, hi_ms)
    };
    let rows = [elsewhere(None, NOW_MS - 9)];
    let none = plan(&rows, &asker("b", None), unknown_until_ms);
    assert!(
        matches!(
            none,
            Err(NoTime::NoneFree {
                wait_ms: 50_000,
                is_unknown: true,
                ..
            })
        ),
        "{none:?}"
    );
    // But what a database has until a moment to come, nobody else can have, even if the store forgot who it was.
    let grant = plan(&rows, &asker("a", Some((5, until_ms))), unknown_until_ms).unwrap();
    assert_eq!((grant.worker_id, grant.from_ms), (5, until_ms));
    assert_eq!(grant.found, Some((3, NOW_MS - 9)));
    for (hi_ms, until_ms) in [(NOW_MS - 9, NOW_MS), (until_ms + 1, until_ms)] {
        let rows = [elsewhere(Some("a"), hi_ms)];
        let late = plan(&rows, &asker("a", Some((5, until_ms))), unknown_until_ms);
        assert!(matches!(late, Err(NoTime::NoneFree { .. })), "{late:?}");
    }
    let grant = plan(&rows, &asker("b", None), NOW_MS).unwrap();
    assert_eq!((grant.worker_id, grant.from_ms), (5, NOW_MS));
}

#[test]
fn all_have_one_layout() {
    let baidu = LeaseRow {
        layout: Layout::parse("baidu").unwrap(),
        ..row(5, None, 0)
    };
    let other = plan(&[baidu], &asker("a", None), 0);
    assert!(matches!(other, Err(NoTime::OtherLayout { .. })));
}

/// A number that another store gave out is not begun before what it gave, and says nothing of this one.
#[test]
fn what_another_store_handed_over_is_left_out() {
    let elsewhere = [(5, NOW_MS - 1), (6, NOW_MS + 50_000), (7, NOW_MS - 5)];
    let elsewhere = elsewhere.map(|(worker_id, until_ms)| Handed {
        worker_id,
        until_ms,
    });
    let plan = |rows: &[LeaseRow], asker: &TimeAsker| {
        let ids = FedIds {
            rows,
            range: RANGE,
            unknown_until_ms: 0,
            elsewhere: &elsewhere,
            server: "here",
        };
        plan_time(&ids, asker, &[], &AHEAD)
    };
    let grant = plan(&[], &asker("a", None)).unwrap();
    assert_eq!((grant.worker_id, grant.from_ms), (7, NOW_MS - 5));
    let rows = [row(7, None, NOW_MS - 3), row(5, None, NOW_MS - 9)];
    let grant = plan(&rows, &asker("a", None)).unwrap();
    assert_eq!((grant.worker_id, grant.from_ms), (7, NOW_MS - 3));
    // One that both gave out is gone on with by nobody.
    let rows = [row(6, Some("a"), NOW_MS + 9)];
    let grant = plan(&rows, &asker("a", Some((6, NOW_MS + 9)))).unwrap();
    assert_eq!((grant.worker_id, grant.leaves), (7, Some(6)));
}

/// After a switch to another server somebody else may have had what follows.
#[test]
fn what_another_is_known_to_have_is_not_gone_on_with() {
    let until_ms = NOW_MS + 10_000;
    let rows = [LeaseRow {
        server: "elsewhere".to_owned(),
        ..row(5, Some("a"), NOW_MS - 9)
    }];
    let ids = FedIds {
        rows: &rows,
        range: IdRange { first: 5, last: 5 },
        unknown_until_ms: NOW_MS + 50_000,
        elsewhere: &[],
        server: "here",
    };
    let seen = [Handed {
        worker_id: 5,
        until_ms: until_ms + 1,
    }];
    let asker = asker("a", Some((5, until_ms)));
    assert!(plan_time(&ids, &asker, &[], &AHEAD).is_ok());
    let none = plan_time(&ids, &asker, &seen, &AHEAD);
    assert!(matches!(none, Err(NoTime::NoneFree { .. })), "{none:?}");
}

#[test]
fn nothing_is_handed_over_before_the_epoch() {
    let layout = Layout::parse("twitter,epoch=2027-01-01").unwrap();
    let ids = FedIds {
        rows: &[],
        range: RANGE,
        unknown_until_ms: 0,
        elsewhere: &[],
        server: "here",
    };
    let asker = TimeAsker {
        layout,
        ..asker("a", None)
    };
    let at = |now_ms| {
        let ahead = Ahead { now_ms, ..AHEAD };
        plan_time(&ids, &asker, &[], &ahead)
    };
    for now_ms in [0, NOW_MS, layout.epoch_ms() - 1] {
        let refused = at(now_ms);
        assert!(
            matches!(refused, Err(NoTime::BeforeEpoch(_))),
            "{refused:?}"
        );
    }
    assert!(at(layout.epoch_ms()).is_ok());
}
