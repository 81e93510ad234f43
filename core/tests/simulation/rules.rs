//! What is simulated: the sound algorithm, or one with a known fault put in.

/// The protocol around core's types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// As the server does it.
    Sound,
    /// The bound is published first and made durable afterwards (Leaf's worker time, every "save on a timer").
    SavedAfterIssuing,
    /// The reservation is a row changed by the caller's transaction: ROLLBACK takes it back.
    InCallersTransaction,
    /// After a cancelled wait for the standby the range is used all the same.
    PublishedAfterCancel,
    /// The note that a bound is ours becomes durable before the bound.
    NoteBeforeBound,
    /// Databases that follow each other on one worker id know only the bounds they wrote themselves.
    OwnRecordOnly,
    /// The same, and a database that gets a worker id goes on at once below the bound that the other made durable.
    NoTakeoverOnMove,
    /// Ids are taken by an addition that may overshoot, and publication sets the cursor.
    FetchAdd,
    /// Publication raises the bound before the cursor has left the gap.
    HiFirst,
    /// No gap where the standby's own record says that the last refill was confirmed by it.
    NoGapByOwnRecord,
    /// The gap counts from the tag's own last refill, and for no longer than a second.
    OwnRefillCapped,
    /// The rate beside a bound is the average of the tag's life, idleness and all.
    AverageRate,
    /// The last message of the primary is evidence of what had arrived by then, a keepalive too.
    KeepaliveIsEvidence,
    /// After a crash the last commit of the promoted server itself is taken for one that arrived.
    OwnCommitIsEvidence,
}

impl Rules {
    /// Whether tags use a word with a fault instead of core's.
    pub fn has_mutant_word(self) -> bool {
        matches!(self, Self::FetchAdd | Self::HiFirst)
    }

    /// Whether what is wrong is only seen after a promotion.
    pub fn needs_promotions(self) -> bool {
        matches!(
            self,
            Self::NoGapByOwnRecord
                | Self::OwnRefillCapped
                | Self::AverageRate
                | Self::KeepaliveIsEvidence
                | Self::OwnCommitIsEvidence
        )
    }

    /// Whether databases keep bounds of their own for the worker id they share.
    pub fn has_own_records(self) -> bool {
        matches!(self, Self::OwnRecordOnly | Self::NoTakeoverOnMove)
    }
}
