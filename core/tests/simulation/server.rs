//! A server: a machine with two clocks, a durable store, and shared memory that a crash zeroes.

use keywright_core::{
    LastMessage, RateWindow, Readings, SegmentWord, SnowflakeWord, VirtualClock, Writer,
};

use crate::rules::Rules;
use crate::store::{Register, Store};

/// Databases of a server.
pub const DATABASES: u8 = 2;
/// Tags of a database.
pub const TAGS: usize = 2;
/// Worker ids that a server's operator may give to its databases.
pub const WORKERS: usize = 3;

/// A machine's clocks, as offsets from true time.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Wall clock minus true time.
    pub wall_offset_ms: i64,
    /// When the machine was started, true time.
    pub booted_at_ms: i64,
}

impl Machine {
    /// Both clocks at a moment of true time.
    pub fn readings(&self, true_ms: i64) -> Readings {
        Readings {
            wall_ms: true_ms + self.wall_offset_ms,
            boot_ms: u64::try_from(true_ms - self.booted_at_ms).expect("booted before"),
        }
    }
}

/// One of a worker's two words.
#[derive(Debug, Default)]
pub struct Track {
    pub word: SnowflakeWord,
    pub extend_at: u64,
}

/// The slot of a worker id.
#[derive(Debug, Default)]
pub struct TimeSlot {
    pub main: Track,
    pub spare: Track,
    pub highest_ms: i64,
    pub skew_ms: i64,
    pub clock: VirtualClock,
    /// The database that took the word over.
    pub owner: Option<u8>,
    /// The backend that holds the refill flag.
    pub gate: Option<u32>,
}

impl TimeSlot {
    pub fn track(&mut self, spare: bool) -> &mut Track {
        if spare {
            &mut self.spare
        } else {
            &mut self.main
        }
    }
}

/// A tag's word: core's, or one with a fault.
#[derive(Debug)]
pub enum TagWord {
    Core(SegmentWord),
    Mutant { cursor: u64, hi: u64 },
}

impl Default for TagWord {
    fn default() -> Self {
        Self::Core(SegmentWord::new())
    }
}

impl TagWord {
    pub fn cursor(&self) -> u64 {
        match self {
            Self::Core(word) => word.cursor(),
            Self::Mutant { cursor, .. } => *cursor,
        }
    }

    pub fn hi(&self) -> u64 {
        match self {
            Self::Core(word) => word.hi(),
            Self::Mutant { hi, .. } => *hi,
        }
    }

    pub fn remaining(&self) -> u64 {
        match self {
            Self::Core(word) => word.remaining(),
            Self::Mutant { cursor, hi } => hi.saturating_sub(*cursor),
        }
    }
}

/// The slot of a tag.
#[derive(Debug, Default)]
pub struct TagSlot {
    pub word: TagWord,
    pub refill_at: u64,
    pub taken_over: bool,
    /// 0: not known yet.
    pub step: u64,
    pub last_size: u64,
    pub last_refill_boot_ms: Option<u64>,
    pub rate: RateWindow,
    /// The backend that holds the refill flag.
    pub gate: Option<u32>,
}

/// What a crash zeroes.
#[derive(Debug, Default)]
pub struct SharedMemory {
    pub times: [TimeSlot; WORKERS],
    pub tags: [[TagSlot; TAGS]; DATABASES as usize],
    /// What a promoted server knows of its time as a standby.
    pub arrived: Option<Arrived>,
}

/// What a promotion leaves in shared memory.
#[derive(Debug, Clone, Copy)]
pub struct Arrived {
    pub commit_ms: Option<i64>,
    pub message: Option<LastMessage>,
}

impl SharedMemory {
    pub fn new(rules: Rules) -> Self {
        let mut fresh = Self::default();
        if rules.has_mutant_word() {
            for slot in fresh.tags.iter_mut().flatten() {
                slot.word = TagWord::Mutant { cursor: 0, hi: 0 };
            }
        }
        fresh
    }
}

/// One server.
#[derive(Debug)]
pub struct Server {
    /// Whether its store has every bound that was published since initdb: a backup or a standby that lags does not.
    pub is_lossless: bool,
    pub machine: Machine,
    pub system_identifier: u64,
    pub timeline: u32,
    /// When the first entry was flushed that it lost at its promotion, true time.
    pub lost_from_ms: i64,
    pub store: Store,
    pub memory: SharedMemory,
    /// The number of its first worker id.
    pub worker_base: u32,
    /// Which store its tags belong to.
    pub tag_store: u8,
    pub is_alive: bool,
}

impl Server {
    pub fn writer(&self, database: u8) -> Writer {
        Writer {
            system_identifier: self.system_identifier,
            timeline: self.timeline,
            database_oid: 16_384 + u32::from(database),
            resets: 0,
        }
    }

    /// The worker id of a database, counted from the server's first.
    pub fn worker_of(&self, database: u8) -> usize {
        let worker = self.store.read(Register::WorkerOf { database });
        worker.map_or(usize::from(database), |worker| {
            usize::try_from(worker).expect("small")
        })
    }
}
