use keywright_core::readable::{self, BUCKETS, ID_BYTES, LAYOUT, SEQUENCE_BITS};
use keywright_core::{Biz, BizError, ReadableError, Zone};
use proptest::prelude::*;

fn biz(text: &str) -> Biz {
    Biz::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn an_id_can_be_read() {
    let id = readable::format(
        1_629_518_582_297,
        &biz("ORD"),
        255,
        (1 << SEQUENCE_BITS) - 1,
    )
    .expect("in range");
    assert_eq!(id, "210821040302297ORD_67108863");
    assert_eq!(id.len(), ID_BYTES);
    let parts = readable::parse(&id, Zone::UTC).expect("own id");
    assert_eq!(
        (parts.unix_ms, parts.biz.as_str()),
        (1_629_518_582_297, "ORD")
    );
    assert_eq!(
        (u32::from(parts.bucket), parts.sequence),
        (BUCKETS - 1, (1 << SEQUENCE_BITS) - 1)
    );
}

#[test]
fn codes_of_different_length_never_meet() {
    let ids: Vec<String> = ["1", "01", "001", "0001", "10", "100", "a", "A"]
        .map(|code| readable::format(1_700_000_000_000, &biz(code), 1, 1).expect("in range"))
        .into();
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}

#[test]
fn bad_codes_are_refused() {
    assert_eq!(Biz::parse(""), Err(BizError::Length { characters: 0 }));
    assert_eq!(Biz::parse("ABCDE"), Err(BizError::Length { characters: 5 }));
    assert_eq!(
        Biz::parse(&"x".repeat(10_000)),
        Err(BizError::Length { characters: 1000 })
    );
    for (text, character) in [
        ("_", '_'),
        ("A_", '_'),
        ("A B", ' '),
        ("é", 'é'),
        ("A\0", '\0'),
    ] {
        assert_eq!(Biz::parse(text), Err(BizError::Character { character }));
    }
}

#[test]
fn foreign_texts_are_refused() {
    let good = "210821040302297ORD_67108863";
    assert!(readable::parse(good, Zone::UTC).is_ok());
    for (at, with) in [
        (2, "13"),
        (4, "32"),
        (6, "24"),
        (8, "60"),
        (10, "60"),
        (0, "+1"),
        (15, "____"),
        (15, "O_D_"),
        (19, "67108864"),
        (19, "+7108863"),
        (19, "-0000001"),
    ] {
        let mut text = good.to_owned();
        text.replace_range(at..at + with.len(), with);
        assert!(readable::parse(&text, Zone::UTC).is_err(), "{text}");
    }
    assert!(
        readable::parse("230229000000000ORD_00000000", Zone::UTC).is_err(),
        "no leap year"
    );
    assert!(readable::parse("240229000000000ORD_00000000", Zone::UTC).is_ok());
    assert!(matches!(
        readable::parse("", Zone::UTC),
        Err(ReadableError::Length { characters: 0 })
    ));
    assert!(matches!(
        readable::parse("21082104030229éORD_6710886", Zone::UTC),
        Err(ReadableError::Length { .. })
    ));
    let foreign = readable::parse("21082104030229éORD_67108860", Zone::UTC).err();
    assert_eq!(
        foreign.map(|error| error.to_string()),
        Some("a readable id has 27 ASCII characters, and U+00E9 is none".to_owned())
    );
    assert!(matches!(
        readable::format(0, &biz("A"), 0, 0),
        Err(ReadableError::Year { written_ms: 0 })
    ));
    assert!(matches!(
        readable::format(4_102_444_800_000, &biz("A"), 0, 0),
        Err(ReadableError::Year { .. })
    ));
    assert!(readable::format(4_102_444_799_999, &biz("A"), 0, 1 << SEQUENCE_BITS).is_err());
}

#[test]
fn the_layout_reaches_the_end_of_the_century() {
    assert!(LAYOUT.runs_out_at_ms() > 4_102_444_800_000);
    assert_eq!(
        readable::parts_of_state(LAYOUT.state_at(1_700_000_000_123) + 77),
        (1_700_000_000_123, 77)
    );
}

proptest! {
    #[test]
    fn ids_round_trip(unix_ms in 946_684_800_000i64..4_102_444_800_000, code in "[A-Za-z0-9]{1,4}", bucket: u8, sequence in 0u32..1 << SEQUENCE_BITS) {
        let id = readable::format(unix_ms, &biz(&code), bucket, sequence).unwrap();
        let parts = readable::parse(&id, Zone::UTC).unwrap();
        prop_assert_eq!((parts.unix_ms, parts.biz.as_str(), parts.bucket, parts.sequence), (unix_ms, code.as_str(), bucket, sequence));
    }

    #[test]
    fn texts_sort_by_time(a in 946_684_800_000i64..4_102_444_800_000, b in 946_684_800_000i64..4_102_444_800_000) {
        prop_assume!(a != b);
        let text = |unix_ms| readable::format(unix_ms, &biz("A"), 9, 9).unwrap();
        prop_assert_eq!(a < b, text(a) < text(b));
    }

    #[test]
    fn any_text_is_an_id_or_an_error(text in ".{0,40}", digits in "[0-9A-Z_]{27}") {
        let _ = readable::parse(&text, Zone::UTC);
        if let Ok(parts) = readable::parse(&digits, Zone::UTC) {
            prop_assert_eq!(readable::format(parts.unix_ms, &parts.biz, parts.bucket, parts.sequence).unwrap(), digits);
        }
    }
}
