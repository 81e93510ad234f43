//! What is wrong with limits.

use super::raw::{REWRITE_BYTES_MIN, RawLimits};
use crate::connection::keepalive::KEEPALIVE_S_MAX;

/// All of it.
pub(super) fn problems(limits: &RawLimits) -> Vec<String> {
    let never = "nobody could log in";
    let nobody = "nobody could connect";
    let no_insert = "no INSERT could get a key";
    let at_once = "it would be over before it began";
    let statements_max = u64::try_from(limits.statements_max).unwrap_or(u64::MAX);
    let mut problems: Vec<String> = [
        ("connections_max", limits.connections_max, nobody),
        (
            "statements_max",
            statements_max,
            "no INSERT could be prepared",
        ),
        ("select_rows_max", limits.select_rows_max, no_insert),
        ("connect_ms_max", limits.connect_ms_max, nobody),
        ("login_ms_max", limits.login_ms_max, never),
        ("answer_ms_max", limits.answer_ms_max, never),
        (
            "take_over_wait_ms_max",
            limits.take_over_wait_ms_max,
            at_once,
        ),
        (
            "schema_refresh_s",
            limits.schema_refresh_s,
            "it has no pause",
        ),
        ("switch_wait_ms_max", limits.switch_wait_ms_max, at_once),
        ("switch_peer_wait_s", limits.switch_peer_wait_s, at_once),
    ]
    .into_iter()
    .filter(|(_, value, _)| *value == 0)
    .map(|(name, _, why)| format!("limits.{name} is at least 1: with 0 {why}"))
    .collect();
    if limits.rewrite_bytes_max < REWRITE_BYTES_MIN {
        let given = limits.rewrite_bytes_max;
        problems.push(format!(
            "limits.rewrite_bytes_max is at least {REWRITE_BYTES_MIN}, as the server's max_allowed_packet, not {given}"
        ));
    }
    if limits.keepalive_s > KEEPALIVE_S_MAX {
        let given = limits.keepalive_s;
        problems.push(format!(
            "limits.keepalive_s is at most {KEEPALIVE_S_MAX}, not {given}"
        ));
    }
    if limits.memory_bytes_max / 4 < limits.rewrite_bytes_max {
        problems.push(
            "limits.memory_bytes_max is at least four times rewrite_bytes_max: a longest statement must have room"
                .to_owned(),
        );
    }
    problems
}
