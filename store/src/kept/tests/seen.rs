//! How far tags had come, over starts.

use super::super::content::SeenBound;
use super::*;

fn seen(tag: &str, key_space: &str, bound: u64) -> SeenBound {
    SeenBound {
        tag: tag.to_owned(),
        key_space: key_space.to_owned(),
        bound,
    }
}

/// One that starts.
fn begun(path: &Path, configuration: &str) -> Keeper {
    let keeper = keeper(path, 2_000);
    keeper.begin(configuration, 10_000);
    keeper
}

/// Whoever starts on a store that went back is told by it, whatever became of the ranges.
#[test]
fn how_far_tags_had_come_stays_in_the_file_where_it_was_written() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let next = |configuration| begun(&path, configuration);
    let seen = |key_space, bound| seen("orders", key_space, bound);
    drop(running(&path, &range(50, 101)));
    // It was killed.
    assert_eq!(next("another").seen(), [seen("abc", 101)]);
    let first = running(&path, &range(150, 201));
    assert!(first.forget(&tag("orders"), Residue::ALL) && first.end());
    drop(first);
    let idle = next("c");
    assert_eq!(idle.seen(), [seen("abc", 201)]);
    assert_eq!(idle.start(), Err(Unusable::Nothing));
    idle.anew();
    drop(idle);
    assert_eq!(next("c").seen(), [seen("abc", 201)]);
    // Not where it was copied to: what that machine's store says it does not know.
    let copy = scratch.path().join("copy");
    fs::copy(&path, &copy).unwrap();
    let copied = keeper(&copy, 2_000);
    copied.begin("c", 10_000);
    assert_eq!(copied.seen(), []);
    // Made anew, the tag is another one.
    let made_anew = KeptRange {
        key_space: "def".into(),
        ..range(10, 31)
    };
    drop(running(&path, &made_anew));
    assert_eq!(next("c").seen(), [seen("def", 31)]);
    // Of one that was made by hand that cannot be told.
    let by_hand = KeptRange {
        tag: tag("by_hand"),
        key_space: "".into(),
        ..range(10, 31)
    };
    drop(running(&path, &by_hand));
    assert_eq!(next("c").seen(), [seen("def", 31)]);
}

/// The new program of a take-over begins before it has the file, and overwrites what its predecessor has kept.
#[test]
fn how_far_tags_had_come_stays_where_another_program_takes_the_file() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    first.saw(&tag("renewed"), "abc", 900);
    let second = begun(&path, "c");
    second.anew();
    assert_eq!(second.seen(), []);
    // What is reserved before it has the file counts too.
    second.saw(&tag("items"), "abc", 31);
    assert!(!second.keep(&KeptRange {
        tag: tag("lines"),
        ..range(200, 301)
    }));
    second.saw(&tag("renewed"), "def", 7);
    assert!(first.keep(&range(150, 201)));
    assert!(!second.look_again());
    assert!(first.end());
    assert!(second.look_again());
    let all = [
        seen("items", "abc", 31),
        seen("lines", "abc", 301),
        seen("orders", "abc", 201),
        seen("renewed", "def", 7),
    ];
    assert_eq!(second.seen(), all);
    assert!(!second.look_again());
    // It is killed.
    drop(second);
    assert_eq!(begun(&path, "c").seen(), all);
}

#[test]
fn what_was_seen_is_written_where_it_is_news() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    first.saw(&tag("orders"), "abc", 202);
    first.say();
    let written = fs::read(&path).unwrap();
    first.saw(&tag("orders"), "abc", 150);
    first.say();
    assert_eq!(fs::read(&path).unwrap(), written);
    // The kept range tells less, and stays.
    drop(first);
    let next = goes_on_with(&path, 2_000, range(50, 101));
    assert_eq!(next.seen(), [seen("orders", "abc", 202)]);
}

/// Of two residue classes of a tag that was made anew one may still be kept as it was before.
#[test]
fn a_range_of_an_older_key_space_does_not_hide_how_far_the_tag_has_come() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    first.saw(&tag("orders"), "def", 7);
    first.say();
    drop(first);
    assert_eq!(begun(&path, "c").seen(), [seen("orders", "def", 7)]);
}
