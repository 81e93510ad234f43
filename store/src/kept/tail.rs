//! The part of a range that a file keeps: which, and how its mark moves. Pure.

use super::content::KeptRange;

/// A mark moves by so large a part of what is kept, so that so many programs may be killed in a row before nothing is left.
pub(crate) const PARTS: u64 = 32;

/// What the file keeps of a range, by indices: nobody takes of it before the file says less.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// By how much the mark moves at least.
    pub(crate) part: u64,
    /// The same as the file has it.
    pub(crate) range: KeptRange,
}

/// Where the part of a range begins that is kept, its second half; a request that is waited for comes first. `None`: nothing is left to keep.
pub(crate) fn split(start: u64, end: u64, need: u64) -> Option<u64> {
    let ids = end.saturating_sub(start);
    let mark = start.saturating_add(ids.div_ceil(2).max(need));
    (start < mark && mark < end).then_some(mark)
}

impl Tail {
    pub(crate) fn new(start: u64, end: u64, range: KeptRange) -> Self {
        let ids = end.saturating_sub(start);
        Self {
            start,
            end,
            part: ids.div_ceil(PARTS).max(1),
            range,
        }
    }

    pub(crate) fn ids(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// How far the mark moves next, for somebody who waits for so many.
    pub(crate) fn next(&self, need: u64) -> u64 {
        let ids = self.part.max(need).min(self.ids());
        self.start.saturating_add(ids)
    }

    /// What is left of it behind a mark.
    pub(crate) fn behind(self, mark: u64) -> Option<Self> {
        let range = KeptRange {
            mark: self.range.residue.id_of(mark),
            ..self.range
        };
        (self.start < mark && mark < self.end).then_some(Self {
            start: mark,
            range,
            ..self
        })
    }
}
