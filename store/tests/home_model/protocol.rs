//! What may happen next, and what comes of it.

use std::collections::BTreeSet;

use keywright_store::home::{
    HomeRow, Plan, Refused, Source, Standing, plan_claim, plan_close, plan_open, plan_prepare,
};

use crate::world::{MOVERS, Phase, STORES, World};

/// What is done otherwise than it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// The target opens before the tombstone has been read as committed.
    OpenBeforeCommit,
    /// It opens at its own bound, whatever the other gave.
    BoundNotRecorded,
    /// A closed row that is to open keeps its key space.
    KeySpaceKept,
    /// Any row that waits is opened, whatever its key space.
    KeySpaceNotCompared,
    /// A program that has looked once reserves of a row that was closed.
    ReserveOfAnyRow,
    /// Who makes the tag leaves the other store alone.
    NothingClosedElsewhere,
    /// A row that waits counts as closed for who makes the tag.
    OneThatWaitsIsClosed,
}

/// One step of anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A program begins to make the tag in a store, with the other configured too.
    Make(usize, usize),
    /// One that knows the first store only makes it there.
    MakeAlone,
    /// A program begins to move it to a store, or goes on with that.
    Move(usize, usize),
    /// It takes its next step; the answer may be lost, and then it ends.
    Step(usize, bool),
    /// It ends where it is.
    End(usize),
    /// The program that takes of a store reserves an id; the answer may be lost.
    Reserve(usize, bool),
    /// It issues that.
    Issue(usize),
}

pub fn actions(actions: &mut Vec<Action>) {
    for store in 0..STORES {
        actions.extend([
            Action::Reserve(store, true),
            Action::Reserve(store, false),
            Action::Issue(store),
        ]);
        for mover in 0..MOVERS {
            actions.extend([Action::Make(mover, store), Action::Move(mover, store)]);
        }
    }
    for mover in 0..MOVERS {
        actions.extend([
            Action::Step(mover, true),
            Action::Step(mover, false),
            Action::End(mover),
        ]);
    }
    actions.push(Action::MakeAlone);
}

/// `None`: it cannot happen now, or changes nothing.
pub fn next(world: &World, action: Action, flaw: Option<Flaw>) -> Option<World> {
    let mut next = world.clone();
    match action {
        Action::Make(mover, home) => make(&mut next, mover, home)?,
        Action::MakeAlone => {
            spend(&mut next.left.makes)?;
            if next.rows[0].is_some() {
                return None;
            }
            let key_space = next.fresh();
            next.rows[0] = Some(row(1, key_space, Standing::Open));
        }
        Action::Move(mover, to) => begin_move(&mut next, mover, to, flaw)?,
        Action::Step(mover, is_answered) => {
            if !is_answered {
                spend(&mut next.left.losses)?;
            }
            let phase = step(&mut next, mover, flaw).unwrap_or(Phase::Idle);
            next.movers[mover] = if is_answered { phase } else { Phase::Idle };
        }
        Action::End(mover) => {
            spend(&mut next.left.losses)?;
            next.movers[mover] = Phase::Idle;
        }
        Action::Reserve(store, is_answered) => reserve(&mut next, store, is_answered, flaw)?,
        Action::Issue(store) => {
            let id = next.reserved[store].take()?;
            issue(&mut next, store, id)?;
        }
    }
    (next != *world).then_some(next)
}

fn row(free: u64, key_space: String, standing: Standing) -> HomeRow {
    HomeRow {
        free,
        key_space,
        standing,
        is_dropped: false,
    }
}

fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

fn issue(world: &mut World, store: usize, id: u64) -> Option<()> {
    spend(&mut world.left.issues)?;
    let bit = 1 << id;
    world.twice |= world.issued & bit != 0;
    world.issued |= bit;
    world.stage += u8::from(world.stage == 0 && store == 0)
        + u8::from(world.stage == 1 && store == 1)
        + u8::from(world.stage == 2 && store == 0);
    Some(())
}

fn reserve(world: &mut World, store: usize, is_answered: bool, flaw: Option<Flaw>) -> Option<()> {
    if world.reserved[store].is_some() || world.left.issues == 0 {
        return None;
    }
    let its = world.rows[store].as_mut()?;
    let is_open = its.standing == Standing::Open;
    // The old program has looked before there was another store.
    let looks = flaw != Some(Flaw::ReserveOfAnyRow) || store != 0;
    if !is_open && looks {
        return None;
    }
    let id = its.free;
    its.free += 1;
    match is_answered {
        true => world.reserved[store] = Some(id),
        false => spend(&mut world.left.losses)?,
    }
    Some(())
}

/// The home's row is made, and waits.
fn make(world: &mut World, mover: usize, home: usize) -> Option<()> {
    if world.movers[mover] != Phase::Idle {
        return None;
    }
    spend(&mut world.left.makes)?;
    let key_space = match &world.rows[home] {
        None => {
            let fresh = world.fresh();
            world.rows[home] = Some(row(1, fresh.clone(), Standing::Opening(None)));
            fresh
        }
        Some(found) if found.standing == Standing::Opening(None) => found.key_space.clone(),
        Some(_) => return None,
    };
    world.movers[mover] = Phase::Claim { home, key_space };
    Some(())
}

