//! The time zone of this database's readable ids: a fixed offset from UTC.
//!
//! What must not come twice is the moment as it is written. So a zone is to a bucket what a layout is to a worker id: another zone
//! has a word of its own, and begins above all that was written before it.

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::register::{Floor, Held, Number, Use};
use keywright_core::zone::{Zone, ZoneError};
use pgrx::pg_extern;

use crate::catalog;
use crate::failure::{Failure, OrRaise};
use crate::words::TimeKind;
use crate::{
    changes, claims, clock, decode, guard, handover, identity, register, session, settings, sys,
    text,
};

const ZONE_HINT: &str = "Give UTC or an offset from it with east of Greenwich positive, such as '+08:00' or '-03:30', between \
                         -14:00 and +14:00.";

/// Reads a time zone given by a user.
///
/// # Errors
/// The reason it is none, with what zones look like.
pub fn parse(text: &[u8]) -> Result<Zone, Failure> {
    let invalid = |message: String| Failure::new(Cause::ZoneInvalid, message).hint(ZONE_HINT);
    let text =
        text::read(text).map_err(|error| invalid(format!("not a time zone of ids: {error}")))?;
    Zone::parse(text).map_err(|error| {
        let failure = invalid(error.to_string());
        match error {
            ZoneError::NoOffset { .. } => failure.detail(
                "In a zone with daylight saving an hour comes twice each autumn, and ids that are written with its time could, too. \
                 The zone of a name can get daylight saving later.",
            ),
            ZoneError::Range { .. } => failure,
        }
    })
}

#[pg_extern(sql = false)]
fn keywright_set_readable_zone(zone: Option<&[u8]>) {
    set_readable_zone(zone).or_raise();
}

fn set_readable_zone(text: Option<&[u8]>) -> Result<(), Failure> {
    guard::may_manage("set_readable_zone")?;
    let extension = session::extension()?;
    let text = text.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the time zone must not be null").hint(ZONE_HINT)
    })?;
    let zone = parse(text)?;
    let layout = zone.layout();
    register::lock()?;
    let node = catalog::node(&extension)?;
    let mut register = register::read()?;
    let ours = sys::database().to_u32();
    let held: Vec<(Number, Held)> = register
        .held_by(ours)
        .filter(|(number, _)| TimeKind::of(*number) == TimeKind::Readable)
        .collect();
    let is_registered = held.iter().all(|(_, held)| held.layout == layout);
    if node.zone == zone && is_registered && !node.is_uncommitted {
        return Ok(());
    }
    identity::has_past()?;
    if held.is_empty() {
        // A dump brought back the bound of a bucket that it does not bring back.
        let bound_ms = handover::hold_bounds(TimeKind::Readable)?;
        let floor = bound_ms.map(|bound_ms| Floor::below_ms(node.zone.layout(), bound_ms));
        refuse_if_written(Comes::Zone("this database"), floor, &layout)?;
    }
    if !is_registered {
        // Nobody extends the bound until this transaction ends, so what is noted here is the last.
        let bound_ms = handover::hold_bounds(TimeKind::Readable)?;
        for (number, held) in held {
            let held = moved(number, held, bound_ms, layout)?;
            register.set(number, ours, Use::Held(held));
        }
        register::write(&register);
    }
    catalog::set_node("readable_zone", &zone.to_string())?;
    changes::announce(extension.node_table);
    session::forget();
    Ok(())
}

/// What is to be noted of a bucket whose ids are written in another zone from now.
fn moved(
    number: Number,
    held: Held,
    bound_ms: Option<i64>,
    layout: Layout,
) -> Result<Held, Failure> {
    let recorded = claims::used_until(number, &held, bound_ms);
    let floor = match handover::used_in_other_layouts(number, &held.layout) {
        Some(in_memory) => Some(in_memory.higher(recorded)),
        None => recorded,
    };
    refuse_if_written(Comes::Zone(&register::name_of(number)), floor, &layout)?;
    Ok(Held {
        from_ms: held.from_ms.max(bound_ms),
        floor,
        layout,
        ..held
    })
}

/// What is new to what, where ids could be written again; with a name of what they were written with.
#[derive(Clone, Copy)]
pub enum Comes<'a> {
    /// A zone comes to a bucket of this database, whose sessions may go on writing in the old one.
    Zone(&'a str),
    /// A bucket that nobody uses comes to this database and its zone.
    Bucket(&'a str),
}

/// Ids of a zone further west are written later than those of another zone only when its clocks have come so far.
///
/// # Errors
/// They would run further ahead of the clock than they may, with the moment from which on they do not.
pub fn refuse_if_written(
    comes: Comes<'_>,
    floor: Option<Floor>,
    layout: &Layout,
) -> Result<(), Failure> {
    let Some(floor) = floor.filter(|floor| floor.layout != *layout) else {
        return Ok(());
    };
    let start_ms = layout.unix_ms_of(floor.first_state(layout) >> layout.sequence_bits());
    let lead_ms = i64::try_from(settings::lead_ms_max()).unwrap_or(i64::MAX);
    let possible_ms = start_ms.saturating_sub(lead_ms);
    if possible_ms <= clock::wall_ms() {
        return Ok(());
    }
    let (old, new) = (name(&floor.layout), name(layout));
    let possible = decode::timestamp(possible_ms)?;
    let unused = "SELECT keywright.set_readable_bucket(n, unused => true)";
    let (whose, hint) = match comes {
        Comes::Zone(whose) => (
            whose,
            format!(
                "Issue no readable ids until {possible} (each one moves that moment on) and run it then, keep to {old}, or first \
                 choose a bucket that was never used: {unused}."
            ),
        ),
        Comes::Bucket(whose) => (
            whose,
            format!(
                "Wait until {possible}, write in the bucket's zone: SELECT keywright.set_readable_zone('{old}'), or choose a \
                 bucket that was never used: {unused}."
            ),
        ),
    };
    Err(Failure::new(
        Cause::LayoutOverlap,
        format!("{whose} could repeat readable ids of time zone {old} in time zone {new}"),
    )
    .detail(format!(
        "Clocks in {new} have yet to show what was written in {old}."
    ))
    .hint(hint))
}

/// The time zone in the table of this database is not the one that its bucket is registered with: only rows that a dump brought
/// back, or changes by hand, come in without being compared with what was written before.
pub fn unregistered(layout: &Layout) -> Failure {
    let zone = name(layout);
    Failure::new(
        Cause::LayoutOverlap,
        format!("time zone {zone} of readable ids came into force without being compared with what was written before"),
    )
    .hint(format!("Run SELECT keywright.set_readable_zone('{zone}')."))
}

/// The zone with that layout, for a message.
pub fn name(layout: &Layout) -> String {
    Zone::of_layout(layout).map_or_else(String::new, |zone| zone.to_string())
}
