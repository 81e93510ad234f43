//! What may happen next, and what comes of it.

use keywright_core::Layout;
use keywright_store::lease::LeaseRow;
use keywright_store::lease::fed::{Ahead, FedIds, Handed, TimeAsker, TimeGrant, plan_time};
use keywright_store::worker_ids::IdRange;

use crate::world::{
    AHEAD, DATABASES, Demand, FEEDERS, Message, Phase, Row, Rows, Store, Time, WORKERS, World,
};

/// What is done otherwise than it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// Time is handed over before it is known that its lease was committed.
    HandOverBeforeCommit,
    /// Time whose hand-over was not answered is sent again.
    SendAgain,
    /// The bound of time whose hand-over was not answered is taken back.
    HandBack,
    /// The lease is written by what was read before, and not compared.
    NoCompare,
    /// Time of the worker id that the database has begins where it says that it ended, and not at the store's bound.
    FromWhatWasHad,
    /// What one incarnation asked for is taken by a later one.
    AnyIncarnation,
    /// Whether it is for this ask is not asked.
    AnyAsk,
    /// Whether an incarnation was handed later moments before is not asked.
    NoFloor,
    /// What is left of time is kept in the database.
    RestOnDisk,
    /// Bounds that another server wrote are believed.
    AnyServer,
    /// A store that was made anew takes it that nothing was handed over.
    NothingForgotten,
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
    Tick,
    Ask(usize, usize),
    Reserve(usize, Outcome),
    Send(usize),
    /// A hand-over arrives, perhaps after its program has given it up.
    Arrive(usize, Outcome),
    /// A program waits no longer for an answer.
    GiveUp(usize),
    TakeOver(usize),
    /// It starts again at once.
    Crash(usize),
    /// The standby has all that was committed.
    Replicate,
    /// It is another server now.
    Promote,
    /// The store is made anew, under the same address.
    NewStore,
}

const OUTCOMES: [Outcome; 3] = [Outcome::Answered, Outcome::Lost, Outcome::Failed];
/// Unix milliseconds of the moment 0.
const BASE_MS: i64 = 1_795_478_400_000;

pub fn actions(world: &World, actions: &mut Vec<Action>) {
    for feeder in 0..FEEDERS {
        actions.extend((0..DATABASES).map(|database| Action::Ask(feeder, database)));
        actions.extend(OUTCOMES.map(|outcome| Action::Reserve(feeder, outcome)));
        actions.extend([Action::Send(feeder), Action::GiveUp(feeder)]);
    }
    for at in 0..world.messages.len() {
        actions.extend(OUTCOMES.map(|outcome| Action::Arrive(at, outcome)));
    }
    for database in 0..DATABASES {
        actions.extend([Action::TakeOver(database), Action::Crash(database)]);
    }
    actions.extend([
        Action::Tick,
        Action::Replicate,
        Action::Promote,
        Action::NewStore,
    ]);
}

/// `None`: it cannot happen now, or changes nothing.
pub fn next(world: &World, action: Action, flaws: &[Flaw]) -> Option<World> {
    let mut next = world.clone();
    match action {
        Action::Tick => {
            spend(&mut next.left.ticks)?;
            next.now += 1;
        }
        Action::Ask(feeder, database) => ask(&mut next, feeder, database)?,
        Action::Reserve(feeder, outcome) => reserve(&mut next, feeder, outcome, flaws)?,
        Action::Send(feeder) => send(&mut next, feeder)?,
        Action::Arrive(at, outcome) => arrive(&mut next, at, outcome, flaws)?,
        Action::GiveUp(feeder) => {
            let Phase::Sent(demand, time) = next.feeders[feeder] else {
                return None;
            };
            spend(&mut next.left.losses)?;
            unanswered(&mut next, feeder, (demand, time), flaws);
        }
        Action::TakeOver(database) => take_over(&mut next, database)?,
        Action::Crash(database) => {
            spend(&mut next.left.crashes)?;
            crash(&mut next, database, flaws);
        }
        Action::Replicate if next.left.promotions > 0 => {
            next.store.replicated = next.store.rows;
        }
        Action::Promote => {
            spend(&mut next.left.promotions)?;
            let store = &mut next.store;
            store.rows = store.replicated;
            another_server(store, next.now, flaws.contains(&Flaw::AnyServer));
        }
        Action::NewStore => {
            spend(&mut next.left.new_stores)?;
            next.store.rows = [None; WORKERS as usize];
            let knows_all = flaws.contains(&Flaw::NothingForgotten);
            another_server(&mut next.store, next.now, knows_all);
        }
        Action::Replicate => return None,
    }
    (next != *world).then_some(next)
}

fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

fn another_server(store: &mut Store, now: u8, knows_all: bool) {
    store.server += 1;
    store.unknown_until = match knows_all {
        true => 0,
        false => now + AHEAD,
    };
}

fn ask(world: &mut World, feeder: usize, database: usize) -> Option<()> {
    let its = &world.databases[database];
    let is_wanted = its.pending.is_none() && world.left.reservations > 0;
    if world.feeders[feeder] != Phase::Idle || !is_wanted {
        return None;
    }
    let demand = Demand {
        database,
        incarnation: its.incarnation,
        ask: its.taken,
        handed: its.handed,
    };
    world.feeders[feeder] = Phase::Asked(demand, world.store.rows);
    Some(())
}

fn ms_of(moment: u8) -> i64 {
    BASE_MS + i64::from(moment) * 1_000
}

fn moment_of(ms: i64) -> u8 {
    u8::try_from((ms - BASE_MS) / 1_000).unwrap_or(0)
}

fn lease_rows(rows: &Rows, layout: Layout) -> Vec<LeaseRow> {
    let numbered = (0u32..).zip(rows);
    let row = |(worker_id, row): (u32, &Option<Row>)| {
        let row = (*row)?;
        Some(LeaseRow {
            worker_id,
            owner: row.owner.map(|owner| owner.to_string()),
            holder: None,
            epoch: row.epoch.into(),
            hi_ms: ms_of(row.bound),
            layout,
            server: row.server.to_string(),
            expired: false,
        })
    };
    numbered.filter_map(row).collect()
}

/// By the rules of programs.
fn plan(world: &World, demand: &Demand, rows: &Rows, flaws: &[Flaw]) -> Option<TimeGrant> {
    let layout = Layout::parse("twitter").ok()?;
    let mut rows = lease_rows(rows, layout);
    let server = world.store.server.to_string();
    if flaws.contains(&Flaw::AnyServer) {
        rows.iter_mut()
            .for_each(|row| row.server.clone_from(&server));
    }
    let ids = FedIds {
        rows: &rows,
        range: IdRange {
            first: 0,
            last: u32::from(WORKERS) - 1,
        },
        unknown_until_ms: ms_of(world.store.unknown_until),
        elsewhere: &[],
        server: &server,
    };
    let asker = TimeAsker {
        owner: demand.incarnation.to_string(),
        handed: demand.handed.map(|(worker, until)| Handed {
            worker_id: worker.into(),
            until_ms: ms_of(until),
        }),
        layout,
    };
    let ahead = Ahead {
        now_ms: ms_of(world.now),
        ahead_ms: i64::from(AHEAD) * 1_000,
    };
    plan_time(&ids, &asker, &[], &ahead).ok()
}

