//! What a slot of shared memory belongs to. A word belongs to the sequence that is its durable bound: a sequence that was
//! created in a transaction that rolled back takes its word along. Words whose ids could meet know each other, so that
//! whichever is taken over starts above all of them.

use keywright_core::hiding::Hiding;
use keywright_core::layout::{Layout, WorkerId};
use keywright_core::register::Number;
use keywright_core::tag::Tag;
use keywright_core::unused::Owner;
use keywright_core::zone::Zone;
use pgrx::pg_sys;

/// Where a tag's ranges come from, or the time of snowflake ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// This database reserves them: the sequence is their bound.
    Native,
    /// Programs hand them over, out of a store that others use, too.
    Fed,
}

impl Source {
    /// As the tables keep it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Fed => "fed",
        }
    }

    /// The source of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Native, Self::Fed]
            .into_iter()
            .find(|source| source.name() == name)
    }
}

/// Which tag a slot belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TagKey {
    database: u32,
    extension: u32,
    generation: u32,
    sequence: u32,
    /// 0: native.
    fed: u32,
    /// How often the tag was moved to a store.
    moves: u32,
    /// The fingerprint of the permutation that its numbers go through; zeros: none.
    hiding: [u8; 8],
    tag_bytes: u32,
    tag: [u8; Tag::BYTES_MAX],
}

impl TagKey {
    /// The key of `tag` in one database, one CREATE EXTENSION, one generation of the tag, bounded by `sequence` or fed from a store, moved
    /// so often, with the permutation `hiding`.
    pub fn new(
        database: pg_sys::Oid,
        extension: pg_sys::Oid,
        (generation, sequence): (u32, pg_sys::Oid),
        (source, moves): (Source, u32),
        tag: &Tag,
        hiding: Option<&Hiding>,
    ) -> Self {
        let owner = Owner {
            database: database.to_u32(),
            extension: extension.to_u32(),
            generation,
            sequence: sequence.to_u32(),
            moves,
            hiding: hiding.map_or(0, |hiding| u64::from_be_bytes(hiding.fingerprint().bytes())),
        };
        Self {
            fed: match source {
                Source::Native => 0,
                Source::Fed => 1,
            },
            ..Self::of_owner(owner, tag)
        }
    }

    /// The key that `owner` and `tag` were of, native.
    pub fn of_owner(owner: Owner, tag: &Tag) -> Self {
        let mut bytes = [0; Tag::BYTES_MAX];
        for (slot, byte) in bytes.iter_mut().zip(tag.as_bytes()) {
            *slot = *byte;
        }
        Self {
            database: owner.database,
            extension: owner.extension,
            generation: owner.generation,
            sequence: owner.sequence,
            fed: 0,
            moves: owner.moves,
            hiding: owner.hiding.to_be_bytes(),
            tag_bytes: u32::try_from(tag.as_bytes().len()).unwrap_or(0),
            tag: bytes,
        }
    }

    /// What the key belongs to, beside the tag.
    pub fn owner(&self) -> Owner {
        Owner {
            database: self.database,
            extension: self.extension,
            generation: self.generation,
            sequence: self.sequence,
            moves: self.moves,
            hiding: u64::from_be_bytes(self.hiding),
        }
    }

    /// The tag's text.
    pub fn tag(&self) -> String {
        String::from_utf8_lossy(self.tag_bytes()).into_owned()
    }

    /// The tag; `None` of no key that was made here.
    pub fn parsed_tag(&self) -> Option<Tag> {
        Tag::parse(std::str::from_utf8(self.tag_bytes()).ok()?).ok()
    }

    /// The tag's bytes.
    #[inline]
    pub fn tag_bytes(&self) -> &[u8] {
        let bytes = usize::try_from(self.tag_bytes).unwrap_or(0);
        self.tag.get(..bytes).unwrap_or_default()
    }

    /// Where the tag's ranges come from.
    pub fn source(&self) -> Source {
        match self.fed {
            0 => Source::Native,
            1.. => Source::Fed,
        }
    }

    /// How often the tag was moved to a store.
    pub fn moves(&self) -> u32 {
        self.moves
    }

    /// Whether both are of one tag that is fed, however often it was moved.
    pub fn is_fed_like(&self, other: &Self) -> bool {
        let its = Self {
            moves: other.moves,
            ..*self
        };
        self.source() == Source::Fed && its == *other
    }

    /// The database that the tag is of.
    pub fn database(&self) -> pg_sys::Oid {
        pg_sys::Oid::from(self.database)
    }

    /// The CREATE EXTENSION that the tag is of.
    pub fn extension(&self) -> pg_sys::Oid {
        pg_sys::Oid::from(self.extension)
    }

    /// Whether it is a tag of this database.
    pub fn is_in(&self, database: u32) -> bool {
        self.database == database
    }

    /// Whether the slot belongs to this database and this CREATE EXTENSION.
    pub fn is_of(&self, database: pg_sys::Oid, extension: pg_sys::Oid) -> bool {
        self.database == database.to_u32() && self.extension == extension.to_u32()
    }

    /// Which life of the tag: dropped and re-created with its numbers forgotten is the next one.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The sequence that is the bound.
    pub fn sequence(&self) -> pg_sys::Oid {
        pg_sys::Oid::from(self.sequence)
    }

    /// Whether the numbers of both become ids in the same way.
    pub fn hides_like(&self, other: &Self) -> bool {
        self.hiding == other.hiding
    }

