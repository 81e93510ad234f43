//! How a bound becomes durable: enter the slot's gate, lock the sequence if it is free (`locks.rs`), set it, flush, wait for
//! the standbys that the configuration demands. Only then may the caller publish. Whatever interrupts it leaves a gap, never
//! a repeat.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::incarnation::Incarnation;
use pgrx::PgLogLevel;

use crate::failure::Failure;
use crate::gate::{Gate, Held};
use crate::sys::LogPosition;
use crate::{settings, sys};

/// Sleep between two looks at a lock or a standby, from first to longest.
const LOOK_US_MIN: u64 = 500;
const LOOK_US_MAX: u64 = 20_000;

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
    fn deadline(self) -> Instant {
        match self {
            Self::Early => Instant::now() + Duration::from_millis(settings::refill_wait_ms_max()),
            Self::Needed { deadline } => deadline,
        }
    }
}

/// Fails in a transaction or on a server that may not write, as `nextval` does.
pub fn require_writable(function: &str) -> Result<(), Failure> {
    if !sys::is_read_only() {
        return Ok(());
    }
    Err(Failure::new(
        Cause::ReadOnly,
        format!("cannot execute {function}() in a read-only transaction"),
    )
    .hint("Issue and manage ids on the primary, in a transaction that may write."))
}

/// Who writes bounds now.
pub fn incarnation() -> Incarnation {
    Incarnation {
        system_identifier: sys::system_identifier(),
        timeline: sys::timeline(),
        database_oid: sys::database().to_u32(),
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
    let failure = timed_out("another session's refill");
    match gate.holder() {
        Some(process) => failure.detail(format!("Process {process} makes the bound durable.")),
        None => failure,
    }
}

/// Waits until all that this backend wrote is on disk here and on the standbys that the configuration demands. An error
/// raised meanwhile means the outcome is unknown; the caller publishes nothing.
pub fn make_durable(urgency: Urgency, name: &dyn Fn() -> String) -> Result<(), Failure> {
    let position = sys::flush_log();
    wait_until(urgency.deadline(), || sys::standbys_have(position)).map_err(|()| {
        timed_out(&name())
            .detail("The synchronous standby that synchronous_standby_names demands did not confirm in time.")
    })
}

/// As [`make_durable`] for a refill: what was written since `before` stands whatever becomes of the transaction, so its
/// commit need not wait for the disk again if it wrote nothing else.
pub fn make_refill_durable(
    before: LogPosition,
    urgency: Urgency,
    name: &dyn Fn() -> String,
) -> Result<(), Failure> {
    make_durable(urgency, name)?;
    sys::settle_log(before);
    Ok(())
}

/// Sleeps until `ready`, looking more seldom as time goes by.
pub fn wait_until(deadline: Instant, ready: impl Fn() -> bool) -> Result<(), ()> {
    let mut look_us = LOOK_US_MIN;
    while !ready() {
        if Instant::now() >= deadline {
            return Err(());
        }
        sys::sleep(Duration::from_micros(look_us));
        look_us = (look_us * 2).min(LOOK_US_MAX);
    }
    Ok(())
}

/// The failure of a wait that took longer than allowed.
pub fn timed_out(what: &str) -> Failure {
    Failure::new(
        Cause::RefillTimeout,
        format!("timed out after {} ms waiting for {what}", settings::refill_wait_ms_max()),
    )
    .hint("Retry; if it happens often look at keywright.health and pg_locks, or raise keywright.refill_wait_ms_max.")
}

/// The value a sequence must have so that the next one is `end`.
pub fn last_of(end: u64) -> Result<i64, Failure> {
    i64::try_from(end).map(|end| end - 1).map_err(|_| {
        Failure::new(
            Cause::ArgumentOutOfRange,
            format!("bound {end} does not fit a bigint"),
        )
        .hint("Check the server's clock, and whether keywright's sequences were changed by hand.")
    })
}

/// Tells the server's log about a takeover that left ids out.
pub fn log_takeover(message: &str) {
    pgrx::ereport!(
        PgLogLevel::LOG_SERVER_ONLY,
        pgrx::PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message.to_owned()
    );
}
