//! Who was given which number.

use std::collections::HashMap;

use super::state::{Key, Xid};

/// Who shows an id: session, step, and the word it is from.
pub type Source = (u32, u32, Key);

/// An id that was shown to somebody.
#[derive(Debug)]
struct Shown {
    by: Source,
    /// The parts of an identity that its database had first, and the life of memory: if one of them failed and that life has
    /// ended, the id may come again.
    first: Option<([Xid; 3], u64)>,
}

/// All ids by worker id and number.
#[derive(Debug, Default)]
pub struct Checker {
    shown: HashMap<(u32, i64), Shown>,
    pub issued: usize,
    pub voids: usize,
    pub violation: Option<String>,
}

impl Checker {
    pub fn show(&mut self, id: i64, by: Source, first: Option<([Xid; 3], u64)>) {
        self.issued += 1;
        let (_, _, key) = by;
        if let Some(before) = self.shown.insert((key.worker, id), Shown { by, first }) {
            let (before, now) = (tell(before.by), tell(by));
            self.violation = Some(format!("id {id} twice: {before}, and {now}"));
        }
    }

    /// Leaves out what nothing but memory knew of and memory forgot.
    pub fn forget_lost(&mut self, life: u64, has_failed: impl Fn(Xid) -> bool) {
        let before = self.shown.len();
        self.shown.retain(|_, shown| match shown.first {
            Some((writers, of)) => of == life || !writers.iter().any(|xid| has_failed(*xid)),
            None => true,
        });
        self.voids += before - self.shown.len();
    }
}

fn tell((session, step, key): Source) -> String {
    format!("session {session} at step {step} of {key:?}")
}
