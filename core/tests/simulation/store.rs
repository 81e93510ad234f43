//! The durable store of one server: registers behind a write-ahead log.
//!
//! What is written is visible at once, durable when flushed, and on the standby when received. A crash keeps a
//! prefix of the log that holds at least what was flushed; a promoted standby has the prefix it received.

use fastrand::Rng;

/// One durable number (in the server: a sequence, or a database's label).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Register {
    /// Time bound of a worker id, unix milliseconds. `writer` tells databases apart only under a faulty rule.
    Bound {
        worker: usize,
        spare: bool,
        writer: u8,
    },
    /// The note beside the bounds of a worker id.
    TimeNote { worker: usize, writer: u8 },
    /// First id of a tag that is not reserved.
    TagBound { database: u8, tag: usize },
    /// The note beside it.
    TagNote { database: u8, tag: usize },
    /// Which worker id a database has.
    WorkerOf { database: u8 },
}

/// The log of one server and how far it has come.
#[derive(Debug, Clone, Default)]
pub struct Store {
    log: Vec<(Register, i64)>,
    flushed: usize,
    received: usize,
    /// Where the log stood when all tags had been created.
    created: usize,
}

impl Store {
    /// The newest value, durable or not.
    pub fn read(&self, register: Register) -> Option<i64> {
        self.log
            .iter()
            .rev()
            .find(|(written, _)| *written == register)
            .map(|(_, value)| *value)
    }

    /// Appends to the log.
    pub fn write(&mut self, register: Register, value: i64) {
        self.log.push((register, value));
    }

    /// The end of the log: what a backend flushes and waits for.
    pub fn end(&self) -> usize {
        self.log.len()
    }

    /// Makes everything before `position` durable.
    pub fn flush(&mut self, position: usize) {
        self.flushed = self.flushed.max(position);
    }

    /// Whether the standby has everything before `position`.
    pub fn standby_has(&self, position: usize) -> bool {
        self.received >= position
    }

    /// The standby receives some more of what is durable.
    pub fn replicate(&mut self, rng: &mut Rng) {
        self.received = rng.usize(self.received..=self.flushed);
    }

    /// Everything so far is durable, on the standby, and in every backup there will be.
    pub fn creation_ends(&mut self) {
        self.flushed = self.log.len();
        self.received = self.flushed;
        self.created = self.flushed;
    }

    /// Power loss: of what was not flushed, a random part is lost. (A standby never gets ahead of the flush.)
    pub fn crash(&mut self, rng: &mut Rng) {
        self.log.truncate(rng.usize(self.flushed..=self.log.len()));
        self.flushed = self.log.len();
    }

    /// What the standby has.
    pub fn on_standby(&self) -> Self {
        self.prefix(self.received)
    }

    /// A backup as of some moment.
    pub fn backup(&self, rng: &mut Rng) -> Self {
        self.prefix(rng.usize(self.created..=self.flushed))
    }

    /// A backup as of now.
    pub fn backup_now(&self) -> Self {
        self.prefix(self.flushed)
    }

    fn prefix(&self, end: usize) -> Self {
        let log = self.log.iter().take(end).copied().collect();
        Self {
            log,
            flushed: end,
            received: end,
            created: self.created,
        }
    }
}
