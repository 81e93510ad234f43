//! Everything that one run consists of, and what all actors share.

use std::collections::BTreeMap;

use fastrand::Rng;
use keywright_core::{Floor, Layout, Readings, Register};

use super::checker::Checker;
use super::rules::Rules;
use super::session::Session;
use super::state::{Disk, Identity, Key, Level, Outcome, Settings, Slot, Transaction, Xid};

/// One run.
pub struct World {
    pub rng: Rng,
    pub step: u32,
    pub true_ms: i64,
    pub wall_offset_ms: i64,
    pub rules: Rules,
    pub settings: Settings,
    pub disk: Disk,
    /// The disk as a crash would leave it.
    pub durable: Disk,
    pub memory: Vec<Slot>,
    /// The database that is being dropped, or was tried last, in shared memory too. Whoever drops one holds the register.
    pub dropping: Option<(u32, Xid)>,
    /// Which life of shared memory.
    pub life: u64,
    pub transactions: BTreeMap<u32, Transaction>,
    pub sessions: Vec<Session>,
    /// The last number given to a database, sequence, session, transaction.
    pub last: u32,
    pub checker: Checker,
    /// Slots that went to another key.
    pub passed_on: usize,
    pub is_traced: bool,
}

impl World {
    /// Tells what happens, when somebody listens.
    pub fn trace(&self, what: impl FnOnce() -> String) {
        if self.is_traced {
            let since_ms = self.true_ms - crate::schedule::START_MS;
            println!("step {:4} +{since_ms:6} ms: {}", self.step, what());
        }
    }

    pub fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub fn readings(&self) -> Readings {
        Readings {
            wall_ms: self.true_ms + self.wall_offset_ms,
            boot_ms: u64::try_from(self.true_ms - crate::schedule::START_MS + 1000).unwrap_or(0),
        }
    }

    pub fn layout(&self, index: usize) -> Layout {
        self.settings.layouts[index]
    }

    pub fn flush(&mut self) {
        self.durable = self.disk.clone();
    }

    pub fn bound_ms(&self, sequence: u32) -> Option<i64> {
        self.disk.sequences.get(&sequence)?.bound_ms
    }

    /// What a database is, as somebody in that transaction sees it.
    pub fn identity(&self, database: u32, transaction: Option<u32>) -> Identity {
        let of_own = transaction.and_then(|number| self.transactions.get(&number)?.identity());
        let committed = || self.disk.databases.get(&database).copied();
        of_own.or_else(committed).unwrap_or_default()
    }

    pub fn register(&self, transaction: Option<u32>) -> &Register {
        let of_own = transaction.and_then(|number| self.transactions.get(&number)?.register());
        of_own.unwrap_or(&self.disk.register)
    }

    pub fn outcome(&self, xid: Xid) -> Outcome {
        if self.disk.committed.contains(&xid) {
            Outcome::Committed
        } else if self.transactions.values().any(|open| open.is_own(xid)) {
            Outcome::Open
        } else {
            Outcome::Failed
        }
    }

    pub fn begin(&mut self, database: u32) -> u32 {
        let number = self.next();
        let transaction = Transaction {
            database,
            levels: Vec::new(),
            has_past: None,
            is_prepared: false,
        };
        self.transactions.insert(number, transaction);
        self.savepoint(number);
        number
    }

    /// Begins a part of a transaction; returns its number.
    pub fn savepoint(&mut self, transaction: u32) -> Xid {
        let xid = Xid::from(self.next());
        let level = Level {
            xid,
            ..Level::default()
        };
        if let Some(transaction) = self.transactions.get_mut(&transaction) {
            transaction.levels.push(level);
        }
        xid
    }

    pub fn level(&mut self, transaction: u32) -> Option<&mut Level> {
        self.transactions.get_mut(&transaction)?.levels.last_mut()
    }

    /// Undoes the last part of a transaction.
    pub fn undo(&mut self, transaction: u32) {
        if let Some(transaction) = self.transactions.get_mut(&transaction) {
            transaction.levels.pop();
        }
        self.settle_failures();
    }

    pub fn commit(&mut self, number: u32) {
        let Some(transaction) = self.transactions.remove(&number) else {
            return;
        };
        if let Some(identity) = transaction.identity() {
            self.disk.databases.insert(transaction.database, identity);
        }
        if let Some(register) = transaction.register() {
            self.disk.register = register.clone();
        }
        let parts = transaction.levels.iter().map(|level| level.xid);
        self.disk.committed.extend(parts);
        self.flush();
    }

    pub fn roll_back(&mut self, transaction: u32) {
        self.transactions.remove(&transaction);
        self.settle_failures();
    }

    /// What only memory knew of, and memory forgot, is beyond the promise.
    pub fn settle_failures(&mut self) {
        let mut checker = std::mem::take(&mut self.checker);
        checker.forget_lost(self.life, |xid| self.outcome(xid) == Outcome::Failed);
        self.checker = checker;
    }

    pub fn is_current(&self, slot: usize, generation: u64) -> bool {
        self.memory[slot].generation.is(generation)
    }

    /// Stops a word for the sake of another, and says how far it came. Others issue above it from now, so that it may not go on
    /// where it stopped: its bound counts as somebody else's.
    pub fn stop(&mut self, slot: usize) -> Floor {
        let layout = self.layout(self.memory[slot].key.layout);
        let slot = &mut self.memory[slot];
        if self.rules != Rules::GoesOnWhereItStopped {
            slot.bound_ms = i64::MIN;
            slot.attempted_ms = i64::MIN;
        }
        Floor::below_state(layout, slot.word.drain())
    }

    /// Whether what the slot belonged to was dropped, for good.
    pub fn is_dropped(&self, slot: usize) -> bool {
        match self.memory[slot].closed_by {
            0 => false,
            xid => self.outcome(xid) == Outcome::Committed,
        }
    }

    /// Words whose ids could meet those of a key.
    pub fn siblings(&self, of: Key, own: usize) -> Vec<usize> {
        let words = self.memory.iter().enumerate();
        words
            .filter(|(at, slot)| *at != own && slot.key.worker == of.worker)
            .map(|(at, _)| at)
            .collect()
    }
}
