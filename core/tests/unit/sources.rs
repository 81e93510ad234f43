//! `keywright.source`: which tags were moved to a store, and how often.

use keywright_core::{SourceSetting, Tag};

fn number(text: &str, tag: &str) -> u32 {
    let setting = SourceSetting::parse(text).unwrap();
    setting.number_of(&Tag::parse(tag).unwrap())
}

#[test]
fn a_setting_counts_the_moves_of_those_it_names() {
    for (text, tag, expected) in [
        ("native", "orders", 0),
        ("", "orders", 0),
        ("fed:1", "orders", 1),
        ("fed:2147483647", "orders", 2_147_483_647),
        ("orders=fed:3", "orders", 3),
        ("orders=fed:3", "Orders", 0),
        (" orders = fed:3 , parcels=fed:4", "parcels", 4),
        ("orders=fed:3, fed:1", "orders", 3),
        ("orders=fed:3, fed:1", "parcels", 1),
        ("a:b/c=fed:7", "a:b/c", 7),
    ] {
        assert_eq!(number(text, tag), expected, "{text:?} of {tag}");
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    for text in [
        "fed",
        "fed:",
        "fed:0",
        "fed:-1",
        "fed:+1",
        "fed:1 2",
        "fed:2147483648",
        "orders",
        "orders=native",
        "orders=fed:1,",
        "orders=fed:1,orders=fed:1",
        "fed:1, fed:1",
        "or ders=fed:1",
        "=fed:1",
        "FED:1",
    ] {
        assert!(SourceSetting::parse(text).is_err(), "{text:?}");
    }
}
