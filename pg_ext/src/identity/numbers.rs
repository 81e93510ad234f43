//! The numbers that this database has: its worker id and its bucket of readable ids.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, WorkerId};
use keywright_core::register::Number;

use crate::catalog::damage;
use crate::failure::Failure;
use crate::identity::label::IdentityLabel;
use crate::server::security_label::{self, Labelled};
use crate::server::{cluster, process};

/// What to call a number in messages.
pub fn name_of(number: Number) -> String {
    match number {
        Number::Worker(worker) => format!("worker id {worker}"),
        Number::Bucket(bucket) => format!("readable bucket {bucket}"),
    }
}

/// Whether this transaction gave this database its worker id or bucket.
pub fn is_uncommitted() -> bool {
    security_label::is_uncommitted(Labelled::Database)
}

/// The worker id that was given to this database on this server.
///
/// It is kept as a security label of the database, in a catalogue all databases of a server share. A copy made with
/// CREATE DATABASE … TEMPLATE does not get it; a copy made in any other way gets it with the identity of the original.
pub fn worker(layout: &Layout) -> Result<WorkerId, Failure> {
    let unset = || {
        Failure::new(Cause::WorkerIdUnset, "this database has no worker id")
            .detail(
                "Snowflake ids are unique only if no two databases issue with the same worker id.",
            )
            .hint(
                "Choose one that no other database has and run SELECT keywright.set_worker_id(n).",
            )
    };
    let label = label()?.ok_or_else(unset)?;
    let worker = label.worker.ok_or_else(unset)?;
    require_here(&label, Number::Worker(worker))?;
    WorkerId::new(i64::from(worker), layout).map_err(|error| {
        Failure::new(Cause::Suspended, error.to_string())
            .hint("Run SELECT keywright.set_worker_id(n).")
    })
}

/// The bucket of readable ids that was given to this database on this server, kept as [`worker`] is.
pub fn bucket() -> Result<u8, Failure> {
    let unset = |message: String| {
        Failure::new(Cause::WorkerIdUnset, message)
            .detail("Readable ids are unique only if no two databases issue with the same bucket.")
            .hint("Choose one from 0 to 255 that no other database has and run SELECT keywright.set_readable_bucket(n).")
    };
    let Some(label) = label()? else {
        return Err(unset(
            "this database has no readable bucket and no worker id".to_owned(),
        ));
    };
    let Some(bucket) = label.bucket_number() else {
        return Err(unset(match label.worker {
            Some(worker) if u8::try_from(worker).is_err() => format!(
                "this database has no readable bucket: its worker id {worker} is above {}",
                u8::MAX
            ),
            Some(worker) => format!(
                "this database has no readable bucket: bucket {worker} was not free when it got worker id {worker}"
            ),
            None => "this database has no readable bucket".to_owned(),
        }));
    };
    require_here(&label, Number::Bucket(bucket))?;
    Ok(bucket)
}

fn require_here(label: &IdentityLabel, number: Number) -> Result<(), Failure> {
    if label.is_of_here() {
        return require_alone(label, number);
    }
    let function = match number {
        Number::Worker(_) => "set_worker_id",
        Number::Bucket(_) => "set_readable_bucket",
    };
    Err(Failure::new(
        Cause::Suspended,
        format!(
            "{} was given to another server or database",
            name_of(number)
        ),
    )
    .detail(format!(
        "It was given to database {} of system {}; this is database {} of system {}.",
        label.database,
        label.system,
        process::database().to_u32(),
        cluster::system_identifier()
    ))
    .hint(format!(
        "If the original lives on, choose another number; then run SELECT keywright.{function}(n)."
    )))
}

/// Fails where the store that assigned the worker id has found another database with it.
fn require_alone(label: &IdentityLabel, number: Number) -> Result<(), Failure> {
    if !label.assignment.is_suspended {
        return Ok(());
    }
    Err(Failure::new(
        Cause::Suspended,
        format!(
            "{} is not only this database's: another one with the same mark has asked the store since",
            name_of(number)
        ),
    )
    .detail("One of them is a copy of the other, or this one was brought back from an old backup.")
    .hint("Run keywright worker assign --new: this database gets a worker id of its own."))
}

/// The label of this database.
///
/// # Errors
/// It was damaged.
pub fn label() -> Result<Option<IdentityLabel>, Failure> {
    security_label::get(Labelled::Database)
        .map(|text| {
            IdentityLabel::parse(&text)
                .ok_or_else(|| damage::damaged("the label of the database cannot be read"))
        })
        .transpose()
}
