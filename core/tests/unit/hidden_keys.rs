//! Keys that hide volume: fixed ones, which may never change, and there and back again.

use keywright_core::hiding::{HideBits, HideError, HideKey, Hiding};
use proptest::prelude::*;

/// A width, the fingerprint under the key 000102…0f, and the keys of numbers.
type Vector = (i64, &'static str, [(u64, u64); 6]);

/// Made by a program of its own, in Python.
const VECTORS: [Vector; 3] = [
    (
        63,
        "0c98dccccd165692",
        [
            (1, 7_804_241_249_708_976_967),
            (2, 1_797_997_696_147_349_600),
            (3, 1_570_931_901_033_598_639),
            (1_000, 8_579_524_826_516_128_358),
            (9_223_372_036_854_775_806, 5_621_750_793_227_901_718),
            (9_223_372_036_854_775_807, 5_432_807_845_229_326_144),
        ],
    ),
    (
        53,
        "92c29a2a4edbe2eb",
        [
            (1, 3_542_873_360_303_234),
            (2, 5_879_817_218_275_551),
            (3, 8_601_644_048_561_242),
            (1_000, 835_231_793_264_911),
            (9_007_199_254_740_990, 5_348_861_776_135_405),
            (9_007_199_254_740_991, 6_425_111_068_289_205),
        ],
    ),
    (
        31,
        "6e35599f84a1e9b3",
        [
            (1, 2_017_696_260),
            (2, 524_435_064),
            (3, 521_637_183),
            (1_000, 298_841_276),
            (2_147_483_646, 24_990_125),
            (2_147_483_647, 464_313_994),
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
