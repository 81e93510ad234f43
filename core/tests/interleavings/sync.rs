//! Atomic numbers of loom, in place of the library's. Each place in the sources that asks for an order is known by where it stands, and a
//! test may weaken one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

use loom::thread::{self, ThreadId};

pub(crate) use std::sync::atomic::Ordering;

/// The sources, by name.
const SOURCES: [(&str, &str); 5] = [
    ("buffer", include_str!("../../src/buffer.rs")),
    ("gate", include_str!("../../src/gate.rs")),
    ("generation", include_str!("../../src/generation.rs")),
    ("segment", include_str!("../../src/segment.rs")),
    ("snowflake", include_str!("../../src/snowflake.rs")),
];

/// What a function of the sources does with an atomic number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    pub file: &'static str,
    pub function: &'static str,
    pub operation: &'static str,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.file, self.function, self.operation)
    }
}

type Point = (&'static str, u32, u32);

thread_local! {
    // All threads of a model are one of the system's.
    static WEAKENED: Cell<Option<Site>> = const { Cell::new(None) };
    /// Those that asked for an order.
    static ORDERED: RefCell<BTreeSet<Site>> = const { RefCell::new(BTreeSet::new()) };
    static KNOWN: RefCell<BTreeMap<Point, Site>> = const { RefCell::new(BTreeMap::new()) };
    /// Changes that were held back, and whose they are.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

struct Held {
    by: ThreadId,
    number: Arc<loom::sync::atomic::AtomicU64>,
    value: u64,
}

/// From here on, in models of this thread, this one is relaxed.
pub fn weaken(site: Option<Site>) {
    HELD.take();
    WEAKENED.set(site);
}

/// Those that asked for an order since this was asked last.
pub fn take_ordered() -> BTreeSet<Site> {
    ORDERED.take()
}

/// How many orders the sources ask for.
pub fn orders_in_sources() -> usize {
    let asked =
        ["Acquire", "Release", "AcqRel", "SeqCst"].map(|order| format!("Ordering::{order}"));
    let in_source = |(_, source): &(&str, &str)| -> usize {
        asked
            .iter()
            .map(|asked| source.matches(asked.as_str()).count())
            .sum()
    };
    SOURCES.iter().map(in_source).sum()
}

/// Which one it is: the file, the function that encloses it, the method.
fn site_of(at: &'static Location<'static>) -> Site {
    let point = (at.file(), at.line(), at.column());
    KNOWN.with_borrow_mut(|known| *known.entry(point).or_insert_with(|| find(at)))
}

fn find(at: &Location<'_>) -> Site {
    let is_it = |(name, _): &&(&str, &str)| at.file().ends_with(&format!("{name}.rs"));
    let (file, source) = SOURCES
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{at} is none of the sources"));
    let line = usize::try_from(at.line()).unwrap();
    let column = usize::try_from(at.column()).unwrap();
    let lines: Vec<&'static str> = source.lines().take(line).collect();
    let name_in = |line: &&'static str| {
        let code = line.trim_start();
        let (_, rest) = (!code.starts_with("//"))
            .then_some(code)?
            .split_once("fn ")?;
        rest.split(['(', '<']).next()
    };
    let operation = lines[line - 1][column - 1..].split('(').next().unwrap();
    Site {
        file,
        function: lines.iter().rev().find_map(name_in).unwrap(),
        operation,
    }
}

/// The order that it has in this model.
fn order(site: Site, wanted: Ordering) -> Ordering {
    if wanted == Ordering::Relaxed {
        return wanted;
    }
    ORDERED.with_borrow_mut(|ordered| ordered.insert(site));
    match WEAKENED.get() == Some(site) {
        true => Ordering::Relaxed,
        false => wanted,
    }
}

/// As the standard library's; loom's number is made when it is used first, for the words are made where nothing runs.
macro_rules! number {
    ($name:ident, $value:ty) => {
        #[derive(Debug, Default)]
        pub struct $name {
            initial: $value,
            number: OnceLock<Arc<loom::sync::atomic::$name>>,
        }

        impl $name {
            pub const fn new(initial: $value) -> Self {
                Self {
                    initial,
                    number: OnceLock::new(),
                }
            }

            fn number(&self) -> &Arc<loom::sync::atomic::$name> {
                self.number
                    .get_or_init(|| Arc::new(loom::sync::atomic::$name::new(self.initial)))
            }

            #[track_caller]
            pub fn load(&self, of: Ordering) -> $value {
                let site = site_of(Location::caller());
                self.number().load(order(site, of))
            }

            #[track_caller]
            pub fn store(&self, value: $value, of: Ordering) {
                let site = site_of(Location::caller());
                self.number().store(value, order(site, of));
            }
        }
    };
}

number!(AtomicBool, bool);
number!(AtomicI32, i32);
number!(AtomicU64, u64);

impl AtomicI32 {
    #[track_caller]
    pub fn compare_exchange(
        &self,
        current: i32,
        new: i32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<i32, i32> {
        let success = order(site_of(Location::caller()), success);
        self.number()
            .compare_exchange(current, new, success, failure)
    }
}

impl AtomicU64 {
    #[track_caller]
    pub fn compare_exchange_weak(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        let success = order(site_of(Location::caller()), success);
        self.number()
            .compare_exchange_weak(current, new, success, failure)
    }

    /// Loom has numbers changed in the order in which a thread changes them. Where a function's last change is no longer to be seen after
    /// those before it, they are held back until it is done.
    #[track_caller]
    pub fn fetch_max(&self, value: u64, of: Ordering) -> u64 {
        let site = site_of(Location::caller());
        let is_with_weakened = WEAKENED.get().is_some_and(|weakened| weakened == site);
        if !is_with_weakened {
            return self.number().fetch_max(value, order(site, of));
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
}

fn take_held(by: ThreadId) -> Option<Held> {
    HELD.with_borrow_mut(|held| {
        let at = held.iter().position(|its| its.by == by)?;
        Some(held.remove(at))
    })
}
