//! What the world looks like between two steps.

/// Programs that feed.
pub const FEEDERS: usize = 2;
/// Servers that are fed, of one tag. One may be restored from the backup of the other.
pub const SERVERS: usize = 2;
/// The store may be made anew once.
pub const SPACES: usize = 2;
/// Ids that are handed over at once.
pub const RANGE_IDS: u8 = 2;

/// Ids, and the key space that they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    pub start: u8,
    pub end: u8,
    pub space: u8,
}

/// The tag in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Store {
    pub space: u8,
    /// The first id that nobody was given.
    pub next: u8,
    /// What somebody handed back: only where that is the flaw.
    pub returned: Option<Range>,
}

/// What a server wants, as a program was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Demand {
    pub server: usize,
    pub incarnation: u8,
    /// The first id above all that the server knows of.
    pub floor: u8,
}

/// A hand-over on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    pub feeder: usize,
    pub demand: Demand,
    pub range: Range,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    Asked(Demand),
    Granted(Demand, Range),
    /// It waits for the answer of the server.
    Sent(Demand, Range),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Feeder {
    pub phase: Phase,
    /// The key space that it has seen.
    pub space: Option<u8>,
}

/// What a server keeps in its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Disk {
    /// The first id above the largest that was taken over. Written without a flush.
    pub above: u8,
    pub space: Option<u8>,
    /// The rest of what it issues from: only where that is the flaw.
    pub rest: Option<Range>,
    /// Only where that is the flaw.
    pub incarnation: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Server {
    pub incarnation: u8,
    /// What was handed over and not needed yet.
    pub pending: Option<Range>,
    /// What is issued from.
    pub current: Option<Range>,
    /// The first id above all that this incarnation was handed.
    pub floor: u8,
    /// As its own processes see it.
    pub disk: Disk,
    /// What a crash leaves.
    pub flushed: Disk,
}

/// What may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub reservations: u8,
    pub crashes: u8,
    pub backups: u8,
    pub restores: u8,
    pub new_stores: u8,
    pub restarts: u8,
    /// Answers that are lost, and commits that fail.
    pub losses: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub store: Store,
    pub feeders: [Feeder; FEEDERS],
    pub servers: [Server; SERVERS],
    /// Sorted: which was sent first does not matter.
    pub messages: Vec<Message>,
    pub backup: Option<Disk>,
    pub next_incarnation: u8,
    pub left: Budget,
    /// A bit per id, for each key space: of the store, and of one that was made anew.
    pub of_spaces: [u32; SPACES],
    /// The same, for each server.
    pub of_servers: [u32; SERVERS],
    /// An id came twice, of one key space or on one server. A server that never had an id knows no key space, so that ids of a store that was
    /// made anew may be there that another server had of the store of before: that is the owner's to prevent.
    pub twice: bool,
    /// Servers that have issued in another incarnation than the first.
    pub later_lives: u8,
}

impl World {
    pub fn new(left: Budget) -> World {
        let disk = |incarnation| Disk {
            above: 1,
            space: None,
            rest: None,
            incarnation,
        };
        let server = |incarnation| Server {
            incarnation,
            pending: None,
            current: None,
            floor: 1,
            disk: disk(incarnation),
            flushed: disk(incarnation),
        };
        let feeder = Feeder {
            phase: Phase::Idle,
            space: None,
        };
        World {
            store: Store {
                space: 0,
                next: 1,
                returned: None,
            },
            feeders: [feeder; FEEDERS],
            servers: [server(1), server(2)],
            messages: Vec::new(),
            backup: None,
            next_incarnation: 3,
            left,
            of_spaces: [0; SPACES],
            of_servers: [0; SERVERS],
            twice: false,
            later_lives: 0,
        }
    }
}
