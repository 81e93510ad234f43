mod seen;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use keywright_core::residue::Residue;
use keywright_core::{Readings, Tag};
use proptest::prelude::*;
use tempfile::TempDir;

use super::content::{Content, KeptRange, KeptStanding, decode, encode};
use super::judge::{Here, Unusable, judge};
use super::keeper::{Keeper, KeptSettings};
use super::tail::{PARTS, Tail, split};
use crate::clock::{Clock, SystemClock};
use crate::engine::file::place::{Inode, Place};
use crate::switch::space::KeySpace;
use crate::switch::state::{InForce, Phase, RuleName, Standing};

fn tag(name: &str) -> Tag {
    Tag::parse(name).unwrap()
}

fn standing(generation: u64) -> Standing {
    let space = KeySpace::Tag(tag("orders"));
    Standing {
        attempt: 3,
        phase: Phase::None,
        leader: None,
        age_ms: 0,
        rules: vec![InForce {
            rule: RuleName {
                tables: "shop.*".to_owned(),
                column: "id".to_owned(),
            },
            keys: Some(space.clone()),
            next: None,
            above: Some(7),
            servers: vec!["one".to_owned()],
        }],
        generations: vec![(space, generation), (KeySpace::Snowflake, 0)],
        key_space_ids: vec![(tag("orders"), "abc".to_owned())],
        peers: Vec::new(),
    }
}

fn range(mark: u64, end: u64) -> KeptRange {
    KeptRange {
        tag: tag("orders"),
        residue: Residue::ALL,
        mark,
        end,
        generation: 1,
        key_space: "abc".into(),
        server: "file=1".to_owned(),
        hidden: None,
        refill_percent: 50,
        bound: end,
    }
}

fn content() -> Content {
    Content {
        place: Place {
            inode: Inode {
                device: 1,
                number: 2,
            },
            born_ns: 3,
            machine: "m".to_owned(),
            boot: "b".to_owned(),
        },
        configuration: "c".to_owned(),
        written_ms: 1_000_000,
        until_boot_ms: 60_000,
        standing: KeptStanding::of(&standing(1)),
        ranges: vec![range(50, 101)],
        seen: Vec::new(),
    }
}

#[test]
fn what_is_written_is_read_and_nothing_else() {
    let bytes = encode(&content(), 0).unwrap();
    assert_eq!(bytes.len(), 4_096);
    assert_eq!(decode(&bytes).unwrap(), content());
    // As long as it was before.
    let longer = encode(&content(), 9_000).unwrap();
    assert_eq!(longer.len(), 12_288);
    assert_eq!(decode(&longer).unwrap(), content());
    for cut in 0..bytes.len() {
        assert!(decode(&bytes[..cut]).is_err(), "{cut}");
    }
    for at in 0..bytes.len() {
        let mut edited = bytes.clone();
        edited[at] ^= 1;
        assert!(decode(&edited).is_err(), "{at}");
    }
}

#[test]
fn what_is_no_range_is_not_read() {
    for (mark, end) in [(0, 5), (5, 5), (6, 5)] {
        let content = Content {
            ranges: vec![range(mark, end)],
            ..content()
        };
        assert!(
            decode(&encode(&content, 0).unwrap()).is_err(),
            "{mark} {end}"
        );
    }
}

#[test]
fn more_than_may_be_kept_is_not_written() {
    let content = Content {
        ranges: vec![range(1, 2); 10_000],
        ..content()
    };
    assert_eq!(encode(&content, 0), None);
}

proptest! {
    #[test]
    fn bytes_of_anybody_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut with_head = b"keywright ranges 1 sha256 ".to_vec();
        with_head.extend_from_slice(&bytes);
        prop_assert!(decode(&bytes).is_err());
        prop_assert!(decode(&with_head).is_err());
    }

    #[test]
    fn a_mark_moves_up_to_the_end_and_not_beyond(
        start in 1_u64..1_000_000, ids in 2_u64..100_000, needs in proptest::collection::vec(0_u64..2_000, 1..100),
    ) {
        let end = start + ids;
        let mark = split(start, end, needs[0]);
        prop_assert_eq!(mark.is_none(), needs[0] >= ids);
        let Some(mark) = mark else { return Ok(()) };
        prop_assert!(mark - start >= needs[0] && end > mark);
        let mut tail = Some(Tail::new(mark, end, range(mark, end)));
        for need in needs {
            let Some(now) = tail.take() else { break };
            let next = now.next(need);
            prop_assert!(now.start < next && next <= end);
            prop_assert!(next - now.start >= need.min(now.ids()));
            tail = now.behind(next);
            match &tail {
                Some(tail) => prop_assert_eq!((tail.start, tail.range.mark, tail.end), (next, next, end)),
                None => prop_assert_eq!(next, end),
            }
        }
    }
}

