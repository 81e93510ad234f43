//! Statements and transactions under way on the tables of rules, counted over all connections of one program, so that rules can change
//! for all of them at once.
//!
//! A change is published as a new version. A statement on a rule's table first counts itself and then compares the version; the
//! publisher first raises the version and then reads the count. So either the statement sees the new version, or the publisher
//! sees the statement.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What all connections of one program have under way, by rule.
#[derive(Debug, Default)]
pub struct Traffic {
    version: AtomicU64,
    /// By the rule's name. Those that were in force earlier stay: a statement may still go by them.
    rules: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    passthrough: Arc<AtomicU64>,
    unknown_server: AtomicU64,
    at_fence: AtomicU64,
}

/// A connection in passthrough, until this is dropped.
#[derive(Debug)]
pub struct PassthroughConnection(Arc<AtomicU64>);

impl Drop for PassthroughConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Traffic {
    /// The next version of the rules: from now on nothing enters by an older one.
    pub fn publish(&self, version: u64) {
        self.version.store(version, Ordering::SeqCst);
    }

    /// The version that is in force.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// How many connections have something under way on the tables of a rule.
    pub fn under_way(&self, rule: &str) -> u64 {
        self.count(rule).load(Ordering::SeqCst)
    }

    /// A connection in passthrough: what it has under way is not known.
    pub fn count_passthrough(&self) -> PassthroughConnection {
        self.passthrough.fetch_add(1, Ordering::SeqCst);
        PassthroughConnection(Arc::clone(&self.passthrough))
    }

    /// How many of these there are.
    pub fn passthrough(&self) -> u64 {
        self.passthrough.load(Ordering::SeqCst)
    }

    /// How often a statement was kept back because its keys are not in force on the server that it was for, or its table has ids that
    /// are still to be given.
    pub fn on_unknown_server(&self) -> u64 {
        self.unknown_server.load(Ordering::SeqCst)
    }

    /// How often a native INSERT was refused at the fence.
    pub fn at_fence(&self) -> u64 {
        self.at_fence.load(Ordering::SeqCst)
    }

    /// A statement was kept back because of what its server is, or its table has.
    pub(crate) fn note_unknown_server(&self) {
        self.unknown_server.fetch_add(1, Ordering::SeqCst);
    }

    /// A native INSERT was refused at the fence.
    pub(crate) fn note_at_fence(&self) {
        self.at_fence.fetch_add(1, Ordering::SeqCst);
    }

    /// The count of a rule.
    pub(crate) fn count(&self, rule: &str) -> Arc<AtomicU64> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rules.entry(rule.to_owned()).or_default())
    }
}

/// One connection has something under way on the tables of a rule. Which one its count says: a reload may give the rule another place.
pub(crate) struct UnderWay {
    count: Arc<AtomicU64>,
}

impl UnderWay {
    /// Counts itself.
    pub(crate) fn begin(count: &Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self {
            count: Arc::clone(count),
        }
    }

    /// Whether that is the count of its rule.
    pub(crate) fn is_of(&self, count: &Arc<AtomicU64>) -> bool {
        Arc::ptr_eq(&self.count, count)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}