fn reserve(world: &mut World, feeder: usize, outcome: Outcome, flaws: &[Flaw]) -> Option<()> {
    let Phase::Asked(demand, read_before) = world.feeders[feeder] else {
        return None;
    };
    if outcome != Outcome::Answered {
        spend(&mut world.left.losses)?;
    }
    spend(&mut world.left.reservations)?;
    let rows = match flaws.contains(&Flaw::NoCompare) {
        true => read_before,
        false => world.store.rows,
    };
    let Some(grant) = plan(world, &demand, &rows, flaws) else {
        world.feeders[feeder] = Phase::Idle;
        return Some(());
    };
    let worker = u8::try_from(grant.worker_id).unwrap_or(0);
    let from = match demand.handed {
        Some((its, until)) if its == worker && flaws.contains(&Flaw::FromWhatWasHad) => until,
        Some(_) | None => moment_of(grant.from_ms),
    };
    let time = Time {
        worker,
        from,
        until: moment_of(grant.until_ms),
    };
    if outcome != Outcome::Failed {
        if let Some(left) = grant.leaves
            && let Some(row) = &mut world.store.rows[left as usize]
        {
            row.owner = None;
        }
        world.store.rows[usize::from(worker)] = Some(Row {
            owner: Some(demand.incarnation),
            epoch: u8::try_from(grant.epoch).unwrap_or(u8::MAX),
            bound: time.until,
            server: world.store.server,
        });
    }
    let is_granted = outcome == Outcome::Answered || flaws.contains(&Flaw::HandOverBeforeCommit);
    world.feeders[feeder] = match is_granted {
        true => Phase::Granted(demand, time),
        false => Phase::Idle,
    };
    Some(())
}

fn send(world: &mut World, feeder: usize) -> Option<()> {
    let Phase::Granted(demand, time) = world.feeders[feeder] else {
        return None;
    };
    world.feeders[feeder] = Phase::Sent(demand, time);
    world.messages.push(Message {
        feeder,
        demand,
        time,
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
        time,
    } = world.messages.remove(at);
    if outcome != Outcome::Failed {
        take(world, demand, time, flaws);
    }
    // Whether this is what it waits for is seen from the time.
    if world.feeders[feeder] == Phase::Sent(demand, time) {
        match outcome {
            Outcome::Answered => world.feeders[feeder] = Phase::Idle,
            Outcome::Lost | Outcome::Failed => unanswered(world, feeder, (demand, time), flaws),
        }
    }
    Some(())
}

/// What was sent counts as used, whatever became of it.
fn unanswered(world: &mut World, feeder: usize, (demand, time): (Demand, Time), flaws: &[Flaw]) {
    if flaws.contains(&Flaw::HandBack)
        && let Some(row) = &mut world.store.rows[usize::from(time.worker)]
    {
        row.bound = time.from;
    }
    world.feeders[feeder] = match flaws.contains(&Flaw::SendAgain) {
        true => Phase::Granted(demand, time),
        false => Phase::Idle,
    };
}

/// The database's server keeps time until it is needed, or refuses it.
fn take(world: &mut World, demand: Demand, time: Time, flaws: &[Flaw]) {
    let its = &mut world.databases[demand.database];
    let is_asked = demand.incarnation == its.incarnation || flaws.contains(&Flaw::AnyIncarnation);
    let is_first = demand.ask == its.taken || flaws.contains(&Flaw::AnyAsk);
    let is_later = its
        .handed
        .is_none_or(|(worker, until)| worker != time.worker || time.from >= until);
    if is_asked && is_first && (is_later || flaws.contains(&Flaw::NoFloor)) && its.pending.is_none()
    {
        its.pending = Some(time);
        its.handed = Some((time.worker, time.until));
        its.taken += 1;
    }
}

/// All of it may be issued.
fn take_over(world: &mut World, database: usize) -> Option<()> {
    let its = &mut world.databases[database];
    let time = its.pending.take()?;
    its.current = Some(time);
    let is_later_life = usize::from(its.incarnation) > DATABASES;
    let moments = (1u32 << time.until) - (1u32 << time.from.min(time.until));
    let issued = &mut world.issued[usize::from(time.worker)];
    world.twice |= *issued & moments != 0;
    *issued |= moments;
    if is_later_life {
        world.later_lives |= 1 << database;
    }
    Some(())
}

fn crash(world: &mut World, database: usize, flaws: &[Flaw]) {
    let its = &mut world.databases[database];
    its.incarnation = world.next_incarnation;
    world.next_incarnation += 1;
    its.taken = 0;
    its.handed = None;
    its.pending = match flaws.contains(&Flaw::RestOnDisk) {
        true => its.current,
        false => None,
    };
    its.current = None;
}
