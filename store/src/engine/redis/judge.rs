//! What becomes of a counter and of the record beside it: pure, the same in the service and in the simulation.
//!
//! A Redis does not say what it has lost. It says which life of its data this is (`master_replid`): every start of a server draws another one, and so does
//! every promotion. Whoever takes a range writes that beside the counter, in the same step. So a counter whose record is of another life may lack what was
//! taken last, and one whose record is gone may lack everything.

/// What stands beside a counter: who took the last range of it, and in which life of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The server's `master_replid` then.
    pub(crate) life: String,
    /// The counter then: the last id that was taken.
    pub(crate) bound: u64,
    /// Drawn when somebody vouched for a counter that had no record.
    pub(crate) key_space: String,
}

/// Whether a range may be taken of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may.
    Good,
    /// Nobody has vouched for it: it is new, or everything of it was lost.
    Unknown,
    /// The server has started anew, or another one has taken its place: the last ranges may be missing.
    AnotherLife,
    /// It was higher before, as the record or this program knows.
    Lower {
        /// The highest id that is known to be taken.
        was: u64,
        /// The counter.
        is: u64,
    },
    /// It is below zero.
    Negative,
}

/// Whether a range may be taken of a counter, of which this program has seen ids up to `seen` (0: none).
pub(crate) fn standing(
    counter: Option<i64>,
    record: Option<&Record>,
    life: &str,
    seen: u64,
) -> Standing {
    let Some(record) = record else {
        return Standing::Unknown;
    };
    let Ok(counter) = u64::try_from(counter.unwrap_or(0)) else {
        return Standing::Negative;
    };
    if record.life != life {
        return Standing::AnotherLife;
    }
    let was = record.bound.max(seen);
    match counter < was {
        true => Standing::Lower { was, is: counter },
        false => Standing::Good,
    }
}

/// What a counter is set to by somebody who vouches that no id above `id` was given: never lower than anything that is known of it.
pub(crate) fn advanced(counter: Option<i64>, record: Option<&Record>, seen: u64, id: u64) -> u64 {
    let counter = u64::try_from(counter.unwrap_or(0)).unwrap_or(0);
    let bound = record.map_or(0, |record| record.bound);
    id.max(counter).max(bound).max(seen)
}

/// Why a reply names no range that may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It is not above zero with all of its range.
    NotPositive,
    /// The next number could not be kept.
    TooLarge,
    /// It is not above what is known to be taken.
    Lower {
        /// The highest id that is known to be taken.
        was: u64,
        /// The last id before the range.
        is: u64,
    },
}

/// The range that a reply to `INCRBY … count` names, first id and first id after it: all of it above `taken`, the highest id that is known to be taken.
pub(crate) fn range(last: i64, count: u64, taken: u64) -> Result<(u64, u64), Misfit> {
    let last = u64::try_from(last).map_err(|_| Misfit::NotPositive)?;
    let before = last.checked_sub(count).ok_or(Misfit::NotPositive)?;
    if count == 0 {
        return Err(Misfit::NotPositive);
    }
    if last >= i64::MAX.cast_unsigned() {
        return Err(Misfit::TooLarge);
    }
    match before < taken {
        true => Err(Misfit::Lower {
            was: taken,
            is: before,
        }),
        false => Ok((before.saturating_add(1), last.saturating_add(1))),
    }
}

#[cfg(test)]
mod tests;
