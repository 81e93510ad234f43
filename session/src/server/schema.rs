//! Changes of the servers' tables, counted by all connections of one program: that tables have changed, not how.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what may have changed tables: statements of this program's connections, and schema refreshes, before which others may
/// have changed them.
#[derive(Debug, Default)]
pub struct SchemaChanges {
    /// Statements that define tables, and schema refreshes that found a difference.
    defined: AtomicU64,
    /// What may have changed tables unseen: time between schema refreshes, calls of procedures.
    unseen: AtomicU64,
    /// How many of `defined` the rules know of that new connections follow.
    looked: AtomicU64,
}

impl SchemaChanges {
    /// Tables were changed.
    pub fn note_defined(&self) {
        self.defined.fetch_add(1, Ordering::AcqRel);
    }

    /// Tables may have been changed.
    pub fn note_unseen(&self) {
        self.unseen.fetch_add(1, Ordering::AcqRel);
    }

    /// A schema refresh has ended that began when [`SchemaChanges::defined`] was this; `is_other`: it found a difference.
    pub fn note_schema_refresh(&self, began_at: u64, is_other: bool) {
        let before = match is_other {
            true => self.defined.fetch_add(1, Ordering::AcqRel),
            false => began_at,
        };
        // It may have missed what was defined meanwhile.
        let known = began_at.saturating_add(u64::from(is_other && before == began_at));
        self.looked.fetch_max(known, Ordering::AcqRel);
        self.note_unseen();
    }

    /// How often tables were changed.
    pub fn defined(&self) -> u64 {
        self.defined.load(Ordering::Acquire)
    }

    /// How many of those the rules of new connections know of.
    pub(crate) fn looked(&self) -> u64 {
        self.looked.load(Ordering::Acquire)
    }

    /// How often tables may have been changed.
    pub(crate) fn all(&self) -> u64 {
        self.defined()
            .wrapping_add(self.unseen.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::SchemaChanges;

    #[test]
    fn a_look_does_not_know_of_what_came_while_it_looked() {
        let changes = SchemaChanges::default();
        changes.note_defined();
        let began_at = changes.defined();
        changes.note_schema_refresh(began_at, false);
        assert_eq!((changes.looked(), changes.defined()), (1, 1));
        changes.note_defined();
        changes.note_schema_refresh(began_at, true);
        assert_eq!((changes.looked(), changes.defined()), (1, 3));
        changes.note_schema_refresh(changes.defined(), true);
        assert_eq!((changes.looked(), changes.defined()), (4, 4));
        let before = changes.all();
        changes.note_unseen();
        assert_eq!((changes.all(), changes.looked()), (before + 1, 4));
    }
}
