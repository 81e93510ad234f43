//! How far leases may have issued, as ids: where whatever comes in their place goes on.

use keywright_core::Layout;

use super::{LeaseRow, TakeoverLimits, is_left, seen_ms, state_from};

/// The first id above all that a lease may have issued.
pub(crate) fn first_above(row: &LeaseRow) -> u64 {
    first_above_moment(&row.layout, row.hi_ms)
}

/// The first id above all that a lease may have issued whose bound another server wrote, which may have written later ones that are missing
/// here: where whoever takes it over now goes on. In the row's layout and in the asker's: it may have gone on with either.
pub(crate) fn first_above_foreign(row: &LeaseRow, layout: &Layout, limits: &TakeoverLimits) -> u64 {
    // As a takeover leaves out, whatever the clock reads: a takeover waits for a clock that reads a moment before the epoch.
    let past_skew_ms = row.hi_ms.saturating_add_unsigned(limits.skew_ms_max);
    let begins_ms = past_skew_ms.max(gap_end_ms(limits));
    let by_layouts =
        first_above_moment(&row.layout, begins_ms).max(first_above_moment(layout, begins_ms));
    first_above(row).max(by_layouts)
}

/// The first id above all that anybody may have been granted until now, also by leases of which the rows say less, or nothing: an older state may
/// have been put back under programs that run. In the asker's layout, and in those of the rows that are still in use.
pub(crate) fn first_above_granted(
    rows: &[LeaseRow],
    layout: &Layout,
    limits: &TakeoverLimits,
) -> u64 {
    let granted_ms = gap_end_ms(limits).max(seen_ms(rows));
    let in_use = rows
        .iter()
        .filter(|row| row.layout != *layout && !is_left(row, rows, layout))
        .map(|row| &row.layout);
    in_use
        .chain([layout])
        .map(|layout| first_above_moment(layout, granted_ms))
        .max()
        .unwrap_or(0)
}

/// Nobody whose bound is not known has begun later, unix milliseconds.
fn gap_end_ms(limits: &TakeoverLimits) -> i64 {
    limits.now_ms.saturating_add_unsigned(limits.gap_ms_max())
}

/// The first id above all of moments before this one.
fn first_above_moment(layout: &Layout, unix_ms: i64) -> u64 {
    first_from(
        layout,
        state_from(layout, unix_ms) >> layout.sequence_bits(),
    )
}

/// The first id above all of earlier ticks.
fn first_from(layout: &Layout, tick: u64) -> u64 {
    let last = layout.largest_id_below(tick);
    u64::try_from(last.saturating_add(1)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
