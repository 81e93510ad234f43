//! Keys of a tag: taken from the buffer, refilled by a task of the tag's own.

mod give_ordered;
mod held;
mod hidden;
mod keeping;
pub(crate) mod refilling;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use keywright_core::hiding::Hiding;
use keywright_core::residue::Residue;
use keywright_core::{Buffer, KeyBatch, Tag};
use tracing::warn;

use crate::failure::Failure;
use crate::kept::keeper::Keeper;
use crate::seat::Seat;
use crate::settings::Limits;
use crate::sources::demand::{Demand, StoreNews};
use crate::sources::ordered::OrderedSide;
use crate::store::returned::Rest;
use crate::store::tag_denied::ordered;
use crate::tag_order::TagFacts;
use held::{Held, HeldGuard, HeldState, Origin};

/// Why ranges are dropped that would have been given.
const ANOTHER_TAG: &str = "the tag is another one in the store now";
const LEFT: &str = "others have switched tables that have keys of the tag";
const IN_TABLES: &str = "tables that have come to the tag have ids of their own there";

/// The keys of one tag, or of one residue class of it.
#[derive(Debug)]
pub(crate) struct SegmentSupply {
    tag: Tag,
    wanted: Residue,
    /// What an index stands for: known with the first range, and the same ever after.
    residue: OnceLock<Residue>,
    buffer: Buffer,
    /// What its ids are sent through, if they are: all of them, whoever takes them.
    hiding: Option<Arc<Hiding>>,
    /// What takes its place where the tag is ordered.
    pub(super) ordered: OrderedSide,
    pub(crate) demand: Demand,
    /// Keeps a part of what is reserved in a file.
    keeper: Option<Arc<Keeper>>,
    state: HeldState,
}

impl SegmentSupply {
    pub(crate) fn new(
        name: String,
        (tag, wanted): (Tag, Residue),
        limits: &Limits,
        seat: Arc<Seat>,
    ) -> Self {
        Self {
            tag,
            wanted,
            residue: OnceLock::new(),
            buffer: Buffer::new(),
            hiding: None,
            ordered: OrderedSide::new(seat),
            demand: Demand::new(name, limits.wait_ms_max, limits.waiters_max),
            keeper: None,
            state: HeldState::new(),
        }
    }

    /// The same; what other sources with these news have said of their store it need not say.
    pub(crate) fn sharing(self, news: Arc<StoreNews>) -> Self {
        Self {
            demand: self.demand.sharing(news),
            ..self
        }
    }

    /// The same, and its ids are sent through this.
    pub(crate) fn hiding(self, hiding: Option<Arc<Hiding>>) -> Self {
        Self { hiding, ..self }
    }

    /// Whether so many keys have no common distance, and are to have one.
    #[inline]
    fn are_apart(&self, count: u64, contiguous: bool) -> bool {
        contiguous && count > 1 && self.hiding.is_some()
    }

    /// One compare-and-swap, and a check of what is left. `contiguous`: the caller's clients may compute them from the first.
    #[inline]
    pub(crate) fn try_take(&self, count: u64, contiguous: bool) -> Option<KeyBatch> {
        if self.demand.is_closed() || self.are_apart(count, contiguous) {
            return None;
        }
        let residue = self.residue.get()?;
        let first = self.buffer.take(count)?;
        if self.buffer.is_low() {
            self.demand.ask();
        }
        self.demand
            .figures
            .issued
            .fetch_add(count, Ordering::Relaxed);
        let first = residue.id_of(first);
        match &self.hiding {
            None => Some(KeyBatch::Numbers {
                first,
                spacing: residue.modulus(),
                count,
            }),
            Some(hiding) => hidden::keys(hiding, first, count),
        }
    }

    pub(crate) async fn take(&self, count: u64, contiguous: bool) -> Result<KeyBatch, Failure> {
        if self.are_apart(count, contiguous) {
            return Err(hidden::apart(&self.tag));
        }
        let attempt = || match self.order_refusal() {
            Some(failure) => Some(Err(failure)),
            None => self.try_take(count, contiguous).map(Ok),
        };
        self.demand.take(count, attempt).await?
    }

    /// Why its keys are given in another way only.
    pub(crate) fn order_refusal(&self) -> Option<Failure> {
        self.ordered.is_ordered().then(|| ordered(&self.tag))
    }

    /// Keys that are left, of those that were reserved. Nobody waits: while the file of kept ranges is written, what is kept counts as it was before.
    pub(crate) fn remaining(&self) -> u64 {
        let kept = self.state.shown().kept_ids;
        self.buffer
            .remaining()
            .saturating_add(kept)
            .saturating_add(self.ordered.remaining())
    }

