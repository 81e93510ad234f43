//! keywright.set_layout: how the bits of snowflake ids are split.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, LayoutTimeError, TimeLeft, WorkerId};
use keywright_core::register::{Floor, Held, Number, Register, Use};
use pgrx::{PgLogLevel, pg_extern};

use crate::cache;
use crate::catalog::{cached, node};
use crate::failure::{Failure, OrRaise};
use crate::identity::{bounds, numbers, overlap, register, uncommitted};
use crate::manage::feed_time;
use crate::server::{changes, clock, process};
use crate::shmem::key::TimeKind;
use crate::{arguments, guard};

#[pg_extern(sql = false)]
fn keywright_set_layout(layout: Option<&[u8]>) {
    set_layout(layout).or_raise();
}

fn set_layout(text: Option<&[u8]>) -> Result<(), Failure> {
    guard::may_manage("set_layout")?;
    let extension = cached::extension()?;
    let text = text.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the layout must not be null")
            .hint("For instance SELECT keywright.set_layout('twitter').")
    })?;
    let layout = arguments::layout(text)?;
    refuse_if_ran_out(&layout)?;
    register::lock()?;
    let old = node::layout_of(&extension)?;
    if let Ok(worker) = numbers::worker(&old) {
        WorkerId::new(i64::from(worker.get()), &layout).map_err(|error| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                format!("the worker id does not fit layout \"{layout}\": {error}"),
            )
            .hint("Set a smaller worker id first with SELECT keywright.set_worker_id(n).")
        })?;
    }
    let mut register = register::read()?;
    let used = used(&register, old);
    let is_new = used.iter().any(|its| *its != layout);
    if old == layout && !is_new && !node::read(&extension)?.is_uncommitted {
        return Ok(());
    }
    if old != layout && feed_time::was_fed()? {
        return Err(Failure::new(
            Cause::LayoutOverlap,
            "the time of this database's snowflake ids is, or was, handed over for its layout",
        )
        .hint("All databases that a store feeds have the store's layout; another database may have another."));
    }
    uncommitted::has_past()?;
    if is_new {
        // Nobody extends a bound until this transaction ends, so what is checked here stays true.
        let bound_ms = bounds::hold(TimeKind::Snowflake)?;
        for its in used.iter().filter(|its| **its != layout) {
            overlap::refuse_if_overlapping(its, &layout, bound_ms)?;
        }
        note_layout(&mut register, &layout, bound_ms);
        register::write(&register);
    }
    node::set("layout", &layout.to_string())?;
    changes::announce(extension.node_table);
    cache::forget();
    Ok(())
}

/// The layouts of the ids that this database issued with the worker ids that it has: none are issued by a layout that is not registered. `row`: what
/// counts where it has none.
fn used(register: &Register, row: Layout) -> Vec<Layout> {
    let held = register.held_by(process::database().to_u32());
    let of_workers = held.filter(|(number, _)| matches!(number, Number::Worker(_)));
    let layouts: Vec<Layout> = of_workers.map(|(_, held)| held.layout).collect();
    match layouts.is_empty() {
        true => vec![row],
        false => layouts,
    }
}

/// Notes how far the layout in force was used. Ids of the new one are compared with that before the first of them.
fn note_layout(register: &mut Register, layout: &Layout, bound_ms: Option<i64>) {
    let ours = process::database().to_u32();
    for (number, held) in register.held_by(ours).collect::<Vec<_>>() {
        if !matches!(number, Number::Worker(_)) {
            continue;
        }
        let used = bound_ms.map(|bound_ms| Floor::below_ms(held.layout, bound_ms));
        let floor = match used {
            Some(used) => Some(used.higher(held.floor)),
            None => held.floor,
        };
        let held = Held {
            floor,
            layout: *layout,
            ..held
        };
        register.set(number, ours, Use::Held(held));
    }
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
        Err(error) => {
            let (cause, hint) = match error {
                LayoutTimeError::BeforeEpoch { .. } => (
                    Cause::ClockBehind,
                    "Give it an epoch in the past, for instance 'baidu,epoch=2024-01-01', or set the server's clock right.",
                ),
                LayoutTimeError::RanOut { .. } => (
                    Cause::LayoutRanOut,
                    "Give it a later epoch, for instance 'baidu,epoch=2024-01-01'.",
                ),
            };
            let message = format!("layout \"{layout}\" cannot issue ids now: {error}");
            Err(Failure::new(cause, message).hint(hint))
        }
    }
}
