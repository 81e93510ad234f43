//! What repeats an id elsewhere: three usual ways to make snowflake ids, as small as they can be written, each through the events
//! that it does not survive. `cargo xtask simulate --others` prints what comes twice. The same events are among those that our own
//! words go through in `simulation/`, where nothing may come twice.

use std::collections::HashSet;

/// Bits of a sequence, and what a tick's ids are counted with.
const SEQUENCE_BITS: u32 = 12;
const WORKER_BITS: u32 = 10;

fn id(ms: u64, worker: u64, sequence: u64) -> u64 {
    (ms << (WORKER_BITS + SEQUENCE_BITS)) | (worker << SEQUENCE_BITS) | sequence
}

/// Ids as a client sees them.
#[derive(Default)]
struct Client {
    seen: HashSet<u64>,
    repeated: Vec<u64>,
}

impl Client {
    fn gets(&mut self, id: u64) {
        if !self.seen.insert(id) {
            self.repeated.push(id);
        }
    }
}

/// What all three share: the last moment and a sequence, in memory. Within one process even a clock that is set back repeats nothing.
#[derive(Default)]
struct Generator {
    worker: u64,
    last_ms: u64,
    sequence: u64,
}

impl Generator {
    fn next(&mut self, now_ms: u64) -> u64 {
        if now_ms > self.last_ms {
            (self.last_ms, self.sequence) = (now_ms, 0);
        } else {
            self.sequence += 1;
        }
        id(self.last_ms, self.worker, self.sequence)
    }
}

fn prints(way: &str, what: &str, client: &Client) {
    assert!(!client.repeated.is_empty(), "{way} repeats nothing");
    println!(
        "{way}: {} ids came twice, first {}, after {what}",
        client.repeated.len(),
        client.repeated[0]
    );
}

/// The clock is all that it knows: nothing is recorded before an id goes out.
#[test]
fn a_generator_that_trusts_its_clock_repeats_ids_after_a_crash() {
    let mut client = Client::default();
    let mut generator = Generator::default();
    for now_ms in 1_000..1_100 {
        client.gets(generator.next(now_ms));
    }
    // Killed; the clock is set 50 ms back while it starts.
    generator = Generator::default();
    for now_ms in 1_050..1_150 {
        client.gets(generator.next(now_ms));
    }
    prints(
        "clock alone",
        "a crash and a clock that was set 50 ms back",
        &client,
    );
}

/// The worker id is leased for a time; who has it next begins at its own clock.
#[test]
fn a_lease_that_is_only_a_time_to_live_repeats_ids_after_a_pause() {
    const LEASE_MS: u64 = 100;
    let mut client = Client::default();
    let mut paused = Generator::default();
    let lease_until_ms = 1_000 + LEASE_MS;
    client.gets(paused.next(1_099));
    // It has looked whether its lease lasts, and is paused behind that. Another takes the worker id, whose clock is 20 ms behind.
    let looked_at_ms = 1_099;
    assert!(looked_at_ms < lease_until_ms);
    let mut next_owner = Generator::default();
    for now_ms in 1_100..1_200 {
        client.gets(next_owner.next(now_ms - 20));
    }
    // It wakes up, and goes on with what it was at.
    client.gets(paused.next(1_150));
    prints(
        "lease with a time to live",
        "a pause behind the look at the lease",
        &client,
    );
}

/// The moment is recorded every 3 s, as Leaf does, and compared at the start; what is issued runs ahead of what is recorded.
#[test]
fn a_recorded_time_that_is_behind_repeats_ids_after_a_step_back() {
    const RECORD_MS: u64 = 3_000;
    let mut client = Client::default();
    let mut generator = Generator::default();
    let mut recorded_ms = 0;
    for now_ms in 10_000..12_900 {
        if now_ms >= recorded_ms + RECORD_MS {
            recorded_ms = now_ms;
        }
        client.gets(generator.next(now_ms));
    }
    // Killed; the clock is set 1 s back. It is past what was recorded, so the start goes well.
    let starts_at_ms = 11_900;
    assert!(starts_at_ms > recorded_ms);
    generator = Generator::default();
    for now_ms in starts_at_ms..13_000 {
        client.gets(generator.next(now_ms));
    }
    prints(
        "time recorded every 3 s",
        "a crash and a clock that was set 1 s back",
        &client,
    );
}
