//! What is asked of a tag's row, and what comes of it.

use std::sync::Arc;

use keywright_core::hiding::Hiding;
use keywright_core::residue::Residue;
use keywright_core::slot::SlotGroup;
use keywright_core::{Cause, Tag, TagExhausted};

use super::Store;
use super::gone_back::GoneBack;
use crate::failure::Failure;
use crate::reserve::{StepTrack, TagRow};
use crate::tag_order::TagOrder;

/// A reservation to be made.
#[derive(Debug, Clone)]
pub(crate) struct ReservationRequest<'a> {
    pub(crate) store: &'a Store,
    pub(crate) tag: &'a Tag,
    /// Which ids the caller uses; the table may narrow it.
    pub(crate) residue: Residue,
    /// Consecutive ids that somebody waits for.
    pub(crate) need: u64,
    /// First id above all that this process was ever given.
    pub(crate) floor: u64,
    /// The largest bound that others tell of, beside those that this program has seen: as the first id that was not reserved.
    pub(crate) seen: u64,
    /// How much to ask for.
    pub(crate) steps: StepTrack,
    /// Milliseconds of a clock that only goes forward.
    pub(crate) uptime_ms: u64,
    /// Whether to look for ranges that were handed back.
    pub(crate) returned: bool,
    /// The tag's generation that the caller follows; `None`: whatever it is.
    pub(crate) generation: Option<u64>,
    /// The key space of which the caller has had ranges; `None`: it has had none yet.
    pub(crate) key_space: Option<Arc<str>>,
    /// By which right ids of an ordered tag are asked for; of any other they are asked for without.
    pub(crate) right: Option<OrderRight<'a>>,
    /// What the caller sends the ids through before anybody is told of one.
    pub(crate) hiding: Option<&'a Hiding>,
    /// The database that is to be handed the range; `None`: the program gives its ids itself.
    pub(crate) receiver: Option<Receiver>,
}

/// A database that is handed ids of a tag. It keeps the mark of the key space that they are of, and takes none of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receiver {
    /// The mark that it keeps; `None`: it has had no ids yet, or does not know of any.
    pub(crate) mark: Option<u64>,
}

/// What entitles a program to ids of the ordered tags of a slot group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderRight<'a> {
    pub(crate) group: SlotGroup,
    /// The program's run.
    pub(crate) owner: &'a str,
    /// The epoch in which it is the active one.
    pub(crate) epoch: u64,
}

impl OrderRight<'_> {
    /// The number of the group's lease.
    pub(crate) fn id(&self) -> u64 {
        u64::from(self.group.number())
    }
}

/// A range that is durably ours.
#[derive(Debug, Clone)]
pub(crate) struct Granted {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) residue: Residue,
    pub(crate) row: TagRow,
    /// The tag's largest id; `None`: only the store behind this one knows it.
    pub(crate) id_max: Option<u64>,
    /// The server that granted it.
    pub(crate) server: String,
    /// Ids left out before it.
    pub(crate) gap: u64,
    /// It was handed back before, and is not a new reservation.
    pub(crate) was_returned: bool,
    /// The tag's generation.
    pub(crate) generation: u64,
    /// The tag's key space.
    pub(crate) key_space: Arc<str>,
}

impl Granted {
    /// The tag's bound behind it: first id that was not reserved.
    pub(crate) fn bound(&self) -> u64 {
        self.row.ends.first_free(self.row.number).max(self.end)
    }

    /// How many ids from there on the tag has, where that is known.
    pub(crate) fn tag_left(&self) -> Option<u64> {
        let end = self.id_max?.saturating_add(1);
        Some(end.saturating_sub(self.bound()))
    }
}

/// Why the store said no, for certain.
#[derive(Debug, Clone)]
pub(crate) enum Denied {
    Exhausted(TagExhausted),
    /// More are wanted than one range of the store may hold; fewer may be had.
    TooLarge(Failure),
    /// The caller follows another generation of the tag.
    Superseded(Failure),
    /// The caller has ranges of another key space.
    AnotherKeySpace(Failure),
    /// The tag is ordered, in this order, and the caller does not keep it.
    Ordered(TagOrder, Failure),
    /// The store may have lost what it acknowledged last: nothing of the tag is given until somebody has said how far it was used.
    Suspended(Failure),
    /// The caller sends ids through another permutation than the tag's, or through none, or the tag has none.
    HiddenOtherwise(Failure),
    /// The store says less than it said before: nothing of the tag is given until somebody has said how far it was used.
    GoneBack(GoneBack),
    /// The store's server was started a moment ago, or is another one, and all programs look first at what it says.
    Settling(Failure),
    /// Another program has taken over.
    NotActive(Failure),
    Other(Failure),
}

impl Denied {
    /// Why, but for a tag that is exhausted.
    ///
    /// # Errors
    /// It is.
    pub(crate) fn failure(self) -> Result<Failure, TagExhausted> {
        match self {
            Self::Exhausted(exhausted) => Err(exhausted),
            Self::Superseded(failure)
            | Self::AnotherKeySpace(failure)
            | Self::Ordered(_, failure)
            | Self::TooLarge(failure)
            | Self::Suspended(failure)
            | Self::HiddenOtherwise(failure)
            | Self::NotActive(failure)
            | Self::Settling(failure)
            | Self::Other(failure) => Ok(failure),
            Self::GoneBack(gone_back) => Ok(gone_back.failure),
        }
    }

    /// Why, also for a tag that is exhausted.
    pub(crate) fn told(self, tag: &Tag) -> Failure {
        self.failure().unwrap_or_else(|exhausted| {
            let message = format!("tag \"{tag}\" is {exhausted}");
            Failure::new(Cause::TagExhausted, message)
        })
    }
}
