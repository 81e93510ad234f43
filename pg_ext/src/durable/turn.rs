//! Whose turn it is to make a bound durable: entering the gate of a slot, and counting who waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::durable::wait;
use crate::failure::Failure;
use crate::settings;
use crate::shmem::gate::{Gate, Held};

/// How badly the caller needs the bound.
#[derive(Clone, Copy)]
pub enum Urgency {
    /// The caller has its id; the refill may be left to somebody later.
    Early,
    /// The caller has none until this is done.
    Needed {
        /// When to give up.
        deadline: Instant,
    },
}

impl Urgency {
    /// Whether the caller can do without.
    pub fn is_early(self) -> bool {
        match self {
            Self::Early => true,
            Self::Needed { .. } => false,
        }
    }

    /// When to give up waiting for what was already written.
    pub fn deadline(self) -> Instant {
        match self {
            Self::Early => Instant::now() + Duration::from_millis(settings::refill_wait_ms_max()),
            Self::Needed { deadline } => deadline,
        }
    }
}

/// Enters the gate; `None` if it is early and somebody is inside, or if `enough` came true while waiting.
pub fn enter(
    gate: &'static Gate,
    urgency: Urgency,
    (waits, wait_us): (&AtomicU64, &AtomicU64),
    enough: impl Fn() -> bool,
) -> Result<Option<Held<'static>>, Failure> {
    let began = Instant::now();
    let mut waited = false;
    let outcome = loop {
        if let Some(held) = gate.try_enter() {
            break Ok(Some(held));
        }
        let Urgency::Needed { deadline } = urgency else {
            return Ok(None);
        };
        if !waited {
            waited = true;
            waits.fetch_add(1, Ordering::Relaxed);
        }
        gate.wait(deadline);
        if enough() {
            break Ok(None);
        }
        if Instant::now() >= deadline {
            break Err(held_up(gate));
        }
    };
    if waited {
        let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        wait_us.fetch_add(us, Ordering::Relaxed);
    }
    outcome
}

/// Counts a wait, and how long it took.
pub fn counted<T>((waits, wait_us): (&AtomicU64, &AtomicU64), wait: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    waits.fetch_add(1, Ordering::Relaxed);
    let outcome = wait();
    let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    wait_us.fetch_add(us, Ordering::Relaxed);
    outcome
}

/// The failure of who waited too long for a gate. Whoever is in it waits for the disk and the standbys, never for a lock.
pub fn held_up(gate: &Gate) -> Failure {
    let failure = wait::timed_out("another session's refill");
    match gate.holder() {
        Some(process) => failure.detail(format!("Process {process} makes the bound durable.")),
        None => failure,
    }
}
