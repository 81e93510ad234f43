//! What is on disk, what is in shared memory, and what only a transaction sees.

use std::collections::{BTreeMap, BTreeSet};

use keywright_core::{Generation, Layout, Register, SnowflakeWord, VirtualClock};

/// The number of a transaction or of a part of it.
pub type Xid = u64;

/// What a database is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity {
    /// The sequence that is the bound; 0 without the extension.
    pub sequence: u32,
    /// Which of the layouts.
    pub layout: usize,
    pub worker: Option<u32>,
    /// Who wrote these three.
    pub writers: [Xid; 3],
}

/// A sequence: no ROLLBACK takes its value back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sequence {
    pub bound_ms: Option<i64>,
    pub has_note: bool,
}

/// Everything in the log. A crash goes back to what was flushed.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub databases: BTreeMap<u32, Identity>,
    pub register: Register,
    pub sequences: BTreeMap<u32, Sequence>,
    pub committed: BTreeSet<Xid>,
}

/// What a word belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub layout: usize,
    pub worker: u32,
    pub database: u32,
    pub sequence: u32,
}

/// A place in shared memory.
#[derive(Debug)]
pub struct Slot {
    pub key: Key,
    pub word: SnowflakeWord,
    pub generation: Generation,
    pub clock: VirtualClock,
    pub skew_ms: i64,
    pub is_taken_over: bool,
    pub closed_by: Xid,
    pub bound_ms: i64,
    pub attempted_ms: i64,
    /// The session in its gate.
    pub gate: Option<u32>,
}

impl Slot {
    pub fn new(key: Key) -> Self {
        Self {
            key,
            word: SnowflakeWord::new(),
            generation: Generation::default(),
            clock: VirtualClock::default(),
            skew_ms: 0,
            is_taken_over: false,
            closed_by: 0,
            bound_ms: 0,
            attempted_ms: 0,
            gate: None,
        }
    }

    /// Gives the place to another key.
    pub fn pass_on(&mut self, key: Key) {
        self.generation.pass_on(&[&self.word], || {});
        self.key = key;
        self.clock = VirtualClock::default();
        self.skew_ms = 0;
        self.is_taken_over = false;
        self.closed_by = 0;
        self.bound_ms = 0;
        self.attempted_ms = 0;
    }
}

/// A transaction from one savepoint to the next.
#[derive(Debug, Default)]
pub struct Level {
    pub xid: Xid,
    pub identity: Option<Identity>,
    pub register: Option<Register>,
    pub has_register_lock: bool,
    /// The sequences that nobody else may extend meanwhile.
    pub held: Vec<u32>,
    /// The sequences that it extended.
    pub extended: Vec<u32>,
}

/// An open transaction.
#[derive(Debug)]
pub struct Transaction {
    pub database: u32,
    pub levels: Vec<Level>,
    /// Whether the database had an identity before.
    pub has_past: Option<bool>,
    pub is_prepared: bool,
}

impl Transaction {
    pub fn is_own(&self, xid: Xid) -> bool {
        self.levels.iter().any(|level| level.xid == xid)
    }

    pub fn register(&self) -> Option<&Register> {
        self.levels
            .iter()
            .rev()
            .find_map(|level| level.register.as_ref())
    }

    pub fn identity(&self) -> Option<Identity> {
        self.levels.iter().rev().find_map(|level| level.identity)
    }

    pub fn has_register_lock(&self) -> bool {
        self.levels.iter().any(|level| level.has_register_lock)
    }

    pub fn holds(&self, sequence: u32) -> bool {
        self.levels
            .iter()
            .any(|level| level.held.contains(&sequence))
    }

    pub fn has_extended(&self, sequence: u32) -> bool {
        self.levels
            .iter()
            .any(|level| level.extended.contains(&sequence))
    }
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Open,
    Committed,
    Failed,
}

/// What an operator would set.
#[derive(Debug)]
pub struct Settings {
    /// Layouts whose numbers meet; the first is what CREATE EXTENSION sets.
    pub layouts: Vec<Layout>,
    /// Whether they are time zones of readable ids, and the numbers buckets.
    pub are_zones: bool,
    pub window_ms: u64,
    pub lead_ms_max: u64,
    pub jump_ms_max: u64,
    pub slots_max: usize,
    /// How often a session does something else than asking for ids, of 256 statements.
    pub changes: u8,
    /// Worker ids that there are: fewer than databases would like.
    pub workers: u32,
    /// How often a database is dropped, of 256 statements.
    pub drops: u8,
}
