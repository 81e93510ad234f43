//! What the world looks like between two steps.

use keywright_store::home::{HomeRow, Standing};

/// The stores.
pub const STORES: usize = 2;
/// Programs that make the tag, or move it.
pub const MOVERS: usize = 2;

/// What a program that makes or moves the tag is about to do; stores by their place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    /// It made the home's row, which has this key space, and is to close the tag in the other store.
    Claim {
        home: usize,
        key_space: String,
    },
    /// It is to open the home, above that bound.
    OpenMade {
        home: usize,
        key_space: String,
        bound: u64,
    },
    /// It prepared the target's row, and is to close the tag where it is.
    Close {
        to: usize,
        key_space: String,
    },
    /// It has closed it, or found it closed, and is to read the tombstone.
    Read {
        to: usize,
        key_space: String,
    },
    /// It has read the tombstone with that bound, and is to open the target.
    Open {
        to: usize,
        key_space: String,
        bound: u64,
    },
}

/// What may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub issues: u8,
    pub makes: u8,
    pub moves: u8,
    /// Answers that are lost, and programs that end where they are.
    pub losses: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub rows: [Option<HomeRow>; STORES],
    pub movers: [Phase; MOVERS],
    /// An id that the program which takes of this store has reserved and not issued.
    pub reserved: [Option<u64>; STORES],
    pub next_key_space: u8,
    pub left: Budget,
    /// A bit per id.
    pub issued: u64,
    pub twice: bool,
    /// 1: issued from the first store; 2: then from the second; 3: then from the first.
    pub stage: u8,
}

impl World {
    pub fn new(left: Budget, is_there: bool) -> World {
        let row = HomeRow {
            free: 1,
            key_space: "0".to_owned(),
            standing: Standing::Open,
            is_dropped: false,
        };
        World {
            rows: [is_there.then_some(row), None],
            movers: [Phase::Idle, Phase::Idle],
            reserved: [None, None],
            next_key_space: 1,
            left,
            issued: 0,
            twice: false,
            stage: 0,
        }
    }

    /// One that was never used.
    pub fn fresh(&mut self) -> String {
        let fresh = self.next_key_space.to_string();
        self.next_key_space += 1;
        fresh
    }
}
