//! Settings of snowflake keys.

use keywright_core::{ClockPolicy, Layout, WorkerId};

use super::problems::Problems;
use super::raw::RawSnowflakeSettings;
use super::worker;
use crate::lease::TakeoverLimits;
use crate::worker_ids::WorkerIds;

/// Settings of snowflake and readable ids, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnowflakeSettings {
    pub(crate) layout: Layout,
    pub(crate) worker_id: Option<WorkerId>,
    pub(crate) worker_ids: WorkerIds,
    pub(crate) lease_ms: u64,
    pub(crate) bound_window_ms: u64,
    pub(crate) lead_ms_max: u64,
    pub(crate) skew_ms_max: u64,
    pub(crate) clock_jump_ms_max: u64,
    pub(crate) clock_policy: ClockPolicy,
    pub(crate) clock_wait_ms_max: u64,
}

impl SnowflakeSettings {
    /// How a worker id is taken over at a moment, unix milliseconds.
    pub(crate) fn takeover(&self, now_ms: i64) -> TakeoverLimits {
        TakeoverLimits {
            now_ms,
            lead_ms_max: self.lead_ms_max,
            skew_ms_max: self.skew_ms_max,
            window_ms: self.bound_window_ms,
        }
    }
}

pub(super) fn settings(
    raw: &RawSnowflakeSettings,
    problems: &mut Problems,
) -> Option<SnowflakeSettings> {
    const HOUR_MS: u64 = 3_600_000;
    problems.within("snowflake.lease_ms", raw.lease_ms, 1_000, HOUR_MS);
    problems.within(
        "snowflake.bound_window_ms",
        raw.bound_window_ms,
        100,
        600_000,
    );
    problems.within("snowflake.lead_ms_max", raw.lead_ms_max, 100, HOUR_MS);
    problems.within("snowflake.skew_ms_max", raw.skew_ms_max, 0, 24 * HOUR_MS);
    problems.within(
        "snowflake.clock_jump_ms_max",
        raw.clock_jump_ms_max,
        1_000,
        24 * HOUR_MS,
    );
    problems.within(
        "snowflake.clock_wait_ms_max",
        raw.clock_wait_ms_max,
        0,
        HOUR_MS,
    );
    let layout = match Layout::parse(&raw.layout) {
        Ok(layout) => layout,
        Err(error) => {
            problems.add("snowflake.layout", error.to_string());
            return None;
        }
    };
    let clock_policy = clock_policy(&raw.clock_policy, &layout, problems);
    let worker_ids = worker::worker_ids(raw, &layout, problems);
    let worker_id = worker::worker_id(raw, &layout, problems).ok()?;
    worker::check_leased(worker_id, &worker_ids, problems);
    Some(SnowflakeSettings {
        layout,
        worker_id,
        worker_ids,
        lease_ms: raw.lease_ms,
        bound_window_ms: raw.bound_window_ms,
        lead_ms_max: raw.lead_ms_max,
        skew_ms_max: raw.skew_ms_max,
        clock_jump_ms_max: raw.clock_jump_ms_max,
        clock_policy,
        clock_wait_ms_max: raw.clock_wait_ms_max,
    })
}

/// The policy of that name. One that is none is told among the problems, as is one that the layout has no bit for.
fn clock_policy(name: &str, layout: &Layout, problems: &mut Problems) -> ClockPolicy {
    const SETTING: &str = "snowflake.clock_policy";
    match ClockPolicy::parse(name) {
        Some(ClockPolicy::SpareWorker) if !layout.has_spare() => {
            let problem =
                format!("spare_worker takes a layout with spare=1, which \"{layout}\" is not");
            problems.add(SETTING, problem);
        }
        Some(policy) => return policy,
        None => problems.add(
            SETTING,
            format!("\"{name}\" is none of carry, wait, refuse, spare_worker"),
        ),
    }
    ClockPolicy::Carry
}
