//! The statements that a connection has read last.
//!
//! The INSERTs of an application begin alike and differ in their values. So the beginnings of the last ones are kept, up to the
//! first row; of a statement with a known beginning only the rows are read.

use std::sync::Arc;

use keywright_rewrite::{Insert, Modes, SecondReading};

/// How many beginnings a connection keeps, and how many queries.
const FAMILIAR_MAX: usize = 4;
/// Longest beginning, or query, that is kept, bytes.
const BEGINNING_BYTES_MAX: usize = 1024;

/// A statement that was read before.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    beginning: Vec<u8>,
    modes: Modes,
    pub(crate) insert: Insert,
}

/// A statement whose rows come from a query, as a second reader has read it.
#[derive(Debug)]
struct Query {
    text: Vec<u8>,
    modes: Modes,
    second: Arc<SecondReading>,
}

/// The statements that were read last: up to their rows, or with their query.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    pub(crate) beginnings: Vec<CachedPlan>,
    queries: Vec<Query>,
}

impl PlanCache {
    /// Puts the one that the text begins with behind the others, if there is one: it stays longest.
    pub(crate) fn find(&mut self, text: &[u8], modes: &Modes) -> bool {
        let begins =
            |known: &CachedPlan| known.modes == *modes && text.starts_with(&known.beginning);
        let at = self.beginnings.iter().position(begins);
        if let (Some(at), Some(last)) = (at, self.beginnings.len().checked_sub(1)) {
            self.beginnings.swap(at, last);
        }
        at.is_some()
    }

    /// Keeps a statement whose beginning always reads the same.
    pub(crate) fn keep(&mut self, insert: Insert, text: &[u8], modes: &Modes) {
        let beginning = insert.beginning(text, modes);
        let Some(beginning) = beginning.filter(|bytes| bytes.len() <= BEGINNING_BYTES_MAX) else {
            return;
        };
        if self.beginnings.len() >= FAMILIAR_MAX {
            self.beginnings.remove(0);
        }
        if self.beginnings.is_empty() {
            // Most connections have one; room for four would be what they use most memory for.
            self.beginnings.reserve_exact(1);
        }
        self.beginnings.push(CachedPlan {
            beginning: beginning.to_vec(),
            modes: *modes,
            insert,
        });
    }

    /// The second reader's view of a statement whose rows come from a query. It takes longer than all the rest, so a repeated
    /// statement is read that way once.
    pub(crate) fn read_again(
        &mut self,
        insert: &Insert,
        text: &[u8],
        modes: &Modes,
    ) -> Arc<SecondReading> {
        let is_it = |known: &&Query| known.modes == *modes && known.text == text;
        if let Some(known) = self.queries.iter().find(is_it) {
            return Arc::clone(&known.second);
        }
        let second = Arc::new(insert.read_again(text, modes));
        if text.len() <= BEGINNING_BYTES_MAX {
            if self.queries.len() >= FAMILIAR_MAX {
                self.queries.remove(0);
            }
            self.queries.push(Query {
                text: text.to_vec(),
                modes: *modes,
                second: Arc::clone(&second),
            });
        }
        second
    }
}
