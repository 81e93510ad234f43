use keywright_core::{
    ClockDecision, ClockEvent, ClockPolicy, Readings, SpareState, VirtualClock, decide,
};
use proptest::prelude::*;

const JUMP_MS_MAX: u64 = 60_000;
const WALL_MS: i64 = 1_700_000_000_000;
const HOUR_MS: i64 = 3_600_000;

fn at(wall_ms: i64, boot_ms: u64) -> Readings {
    Readings { wall_ms, boot_ms }
}

#[test]
fn steps_back_are_not_followed_and_carried_over() {
    let mut clock = VirtualClock::default();
    assert_eq!(
        clock.observe(at(WALL_MS, 1000), JUMP_MS_MAX).now_ms,
        WALL_MS
    );
    let back = clock.observe(at(WALL_MS - HOUR_MS + 500, 1500), JUMP_MS_MAX);
    assert_eq!((back.now_ms, back.skew_ms), (WALL_MS + 500, 0));
    assert_eq!(back.event, ClockEvent::SteppedBack { ms: HOUR_MS as u64 });
    let mended = clock.observe(at(WALL_MS + 900, 1900), JUMP_MS_MAX);
    assert_eq!((mended.now_ms, mended.skew_ms), (WALL_MS + 900, 0));
    assert_eq!(
        mended.event,
        ClockEvent::SteppedForward {
            ms: HOUR_MS as u64,
            followed: true
        }
    );
}

#[test]
fn large_steps_forward_are_reported_and_not_followed() {
    let mut clock = VirtualClock::default();
    clock.observe(at(WALL_MS, 1000), JUMP_MS_MAX);
    let ahead = clock.observe(at(WALL_MS + HOUR_MS + 5, 1005), JUMP_MS_MAX);
    assert_eq!((ahead.now_ms, ahead.skew_ms), (WALL_MS + 5, HOUR_MS));
    assert_eq!(
        ahead.event,
        ClockEvent::SteppedForward {
            ms: HOUR_MS as u64,
            followed: false
        }
    );
    let later = clock.observe(at(WALL_MS + HOUR_MS + 1000, 2000), JUMP_MS_MAX);
    assert_eq!(
        (later.now_ms, later.skew_ms, later.event),
        (WALL_MS + 1000, HOUR_MS, ClockEvent::Steady)
    );
    let mended = clock.observe(at(WALL_MS + 2000, 3000), JUMP_MS_MAX);
    assert_eq!((mended.now_ms, mended.skew_ms), (WALL_MS + 2000, 0));
    let small = clock.observe(at(WALL_MS + 2000 + 60_000, 3000), JUMP_MS_MAX);
    assert_eq!((small.now_ms, small.skew_ms), (WALL_MS + 62_000, 0));
}

#[test]
fn a_takeover_starts_no_earlier_than_its_floor() {
    let mut clock = VirtualClock::default();
    clock.start_at(at(WALL_MS, 50), WALL_MS + HOUR_MS);
    let seen = clock.observe(at(WALL_MS + 10, 60), JUMP_MS_MAX);
    assert_eq!(
        (seen.now_ms, seen.skew_ms, seen.event),
        (WALL_MS + HOUR_MS + 10, 0, ClockEvent::Steady)
    );
    let mut clock = VirtualClock::default();
    clock.start_at(at(WALL_MS, 50), WALL_MS - HOUR_MS);
    assert_eq!(clock.observe(at(WALL_MS, 50), JUMP_MS_MAX).now_ms, WALL_MS);
}

/// What is granted by it soon lies no further ahead than by any other.
#[test]
fn a_clock_that_starts_past_a_gap_stands_still_until_the_gap_is_over() {
    const GAP_MS: i64 = 20_000;
    let started = |floor_ms| {
        let mut clock = VirtualClock::default();
        clock.start_past_gap(at(WALL_MS, 50), floor_ms, GAP_MS.unsigned_abs());
        clock
    };
    // All of it, less of it, and behind a clock that was set back.
    for (floor_ms, stands_ms) in [(GAP_MS, GAP_MS), (5_000, 5_000), (HOUR_MS, GAP_MS)] {
        let mut clock = started(WALL_MS + floor_ms);
        for passed_ms in [0, 1, stands_ms / 2, stands_ms, stands_ms + 10, 2 * HOUR_MS] {
            let boot_ms = 50 + passed_ms.unsigned_abs();
            let readings = at(WALL_MS + passed_ms, boot_ms);
            let seen = clock.observe(readings, JUMP_MS_MAX);
            let stands_for_ms = (stands_ms - passed_ms).max(0).unsigned_abs();
            assert_eq!(clock.stands_for_ms(readings), stands_for_ms);
            let ahead_ms = floor_ms + (passed_ms - stands_ms).max(0);
            assert_eq!(
                (seen.now_ms, seen.skew_ms),
                (WALL_MS + ahead_ms, 0),
                "{passed_ms}"
            );
        }
    }
    let mut behind = started(WALL_MS - 10);
    assert_eq!(behind.observe(at(WALL_MS, 50), JUMP_MS_MAX).now_ms, WALL_MS);
}

