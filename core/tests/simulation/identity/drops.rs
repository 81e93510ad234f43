//! DROP EXTENSION, and DROP DATABASE while its sessions issue on.

use keywright_core::{Floor, Number, Register, Use};

use super::commands::{hold, lock_register, used, write_identity, write_register};
use super::rules::Rules;
use super::session::{self, Phase};
use super::state::{Identity, Key};
use super::world::World;

/// A DROP DATABASE that is under way.
#[derive(Debug)]
pub struct Drop {
    pub transaction: u32,
    database: u32,
    /// Words that are not closed yet.
    words: Vec<(usize, u64, Key)>,
    closed: Vec<(Number, Option<Floor>)>,
    /// Numbers whose words could not be closed.
    unknown: Vec<Number>,
    is_noted: bool,
}

fn higher(one: Option<Floor>, other: Option<Floor>) -> Option<Floor> {
    match one {
        Some(floor) => Some(floor.higher(other)),
        None => other,
    }
}

fn highest(closed: &[(Number, Option<Floor>)], number: Number) -> Option<Floor> {
    let of_number = closed.iter().filter(|(of, _)| *of == number);
    of_number.fold(None, |highest, (_, floor)| higher(highest, *floor))
}

fn words_in(world: &World, database: u32) -> Vec<(usize, u64, Key)> {
    let words = world.memory.iter().enumerate();
    words
        .filter(|(at, slot)| slot.key.database == database && !world.is_dropped(*at))
        .map(|(at, slot)| (at, slot.generation.get(), slot.key))
        .collect()
}

/// Stops a word until the transaction has ended, and says how far it came; nothing if it issued nothing.
fn close(world: &mut World, slot: usize, xid: u64) -> Option<Floor> {
    let is_taken_over = world.memory[slot].is_taken_over;
    if world.rules == Rules::NotedWhileIssuing {
        let word = &world.memory[slot].word;
        let layout = world.layout(world.memory[slot].key.layout);
        return is_taken_over.then(|| Floor::below_state(layout, word.hi()));
    }
    world.memory[slot].closed_by = xid;
    let floor = world.stop(slot);
    is_taken_over.then_some(floor)
}

/// Words of numbers that were given in a transaction that was rolled back: only memory knows of them.
fn keep_unregistered(register: &mut Register, database: u32, closed: &[(Number, Option<Floor>)]) {
    for (number, _) in closed {
        let known = match register.find(*number) {
            None => None,
            Some((_, Use::Left { floor })) => floor,
            Some((_, Use::Held(_) | Use::Lost)) => continue,
        };
        let floor = higher(highest(closed, *number), known);
        if floor.is_some() {
            register.set(*number, database, Use::Left { floor });
        }
    }
}

/// DROP EXTENSION: its bound goes, so the register gets what is known of it.
pub fn extension(world: &mut World, number: u32, identity: Identity) -> Option<()> {
    let database = world.transactions[&number].database;
    hold(world, number, database)?;
    let bound_ms = hold(world, number, identity.sequence)?;
    let xid = world.level(number)?.xid;
    let own = world.transactions.get_mut(&number)?;
    if !own.is_own(identity.writers[0]) {
        own.has_past = Some(true);
    }
    if world.rules != Rules::DropExtensionNotesNothing {
        note(world, number, database, bound_ms, xid)?;
    }
    write_identity(world, number, |identity, _| {
        identity.sequence = 0;
        identity.layout = 0;
    })
}

fn note(
    world: &mut World,
    number: u32,
    database: u32,
    bound_ms: Option<i64>,
    xid: u64,
) -> Option<()> {
    let mut register = lock_register(world, number)?;
    let mut closed = Vec::new();
    for (slot, _, key) in words_in(world, database) {
        if world.memory[slot].gate.is_some() {
            return None;
        }
        if let Some(floor) = close(world, slot, xid) {
            closed.push((Number::Worker(key.worker), Some(floor)));
        }
    }
    for (of, mut held) in register.held_by(database).collect::<Vec<_>>() {
        let mut in_memory = closed.iter().filter(|(number, floor)| {
            let layout = floor.map(|floor| floor.layout);
            *number == of && layout == Some(held.layout)
        });
        let first = in_memory.next().and_then(|(_, floor)| *floor);
        let in_memory = match world.rules {
            Rules::NotesOneWordOfMany => first,
            _ => in_memory.fold(first, |most, (_, floor)| higher(most, *floor)),
        };
        let floor = match in_memory {
            Some(floor) => Some(floor),
            None => used(world, &held, bound_ms),
        };
        held.floor = higher(floor, held.floor);
        held.sequence = 0;
        // What is created again begins with it.
        if world.rules != Rules::RegistersLayoutOnly {
            held.layout = world.layout(0);
        }
        register.set(of, database, Use::Held(held));
    }
    keep_unregistered(&mut register, database, &closed);
    write_register(world, number, register)
}

