//! Numbers of tags that a PostgreSQL server had reserved and not issued when it was stopped: what a file says of them, and when
//! they may be issued after the next start.
//!
//! The stop writes the file after the server's last checkpoint, and the start takes it away, durably, before anything is issued. So
//! the file stands between one clean stop and the start that follows, and only that start may use it. Three things tell that start:
//! 1. The control file of the server is byte for byte as it was at the stop, and says that the server was shut down. Any start changes
//!    it, with or without this library, and so do recovery, `pg_rewind` and `pg_resetwal`.
//! 2. The file is the one that was written, not a copy of it: device, inode and time of birth are those that it names.
//! 3. A sum over all of it: it was written to its end, and not edited.
//!
//! What it says of a tag counts only where the tag's bound is still the end of what was left, and was written by the same writer: then
//! nobody has reserved since, here or on a promoted standby.

use std::fmt::{self, Write};
use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use thiserror::Error;

use crate::tag::Tag;

/// The first word of the first line, and the version of the form.
const FORM: &str = "keywright-unused-ids 1";

/// Where the file lies. A copy lies elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of the device.
    pub device: u64,
    /// Number of the file on it.
    pub inode: u64,
    /// When it was made, nanoseconds since 1970; 0 where the file system does not say.
    pub born_ns: u128,
}

/// What a tag's place in shared memory belongs to, as numbers of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Object id of the database.
    pub database: u32,
    /// Object id of the extension in it.
    pub extension: u32,
    /// Which life of the tag.
    pub generation: u32,
    /// Object id of the sequence that is the bound.
    pub sequence: u32,
    /// How often the tag was moved to a store.
    pub moves: u32,
    /// Fingerprint of the permutation that its numbers go through; 0: none.
    pub hiding: u64,
}

/// What one tag had left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Whose it is.
    pub owner: Owner,
    /// The tag.
    pub tag: Tag,
    /// First number that was not issued.
    pub start: u64,
    /// First number that was not reserved.
    pub end: u64,
    /// The step that the last reservation was made with.
    pub step: u64,
}

/// Why a file is not used. Its numbers are left out then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotUsed {
    /// Cut off, edited, or of another version.
    #[error("it is damaged, or of another version")]
    Damaged,
    /// Not the file that was written.
    #[error("it is a copy, or was moved")]
    Copy,
    /// The server was started since, or is another one.
    #[error("the server was started since it was written, or is another one")]
    AnotherStop,
}

/// The text of the file that lies at `place`, of a server whose control file is `control`.
pub fn write(control: &[u8], place: Place, all: &[Unused]) -> String {
    let mut text = format!(
        "{FORM}\n{:016x} {} {} {}\n",
        sum(control),
        place.device,
        place.inode,
        place.born_ns
    );
    for unused in all {
        // Writing to a text does not fail.
        let _ = writeln!(text, "{unused}");
    }
    let sum = sum(text.as_bytes());
    let _ = writeln!(text, "{sum:016x}");
    text
}

/// What the file at `place` says to a server whose control file is `control`.
///
/// # Errors
/// [`NotUsed`]: nothing of it counts.
pub fn read(text: &str, control: &[u8], place: Place) -> Result<Vec<Unused>, NotUsed> {
    let (all, last) = text
        .strip_suffix('\n')
        .and_then(|text| text.rsplit_once('\n'))
        .ok_or(NotUsed::Damaged)?;
    let body_bytes = all.len() + 1;
    let body = text.as_bytes().get(..body_bytes).ok_or(NotUsed::Damaged)?;
    if last != format!("{:016x}", sum(body)) {
        return Err(NotUsed::Damaged);
    }
    let mut lines = all.lines();
    if lines.next() != Some(FORM) {
        return Err(NotUsed::Damaged);
    }
    let head = lines.next().ok_or(NotUsed::Damaged)?;
    let (server, written_at) = head.split_once(' ').ok_or(NotUsed::Damaged)?;
    if written_at != format!("{} {} {}", place.device, place.inode, place.born_ns) {
        return Err(NotUsed::Copy);
    }
    if server != format!("{:016x}", sum(control)) {
        return Err(NotUsed::AnotherStop);
    }
    lines
        .map(|line| parse(line).ok_or(NotUsed::Damaged))
        .collect()
}

/// Whether a file that is not used says of any tag that it had something left.
pub fn names_any(text: &str) -> bool {
    let mut all = text.lines().filter_map(parse);
    all.any(|unused| unused.start < unused.end)
}

impl fmt::Display for Unused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner {
            database,
            extension,
            generation,
            sequence,
            moves,
            hiding,
        } = self.owner;
        write!(
            formatter,
            "{database} {extension} {generation} {sequence} {moves} {hiding:016x} {} {} {} {}",
            self.start, self.end, self.step, self.tag
        )
    }
}

