//! From where on a tag issues after a switch: pure.

use thiserror::Error;

/// A tag's bound as the committing transaction reads it, locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// First id that is not reserved.
    pub hi: u64,
    /// The tag's largest id.
    pub id_max: u64,
    /// Another server wrote it: how far ids were issued there is not known.
    pub is_foreign: bool,
}

/// Why a switch cannot be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CommitRefusal {
    /// The tag would have no ids left above this.
    #[error("there are ids up to {0} in the tables, beyond the tag's largest")]
    Exhausted(u64),
    /// Another server wrote the old tag's bound.
    #[error(
        "its bound was written by another server of the store, so that it is not known how far it was used"
    )]
    Foreign,
}

/// The new tag's first id, above its own bound, all native ids (`counter` is the first that was not made), and all that tags
/// issued which are left.
///
/// # Errors
/// No such id is known, or there is none.
pub fn bound_after(new: Bound, old: &[Bound], counter: u64) -> Result<u64, CommitRefusal> {
    if old.iter().any(|bound| bound.is_foreign) {
        return Err(CommitRefusal::Foreign);
    }
    let left = old.iter().map(|bound| bound.hi).max().unwrap_or(0);
    let first = new.hi.max(left).max(counter);
    if first > new.id_max {
        return Err(CommitRefusal::Exhausted(first));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::{Bound, CommitRefusal, bound_after};

    fn bound(hi: u64) -> Bound {
        Bound {
            hi,
            id_max: 1_000,
            is_foreign: false,
        }
    }

    #[test]
    fn a_tag_goes_on_above_everything() {
        for (new, old, counter, first) in [
            (1, vec![], 51, 51),
            (70, vec![], 51, 70),
            (1, vec![bound(300)], 51, 300),
            (1, vec![bound(20), bound(30)], 0, 30),
            (1, vec![], 1_000, 1_000),
        ] {
            assert_eq!(bound_after(bound(new), &old, counter), Ok(first));
        }
    }

    #[test]
    fn what_is_not_known_or_not_there_is_refused() {
        let refused = bound_after(bound(1), &[], 1_001);
        assert_eq!(refused, Err(CommitRefusal::Exhausted(1_001)));
        let foreign = Bound {
            is_foreign: true,
            ..bound(5)
        };
        assert_eq!(
            bound_after(bound(1), &[foreign], 2),
            Err(CommitRefusal::Foreign)
        );
        // Its own next reservation leaves the gap.
        assert_eq!(bound_after(foreign, &[], 2), Ok(5));
    }
}
