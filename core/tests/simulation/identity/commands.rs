//! Statements that change who a database is, and the transactions around them.

use keywright_core::{Floor, Held, Layout, Number, Register, Use};

use super::rules::Rules;
use super::state::Identity;
use super::words::has_past;
use super::world::World;
use super::{drops, session};

/// One statement of a session.
pub fn run(world: &mut World, at: usize) {
    match (world.sessions[at].transaction, world.rng.u8(..16)) {
        (None, 0..4) => {
            let database = world.sessions[at].database;
            world.sessions[at].transaction = Some(world.begin(database));
        }
        (Some(number), 0..2) => end(world, at, number, true),
        (Some(number), 2..5) => end(world, at, number, false),
        (Some(number), 5..7) => {
            let levels = world.transactions[&number].levels.len();
            if levels > 1 {
                world.trace(|| format!("{number} goes back to a savepoint"));
                world.undo(number);
                world.sessions[at].cached = None;
            }
        }
        (Some(number), 7) => {
            world.trace(|| format!("{number} is prepared"));
            if let Some(transaction) = world.transactions.get_mut(&number) {
                transaction.is_prepared = true;
            }
            world.flush();
            world.sessions[at].transaction = None;
            world.sessions[at].cached = None;
        }
        (_, 8) => session::disconnect(world, at),
        (None, 9) => finish_prepared(world),
        (_, _) => change(world, at),
    }
}

fn end(world: &mut World, at: usize, number: u32, is_commit: bool) {
    world.sessions[at].transaction = None;
    world.sessions[at].cached = None;
    world.trace(|| format!("{number} ends, commit: {is_commit}"));
    if is_commit {
        world.commit(number);
    } else {
        world.roll_back(number);
    }
}

fn finish_prepared(world: &mut World) {
    let mut prepared = world.transactions.iter();
    let found = prepared.find(|(_, transaction)| transaction.is_prepared);
    let Some(number) = found.map(|(number, _)| *number) else {
        return;
    };
    let is_commit = world.rng.bool();
    world.trace(|| format!("prepared {number} ends, commit: {is_commit}"));
    if is_commit {
        world.commit(number);
    } else {
        world.roll_back(number);
    }
}

/// Changes the identity, after a savepoint: an error takes back no more than the statement.
fn change(world: &mut World, at: usize) {
    let (database, own) = (world.sessions[at].database, world.sessions[at].transaction);
    let number = own.unwrap_or_else(|| world.begin(database));
    world.savepoint(number);
    let identity = world.identity(database, Some(number));
    let what = world.rng.u8(..12);
    let done = match what {
        _ if identity.sequence == 0 => create_extension(world, database, number),
        0..2 => drops::extension(world, number, identity),
        2..5 => {
            let layout = world.rng.usize(..world.settings.layouts.len());
            set_layout(world, number, identity, layout)
        }
        _ => {
            let worker = world.rng.u32(1..=world.settings.workers);
            set_worker(world, number, identity, worker)
        }
    };
    let now = world.identity(database, Some(number));
    world.trace(|| format!("{number} in {database}: {what} {done:?}, {now:?}"));
    if done.is_none() {
        world.undo(number);
    }
    world.sessions[at].cached = None;
    if own.is_none() {
        world.commit(number);
    }
}

fn create_extension(world: &mut World, database: u32, number: u32) -> Option<()> {
    // The name of an extension is unique: whoever creates or drops it makes others wait.
    hold(world, number, database)?;
    let sequence = world.next();
    world.disk.sequences.insert(sequence, Default::default());
    let before = world.identity(database, Some(number));
    write_identity(world, number, |identity, xid| {
        *identity = Identity {
            sequence,
            layout: 0,
            worker: before.worker,
            writers: [xid, 0, before.writers[2]],
        };
    })
}

/// Changes the identity as part of a transaction.
pub fn write_identity(
    world: &mut World,
    number: u32,
    change: impl FnOnce(&mut Identity, u64),
) -> Option<()> {
    let database = world.transactions[&number].database;
    let mut identity = world.identity(database, Some(number));
    let level = world.level(number)?;
    change(&mut identity, level.xid);
    level.identity = Some(identity);
    Some(())
}

