//! Everything that one run consists of, and the small steps that all actors share.

use std::collections::HashMap;

use fastrand::Rng;
use keywright_core::{ClockPolicy, Layout, Step, StepPolicy};

use crate::checker::{Checker, Source};
use crate::job::Job;
use crate::rules::Rules;
use crate::server::{Server, TAGS};
use crate::store::Register;
use crate::tag_call::{TagCall, TagStep};
use crate::time_call::{TimeCall, TimeStep};

/// What an operator would set.
#[derive(Debug, Clone)]
pub struct Settings {
    pub layout: Layout,
    pub window_ms: u64,
    pub lead_ms_max: u64,
    pub skew_ms_max: u64,
    pub jump_ms_max: u64,
    pub wait_ms_max: u64,
    pub threshold_percent: u32,
    pub step: Step,
    pub step_policy: StepPolicy,
    /// First id past each tag's range.
    pub tag_end_max: [u64; TAGS],
    /// Whether publication waits for the standby.
    pub is_synchronous: bool,
}

/// What a backend is about to do.
#[derive(Debug)]
pub enum Phase {
    /// Between two calls.
    Idle,
    /// In a call of `snowflake_id` or `snowflake_ids`.
    Time(TimeCall, TimeStep),
    /// In a call of `next_biz_id` or `next_biz_ids`.
    Tag(TagCall, TagStep),
    /// Making a bound durable and publishing it, inside a slot's refill flag.
    Job(Job),
}

/// One connection.
#[derive(Debug)]
pub struct Backend {
    /// Never used again: after a crash the connection is another.
    pub id: u32,
    pub server: usize,
    pub database: u8,
    pub policy: ClockPolicy,
    pub phase: Phase,
    /// SIGSTOP until then.
    pub paused_until_ms: i64,
    /// Writes that ROLLBACK takes back: only under a faulty rule.
    pub uncommitted: Vec<(Register, i64)>,
}

/// A reservation as it was planned: what its note stands for, without rounding.
#[derive(Debug, Clone, Copy)]
pub struct Reservation {
    pub size: u64,
    pub rate_per_s: u64,
    pub wall_ms: i64,
    /// Whether publication waited for the standby.
    pub is_confirmed: bool,
}

/// One run.
pub struct World {
    pub rng: Rng,
    /// True time, unix milliseconds.
    pub true_ms: i64,
    pub step: u32,
    pub rules: Rules,
    pub settings: Settings,
    pub servers: Vec<Server>,
    pub backends: Vec<Backend>,
    pub backends_ever: u32,
    pub checker: Checker,
    /// Highest virtual time of a worker id at the end of a server's life.
    pub virtual_at_end: HashMap<u32, i64>,
    /// The furthest that any server's clock was ever ahead of true time.
    pub wall_offset_max_ms: i64,
    /// Reservations by tag and packed note.
    pub reservations: HashMap<(Source, i64), Reservation>,
    pub is_traced: bool,
}

impl World {
    /// Tells what happens, when somebody listens.
    pub fn trace(&self, what: impl FnOnce() -> String) {
        if self.is_traced {
            println!(
                "step {:4} +{:8} ms: {}",
                self.step,
                self.true_ms - crate::schedule::START_MS,
                what()
            );
        }
    }

    pub fn server(&mut self, at: usize) -> &mut Server {
        let server = self.backends[at].server;
        &mut self.servers[server]
    }

    /// What a backend reads: its own uncommitted writes, then the store.
    pub fn read(&mut self, at: usize, register: Register) -> Option<i64> {
        let own = self.backends[at]
            .uncommitted
            .iter()
            .rev()
            .find(|(written, _)| *written == register);
        match own {
            Some((_, value)) => Some(*value),
            None => self.server(at).store.read(register),
        }
    }

    /// Whether another transaction of the server has changed the register and not ended (a row lock).
    pub fn is_locked(&self, at: usize, register: Register) -> bool {
        let server = self.backends[at].server;
        self.backends.iter().enumerate().any(|(other, backend)| {
            other != at
                && backend.server == server
                && backend
                    .uncommitted
                    .iter()
                    .any(|(written, _)| *written == register)
        })
    }

    /// Who counts as the writer of a worker id's bounds: they follow the worker id, unless a rule is faulty.
    pub fn writer(&self, database: u8) -> u8 {
        if self.rules.has_own_records() {
            database
        } else {
            0
        }
    }
}
