//! That `pg_resetwal` threw a PostgreSQL server's write-ahead log away: how a start knows it, and what is remembered of it.
//!
//! Bounds that stood only in the log are lost then, and the tag's sequence lies below ids that were issued. What `pg_resetwal` writes is a
//! checkpoint that is the first record of its segment and has no record before it. No other server has one: even initdb ends with another
//! checkpoint. It is seen until the next checkpoint only, so a file keeps which was seen last, and how many lost something. A server
//! that was stopped in order loses nothing: its last checkpoint wrote everything to the data files.
//!
//! The number of those that lost something is part of the [`Writer`], so that a note from behind the last one is told from any other.

use crate::unused::sum;
use crate::writer::Writer;

/// The first word of the file, and the version of the form.
const FORM: &str = "keywright-resets 1";

/// Bytes of a segment that [`Checkpoint::begins_a_log`] looks at: the header of its first page, and that of the record behind.
pub const HEAD_BYTES: usize = 64;
/// The header of the first page of a segment, bytes.
const PAGE_HEADER_BYTES: u64 = 40;
/// Where it has the position of the page.
const PAGE_AT: usize = 8;
/// Where it has the system identifier.
const SYSTEM_AT: usize = 24;
/// Where the record behind it has the position of the record before.
const BEFORE_AT: usize = 48;
/// Where that record says what it is: a checkpoint of a server that was shut down is 0 in the upper half.
const KIND_AT: usize = 56;
/// Where that record says of which manager it is: 0 is the log's own.
const MANAGER_AT: usize = 57;

/// The last checkpoint, as the server's control file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The server's system identifier.
    pub system_identifier: u64,
    /// Where the record lies, bytes of the log.
    pub position: u64,
    /// The timeline that it is on.
    pub timeline: u32,
    /// Bytes of a segment of the log.
    pub segment_bytes: u32,
}

impl Checkpoint {
    /// The name of the file that it lies in, if it is the first record there.
    pub fn segment_if_first(&self) -> Option<String> {
        let bytes = u64::from(self.segment_bytes);
        if self.position.checked_rem(bytes)? != PAGE_HEADER_BYTES {
            return None;
        }
        let segment = self.position.checked_div(bytes)?;
        let per_name = (1u64 << 32).checked_div(bytes)?;
        let (high, low) = (
            segment.checked_div(per_name)?,
            segment.checked_rem(per_name)?,
        );
        Some(format!("{:08X}{high:08X}{low:08X}", self.timeline))
    }

    /// Whether a log begins with it, by the first bytes of that file.
    pub fn begins_a_log(&self, head: &[u8; HEAD_BYTES]) -> bool {
        let number = |at: usize| Some(u64::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let kind = head.get(KIND_AT).map(|kind| kind >> 4);
        number(PAGE_AT) == self.position.checked_sub(PAGE_HEADER_BYTES)
            && number(SYSTEM_AT) == Some(self.system_identifier)
            && number(BEFORE_AT) == Some(0)
            && kind == Some(0)
            && head.get(MANAGER_AT) == Some(&0)
    }
}

/// What is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resets {
    /// The system identifier of the server when a log was seen last that began anew.
    pub system_identifier: u64,
    /// The position at which it began; 0: none was seen.
    pub position: u64,
    /// How many lost something.
    pub lossy: u32,
}

impl Resets {
    /// What is remembered after a start that found a log that begins with `checkpoint`.
    pub fn with(self, checkpoint: &Checkpoint, was_stopped_in_order: bool) -> Self {
        let Checkpoint {
            system_identifier,
            position,
            ..
        } = *checkpoint;
        // The server was started since, and has written no checkpoint.
        if (self.system_identifier, self.position) == (system_identifier, position) {
            return self;
        }
        let more = u32::from(!was_stopped_in_order);
        Self {
            system_identifier,
            position,
            lossy: self.lossy.saturating_add(more).min(Writer::RESETS_MAX),
        }
    }

    /// Where nothing tells how many there were: more than a server has ever had, so that all notes from before count as older than one of
    /// them, and far fewer than a mark tells apart, so that later ones count.
    pub fn unknown() -> Self {
        Self {
            lossy: Writer::RESETS_MAX / 2 + 1,
            ..Self::default()
        }
    }

    /// The text of the file.
    pub fn write(&self) -> String {
        let Self {
            system_identifier,
            position,
            lossy,
        } = self;
        let text = format!("{FORM} {system_identifier} {position:016X} {lossy}");
        format!("{text} {:016x}\n", sum(text.as_bytes()))
    }

