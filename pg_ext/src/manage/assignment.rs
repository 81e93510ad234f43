//! A worker id that a store assigned: `keywright worker assign` calls these functions. Each is one step, and a transaction of its own.
//!
//! 1. `mark_assignment(NULL, m)`: a database that is to get a worker id says by which mark it asks.
//! 2. The store notes under that mark which number it gets, and the mark that comes next.
//! 3. `mark_assignment(m, n)`: the database has the next mark.
//! 4. The store forgets the mark before. Whoever comes with that now is a copy.
//! 5. `assign_worker_id(n, …)`: only now ids are issued with the number.
//!
//! Nobody but the database knows whether the last step was taken. So beside the mark of a number that is to come stands the life of shared
//! memory in which it was written: where that is another, the disk may have been copied in between, and the database is to begin anew.
//!
//! Later asks take steps 2 to 4 with the mark that the worker id has.

use keywright_core::cause::Cause;
use keywright_core::mark::Mark;
use keywright_core::register::{AssignedRange, Number, Use};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::iter::TableIterator;
use pgrx::{name, pg_extern};

use crate::arguments::required;
use crate::cache;
use crate::catalog::{cached, node, tables};
use crate::durable::flush;
use crate::failure::{Failure, OrRaise};
use crate::guard;
use crate::identity::claims::{self, Vouched};
use crate::identity::label::{Assignment, Bucket, IdentityLabel, NextMark};
use crate::identity::{bounds, numbers, register, uncommitted};
use crate::manage::closing::until_then;
use crate::manage::{bucket, worker_id};
use crate::server::security_label::{self, Labelled};
use crate::server::{changes, cluster, process};
use crate::shmem::area;
use crate::shmem::key::TimeKind;

type Standing = TableIterator<
    'static,
    (
        name!(worker_id, Option<i32>),
        name!(mark, Option<String>),
        name!(next_mark, Option<String>),
        name!(same_life, bool),
        name!(suspended, bool),
        name!(here, bool),
        name!(layout, String),
        name!(system, String),
        name!(database, i64),
    ),
>;

#[pg_extern(sql = false)]
fn keywright_assignment() -> Standing {
    standing().or_raise()
}

fn standing() -> Result<Standing, Failure> {
    let extension = cached::extension()?;
    let layout = node::layout_of(&extension)?;
    let label = numbers::label()?;
    let assignment = label.map_or_else(Assignment::default, |label| label.assignment);
    Ok(TableIterator::once((
        label.and_then(|label| label.worker.map(u32::cast_signed)),
        assignment.mark.map(|mark| mark.to_string()),
        assignment.next.map(|next| next.mark.to_string()),
        assignment
            .next
            .is_some_and(|next| area::life() == Some(next.life)),
        assignment.is_suspended,
        label.is_none_or(|label| label.is_of_here()),
        layout.to_string(),
        cluster::system_identifier().to_string(),
        i64::from(process::database().to_u32()),
    )))
}

#[pg_extern(sql = false)]
fn keywright_mark_assignment(old: Option<String>, new: Option<String>) {
    mark(old, new).or_raise();
}

fn mark(old: Option<String>, new: Option<String>) -> Result<(), Failure> {
    guard::may_manage("mark_assignment")?;
    let old = old.map(mark_of).transpose()?;
    let new = mark_of(required(new, "the mark")?)?;
    let life = area::life().ok_or_else(guard::not_preloaded)?;
    let next = NextMark { mark: new, life };
    // Comes before the register.
    tables::lock(cached::extension()?.node_table)?;
    register::lock()?;
    let label = numbers::label()?.filter(IdentityLabel::is_of_here);
    let label = match (label, old) {
        (Some(label), None) => with(label, |its| its.next = Some(next)),
        // The label of another database, from a dump, gives this one nothing.
        (None, None) => {
            bucket::keep_chosen()?;
            let assignment = Assignment {
                next: Some(next),
                ..Assignment::default()
            };
            IdentityLabel::here(None, None, assignment)
        }
        (Some(label), Some(_)) if label.assignment.next.map(|next| next.mark) == old => {
            with(label, |its| its.next = Some(next))
        }
        (Some(label), Some(_)) if label.assignment.mark == old => {
            with(label, |its| its.mark = Some(new))
        }
        (Some(_) | None, Some(_)) => return Err(other_mark()),
    };
    security_label::set(Labelled::Database, &label.to_string());
    Ok(())
}

#[pg_extern(sql = false)]
fn keywright_assign_worker_id(
    mark: Option<String>,
    worker_id: Option<i32>,
    first: Option<i32>,
    last: Option<i32>,
    above: Option<TimestampWithTimeZone>,
    unused: Option<bool>,
) {
    let range = (first, last);
    assign(mark, worker_id, range, above, unused.unwrap_or(false)).or_raise();
}

