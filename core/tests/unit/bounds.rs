use keywright_core::{
    BeforeEpoch, BoundRefusal, BoundRequest, Layout, Moment, Note, Preset, Recorded, SnowflakeWord,
    Takeover, TakeoverPlan, TakeoverReason, Writer, plan_bound, plan_takeover,
};
use proptest::prelude::*;

const NOW_MS: i64 = 1_700_000_000_000;
const OURS: Writer = Writer {
    system_identifier: 1,
    timeline: 1,
    database_oid: 5,
    resets: 0,
};
const PROMOTED: Writer = Writer {
    timeline: 2,
    ..OURS
};

fn bound_request(need_state_end: u64) -> BoundRequest {
    BoundRequest {
        layout: Preset::Twitter.layout(),
        need_state_end,
        now_ms: NOW_MS,
        bound_ms: None,
        window_ms: 3000,
        lead_ms_max: 10_000,
    }
}

fn takeover(recorded: Option<Recorded>) -> Takeover {
    Takeover {
        layout: Preset::Twitter.layout(),
        recorded,
        is_vouched: false,
        writer: OURS,
        now_ms: NOW_MS,
        lead_ms_max: 10_000,
        skew_ms_max: 60_000,
        window_ms: 3000,
        word_next_state: 0,
    }
}

fn recorded(bound_ms: i64) -> Option<Recorded> {
    Some(Recorded {
        bound_ms,
        note: Some(Note::new(OURS, NOW_MS - 5000, 1, 1)),
    })
}

fn planned(takeover: &Takeover) -> TakeoverPlan {
    plan_takeover(takeover).expect("the epoch is past")
}

#[test]
fn the_bound_is_a_window_past_what_is_needed() {
    let layout = Preset::Twitter.layout();
    let plan = plan_bound(&bound_request(layout.state_at(NOW_MS) + 1)).expect("no lead");
    assert_eq!(plan.bound_ms, NOW_MS + 1 + 3000);
    assert_eq!(plan.hi_state, layout.state_at(NOW_MS + 3001));
    let request = BoundRequest {
        bound_ms: Some(NOW_MS + 50_000),
        ..bound_request(1)
    };
    assert_eq!(
        plan_bound(&request).map(|plan| plan.bound_ms),
        Ok(NOW_MS + 50_000),
        "never back"
    );
}

#[test]
fn the_lead_is_limited() {
    let layout = Preset::Twitter.layout();
    assert!(plan_bound(&bound_request(layout.state_at(NOW_MS + 10_000) + 1)).is_ok());
    assert_eq!(
        plan_bound(&bound_request(layout.state_at(NOW_MS + 10_700) + 1)),
        Err(BoundRefusal::TooFarAhead {
            lead_ms: 10_700,
            retry_after_ms: 700
        })
    );
}

#[test]
fn a_window_does_not_lengthen_the_lead() {
    let layout = Preset::Twitter.layout();
    let hi_after = |lead_ms: i64| {
        plan_bound(&bound_request(layout.state_at(NOW_MS + lead_ms) + 1)).map(|plan| plan.bound_ms)
    };
    assert_eq!(hi_after(7000), Ok(NOW_MS + 10_001));
    assert_eq!(
        hi_after(9000),
        Ok(NOW_MS + 10_001),
        "the last tick may begin where the lead ends"
    );
}

#[test]
fn the_layout_ends() {
    let layout = Layout::parse("time=10,worker=5,sequence=4,epoch=0,tick=1s").expect("valid");
    let request = BoundRequest {
        layout,
        now_ms: 1_023_000,
        need_state_end: 1024 << 4,
        ..bound_request(0)
    };
    assert_eq!(
        plan_bound(&request).map(|plan| plan.hi_state),
        Ok(1024 << 4),
        "the last tick may be used up"
    );
    let request = BoundRequest {
        need_state_end: (1024 << 4) + 1,
        ..request
    };
    assert_eq!(plan_bound(&request), Err(BoundRefusal::LayoutRanOut));
    let plan = planned(&Takeover {
        layout,
        now_ms: 2_000_000,
        ..takeover(None)
    });
    assert!(plan.start_state >= plan.hi_state, "nothing can be issued");
}

/// Before the epoch all moments would be its first tick, and whoever begins anew by the clock began there again.
#[test]
fn nothing_begins_before_the_epoch() {
    let layout = Layout::parse("leaf,epoch=2027-01-01").expect("valid");
    let epoch_ms = layout.epoch_ms();
    let refused = |now_ms| BeforeEpoch {
        now: Moment(now_ms),
        epoch: Moment(epoch_ms),
    };
    let at = |now_ms, recorded, is_vouched| {
        plan_takeover(&Takeover {
            layout,
            now_ms,
            is_vouched,
            ..takeover(recorded)
        })
    };
    for now_ms in [0, epoch_ms - 86_400_000, epoch_ms - 1] {
        for recorded in [None, recorded(now_ms), recorded(epoch_ms + 5_000)] {
            for is_vouched in [false, true] {
                assert_eq!(at(now_ms, recorded, is_vouched), Err(refused(now_ms)));
            }
        }
        let request = BoundRequest {
            layout,
            now_ms,
            ..bound_request(1)
        };
        let expected = Err(BoundRefusal::BeforeEpoch(refused(now_ms)));
        assert_eq!(plan_bound(&request), expected);
    }
    let first = at(epoch_ms, None, true).expect("it has begun");
    assert_eq!((first.start_state, first.start_ms), (0, epoch_ms));
    let fresh = at(epoch_ms, None, false).expect("it has begun");
    assert_eq!(fresh.start_ms, epoch_ms + 10_001);
    assert_eq!(
        refused(0).to_string(),
        "the clock reads 1970-01-01, and ids begin at 2027-01-01"
    );
}

