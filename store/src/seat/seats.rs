//! The seats of a program, one for each slot group, and what is the same for all of them.

use std::sync::{Arc, Mutex, PoisonError};

use keywright_core::Tag;
use keywright_core::slot::SlotGroups;

use super::Seat;
use crate::clock::Clock;
use crate::order::spread::{Contender, courtesy_ms};
use crate::store::order_rows::NodeRow;

/// The seats of a program.
#[derive(Debug)]
pub(crate) struct Seats {
    groups: SlotGroups,
    all: Vec<Arc<Seat>>,
    /// The programs that stand, as it was read last.
    nodes: Mutex<Vec<NodeRow>>,
}

impl Seats {
    /// One for each of so many groups.
    pub(crate) fn new(groups: SlotGroups, clock: &Arc<dyn Clock>) -> Self {
        let seats = groups
            .all()
            .map(|group| Seat::new(Arc::clone(clock), group));
        Self {
            groups,
            all: seats.map(Arc::new).collect(),
            nodes: Mutex::default(),
        }
    }

    /// How many groups there are for this program.
    pub(crate) fn groups(&self) -> SlotGroups {
        self.groups
    }

    /// In the order of the groups.
    pub(crate) fn all(&self) -> &[Arc<Seat>] {
        &self.all
    }

    /// That of a tag's group.
    pub(crate) fn of(&self, tag: &Tag, clock: &Arc<dyn Clock>) -> Arc<Seat> {
        let group = self.groups.of(tag.as_str().as_bytes());
        let its = self.all.iter().find(|seat| seat.group == group);
        // There is one for each; from one that nobody stands for nothing is issued.
        its.map_or_else(|| Arc::new(Seat::new(Arc::clone(clock), group)), Arc::clone)
    }

    /// The programs that stand.
    pub(crate) fn nodes(&self) -> Vec<NodeRow> {
        let nodes = self.nodes.lock();
        nodes.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The programs that stand are these.
    pub(crate) fn note_nodes(&self, nodes: Vec<NodeRow>) {
        *self.nodes.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
    }

    /// How long this program leaves the lease of a group, once that is free, to others. `left_by`: the address of the program that had it.
    pub(crate) fn courtesy_ms(&self, seat: &Seat, left_by: Option<&str>, now_ms: u64) -> u64 {
        if self.groups == SlotGroups::ONE {
            return 0;
        }
        let own = seat.with(|standing| {
            // What it had before it was started anew, or the program had whose place it takes.
            let is_its = left_by == Some(standing.settings.address.as_str());
            let ttl_ms = standing.settings.ttl_ms;
            let age_ms = now_ms.saturating_sub(standing.began_ms);
            let owner = Arc::clone(&standing.owner);
            (!is_its).then_some((owner, ttl_ms, age_ms))
        });
        let Some((own, ttl_ms, age_ms)) = own.flatten() else {
            return 0;
        };
        let holders: Vec<Arc<str>> = self.all.iter().filter_map(|its| its.holder()).collect();
        let groups_of = |program: &str| holders.iter().filter(|its| ***its == *program).count();
        let contender = |program| Contender {
            groups: groups_of(program),
            program,
        };
        let nodes = self.nodes();
        // Whoever let it go is not waited for.
        let others = nodes
            .iter()
            .filter(|node| node.program != *own && left_by != Some(node.address.as_str()));
        let others: Vec<Contender<'_>> = others.map(|node| contender(&node.program)).collect();
        courtesy_ms(seat.group, (&contender(&own), age_ms), &others, ttl_ms)
    }

    /// They ask for nothing any more.
    pub(crate) fn close(&self) {
        self.all.iter().for_each(|seat| seat.close());
    }
}
