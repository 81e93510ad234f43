//! The state: a store, one machine with one file, and two programs that are told to keep their ranges in it.

/// Programs of the machine.
pub const PROGRAMS: usize = 2;
/// Ids of a reservation: half of them are kept.
pub const RANGE_IDS: u8 = 4;

/// A range of ids, or its rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    pub start: u8,
    pub end: u8,
    pub generation: u8,
}

impl Range {
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// What a file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Content {
    /// Of the machine's run, and of the file.
    pub boot: u8,
    pub inode: u8,
    /// Until the end of which of the times that others wait it may be used.
    pub era: u8,
    /// The generation that was in force; nothing while tables are switched.
    pub standing: Option<u8>,
    pub tail: Option<Range>,
}

/// The one file of that name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct File {
    pub inode: u8,
    /// What is read of it.
    pub says: Content,
    /// What is on the disk.
    pub disk: Content,
    /// It was changed by somebody else since it was written.
    pub was_changed: bool,
}

/// A program that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Program {
    /// It has the lock of the file.
    pub has_file: bool,
    /// The store has heard of it.
    pub is_heard: bool,
    /// What it gives next.
    pub published: Option<Range>,
    pub tail: Option<Range>,
}

/// How often things may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    pub reservations: u8,
    pub starts: u8,
    pub copies: u8,
    pub restarts_of_machine: u8,
    pub switches: u8,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub is_store_up: bool,
    /// First id that is not reserved.
    pub next: u8,
    pub generation: u8,
    pub returned: Option<Range>,
    /// When the store heard last of a program that ended without a word: others wait for it as long as that time lasts.
    pub lost_in: Option<u8>,
    pub era: u8,
    pub boot: u8,
    pub file: File,
    pub backup: Option<File>,
    pub programs: [Option<Program>; PROGRAMS],
    /// Ids that were issued, by programs or natively, as bits.
    pub issued: u32,
    pub twice: bool,
    /// Somebody has issued what was kept, without the store.
    pub went_on: bool,
    pub left: Budget,
}

impl World {
    pub fn new(left: Budget) -> Self {
        Self {
            is_store_up: true,
            next: 1,
            generation: 0,
            returned: None,
            lost_in: None,
            era: 0,
            boot: 0,
            file: File::default(),
            backup: None,
            programs: [None; PROGRAMS],
            issued: 0,
            twice: false,
            went_on: false,
            left,
        }
    }

    /// An id is issued.
    pub fn issue(&mut self, id: u8) {
        let bit = 1 << id;
        self.twice |= self.issued & bit != 0;
        self.issued |= bit;
    }
}
