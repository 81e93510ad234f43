//! Keys that hide volume: fixed ones, which may never change, and there and back again.

use keywright_core::hiding::{HideBits, HideError, HideKey, Hiding};
use proptest::prelude::*;

/// Made by another program with OpenSSL's AES: for each width the fingerprint under the key 000102…0f, and the keys of numbers.
const VECTORS: [(i64, &str, [(u64, u64); 6]); 3] = [
    (
        63,
        "7d816e60c43c8713",
        [
            (1, 5_688_087_585_029_151_470),
            (2, 637_703_957_999_064_635),
            (3, 3_010_344_252_315_352_383),
            (1_000, 542_419_305_446_337_780),
            (9_223_372_036_854_775_806, 7_568_566_719_336_865),
            (9_223_372_036_854_775_807, 6_381_567_980_362_003_455),
        ],
    ),
    (
        53,
        "fb5c026479b2f274",
        [
            (1, 4_590_647_485_485_699),
            (2, 887_859_798_992_669),
            (3, 332_817_301_934_063),
            (1_000, 4_524_800_942_109_040),
            (9_007_199_254_740_990, 3_415_121_058_534_375),
            (9_007_199_254_740_991, 4_596_111_956_007_433),
        ],
    ),
    (
        31,
        "5db571e82f7f3fd7",
        [
            (1, 1_606_349_300),
            (2, 2_080_885_460),
            (3, 200_995_309),
            (1_000, 79_906_152),
            (2_147_483_646, 1_486_728_292),
            (2_147_483_647, 1_975_966_700),
        ],
    ),
];

fn hiding(key: [u8; 16], bits: i64) -> Hiding {
    Hiding::new(&HideKey::of(&key).unwrap(), HideBits::new(bits).unwrap())
}

#[test]
fn fixed_numbers_have_the_keys_they_always_had() {
    let key = std::array::from_fn(|place| u8::try_from(place).unwrap());
    for (bits, fingerprint, pairs) in VECTORS {
        let hiding = hiding(key, bits);
        assert_eq!(hiding.fingerprint().to_string(), fingerprint);
        for (number, key) in pairs {
            assert_eq!(hiding.hide(number), Some(key), "{bits} bits, {number}");
            assert_eq!(hiding.reveal(key), Some(number), "{bits} bits, {key}");
        }
    }
}

proptest! {
    #[test]
    fn there_and_back_again(key: [u8; 16], bits in prop::sample::select(vec![63, 53, 31]), number: u64) {
        let hiding = hiding(key, bits);
        let largest = hiding.bits().largest();
        let number = number % largest + 1;
        let key = hiding.hide(number).unwrap();
        prop_assert!((1..=largest).contains(&key));
        prop_assert_eq!(hiding.reveal(key), Some(number));
        let behind = hiding.reveal(number).unwrap();
        prop_assert_eq!(hiding.hide(behind), Some(number));
    }

    #[test]
    fn another_key_or_width_has_another_fingerprint(one: [u8; 16], other: [u8; 16]) {
        let print = |key, bits| hiding(key, bits).fingerprint();
        prop_assert_ne!(print(one, 63), print(one, 53));
        prop_assert_ne!(print(one, 53), print(one, 31));
        prop_assert_eq!(one == other, print(one, 31) == print(other, 31));
    }
}

/// A key a step further tells nothing of the one before: each bit is as often like its neighbour's as not.
#[test]
fn neighbours_are_not_alike() {
    const NUMBERS: u32 = 20_000;
    for bits in [63, 53, 31] {
        let hiding = hiding([0; 16], bits);
        let differing: u32 = (1..=u64::from(NUMBERS))
            .map(|number| {
                let [one, next] = [number, number + 1].map(|number| hiding.hide(number).unwrap());
                (one ^ next).count_ones()
            })
            .sum();
        let half = f64::from(NUMBERS) * f64::from(u32::try_from(bits).unwrap()) / 2.0;
        assert!(
            (f64::from(differing) / half - 1.0).abs() < 0.02,
            "{bits} bits: {differing} of {half}"
        );
    }
}

#[test]
fn nothing_else_is_a_width_or_a_key() {
    for bits in [i64::MIN, -31, 0, 1, 32, 52, 64, i64::MAX] {
        assert_eq!(HideBits::new(bits), Err(HideError::Bits(bits)));
    }
    for bytes in [0, 15, 17, 32] {
        let key = HideKey::of(&vec![1; bytes]);
        assert_eq!(key, Err(HideError::KeyBytes { found: bytes }));
    }
    let shown = format!("{:?}", HideKey::of(&[65; 16]).unwrap());
    assert_eq!(shown, "HideKey");
}