    /// What a file says; `None` if it is damaged, or of another version.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.strip_prefix(FORM)?.strip_prefix(' ')?.split(' ');
        let read = Self {
            system_identifier: words.next()?.parse().ok()?,
            position: u64::from_str_radix(words.next()?, 16).ok()?,
            lossy: words.next()?.parse().ok()?,
        };
        (read.write() == text && read.lossy <= Writer::RESETS_MAX).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT_BYTES: u32 = 16 << 20;
    const AT: Checkpoint = Checkpoint {
        system_identifier: 7_301_234_567_890_123_456,
        position: 0x1_0300_0028,
        timeline: 2,
        segment_bytes: SEGMENT_BYTES,
    };

    /// The first bytes of what `pg_resetwal` writes.
    fn head() -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[PAGE_AT..PAGE_AT + 8].copy_from_slice(&(AT.position - 40).to_ne_bytes());
        head[SYSTEM_AT..SYSTEM_AT + 8].copy_from_slice(&AT.system_identifier.to_ne_bytes());
        // Its length, and its sum.
        head[40] = 114;
        head[60..].fill(0xA7);
        head
    }

    #[test]
    fn only_the_first_record_of_a_segment_is_looked_at() {
        let name = AT.segment_if_first();
        assert_eq!(name.as_deref(), Some("000000020000000100000003"));
        for position in [0, 40 - 1, 0x1_0300_0027, 0x1_0300_0048, 0x1_0300_2028] {
            let other = Checkpoint { position, ..AT };
            assert_eq!(other.segment_if_first(), None, "{position:X}");
        }
        let large = Checkpoint {
            segment_bytes: 1 << 30,
            position: (6 << 30) + 40,
            ..AT
        };
        let name = large.segment_if_first();
        assert_eq!(name.as_deref(), Some("000000020000000100000002"));
        let none = Checkpoint {
            segment_bytes: 0,
            ..AT
        };
        assert_eq!(none.segment_if_first(), None);
    }

    #[test]
    fn a_log_begins_where_no_record_lies_before() {
        assert!(AT.begins_a_log(&head()));
        for at in [
            PAGE_AT,
            PAGE_AT + 7,
            SYSTEM_AT,
            BEFORE_AT,
            BEFORE_AT + 7,
            MANAGER_AT,
        ] {
            let mut other = head();
            other[at] ^= 1;
            assert!(!AT.begins_a_log(&other), "byte {at}");
        }
        let mut online = head();
        online[KIND_AT] = 0x10;
        assert!(!AT.begins_a_log(&online));
        assert!(!AT.begins_a_log(&[0; HEAD_BYTES]));
    }

    #[test]
    fn each_is_counted_once_and_only_if_something_was_lost() {
        let none = Resets::default();
        let first = none.with(&AT, false);
        assert_eq!(first.lossy, 1);
        assert_eq!(first.with(&AT, false), first, "seen at a second start");
        let next = Checkpoint {
            position: AT.position + u64::from(SEGMENT_BYTES),
            ..AT
        };
        assert_eq!(first.with(&next, false).lossy, 2);
        let harmless = none.with(&AT, true);
        assert_eq!(harmless.lossy, 0);
        assert_eq!(harmless.with(&AT, false).lossy, 0, "it stays harmless");
        let unknown = Resets::unknown();
        // More than there ever were, and room for as many again.
        assert_eq!(unknown.lossy, 2_048);
        assert!(unknown.with(&AT, false).lossy > unknown.lossy);
        assert_eq!(unknown.with(&AT, true).lossy, unknown.lossy);
        assert_eq!(Resets::read(&unknown.write()), Some(unknown));
        let last = Resets {
            lossy: Writer::RESETS_MAX,
            ..none
        };
        assert_eq!(last.with(&AT, false).lossy, Writer::RESETS_MAX);
    }

    /// Every cut and every changed byte.
    #[test]
    fn what_was_written_is_read_and_damage_is_told() {
        let resets = Resets::default().with(&AT, false);
        let text = resets.write();
        assert_eq!(Resets::read(&text), Some(resets));
        for at in 0..text.len() {
            assert_eq!(Resets::read(&text[..at]), None);
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
            assert_eq!(Resets::read(&String::from_utf8(bytes).unwrap()), None);
        }
        assert_eq!(Resets::read(&format!("{text}{text}")), None);
    }
}