fn assign(
    mark: Option<String>,
    worker_id: Option<i32>,
    range: (Option<i32>, Option<i32>),
    above: Option<TimestampWithTimeZone>,
    is_unused: bool,
) -> Result<(), Failure> {
    guard::may_manage("assign_worker_id")?;
    let mark = mark_of(required(mark, "the mark")?)?;
    let vouched = Vouched::new(above, is_unused, false)?;
    let range = AssignedRange {
        first: number_of(range.0)?,
        last: number_of(range.1)?,
    };
    let wanted = worker_id::wanted(worker_id, &vouched)?;
    register::lock()?;
    let label = numbers::label()?.filter(IdentityLabel::is_of_here);
    let Some(label) = label.filter(|label| {
        let next = label.assignment.next;
        next.is_some_and(|next| next.mark == mark)
    }) else {
        return Err(other_mark());
    };
    let assignment = Assignment {
        mark: Some(mark),
        ..Assignment::default()
    };
    // Who gets another number may be a copy: the bucket that was chosen is the original's, too.
    let kept = IdentityLabel {
        bucket: label.bucket.filter(|_| label.worker.is_none()),
        ..label
    };
    worker_id::give(&wanted, Some(kept), assignment, &vouched)?;
    let mut register = register::read()?;
    register.set_assigned(range);
    register::write(&register);
    Ok(())
}

#[pg_extern(sql = false)]
fn keywright_suspend_assignment(mark: Option<String>) {
    suspend(mark).or_raise();
}

/// A copy of this database has asked since: no more ids are issued.
fn suspend(mark: Option<String>) -> Result<(), Failure> {
    guard::may_manage("suspend_assignment")?;
    let mark = mark_of(required(mark, "the mark")?)?;
    let extension = cached::extension()?;
    register::lock()?;
    let label = numbers::label()?.filter(IdentityLabel::is_of_here);
    let Some(label) = label.filter(|label| label.assignment.mark == Some(mark)) else {
        return Err(other_mark());
    };
    uncommitted::has_past()?;
    let label = with(label, |its| its.is_suspended = true);
    cache::time_entry::attach_own();
    security_label::set(Labelled::Database, &label.to_string());
    let ours = process::database().to_u32();
    for (number, _) in register::read()?.held_by(ours) {
        bounds::leave_words(number);
    }
    changes::announce(extension.node_table);
    cache::forget();
    Ok(())
}

type Released =
    TableIterator<'static, (name!(bound_ms, Option<i64>), name!(layout, Option<String>))>;

#[pg_extern(sql = false)]
fn keywright_release_assignment(mark: Option<String>, worker_id: Option<i32>) -> Released {
    release(mark, worker_id).or_raise()
}

/// Gives the worker id up, and says how far it was used. The mark stays, so this may be asked again.
fn release(mark: Option<String>, worker_id: Option<i32>) -> Result<Released, Failure> {
    guard::may_manage("release_assignment")?;
    let mark = mark_of(required(mark, "the mark")?)?;
    let worker = number_of(worker_id)?;
    let extension = cached::extension()?;
    register::lock()?;
    let label = numbers::label()?.filter(IdentityLabel::is_of_here);
    let Some(label) = label.filter(|label| label.assignment.mark == Some(mark)) else {
        return Err(other_mark());
    };
    let mut register = register::read()?;
    if label.worker == Some(worker) {
        uncommitted::has_past()?;
        claims::give_up_others(&mut register, TimeKind::Snowflake, None)?;
        if label.bucket == Some(Bucket::OfWorker) {
            claims::give_up_others(&mut register, TimeKind::Readable, None)?;
        }
        let left = IdentityLabel {
            worker: None,
            bucket: label.bucket.filter(|bucket| *bucket != Bucket::OfWorker),
            ..label
        };
        security_label::set(Labelled::Database, &left.to_string());
        register::write(&register);
        changes::announce(extension.node_table);
        cache::forget();
    } else {
        // A commit whose wait was cancelled reports success: who asks again hears only of what standbys have.
        flush::make_durable(until_then(), &|| {
            "the worker id that was given up".to_owned()
        })?;
    }
    match register.find(Number::Worker(worker)) {
        Some((database, Use::Left { floor })) if database == process::database().to_u32() => {
            Ok(TableIterator::once((
                floor.map(|floor| floor.bound_ms),
                floor.map(|floor| floor.layout.to_string()),
            )))
        }
        Some((_, Use::Held(_) | Use::Left { .. } | Use::Lost)) | None => Err(Failure::new(
            Cause::WorkerIdInUse,
            format!("how far this database used worker id {worker} is not known"),
        )
        .hint("Do not give it to another: keywright worker release --gone retires it.")),
    }
}

fn with(label: IdentityLabel, change: impl FnOnce(&mut Assignment)) -> IdentityLabel {
    let mut assignment = label.assignment;
    change(&mut assignment);
    IdentityLabel {
        assignment,
        ..label
    }
}

fn number_of(number: Option<i32>) -> Result<u32, Failure> {
    let number = required(number, "the worker id")?;
    u32::try_from(number).map_err(|_| {
        Failure::new(
            Cause::ArgumentOutOfRange,
            format!("{number} is no worker id"),
        )
        .hint("Worker ids are numbers from 0 on.")
    })
}

fn mark_of(text: String) -> Result<Mark, Failure> {
    Mark::parse(&text).ok_or_else(|| {
        Failure::new(Cause::ArgumentOutOfRange, format!("\"{text}\" is no mark"))
            .hint("Marks are drawn by keywright worker assign.")
    })
}

fn other_mark() -> Failure {
    Failure::new(
        Cause::WorkerIdInUse,
        "this database has another mark than that",
    )
    .detail("Another session has changed its worker id, or its mark, meanwhile.")
    .hint("Run keywright worker assign again.")
}
