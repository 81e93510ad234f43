//! Ids of another layout or time zone that could be the same: refused.

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::register::Floor;
use keywright_core::zone::Zone;

use crate::failure::Failure;
use crate::server::{clock, timestamp};
use crate::settings;
use crate::shmem::key::TimeKind;

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
    let (old, new) = (zone_name(&floor.layout), zone_name(layout));
    let possible = timestamp::of_unix_ms(possible_ms)?;
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

/// The layout or time zone in the table of this database is not the one that its number is registered with: only rows that a dump brought
/// back, or changes by hand, come in without being compared with what was issued before.
pub fn unregistered(kind: TimeKind, layout: &Layout) -> Failure {
    let (what, function) = match kind {
        TimeKind::Snowflake => (
            format!("layout \"{layout}\" of snowflake ids"),
            format!("set_layout('{layout}')"),
        ),
        TimeKind::Readable => {
            let zone = zone_name(layout);
            (
                format!("time zone {zone} of readable ids"),
                format!("set_readable_zone('{zone}')"),
            )
        }
    };
    Failure::new(
        Cause::LayoutOverlap,
        format!("{what} came into force without being compared with what was issued before"),
    )
    .hint(format!("Run SELECT keywright.{function}."))
}

/// The zone with that layout, for a message.
pub fn zone_name(layout: &Layout) -> String {
    Zone::of_layout(layout).map_or_else(String::new, |zone| zone.to_string())
}
