//! What a promoted standby can know of what it never received.
//!
//! Nothing in a standby tells how much the primary issued after the last record that arrived. It can be bounded by time:
//! from the newest moment of which is known that everything until then arrived, to the moment when the promotion was
//! noticed, a tag issued at most at the highest rate of its life. That time is worked out once, when a database first meets a
//! note of the timeline it was promoted from, and kept beside the notes; or the owner says it.

use crate::writer::{Note, Writer};

/// What the WAL receiver of a standby left in shared memory. Positions are bytes of the log, times unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastMessage {
    /// When the primary sent the last message of any kind, by its clock.
    pub sent_ms: i64,
    /// When it arrived, by ours.
    pub received_ms: i64,
    /// The end that the last message named: of what was flushed if it carried data, of what was sent if it did not.
    pub named_end: u64,
    /// When a message first named an end beyond all before; or when the receiver started.
    pub named_ms: i64,
    /// Up to where the log that arrived was replayed.
    pub replayed: u64,
    /// Whether the three times are one: the receiver started and has not heard anything yet.
    pub is_silent: bool,
}

impl LastMessage {
    /// Pages of the log. A message that leaves something for later ends on a page.
    const PAGE_BYTES: u64 = 8192;

    /// The newest moment until which, by this alone, everything that the primary had flushed arrived.
    ///
    /// A message with data names what is flushed; one without (a keepalive) names what was sent, which says nothing of
    /// what waits behind a slow link. Afterwards both look the same but for this: what did not fit into a message is cut at a
    /// page, so an end within a page is the end of what was flushed when the last data was sent. Then the time is that of the
    /// message that named it first, or the start of the receiver before it, never that of a keepalive.
    pub fn evidence_ms(&self) -> Option<i64> {
        let is_whole = self.named_end != 0 && !self.named_end.is_multiple_of(Self::PAGE_BYTES);
        (!self.is_silent && is_whole && self.replayed >= self.named_end).then_some(self.named_ms)
    }

    /// The longest that a message is known to have taken, milliseconds; 0 when the clocks hide it.
    fn lag_ms(&self, now_ms: i64) -> u64 {
        let travelled = since(self.sent_ms, self.received_ms).unwrap_or(0);
        travelled.max(since(self.received_ms, now_ms).unwrap_or(0))
    }
}

/// All that a promoted server knows of the moment until which everything arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// When the last commit that was replayed was made.
    pub commit_ms: Option<i64>,
    /// When the newest note of the timeline it was promoted from was written: see [`Received::newest_note`].
    pub note_ms: Option<i64>,
    /// What the WAL receiver heard last.
    pub message: Option<LastMessage>,
}

impl Received {
    /// The newest of these moments; of those that the clock has not reached only if there is no other. A note may be of a
    /// time when the primary's clock was ahead; what is older is evidence too.
    pub fn newest_note(notes_ms: &[i64], now_ms: i64) -> Option<i64> {
        let reached = notes_ms.iter().filter(|note_ms| **note_ms <= now_ms).max();
        reached.or(notes_ms.iter().max()).copied()
    }

    /// The newest moment until which everything arrived by what only shared memory knows: commits and messages are the last
    /// of their kind, whatever their clock.
    pub fn heard_ms(&self) -> Option<i64> {
        let message_ms = self.message.and_then(|message| message.evidence_ms());
        self.commit_ms.max(message_ms)
    }

    /// For how long the primary may have issued what did not arrive; `None` if nothing tells. A clock that reads earlier
    /// than the evidence tells nothing, so then it is the largest lag that was measured so far: `lag_ms_max`, or this
    /// receiver's.
    pub fn lost_ms(&self, now_ms: i64, lag_ms_max: u64) -> Option<u64> {
        let note_ms = self.note_ms.filter(|note_ms| match self.heard_ms() {
            Some(_) => *note_ms <= now_ms,
            None => true,
        });
        let newest_ms = self.heard_ms().max(note_ms)?;
        Some(since(newest_ms, now_ms).unwrap_or_else(|| {
            let lag_ms = self.message.map_or(0, |message| message.lag_ms(now_ms));
            lag_ms.max(lag_ms_max)
        }))
    }
}

/// Milliseconds from `then_ms` to `now_ms`; `None` if the clock reads earlier.
fn since(then_ms: i64, now_ms: i64) -> Option<u64> {
    u64::try_from(now_ms.saturating_sub(then_ms)).ok()
}

/// How it is known for how long the primary issued what did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// From what arrived.
    Estimate,
    /// The owner said it.
    Owner,
}

/// That a server was promoted or copied, or its log reset, as a database of it keeps it: 62 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promotion {
    /// [`Writer::mark`] since.
    pub mark: u32,
    /// The mark before, if the timeline it was promoted from is known.
    pub parent: Option<u32>,
    /// When it was noticed, in seconds since 2020-01-01 UTC, rounded up.
    pub noticed_s: u32,
    /// Whose word the loss is.
    pub word: Word,
    /// Whether somebody has taken note of it.
    pub is_acknowledged: bool,
    /// Whether it was no promotion: `pg_resetwal` lost something of this server's own log ([`crate::resets`]).
    pub is_reset: bool,
}

impl Promotion {
    const TIMELINE_MASK: u32 = (1 << Writer::TIMELINE_BITS) - 1;

