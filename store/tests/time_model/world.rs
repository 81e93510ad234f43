//! What there is: a store, programs, and databases that are fed. Moments are small numbers.

/// Programs that feed.
pub const FEEDERS: usize = 2;
/// Databases that are fed.
pub const DATABASES: usize = 2;
/// Worker ids.
pub const WORKERS: u8 = 2;
/// No bound is further ahead.
pub const AHEAD: u8 = 2;

/// Time of a worker id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time {
    pub worker: u8,
    pub from: u8,
    pub until: u8,
}

/// The lease of a worker id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    /// The life of a database's memory.
    pub owner: Option<u8>,
    pub epoch: u8,
    pub bound: u8,
    pub server: u8,
}

pub type Rows = [Option<Row>; WORKERS as usize];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Store {
    pub rows: Rows,
    /// Others count as used until then.
    pub unknown_until: u8,
    pub server: u8,
    /// As a standby has them.
    pub replicated: Rows,
}

/// What a database wants, as a program was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Demand {
    pub database: usize,
    pub incarnation: u8,
    pub ask: u8,
    /// Worker id and moment that it was handed last in this life.
    pub handed: Option<(u8, u8)>,
}

/// A hand-over on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    pub feeder: usize,
    pub demand: Demand,
    pub time: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    /// With the rows as they were then: only used where that is the flaw.
    Asked(Demand, Rows),
    Granted(Demand, Time),
    /// It waits for the answer of the server.
    Sent(Demand, Time),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Database {
    pub incarnation: u8,
    /// Hand-overs that were taken in this life.
    pub taken: u8,
    pub handed: Option<(u8, u8)>,
    /// What was handed over and not needed yet.
    pub pending: Option<Time>,
    /// What is issued from. It outlives the memory only where that is the flaw.
    pub current: Option<Time>,
}

/// What may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub reservations: u8,
    pub ticks: u8,
    pub crashes: u8,
    /// Answers that are lost, and commits that fail.
    pub losses: u8,
    pub promotions: u8,
    pub new_stores: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub now: u8,
    pub store: Store,
    pub feeders: [Phase; FEEDERS],
    pub databases: [Database; DATABASES],
    /// Sorted: which was sent first does not matter.
    pub messages: Vec<Message>,
    pub next_incarnation: u8,
    pub left: Budget,
    /// A bit per moment, for each worker id.
    pub issued: [u32; WORKERS as usize],
    pub twice: bool,
    /// Databases that have issued in another life than the first.
    pub later_lives: u8,
}

impl World {
    pub fn new(left: Budget) -> World {
        let database = |incarnation| Database {
            incarnation,
            taken: 0,
            handed: None,
            pending: None,
            current: None,
        };
        World {
            now: AHEAD,
            store: Store {
                rows: [None; WORKERS as usize],
                unknown_until: AHEAD,
                server: 0,
                replicated: [None; WORKERS as usize],
            },
            feeders: [Phase::Idle; FEEDERS],
            databases: [database(1), database(2)],
            messages: Vec::new(),
            next_incarnation: 3,
            left,
            issued: [0; WORKERS as usize],
            twice: false,
            later_lives: 0,
        }
    }
}
