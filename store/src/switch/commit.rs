//! From where on a tag issues after a switch: pure.

use keywright_core::{BeforeEpoch, Layout, Moment};
use thiserror::Error;

/// A tag's bound as the committing transaction reads it, locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// First id that is not reserved.
    pub hi: u64,
    /// The tag's largest id.
    pub id_max: u64,
    /// Another server wrote it, and may have written later ones: how far ids were issued there is not known.
    pub is_foreign: bool,
    /// The bound that was seen above this one, before it was put back.
    pub behind: Option<u64>,
    /// Its keys hide how many there are: below the largest that they may be, any may have been issued, or is to come.
    pub is_hidden: bool,
}

/// What snowflake ids are, and how far ahead of now they may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnowflakeStart {
    /// Their layout.
    pub layout: Layout,
    /// As far as a lease reaches of which there was no record, milliseconds. Ids may be in tables that are so far ahead.
    pub ahead_ms_max: u64,
}

/// Why a switch cannot be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CommitRefusal {
    /// The tag would have no ids left above this.
    #[error("there are ids up to {0} in the tables, beyond the tag's largest")]
    Exhausted(u64),
    /// Another server wrote the old tag's bound, or the bound of a worker id that is still leased.
    #[error(
        "its bound was written by another server of the store, so that it is not known how far it was used. It is tried again: of a tag, take a key \
         of it, which leaves out what may have been given (if none is left then, its error says what helps), or keywright advance it above the highest id; of snowflake ids, see that each program \
         with a worker id of them reaches the store, or end it and wait until its lease has run out (keywright worker list names them)"
    )]
    Foreign,
    /// The bound of the tag was put back behind this one, the first id that was not reserved.
    #[error(
        "its bound was {0} and was put back, so that it is not known how far it was used: keywright advance it above the highest id that was issued"
    )]
    GoneBack(u64),
    /// Keys of a tag that hides its volume may be any: what tables have, or have had, may be among them.
    #[error(
        "its keys hide how many there are, so any may come, and the tables have ids of their own, or had some, up to {0}: such keys are for tables that never had an id"
    )]
    NotEmpty(u64),
    /// Keys that tables have had may be any below the largest of them.
    #[error(
        "its keys hide how many there are, so any of them may have been given, and nothing is above them but what no such key can be; keywright release \
         prints how tables leave them"
    )]
    Hidden,
    /// Snowflake ids would have to begin further ahead than they may.
    #[error("there are ids up to {0} in the tables, and snowflake ids are higher only from {1} on")]
    Ahead(u64, Moment),
    /// Snowflake ids would have to begin at a moment before the layout's epoch.
    #[error("{0} (by the clock of the store)")]
    BeforeEpoch(BeforeEpoch),
}

