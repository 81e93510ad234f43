//! Where the server's register of worker ids and readable buckets is kept: the label of an object that every server has. So it is written in the
//! transaction that changes it, flushed and replicated with it, and outlives any database.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::register::{Floor, Held, Number, Register, Use};
use keywright_core::writer::Note;
use pgrx::pg_sys;

use crate::catalog::{damage, sequences};
use crate::durable::{locks, wait};
use crate::failure::Failure;
use crate::identity::label::IdentityLabel;
use crate::identity::{numbers, writer};
use crate::server::security_label::{self, Labelled};
use crate::server::{cluster, latch, lock, process, query, sequence, text};
use crate::settings;
use crate::shmem::area;
use crate::shmem::key::TimeKind;

/// Between two looks at the lock, milliseconds.
const LOCK_LOOK_MS: u64 = 10;
/// Whose number may be lost.
const DATABASE: &str = "a database";
const EXTENSION: &str = "an extension";

/// Keeps others from changing the register until the transaction ends.
///
/// # Errors
/// Somebody else holds it for longer than a refill may take.
pub fn lock() -> Result<(), Failure> {
    if is_locked_in_time() {
        return Ok(());
    }
    Err(held_up())
}

fn held_up() -> Failure {
    wait::timed_out(
        "another transaction that sets a worker id, readable bucket, time zone, layout or snowflake source, drops a database or the extension, or runs keywright.lower_bound",
    )
    .detail(locks::who_has_register())
}

/// What [`lock`] locks, for a moment within the transaction: dropping it gives it back, but for what the transaction holds besides.
pub struct Locked(());

impl Drop for Locked {
    fn drop(&mut self) {
        // While an error unwinds the abort of the transaction does it.
        if !std::thread::panicking() {
            lock::give_back_register();
        }
    }
}

/// Keeps others from changing the register for as long as the caller keeps the answer; `None` if somebody else holds it. Does not wait, so it may be called
/// in a gate.
pub fn try_lock() -> Option<Locked> {
    lock::try_register().then(|| Locked(()))
}

/// Waits until nobody else holds the register. Outside gates: who has it may be waiting for one.
///
/// # Errors
/// Somebody does until the deadline.
pub fn wait_until_free(deadline: Instant) -> Result<(), Failure> {
    wait::until(deadline, || try_lock().is_some()).map_err(|()| held_up())
}

/// As [`lock`], where no query can be run: whether it could be taken.
pub fn is_locked_in_time() -> bool {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    while !lock::try_register() {
        if Instant::now() >= deadline {
            return false;
        }
        latch::sleep(Duration::from_millis(LOCK_LOOK_MS));
    }
    true
}

/// Reads it.
///
/// # Errors
/// It was damaged.
pub fn read() -> Result<Register, Failure> {
    match security_label::get(Labelled::Server) {
        None => Ok(Register::default()),
        Some(text) => Register::parse(&text)
            .ok_or_else(|| damage::damaged("the register of worker ids cannot be read")),
    }
}

/// Writes it, as part of the transaction. The caller holds [`lock`].
pub fn write(register: &Register) {
    security_label::set(Labelled::Server, &register.to_string());
}

/// What the register knows of a number of this database.
///
/// # Errors
/// It was damaged; how far the number was used is not known, since an extension was dropped unseen.
pub fn held_here(number: Number) -> Result<Option<Held>, Failure> {
    let register = read()?;
    let is_lost = register
        .find(number)
        .is_some_and(|(_, usage)| usage == Use::Lost);
    let held = register.held(number, process::database().to_u32());
    match held {
        Some(held) if !is_bound_here(number, &held)? => Err(lost(number, EXTENSION)),
        None if is_lost => Err(lost(number, EXTENSION)),
        Some(_) | None => Ok(held),
    }
}

/// Whether this database has a number, and nothing that was issued with it is unknown.
///
/// # Errors
/// keywright's sequences are missing.
pub fn has(register: &Register, number: Number) -> Result<bool, Failure> {
    match register.held(number, process::database().to_u32()) {
        Some(held) => is_bound_here(number, &held),
        None => Ok(false),
    }
}

