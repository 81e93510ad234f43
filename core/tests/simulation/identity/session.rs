//! What one connection does, step by step.

use keywright_core::{BoundPlan, WorkerId};

use super::drops::Drop;
use super::rules::Rules;
use super::words::{self, Entry};
use super::world::World;
use super::{commands, drops, extend};

/// What a session is about to do.
#[derive(Debug)]
pub enum Phase {
    /// Between two statements.
    Idle,
    /// Reads the cursor; so many ids are wanted.
    Cursor(Entry, u64),
    /// Reads the bound; first and end of what it would take.
    Bound(Entry, u64, u64),
    /// Swaps.
    Swap(Entry, u64, (u64, u64)),
    /// Looks at the generation again.
    Look(Entry, (u64, u64)),
    /// Wants into the gate.
    Enter(Entry, u64),
    /// Is in the gate, and plans and writes the bound.
    Write(Entry, u64),
    /// Makes it durable and publishes it.
    Flush(Entry, BoundPlan),
    /// DROP DATABASE.
    Dropping(Box<Drop>),
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    pub id: u32,
    pub database: u32,
    pub transaction: Option<u32>,
    pub phase: Phase,
    /// The word it used last. Nobody tells it at once when another transaction changed that.
    pub cached: Option<Entry>,
}

impl World {
    /// The same step again later, or none more.
    pub fn wait_or_give_up(&mut self, phase: Phase) -> Phase {
        if self.rng.u8(..) < 16 {
            Phase::Idle
        } else {
            phase
        }
    }
}

/// Adds a connection to some database.
pub fn connect(world: &mut World) {
    let databases: Vec<u32> = world.disk.databases.keys().copied().collect();
    let database = databases[world.rng.usize(..databases.len())];
    let id = world.next();
    world.sessions.push(Session {
        id,
        database,
        transaction: None,
        phase: Phase::Idle,
        cached: None,
    });
}

/// Ends a connection in whatever it does.
pub fn disconnect(world: &mut World, at: usize) {
    let session = world.sessions.swap_remove(at);
    for slot in &mut world.memory {
        if slot.gate == Some(session.id) {
            slot.gate = None;
        }
    }
    if let Some(transaction) = session.transaction {
        world.roll_back(transaction);
    }
    if let Phase::Dropping(drop) = session.phase {
        world.roll_back(drop.transaction);
    }
}

/// One step of a connection.
pub fn step(world: &mut World, at: usize) {
    let id = world.sessions[at].id;
    let phase = std::mem::replace(&mut world.sessions[at].phase, Phase::Idle);
    let next = match phase {
        Phase::Idle => begin(world, at),
        Phase::Cursor(entry, n) => read_cursor(world, entry, n),
        Phase::Bound(entry, next, n) => read_bound(world, entry, next, n),
        Phase::Swap(entry, next, range) => swap(world, entry, next, range),
        Phase::Look(entry, range) => look_again(world, at, entry, range),
        Phase::Enter(entry, n) => extend::enter(world, at, entry, n),
        Phase::Write(entry, n) => extend::write(world, at, entry, n),
        Phase::Flush(entry, plan) => extend::flush(world, &entry, &plan),
        Phase::Dropping(drop) => drops::step(world, *drop),
    };
    // It may have ended, or changed places with one that did.
    let mut sessions = world.sessions.iter_mut();
    if let Some(session) = sessions.find(|session| session.id == id) {
        session.phase = next;
    }
}

fn begin(world: &mut World, at: usize) -> Phase {
    if world.rng.u8(..) >= world.settings.changes {
        return take(world, at);
    }
    if world.rng.u8(..) < world.settings.drops && world.sessions[at].transaction.is_none() {
        return drops::begin(world, at);
    }
    commands::run(world, at);
    Phase::Idle
}

fn take(world: &mut World, at: usize) -> Phase {
    if world.rng.u8(..) < 64 {
        world.sessions[at].cached = None;
    }
    let entry = match world.sessions[at].cached {
        Some(entry) => Some(entry),
        None => words::look_up(world, at),
    };
    world.sessions[at].cached = entry;
    match entry {
        Some(entry) => Phase::Cursor(entry, world.rng.u64(1..=6)),
        None => Phase::Idle,
    }
}

fn read_cursor(world: &World, entry: Entry, n: u64) -> Phase {
    Phase::Bound(entry, world.memory[entry.slot].word.next(), n)
}

fn read_bound(world: &World, entry: Entry, next: u64, n: u64) -> Phase {
    let slot = &world.memory[entry.slot];
    let layout = world.layout(entry.key.layout);
    let now_state = layout.state_at(world.readings().wall_ms - slot.skew_ms);
    let first = next.max(now_state);
    if first + n <= slot.word.hi() {
        return Phase::Swap(entry, next, (first, first + n));
    }
    Phase::Enter(entry, n)
}

/// What the word's own compare-and-swap does, as a step of its own.
fn swap(world: &World, entry: Entry, next: u64, (first, end): (u64, u64)) -> Phase {
    let word = &world.memory[entry.slot].word;
    if word.next() != next {
        return Phase::Cursor(entry, end - first);
    }
    word.publish(end, 0);
    Phase::Look(entry, (first, end))
}

fn look_again(world: &mut World, at: usize, entry: Entry, (first, end): (u64, u64)) -> Phase {
    let is_current = world.is_current(entry.slot, entry.generation);
    let key = match world.rules {
        Rules::NoSecondLook => entry.key,
        Rules::KeyAfterSwap => world.memory[entry.slot].key,
        _ if !is_current => {
            world.sessions[at].cached = None;
            return Phase::Idle;
        }
        _ => entry.key,
    };
    let layout = world.layout(key.layout);
    let Ok(worker) = WorkerId::new(i64::from(key.worker), &layout) else {
        return Phase::Idle;
    };
    let session = world.sessions[at].id;
    let first_identity = entry
        .is_first
        .then_some((entry.identity.writers, world.life));
    for state in first..end {
        let id = layout.compose(state, layout.worker_part(worker, false));
        let by = (session, world.step, key);
        world.checker.show(id, by, first_identity);
    }
    world.trace(|| format!("session {session} shows {}..{} of {key:?}", first, end));
    Phase::Idle
}
