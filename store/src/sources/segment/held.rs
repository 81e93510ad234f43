//! What the ranges in the buffer are, and what is shown of that to those who wait for nothing: a file may be written while it changes.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::kept::tail::Tail;

/// What the ranges in the buffer are.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) origin: Origin,
    /// The tag's generation that is followed: that of the first range, until [`super::SegmentSupply::follow`] says another.
    pub(super) generation: Option<u64>,
    /// Whether nothing is given before a generation is followed.
    pub(super) is_left: bool,
    /// First id that is given: tables have ids of their own below.
    pub(super) first: u64,
    /// That of the first range, ever after.
    pub(super) key_space: Option<Arc<str>>,
    /// What is kept, and is not in the buffer.
    pub(super) tail: Option<Tail>,
}

/// Where the ranges in the buffer were reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    Nowhere,
    Server(String),
    /// On several, and it is not known which range on which.
    Several,
}

/// What figures and key ports need of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// Ids that are kept, and are not in the buffer.
    pub(super) kept_ids: u64,
    pub(super) key_space: Option<Arc<str>>,
}

/// What is held, and what is shown of it: that is as it was when it was shown last, when [`HeldGuard`] was dropped at the latest.
#[derive(Debug)]
pub(super) struct HeldState {
    held: Mutex<Held>,
    /// Locked only to copy it.
    shown: Mutex<Shown>,
}

impl HeldState {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            held: Mutex::new(Held {
                origin: Origin::Nowhere,
                generation: None,
                is_left: false,
                first: 0,
                key_space: None,
                tail: None,
            }),
            shown: Mutex::default(),
        }
    }

    /// For whoever changes it, or decides by it: waits until nobody else does, and so for the file.
    pub(super) fn lock(&self) -> HeldGuard<'_> {
        HeldGuard {
            held: lock(&self.held),
            shown: &self.shown,
        }
    }

    /// Waits for no file.
    pub(super) fn shown(&self) -> Shown {
        lock(&self.shown).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nobody else has what is held.
pub(super) struct HeldGuard<'a> {
    held: MutexGuard<'a, Held>,
    shown: &'a Mutex<Shown>,
}

impl Deref for HeldGuard<'_> {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl DerefMut for HeldGuard<'_> {
    fn deref_mut(&mut self) -> &mut Held {
        &mut self.held
    }
}

impl HeldGuard<'_> {
    /// Shows what is held by now.
    pub(super) fn show(&self) {
        let mut shown = lock(self.shown);
        shown.kept_ids = self.held.tail.as_ref().map_or(0, Tail::ids);
        shown.key_space.clone_from(&self.held.key_space);
    }
}

impl Drop for HeldGuard<'_> {
    fn drop(&mut self) {
        self.show();
    }
}
