//! The durable store of one server: registers behind a write-ahead log.
//!
//! What is written is visible at once, durable when flushed, and on the standby when received. A crash keeps a
//! prefix of the log that holds at least what was flushed; a promoted standby has the prefix it received.

use fastrand::Rng;
use keywright_core::LastMessage;

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
    /// When the last transaction committed, by the server's clock.
    Commit,
    /// That the server was promoted.
    Promotion { database: u8 },
    /// For how long its primary may have gone on alone.
    Loss { database: u8 },
}

/// A message of the primary to its standby.
#[derive(Debug, Clone, Copy)]
struct Heard {
    /// When it was sent, by the primary's clock.
    sent_ms: i64,
    /// The end that it named.
    named: usize,
    /// Whether the last data left something for later.
    is_cut: bool,
    is_keepalive: bool,
    /// When an end beyond all before was named first.
    named_ms: i64,
    is_silent: bool,
}

/// Bytes of a page of the log: an entry takes one, and a little of the next.
const PAGE: u64 = 8192;

/// The log of one server and how far it has come.
#[derive(Debug, Clone, Default)]
pub struct Store {
    log: Vec<(Register, i64)>,
    flushed: usize,
    received: usize,
    /// When each entry was flushed, true time.
    flushed_at_ms: Vec<i64>,
    /// What the standby heard last.
    heard: Option<Heard>,
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

    /// The standby receives some more of what is durable, in one message with data.
    pub fn replicate(&mut self, rng: &mut Rng, wall_ms: i64) {
        let before = self.heard.unwrap_or(Heard {
            sent_ms: wall_ms,
            named: 0,
            is_cut: false,
            is_keepalive: false,
            named_ms: wall_ms,
            is_silent: true,
        });
        self.received = rng.usize(self.received..=self.flushed);
        self.heard = Some(Heard {
            sent_ms: wall_ms,
            named: self.flushed,
            is_cut: self.received < self.flushed,
            is_keepalive: false,
            named_ms: if self.flushed > before.named {
                wall_ms
            } else {
                before.named_ms
            },
            is_silent: false,
        });
    }

    /// The primary says that it is there, and how much it has sent.
    pub fn keepalive(&mut self, wall_ms: i64) {
        if let Some(heard) = &mut self.heard {
            heard.sent_ms = wall_ms;
            heard.named = self.received;
            heard.is_keepalive = true;
            heard.is_silent = false;
        }
    }

    /// The connection breaks and the standby makes another, which has heard nothing yet.
    pub fn reconnect(&mut self, wall_ms: i64) {
        if let Some(heard) = &mut self.heard {
            heard.sent_ms = wall_ms;
            heard.named_ms = wall_ms;
            // What is sent anew begins on a page.
            heard.is_cut = true;
            heard.is_silent = true;
        }
    }

    /// What the standby's server has left of the last message, once it is promoted.
    pub fn last_message(&self) -> Option<LastMessage> {
        let heard = self.heard?;
        let at = |entries: usize| u64::try_from(entries).expect("few") * PAGE;
        Some(LastMessage {
            sent_ms: heard.sent_ms,
            received_ms: heard.sent_ms,
            named_end: at(heard.named) + u64::from(!heard.is_keepalive || !heard.is_cut),
            named_ms: heard.named_ms,
            replayed: at(self.received) + 1,
            is_silent: heard.is_silent,
        })
    }

    /// Takes note of when entries were flushed.
    pub fn tick(&mut self, true_ms: i64) {
        self.flushed_at_ms.truncate(self.flushed);
        self.flushed_at_ms.resize(self.flushed, true_ms);
    }

    /// When the first entry was flushed that the standby has not; `None` if it has all.
    pub fn lost_from_ms(&self) -> Option<i64> {
        self.flushed_at_ms.get(self.received).copied()
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
            flushed_at_ms: self.flushed_at_ms.iter().take(end).copied().collect(),
            heard: None,
            created: self.created,
        }
    }
}