#[test]
fn takeovers_start_past_whatever_may_have_been_issued() {
    let layout = Preset::Twitter.layout();
    let fresh = planned(&takeover(None));
    assert_eq!(
        (fresh.start_ms, fresh.gap_ms, fresh.reason),
        (NOW_MS + 10_001, 10_001, TakeoverReason::Fresh)
    );

    let vouched = planned(&Takeover {
        is_vouched: true,
        ..takeover(None)
    });
    assert_eq!(
        (vouched.start_ms, vouched.gap_ms, vouched.reason),
        (NOW_MS, 0, TakeoverReason::Vouched)
    );

    let same = planned(&takeover(recorded(NOW_MS + 2000)));
    assert_eq!(
        (same.start_ms, same.gap_ms, same.reason),
        (NOW_MS + 2000, 0, TakeoverReason::SameWriter)
    );
    assert_eq!(same.bound_ms, NOW_MS + 5001);

    let back = planned(&takeover(recorded(NOW_MS + 86_400_000)));
    assert_eq!(
        back.start_ms,
        NOW_MS + 86_400_000,
        "the clock was set back a day"
    );

    let idle = planned(&takeover(recorded(NOW_MS - 86_400_000)));
    assert_eq!(idle.start_ms, NOW_MS - 86_400_000);
    assert_eq!(
        idle.bound_ms,
        NOW_MS + 3001,
        "the first call needs no second write"
    );

    let promoted = Takeover {
        writer: PROMOTED,
        ..takeover(recorded(NOW_MS - 5000))
    };
    let promoted = planned(&promoted);
    assert_eq!(
        (promoted.start_ms, promoted.reason),
        (NOW_MS + 70_001, TakeoverReason::ChangedWriter)
    );
    let unsigned = planned(&takeover(Some(Recorded {
        bound_ms: NOW_MS,
        note: None,
    })));
    assert_eq!(unsigned.reason, TakeoverReason::ChangedWriter);

    let in_use = Takeover {
        word_next_state: layout.state_at(NOW_MS + 9000) + 7,
        ..takeover(recorded(NOW_MS))
    };
    assert_eq!(
        planned(&in_use).start_state,
        layout.state_at(NOW_MS + 9000) + 7
    );
}

fn any_layout() -> impl Strategy<Value = Layout> {
    prop::sample::select(vec![
        "twitter",
        "sonyflake",
        "js53",
        "baidu,epoch=2020-01-01",
        "time=30,worker=4,sequence=3,epoch=2020-01-01,tick=3s",
        "time=20,sequence=12,worker=4,epoch=2020-01-01,tick=3600s",
    ])
    .prop_map(|text| Layout::parse(text).expect("valid"))
}

/// All of these have begun.
const BEGUN_MS: i64 = 1_770_000_000_000;

proptest! {
    /// Any chain of extensions, crashes and takeovers of one writer: windows are disjoint, whatever the clock.
    #[test]
    fn windows_of_one_writer_are_disjoint(
        layout in any_layout(),
        lives in prop::collection::vec((-10_000_000i64..10_000_000, prop::collection::vec(1u64..5000, 0..5)), 1..8),
        window_ms in 0u64..10_000,
    ) {
        let mut store = None;
        let mut issued_below = 0;
        for (clock_ms, takes) in lives {
            let now_ms = BEGUN_MS + clock_ms;
            let word = SnowflakeWord::new();
            let request = Takeover { layout, window_ms, now_ms, ..takeover(store) };
            let plan = planned(&request);
            prop_assert!(plan.start_state >= issued_below);
            prop_assert!(plan.bound_ms > store.map_or(0, |recorded| recorded.bound_ms));
            let mut bound_ms = plan.bound_ms;
            word.publish(plan.start_state, plan.hi_state);
            for n in takes {
                match word.take(layout.state_at(now_ms), n) {
                    Ok(first) => {
                        prop_assert!(first >= issued_below);
                        issued_below = first + n;
                    }
                    Err(reached) => {
                        let now_ms = now_ms.max(plan.start_ms);
                        let request = BoundRequest { layout, need_state_end: reached.end, now_ms, bound_ms: Some(bound_ms), window_ms, lead_ms_max: 10_000 };
                        if let Ok(extended) = plan_bound(&request) {
                            prop_assert!(extended.bound_ms >= bound_ms && extended.hi_state >= reached.end);
                            bound_ms = extended.bound_ms;
                            word.publish(0, extended.hi_state);
                        }
                    }
                }
            }
            store = recorded(bound_ms);
        }
    }
}

#[test]
fn clock_far_past_a_bound_of_ones_own_is_not_believed() {
    const JUMP_MS_MAX: u64 = 1_000_000;
    let [ours, unsigned] = [
        Recorded {
            bound_ms: NOW_MS,
            note: Some(Note::new(OURS, NOW_MS, 1, 1)),
        },
        Recorded {
            bound_ms: NOW_MS,
            note: None,
        },
    ];
    for (recorded, writer, ahead_ms, believed_ms) in [
        (ours, OURS, -5, -5),
        (ours, OURS, 1_000_000, 1_000_000),
        (ours, OURS, 1_000_001, 0),
        // What another writer or nobody signed may be as old as it likes.
        (ours, PROMOTED, 1_000_001, 1_000_001),
        (unsigned, OURS, 1_000_001, 1_000_001),
    ] {
        let now_ms = recorded.believe(&writer, NOW_MS + ahead_ms, JUMP_MS_MAX);
        assert_eq!(now_ms - NOW_MS, believed_ms);
    }
}
