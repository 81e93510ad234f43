//! What may happen next, and what comes of it.

use crate::world::{
    Demand, Disk, FEEDERS, Feeder, Message, Phase, RANGE_IDS, Range, SERVERS, Server, World,
};

/// What is done otherwise than it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// A range is handed over before it is known that its reservation was committed.
    HandOverBeforeCommit,
    /// A range whose hand-over was not answered is sent again.
    SendAgain,
    /// One whose hand-over was not answered is handed back to the store.
    HandBack,
    /// What one incarnation asked for is taken by a later one.
    AnyIncarnation,
    /// The incarnation is kept in the database.
    IncarnationOnDisk,
    /// What is left of a range is kept in the database.
    RestOnDisk,
    /// Whether an incarnation was handed higher ids before is not asked.
    NoFloor,
    /// Whether the database had higher ids before is not asked.
    NoLast,
    /// Whose key space a range is of is not asked.
    AnyKeySpace,
    /// The key space is not flushed before the first id is issued.
    KeySpaceUnflushed,
    /// A range stays to be taken over when it was.
    NotCleared,
}

/// What becomes of a request to the store, or of the answer to a hand-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Answered,
    /// Done, and nobody hears of it.
    Lost,
    /// Not done, and nobody hears of it.
    Failed,
}

/// One step of anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Ask(usize, usize),
    Reserve(usize, Outcome),
    Send(usize),
    /// A hand-over arrives, perhaps after its program has given it up.
    Arrive(usize, Outcome),
    /// A program waits no longer for an answer.
    GiveUp(usize),
    TakeOver(usize),
    Issue(usize),
    /// All that is in the database is on the disk now.
    Flush(usize),
    /// It starts again at once.
    Crash(usize),
    Backup(usize),
    /// It starts with the database of the backup, which may be another server's: a restore, a copy, a promotion.
    Restore(usize),
    /// The store is made anew, under the same address.
    NewStore,
    /// A program starts again, and has forgotten all.
    Restart(usize),
}

const OUTCOMES: [Outcome; 3] = [Outcome::Answered, Outcome::Lost, Outcome::Failed];

pub fn actions(world: &World, actions: &mut Vec<Action>) {
    for feeder in 0..FEEDERS {
        actions.extend((0..SERVERS).map(|server| Action::Ask(feeder, server)));
        actions.extend(OUTCOMES.map(|outcome| Action::Reserve(feeder, outcome)));
        actions.extend([
            Action::Send(feeder),
            Action::GiveUp(feeder),
            Action::Restart(feeder),
        ]);
    }
    for at in 0..world.messages.len() {
        actions.extend(OUTCOMES.map(|outcome| Action::Arrive(at, outcome)));
    }
    for server in 0..SERVERS {
        actions.extend([
            Action::TakeOver(server),
            Action::Issue(server),
            Action::Flush(server),
            Action::Crash(server),
            Action::Backup(server),
            Action::Restore(server),
        ]);
    }
    actions.push(Action::NewStore);
}

/// `None`: it cannot happen now, or changes nothing.
pub fn next(world: &World, action: Action, flaws: &[Flaw]) -> Option<World> {
    let mut next = world.clone();
    match action {
        Action::Ask(feeder, server) => ask(&mut next, feeder, server)?,
        Action::Reserve(feeder, outcome) => reserve(&mut next, feeder, outcome, flaws)?,
        Action::Send(feeder) => send(&mut next, feeder)?,
        Action::Arrive(at, outcome) => arrive(&mut next, at, outcome, flaws)?,
        Action::GiveUp(feeder) => {
            let Phase::Sent(demand, range) = next.feeders[feeder].phase else {
                return None;
            };
            spend(&mut next.left.losses)?;
            unanswered(&mut next, feeder, (demand, range), flaws);
        }
        Action::TakeOver(server) => take_over(&mut next.servers[server], flaws)?,
        Action::Issue(server) => issue(&mut next, server, flaws)?,
        Action::Flush(server) => {
            let its = &mut next.servers[server];
            its.flushed = its.disk;
        }
        Action::Crash(server) => {
            spend(&mut next.left.crashes)?;
            let flushed = next.servers[server].flushed;
            start(&mut next, server, flushed, flaws);
        }
        Action::Backup(server) => {
            spend(&mut next.left.backups)?;
            next.backup = Some(next.servers[server].disk);
        }
        Action::Restore(server) => {
            let backup = next.backup?;
            spend(&mut next.left.restores)?;
            start(&mut next, server, backup, flaws);
        }
        Action::NewStore => {
            spend(&mut next.left.new_stores)?;
            next.store.space += 1;
            next.store.next = 1;
            next.store.returned = None;
        }
        Action::Restart(feeder) => {
            spend(&mut next.left.restarts)?;
            next.feeders[feeder] = Feeder {
                phase: Phase::Idle,
                space: None,
            };
        }
    }
    (next != *world).then_some(next)
}

fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

fn ask(world: &mut World, feeder: usize, server: usize) -> Option<()> {
    let its = &world.servers[server];
    let is_wanted = its.pending.is_none() && world.left.reservations > 0;
    let feeder = &mut world.feeders[feeder];
    if feeder.phase != Phase::Idle || !is_wanted {
        return None;
    }
    feeder.phase = Phase::Asked(Demand {
        server,
        incarnation: its.incarnation,
        floor: its.floor.max(its.disk.above),
    });
    Some(())
}

