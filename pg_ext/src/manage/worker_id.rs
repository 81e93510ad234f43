//! keywright.set_worker_id: the worker id is in a security label of the database and an entry in the server's register, so that
//! two databases cannot be given the same one.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, WorkerId};
use keywright_core::register::{Number, Use};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_extern;

use crate::cache;
use crate::catalog::extension::Extension;
use crate::catalog::{cached, node};
use crate::failure::{Failure, OrRaise};
use crate::guard;
use crate::identity::claims::{self, Vouched};
use crate::identity::label::{Assignment, IdentityLabel};
use crate::identity::{bounds, numbers, register, uncommitted};
use crate::manage::{bucket, feed_time};
use crate::server::security_label::{self, Labelled};
use crate::server::{changes, process};
use crate::shmem::key::TimeKind;

const WORKER_HINT: &str = "Give one that fits the layout and that no other database has; where the layout has a \
                           datacenter it is part of the number.";

#[pg_extern(sql = false)]
fn keywright_set_worker_id(
    worker_id: Option<i32>,
    above: Option<TimestampWithTimeZone>,
    unused: Option<bool>,
    force: Option<bool>,
) {
    let set = || {
        let (is_unused, is_forced) = (unused.unwrap_or(false), force.unwrap_or(false));
        guard::may_manage("set_worker_id")?;
        let vouched = Vouched::new(above, is_unused, is_forced)?;
        let wanted = wanted(worker_id, &vouched)?;
        register::lock()?;
        let label = numbers::label()?.filter(IdentityLabel::is_of_here);
        // The number that it has it keeps, with all that a store knows it by; what a store assigned it otherwise it has left.
        let kept = label.filter(|label| {
            label.worker == Some(wanted.worker.get()) && !label.assignment.is_suspended
        });
        if kept.is_none() && !is_forced {
            refuse_if_suspended(wanted.worker.get(), label)?;
            refuse_if_assigned(wanted.worker.get())?;
        }
        let assignment = kept.map_or_else(Assignment::default, |label| label.assignment);
        let label = label.map(|label| match is_forced {
            true => label,
            false => bucket::without_originals(label),
        });
        give(&wanted, label, assignment, &vouched)
    };
    set().or_raise();
}

/// The number of a database that was found to be a copy is its original's.
fn refuse_if_suspended(worker: u32, label: Option<IdentityLabel>) -> Result<(), Failure> {
    match label {
        Some(label) if label.assignment.is_suspended && label.worker == Some(worker) => {
            Err(Failure::new(
                Cause::WorkerIdInUse,
                format!("worker id {worker} is that of the database which this one is a copy of, a store says"),
            )
            .hint("Run keywright worker assign, or choose another number; force => true sets it all the same."))
        }
        Some(_) | None => Ok(()),
    }
}

/// A number that a store assigns may come to another server at any time.
fn refuse_if_assigned(worker: u32) -> Result<(), Failure> {
    match register::read()?.assigned() {
        Some(range) if (range.first..=range.last).contains(&worker) => Err(Failure::new(
            Cause::WorkerIdInUse,
            format!("worker id {worker} is one of those that a store assigns, {range}"),
        )
        .detail("It may give it to another database, on any server.")
        .hint("Run keywright worker assign, or choose a number that is not among them; force => true sets it all the same.")),
        Some(_) | None => Ok(()),
    }
}

/// A worker id that fits the layout of this database.
pub struct Wanted {
    extension: Extension,
    layout: Layout,
    worker: WorkerId,
}

/// What a caller asks for, checked. It locks the row of the layout, which comes before the register.
///
/// # Errors
/// It does not fit the layout; the moment above which it goes on is later than the layout's last.
pub fn wanted(worker_id: Option<i32>, vouched: &Vouched) -> Result<Wanted, Failure> {
    let extension = cached::extension()?;
    let layout = node::layout_of(&extension)?;
    let worker_id = worker_id.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the worker id must not be null").hint(WORKER_HINT)
    })?;
    let worker = WorkerId::new(i64::from(worker_id), &layout).map_err(|error| {
        Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(WORKER_HINT)
    })?;
    vouched.require_before(
        layout.runs_out_at_ms(),
        &format!("the ids of layout \"{layout}\""),
    )?;
    Ok(Wanted {
        extension,
        layout,
        worker,
    })
}

/// Gives this database a worker id, by hand or by a store. The caller holds [`register::lock`] and has read the label since.
///
/// # Errors
/// Another database has it, or may have; another session holds a gate or the sequences for too long.
pub fn give(
    wanted: &Wanted,
    label: Option<IdentityLabel>,
    assignment: Assignment,
    vouched: &Vouched,
) -> Result<(), Failure> {
    let (worker, layout) = (wanted.worker, wanted.layout);
    let number = Number::Worker(worker.get());
    if feed_time::is_handed(worker.get()) {
        return Err(Failure::new(
            Cause::WorkerIdInUse,
            format!(
                "{} was handed over to a database of this server",
                numbers::name_of(number)
            ),
        )
        .hint("Choose one that is not in fed_worker_ids of the store that feeds it."));
    }
    uncommitted::has_past()?;
    let mut register = register::read()?;
    let ours = process::database().to_u32();
    let claim = register::claim(&register, number, vouched.above_ms.is_some())?;
    let had_it = register::has(&register, number)?
        && label.is_some_and(|label| label.worker == Some(worker.get()));
    claims::give_up_others(&mut register, TimeKind::Snowflake, Some(number))?;
    if !had_it {
        let used = claims::used(number, &claim)?;
        let held = claims::take(number, layout, used, vouched)?;
        register.set(number, ours, Use::Held(held));
    } else {
        claims::tell_if_unused(number, vouched);
        if let Some(above_ms) = vouched.above_ms {
            bounds::raise(number, above_ms)?;
        }
    }
    let bucket = bucket::follow_worker(&mut register, label, worker.get(), vouched)?;
    let new_label = IdentityLabel::here(Some(worker.get()), bucket, assignment);
    if label != Some(new_label) {
        security_label::set(Labelled::Database, &new_label.to_string());
    }
    register::write(&register);
    changes::announce(wanted.extension.node_table);
    cache::forget();
    Ok(())
}
