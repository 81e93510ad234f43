//! What happens to the actors: clocks that jump, pauses, crashes, promotions, copies.

use fastrand::Rng;

use crate::checker::Source;
use crate::rules::Rules;
use crate::schedule::add_backend;
use crate::server::{Arrived, DATABASES, Machine, Server, SharedMemory, TAGS, WORKERS};
use crate::store::{Register, Store};
use crate::world::{Phase, World};

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const SERVERS_MAX: usize = 6;

/// One kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Replicate,
    Keepalive,
    Commit,
    ToggleSynchronous,
    BackgroundFlush,
    EndTransaction,
    JumpClock,
    Pause,
    Idle,
    Crash,
    MoveWorker,
    Promote,
    Restore,
    Copy,
}

/// How often each happens, per mille of all steps; different in every run.
pub struct Weights(Vec<(Event, u32)>);

impl Weights {
    /// Some runs know no trouble of a kind, some much.
    pub fn random(rng: &mut Rng, rules: Rules) -> Self {
        // A standby that seldom receives anything loses much when it is promoted.
        let replicate = [3, 20, 80][rng.usize(..3)];
        let mut of = |event: Event, most: u32| {
            (
                event,
                if rng.u8(..) < 80 {
                    0
                } else {
                    rng.u32(0..=most)
                },
            )
        };
        let mut weights = vec![
            (Event::Replicate, replicate),
            of(Event::Keepalive, 20),
            of(Event::Commit, 20),
            of(Event::BackgroundFlush, 20),
            of(Event::JumpClock, 30),
            of(Event::Pause, 15),
            of(Event::Idle, 10),
            of(Event::Crash, 25),
            of(Event::MoveWorker, 20),
            of(Event::Promote, 6),
            of(Event::Restore, 3),
            of(Event::Copy, 3),
        ];
        if rules == Rules::InCallersTransaction {
            weights.push((Event::EndTransaction, 30));
        }
        if rules.needs_promotions() || rules == Rules::Sound && rng.u8(..) < 64 {
            // A clock that lies takes the promise away, and with it what there is to find.
            weights.retain(|(event, _)| *event != Event::JumpClock);
            weights.extend([
                (Event::Promote, 6),
                (Event::Keepalive, 20),
                (Event::Idle, 10),
            ]);
            weights.extend([(Event::Crash, 4), (Event::Commit, 10)]);
        }
        if rules == Rules::NoGapByOwnRecord {
            weights.push((Event::ToggleSynchronous, 20));
        }
        if rules.has_own_records() {
            weights.extend([(Event::MoveWorker, 10), (Event::Crash, 5)]);
        }
        Self(weights)
    }

    fn pick(&self, rng: &mut Rng) -> Option<Event> {
        let mut roll = rng.u32(..1000);
        for (event, weight) in &self.0 {
            match roll.checked_sub(*weight) {
                Some(rest) => roll = rest,
                None => return Some(*event),
            }
        }
        None
    }
}

/// Lets something happen, or not.
pub fn step(world: &mut World, weights: &Weights) -> bool {
    let Some(event) = weights.pick(&mut world.rng) else {
        return false;
    };
    let alive: Vec<usize> = (0..world.servers.len())
        .filter(|at| world.servers[*at].is_alive)
        .collect();
    let at = alive[world.rng.usize(..alive.len())];
    let can_grow = world.servers.len() < SERVERS_MAX;
    match event {
        Event::Replicate => {
            let wall_ms = wall_ms(world, at);
            world.servers[at].store.replicate(&mut world.rng, wall_ms);
        }
        Event::Keepalive => {
            let wall_ms = wall_ms(world, at);
            let is_new = world.rng.u8(..) < 64;
            let store = &mut world.servers[at].store;
            if is_new {
                store.reconnect(wall_ms);
            } else {
                store.keepalive(wall_ms);
            }
        }
        Event::Commit => commit(world, at),
        Event::ToggleSynchronous => {
            world.settings.is_synchronous ^= true;
            for server in &mut world.servers {
                server.is_lossless = false;
            }
        }
        Event::BackgroundFlush => {
            let store = &mut world.servers[at].store;
            store.flush(store.end());
        }
        Event::EndTransaction => end_transaction(world),
        Event::JumpClock => jump_clock(world, at),
        Event::Pause => pause(world),
        Event::Idle => world.true_ms += [1000, 60_000, HOUR_MS, DAY_MS][world.rng.usize(..4)],
        Event::Crash => crash(world, at),
        Event::MoveWorker => move_worker(world, at),
        Event::Promote if can_grow => promote(world, at),
        Event::Restore if can_grow => restore(world, at),
        Event::Copy if can_grow => copy(world, at),
        Event::Promote | Event::Restore | Event::Copy => {}
    }
    true
}