/// Keeps others from changing the register until the transaction ends; none if somebody else does.
pub fn lock_register(world: &mut World, number: u32) -> Option<Register> {
    let others = world.transactions.iter();
    let mut locked = others.filter(|(other, _)| **other != number);
    if locked.any(|(_, other)| other.has_register_lock()) {
        return None;
    }
    world.level(number)?.has_register_lock = true;
    Some(world.register(Some(number)).clone())
}

pub fn write_register(world: &mut World, number: u32, register: Register) -> Option<()> {
    let text = register.to_string();
    world.level(number)?.register = Some(Register::parse(&text)?);
    Some(())
}

/// Keeps every other session from extending a bound; none if one did, or is at it.
pub fn hold(world: &mut World, number: u32, sequence: u32) -> Option<Option<i64>> {
    let mut others = world
        .transactions
        .iter()
        .filter(|(other, _)| **other != number);
    let is_extended =
        others.any(|(_, other)| other.has_extended(sequence) || other.holds(sequence));
    let mut in_gate = world.memory.iter().filter(|slot| slot.gate.is_some());
    if is_extended || in_gate.any(|slot| slot.key.sequence == sequence) {
        return None;
    }
    world.level(number)?.held.push(sequence);
    Some(world.bound_ms(sequence))
}

fn set_layout(world: &mut World, number: u32, identity: Identity, to: usize) -> Option<()> {
    let mut register = lock_register(world, number)?;
    let database = world.transactions[&number].database;
    let is_own = world.transactions[&number].is_own(identity.writers[1]);
    if identity.layout == to && !is_own {
        return Some(());
    }
    has_past(world, database, number);
    if identity.layout != to {
        let bound_ms = hold(world, number, identity.sequence)?;
        let (old, new) = (world.layout(identity.layout), world.layout(to));
        if !world.settings.are_zones {
            refuse_if_overlapping(&old, &new, bound_ms)?;
        }
        for (of, held) in register.held_by(database).collect::<Vec<_>>() {
            let floor = used(world, &held, bound_ms);
            let held = match of {
                Number::Worker(bucket) if world.settings.are_zones => {
                    moved(world, bucket, held, floor, bound_ms, new)?
                }
                Number::Worker(_) | Number::Bucket(_) => Held {
                    floor,
                    layout: new,
                    ..held
                },
            };
            register.set(of, database, Use::Held(held));
        }
        write_register(world, number, register)?;
    }
    write_identity(world, number, |identity, xid| {
        identity.layout = to;
        identity.writers[1] = xid;
    })
}

/// What is noted of a bucket whose ids are written in another zone from now.
fn moved(
    world: &World,
    bucket: u32,
    held: Held,
    floor: Option<Floor>,
    bound_ms: Option<i64>,
    layout: Layout,
) -> Option<Held> {
    let of_others = world
        .memory
        .iter()
        .filter(|slot| slot.key.worker == bucket && world.layout(slot.key.layout) != held.layout);
    let mut floor = floor;
    for slot in of_others.filter(|slot| slot.is_taken_over) {
        let hi = slot.word.hi().max(slot.word.next());
        floor = Some(Floor::below_state(world.layout(slot.key.layout), hi).higher(floor));
    }
    refuse_if_written(world, floor, &layout)?;
    Some(Held {
        from_ms: held.from_ms.max(bound_ms),
        floor: match world.rules {
            Rules::ZoneNotNoted => held.floor,
            _ => floor,
        },
        layout,
        ..held
    })
}

fn refuse_if_written(world: &World, floor: Option<Floor>, layout: &Layout) -> Option<()> {
    let Some(floor) = floor.filter(|floor| floor.layout != *layout) else {
        return Some(());
    };
    let start_ms = layout.unix_ms_of(floor.first_state(layout) >> layout.sequence_bits());
    let lead_ms = i64::try_from(world.settings.lead_ms_max).unwrap_or(i64::MAX);
    (start_ms - lead_ms <= world.readings().wall_ms).then_some(())
}