#[test]
fn so_many_programs_may_be_killed_before_nothing_is_left() {
    let mut tail = Some(Tail::new(1, 1_001, range(1, 1_001)));
    let mut parts = 0;
    while let Some(now) = tail {
        tail = now.clone().behind(now.next(0));
        parts += 1;
    }
    assert_eq!(parts, PARTS);
}

#[test]
fn a_file_is_used_where_and_when_and_for_what_it_was_written() {
    let original = content();
    let here = || Here {
        place: original.place.clone(),
        configuration: "c",
        changed_ms: 1_000_000,
        boot_ms: Some(59_999),
    };
    assert_eq!(judge(&original, &here()), Ok(()));
    let changed = Here {
        changed_ms: 1_000_101,
        ..here()
    };
    assert_eq!(judge(&original, &changed), Err(Unusable::Changed));
    let copied = Place {
        inode: Inode {
            device: 1,
            number: 9,
        },
        ..original.place.clone()
    };
    let copied = Here {
        place: copied,
        ..here()
    };
    assert!(matches!(judge(&original, &copied), Err(Unusable::Moved(_))));
    for boot in ["another", ""] {
        let place = Place {
            boot: boot.to_owned(),
            ..original.place.clone()
        };
        let started = Here { place, ..here() };
        assert_eq!(judge(&original, &started), Err(Unusable::OtherBoot));
    }
    let other = Here {
        configuration: "d",
        ..here()
    };
    assert_eq!(judge(&original, &other), Err(Unusable::OtherConfiguration));
    for boot_ms in [Some(60_000), None] {
        let late = Here { boot_ms, ..here() };
        assert_eq!(judge(&original, &late), Err(Unusable::Late));
    }
    let switching = Content {
        standing: None,
        ..content()
    };
    assert_eq!(judge(&switching, &here()), Err(Unusable::Switching));
    let empty = Content {
        ranges: Vec::new(),
        ..content()
    };
    assert_eq!(judge(&empty, &here()), Err(Unusable::Nothing));
}

/// The same run of the machine, and a moment that the test chooses.
#[derive(Debug)]
struct At(u64);

impl Clock for At {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms()
    }

    fn readings(&self) -> Readings {
        Readings {
            wall_ms: self.wall_ms(),
            boot_ms: self.0,
        }
    }
}

fn keeper(path: &Path, boot_ms: u64) -> Keeper {
    let settings = KeptSettings {
        path: path.to_owned(),
        // Wherever tests run.
        any_file_system: true,
    };
    Keeper::new(settings, Arc::new(At(boot_ms)))
}

/// One that runs, and keeps a range.
fn running(path: &Path, kept: &KeptRange) -> Keeper {
    let keeper = keeper(path, 1_000);
    keeper.begin("c", 10_000);
    keeper.anew();
    assert!(keeper.stand(Some(&standing(1))));
    keeper.heard(1_000);
    assert!(keeper.keep(kept));
    keeper
}

/// The next start, while the store is away, goes on with this range.
fn goes_on_with(path: &Path, boot_ms: u64, kept: KeptRange) -> Keeper {
    let next = keeper(path, boot_ms);
    next.begin("c", 10_000);
    assert_eq!(next.start(), Ok(standing(1)));
    assert_eq!(next.range(&tag("orders"), Residue::ALL, None), Some(kept));
    next
}

#[test]
fn the_next_program_has_what_was_kept() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    assert!(first.keep(&range(60, 101)));
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Not while the first lives.
    let other = keeper(&path, 2_000);
    other.begin("c", 10_000);
    assert_eq!(other.start(), Err(Unusable::Locked));
    assert!(!other.keep(&range(200, 300)));
    drop(first);
    let next = goes_on_with(&path, 9_999, range(60, 101));
    assert!(next.is_in_use() && !next.is_late());
    // It lives no longer by this than its predecessor would have.
    drop(next);
    let late = keeper(&path, 10_000);
    late.begin("c", 10_000);
    assert_eq!(late.start(), Err(Unusable::Late));
    drop(late);
    let empty = keeper(&path, 2_000);
    empty.begin("c", 10_000);
    assert_eq!(empty.start(), Err(Unusable::Nothing));
}