    /// The promotion of `writer` from the timeline `parent`, noticed at `now_ms`.
    pub fn new(writer: &Writer, parent: Option<u32>, now_ms: i64, word: Word) -> Self {
        let before = |timeline| Writer {
            timeline,
            ..*writer
        };
        Self {
            mark: writer.mark(),
            parent: parent.map(|timeline| before(timeline).mark()),
            noticed_s: Note::seconds_at(now_ms.saturating_add(999)),
            word,
            is_acknowledged: false,
            is_reset: false,
        }
    }

    /// When it was noticed, unix milliseconds, to the second above.
    pub fn noticed_ms(&self) -> i64 {
        Note::ms_of(self.noticed_s)
    }

    /// The promotion as a positive number.
    pub fn pack(&self) -> i64 {
        let timeline = self.parent.map_or(0, |parent| parent & Self::TIMELINE_MASK);
        let fields = [
            (i64::from(self.is_reset), 1),
            (i64::from(self.mark), Writer::MARK_BITS),
            (i64::from(self.noticed_s), 32),
            (i64::from(timeline), Writer::TIMELINE_BITS),
            (i64::from(self.parent.is_some()), 1),
            (i64::from(self.word == Word::Owner), 1),
            (i64::from(self.is_acknowledged), 1),
        ];
        fields
            .into_iter()
            .fold(0, |packed, (field, bits)| packed << bits | field)
    }

    /// The promotion that a number stands for; 0 and below stand for none.
    pub fn unpack(packed: i64) -> Option<Self> {
        let bits = u64::try_from(packed).ok().filter(|bits| *bits != 0)?;
        let low = |shift: u32, width: u32| u32::try_from((bits >> shift) & ((1 << width) - 1)).ok();
        let mark = low(42, Writer::MARK_BITS)?;
        let timeline = low(3, Writer::TIMELINE_BITS)?;
        Some(Self {
            mark,
            parent: (bits & 4 != 0).then_some(mark & !Self::TIMELINE_MASK | timeline),
            noticed_s: low(10, 32)?,
            word: if bits & 2 != 0 {
                Word::Owner
            } else {
                Word::Estimate
            },
            is_acknowledged: bits & 1 != 0,
            is_reset: low(42 + Writer::MARK_BITS, 1)? == 1,
        })
    }
}

/// For how long the primary may have issued what did not arrive: 63 bits beside a [`Promotion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The mark of its promotion.
    pub mark: u32,
    /// How long, milliseconds.
    pub ms: u64,
    /// Binary logarithm of the largest lag measured so far, milliseconds, 6 bits.
    pub lag_log2: u8,
}

impl Loss {
    const MS_BITS: u32 = 38;
    const LAG_BITS: u32 = 6;
    /// Longest loss that can be kept, milliseconds: more than eight years.
    pub const MS_MAX: u64 = (1 << Self::MS_BITS) - 1;

    /// A loss of `ms`, after lags of up to `lag_ms_max`.
    pub fn new(mark: u32, ms: u64, lag_ms_max: u64) -> Self {
        Self {
            mark,
            ms: ms.min(Self::MS_MAX),
            lag_log2: crate::writer::log2_up(lag_ms_max),
        }
    }

    /// The largest lag measured so far, milliseconds, rounded up; 0 for none.
    pub fn lag_ms_max(&self) -> u64 {
        match self.lag_log2 {
            0 => 0,
            log2 => 1 << log2.min(63),
        }
    }

    /// The loss as a positive number.
    pub fn pack(&self) -> i64 {
        let ms = self.ms.min(Self::MS_MAX).cast_signed();
        let lag = i64::from(self.lag_log2 & ((1 << Self::LAG_BITS) - 1));
        (i64::from(self.mark) << Self::MS_BITS | ms) << Self::LAG_BITS | lag
    }

    /// The loss that a number stands for; 0 and below stand for none.
    pub fn unpack(packed: i64) -> Option<Self> {
        let bits = u64::try_from(packed).ok().filter(|bits| *bits != 0)?;
        let mark = bits >> (Self::MS_BITS + Self::LAG_BITS);
        Some(Self {
            mark: u32::try_from(mark & ((1 << Writer::MARK_BITS) - 1)).ok()?,
            ms: bits >> Self::LAG_BITS & Self::MS_MAX,
            lag_log2: u8::try_from(bits & ((1 << Self::LAG_BITS) - 1)).ok()?,
        })
    }
}

/// For how long whoever wrote `note`, another writer, may have issued what did not arrive, milliseconds.
///
/// What this server received speaks for the timeline it was promoted from. Of an older one, or of a copy's original, the note
/// alone speaks; and of the present one's parent too, where it is the newest. What the owner said counts for all. Rates are
/// of a second, so a loss is that long at least, unless the owner says that there was none.
pub fn lost_ms(note: &Note, promotion: &Promotion, loss: &Loss) -> u64 {
    let by_note = since(note.at_ms(), promotion.noticed_ms());
    let ms = match (promotion.word, promotion.parent == Some(note.mark)) {
        (Word::Owner, true | false) if loss.ms == 0 => return 0,
        (Word::Owner, true | false) => loss.ms,
        (Word::Estimate, true) => by_note.map_or(loss.ms, |by_note| by_note.min(loss.ms)),
        (Word::Estimate, false) => by_note.unwrap_or(loss.lag_ms_max()).max(loss.lag_ms_max()),
    };
    ms.max(1000)
}
