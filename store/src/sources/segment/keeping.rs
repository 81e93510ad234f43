//! The part of a tag's last range that a file keeps, for a program that starts while its store is away.

use std::sync::Arc;

use tracing::warn;

use super::{Held, Origin, SegmentSupply};
use crate::kept::content::{KeptRange, fingerprint};
use crate::kept::keeper::Keeper;
use crate::kept::tail::{Tail, split};
use crate::store::tag_request::Granted;
use crate::tag_order::TagOrder;

impl SegmentSupply {
    /// The same; a part of what is reserved is kept, and what was kept before is there.
    pub(crate) fn keeping(self, keeper: Option<Arc<Keeper>>) -> Self {
        let found = keeper
            .as_ref()
            .and_then(|keeper| keeper.range(&self.tag, self.wanted, self.hiding.as_deref()));
        if let Some(range) = found {
            let _ = self.residue.set(range.residue);
            self.ordered.learn(TagOrder::Distinct);
            let (start, end) = (
                range.residue.index_from(range.mark),
                range.residue.index_from(range.end),
            );
            let mut held = self.held();
            held.origin = Origin::Server(range.server.clone());
            held.generation = Some(range.generation);
            held.key_space = Some(Arc::clone(&range.key_space));
            held.tail = Some(Tail::new(start, end, range));
        }
        Self { keeper, ..self }
    }

    /// The bound of the tag when that was reserved.
    pub(crate) fn kept_bound(&self) -> Option<u64> {
        self.held().tail.as_ref().map(|tail| tail.range.bound)
    }

    /// Whether something is kept.
    pub(super) fn has_tail(&self) -> bool {
        self.held().tail.is_some()
    }

    /// First index above all that this supply has ever had.
    pub(super) fn hi(&self, held: &Held) -> u64 {
        let kept = held.tail.as_ref().map_or(0, |tail| tail.end);
        self.buffer.hi().max(kept)
    }

    /// Publishes what was kept, and of a range whose commit is known what is not kept from now on. False: it has no id.
    pub(super) fn publish_granted(
        &self,
        held: &mut Held,
        (start, end): (u64, u64),
        need: u64,
        granted: &Granted,
    ) -> bool {
        if let Some(keeper) = &self.keeper {
            keeper.saw(&self.tag, &granted.key_space, granted.bound());
        }
        if start >= end {
            return false;
        }
        let percent = granted.row.refill_percent;
        let before = held.tail.take();
        let keeper = self.keeper.as_ref().filter(|keeper| keeper.is_keeping());
        let (Some(keeper), Some(mark)) = (keeper, split(start, end, need)) else {
            if let Some(tail) = before
                && self.forget()
            {
                self.buffer.publish(tail.start, tail.end, percent);
            }
            // Nothing of the range is kept, but the tag has come so far: the file says that before anybody has an id of it.
            if let Some(keeper) = keeper {
                keeper.say();
            }
            return self.buffer.publish(start, end, percent);
        };
        let range = self.range((mark, end), granted);
        if keeper.keep(&range) {
            if let Some(tail) = before {
                self.buffer.publish(tail.start, tail.end, percent);
            }
            held.tail = Some(Tail::new(mark, end, range));
        }
        self.buffer.publish(start, mark, percent)
    }

    fn range(&self, (mark, end): (u64, u64), granted: &Granted) -> KeptRange {
        let residue = granted.residue;
        let end = residue.id_of(end.saturating_sub(1)).saturating_add(1);
        KeptRange {
            tag: self.tag.clone(),
            residue,
            mark: residue.id_of(mark),
            end,
            generation: granted.generation,
            key_space: Arc::clone(&granted.key_space),
            server: granted.server.clone(),
            hidden: fingerprint(self.hiding.as_deref()),
            refill_percent: granted.row.refill_percent,
            bound: granted.bound(),
        }
    }

    /// The store does not answer: publishes a part of what is kept, as much as somebody waits for at least. False: nothing is kept.
    pub(super) fn publish_part(&self, need: u64) -> bool {
        let Some(keeper) = &self.keeper else {
            return false;
        };
        let mut held = self.held();
        if keeper.is_late() {
            self.drop_rest(&mut held, "others need not wait for this program any more");
            return false;
        }
        let Some(tail) = held.tail.take() else {
            return false;
        };
        let (start, mark, percent) = (tail.start, tail.next(need), tail.range.refill_percent);
        let rest = tail.behind(mark);
        let is_durable = match &rest {
            Some(rest) => keeper.keep(&rest.range),
            None => self.forget(),
        };
        if !is_durable {
            return false;
        }
        held.tail = rest;
        self.buffer.publish(start, mark, percent)
    }

    /// The store says that there is no more: publishes all that is kept.
    pub(super) fn publish_tail(&self) -> bool {
        let mut held = self.held();
        let Some(tail) = held.tail.take() else {
            return false;
        };
        let percent = tail.range.refill_percent;
        self.forget() && self.buffer.publish(tail.start, tail.end, percent)
    }

    /// Nothing of the tag is kept any more. False: the file may say it.
    pub(super) fn forget(&self) -> bool {
        let keeper = self.keeper.as_ref();
        keeper.is_none_or(|keeper| keeper.forget(&self.tag, self.wanted))
    }

    /// What was kept is as good as what was published, for whoever hands it back: only where the file was erased.
    pub(super) fn rejoin_tail(&self, was_erased: bool) {
        let tail = self.held().tail.take();
        match tail {
            Some(tail) if was_erased => {
                self.buffer
                    .publish(tail.start, tail.end, tail.range.refill_percent);
            }
            Some(_) => {
                warn!(tag = %self.tag, "what was kept may still be in the file, and is not handed back");
            }
            None => {}
        }
    }

    /// It is too late for what was kept.
    pub(crate) fn expire(&self) {
        self.drop_rest(
            &mut self.held(),
            "others need not wait for this program any more",
        );
    }
}
