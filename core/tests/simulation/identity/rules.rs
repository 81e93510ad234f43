//! What is simulated: the sound rules of an identity, or those with a known fault put in.

/// How identities change, and what becomes of words meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// As the server does it.
    Sound,
    /// An identity that is not committed issues, whatever the database had before.
    UncommittedIssues,
    /// How far a number was used is a moment, for other layouts too.
    MomentsBetweenLayouts,
    /// DROP EXTENSION takes the bound with it and notes nothing.
    DropExtensionNotesNothing,
    /// DROP DATABASE notes the bound while its sessions issue on.
    NotedWhileIssuing,
    /// A word that DROP DATABASE closed is opened by a session that has not left yet.
    LeavingReopens,
    /// DROP DATABASE closes the words that there are, and not those that its sessions get afterwards.
    ClosesOnlyWhatThereIs,
    /// The register keeps the layout of an extension that was dropped, while the next one begins with the default.
    RegistersLayoutOnly,
    /// DROP EXTENSION notes the first word that it finds of a number, where one of a failed CREATE EXTENSION lies beside it.
    NotesOneWordOfMany,
    /// A word that was stopped for another's sake goes on where it stopped when its database gets the worker id back, if
    /// nothing moved its own bound meanwhile.
    GoesOnWhereItStopped,
    /// A change of the time zone notes nothing of what was written in the one before.
    ZoneNotNoted,
    /// A bound counts as a bucket's own only where it lies a window beyond the moment at which the bucket begins.
    BoundCountsLate,
    /// A slot is passed on for the sake of a note that is not committed.
    PassedOnBeforeCommit,
    /// The worker's bits are read from the slot after the swap.
    KeyAfterSwap,
    /// The generation is not looked at again after the swap.
    NoSecondLook,
}

impl Rules {
    /// Whether what is wrong is only seen in time zones.
    pub fn is_about_zones(self) -> bool {
        matches!(self, Self::ZoneNotNoted | Self::BoundCountsLate)
    }

    /// Whether what is wrong is only seen where several words of a worker id lie in memory.
    pub fn is_about_memory(self) -> bool {
        matches!(self, Self::GoesOnWhereItStopped | Self::NotesOneWordOfMany)
    }
}
