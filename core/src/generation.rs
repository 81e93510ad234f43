//! Giving a word in shared memory to another owner.

use crate::segment::SegmentWord;
use crate::snowflake::SnowflakeWord;
use crate::sync::{AtomicU64, Ordering};

/// Something ids are taken from.
pub trait Word {
    /// Stops taking: the bound goes to zero.
    fn forbid(&self);
    /// Empties the word: the cursor goes to zero. Nothing can be taken before the next publication.
    fn empty(&self);
}

impl Word for SegmentWord {
    fn forbid(&self) {
        self.forbid();
    }
    fn empty(&self) {
        self.empty();
    }
}

impl Word for SnowflakeWord {
    fn forbid(&self) {
        self.forbid();
    }
    fn empty(&self) {
        self.empty();
    }
}

/// Which owner of a slot is the present one. It grows with every owner; all zero is a slot that nobody has had.
///
/// **Why no id goes to the wrong owner.** A taker knows the key and the generation of its owner, takes, and looks at the
/// generation *afterwards*; if that is another it throws the id away. The word is passed on when it is drained and
/// nobody publishes (whoever passes it on holds its gate), in this order: bound to zero, key, generation, cursor to zero; the
/// new owner's publication raises the bound last. A swap that finds the old owner's cursor can only take below the old
/// owner's bound, and after the draining nothing is left there. A swap that finds a cursor written since acquires what was
/// written before it, so the taker sees the new generation. Orders in which the
/// generation comes before the key, or the cursor not last, were refuted by enumeration (`tests/unit/generations.rs`).
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Generation(AtomicU64);

impl Generation {
    /// The present owner's number; 0 before the first.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Whether `generation` is still the present one: to be asked after an id was taken.
    #[inline]
    pub fn is(&self, generation: u64) -> bool {
        self.get() == generation
    }

    /// Gives the words of a slot to another owner, whose key `write_key` writes, and returns the new generation. The words
    /// are drained and nobody else publishes or passes on.
    pub fn pass_on(&self, words: &[&dyn Word], write_key: impl FnOnce()) -> u64 {
        for word in words {
            word.forbid();
        }
        write_key();
        let next = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(next, Ordering::Release);
        for word in words {
            word.empty();
        }
        next
    }
}