fn reserve(world: &mut World, feeder: usize, outcome: Outcome, flaws: &[Flaw]) -> Option<()> {
    let Phase::Asked(demand) = world.feeders[feeder].phase else {
        return None;
    };
    if outcome != Outcome::Answered {
        spend(&mut world.left.losses)?;
    }
    let store = &mut world.store;
    let known = world.feeders[feeder].space;
    if known.is_some_and(|known| known != store.space) {
        // The tag is another one in the store now; the program says so and gives up.
        world.feeders[feeder].phase = Phase::Idle;
        return Some(());
    }
    spend(&mut world.left.reservations)?;
    let returned = store.returned;
    let start = store.next.max(demand.floor);
    let range = returned.unwrap_or(Range {
        start,
        end: start + RANGE_IDS,
        space: store.space,
    });
    if outcome != Outcome::Failed {
        store.next = store.next.max(range.end);
        store.returned = None;
    }
    let is_granted = outcome == Outcome::Answered || flaws.contains(&Flaw::HandOverBeforeCommit);
    world.feeders[feeder] = Feeder {
        phase: match is_granted {
            true => Phase::Granted(demand, range),
            false => Phase::Idle,
        },
        space: Some(range.space),
    };
    Some(())
}

fn send(world: &mut World, feeder: usize) -> Option<()> {
    let Phase::Granted(demand, range) = world.feeders[feeder].phase else {
        return None;
    };
    world.feeders[feeder].phase = Phase::Sent(demand, range);
    world.messages.push(Message {
        feeder,
        demand,
        range,
    });
    world.messages.sort_unstable();
    Some(())
}

fn arrive(world: &mut World, at: usize, outcome: Outcome, flaws: &[Flaw]) -> Option<()> {
    if outcome != Outcome::Answered {
        spend(&mut world.left.losses)?;
    }
    let Message {
        feeder,
        demand,
        range,
    } = world.messages.remove(at);
    if outcome != Outcome::Failed {
        take(&mut world.servers[demand.server], demand, range, flaws);
    }
    // Whether this is what it waits for is seen from the range.
    if world.feeders[feeder].phase == Phase::Sent(demand, range) {
        match outcome {
            Outcome::Answered => world.feeders[feeder].phase = Phase::Idle,
            Outcome::Lost | Outcome::Failed => {
                unanswered(world, feeder, (demand, range), flaws);
            }
        }
    }
    Some(())
}

/// What was sent counts as used, whatever became of it.
fn unanswered(world: &mut World, feeder: usize, (demand, range): (Demand, Range), flaws: &[Flaw]) {
    if flaws.contains(&Flaw::HandBack) {
        world.store.returned = Some(range);
    }
    world.feeders[feeder].phase = match flaws.contains(&Flaw::SendAgain) {
        true => Phase::Granted(demand, range),
        false => Phase::Idle,
    };
}

/// The server keeps a range until it needs it, or refuses it.
fn take(server: &mut Server, demand: Demand, range: Range, flaws: &[Flaw]) {
    let is_asked =
        demand.incarnation == server.incarnation || flaws.contains(&Flaw::AnyIncarnation);
    let is_higher = range.start >= server.floor || flaws.contains(&Flaw::NoFloor);
    let is_of_space = is_of_space(server, range, flaws);
    if is_asked && is_higher && is_of_space && server.pending.is_none() {
        server.pending = Some(range);
        server.floor = server.floor.max(range.end);
    }
}

fn is_of_space(server: &Server, range: Range, flaws: &[Flaw]) -> bool {
    let known = server.disk.space;
    known.is_none_or(|known| known == range.space) || flaws.contains(&Flaw::AnyKeySpace)
}

fn take_over(server: &mut Server, flaws: &[Flaw]) -> Option<()> {
    let range = server.pending?;
    if server.current.is_some() {
        return None;
    }
    if !flaws.contains(&Flaw::NotCleared) {
        server.pending = None;
    }
    let is_higher = range.start >= server.disk.above || flaws.contains(&Flaw::NoLast);
    if !is_higher || !is_of_space(server, range, flaws) {
        server.pending = None;
        return Some(());
    }
    if server.disk.space != Some(range.space) {
        server.disk.space = Some(range.space);
        if !flaws.contains(&Flaw::KeySpaceUnflushed) {
            server.flushed.space = Some(range.space);
        }
    }
    server.disk.above = server.disk.above.max(range.end);
    server.current = Some(range);
    Some(())
}

fn issue(world: &mut World, server: usize, flaws: &[Flaw]) -> Option<()> {
    let its = &mut world.servers[server];
    let range = its.current?;
    let bit = 1 << range.start;
    for issued in [
        &mut world.of_spaces[usize::from(range.space)],
        &mut world.of_servers[server],
    ] {
        world.twice |= *issued & bit != 0;
        *issued |= bit;
    }
    let rest = Range {
        start: range.start + 1,
        ..range
    };
    its.current = (rest.start < rest.end).then_some(rest);
    if flaws.contains(&Flaw::RestOnDisk) {
        its.disk.rest = its.current;
        its.flushed.rest = its.current;
    }
    if usize::from(its.incarnation) > SERVERS {
        world.later_lives |= 1 << server;
    }
    Some(())
}

/// A server starts: nothing of its memory is there, and its incarnation is drawn.
fn start(world: &mut World, server: usize, disk: Disk, flaws: &[Flaw]) {
    let drawn = world.next_incarnation;
    let incarnation = match flaws.contains(&Flaw::IncarnationOnDisk) {
        true => disk.incarnation,
        false => drawn,
    };
    world.next_incarnation += 1;
    let disk = Disk {
        incarnation,
        ..disk
    };
    world.servers[server] = Server {
        incarnation,
        pending: None,
        current: disk.rest.filter(|_| flaws.contains(&Flaw::RestOnDisk)),
        floor: 1,
        disk,
        flushed: disk,
    };
}