    /// Whether both stand for one life of one tag: its creation, or that of the extension, was rolled back and done again.
    pub fn shares_ids_with(&self, other: &Self) -> bool {
        Self {
            extension: other.extension,
            sequence: other.sequence,
            hiding: other.hiding,
            fed: other.fed,
            moves: other.moves,
            ..*self
        } == *other
    }
}

/// What a time word counts for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TimeKey {
    /// The layout the word's states belong to.
    pub layout: Layout,
    /// The worker's bits in its ids, and those of its spare.
    worker_parts: [u64; 2],
    /// The worker id, or the bucket of a readable word; `NO_WORKER` while a fed word has none.
    number: u32,
    /// What the word is: `SNOWFLAKE`, `READABLE` or `FED`.
    kind: u32,
    /// Database and sequence of the bound; of a fed word the sequence stands for the CREATE EXTENSION.
    bound: [u32; 2],
}

const SNOWFLAKE: u32 = 0;
const READABLE: u32 = 1;
const FED: u32 = 2;
/// No layout has so many.
const NO_WORKER: u32 = u32::MAX;

impl TimeKey {
    /// The key of a worker's snowflake ids, bounded by `sequence` of `database`.
    pub fn snowflake(
        worker: WorkerId,
        layout: Layout,
        database: pg_sys::Oid,
        sequence: pg_sys::Oid,
    ) -> Self {
        Self {
            layout,
            worker_parts: [false, layout.has_spare()]
                .map(|spare| layout.worker_part(worker, spare)),
            number: worker.get(),
            kind: SNOWFLAKE,
            bound: [database.to_u32(), sequence.to_u32()],
        }
    }

    /// The key of a bucket's readable ids, bounded by `sequence` of `database`.
    pub fn readable(bucket: u8, zone: Zone, database: pg_sys::Oid, sequence: pg_sys::Oid) -> Self {
        Self {
            layout: zone.layout(),
            worker_parts: [0, 0],
            number: bucket.into(),
            kind: READABLE,
            bound: [database.to_u32(), sequence.to_u32()],
        }
    }

    /// The key of a database's snowflake ids that are fed, with the worker id that it was handed, if it was.
    pub fn fed(
        worker: Option<WorkerId>,
        layout: Layout,
        database: pg_sys::Oid,
        sequence: pg_sys::Oid,
    ) -> Self {
        let parts = worker.map(|worker| {
            [false, layout.has_spare()].map(|spare| layout.worker_part(worker, spare))
        });
        Self {
            layout,
            worker_parts: parts.unwrap_or_default(),
            number: worker.map_or(NO_WORKER, WorkerId::get),
            kind: FED,
            bound: [database.to_u32(), sequence.to_u32()],
        }
    }

    /// The same with another worker id.
    pub fn fed_with(&self, worker: WorkerId) -> Self {
        let [database, sequence] = self.bound.map(pg_sys::Oid::from);
        Self::fed(Some(worker), self.layout, database, sequence)
    }

    /// Whether programs hand over what it issues.
    pub fn is_fed(&self) -> bool {
        self.kind == FED
    }

    /// The worker id that a fed word was handed.
    pub fn fed_worker(&self) -> Option<u32> {
        (self.is_fed() && self.number != NO_WORKER).then_some(self.number)
    }

    /// Whether both are of one database that is fed, whatever worker ids they were handed.
    pub fn is_fed_like(&self, other: &Self) -> bool {
        self.is_fed() && other.is_fed() && self.bound == other.bound && self.layout == other.layout
    }

    /// The worker's bits in its ids, or those of its spare.
    #[inline]
    pub fn worker_part(&self, spare: bool) -> u64 {
        let [main, other] = self.worker_parts;
        if spare { other } else { main }
    }

    /// Whether its bound is kept in this database.
    pub fn is_in(&self, database: u32) -> bool {
        let [ours, _] = self.bound;
        ours == database
    }

    /// The database that it is of.
    pub fn database(&self) -> pg_sys::Oid {
        let [database, _] = self.bound;
        pg_sys::Oid::from(database)
    }

    /// The sequence that is its bound.
    pub fn sequence(&self) -> u32 {
        let [_, sequence] = self.bound;
        sequence
    }

    /// The number of the database's own that the word issues with; none of a word that is fed.
    pub fn number(&self) -> Option<Number> {
        match self.kind {
            SNOWFLAKE => Some(Number::Worker(self.number)),
            READABLE => Some(Number::Bucket(self.bucket())),
            _ => None,
        }
    }

    /// What the word is used for.
    pub fn time_kind(&self) -> TimeKind {
        match self.kind {
            READABLE => TimeKind::Readable,
            _ => TimeKind::Snowflake,
        }
    }

    /// The bucket of a readable word.
    #[inline]
    pub fn bucket(&self) -> u8 {
        let [bucket, ..] = self.number.to_le_bytes();
        bucket
    }

    /// Whether the ids of both could meet: those of one worker, or of one bucket, whichever database it was. Those of fed words never do.
    pub fn shares_ids_with(&self, other: &Self) -> bool {
        !self.is_fed() && (self.kind, self.number) == (other.kind, other.number)
    }
}

/// What a time word is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// snowflake_id()
    Snowflake,
    /// readable_id(biz)
    Readable,
}

impl TimeKind {
    /// What a number is given for.
    pub fn of(number: Number) -> Self {
        match number {
            Number::Worker(_) => Self::Snowflake,
            Number::Bucket(_) => Self::Readable,
        }
    }

    /// What to call the bound in messages.
    pub fn bound_name(self) -> &'static str {
        match self {
            Self::Snowflake => "the snowflake bound",
            Self::Readable => "the bound of readable ids",
        }
    }
}
