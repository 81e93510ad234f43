//! Atomic numbers of loom, with orderings that a test may weaken.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock};

use loom::sync::atomic::AtomicU64 as LoomU64;
use loom::thread::{self, ThreadId};

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};

/// An ordering that is relaxed instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weakened {
    /// Raising the bound: what moved the cursor before may be seen later. Loom has numbers changed in the order in which a thread changes them,
    /// so the change of the cursor is held back until the bound was raised.
    Publication,
    /// The swap by which something is taken.
    TakingIn,
    /// Writing the generation, and the cursor of the next owner.
    PassingOn,
}

thread_local! {
    /// All threads of a model are one of the system's.
    static WEAKENED: Cell<Option<Weakened>> = const { Cell::new(None) };
    /// Changes that were held back, and whose they are.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

struct Held {
    by: ThreadId,
    number: Arc<LoomU64>,
    value: u64,
}

/// From here on, in models of this thread.
pub fn weaken(what: Option<Weakened>) {
    HELD.take();
    WEAKENED.set(what);
}

fn is(kind: Weakened) -> bool {
    WEAKENED.get() == Some(kind)
}

fn order(kind: Weakened, order: Ordering) -> Ordering {
    match is(kind) {
        true => Ordering::Relaxed,
        false => order,
    }
}

/// As the standard library's; loom's number is made when it is used first, for the words are made where nothing runs.
#[derive(Debug, Default)]
pub struct AtomicU64 {
    initial: u64,
    number: OnceLock<Arc<LoomU64>>,
}

impl AtomicU64 {
    pub const fn new(initial: u64) -> Self {
        Self {
            initial,
            number: OnceLock::new(),
        }
    }

    fn number(&self) -> &Arc<LoomU64> {
        self.number
            .get_or_init(|| Arc::new(LoomU64::new(self.initial)))
    }

    pub fn load(&self, of: Ordering) -> u64 {
        self.number().load(of)
    }

    pub fn store(&self, value: u64, of: Ordering) {
        self.number().store(value, order(Weakened::PassingOn, of));
    }

    pub fn fetch_max(&self, value: u64, of: Ordering) -> u64 {
        if !is(Weakened::Publication) {
            return self.number().fetch_max(value, of);
        }
        let by = thread::current().id();
        if of == Ordering::Relaxed {
            let number = Arc::clone(self.number());
            HELD.with_borrow_mut(|held| held.push(Held { by, number, value }));
            // Nobody who publishes asks what it was.
            return value;
        }
        let before = self.number().fetch_max(value, Ordering::Relaxed);
        while let Some(held) = take_held(by) {
            held.number.fetch_max(held.value, Ordering::Relaxed);
        }
        before
    }

    pub fn compare_exchange_weak(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let success = order(Weakened::TakingIn, success);
        self.number()
            .compare_exchange_weak(current, new, success, failure)
    }
}

fn take_held(by: ThreadId) -> Option<Held> {
    HELD.with_borrow_mut(|held| {
        let at = held.iter().position(|its| its.by == by)?;
        Some(held.remove(at))
    })
}
