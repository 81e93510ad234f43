//! Runs the published generators: no crashes, no pauses, only a clock that is set now and then.

use fastrand::Rng;

use crate::checker::{Checker, Source};
use crate::printed::{BaseSequenceStep, Clock, Generator, SpareWorker, Twitter};
use crate::schedule::START_MS;

const STEPS: u32 = 400;
const SOURCE: Source = Source::Worker {
    worker: 1,
    spare: false,
};

struct Wall {
    true_ms: i64,
    offset_ms: i64,
}

impl Clock for Wall {
    fn read(&mut self) -> i64 {
        self.true_ms + self.offset_ms
    }

    fn sleep(&mut self, ms: i64) {
        self.true_ms += ms;
    }
}

/// Twitter's algorithm in each of several backends, all with the database's worker id.
pub fn per_backend(seed: u64) -> Option<String> {
    run(
        seed,
        vec![Box::new(Twitter::default()), Box::new(Twitter::default())],
        0,
        1,
    )
}

/// The first fix, asked for up to `burst` ids at a time.
pub fn base_sequence_step(seed: u64, burst: u32) -> Option<String> {
    run(seed, vec![Box::new(BaseSequenceStep::default())], 5, burst)
}

/// The second fix, with its MAX_BACKWARD_MS.
pub fn spare_worker(seed: u64, backward_ms_max: i64) -> Option<String> {
    run(
        seed,
        vec![Box::new(SpareWorker::new(backward_ms_max))],
        5,
        1,
    )
}

/// Ids of these generators may repeat only; that they do not grow after a rollback is their purpose.
fn run(
    seed: u64,
    mut generators: Vec<Box<dyn Generator>>,
    jump_ms_max: i64,
    burst: u32,
) -> Option<String> {
    let mut rng = Rng::with_seed(seed);
    let mut wall = Wall {
        true_ms: START_MS,
        offset_ms: 0,
    };
    let mut checker = Checker::default();
    let mut calls = 0;
    for step in 0..STEPS {
        wall.true_ms += i64::from(rng.bool());
        if rng.u8(..) < 16 {
            wall.offset_ms -= rng.i64(0..=jump_ms_max);
        }
        let generator = rng.usize(..generators.len());
        let ids = if rng.u8(..) < 16 { burst } else { 1 };
        for _ in 0..ids {
            if let Some(id) = generators[generator].next(&mut wall) {
                calls += 1;
                let number = u64::try_from(id).expect("not negative");
                // Every call counts as another issuer, so that only repetition is judged.
                checker.issue(SOURCE, number, id, calls, step);
            }
        }
        if checker.violation.is_some() {
            break;
        }
    }
    checker.violation
}