/// The new tag's first id, above its own bound, all native ids (`counter` is the first that was not made), and all that tags
/// issued which are left.
///
/// # Errors
/// No such id is known, or there is none.
pub fn bound_after(new: Bound, old: &[Bound], counter: u64) -> Result<u64, CommitRefusal> {
    if let Some(seen) = old.iter().chain([&new]).find_map(|bound| bound.behind) {
        return Err(CommitRefusal::GoneBack(seen));
    }
    if old.iter().any(|bound| bound.is_hidden) {
        return Err(CommitRefusal::Hidden);
    }
    if new.is_hidden {
        // Whatever tables have may be a key of a number that is still to come, however high that is.
        let left = old.iter().map(|bound| bound.hi).max().unwrap_or(0);
        return match counter.max(left) {
            0 | 1 => Ok(new.hi),
            first => Err(CommitRefusal::NotEmpty(first.saturating_sub(1))),
        };
    }
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

/// The moment at which snowflake ids begin that are all at `first` or above, unix milliseconds.
///
/// # Errors
/// It is too far ahead, or there is none, or no snowflake id is of now.
pub fn floor_after(first: u64, start: &SnowflakeStart, now_ms: i64) -> Result<i64, CommitRefusal> {
    let layout = &start.layout;
    layout
        .check_begun(now_ms)
        .map_err(CommitRefusal::BeforeEpoch)?;
    let below = i64::try_from(first.saturating_sub(1)).unwrap_or(i64::MAX);
    let tick = match below {
        0 => 0,
        below => layout.tick_above(below),
    };
    if layout.smallest_id_from(tick) == i64::MAX {
        return Err(CommitRefusal::Exhausted(first));
    }
    let floor_ms = layout.unix_ms_of(tick);
    let ahead_ms = u64::try_from(floor_ms.saturating_sub(now_ms)).unwrap_or(0);
    if ahead_ms > start.ahead_ms_max {
        let highest = first.saturating_sub(1);
        return Err(CommitRefusal::Ahead(highest, Moment(floor_ms)));
    }
    Ok(floor_ms)
}

#[cfg(test)]
mod tests {
    use keywright_core::{Layout, Moment};

    use super::{Bound, CommitRefusal, SnowflakeStart, bound_after, floor_after};

    fn bound(hi: u64) -> Bound {
        Bound {
            hi,
            id_max: 1_000,
            is_foreign: false,
            behind: None,
            is_hidden: false,
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
    fn hidden_keys_meet_no_other_ids() {
        let hidden = Bound {
            is_hidden: true,
            ..bound(40)
        };
        for counter in [0, 1] {
            assert_eq!(bound_after(hidden, &[], counter), Ok(40));
        }
        for counter in [2, 40, 5_000] {
            let refused = Err(CommitRefusal::NotEmpty(counter - 1));
            assert_eq!(bound_after(hidden, &[], counter), refused);
        }
        // Keys of another tag may be in the tables, or were.
        assert_eq!(
            bound_after(hidden, &[bound(2)], 1),
            Err(CommitRefusal::NotEmpty(1))
        );
        assert_eq!(bound_after(hidden, &[bound(1)], 1), Ok(40));
        assert_eq!(
            bound_after(bound(1), &[hidden], 1),
            Err(CommitRefusal::Hidden)
        );
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
        let put_back = Bound {
            behind: Some(9),
            ..bound(5)
        };
        for refused in [
            bound_after(put_back, &[], 2),
            bound_after(bound(1), &[put_back], 2),
        ] {
            assert_eq!(refused, Err(CommitRefusal::GoneBack(9)));
        }
        // Its own next reservation leaves the gap.
        assert_eq!(bound_after(foreign, &[], 2), Ok(5));
    }

    #[test]
    fn snowflake_ids_begin_above_everything_and_not_far_ahead() {
        let layout = Layout::parse("twitter").unwrap();
        let start = SnowflakeStart {
            layout,
            ahead_ms_max: 5,
        };
        let now_ms = 1_700_000_000_000;
        for (unix_ms, is_possible) in [
            (now_ms - 1, true),
            (now_ms, true),
            (now_ms + 4, true),
            (now_ms + 5, false),
        ] {
            // One id of that moment is there.
            let there = layout.floor(unix_ms).unwrap();
            let first = u64::try_from(there).unwrap() + 1;
            match floor_after(first, &start, now_ms) {
                Ok(floor_ms) => {
                    assert!(is_possible);
                    assert!(layout.floor(floor_ms).unwrap() > there);
                }
                Err(refusal) => {
                    assert!(!is_possible);
                    let expected = CommitRefusal::Ahead(first - 1, Moment(unix_ms + 1));
                    assert_eq!(refusal, expected);
                }
            }
        }
        let epoch_ms = layout.unix_ms_of(0);
        assert_eq!(floor_after(0, &start, now_ms), Ok(epoch_ms));
        assert_eq!(floor_after(1, &start, now_ms), Ok(epoch_ms));
        let last = u64::MAX >> 1;
        let none = Err(CommitRefusal::Exhausted(last));
        assert_eq!(floor_after(last, &start, now_ms), none);
    }

    /// Tables may be empty: it is not their ids that are in the way.
    #[test]
    fn snowflake_ids_do_not_begin_before_the_epoch() {
        let layout = Layout::parse("leaf,epoch=2027-01-01").unwrap();
        let start = SnowflakeStart {
            layout,
            ahead_ms_max: 86_400_000,
        };
        let epoch_ms = layout.epoch_ms();
        for first in [0, 1, 5_000] {
            let refused = floor_after(first, &start, epoch_ms - 1_000).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "the clock reads 2026-12-31, and ids begin at 2027-01-01 (by the clock of the store)"
            );
            assert!(floor_after(first, &start, epoch_ms).is_ok());
        }
    }
}
