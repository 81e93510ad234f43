//! Keys of an ordered tag: taken by the program that is active, from ranges of its epoch.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use keywright_core::slot::SlotGroup;

use crate::order::ranges::OrderedRanges;
use crate::seat::Seat;
use crate::tag_order::TagOrder;

/// What a request about an ordered tag gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ordered<T> {
    /// What it asked for.
    Have(T),
    /// The same of a strict tag: nobody is told of it before [`crate::Source::confirm`] has said that it stands.
    Unconfirmed(T, Unconfirmed),
    /// The program at this address is the one to ask.
    Elsewhere(String),
    /// So is the one that has taken this one's place, and its address.
    BySuccessor,
    /// Nothing yet.
    Wait,
    /// The tag is not ordered.
    Distinct,
}

impl<T> Ordered<T> {
    /// The same with something else in place of what was asked for.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Ordered<U> {
        match self {
            Self::Have(what) => Ordered::Have(change(what)),
            Self::Unconfirmed(what, unconfirmed) => Ordered::Unconfirmed(change(what), unconfirmed),
            Self::Elsewhere(address) => Ordered::Elsewhere(address),
            Self::BySuccessor => Ordered::BySuccessor,
            Self::Wait => Ordered::Wait,
            Self::Distinct => Ordered::Distinct,
        }
    }
}

/// What a reply with ids of a strict tag waits for: that the epoch in which they were taken still was when the request had been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Unconfirmed {
    /// The number of the tag's slot group: each has epochs of its own.
    pub(crate) group: u8,
    pub(crate) epoch: u64,
}

impl Unconfirmed {
    /// What waits for the same group can wait together.
    #[must_use]
    pub fn group(&self) -> u8 {
        self.group
    }
}

/// What a supply has where its tag is ordered.
#[derive(Debug)]
pub(super) struct OrderedSide {
    /// That of the tag's slot group.
    pub(super) seat: Arc<Seat>,
    /// Known with the first answer of the store, and the same ever after.
    order: OnceLock<TagOrder>,
    ranges: Mutex<OrderedRanges>,
}

impl OrderedSide {
    pub(super) fn new(seat: Arc<Seat>) -> Self {
        Self {
            seat,
            order: OnceLock::new(),
            ranges: Mutex::default(),
        }
    }

    pub(super) fn order(&self) -> Option<TagOrder> {
        self.order.get().copied()
    }

    /// Whether it is known that the tag is ordered.
    pub(super) fn is_ordered(&self) -> bool {
        self.order().is_some_and(TagOrder::is_ordered)
    }

    pub(super) fn learn(&self, order: TagOrder) {
        let _ = self.order.set(order);
    }

    pub(super) fn stands(&self) -> bool {
        self.seat.stands()
    }

    /// The slot group of the tag.
    pub(super) fn group(&self) -> SlotGroup {
        self.seat.group
    }

    /// Owner and epoch of this program, where it is active and the tag is ordered.
    pub(super) fn right(&self) -> Option<(Arc<str>, u64)> {
        match self.is_ordered() {
            true => self.seat.right(),
            false => None,
        }
    }

    /// The store says that another program is active.
    pub(super) fn lose(&self, epoch: Option<u64>) {
        if let Some(epoch) = epoch {
            self.seat.lost(epoch);
        }
    }

    pub(super) fn is_full(&self, need: u64) -> bool {
        match self.seat.right() {
            // It may not even ask.
            None => true,
            Some((_, epoch)) => {
                let ranges = self.ranges();
                need <= ranges.longest(epoch) && !ranges.is_low(epoch)
            }
        }
    }

    pub(super) fn publish(&self, epoch: u64, range: (u64, u64), refill_percent: u32) {
        self.ranges().publish(epoch, range, refill_percent);
    }

    /// Gives up what is left, in whatever epoch. Whether there was something.
    pub(super) fn give_up(&self) -> bool {
        self.ranges().give_up()
    }

    pub(super) fn hi(&self) -> u64 {
        self.ranges().hi()
    }

    pub(super) fn remaining(&self) -> u64 {
        match self.right() {
            Some((_, epoch)) => self.ranges().remaining(epoch),
            None => 0,
        }
    }

    pub(super) fn ranges(&self) -> MutexGuard<'_, OrderedRanges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
