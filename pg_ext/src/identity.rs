//! Who this database is: worker id and layout. The worker id is in a security label of the database and an entry in the
//! server's register, so that two databases cannot be given the same one.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, TimeLeft, WorkerId};
use keywright_core::register::{Floor, Held, Number, Use};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{PgLogLevel, pg_extern};

use crate::backend::BackendCell;
use crate::catalog;
use crate::claims::Vouched;
use crate::failure::{Failure, OrRaise};
use crate::identity_label::IdentityLabel;
use crate::labels::{self, Labelled};
use crate::words::TimeKind;
use crate::{bucket, changes, claims, clock, decode, guard, handover, register, session, sys};

const WORKER_HINT: &str = "Give one that fits the layout and that no other database has; where the layout has a \
                           datacenter it is part of the number.";

/// What the SQL command SECURITY LABEL may write: nothing but what a restore writes, the label of another server or database,
/// which is refused when ids are asked for. `database` is none for any other object.
pub fn check_label(database: Option<u32>, text: Option<&str>) {
    let foreign = |label: &IdentityLabel, database: u32, text: &str| {
        label.to_string() == text
            && !(label.system == sys::system_identifier() && label.database == database)
    };
    let allowed = match (database, text) {
        (Some(_), None) => true,
        (Some(database), Some(text)) => {
            IdentityLabel::parse(text).is_some_and(|label| foreign(&label, database, text))
        }
        (None, Some(_) | None) => false,
    };
    if !allowed {
        Failure::new(
            Cause::WorkerIdInUse,
            "a worker id or readable bucket is not given by a security label",
        )
        .hint("Run SELECT keywright.set_worker_id(n) or keywright.set_readable_bucket(n).")
        .raise();
    }
}

/// Whether this database had an identity before the transaction with that number began.
static PAST: BackendCell<Option<(u64, bool)>> = BackendCell::new(None);

/// What is about to be changed was committed before this transaction: the database has had an identity.
pub fn note_past() {
    PAST.set(Some((sys::transaction(), true)));
}

/// Whether the database had an identity before this transaction. To be asked before the transaction changes it for the
/// first time; the answer is kept until the transaction ends.
pub fn has_past() -> Result<bool, Failure> {
    let ours = sys::database().to_u32();
    let known = PAST
        .get()
        .filter(|(of, _)| sys::transaction_if_any() == Some(*of));
    if let Some((_, has_past)) = known {
        return Ok(has_past);
    }
    let is_labelled = catalog::label()?.is_some_and(|label| label.is_of_here());
    let has_past = is_labelled || register::read()?.held_by(ours).next().is_some();
    PAST.set(Some((sys::transaction(), has_past)));
    Ok(has_past)
}

/// Whether this transaction dropped what was committed before it.
pub fn is_replaced() -> bool {
    let known = PAST
        .get()
        .filter(|(of, _)| sys::transaction_if_any() == Some(*of));
    known.is_some_and(|(_, has_past)| has_past)
}

/// Fails if one of the parts of an identity is not committed, unless it is the first that this database has: a rollback
/// would bring the old one back, which could issue the same numbers.
///
/// # Errors
/// It is not, with the name of the part.
pub fn require_committed(parts: &[(bool, &str)]) -> Result<(), Failure> {
    let Some((_, changed)) = parts.iter().find(|(is_uncommitted, _)| *is_uncommitted) else {
        return Ok(());
    };
    if has_past()? {
        Err(uncommitted(changed))
    } else {
        Ok(())
    }
}

/// The failure of an identity that this transaction changed.
pub fn uncommitted(changed: &str) -> Failure {
    Failure::new(
        Cause::IdentityUncommitted,
        format!("{changed} was changed by this transaction, which has not committed"),
    )
    .detail("A rollback would bring back what was before, which could issue the same ids.")
    .hint("COMMIT first, then ask for ids.")
}

#[pg_extern(sql = false)]
fn keywright_set_worker_id(
    worker_id: Option<i32>,
    above: Option<TimestampWithTimeZone>,
    unused: Option<bool>,
    force: Option<bool>,
) {
    let set = || {
        let (is_unused, is_forced) = (unused.unwrap_or(false), force.unwrap_or(false));
        set_worker_id(worker_id, &Vouched::new(above, is_unused, is_forced)?)
    };
    set().or_raise();
}

fn set_worker_id(worker_id: Option<i32>, vouched: &Vouched) -> Result<(), Failure> {
    guard::may_manage("set_worker_id")?;
    let extension = session::extension()?;
    let layout = catalog::layout(&extension)?;
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
    let number = Number::Worker(worker.get());
    register::lock()?;
    has_past()?;
    let mut register = register::read()?;
    let ours = sys::database().to_u32();
    let claim = register::claim(&register, number, vouched.above_ms.is_some())?;
    let label = catalog::label()?.filter(IdentityLabel::is_of_here);
    let had_it = register.held(number, ours).is_some()
        && label.is_some_and(|label| label.worker == Some(worker.get()));
    claims::give_up_others(&mut register, TimeKind::Snowflake, Some(number))?;
    if !had_it {
        let used = claims::used(number, &claim)?;
        let held = claims::take(number, layout, used, vouched)?;
        register.set(number, ours, Use::Held(held));
    } else {
        claims::tell_if_unused(number, vouched);
        if let Some(above_ms) = vouched.above_ms {
            handover::raise_bounds(number, above_ms)?;
        }
    }
    let bucket = bucket::follow_worker(&mut register, label, worker.get(), vouched)?;
    let new_label = IdentityLabel::here(Some(worker.get()), bucket);
    if label != Some(new_label) {
        labels::set(Labelled::Database, &new_label.to_string());
    }
    register::write(&register);
    changes::announce(extension.node_table);
    session::forget();
    Ok(())
}

#[pg_extern(sql = false)]
fn keywright_set_layout(layout: Option<&[u8]>) {
    set_layout(layout).or_raise();
}

fn set_layout(text: Option<&[u8]>) -> Result<(), Failure> {
    guard::may_manage("set_layout")?;
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
    if old == layout && !catalog::node(&extension)?.is_uncommitted {
        return Ok(());
    }
    has_past()?;
    if old != layout {
        // Nobody extends a bound until this transaction ends, so what is checked here stays true.
        let bound_ms = handover::hold_bounds(TimeKind::Snowflake)?;
        refuse_if_overlapping(&old, &layout, bound_ms)?;
        note_layout(&layout, bound_ms)?;
    }
    catalog::set_node("layout", &layout.to_string())?;
    changes::announce(extension.node_table);
    session::forget();
    Ok(())
}

/// Notes how far the layout in force was used. Ids of the new one are compared with that before the first of them.
fn note_layout(layout: &Layout, bound_ms: Option<i64>) -> Result<(), Failure> {
    let ours = sys::database().to_u32();
    let mut register = register::read()?;
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
    register::write(&register);
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
pub fn refuse_if_overlapping(
    old: &Layout,
    new: &Layout,
    bound_ms: Option<i64>,
) -> Result<(), Failure> {
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
