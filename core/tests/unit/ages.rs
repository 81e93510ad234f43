use keywright_core::age::{AGE_MAX, Age};
use proptest::prelude::*;

/// What the server compares: whether the first was given before the second.
fn precedes(one: u64, other: u64) -> bool {
    let short = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap();
    short(one).wrapping_sub(short(other)).cast_signed() < 0
}

#[test]
fn a_transaction_is_known_until_it_is_old() {
    for next in [AGE_MAX + 3, 1 << 31, (1 << 32) + 3, (7 << 32) + 5, 1 << 60] {
        for (age, expected) in [
            (1, Age::Known),
            (2, Age::Known),
            (AGE_MAX - 1, Age::Known),
            (AGE_MAX, Age::Past),
            (AGE_MAX + 1, Age::Past),
        ] {
            assert_eq!(Age::of(next - age, next), expected, "{age} before {next}");
        }
        for later in [0, 1, 1_000, 1 << 31, 1 << 33] {
            assert_eq!(
                Age::of(next + later, next),
                Age::Coming,
                "{later} after {next}"
            );
        }
    }
}

/// To the server it looks like one to come, or like the last one, and is not asked for.
#[test]
fn a_transaction_that_the_server_takes_for_another_has_ended() {
    let next = (9 << 32) + 1_000;
    for age in [
        1 << 31,
        (1 << 31) + 1,
        2_500_000_000,
        (1 << 32) - 1,
        1 << 32,
        (1 << 32) + 1,
        (1 << 33) + 7,
        next,
    ] {
        assert_eq!(Age::of(next - age, next), Age::Past, "{age} before");
    }
    assert!(!precedes(next - 2_500_000_000, next));
}

proptest! {
    /// Also while the server gives a million numbers more.
    #[test]
    fn the_server_compares_those_that_are_known(transaction in 3u64..1 << 40, age in 1u64..1 << 34, given in 0u64..1_000_000) {
        let next = transaction + age;
        if Age::of(transaction, next) == Age::Known {
            prop_assert!(precedes(transaction, next + given));
        }
    }
}
