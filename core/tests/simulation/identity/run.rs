//! From a seed to a run: settings, databases, sessions, crashes, clocks.

use fastrand::Rng;
use keywright_core::Layout;

use super::checker::Checker;
use super::rules::Rules;
use super::session;
use super::state::{Disk, Identity, Settings};
use super::world::World;
use crate::schedule::START_MS;

const SESSIONS: usize = 5;
const DATABASES: u32 = 3;

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    pub violation: Option<String>,
    pub issued: usize,
    pub voids: usize,
    pub crashes: usize,
    pub passed_on: usize,
}

/// Runs one seed.
pub fn run(seed: u64, rules: Rules, is_traced: bool) -> Outcome {
    let mut rng = Rng::with_seed(seed ^ 0x1DE7);
    let mut settings = random_settings(&mut rng);
    let steps = rng.u32(200..2000);
    let pace_ms = [0, 1, 5, 50][rng.usize(..4)];
    // What only memory knows must be at stake in some of the runs.
    let is_of_memory = rules.is_about_memory() || rng.u8(..) < 64;
    let crashes = if is_of_memory || rng.bool() {
        0
    } else {
        rng.u32(1..12)
    };
    // A quarter of the runs, without a change to what happens in the others.
    settings.are_zones = rules.is_about_zones() || (rules == Rules::Sound && seed % 4 == 3);
    if settings.are_zones {
        settings.layouts.retain(|layout| layout.tick_ms() == 1);
    }
    if is_of_memory {
        settings.layouts.truncate(1);
        settings.slots_max = 6;
        settings.changes = 150;
    }
    let clock_steps = rng.u32(0..8);
    let mut world = World {
        rng,
        step: 0,
        true_ms: START_MS,
        wall_offset_ms: 0,
        rules,
        settings,
        disk: Disk::default(),
        durable: Disk::default(),
        memory: Vec::new(),
        dropping: None,
        life: 1,
        transactions: Default::default(),
        sessions: Vec::new(),
        last: 0,
        checker: Checker::default(),
        passed_on: 0,
        is_traced,
    };
    world.trace(|| format!("{rules:?}, {:?}", world.settings));
    for _ in 0..DATABASES {
        let database = world.next();
        world.disk.databases.insert(database, Identity::default());
    }
    world.flush();
    let mut outcome = Outcome::default();
    while world.step < steps && world.checker.violation.is_none() {
        world.step += 1;
        while world.sessions.len() < SESSIONS {
            session::connect(&mut world);
        }
        if world.rng.u8(..) < 64 {
            world.true_ms += world.rng.i64(0..=pace_ms);
        }
        match world.rng.u32(..4000) {
            chance if chance < crashes => {
                crash(&mut world);
                outcome.crashes += 1;
            }
            chance if (100..100 + clock_steps).contains(&chance) => step_clock(&mut world),
            200..400 => world.flush(),
            _ => {
                let at = world.rng.usize(..world.sessions.len());
                session::step(&mut world, at);
            }
        }
    }
    Outcome {
        violation: world.checker.violation.take(),
        issued: world.checker.issued,
        voids: world.checker.voids,
        passed_on: world.passed_on,
        ..outcome
    }
}

/// Memory is gone, and everything that was not flushed or prepared.
fn crash(world: &mut World) {
    world.trace(|| "crash".to_owned());
    world.disk = world.durable.clone();
    world.memory.clear();
    world.dropping = None;
    world.life += 1;
    world.sessions.clear();
    world.transactions.retain(|_, open| open.is_prepared);
    world.settle_failures();
}

fn step_clock(world: &mut World) {
    let ms = [5, 100, 1000, 10_000][world.rng.usize(..4)];
    world.wall_offset_ms += if world.rng.u8(..) < 160 { -ms } else { ms };
    world.trace(|| format!("the clock is off by {} ms", world.wall_offset_ms));
}

fn random_settings(rng: &mut Rng) -> Settings {
    let layout = |text: String| Layout::parse(&text).expect("a layout");
    let epoch_ms = 1_577_836_800_000_i64;
    let apart_ms = [7, 60, 400, 2000][rng.usize(..4)];
    let bits = "time=41,worker=3,sequence=2";
    let mut layouts = vec![
        layout(format!("{bits},epoch={epoch_ms}")),
        layout(format!("{bits},epoch={}", epoch_ms - apart_ms)),
        layout(format!("{bits},epoch={}", epoch_ms + apart_ms)),
        layout(format!(
            "time=40,worker=3,sequence=3,tick=2ms,epoch={}",
            epoch_ms - 2 * apart_ms
        )),
    ];
    let first = rng.usize(..layouts.len());
    layouts.swap(0, first);
    Settings {
        layouts,
        are_zones: false,
        window_ms: [0, 5, 100, 1000][rng.usize(..4)],
        lead_ms_max: [0, 20, 1000][rng.usize(..3)],
        jump_ms_max: [50, 5000][rng.usize(..2)],
        slots_max: rng.usize(1..=5),
        changes: 56,
        workers: rng.u32(1..=3),
        drops: [0, 8, 40][rng.usize(..3)],
    }
}
