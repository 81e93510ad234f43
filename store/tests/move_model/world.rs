//! What the world looks like between two steps.

use keywright_store::moving::{Comer, Leaver, TagState};

/// Servers: the database, and one that runs what was backed up of it.
pub const SERVERS: usize = 2;
/// Programs that move the tag.
pub const MOVERS: usize = 2;

/// What the tag's row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// It issues by itself, in a life that began when it was made or returned: within one no id comes twice, by what is proved of native tags.
    Native {
        life: usize,
    },
    Fed {
        is_opened: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Catalogue {
    pub source: Source,
    pub number: u32,
    pub before: u32,
    /// The first id above all that it knows to have been issued or handed over, when it was fed.
    pub end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Server {
    pub catalogue: Catalogue,
    pub incarnation: u8,
    /// What `keywright.source` counts.
    pub setting: u32,
    /// An id that was handed over.
    pub stock: Option<u64>,
}

/// What a program that moves the tag is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    /// To have the store's tag opened.
    Open(usize, Comer),
    /// To tell the server.
    Opened(usize, u32),
    /// To have the store's tag closed.
    Close(usize, Leaver),
    /// To have the server issue natively, from an id on.
    Return(usize, Leaver, u64),
}

/// What may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub issues: u8,
    pub reservations: u8,
    pub crashes: u8,
    pub backups: u8,
    pub restores: u8,
    pub losses: u8,
    pub moves: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub store: TagState,
    /// Of each native life the next id.
    pub lives: Vec<u64>,
    pub servers: [Option<Server>; SERVERS],
    pub movers: [Phase; MOVERS],
    pub backup: Option<Catalogue>,
    pub next_incarnation: u8,
    pub left: Budget,
    /// A bit per id that a database issued natively.
    pub native: u64,
    /// The same of the store. Before the database comes to the store's tag these are ids of two tags.
    pub stored: u64,
    pub twice: bool,
    /// 1: issued natively; 2: then fed; 3: then natively.
    pub stage: u8,
    pub went_around: bool,
}

impl World {
    pub fn new(left: Budget) -> World {
        let server = Server {
            catalogue: Catalogue {
                source: Source::Native { life: 0 },
                number: 0,
                before: 0,
                end: 1,
            },
            incarnation: 0,
            setting: 0,
            stock: None,
        };
        World {
            store: TagState {
                start: 1,
                free: 1,
                heir: None,
                known: None,
            },
            lives: vec![1],
            servers: [Some(server), None],
            movers: [Phase::Idle, Phase::Idle],
            backup: None,
            next_incarnation: 1,
            left,
            native: 0,
            stored: 0,
            twice: false,
            stage: 0,
            went_around: false,
        }
    }
}