/// Whether the bound that was noted is this extension's. An extension that was dropped while keywright was not preloaded took its bound with it.
fn is_bound_here(number: Number, held: &Held) -> Result<bool, Failure> {
    let name = match TimeKind::of(number) {
        TimeKind::Snowflake => "snowflake_bound",
        TimeKind::Readable => "readable_bound",
    };
    Ok(held.may_be_bound_by(sequences::named(name)?.to_u32()))
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
    let lost = |floor, what| {
        if is_above_named {
            Ok(Claim::Known(floor))
        } else {
            Err(lost(number, what))
        }
    };
    match register.find(number) {
        None => Ok(Claim::Unknown),
        Some((_, Use::Left { floor })) => Ok(Claim::Known(floor)),
        Some((_, Use::Lost)) => lost(None, DATABASE),
        Some((database, Use::Held(held))) if database == process::database().to_u32() => {
            // A database that was dropped unseen and made anew with the same oid is another, and has no label of it.
            if !is_bound_here(number, &held)? {
                lost(held.floor, EXTENSION)
            } else if held.sequence == 0
                || area::life() == Some(held.life)
                || numbers::label()?.is_some_and(|label| gives(&label, number, database))
                || is_bound_ours(number)?
            {
                Ok(Claim::Known(held.floor))
            } else {
                lost(held.floor, DATABASE)
            }
        }
        Some((database, Use::Held(held))) => match database_name(database) {
            // Without its bound it has no extension, or CREATE EXTENSION would have noted the new one; without the label it does not come back to the
            // number.
            Some(_) if held.sequence == 0 && !is_labelled(number, database) => {
                Ok(Claim::Known(held.floor))
            }
            Some(name) => Err(in_use(number, &name)),
            None => lost(held.floor, DATABASE),
        },
    }
}

fn in_use(number: Number, name: &str) -> Failure {
    let function = setter(number);
    Failure::new(
        Cause::WorkerIdInUse,
        format!(
            "{} belongs to database \"{name}\" of this server",
            numbers::name_of(number)
        ),
    )
    .hint(format!(
        "Choose one that no other database has, on this server or any other. If that one is to have another number: run SELECT keywright.{function}(n) \
         with that one there. If it shall issue nothing any more, run DROP EXTENSION keywright there, which forgets its tags, and then SECURITY LABEL FOR \
         keywright ON DATABASE \"{name}\" IS NULL; where the extension was dropped while keywright was not preloaded, CREATE EXTENSION keywright first."
    ))
}

/// Whether another database's label names a number, so that it would issue with it if it had the extension. A label that cannot be read counts.
fn is_labelled(number: Number, database: u32) -> bool {
    let Some(text) = security_label::get(Labelled::OtherDatabase(database)) else {
        return false;
    };
    IdentityLabel::parse(&text).is_none_or(|label| gives(&label, number, database))
}

/// Whether a label gives a number to a database of this server.
fn gives(label: &IdentityLabel, number: Number, database: u32) -> bool {
    let names_it = match number {
        Number::Worker(worker) => label.worker == Some(worker),
        Number::Bucket(bucket) => label.bucket_number() == Some(bucket),
    };
    names_it && label.system == cluster::system_identifier() && label.database == database
}

/// What sets a number of this kind.
fn setter(number: Number) -> &'static str {
    match number {
        Number::Worker(_) => "set_worker_id",
        Number::Bucket(_) => "set_readable_bucket",
    }
}

/// `what`: whose number it was.
fn lost(number: Number, what: &str) -> Failure {
    let function = setter(number);
    Failure::new(
        Cause::WorkerIdInUse,
        format!(
            "{} belonged to {what} that was dropped, and how far its ids were used is not known",
            numbers::name_of(number)
        ),
    )
    .detail("It was dropped without being used since the server started, or while keywright was not preloaded.")
    .hint(format!("Choose another, or name a moment that is later than all its ids: SELECT keywright.{function}(n, above => now() + interval '1 minute')."))
}

/// Whether the bound of ids with a number was written by this database and no other.
pub fn is_bound_ours(number: Number) -> Result<bool, Failure> {
    let name = match TimeKind::of(number) {
        TimeKind::Snowflake => "snowflake_note",
        TimeKind::Readable => "readable_note",
    };
    let note = sequence::last(sequences::named(name)?).and_then(Note::unpack);
    Ok(note.is_some_and(|note| note.is_of(&writer::current())))
}

/// The name of a database of this server; `None` if there is none.
pub fn database_name(database: u32) -> Option<String> {
    query::one_row_as(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT datname::pg_catalog.text FROM pg_catalog.pg_database WHERE oid OPERATOR(pg_catalog.=) $1",
        &[pg_sys::Oid::from(database).into()],
        |row| row.get::<Vec<u8>>(1),
    )
    .flatten()
    .map(|name| text::shown(&name))
}