/// DROP DATABASE of another database than the session's own.
pub fn begin(world: &mut World, at: usize) -> Phase {
    let mut databases = world.disk.databases.keys().copied();
    let own = world.sessions[at].database;
    let is_dropped = |database: &u32| {
        let mut open = world.sessions.iter().map(|session| &session.phase);
        open.any(|phase| matches!(phase, Phase::Dropping(drop) if drop.database == *database))
    };
    let Some(database) = databases.find(|database| *database != own && !is_dropped(database))
    else {
        return Phase::Idle;
    };
    let transaction = world.begin(own);
    if lock_register(world, transaction).is_none() {
        world.roll_back(transaction);
        return Phase::Idle;
    }
    let xid = world.level(transaction).map_or(0, |level| level.xid);
    world.dropping = Some((database, xid));
    world.trace(|| format!("{transaction} begins to drop database {database}"));
    Phase::Dropping(Box::new(Drop {
        transaction,
        database,
        words: words_in(world, database),
        closed: Vec::new(),
        unknown: Vec::new(),
        is_noted: false,
    }))
}

/// Closes a word, or writes what is known of all of them, or ends.
pub fn step(world: &mut World, mut drop: Drop) -> Phase {
    if let Some((slot, generation, key)) = drop.words.last().copied() {
        let number = Number::Worker(key.worker);
        if !world.is_current(slot, generation) {
            // Passed on meanwhile: nothing of it was unrecorded.
            drop.words.pop();
            return Phase::Dropping(Box::new(drop));
        }
        if world.memory[slot].gate.is_some() {
            if world.rng.u8(..) < 16 {
                drop.unknown.push(number);
                drop.words.pop();
            }
            return Phase::Dropping(Box::new(drop));
        }
        let xid = world.level(drop.transaction).map_or(0, |level| level.xid);
        let floor = close(world, slot, xid);
        world.trace(|| format!("{xid} closes slot {slot} of {key:?}: {floor:?}"));
        drop.closed.push((number, floor));
        drop.words.pop();
        return Phase::Dropping(Box::new(drop));
    }
    if !drop.is_noted {
        note_all(world, &drop);
        drop.is_noted = true;
        return Phase::Dropping(Box::new(drop));
    }
    match world.rng.u8(..) {
        0..8 => {
            world.trace(|| format!("{} does not drop the database", drop.transaction));
            world.roll_back(drop.transaction);
            Phase::Idle
        }
        8..32 => finish(world, drop),
        _ => Phase::Dropping(Box::new(drop)),
    }
}

fn note_all(world: &mut World, drop: &Drop) {
    let mut register = world.register(Some(drop.transaction)).clone();
    for (number, held) in register.held_by(drop.database).collect::<Vec<_>>() {
        let floor = highest(&drop.closed, number);
        let is_known = floor.is_some() || world.life == held.life;
        let usage = if is_known && !drop.unknown.contains(&number) {
            Use::Left {
                floor: higher(floor, held.floor),
            }
        } else {
            Use::Lost
        };
        register.set(number, drop.database, usage);
    }
    keep_unregistered(&mut register, drop.database, &drop.closed);
    world.trace(|| format!("{} notes {register}", drop.transaction));
    write_register(world, drop.transaction, register);
}

/// The database's sessions are ended, and it goes, unless a prepared transaction is in it.
fn finish(world: &mut World, drop: Drop) -> Phase {
    let mut prepared = world.transactions.values();
    if prepared.any(|other| other.is_prepared && other.database == drop.database) {
        world.roll_back(drop.transaction);
        return Phase::Idle;
    }
    // Whoever drops another database from this one is ended too.
    let in_database = |session: &session::Session| session.database == drop.database;
    while let Some(at) = world.sessions.iter().position(in_database) {
        session::disconnect(world, at);
    }
    world.commit(drop.transaction);
    world.disk.databases.remove(&drop.database);
    let new = world.next();
    world.disk.databases.insert(new, Identity::default());
    world.flush();
    world.trace(|| format!("{} is dropped, {new} is made", drop.database));
    Phase::Idle
}
