//! Published generators, exactly as printed, under the same clock: they must be found out.

/// 2020-01-01, as good an epoch as any.
const EPOCH_MS: i64 = 1_577_836_800_000;
const SEQUENCE_BITS: u32 = 12;
const WORKER_BITS: u32 = 10;
const SEQUENCE_MAX: i64 = (1 << SEQUENCE_BITS) - 1;

/// The wall clock as a generator sees it.
pub trait Clock {
    /// `System.currentTimeMillis()`.
    fn read(&mut self) -> i64;
    /// `Thread.sleep`.
    fn sleep(&mut self, ms: i64);
}

/// Reads the clock until it is past `last_ms`. (Sleeps as long as that takes: a busy loop with the same outcome.)
fn until_after(clock: &mut dyn Clock, last_ms: i64) -> i64 {
    loop {
        let now_ms = clock.read();
        if now_ms > last_ms {
            return now_ms;
        }
        clock.sleep(last_ms + 1 - now_ms);
    }
}

fn compose(ms: i64, worker: i64, sequence: i64) -> i64 {
    (ms - EPOCH_MS) << (WORKER_BITS + SEQUENCE_BITS) | worker << SEQUENCE_BITS | sequence
}

/// A generator of one process; `None` when it throws.
pub trait Generator {
    fn next(&mut self, clock: &mut dyn Clock) -> Option<i64>;
}

/// Clock-rollback article, the plain algorithm: throws on rollback. One per backend, all with the same worker id,
/// it is the per-process generator of several PostgreSQL extensions.
#[derive(Debug, Default)]
pub struct Twitter {
    last_ms: i64,
    sequence: i64,
}

impl Generator for Twitter {
    fn next(&mut self, clock: &mut dyn Clock) -> Option<i64> {
        let mut now_ms = clock.read();
        if now_ms < self.last_ms {
            return None;
        }
        if now_ms == self.last_ms {
            self.sequence = (self.sequence + 1) & SEQUENCE_MAX;
            if self.sequence == 0 {
                now_ms = until_after(clock, self.last_ms);
            }
        } else {
            self.sequence = 0;
        }
        self.last_ms = now_ms;
        Some(compose(now_ms, 1, self.sequence))
    }
}

/// The article's first fix, `handleMovedBackwards`: 1024 more on the base sequence at each rollback.
#[derive(Debug, Default)]
pub struct BaseSequenceStep {
    last_ms: i64,
    sequence: i64,
    basic_sequence: i64,
}

impl BaseSequenceStep {
    const STEP_SIZE: i64 = 2 << 9;

    fn handle_moved_backwards(&mut self, now_ms: i64, clock: &mut dyn Clock) -> i64 {
        let mut now_ms = now_ms;
        self.basic_sequence += Self::STEP_SIZE;
        if self.basic_sequence == SEQUENCE_MAX + 1 {
            self.basic_sequence = 0;
            now_ms = until_after(clock, self.last_ms);
        }
        self.sequence = self.basic_sequence;
        self.last_ms = now_ms;
        compose(now_ms, 1, self.sequence)
    }
}

impl Generator for BaseSequenceStep {
    fn next(&mut self, clock: &mut dyn Clock) -> Option<i64> {
        let mut now_ms = clock.read();
        if now_ms < self.last_ms {
            return Some(self.handle_moved_backwards(now_ms, clock));
        }
        if now_ms == self.last_ms {
            self.sequence = (self.sequence + 1) & SEQUENCE_MAX;
            if self.sequence == 0 {
                now_ms = until_after(clock, self.last_ms);
            }
        } else {
            self.sequence = self.basic_sequence;
        }
        self.last_ms = now_ms;
        Some(compose(now_ms, 1, self.sequence))
    }
}

/// The article's second fix, `generateKey`: sleep when a little behind, change to worker + 512 when more.
#[derive(Debug)]
pub struct SpareWorker {
    backward_ms_max: i64,
    worker: i64,
    last_ms: i64,
    sequence: i64,
    /// `workerIdLastTimeMap`.
    last_ms_of: [Option<i64>; 1 << WORKER_BITS],
}

impl SpareWorker {
    const INTERVAL: i64 = 512;

    /// `backward_ms_max` is their MAX_BACKWARD_MS.
    pub fn new(backward_ms_max: i64) -> Self {
        Self {
            backward_ms_max,
            worker: 1,
            last_ms: 0,
            sequence: 0,
            last_ms_of: [None; 1 << WORKER_BITS],
        }
    }

    fn worker_at(&self) -> usize {
        usize::try_from(self.worker).expect("not negative")
    }
}

impl Generator for SpareWorker {
    fn next(&mut self, clock: &mut dyn Clock) -> Option<i64> {
        let mut now_ms = clock.read();
        if self.last_ms > now_ms {
            if self.last_ms - now_ms < self.backward_ms_max {
                // Printed so: the clock is not read again.
                clock.sleep(self.last_ms - now_ms);
            } else {
                self.worker += if self.worker >= Self::INTERVAL {
                    -Self::INTERVAL
                } else {
                    Self::INTERVAL
                };
                self.last_ms = self.last_ms_of[self.worker_at()].unwrap_or(0);
                if self.last_ms > now_ms {
                    return None;
                }
            }
        }
        if self.last_ms == now_ms {
            self.sequence = (self.sequence + 1) & SEQUENCE_MAX;
            if self.sequence == 0 {
                now_ms = until_after(clock, now_ms);
            }
        } else {
            self.sequence = 0;
        }
        self.last_ms = now_ms;
        let worker_at = self.worker_at();
        self.last_ms_of[worker_at] = Some(self.last_ms);
        Some(compose(now_ms, self.worker, self.sequence))
    }
}