proptest! {
    #[test]
    fn virtual_time_never_goes_back_nor_runs_away(
        start_ms in 0i64..2_000_000_000_000, moves in prop::collection::vec((0u64..100_000, -10_000_000i64..10_000_000), 1..50),
    ) {
        let mut clock = VirtualClock::default();
        let (mut wall_ms, mut boot_ms) = (start_ms, 0u64);
        let mut last = clock.observe(at(wall_ms, boot_ms), JUMP_MS_MAX).now_ms;
        for (passed_ms, step_ms) in moves {
            boot_ms += passed_ms;
            wall_ms += passed_ms as i64 + step_ms;
            let seen = clock.observe(at(wall_ms, boot_ms), JUMP_MS_MAX);
            prop_assert!(seen.now_ms >= last + passed_ms as i64);
            prop_assert!(seen.now_ms <= last + passed_ms as i64 + JUMP_MS_MAX as i64);
            prop_assert!(wall_ms - seen.skew_ms <= seen.now_ms, "a reading less skew is never ahead");
            last = seen.now_ms;
        }
    }

    #[test]
    fn any_readings_are_survived(readings in prop::collection::vec((any::<i64>(), any::<u64>()), 1..20), floor: i64, limit: u64) {
        let mut clock = VirtualClock::default();
        let mut last = i64::MIN;
        for (wall_ms, boot_ms) in readings {
            let seen = clock.observe(at(wall_ms, boot_ms), limit);
            prop_assert!(seen.now_ms >= last);
            last = seen.now_ms;
            clock.start_past_gap(at(wall_ms, boot_ms), floor, limit);
        }
    }
}

#[test]
fn policies_decide_by_how_far_the_clock_is_behind() {
    use ClockDecision::{Issue, IssueSpare, Refuse, WaitMs};
    use SpareState::{Absent, Available};
    let refuse = |behind_ms| Refuse { behind_ms };
    for (policy, behind_ms, spare, expected) in [
        (ClockPolicy::Carry, 1_000_000, Absent, Issue),
        (ClockPolicy::Carry, 1_000_000, Available, Issue),
        (ClockPolicy::Wait, 10, Absent, WaitMs(10)),
        (ClockPolicy::Wait, 11, Available, refuse(11)),
        (ClockPolicy::Refuse, 1, Absent, refuse(1)),
        (ClockPolicy::Refuse, 1, Available, refuse(1)),
        (ClockPolicy::SpareWorker, 1, Absent, Issue),
        (ClockPolicy::SpareWorker, 1, Available, IssueSpare),
    ] {
        assert_eq!(
            decide(policy, WALL_MS - behind_ms, WALL_MS, 10, spare),
            expected,
            "{policy} {behind_ms}"
        );
    }
    for policy in ClockPolicy::ALL {
        assert_eq!(decide(policy, WALL_MS, WALL_MS, 0, Available), Issue);
        assert_eq!(decide(policy, i64::MAX, i64::MIN, 0, Available), Issue);
        assert_eq!(ClockPolicy::parse(policy.name()), Some(policy));
    }
    assert_eq!(ClockPolicy::parse("Carry"), None);
}

#[test]
fn clock_that_starts_in_doubt_follows_the_wall_once_it_is_mended() {
    const YEAR_MS: i64 = 366 * 24 * HOUR_MS;
    const START_JUMP_MS_MAX: u64 = YEAR_MS as u64;
    let observe = |clock: &mut VirtualClock, readings| {
        clock.observe_since_start(readings, JUMP_MS_MAX, START_JUMP_MS_MAX)
    };
    let mut clock = VirtualClock::default();
    clock.start_doubting(at(WALL_MS + 50 * YEAR_MS, 1000), WALL_MS);
    let ahead = observe(&mut clock, at(WALL_MS + 50 * YEAR_MS + 10, 1010));
    assert_eq!((ahead.now_ms, ahead.skew_ms), (WALL_MS + 10, 50 * YEAR_MS));
    // The server was off for two hours, which the wall knows now.
    let mended = observe(&mut clock, at(WALL_MS + 2 * HOUR_MS, 2000));
    assert_eq!((mended.now_ms, mended.skew_ms), (WALL_MS + 2 * HOUR_MS, 0));
    let jumped = observe(&mut clock, at(WALL_MS + 4 * HOUR_MS, 2000));
    assert_eq!(
        (jumped.now_ms, jumped.skew_ms),
        (WALL_MS + 2 * HOUR_MS, 2 * HOUR_MS)
    );
}
