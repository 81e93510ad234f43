//! Who this database is: worker id and layout. The worker id is a security label of the database and an entry in the
//! server's register, so that two databases cannot be given the same one.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, TimeLeft, WorkerId};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{PgLogLevel, pg_extern};

use crate::catalog::{self, WorkerLabel, run};
use crate::failure::{Failure, OrRaise};
use crate::labels::{self, Labelled};
use crate::register::{self, Register, Use};
use crate::{changes, clock, decode, handover, session, shm, sys};

const WORKER_HINT: &str = "Give one that fits the layout and that no other database has; where the layout has a \
                           datacenter it is part of the number.";

/// What the SQL command SECURITY LABEL may write: nothing but what a restore writes, the label of another server or database,
/// which is refused when ids are asked for. `database` is none for any other object.
pub fn check_label(database: Option<u32>, text: Option<&str>) {
    let foreign = |label: &WorkerLabel, database: u32, text: &str| {
        label.to_string() == text
            && !(label.system == sys::system_identifier() && label.database == database)
    };
    let allowed = match (database, text) {
        (Some(_), None) => true,
        (Some(database), Some(text)) => {
            WorkerLabel::parse(text).is_some_and(|label| foreign(&label, database, text))
        }
        (None, Some(_) | None) => false,
    };
    if !allowed {
        Failure::new(
            Cause::WorkerIdInUse,
            "a worker id is not given by a security label",
        )
        .hint("Run SELECT keywright.set_worker_id(n).")
        .raise();
    }
}

#[pg_extern(sql = false)]
fn keywright_set_worker_id(worker_id: Option<i32>, above: Option<TimestampWithTimeZone>) {
    set_worker_id(worker_id, above).or_raise();
}

fn set_worker_id(
    worker_id: Option<i32>,
    above: Option<TimestampWithTimeZone>,
) -> Result<(), Failure> {
    let extension = session::extension()?;
    let layout = catalog::layout(&extension)?;
    let worker_id = worker_id.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the worker id must not be null").hint(WORKER_HINT)
    })?;
    let worker = WorkerId::new(i64::from(worker_id), &layout).map_err(|error| {
        Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(WORKER_HINT)
    })?;
    let above_ms = above.map(decode::unix_ms).transpose()?;
    register::lock()?;
    let mut register = Register::read()?;
    let floor_ms = register::claim(&register, worker.get(), above_ms)?;
    let ours = sys::database().to_u32();
    let had_it = register.held_by(ours).any(|held| held == worker.get())
        && catalog::label()?
            .is_some_and(|label| label.is_of_here() && label.worker == worker.get());
    give_up_others(&mut register, worker.get())?;
    if !had_it {
        let life = shm::life().ok_or_else(session::not_preloaded)?;
        let floor_ms = handover::inherit(worker.get(), floor_ms)?;
        register.set(worker.get(), ours, Use::Held { life, floor_ms });
        labels::set(
            Labelled::Database,
            &WorkerLabel::here(worker.get()).to_string(),
        );
    } else if above_ms.is_some() {
        handover::inherit(worker.get(), above_ms)?;
    }
    register.write();
    changes::announce(extension.node_table);
    session::forget();
    Ok(())
}

/// Notes how far this database used the worker ids it had. Nobody extends a bound until this transaction ends, so the one
/// noted is the last.
fn give_up_others(register: &mut Register, worker: u32) -> Result<(), Failure> {
    let ours = sys::database().to_u32();
    let others: Vec<u32> = register
        .held_by(ours)
        .filter(|held| *held != worker)
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    let bound_ms = handover::hold_bounds()?;
    for other in others {
        register.set(other, ours, Use::Left { bound_ms });
    }
    Ok(())
}

#[pg_extern(sql = false)]
fn keywright_set_layout(layout: Option<&str>) {
    set_layout(layout).or_raise();
}

fn set_layout(text: Option<&str>) -> Result<(), Failure> {
    let extension = session::extension()?;
    let text = text.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the layout must not be null")
            .hint("For instance SELECT keywright.set_layout('twitter').")
    })?;
    let layout = decode::layout_of(text)?;
    refuse_if_ran_out(&layout)?;
    register::lock()?;
    let old = catalog::layout(&extension)?;
    if let Ok(worker) = catalog::worker(&old) {
        WorkerId::new(i64::from(worker.get()), &layout).map_err(|error| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                format!("the worker id does not fit layout \"{layout}\": {error}"),
            )
            .hint("Set a smaller worker id first with SELECT keywright.set_worker_id(n).")
        })?;
    }
    if old != layout {
        // Nobody extends a bound until this transaction ends, so what is checked here stays true.
        let bound_ms = handover::hold_bounds()?;
        refuse_if_overlapping(&old, &layout, bound_ms)?;
        handover::level_bounds(bound_ms)?;
    }
    run(
        "INSERT INTO keywright.node (layout) VALUES ($1) ON CONFLICT (one_row) DO UPDATE SET layout = excluded.layout",
        &[layout.to_string().into()],
    )?;
    changes::announce(extension.node_table);
    session::forget();
    Ok(())
}

fn refuse_if_ran_out(layout: &Layout) -> Result<(), Failure> {
    match layout.check_time_left(clock::wall_ms()) {
        Ok(TimeLeft::Ample) => Ok(()),
        Ok(TimeLeft::WithinAYear { runs_out_at_ms }) => {
            Failure::new(
                Cause::LayoutRanOut,
                format!("layout \"{layout}\" runs out within a year"),
            )
            .detail(format!("Its last id is of {runs_out_at_ms} ms since 1970."))
            .hint("Plan for another layout, with more time bits or a later epoch.")
            .report(PgLogLevel::WARNING);
            Ok(())
        }
        Err(error) => Err(Failure::new(
            Cause::LayoutRanOut,
            format!("layout \"{layout}\" cannot issue ids now: {error}"),
        )
        .hint("Give it a later epoch, for instance 'baidu,epoch=2024-01-01'.")),
    }
}

/// Ids of the new layout must all be greater than those of the old one, or an old id could come again.
fn refuse_if_overlapping(old: &Layout, new: &Layout, bound_ms: Option<i64>) -> Result<(), Failure> {
    let Some(bound_ms) = bound_ms else {
        return Ok(());
    };
    let clash = |detail: String| {
        Failure::new(Cause::LayoutOverlap, format!("ids of layout \"{new}\" could repeat ids of layout \"{old}\""))
            .detail(detail)
            .hint("Choose a layout whose ids are greater, for instance with an earlier epoch or more bits below the time.")
    };
    let tick_after = |layout: &Layout| {
        let ticks = layout
            .ticks_at(bound_ms)
            .map_err(|error| clash(error.to_string()))?;
        let begun = layout.unix_ms_of(ticks) < bound_ms;
        Ok::<_, Failure>(ticks.saturating_add(u64::from(begun)))
    };
    let (used, from) = (tick_after(old)?, tick_after(new)?);
    let (largest, smallest) = (old.largest_id_below(used), new.smallest_id_from(from));
    if smallest > largest {
        Ok(())
    } else {
        Err(clash(format!(
            "The largest old id may be {largest}; the smallest new one would be {smallest}."
        )))
    }
}
