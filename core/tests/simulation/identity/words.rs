//! Which word a session issues from, and which slot it gets.

use keywright_core::{Floor, Register, Use};

use super::rules::Rules;
use super::state::{Identity, Key, Outcome, Slot};
use super::world::World;

/// A word as a session uses it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub slot: usize,
    pub generation: u64,
    pub key: Key,
    pub identity: Identity,
    /// Whether it is the first identity of its database, not committed yet.
    pub is_first: bool,
}

/// Whether the database had an identity before the transaction: to be asked before that changes it.
pub fn has_past(world: &mut World, database: u32, transaction: u32) -> bool {
    let known = world.transactions[&transaction].has_past;
    let is_there = known.unwrap_or_else(|| {
        let has_worker = world.identity(database, Some(transaction)).worker.is_some();
        let register = world.register(Some(transaction));
        has_worker || register.held_by(database).next().is_some()
    });
    if let Some(transaction) = world.transactions.get_mut(&transaction) {
        transaction.has_past = Some(is_there);
    }
    is_there
}

/// What a session's word belongs to; none when it may not issue. Also the identity, and whether it is the first.
pub fn key(world: &mut World, at: usize) -> Option<(Key, Identity, bool)> {
    let (database, transaction) = (world.sessions[at].database, world.sessions[at].transaction);
    let identity = world.identity(database, transaction);
    if identity.sequence == 0 {
        return None;
    }
    let mut is_first = false;
    if let Some(number) = transaction {
        let own = &world.transactions[&number];
        if identity.writers.iter().any(|xid| own.is_own(*xid)) {
            is_first = !has_past(world, database, number);
            if !is_first && world.rules != Rules::UncommittedIssues {
                return None;
            }
        }
    }
    let key = Key {
        layout: identity.layout,
        worker: identity.worker?,
        database,
        sequence: identity.sequence,
    };
    Some((key, identity, is_first))
}

/// Finds the session's word, or a slot for it.
pub fn look_up(world: &mut World, at: usize) -> Option<Entry> {
    let (key, identity, is_first) = key(world, at)?;
    let slot = attach(world, at, key)?;
    Some(Entry {
        slot,
        generation: world.memory[slot].generation.get(),
        key,
        identity,
        is_first,
    })
}

fn attach(world: &mut World, at: usize, key: Key) -> Option<usize> {
    let known = world.memory.iter().position(|slot| slot.key == key);
    if known.is_some() {
        return known;
    }
    if world.memory.len() < world.settings.slots_max {
        let mut slot = Slot::new(key);
        slot.pass_on(key);
        world.memory.push(slot);
        return Some(world.memory.len() - 1);
    }
    let transaction = world.sessions[at].transaction;
    let free = (0..world.memory.len())
        .find(|slot| world.memory[*slot].gate.is_none() && is_free(world, *slot, transaction))?;
    world.trace(|| {
        format!(
            "slot {free} of {:?} goes to {key:?}",
            world.memory[free].key
        )
    });
    world.memory[free].word.drain();
    world.memory[free].pass_on(key);
    world.passed_on += 1;
    Some(free)
}

fn is_free(world: &World, slot: usize, transaction: Option<u32>) -> bool {
    if world.rules == Rules::PassedOnBeforeCommit {
        let closed_by = world.memory[slot].closed_by;
        return (closed_by != 0 && world.outcome(closed_by) != Outcome::Failed)
            || is_covered(world, slot, world.register(transaction));
    }
    let own = transaction.and_then(|number| world.transactions[&number].register());
    world.is_dropped(slot) || (own.is_none() && is_covered(world, slot, &world.disk.register))
}

/// Whether the register knows of all that the word issued, and it is not the word that its database issues from now.
fn is_covered(world: &World, slot: usize, register: &Register) -> bool {
    let slot = &world.memory[slot];
    let layout = world.layout(slot.key.layout);
    let used = match slot.word.hi() {
        0 => None,
        hi => Some(Floor::below_state(layout, hi)),
    };
    let known = match register.find(keywright_core::Number::Worker(slot.key.worker)) {
        None | Some((_, Use::Lost)) => return false,
        Some((_, Use::Left { floor })) => floor,
        Some((database, Use::Held(held))) => {
            let is_in_force = slot.key.database == database
                && slot.key.sequence == held.sequence
                && layout == held.layout;
            if is_in_force {
                return false;
            }
            held.floor
        }
    };
    match (used, known) {
        (None, Some(_) | None) => true,
        (Some(_), None) => false,
        (Some(used), Some(known)) => known.covers(&used),
    }
}
