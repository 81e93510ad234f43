//! What is wrong with single limits.

use std::ops::RangeInclusive;

/// Limits that let nobody be served when they are 0.
pub(super) fn at_least_one(limits: &[(&str, u64)], problems: &mut Vec<String>) {
    for (name, _) in limits.iter().filter(|(_, value)| *value == 0) {
        problems.push(format!(
            "{name} is at least 1: with 0 nobody would be served"
        ));
    }
}

/// A limit that has bounds of its own.
pub(super) fn within(
    (name, value): (&str, usize),
    bounds: RangeInclusive<usize>,
    problems: &mut Vec<String>,
) {
    if !bounds.contains(&value) {
        let (least, most) = bounds.into_inner();
        problems.push(format!("{name} is {least} to {most}, not {value}"));
    }
}
