//! From a seed to a run: settings, actors, and which of them does its next step.

use std::collections::HashMap;

use fastrand::Rng;
use keywright_core::{ClockPolicy, Layout, Note, Step, StepPolicy};

use crate::checker::{Checker, Source};
use crate::events;
use crate::job;
use crate::rules::Rules;
use crate::server::{DATABASES, Machine, Server, SharedMemory, TAGS};
use crate::store::{Register, Store};
use crate::tag_call::{self, TagCall, TagStep};
use crate::time_call::{self, TimeCall, TimeStep};
use crate::world::{Backend, Phase, Reservation, Settings, World};

/// True time at the beginning: some day in 2026.
pub const START_MS: i64 = 1_790_000_000_000;
const BACKENDS: usize = 5;

/// What a run came to.
pub struct Outcome {
    pub violation: Option<String>,
    pub issued: usize,
    pub voids: usize,
    pub saved_by_gap: usize,
}

/// Runs one seed.
pub fn run(seed: u64, rules: Rules, is_traced: bool) -> Outcome {
    let mut world = create(seed, rules, is_traced);
    let weights = events::Weights::random(&mut world.rng, rules);
    let steps = world.rng.u32(300..3000);
    let pace_ms = [0, 1, 3, 50, 2000][world.rng.usize(..5)];
    let mut at = 0;
    while world.step < steps && world.checker.violation.is_none() {
        world.step += 1;
        for server in &mut world.servers {
            server.store.tick(world.true_ms);
        }
        if world.rng.u8(..) < 64 {
            world.true_ms += world.rng.i64(0..=pace_ms);
        }
        if !events::step(&mut world, &weights) {
            if world.rng.bool() {
                at = world.rng.usize(..world.backends.len());
            }
            step_backend(&mut world, at);
        }
    }
    Outcome {
        violation: world.checker.violation.take(),
        issued: world.checker.count(),
        voids: world.checker.voids(),
        saved_by_gap: world.checker.saved_by_gap,
    }
}

fn step_backend(world: &mut World, at: usize) {
    if world.backends[at].paused_until_ms > world.true_ms {
        return;
    }
    let phase = std::mem::replace(&mut world.backends[at].phase, Phase::Idle);
    world.backends[at].phase = match phase {
        Phase::Idle => begin_call(world, at),
        Phase::Time(call, step) => time_call::step(world, at, call, step),
        Phase::Tag(call, step) => tag_call::step(world, at, call, step),
        Phase::Job(job) => job::step(world, at, job),
    };
}

fn begin_call(world: &mut World, at: usize) -> Phase {
    let is_batch = world.rng.u8(..) < 64;
    if world.rng.bool() {
        let n = if is_batch { world.rng.u64(1..20) } else { 1 };
        return Phase::Tag(TagCall::new(world.rng.usize(..TAGS), n), TagStep::Load);
    }
    let in_tick = world.rng.bool();
    let tick_ids = 1 << world.settings.layout.sequence_bits().min(5);
    let n_max = if in_tick { tick_ids } else { tick_ids * 3 };
    let n = if is_batch {
        world.rng.u64(1..=n_max)
    } else {
        1
    };
    let database = world.backends[at].database;
    let worker = world.server(at).worker_of(database);
    Phase::Time(TimeCall::new(worker, n, in_tick), TimeStep::ReadClock)
}

fn create(seed: u64, rules: Rules, is_traced: bool) -> World {
    let mut rng = Rng::with_seed(seed);
    let settings = random_settings(&mut rng, rules);
    let mut world = World {
        true_ms: START_MS,
        step: 0,
        rules,
        servers: Vec::new(),
        backends: Vec::new(),
        backends_ever: 0,
        checker: Checker::default(),
        virtual_at_end: HashMap::new(),
        wall_offset_max_ms: 0,
        reservations: HashMap::new(),
        is_traced,
        settings,
        rng,
    };
    world.trace(|| format!("seed {seed}, {rules:?}, {:?}", world.settings));
    let first = initial_server(&mut world);
    world.servers.push(first);
    for number in 0..BACKENDS {
        let database = u8::try_from(number).expect("few") % DATABASES;
        add_backend(&mut world, 0, database);
    }
    world
}

/// A new connection.
pub fn add_backend(world: &mut World, server: usize, database: u8) {
    world.backends_ever += 1;
    let policy = ClockPolicy::ALL[world.rng.usize(..ClockPolicy::ALL.len())];
    world.backends.push(Backend {
        id: world.backends_ever,
        server,
        database,
        policy,
        phase: Phase::Idle,
        paused_until_ms: 0,
        uncommitted: Vec::new(),
    });
}

fn initial_server(world: &mut World) -> Server {
    let mut server = Server {
        is_lossless: true,
        machine: Machine {
            wall_offset_ms: 0,
            booted_at_ms: START_MS - 1000,
        },
        system_identifier: 7_300_000_000_000_000_001,
        timeline: 1,
        lost_from_ms: START_MS,
        store: Store::default(),
        memory: SharedMemory::new(world.rules),
        worker_base: 0,
        tag_store: 0,
        is_alive: true,
    };
    // create_tag leaves a note, so that a replica that never saw the first reservation keeps its distance too.
    for database in 0..DATABASES {
        for tag in 0..TAGS {
            let size = world.settings.step.get();
            let note = Note::new(server.writer(database), START_MS, size, 1).before_the_first();
            server
                .store
                .write(Register::TagNote { database, tag }, note.pack());
            let source = Source::Tag {
                store: 0,
                database,
                tag,
            };
            let reservation = Reservation {
                size,
                rate_per_s: 1,
                wall_ms: START_MS,
                is_confirmed: world.settings.is_synchronous,
            };
            world
                .reservations
                .insert((source, note.pack()), reservation);
        }
    }
    server.store.creation_ends();
    server
}

const LAYOUTS: [&str; 6] = [
    "time=41,spare=1,worker=6,sequence=3,epoch=2020-01-01",
    "time=41,sequence=1,spare=1,worker=6,epoch=2020-01-01",
    "time=38,worker=6,sequence=4,epoch=2020-01-01,tick=10ms",
    "spare=1,time=30,worker=6,sequence=5,epoch=2020-01-01,tick=1s",
    "time=20,datacenter=2,worker=4,spare=1,sequence=3,unused=5,epoch=2020-01-01,tick=60s",
    "twitter",
];

fn random_settings(rng: &mut Rng, rules: Rules) -> Settings {
    let step = |ids: i64| Step::new(ids).expect("in range");
    let steps = [step(1), step(20), step(100), step(5000)];
    Settings {
        layout: Layout::parse(LAYOUTS[rng.usize(..LAYOUTS.len())]).expect("valid"),
        window_ms: [0, 5, 100, 3000][rng.usize(..4)],
        lead_ms_max: [0, 20, 1000, 10_000][rng.usize(..4)],
        skew_ms_max: [0, 500, 60_000][rng.usize(..3)],
        jump_ms_max: [50, 5000, 60_000][rng.usize(..3)],
        wait_ms_max: [5, 1000][rng.usize(..2)],
        threshold_percent: rng.u32(0..=100),
        step: steps[rng.usize(..steps.len())],
        step_policy: StepPolicy {
            step_min: step(1),
            step_max: step(10_000),
            cover_ms: [50, 5000][rng.usize(..2)],
        },
        tag_end_max: [1 << 63, if rng.bool() { 200 } else { 1 << 63 }],
        is_synchronous: rng.bool() || rules == Rules::PublishedAfterCancel,
    }
}
