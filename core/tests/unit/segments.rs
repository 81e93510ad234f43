use keywright_core::{
    RefillPlan, RefillRequest, Residue, SegmentWord, Step, StepPolicy, TagExhausted, plan_refill,
    rate_per_s, refill_at,
};
use proptest::prelude::*;

fn request() -> RefillRequest {
    RefillRequest {
        bound_end: Some(1000),
        start: 1,
        end_max: 1 << 63,
        word_hi: 1000,
        remaining: 10,
        need: 1,
        want: 100,
        gap: 0,
    }
}

#[test]
fn a_refill_continues_what_is_durable() {
    assert_eq!(
        plan_refill(&request()),
        Ok(RefillPlan {
            start: 1000,
            end: 1100
        })
    );
    let first = RefillRequest {
        bound_end: None,
        word_hi: 0,
        remaining: 0,
        ..request()
    };
    assert_eq!(plan_refill(&first), Ok(RefillPlan { start: 1, end: 101 }));
    let large = RefillRequest {
        need: 500,
        ..request()
    };
    assert_eq!(
        plan_refill(&large),
        Ok(RefillPlan {
            start: 1000,
            end: 1490
        }),
        "10 are left"
    );
    let crashed = RefillRequest {
        word_hi: 0,
        remaining: 0,
        need: 500,
        ..request()
    };
    assert_eq!(
        plan_refill(&crashed),
        Ok(RefillPlan {
            start: 1000,
            end: 1500
        })
    );
    let promoted = RefillRequest {
        gap: 5000,
        ..request()
    };
    assert_eq!(
        plan_refill(&promoted),
        Ok(RefillPlan {
            start: 6000,
            end: 6100
        })
    );
}

#[test]
fn what_is_available_is_what_one_call_gets() {
    let fresh = RefillRequest {
        bound_end: None,
        end_max: 4,
        word_hi: 0,
        remaining: 0,
        ..request()
    };
    let joined = RefillRequest {
        end_max: 1005,
        ..request()
    };
    let apart = RefillRequest {
        end_max: 1003,
        gap: 1,
        ..request()
    };
    for (request, available) in [(fresh, 3), (joined, 15), (apart, 10)] {
        assert_eq!(request.available(), available, "{request:?}");
    }
    for request in [fresh, joined] {
        let of = |need| plan_refill(&RefillRequest { need, ..request });
        assert!(of(request.available()).is_ok(), "{request:?}");
        assert!(of(request.available() + 1).is_err(), "{request:?}");
    }
}

#[test]
fn the_last_range_is_short_and_the_one_after_refused() {
    let last = RefillRequest {
        bound_end: Some((1 << 63) - 5),
        word_hi: (1 << 63) - 5,
        ..request()
    };
    assert_eq!(
        plan_refill(&last),
        Ok(RefillPlan {
            start: (1 << 63) - 5,
            end: 1 << 63
        })
    );
    let exactly = RefillRequest { need: 15, ..last };
    assert!(plan_refill(&exactly).is_ok(), "10 in the word and 5 more");
    let exhausted = TagExhausted {
        at: i64::MAX as u64,
    };
    assert_eq!(
        plan_refill(&RefillRequest { need: 16, ..last }),
        Err(exhausted)
    );
    assert_eq!(
        plan_refill(&RefillRequest {
            gap: u64::MAX,
            ..last
        }),
        Err(exhausted)
    );
    let over = RefillRequest {
        bound_end: Some(1 << 63),
        word_hi: 1 << 63,
        need: 0,
        ..request()
    };
    assert_eq!(
        plan_refill(&over),
        Err(exhausted),
        "nothing left, even for an early refill"
    );
}

#[test]
fn thresholds_are_percent_left() {
    assert_eq!(refill_at(0, 1000, 50), 500);
    assert_eq!(refill_at(0, 1000, 0), 1000);
    assert_eq!(refill_at(7, 1000, 100), 7);
    assert_eq!(refill_at(7, 1000, u32::MAX), 7);
    assert_eq!(refill_at(5, 8, 50), 7, "rounded towards later");
    assert_eq!(refill_at(0, u64::MAX, 50), u64::MAX / 2 + 1);
    assert_eq!(refill_at(10, 5, 50), 5);
}

