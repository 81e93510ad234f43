//! What was probably meant.

use keywright_core::layout::Layout;
use keywright_core::nearest::nearest;

const KNOWN: [&str; 5] = ["twitter", "leaf", "instagram", "leaves", "Orders"];

#[test]
fn slips_of_the_keyboard_are_seen_through() {
    for (wanted, meant) in [
        ("instgram", "instagram"),
        ("Twitter", "twitter"),
        ("twitetr", "twitter"),
        ("laef", "leaf"),
        ("orders", "Orders"),
        ("instagrams", "instagram"),
        ("insta gram", "instagram"),
    ] {
        assert_eq!(nearest(wanted, KNOWN).first(), Some(&meant), "{wanted}");
    }
}

#[test]
fn the_nearest_comes_first() {
    assert_eq!(nearest("leafs", KNOWN), ["leaf", "leaves"]);
}

#[test]
fn what_is_something_else_has_no_neighbour() {
    for wanted in ["", "x", "lx", "snowflake", "größe", "twitterandmore"] {
        assert_eq!(nearest(wanted, KNOWN), Vec::<&str>::new(), "{wanted}");
    }
}

#[test]
fn layouts_say_what_was_meant() {
    for (text, meant) in [
        ("instgram", Some("instagram")),
        ("biadu,epoch=2024-01-01", Some("baidu")),
        ("twitter,epcoh=0", Some("epoch")),
        ("tiem=41,worker=10,sequence=12,epoch=0", Some("time")),
        ("something else", None),
        ("time=64,worker=1,sequence=1,epoch=0", None),
    ] {
        let error = Layout::parse(text).expect_err(text);
        assert_eq!(error.meant(), meant, "{text}");
    }
}