/// As the new program of a take-over does: it hears of what is in force before it has the file.
#[test]
fn a_program_that_gets_the_file_later_says_at_once_what_is_in_force() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    let second = keeper(&path, 1_000);
    second.begin("c", 10_000);
    second.anew();
    assert!(second.stand(Some(&standing(1))));
    second.heard(1_000);
    assert!(!second.keep(&range(200, 300)));
    drop(first);
    second.look_again();
    assert!(second.keep(&range(300, 400)));
    drop(second);
    goes_on_with(&path, 2_000, range(300, 400));
}

#[test]
fn nothing_is_left_of_what_is_given_up() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    for (give_up, why) in [
        (
            (|keeper: &Keeper| keeper.forget(&tag("orders"), Residue::ALL)) as fn(&Keeper) -> bool,
            Unusable::Nothing,
        ),
        (|keeper| keeper.stand(None), Unusable::Switching),
        (|keeper| keeper.end(), Unusable::Nothing),
    ] {
        let first = running(&path, &range(50, 101));
        assert!(give_up(&first));
        drop(first);
        let next = keeper(&path, 2_000);
        next.begin("c", 10_000);
        assert_eq!(next.start(), Err(why));
    }
}

/// As at a clean stop while the store is away.
#[test]
fn what_is_left_to_the_next_start_is_nobody_elses() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    assert!(!first.leave());
    assert!(!first.keep(&range(60, 101)));
    assert!(!first.forget(&tag("orders"), Residue::ALL));
    assert!(!first.stand(None));
    assert!(!first.end(), "it is handed back");
    let next = goes_on_with(&path, 2_000, range(50, 101));
    assert!(next.forget(&tag("orders"), Residue::ALL));
    assert!(next.leave(), "nothing is kept");
    assert!(next.end());
}

#[test]
fn a_range_of_another_generation_than_is_in_force_is_not_used() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    assert!(first.stand(Some(&standing(2))));
    drop(first);
    let next = keeper(&path, 2_000);
    next.begin("c", 10_000);
    assert_eq!(next.start(), Ok(standing(2)));
    assert_eq!(next.range(&tag("orders"), Residue::ALL, None), None);
}

#[test]
fn a_file_that_leads_elsewhere_is_written_no_more_and_keeps_nothing() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let first = running(&path, &range(50, 101));
    fs::rename(&path, scratch.path().join("aside")).unwrap();
    fs::write(&path, "").unwrap();
    assert!(!first.keep(&range(60, 101)));
    assert!(!first.is_keeping());
    drop(first);
    assert_eq!(
        fs::read_to_string(scratch.path().join("aside")).unwrap(),
        ""
    );
}

/// As `check` asks before a program runs.
#[test]
fn where_nothing_can_be_written_is_told_before_a_program_has_the_file() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    let names = || fs::read_dir(scratch.path()).unwrap().count();
    assert_eq!((keeper(&path, 1_000).problem(), names()), (None, 0));
    // Nobody makes a file there, whoever he is.
    let told = keeper(Path::new("/proc/ranges"), 1_000).problem();
    let told = told.unwrap_or_default();
    assert!(
        told.starts_with("no ranges can be kept in /proc/ranges: it cannot be used: "),
        "{told}"
    );
    // Emptied after a disk error, or in use.
    fs::write(&path, "").unwrap();
    assert_eq!((keeper(&path, 1_000).problem(), names()), (None, 1));
    drop(running(&path, &range(50, 101)));
    assert_eq!((keeper(&path, 1_000).problem(), names()), (None, 1));
}

#[test]
fn what_is_no_file_of_kept_ranges_stays_as_it_is() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("ranges");
    fs::write(&path, "[store]\n").unwrap();
    let keeper = keeper(&path, 1_000);
    keeper.begin("c", 10_000);
    assert_eq!(keeper.start(), Err(Unusable::Foreign));
    keeper.look_again();
    assert!(!keeper.keep(&range(50, 101)));
    assert_eq!(fs::read_to_string(&path).unwrap(), "[store]\n");
}