proptest! {
    #[test]
    fn plans_never_overlap_what_exists(
        bound_end in prop::option::of(0u64..1 << 63), word_hi in 0u64..1 << 63, remaining in 0u64..100,
        need in 0u64..1000, want in 1u64..1_000_000, gap: u64, start in 0u64..1 << 62,
    ) {
        let request = RefillRequest { bound_end, start, end_max: 1 << 63, word_hi, remaining, need, want, gap };
        if let Ok(plan) = plan_refill(&request) {
            prop_assert!(plan.start >= word_hi.max(bound_end.unwrap_or(start)));
            prop_assert!(plan.start < plan.end && plan.end <= 1 << 63);
            let usable = plan.end - plan.start + if plan.start == word_hi { remaining } else { 0 };
            prop_assert!(usable >= need);
        }
    }

    #[test]
    fn steps_stay_in_bounds(steps in prop::collection::vec(prop::option::of(0u64..10_000_000), 0..100)) {
        let policy = StepPolicy { step_min: Step::new(10).unwrap(), step_max: Step::new(1_000_000).unwrap(), cover_ms: 600_000 };
        let mut step = Step::new(1000).unwrap();
        for lasted_ms in steps {
            let next = policy.next(step, lasted_ms);
            prop_assert!(next >= policy.step_min && next <= policy.step_max);
            prop_assert!(next.get() <= step.get() * 2 && next.get() * 2 + 1 >= step.get());
            step = next;
        }
    }
}

#[test]
fn the_step_follows_demand() {
    let step = |ids| Step::new(ids).expect("in range");
    let policy = StepPolicy {
        step_min: step(100),
        step_max: step(1500),
        cover_ms: 1000,
    };
    for (previous, lasted_ms, expected) in [
        (1000, None, 1000),
        (1000, Some(499), 1500),
        (500, Some(0), 1000),
        (1000, Some(500), 1000),
        (1000, Some(2000), 1000),
        (1000, Some(2001), 500),
        (150, Some(u64::MAX), 100),
        (5000, None, 1500),
    ] {
        assert_eq!(
            policy.next(step(previous), lasted_ms),
            step(expected),
            "{previous} {lasted_ms:?}"
        );
    }
    assert_eq!(
        [1, 9, 10, 1005].map(|ids| StepPolicy::first_load(step(ids))),
        [1, 1, 1, 100]
    );
    for refused in [0, -1, Step::MAX + 1, i64::MIN] {
        assert_eq!(Step::new(refused).map_err(|error| error.step), Err(refused));
    }
}

#[test]
fn rates_are_rounded_up() {
    assert_eq!(rate_per_s(1000, Some(500)), 2000);
    assert_eq!(rate_per_s(1, Some(60_000)), 1);
    assert_eq!(rate_per_s(1000, None), 1000);
    assert_eq!(rate_per_s(5, Some(0)), 5000);
    assert_eq!(rate_per_s(u64::MAX, Some(1)), u64::MAX);
}

/// Ids of a class come one after the other, whatever ranges they lie in, and none twice.
#[test]
fn ids_of_a_class_are_its_next_ones() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let modulus = random.i64(1..12);
        let class = Residue::new(modulus, random.i64(0..modulus)).unwrap();
        let word = SegmentWord::new();
        let (mut durable, mut last) = (random.u64(0..50), None);
        word.publish(durable, durable);
        for _ in 0..300 {
            let n = random.u64(1..6);
            match word.take_of(n, &class) {
                Ok(first) => {
                    let end = first + class.width_of(n - 1);
                    assert!(end < durable, "below the bound");
                    assert!(last.is_none_or(|last| first > last));
                    assert_eq!(first % class.modulus(), class.remainder());
                    last = Some(end);
                }
                Err(exhausted) => {
                    assert!(exhausted.remaining < class.width_of(n), "{seed}");
                    let start = durable + random.u64(0..3) * 7;
                    durable = start + random.u64(1..40);
                    word.publish(start, durable);
                }
            }
        }
        assert!(last.is_some());
    }
}