fn jump_ms(rng: &mut Rng) -> i64 {
    let most = [5, 50, 2000, 10_000, HOUR_MS, DAY_MS][rng.usize(..6)];
    rng.i64(-most..=most)
}

fn jump_clock(world: &mut World, at: usize) {
    let jump_ms = if world.rng.u8(..) < 64 {
        // Somebody sets it right.
        -world.servers[at].machine.wall_offset_ms
    } else {
        jump_ms(&mut world.rng)
    };
    let machine = &mut world.servers[at].machine;
    machine.wall_offset_ms += jump_ms;
    world.wall_offset_max_ms = world.wall_offset_max_ms.max(machine.wall_offset_ms);
    world.trace(|| format!("server {at}: the clock jumps by {jump_ms} ms"));
}

fn pause(world: &mut World) {
    let at = world.rng.usize(..world.backends.len());
    let pause_ms = [5, 500, 20_000, HOUR_MS][world.rng.usize(..4)];
    world.backends[at].paused_until_ms = world.true_ms + pause_ms;
    let backend = world.backends[at].id;
    world.trace(|| format!("backend {backend}: stopped for {pause_ms} ms"));
}

fn wall_ms(world: &World, at: usize) -> i64 {
    world.servers[at].machine.readings(world.true_ms).wall_ms
}

/// Some transaction that has nothing to do with ids.
fn commit(world: &mut World, at: usize) {
    let wall_ms = wall_ms(world, at);
    let store = &mut world.servers[at].store;
    store.write(Register::Commit, wall_ms);
    store.flush(store.end());
}

/// COMMIT or ROLLBACK; matters only when reservations ride in the caller's transaction.
fn end_transaction(world: &mut World) {
    let at = world.rng.usize(..world.backends.len());
    let writes = std::mem::take(&mut world.backends[at].uncommitted);
    if world.rng.bool() {
        let backend = world.backends[at].id;
        world.trace(|| format!("backend {backend}: rollback of {writes:?}"));
        return;
    }
    let store = &mut world.server(at).store;
    for (register, value) in writes {
        store.write(register, value);
    }
    store.flush(store.end());
}

/// Ends every connection of a server; its users connect to `next`.
fn reconnect(world: &mut World, server: usize, next: usize) {
    for at in 0..world.backends.len() {
        if world.backends[at].server == server {
            world.backends_ever += 1;
            let backend = &mut world.backends[at];
            backend.id = world.backends_ever;
            backend.server = next;
            backend.phase = Phase::Idle;
            backend.paused_until_ms = 0;
            backend.uncommitted.clear();
        }
    }
}

/// Remembers how far virtual time had come when shared memory was lost.
fn note_virtual_time(world: &mut World, at: usize) {
    let server = &world.servers[at];
    let readings = server.machine.readings(world.true_ms);
    for (worker, slot) in (server.worker_base..).zip(&server.memory.times) {
        if slot.clock == Default::default() {
            continue;
        }
        let mut clock = slot.clock;
        let now_ms = clock.observe(readings, world.settings.jump_ms_max).now_ms;
        let at_end = world.virtual_at_end.entry(worker).or_insert(now_ms);
        *at_end = now_ms.max(*at_end);
    }
}

/// kill -9 of a backend, or power loss: shared memory is zeroed, and the log keeps a prefix.
fn crash(world: &mut World, at: usize) {
    world.trace(|| format!("server {at}: crash"));
    note_virtual_time(world, at);
    world.servers[at].store.crash(&mut world.rng);
    world.servers[at].memory = SharedMemory::new(world.rules);
    if world.rules == Rules::OwnCommitIsEvidence {
        let commit_ms = world.servers[at].store.read(Register::Commit);
        world.servers[at].memory.arrived = Some(Arrived {
            commit_ms,
            message: None,
        });
    }
    if world.rng.u8(..) < 64 {
        world.true_ms += 20_000;
        world.servers[at].machine.booted_at_ms = world.true_ms - 5000;
    }
    if world.rng.bool() {
        jump_clock(world, at);
    }
    reconnect(world, at, at);
}

