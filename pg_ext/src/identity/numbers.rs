//! The numbers that this database has: its worker id and its bucket of readable ids.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, WorkerId};
use keywright_core::register::Number;

use crate::catalog::damage;
use crate::failure::Failure;
use crate::identity::label::{Bucket, IdentityLabel};
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
///
/// `noted`: the one that the row of keywright.node says was chosen. Dumps and copies bring the row, and mostly no label. So the label counts only where
/// the row says the same: what was chosen stays known, and no worker id takes its place, whose number may be a bucket that another database has chosen.
pub fn bucket(noted: Option<u8>) -> Result<u8, Failure> {
    let unset = |message: String| {
        Failure::new(Cause::WorkerIdUnset, message)
            .detail("Readable ids are unique only if no two databases issue with the same bucket.")
            .hint("Choose one from 0 to 255 that no other database has and run SELECT keywright.set_readable_bucket(n).")
    };
    let label = label()?;
    if let Some(elsewhere) = label.filter(|label| !label.is_of_here())
        && let Some(bucket) = elsewhere.bucket_number()
    {
        return Err(given_elsewhere(&elsewhere, Number::Bucket(bucket)));
    }
    if let Some(earlier) = earlier(label, noted) {
        return Err(chosen_earlier(earlier));
    }
    if let Some(Bucket::Chosen(bucket)) = label.and_then(|label| label.bucket)
        && noted != Some(bucket)
    {
        return Err(not_noted(bucket));
    }
    let Some(label) = label else {
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

/// Whether this database has no bucket for no other reason than that one was chosen earlier, as the row of keywright.node says.
///
/// # Errors
/// The label was damaged.
pub fn is_chosen_earlier(noted: Option<u8>) -> Result<bool, Failure> {
    let label = label()?;
    let is_elsewhere =
        label.is_some_and(|label| !label.is_of_here() && label.bucket_number().is_some());
    Ok(!is_elsewhere && earlier(label, noted).is_some())
}

/// The bucket that the row says was chosen, where the label has chosen none.
fn earlier(label: Option<IdentityLabel>, noted: Option<u8>) -> Option<u8> {
    match label.and_then(|label| label.bucket) {
        Some(Bucket::Chosen(_)) => None,
        Some(Bucket::OfWorker) | None => noted,
    }
}

/// Why a database has no bucket where the row of keywright.node says that one was chosen: it is the original's of a dump or a copy, or that of the
/// database which a store found this one to be a copy of.
pub fn chosen_earlier(bucket: u8) -> Failure {
    Failure::new(
        Cause::Suspended,
        format!(
            "{} was chosen earlier, and another database may have it",
            name_of(Number::Bucket(bucket))
        ),
    )
    .detail(
        "This database is a copy, or was restored from a dump, or had a worker id assigned in place of its own. \
         The worker id does not become its bucket: another database may have chosen that.",
    )
    .hint(format!(
        "If no other database issues with it any more, run SELECT keywright.set_readable_bucket({bucket}); \
         if one does, choose a bucket that no other database has, which may be the worker id."
    ))
}

/// Why a bucket that the label has chosen issues nothing: a dump would bring another one, or none.
fn not_noted(bucket: u8) -> Failure {
    let name = name_of(Number::Bucket(bucket));
    Failure::new(
        Cause::Suspended,
        format!("{name} was chosen, and keywright.node does not say so any more"),
    )
    .detail("The extension was created anew, or another database's data was restored. What keywright.node says goes into dumps and copies.")
    .hint(format!("Run SELECT keywright.set_readable_bucket({bucket})."))
}

fn require_here(label: &IdentityLabel, number: Number) -> Result<(), Failure> {
    match label.is_of_here() {
        true => require_alone(label, number),
        false => Err(given_elsewhere(label, number)),
    }
}

fn given_elsewhere(label: &IdentityLabel, number: Number) -> Failure {
    let hint = match (number, label.bucket) {
        (Number::Worker(_), _) => {
            "If the original lives on, choose another number; then run SELECT keywright.set_worker_id(n).".to_owned()
        }
        (Number::Bucket(bucket), Some(Bucket::Chosen(_))) => format!(
            "If the original is gone for good, run SELECT keywright.set_readable_bucket({bucket}); if it lives on, choose another number."
        ),
        (Number::Bucket(_), Some(Bucket::OfWorker) | None) => {
            "If the original lives on, choose another number; then run SELECT keywright.set_readable_bucket(n).".to_owned()
        }
    };
    Failure::new(
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
    .hint(hint)
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
    security_label::watch();
    security_label::get(Labelled::Database)
        .map(|text| {
            IdentityLabel::parse(&text)
                .ok_or_else(|| damage::damaged("the label of the database cannot be read"))
        })
        .transpose()
}