fn parse(line: &str) -> Option<Unused> {
    let mut words = line.split(' ');
    let mut small = || words.next()?.parse().ok();
    let [database, extension, generation, sequence, moves] =
        [small()?, small()?, small()?, small()?, small()?];
    let hiding = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut large = || words.next()?.parse().ok();
    let [start, end, step] = [large()?, large()?, large()?];
    let tag = Tag::parse(words.next()?).ok()?;
    words.next().is_none().then_some(Unused {
        owner: Owner {
            database,
            extension,
            generation,
            sequence,
            moves,
            hiding,
        },
        tag,
        start,
        end,
        step,
    })
}

/// It tells accidents, not forgers: who can write to the data directory can do worse.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish()
}

/// What is known of a tag when it is used for the first time after the start.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// First number not reserved durably.
    pub bound_end: u64,
    /// Whether this very writer wrote the bound.
    pub is_own_bound: bool,
    /// First number that may be issued: that of the tag, and above all that others of its name published.
    pub start_min: u64,
    /// First number that may not be issued any more.
    pub end_max: u64,
}

/// Whether the numbers from `start` to `end` that were left may be issued.
pub fn may_be_issued(start: u64, end: u64, now: &Now) -> bool {
    start < end
        && now.is_own_bound
        && end == now.bound_end
        && now.start_min <= start
        && end <= now.end_max
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &[u8] = b"what pg_control says";
    const PLACE: Place = Place {
        device: 65_024,
        inode: 77,
        born_ns: 1_790_000_000_123_456_789,
    };

    fn all() -> Vec<Unused> {
        let of = |tag: &str, hiding, start, end| Unused {
            owner: Owner {
                database: 5,
                extension: 16_390,
                generation: 1,
                sequence: 16_400,
                moves: 2,
                hiding,
            },
            tag: Tag::parse(tag).unwrap(),
            start,
            end,
            step: 1_000,
        };
        vec![
            of("orders", 0, 101, 1_000),
            of("a/b:c#$@-_.", u64::MAX, 1, 1 << 63),
        ]
    }

    #[test]
    fn what_was_written_is_read() {
        let text = write(CONTROL, PLACE, &all());
        assert_eq!(read(&text, CONTROL, PLACE), Ok(all()));
        let none = write(CONTROL, PLACE, &[]);
        assert_eq!(read(&none, CONTROL, PLACE), Ok(Vec::new()));
    }

    #[test]
    fn tags_with_nothing_left_are_not_named() {
        assert!(names_any(&write(CONTROL, PLACE, &all())));
        let used_up = all().into_iter().map(|unused| Unused {
            start: unused.end,
            ..unused
        });
        let used_up = used_up.collect::<Vec<_>>();
        assert!(!names_any(&write(CONTROL, PLACE, &used_up)));
        assert!(!names_any(&write(CONTROL, PLACE, &[])));
    }

    #[test]
    fn another_server_place_or_stop_is_told() {
        let text = write(CONTROL, PLACE, &all());
        assert_eq!(
            read(&text, b"what pg_control said", PLACE),
            Err(NotUsed::AnotherStop)
        );
        let places = [
            Place { device: 1, ..PLACE },
            Place { inode: 1, ..PLACE },
            Place {
                born_ns: 1,
                ..PLACE
            },
        ];
        for place in places {
            assert_eq!(read(&text, CONTROL, place), Err(NotUsed::Copy));
        }
    }

    /// Every cut and every changed byte.
    #[test]
    fn a_damaged_file_is_told() {
        let text = write(CONTROL, PLACE, &all());
        for cut in 0..text.len() {
            let cut = text.get(..cut).unwrap();
            assert_eq!(read(cut, CONTROL, PLACE), Err(NotUsed::Damaged), "{cut:?}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(read(&changed, CONTROL, PLACE).is_err(), "{changed:?}");
        }
        let two = format!("{text}{text}");
        assert_eq!(read(&two, CONTROL, PLACE), Err(NotUsed::Damaged));
    }

    #[test]
    fn only_what_nobody_reserved_above_is_issued() {
        let now = Now {
            bound_end: 1_000,
            is_own_bound: true,
            start_min: 1,
            end_max: 1 << 63,
        };
        assert!(may_be_issued(101, 1_000, &now));
        let others = [
            Now {
                bound_end: 1_001,
                ..now
            },
            Now {
                bound_end: 999,
                ..now
            },
            Now {
                is_own_bound: false,
                ..now
            },
            Now {
                start_min: 102,
                ..now
            },
            Now {
                end_max: 999,
                ..now
            },
        ];
        for now in others {
            assert!(!may_be_issued(101, 1_000, &now), "{now:?}");
        }
        assert!(!may_be_issued(1_000, 1_000, &now), "nothing is left");
    }
}
