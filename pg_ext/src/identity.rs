//! Who this database is: worker id and layout. The worker id is a security label of the database, in a catalogue that all
//! databases of a server share, so that two of them cannot be given the same one.

use std::ffi::CStr;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, TimeLeft, WorkerId};
use pgrx::{PgLogLevel, pg_extern, pg_sys};

use crate::backend::BackendCell;
use crate::catalog::{self, WorkerLabel, one_row, run};
use crate::failure::{Failure, OrRaise};
use crate::session;

use crate::{clock, decode, handover, settings, store, sys};

const WORKER_HINT: &str = "Give one that fits the layout and that no other database has; where the layout has a \
                           datacenter it is part of the number.";

/// Set while `set_worker_id` writes the label itself.
static WRITING: BackendCell<bool> = BackendCell::new(false);

/// Registers the provider of the label, so that SECURITY LABEL FOR keywright is understood.
pub fn register_label_provider() {
    // SAFETY: the callback is a function of this library, which the server never unloads; the name is a constant.
    unsafe { pg_sys::register_label_provider(c"keywright".as_ptr(), Some(check_label)) };
}

/// A label is accepted from `set_worker_id`, and from a restore that names another server or database: that one is
/// then refused when ids are asked for.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check_label(
    object: *const pg_sys::ObjectAddress,
    label: *const std::ffi::c_char,
) {
    if WRITING.get() || label.is_null() {
        return;
    }
    // SAFETY: not null, and the server passes the object and the label, a C string, for the duration of the call.
    let (text, database) = unsafe {
        (
            CStr::from_ptr(label).to_str().unwrap_or(""),
            (*object).objectId.to_u32(),
        )
    };
    let foreign = |label: &WorkerLabel| {
        label.to_string() == text
            && !(label.system == sys::system_identifier() && label.database == database)
    };
    if WorkerLabel::parse(text).is_none_or(|label| !foreign(&label)) {
        Failure::new(
            Cause::WorkerIdInUse,
            "a worker id is not given by a security label",
        )
        .hint("Run SELECT keywright.set_worker_id(n).")
        .raise();
    }
}

struct Writing;

impl Writing {
    fn begin() -> Self {
        WRITING.set(true);
        Self
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITING.set(false);
    }
}

#[pg_extern(sql = false)]
fn keywright_set_worker_id(worker_id: Option<i32>) {
    set_worker_id(worker_id).or_raise();
}

fn set_worker_id(worker_id: Option<i32>) -> Result<(), Failure> {
    let extension = session::extension()?;
    let layout = catalog::layout(&extension)?;
    let worker_id = worker_id.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the worker id must not be null").hint(WORKER_HINT)
    })?;
    let worker = WorkerId::new(i64::from(worker_id), &layout).map_err(|error| {
        Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(WORKER_HINT)
    })?;
    lock_register()?;
    refuse_if_taken(worker.get(), extension.owner)?;
    let old = catalog::label(extension.owner)?.filter(WorkerLabel::is_of_here);
    let had_it = old.as_ref().is_some_and(|old| old.worker == worker.get());
    let label = match old {
        Some(old) if had_it => old,
        // Nobody extends a bound until this transaction ends, so the bound noted for the old worker id is its last.
        Some(old) => old.change(worker.get(), handover::hold_bounds()?),
        None => WorkerLabel::here(worker.get()),
    };
    let database = one_row(
        extension.owner,
        "SELECT pg_catalog.current_database()::text",
        &[],
        |row| row.get::<String>(1),
    )
    .flatten()
    .ok_or_else(|| catalog::damaged("this database has no name"))?;
    let _writing = Writing::begin();
    run(
        &format!(
            "SECURITY LABEL FOR keywright ON DATABASE {} IS {}",
            pgrx::spi::quote_identifier(database),
            pgrx::spi::quote_literal(label.to_string())
        ),
        &[],
    )?;
    if !had_it {
        let left_ms = catalog::left_bound(worker.get(), extension.owner);
        handover::inherit(worker, left_ms)?;
    }
    sys::announce_change(extension.node_table);
    session::forget();
    Ok(())
}

fn lock_register() -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    while !sys::try_lock_workers() {
        if Instant::now() >= deadline {
            return Err(store::timed_out(
                "another transaction that sets a worker id",
            ));
        }
        sys::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn refuse_if_taken(worker: u32, owner: pg_sys::Oid) -> Result<(), Failure> {
    let holder = one_row(
        owner,
        "SELECT d.datname::text FROM pg_catalog.pg_shseclabel l \
         JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) l.objoid \
         WHERE l.provider OPERATOR(pg_catalog.=) 'keywright' \
         AND l.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_database'::pg_catalog.regclass \
         AND l.objoid OPERATOR(pg_catalog.<>) $1 \
         AND pg_catalog.starts_with(l.label OPERATOR(pg_catalog.||) ' ', \
            pg_catalog.format('worker=%s system=%s database=%s ', $2, $3, l.objoid))",
        &[
            sys::database().into(),
            i64::from(worker).into(),
            sys::system_identifier().to_string().into(),
        ],
        |row| row.get::<String>(1),
    )
    .flatten();
    match holder {
        None => Ok(()),
        Some(database) => Err(Failure::new(
            Cause::WorkerIdInUse,
            format!("worker id {worker} belongs to database \"{database}\" of this server"),
        )
        .hint("Choose one that no other database has, on this server or any other.")),
    }
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
    lock_register()?;
    let old = catalog::layout(&extension)?;
    if let Ok(worker) = catalog::worker(&old, extension.owner) {
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
    sys::announce_change(extension.node_table);
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
