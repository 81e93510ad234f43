//! Keys that hide volume: fixed ones, which may never change, and there and back again.

use keywright_core::hiding::{HideBits, HideError, HideKey, Hiding};
use proptest::prelude::*;

/// A width, the fingerprint under the key 000102…0f, and the keys of numbers.
type Vector = (i64, &'static str, [(u64, u64); 6]);

/// Made by a program of its own, in Python.
const VECTORS: [Vector; 3] = [
    (
        63,
        "872803294ce9af15",
        [
            (1, 2_353_280_549_284_071_881),
            (2, 3_409_534_293_240_823_343),
            (3, 8_081_064_248_456_401_387),
            (1_000, 3_623_713_724_490_962_122),
            (9_223_372_036_854_775_806, 1_828_467_350_314_331_346),
            (9_223_372_036_854_775_807, 2_738_019_051_983_209_540),
        ],
    ),
    (
        53,
        "2c67679a7bcf10d2",
        [
            (1, 3_519_540_746_535_313),
            (2, 312_897_949_090_218),
            (3, 8_920_064_657_964_822),
            (1_000, 5_463_112_532_830_921),
            (9_007_199_254_740_990, 1_601_116_610_642_195),
            (9_007_199_254_740_991, 6_132_404_249_904_626),
        ],
    ),
    (
        31,
        "4cc5be40e904fc28",
        [
            (1, 1_822_033_314),
            (2, 1_777_474_673),
            (3, 1_711_438_822),
            (1_000, 1_909_097_795),
            (2_147_483_646, 8_120_142),
            (2_147_483_647, 1_084_702_631),
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
