//! Whether raising a tag would use it up: pure, the same for every store and whoever raises it.

use keywright_core::{Cause, Tag};

use crate::failure::Failure;

/// Less than one in so many of the ids that a tag has left is taken for a mistake: a bound never goes down.
const LEFT_PARTS_MAX: u64 = 100;

/// How far a tag has come that is to be raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first id that nobody was given.
    pub(crate) free: u64,
    /// The largest id that it may issue.
    pub(crate) id_max: u64,
    /// The first id that nobody was given as far as a program has seen, where the store has gone back.
    pub(crate) seen: Option<u64>,
}

impl Extent {
    /// Refuses an id that leaves the tag none of its ids, or almost none. Where the store has gone back, ids up to what a program has seen were given: the
    /// log names that one.
    ///
    /// # Errors
    /// [`Cause::ArgumentOutOfRange`].
    pub(crate) fn leave_enough(&self, tag: &Tag, id: u64) -> Result<(), Failure> {
        if self.seen.is_some_and(|seen| id < seen) {
            return Ok(());
        }
        let left = self.id_max.saturating_add(1).saturating_sub(self.free);
        let then = self.id_max.saturating_sub(id).min(left);
        let uses_up = then == 0 || then < left / LEFT_PARTS_MAX;
        if then < left && uses_up {
            let message =
                format!("{id} would leave tag \"{tag}\" {then} of the {left} ids that it has left");
            let failure = Failure::new(Cause::ArgumentOutOfRange, message);
            return Err(failure.hint(
                "a bound never goes down: if that is meant, add --use-up, or USEUP on a key port",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(extent: &Extent, id: u64) -> bool {
        let tag = Tag::parse("orders").unwrap();
        extent.leave_enough(&tag, id).is_err()
    }

    #[test]
    fn what_would_use_a_tag_up_is_refused() {
        const LARGEST: u64 = i64::MAX.unsigned_abs();
        for (free, id_max, id, expected) in [
            (5, 2_147_483_647, 2_147_483_647, true),
            (5, 2_147_483_647, 2_147_483_640, true),
            (5, 2_147_483_647, 2_000_000_000, false),
            (5, LARGEST, LARGEST, true),
            (5, LARGEST, LARGEST - 300, true),
            // Near its end already, or at it.
            (140, 150, 149, false),
            (140, 150, 150, true),
            (150, 150, 149, false),
            (151, 150, 150, false),
            (1_000, 150, 150, false),
        ] {
            let extent = Extent {
                free,
                id_max,
                seen: None,
            };
            assert_eq!(is_refused(&extent, id), expected, "{extent:?} {id}");
        }
    }

    /// The log says `advance orders --above 148`.
    #[test]
    fn what_programs_have_seen_is_not_refused() {
        let extent = Extent {
            free: 5,
            id_max: 150,
            seen: Some(149),
        };
        for (id, expected) in [(5, false), (148, false), (150, true)] {
            assert_eq!(is_refused(&extent, id), expected, "{id}");
        }
    }
}
