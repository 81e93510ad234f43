use std::collections::BTreeSet;

use keywright_core::{Cause, Tag, TagError};
use proptest::prelude::*;

#[test]
fn tags_are_checked() {
    for text in [
        "orders",
        "a",
        "shop.orders:2024/Q1@eu#1$-_",
        &"x".repeat(Tag::BYTES_MAX),
    ] {
        let tag = Tag::parse(text).expect(text);
        assert_eq!(
            (tag.as_str(), tag.as_bytes(), tag.to_string().as_str()),
            (text, text.as_bytes(), text)
        );
    }
    assert_eq!(Tag::parse(""), Err(TagError::Empty));
    assert_eq!(
        Tag::parse(&"x".repeat(10_000)),
        Err(TagError::TooLong { bytes: 10_000 })
    );
    assert_eq!(
        Tag::parse("ordérs"),
        Err(TagError::Character {
            character: 'é',
            at_byte: 3
        })
    );
    for text in ["a b", "a'b", "a\"b", "a\0b", "a\\b", "a;b"] {
        assert!(
            matches!(
                Tag::parse(text),
                Err(TagError::Character { at_byte: 1, .. })
            ),
            "{text:?}"
        );
    }
}

proptest! {
    #[test]
    fn any_text_is_a_tag_or_an_error(text in ".{0,200}") {
        if let Ok(tag) = Tag::parse(&text) {
            prop_assert_eq!(tag.as_str(), text);
        }
    }
}

fn all() -> impl Iterator<Item = Cause> {
    let causes = Cause::OF_POSTGRES.into_iter().chain(Cause::OF_PROXY);
    causes.chain(Cause::OF_PORT)
}

#[test]
fn the_table_of_causes_is_sound() {
    let names: BTreeSet<&str> = all().map(Cause::name).collect();
    assert_eq!(names.len(), all().count(), "names are distinct");
    for cause in all() {
        let sqlstate = cause.sqlstate();
        assert_eq!(sqlstate.len(), 5, "{}", cause.name());
        assert!(
            sqlstate
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
        );
        assert!(
            !sqlstate.starts_with("00") && !sqlstate.starts_with("01"),
            "not a success or warning"
        );
        assert!(cause.mysql_errno() > 1000);
        assert!(!cause.label().is_empty());
        let code = cause.redis_code();
        let is_word = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(code.bytes().all(is_word), "{code}");
        let status = cause.http_status();
        assert!((400..600).contains(&status), "{}: {status}", cause.name());
        // Clients ask again after these.
        let is_later = [408, 429, 503].contains(&status);
        assert_eq!(is_later, cause.retryable(), "{}: {status}", cause.name());
    }
}
