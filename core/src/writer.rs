//! Who wrote a bound, and what it takes to go on safely after somebody else.
//!
//! A replica promoted by hand, a restored base backup or a dump does not know what the original issued after the
//! copy was taken. So beside each bound stands a [`Note`]: the writer's mark, when, how much, how fast. Another
//! mark makes the bound a mere floor and asks for a gap.

/// What distinguishes one life of one database from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// PostgreSQL's system identifier, given by initdb.
    pub system_identifier: u64,
    /// The timeline WAL is inserted into: a promotion changes it.
    pub timeline: u32,
    /// The database's oid: CREATE DATABASE … TEMPLATE changes it.
    pub database_oid: u32,
    /// How often `pg_resetwal` lost something of the server's log: [`crate::Resets::lossy`].
    pub resets: u32,
}

impl Writer {
    /// Bits of a timeline in a mark.
    pub const TIMELINE_BITS: u32 = 7;
    const HASH_BITS: u32 = 12;
    /// Bits of [`Writer::mark`].
    pub const MARK_BITS: u32 = Self::TIMELINE_BITS + Self::HASH_BITS;
    /// As many resets as a mark can tell apart. Those beyond are not told from the last one.
    pub const RESETS_MAX: u32 = (1 << Self::HASH_BITS) - 1;

    /// A short mark: the timeline's low 7 bits as they are, so that the next 127 promotions are always told apart, and
    /// 12 bits of hash over system and database: one pair in 4096 of unrelated ones looks the same. The number of resets changes the
    /// hash so that those of one database are always told apart.
    pub fn mark(&self) -> u32 {
        let hash = self.hash_without_resets() ^ self.resets.min(Self::RESETS_MAX);
        let timeline = self.timeline & ((1 << Self::TIMELINE_BITS) - 1);
        hash << Self::TIMELINE_BITS | timeline
    }

    fn hash_without_resets(&self) -> u32 {
        let hash = mix(self.system_identifier ^ mix(u64::from(self.database_oid)));
        u32::try_from(hash >> (64 - Self::HASH_BITS)).unwrap_or(0)
    }

    /// Whether the log that recorded what a note stands beside may have been lost since, so that the bound may lie below what was issued: unless the
    /// note shows that this database wrote it after the last loss. On whatever timeline: later notes may be lost, too. The note of another server or
    /// database came before the loss, and what this one wrote behind it is lost; or it came later: nothing tells. Without a note it may be so.
    pub fn may_have_lost(&self, note: Option<&Note>) -> bool {
        let life = |mark: u32| mark >> Self::TIMELINE_BITS;
        self.resets > 0 && note.is_none_or(|note| life(note.mark) != life(self.mark()))
    }

    /// Whether this database wrote a note on its present timeline, before `pg_resetwal` lost something of the log. Then that made its mark another, and no
    /// promotion did.
    pub fn was_reset_since(&self, note: &Note) -> bool {
        let timeline = |mark: u32| mark & ((1 << Self::TIMELINE_BITS) - 1);
        let resets = (note.mark >> Self::TIMELINE_BITS) ^ self.hash_without_resets();
        timeline(note.mark) == timeline(self.mark()) && resets < self.resets.min(Self::RESETS_MAX)
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): every bit of the input reaches every bit of the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// What is recorded beside a bound, in 63 bits: a companion sequence holds it.
///
/// A tag gets its note when it is made, so that who never saw its first bound knows that there may be one. That note alone
/// stands without a bound. Beside any other a bound was written first: if it is missing, it was lost on the way.
///
/// Everything is rounded so that a gap derived from it is never too small: size and rate up, time down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// [`Writer::mark`] of the writer, 19 bits.
    pub mark: u32,
    /// Whether nothing was reserved yet, so that there need be no bound.
    pub is_first: bool,
    /// When, in seconds since 2020-01-01 UTC, 31 bits: until 2088.
    pub at_s: u32,
    /// Binary logarithm of the ids reserved, 6 bits.
    pub size_log2: u8,
    /// Binary logarithm of the ids used per second, 6 bits.
    pub rate_log2: u8,
}

impl Note {
    /// 2020-01-01T00:00:00Z.
    const EPOCH_MS: i64 = 1_577_836_800_000;
    const LOG2_BITS: u32 = 6;
    const LOG2_MASK: u8 = (1 << Self::LOG2_BITS) - 1;
    const AT_BITS: u32 = 31;
    const AT_S_MAX: u32 = (1 << Self::AT_BITS) - 1;
    /// The bit of a packed note that says [`Note::is_first`].
    pub const FIRST_BIT: u32 = 2 * Self::LOG2_BITS + Self::AT_BITS;
    /// The bits of a packed note from this one on say which database wrote it, after how many losses: what [`Writer::may_have_lost`] compares.
    pub const LIFE_BIT: u32 = Self::FIRST_BIT + 1 + Writer::TIMELINE_BITS;

