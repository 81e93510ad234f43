//! Memory that both take: the one that stands takes it of the driver's budget, and the earlier one gets the same answers.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use now::Budget;

use crate::compare::same;

/// What both have taken, and what the one that stands was told while the other was not asked yet.
#[derive(Debug, Default)]
struct Taken {
    answers: Vec<(usize, bool)>,
    now: usize,
    before: usize,
}

/// The budget of both.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    of: Arc<dyn Budget>,
    taken: Arc<Mutex<Taken>>,
}

impl Shared {
    pub(crate) fn new(of: Arc<dyn Budget>) -> Self {
        Self {
            of,
            taken: Arc::default(),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Both hold as much after every call.
    pub(crate) fn compare(&self) {
        let taken = self.taken();
        let (before, now) = (taken.before, taken.now);
        let left = taken.answers.len();
        drop(taken);
        same("memory that is held", before, now);
        same("how often memory was asked for", 0, left);
    }
}

impl Budget for Shared {
    fn take(&self, bytes: usize) -> bool {
        let has = self.of.take(bytes);
        let mut taken = self.taken();
        taken.answers.push((bytes, has));
        taken.now += if has { bytes } else { 0 };
        has
    }

    fn give_back(&self, bytes: usize) {
        self.of.give_back(bytes);
        self.taken().now -= bytes;
    }
}

impl before::Budget for Shared {
    fn take(&self, bytes: usize) -> bool {
        let mut taken = self.taken();
        let at = taken.answers.iter().position(|(of, _)| *of == bytes);
        let Some(at) = at else {
            let asked = format!("{:?}", taken.answers);
            drop(taken);
            panic!("memory differs\n  before: asks for {bytes} bytes\n  now:    asked for {asked}");
        };
        let (_, has) = taken.answers.swap_remove(at);
        taken.before += if has { bytes } else { 0 };
        has
    }

    fn give_back(&self, bytes: usize) {
        self.taken().before -= bytes;
    }
}
