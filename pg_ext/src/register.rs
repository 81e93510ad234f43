//! Where the server's register of worker ids and readable buckets is kept: the label of an object that every server has. So it is written in the
//! transaction that changes it, flushed and replicated with it, and outlives any database.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::register::{Floor, Held, Number, Register, Use};

use crate::failure::Failure;
use crate::labels::{self, Labelled};
use crate::{catalog, settings, shm, store, sys};

/// Keeps others from changing the register until the transaction ends.
///
/// # Errors
/// Somebody else holds it for longer than a refill may take.
pub fn lock() -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    while !sys::try_lock_workers() {
        if Instant::now() >= deadline {
            return Err(store::timed_out(
                "another transaction that sets a worker id, readable bucket or time zone, or runs keywright.lower_bound",
            ));
        }
        sys::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Reads it.
///
/// # Errors
/// It was damaged.
pub fn read() -> Result<Register, Failure> {
    match labels::get(Labelled::Server) {
        None => Ok(Register::default()),
        Some(text) => Register::parse(&text)
            .ok_or_else(|| catalog::damaged("the register of worker ids cannot be read")),
    }
}

/// Writes it, as part of the transaction. The caller holds [`lock`].
pub fn write(register: &Register) {
    labels::set(Labelled::Server, &register.to_string());
}

/// What the register knows of a number of this database.
///
/// # Errors
/// It was damaged.
pub fn held_here(number: Number) -> Result<Option<Held>, Failure> {
    Ok(read()?.held(number, sys::database().to_u32()))
}

/// What is known of a number that this database may have.
pub enum Claim {
    /// No database of this server ever had it.
    Unknown,
    /// All that was issued with it on this server is covered, if anything was.
    Known(Option<Floor>),
}

/// Whether this database may have the number, and how far it was used.
///
/// # Errors
/// Another database has it, or nobody knows how far it was used and `is_above_named` does not settle that.
pub fn claim(register: &Register, number: Number, is_above_named: bool) -> Result<Claim, Failure> {
    let lost = |floor| {
        if is_above_named {
            Ok(Claim::Known(floor))
        } else {
            Err(lost(number))
        }
    };
    match register.find(number) {
        None => Ok(Claim::Unknown),
        Some((_, Use::Left { floor })) => Ok(Claim::Known(floor)),
        Some((_, Use::Lost)) => lost(None),
        Some((database, Use::Held(held))) if database == sys::database().to_u32() => {
            // Its label was taken away. A database that was dropped unseen and made anew with the same oid is another.
            if held.sequence == 0
                || shm::life() == Some(held.life)
                || catalog::is_bound_ours(number)?
            {
                Ok(Claim::Known(held.floor))
            } else {
                lost(held.floor)
            }
        }
        Some((database, Use::Held(held))) => match catalog::database_name(database) {
            Some(name) => Err(Failure::new(
                Cause::WorkerIdInUse,
                format!(
                    "{} belongs to database \"{name}\" of this server",
                    name_of(number)
                ),
            )
            .hint("Choose one that no other database has, on this server or any other.")),
            None => lost(held.floor),
        },
    }
}

/// What to call a number in messages.
pub fn name_of(number: Number) -> String {
    match number {
        Number::Worker(worker) => format!("worker id {worker}"),
        Number::Bucket(bucket) => format!("readable bucket {bucket}"),
    }
}

fn lost(number: Number) -> Failure {
    let function = match number {
        Number::Worker(_) => "set_worker_id",
        Number::Bucket(_) => "set_readable_bucket",
    };
    Failure::new(
        Cause::WorkerIdInUse,
        format!(
            "{} belonged to a database that was dropped, and how far its ids were used is not known",
            name_of(number)
        ),
    )
    .detail("It was dropped without being used since the server started, or while keywright was not preloaded.")
    .hint(format!("Choose another, or name a moment that is later than all its ids: SELECT keywright.{function}(n, above => now() + interval '1 minute')."))
}