/// How far a number was used whose bound has come so far, and is moved by nobody any more.
pub fn used(world: &World, held: &Held, bound_ms: Option<i64>) -> Option<Floor> {
    let window_ms = match world.rules {
        Rules::BoundCountsLate => i64::try_from(world.settings.window_ms).unwrap_or(0),
        _ => 0,
    };
    let is_own = |bound_ms: &i64| Some(*bound_ms - window_ms) > held.from_ms;
    let bound_ms = bound_ms.filter(|bound_ms| !world.settings.are_zones || is_own(bound_ms));
    match bound_ms.map(|bound_ms| Floor::below_ms(held.layout, bound_ms)) {
        Some(used) => Some(used.higher(held.floor)),
        None => held.floor,
    }
}

fn refuse_if_overlapping(old: &Layout, new: &Layout, bound_ms: Option<i64>) -> Option<()> {
    let Some(bound_ms) = bound_ms else {
        return Some(());
    };
    let tick_after = |layout: &Layout| {
        let ticks = layout.ticks_at(bound_ms).ok()?;
        Some(ticks + u64::from(layout.unix_ms_of(ticks) < bound_ms))
    };
    let largest = old.largest_id_below(tick_after(old)?);
    (new.smallest_id_from(tick_after(new)?) > largest).then_some(())
}

fn set_worker(world: &mut World, number: u32, identity: Identity, worker: u32) -> Option<()> {
    let database = world.transactions[&number].database;
    let mut register = lock_register(world, number)?;
    has_past(world, database, number);
    let wanted = Number::Worker(worker);
    let claimed = claim(world, &register, wanted, identity, database)?;
    let had_it = register.held(wanted, database).is_some() && identity.worker == Some(worker);
    let others = register.held_by(database);
    let others: Vec<_> = others.filter(|(of, _)| *of != wanted).collect();
    if !others.is_empty() {
        let bound_ms = hold(world, number, identity.sequence)?;
        for (of, held) in others {
            let floor = used(world, &held, bound_ms);
            register.set(of, database, Use::Left { floor });
        }
    }
    if !had_it {
        let held = take(world, identity, worker, claimed)?;
        register.set(wanted, database, Use::Held(held));
        write_identity(world, number, |identity, xid| {
            identity.worker = Some(worker);
            identity.writers[2] = xid;
        })?;
    }
    write_register(world, number, register)
}

/// How far a number was used, as far as anybody knows; none if the database may not have it.
fn claim(
    world: &World,
    register: &Register,
    wanted: Number,
    identity: Identity,
    database: u32,
) -> Option<Option<Floor>> {
    match register.find(wanted) {
        None => Some(None),
        Some((_, Use::Left { floor })) => Some(floor),
        Some((_, Use::Lost)) => None,
        Some((holder, Use::Held(held))) if holder == database => {
            let is_known = held.sequence == 0
                || held.life == world.life
                || world.disk.sequences[&identity.sequence].has_note;
            is_known.then_some(held.floor)
        }
        Some((_, Use::Held(_))) => None,
    }
}

fn take(
    world: &mut World,
    identity: Identity,
    worker: u32,
    claimed: Option<Floor>,
) -> Option<Held> {
    let mut floor = claimed;
    for slot in 0..world.memory.len() {
        if world.memory[slot].key.worker != worker {
            continue;
        }
        if world.memory[slot].gate.is_some() {
            return None;
        }
        if world.memory[slot].is_taken_over {
            floor = Some(world.stop(slot).higher(floor));
        }
    }
    let layout = world.layout(identity.layout);
    if let Some(floor) = floor
        && floor.layout != layout
    {
        if world.settings.are_zones {
            refuse_if_written(world, Some(floor), &layout)?;
        } else {
            refuse_if_overlapping(&floor.layout, &layout, Some(floor.bound_ms))?;
        }
    }
    let lead_ms = i64::try_from(world.settings.lead_ms_max).unwrap_or(i64::MAX);
    let sequence = world.disk.sequences.entry(identity.sequence).or_default();
    sequence.has_note = true;
    let begun_ms = sequence.bound_ms.filter(|_| world.settings.are_zones);
    world.flush();
    Some(Held {
        life: world.life,
        sequence: identity.sequence,
        from_ms: Some(world.readings().wall_ms + lead_ms + 1).max(begun_ms),
        floor,
        layout,
    })
}
