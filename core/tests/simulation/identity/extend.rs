//! Making a bound durable and publishing it, inside a slot's gate.

use keywright_core::{
    BoundPlan, BoundRequest, Floor, Note, Number, Recorded, Takeover, Writer, plan_bound,
    plan_takeover,
};

use super::rules::Rules;
use super::session::Phase;
use super::state::Outcome;
use super::words::{self, Entry};
use super::world::World;

const INCARNATION: Writer = Writer {
    system_identifier: 7_300_000_000_000_000_001,
    timeline: 1,
    database_oid: 5,
    resets: 0,
};

/// Somebody else is at it, or the identity is another: the caller begins again. Otherwise it is in the gate.
pub fn enter(world: &mut World, at: usize, entry: Entry, n: u64) -> Phase {
    let siblings = world.siblings(entry.key, entry.slot);
    let is_busy = siblings.iter().any(|at| world.memory[*at].gate.is_some());
    if is_busy || world.memory[entry.slot].gate.is_some() {
        return world.wait_or_give_up(Phase::Enter(entry, n));
    }
    if !world.is_current(entry.slot, entry.generation) {
        world.sessions[at].cached = None;
        return Phase::Idle;
    }
    if is_in_dropped(world, &entry) {
        return world.wait_or_give_up(Phase::Enter(entry, n));
    }
    let closed_by = world.memory[entry.slot].closed_by;
    let own = world.sessions[at].transaction;
    let is_own = own.is_some_and(|number| world.transactions[&number].is_own(closed_by));
    if closed_by != 0
        && !is_own
        && world.outcome(closed_by) == Outcome::Open
        && world.rules != Rules::LeavingReopens
    {
        return world.wait_or_give_up(Phase::Enter(entry, n));
    }
    let is_ours = words::key(world, at).is_some_and(|(key, _, _)| key == entry.key);
    if !is_ours {
        world.sessions[at].cached = None;
        return Phase::Idle;
    }
    let is_held = world
        .transactions
        .iter()
        .any(|(number, other)| Some(*number) != own && other.holds(entry.key.sequence));
    if is_held {
        return world.wait_or_give_up(Phase::Enter(entry, n));
    }
    world.memory[entry.slot].gate = Some(world.sessions[at].id);
    if let Some(level) = own.and_then(|number| world.level(number)) {
        level.extended.push(entry.key.sequence);
    }
    Phase::Write(entry, n)
}

/// Whether somebody is dropping the database: who got its word after the others were closed may not issue from it.
fn is_in_dropped(world: &World, entry: &Entry) -> bool {
    let Some((database, xid)) = world.dropping else {
        return false;
    };
    let is_asked = !matches!(
        world.rules,
        Rules::ClosesOnlyWhatThereIs | Rules::LeavingReopens | Rules::NotedWhileIssuing
    );
    is_asked && database == entry.key.database && world.outcome(xid) == Outcome::Open
}

/// Writes the bound; it is not durable yet.
pub fn write(world: &mut World, at: usize, entry: Entry, n: u64) -> Phase {
    match plan(world, at, &entry, n) {
        Some(plan) => {
            let bound_ms = plan.bound_ms;
            world.memory[entry.slot].attempted_ms = bound_ms;
            let sequence = world.disk.sequences.entry(entry.key.sequence).or_default();
            sequence.bound_ms = Some(bound_ms);
            sequence.has_note = true;
            Phase::Flush(entry, plan)
        }
        None => {
            world.memory[entry.slot].gate = None;
            Phase::Idle
        }
    }
}

/// Publishes what is durable now, unless the wait for it was cancelled.
pub fn flush(world: &mut World, entry: &Entry, plan: &BoundPlan) -> Phase {
    if world.rng.u8(..) > 16 {
        world.flush();
        let slot = &mut world.memory[entry.slot];
        slot.word.publish(0, plan.hi_state);
        slot.bound_ms = plan.bound_ms;
    }
    world.memory[entry.slot].gate = None;
    Phase::Idle
}