    /// The note for a reservation of `size` ids at `now_ms` (unix) by `writer`, at `rate_per_s` ids a second.
    pub fn new(writer: Writer, now_ms: i64, size: u64, rate_per_s: u64) -> Self {
        Self {
            mark: writer.mark(),
            is_first: false,
            at_s: Self::seconds_at(now_ms).min(Self::AT_S_MAX),
            size_log2: log2_up(size),
            rate_log2: log2_up(rate_per_s),
        }
    }

    /// The note of a tag that was made and has reserved nothing yet.
    pub fn before_the_first(self) -> Self {
        Self {
            is_first: true,
            ..self
        }
    }

    /// The note with the higher of its rate and that of the note before: the peak of the tag's life, whoever wrote it.
    pub fn at_peak_since(self, before: Option<&Self>) -> Self {
        let peak_log2 = before.map_or(0, |before| before.rate_log2);
        Self {
            rate_log2: self.rate_log2.max(peak_log2),
            ..self
        }
    }

    /// A moment in unix milliseconds as seconds since 2020-01-01, rounded down.
    pub(crate) fn seconds_at(unix_ms: i64) -> u32 {
        let since_s = unix_ms.saturating_sub(Self::EPOCH_MS).div_euclid(1000);
        u32::try_from(since_s.max(0)).unwrap_or(u32::MAX)
    }

    /// Seconds since 2020-01-01 as unix milliseconds.
    pub(crate) fn ms_of(since_s: u32) -> i64 {
        Self::EPOCH_MS + i64::from(since_s) * 1000
    }

    /// The note as a non-negative number.
    pub fn pack(&self) -> i64 {
        let mark = i64::from(self.mark & ((1 << Writer::MARK_BITS) - 1));
        let first = i64::from(self.is_first);
        let at_s = i64::from(self.at_s & Self::AT_S_MAX);
        let size = i64::from(self.size_log2 & Self::LOG2_MASK);
        let rate = i64::from(self.rate_log2 & Self::LOG2_MASK);
        let moment = (mark << 1 | first) << Self::AT_BITS | at_s;
        (moment << Self::LOG2_BITS | size) << Self::LOG2_BITS | rate
    }

    /// The note a number stands for; 0 and below mean that nothing was recorded.
    pub fn unpack(packed: i64) -> Option<Self> {
        let bits = u64::try_from(packed).ok().filter(|bits| *bits != 0)?;
        let low = |shift: u32, width: u32| (bits >> shift) & ((1 << width) - 1);
        Some(Self {
            mark: u32::try_from(low(Self::FIRST_BIT + 1, Writer::MARK_BITS)).ok()?,
            is_first: low(Self::FIRST_BIT, 1) == 1,
            at_s: u32::try_from(low(2 * Self::LOG2_BITS, Self::AT_BITS)).ok()?,
            size_log2: u8::try_from(low(Self::LOG2_BITS, Self::LOG2_BITS)).ok()?,
            rate_log2: u8::try_from(low(0, Self::LOG2_BITS)).ok()?,
        })
    }

    /// Whether `writer` (or one that cannot be told from it) wrote the note.
    pub fn is_of(&self, writer: &Writer) -> bool {
        self.mark == writer.mark()
    }

    /// When the note was written, unix milliseconds, to the second below.
    pub fn at_ms(&self) -> i64 {
        Self::ms_of(self.at_s)
    }

    /// Ids that another writer skips when nothing but this note tells how long ago its writer went on.
    ///
    /// A clock that reads earlier than the note counts as no time passed.
    pub fn tag_gap(&self, now_ms: i64) -> u64 {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms());
        self.tag_gap_after(u64::try_from(elapsed_ms).unwrap_or(0))
    }

    /// Ids that another writer skips: one reservation, and twice the recorded rate for as long as the writer may have
    /// gone on after what reached us.
    ///
    /// It covers what the writer issued past the bound that reached us, as long as that was at most one reservation
    /// or at most twice as fast as ever before.
    pub fn tag_gap_after(&self, lost_ms: u64) -> u64 {
        let rate_per_s = 1u128 << (self.rate_log2 & Self::LOG2_MASK);
        let step = 1u128 << (self.size_log2 & Self::LOG2_MASK);
        let lost = (2 * rate_per_s * u128::from(lost_ms)).div_ceil(1000);
        u64::try_from(step + lost).unwrap_or(u64::MAX)
    }
}

/// The smallest exponent whose power of two is not below `value`, as far as 6 bits go.
pub(crate) fn log2_up(value: u64) -> u8 {
    let exponent = match value.checked_next_power_of_two() {
        Some(power) => power.trailing_zeros(),
        None => 63,
    };
    u8::try_from(exponent.min(63)).unwrap_or(Note::LOG2_MASK)
}