/// `set_worker_id`: a worker id belongs to one database of the server at a time.
fn move_worker(world: &mut World, at: usize) {
    let database = world.rng.u8(..DATABASES);
    let worker = world.rng.usize(..WORKERS);
    let server = &mut world.servers[at];
    if (0..DATABASES).any(|other| server.worker_of(other) == worker) {
        return;
    }
    server.store.write(
        Register::WorkerOf { database },
        i64::try_from(worker).expect("few"),
    );
    server.store.flush(server.store.end());
    world.trace(|| format!("server {at}: database {database} now has worker id {worker}"));
}

fn successor(world: &mut World, at: usize, store: Store) -> Server {
    let offset_ms = match world.rng.u8(..4) {
        _ if world.rules.needs_promotions() => 0,
        0 => 0,
        1 => world.rng.i64(-20..=20),
        _ => jump_ms(&mut world.rng),
    };
    let old = &world.servers[at];
    let wall_offset_ms = old.machine.wall_offset_ms + offset_ms;
    world.wall_offset_max_ms = world.wall_offset_max_ms.max(wall_offset_ms);
    Server {
        is_lossless: old.is_lossless,
        machine: Machine {
            wall_offset_ms,
            booted_at_ms: world.true_ms - 100_000,
        },
        system_identifier: old.system_identifier,
        timeline: old.timeline,
        lost_from_ms: world.true_ms,
        store,
        memory: SharedMemory::new(world.rules),
        worker_base: old.worker_base,
        tag_store: old.tag_store,
        is_alive: true,
    }
}

/// The primary is gone for good, and its connections with it.
fn replace(world: &mut World, at: usize, server: Server) {
    note_virtual_time(world, at);
    world.servers[at].is_alive = false;
    world.servers.push(server);
    reconnect(world, at, world.servers.len() - 1);
}

fn promote(world: &mut World, at: usize) {
    world.trace(|| format!("server {at}: its standby is promoted"));
    let old = &world.servers[at].store;
    let (store, message) = (old.on_standby(), old.last_message());
    let lost_from_ms = old.lost_from_ms().unwrap_or(world.true_ms);
    let mut server = successor(world, at, store);
    server.timeline += 1;
    server.lost_from_ms = lost_from_ms;
    server.memory.arrived = Some(Arrived {
        commit_ms: server.store.read(Register::Commit),
        message,
    });
    server.is_lossless &= world.settings.is_synchronous;
    replace(world, at, server);
}

fn restore(world: &mut World, at: usize) {
    world.trace(|| format!("server {at}: replaced by a restored backup"));
    let store = world.servers[at].store.backup(&mut world.rng);
    let mut server = successor(world, at, store);
    server.system_identifier += u64::try_from(world.servers.len()).expect("few");
    server.is_lossless = false;
    replace(world, at, server);
}

/// A backup opened beside its original, with another identity and, as the manual demands, worker ids of its own.
fn copy(world: &mut World, at: usize) {
    world.trace(|| format!("server {at}: copied"));
    let store = world.servers[at].store.backup_now();
    let mut server = successor(world, at, store);
    let number = u8::try_from(world.servers.len()).expect("few");
    server.system_identifier += u64::from(number);
    server.worker_base = u32::from(number) * u32::try_from(WORKERS).expect("few");
    server.tag_store = number;
    world
        .checker
        .copy_store(world.servers[at].tag_store, number);
    let known: Vec<_> = world
        .reservations
        .iter()
        .map(|(key, reservation)| (*key, *reservation))
        .collect();
    for ((source, note), reservation) in known {
        for (database, tag) in
            (0..DATABASES).flat_map(|database| (0..TAGS).map(move |tag| (database, tag)))
        {
            let original = Source::Tag {
                store: world.servers[at].tag_store,
                database,
                tag,
            };
            if source == original {
                world.reservations.insert(
                    (
                        Source::Tag {
                            store: number,
                            database,
                            tag,
                        },
                        note,
                    ),
                    reservation,
                );
            }
        }
    }
    world.servers.push(server);
    add_backend(world, usize::from(number), 0);
    add_backend(world, usize::from(number), 1);
}