/// It looks where the tag is, and has the target's row wait.
fn begin_move(world: &mut World, mover: usize, to: usize, flaw: Option<Flaw>) -> Option<()> {
    if world.movers[mover] != Phase::Idle {
        return None;
    }
    spend(&mut world.left.moves)?;
    let from = &world.rows[1 - to].clone()?;
    let is_left = match (&from.standing, &world.rows[to]) {
        (Standing::Open, _) => true,
        (Standing::Elsewhere(its), Some(there)) => {
            matches!(there.standing, Standing::Opening(_)) && *its == there.key_space
        }
        (Standing::Opening(_) | Standing::Elsewhere(_) | Standing::Native(_), _) => false,
    };
    if !is_left {
        return None;
    }
    let fresh = match (flaw, &world.rows[to]) {
        (Some(Flaw::KeySpaceKept), Some(there)) => there.key_space.clone(),
        _ => world.fresh(),
    };
    let source = Source {
        key_space: from.key_space.clone(),
        leads: BTreeSet::new(),
        lists_target: false,
    };
    let plan = plan_prepare(world.rows[to].as_ref(), &fresh, &source).ok()?;
    let key_space = plan.outcome().key_space.clone();
    if let Plan::Change(waiting) = &plan {
        let free = world.rows[to].as_ref().map_or(1, |there| there.free);
        let opening = Standing::Opening(waiting.before.clone());
        world.rows[to] = Some(row(free, waiting.key_space.clone(), opening));
    }
    world.movers[mover] = match flaw {
        Some(Flaw::OpenBeforeCommit) => Phase::Open {
            to,
            key_space,
            bound: from.free,
        },
        _ => Phase::Close { to, key_space },
    };
    Some(())
}

/// What comes after the step; `None`: it ends there.
fn step(world: &mut World, mover: usize, flaw: Option<Flaw>) -> Option<Phase> {
    match world.movers[mover].clone() {
        Phase::Idle => None,
        Phase::Claim { home, key_space } => {
            let bound = claim(world, home, &key_space, flaw).ok()?;
            Some(Phase::OpenMade {
                home,
                key_space,
                bound,
            })
        }
        Phase::OpenMade {
            home,
            key_space,
            bound,
        } => {
            open(world, home, (&key_space, bound), flaw).ok()?;
            None
        }
        Phase::Close { to, key_space } => {
            close(world, 1 - to, &key_space).ok()?;
            Some(Phase::Read { to, key_space })
        }
        Phase::Read { to, key_space } => {
            let left = world.rows[1 - to].as_ref()?;
            let is_its = left.standing == Standing::Elsewhere(key_space.clone());
            is_its.then_some(Phase::Open {
                to,
                key_space,
                bound: left.free,
            })
        }
        Phase::Open {
            to,
            key_space,
            bound,
        } => {
            open(world, to, (&key_space, bound), flaw).ok()?;
            // What it did too early it does now.
            (flaw == Some(Flaw::OpenBeforeCommit)).then_some(Phase::Close { to, key_space })
        }
    }
}

fn claim(
    world: &mut World,
    home: usize,
    key_space: &str,
    flaw: Option<Flaw>,
) -> Result<u64, Refused> {
    let other = 1 - home;
    if flaw == Some(Flaw::NothingClosedElsewhere) {
        return Ok(1);
    }
    let its = world.rows[other].as_ref();
    if let (Some(Flaw::OneThatWaitsIsClosed), Some(waits)) = (flaw, its)
        && matches!(waits.standing, Standing::Opening(_))
    {
        return Ok(waits.free);
    }
    let plan = plan_claim(its, key_space, &BTreeSet::new())?;
    if let Plan::Change(free) = plan {
        let its = match its {
            Some(its) => its.key_space.clone(),
            None => world.fresh(),
        };
        let elsewhere = Standing::Elsewhere(key_space.to_owned());
        world.rows[other] = Some(row(free, its, elsewhere));
    }
    Ok(*plan.outcome())
}

fn close(world: &mut World, from: usize, target: &str) -> Result<(), Refused> {
    if let Plan::Change(bound) = plan_close(world.rows[from].as_ref(), target)?
        && let Some(its) = world.rows[from].as_mut()
    {
        its.free = bound;
        its.standing = Standing::Elsewhere(target.to_owned());
    }
    Ok(())
}

fn open(
    world: &mut World,
    to: usize,
    (key_space, bound): (&str, u64),
    flaw: Option<Flaw>,
) -> Result<(), Refused> {
    let there = world.rows[to].as_mut().ok_or(Refused::Missing)?;
    let bound = match flaw {
        Some(Flaw::BoundNotRecorded) => there.free,
        _ => bound,
    };
    let its = there.key_space.clone();
    let key_space = match flaw {
        Some(Flaw::KeySpaceNotCompared) => &its,
        _ => key_space,
    };
    if let Plan::Change(first) = plan_open(Some(there), key_space, bound)? {
        there.free = first;
        there.standing = Standing::Open;
    }
    Ok(())
}