    /// What is known of the tag. Nobody waits here either: until its first range was published it is not known which key space it is.
    pub(crate) fn facts(&self) -> TagFacts {
        TagFacts {
            order: self.ordered.order(),
            key_space: self.state.shown().key_space,
            hide_bits: self.hiding.as_ref().map(|hiding| hiding.bits()),
        }
    }

    /// Whether its tag is ordered, and another program issues its keys, or nobody.
    pub(crate) fn is_standby(&self) -> bool {
        self.ordered.is_ordered() && self.ordered.right().is_none()
    }

    /// Whether there is nothing to be refilled for a request of so many keys.
    fn is_full(&self, need: u64) -> bool {
        match self.ordered.is_ordered() {
            true => self.ordered.is_full(need),
            false => need <= self.buffer.longest() && !self.buffer.is_low(),
        }
    }

    /// Everything that is left and may be handed back; it cannot be taken any more. What was kept is among it where the file was erased.
    pub(crate) fn take_rest(&self, was_erased: bool) -> Vec<Rest> {
        self.rejoin_tail(was_erased);
        let ranges = self.buffer.take_rest();
        let (origin, generation, key_space) = {
            let held = self.held();
            let key_space = held.key_space.clone().unwrap_or_default();
            (held.origin.clone(), held.generation, key_space)
        };
        match (self.residue.get(), origin) {
            (Some(residue), Origin::Server(server)) => ranges
                .into_iter()
                .map(|(start, end)| Rest {
                    tag: self.tag.clone(),
                    start: residue.id_of(start),
                    end: residue.id_of(end.saturating_sub(1)).saturating_add(1),
                    server: server.clone(),
                    generation: generation.unwrap_or(0),
                    key_space: Arc::clone(&key_space),
                })
                .collect(),
            (Some(_) | None, Origin::Nowhere | Origin::Several | Origin::Server(_)) => Vec::new(),
        }
    }

    /// Follows another generation of the tag: what is left of ranges that were reserved before is dropped, and so is what is
    /// granted later for an older one. Nobody may be taking keys meanwhile that are to be of the new one.
    pub(crate) fn follow(&self, generation: u64) {
        {
            let mut held = self.held();
            if held.generation == Some(generation) && !held.is_left {
                return;
            }
            held.generation = Some(generation);
            held.is_left = false;
            self.forget();
            held.tail = None;
            let _ = self.buffer.take_rest();
        }
        self.demand.begin_anew();
    }

    /// Drops what is left of ranges, and what is granted from now on, until a generation is followed.
    pub(crate) fn leave(&self) {
        let mut held = self.held();
        if !held.is_left {
            held.is_left = true;
            self.drop_rest(&mut held, LEFT);
        }
    }

    /// The store says which key space the tag is. What is left of another one is dropped: it may be given again.
    pub(crate) fn meet(&self, key_space: &str) {
        let mut held = self.held();
        if held
            .key_space
            .as_deref()
            .is_none_or(|known| known == key_space)
        {
            return;
        }
        self.drop_rest(&mut held, ANOTHER_TAG);
    }

    /// Tables have ids below this one that nobody knew of before: none of those is given from here on. What is left of ranges that reach below is dropped,
    /// and so is what is granted later of a request that was made before.
    pub(crate) fn leave_out(&self, first: u64) {
        {
            let mut held = self.held();
            held.first = held.first.max(first);
            if self.lowest(&held).is_none_or(|lowest| lowest >= first) {
                return;
            }
            self.drop_rest(&mut held, IN_TABLES);
        }
        self.demand.ask();
    }

    /// The lowest id that is left of what was reserved. Those of ordered tags are none of tables.
    fn lowest(&self, held: &Held) -> Option<u64> {
        let residue = self.residue.get()?;
        let kept = held.tail.as_ref().map(|tail| tail.start);
        let lowest = self.buffer.lowest().into_iter().chain(kept).min()?;
        Some(residue.id_of(lowest))
    }

    /// Nothing is published meanwhile.
    fn drop_rest(&self, held: &mut Held, why: &str) {
        self.forget();
        let had_tail = held.tail.take().is_some();
        let had_ordered = self.ordered.give_up();
        if !self.buffer.take_rest().is_empty() || had_tail || had_ordered {
            warn!(tag = %self.tag, "dropped what was reserved: {why}");
        }
    }

    fn held(&self) -> HeldGuard<'_> {
        self.state.lock()
    }
}