fn plan(world: &mut World, at: usize, entry: &Entry, n: u64) -> Option<BoundPlan> {
    reopen(world, entry.slot)?;
    let layout = world.layout(entry.key.layout);
    let bound_ms = world.bound_ms(entry.key.sequence);
    let found_ms = bound_ms.unwrap_or(0);
    let slot = &world.memory[entry.slot];
    assert!(found_ms >= slot.bound_ms, "nobody lowers a bound");
    let is_ours = found_ms == slot.bound_ms || found_ms == slot.attempted_ms;
    if !(slot.is_taken_over && is_ours) {
        take_over(world, at, entry)?;
    }
    let readings = world.readings();
    let slot = &mut world.memory[entry.slot];
    let seen = slot.clock.observe(readings, world.settings.jump_ms_max);
    slot.skew_ms = seen.skew_ms;
    let now_state = layout.state_at(readings.wall_ms - slot.skew_ms);
    let request = BoundRequest {
        layout,
        need_state_end: slot.word.next().max(now_state) + n,
        now_ms: seen.now_ms,
        bound_ms,
        window_ms: world.settings.window_ms,
        lead_ms_max: world.settings.lead_ms_max,
    };
    plan_bound(&request).ok()
}

/// A word that was closed goes on only if the transaction that closed it failed.
fn reopen(world: &mut World, slot: usize) -> Option<()> {
    let closed_by = world.memory[slot].closed_by;
    if closed_by == 0 {
        return Some(());
    }
    match world.outcome(closed_by) {
        Outcome::Open if world.rules != Rules::LeavingReopens => None,
        Outcome::Committed => None,
        Outcome::Open | Outcome::Failed => {
            world.memory[slot].is_taken_over = false;
            world.memory[slot].closed_by = 0;
            Some(())
        }
    }
}

fn take_over(world: &mut World, at: usize, entry: &Entry) -> Option<()> {
    let (key, layout) = (entry.key, world.layout(entry.key.layout));
    let bound_ms = world.bound_ms(key.sequence);
    let register = world.register(world.sessions[at].transaction);
    let held = register.held(Number::Worker(key.worker), key.database);
    let mut floors = Vec::new();
    for sibling in world.siblings(key, entry.slot) {
        let floor = world.stop(sibling);
        if world.memory[sibling].is_taken_over && !world.is_dropped(sibling) {
            floors.push(floor);
        }
    }
    floors.extend(held.and_then(|held| held.floor));
    let from_ms = held.and_then(|held| held.from_ms);
    let latest_ms = floors.iter().map(|floor| floor.bound_ms).max().max(from_ms);
    let moment_state = latest_ms.map_or(0, |ms| Floor::below_ms(layout, ms).first_state(&layout));
    let first_states = floors.iter().map(|floor| floor.first_state(&layout));
    let ids_state = match world.rules {
        Rules::MomentsBetweenLayouts => 0,
        _ => first_states.max().unwrap_or(0),
    };
    let readings = world.readings();
    world.memory[entry.slot].word.drain();
    let plan = plan_takeover(&Takeover {
        layout,
        recorded: bound_ms.map(|bound_ms| Recorded {
            bound_ms,
            note: Some(Note::new(INCARNATION, readings.wall_ms, 1, 0)),
        }),
        is_vouched: held.is_some_and(|held| held.sequence == key.sequence),
        writer: INCARNATION,
        now_ms: readings.wall_ms,
        lead_ms_max: world.settings.lead_ms_max,
        skew_ms_max: 0,
        window_ms: world.settings.window_ms,
        word_next_state: world.memory[entry.slot].word.next().max(moment_state),
    })
    .ok()?;
    let start_state = plan.start_state.max(ids_state);
    let start_ms = layout.unix_ms_of(start_state >> layout.sequence_bits());
    let ahead_ms = u64::try_from(start_ms - plan.start_ms).unwrap_or(0);
    if ahead_ms > world.settings.lead_ms_max {
        return None;
    }
    let slot = &mut world.memory[entry.slot];
    slot.word.publish(start_state, start_state);
    slot.bound_ms = bound_ms.unwrap_or(0);
    slot.clock.start_at(readings, start_ms);
    slot.is_taken_over = true;
    world.trace(|| format!("take over {key:?} from {start_ms}, floors {floors:?}"));
    Some(())
}
