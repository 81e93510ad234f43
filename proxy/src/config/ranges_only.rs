//! What a configuration wants that a store cannot give which gives ranges and keeps nothing else: a key port of another program, or a Redis.

use keywright_session::Mode;
use keywright_store::{KeySpec, RawSnowflakeSettings};

use crate::config::configured::Configured;
use crate::config::port::Port;

/// That something needs more.
pub(super) fn problem(what: &str) -> String {
    format!(
        "{what} needs a store that keeps more than ranges of tags, which one at redis:// does not"
    )
}

/// All of that.
pub(super) fn problems(
    rules: &[Configured],
    ports: &[Port],
    snowflake: &RawSnowflakeSettings,
) -> Vec<String> {
    let mut problems = Vec::new();
    for rule in rules {
        let name = rule.name();
        if !is_given(&rule.spec) {
            problems.push(problem(&format!("rule for {name}: key \"{}\"", rule.spec)));
        }
        // What went by is noted there for the other programs.
        if rule.rule.mode == Mode::Observe {
            problems.push(problem(&format!("rule for {name}: mode = \"observe\"")));
        }
    }
    for port in ports {
        let bind = &port.bind;
        for (name, spec) in port.keys.iter().filter(|(_, spec)| !is_given(spec)) {
            problems.push(problem(&format!("listener {bind}: {name} = \"{spec}\"")));
        }
        if port.has_users {
            problems.push(problem(&format!("listener {bind}: users = true")));
        }
        if port.order.is_some() {
            problems.push(problem(&format!("listener {bind}: cluster_address")));
        }
    }
    for (option, is_there) in [
        ("worker_id", snowflake.worker_id.is_some()),
        ("worker_id_env", snowflake.worker_id_env.is_some()),
        ("worker_id_from_host", snowflake.worker_id_from_host),
        ("worker_id_table", snowflake.worker_id_table.is_some()),
        ("leased_worker_ids", snowflake.leased_worker_ids.is_some()),
        ("fed_worker_ids", snowflake.fed_worker_ids.is_some()),
        (
            "assigned_worker_ids",
            snowflake.assigned_worker_ids.is_some(),
        ),
    ] {
        if is_there {
            problems.push(problem(&format!("{option} in [snowflake]")));
        }
    }
    problems
}

/// Whether such keys are made of ranges, or of nothing that a store keeps.
fn is_given(spec: &KeySpec) -> bool {
    match spec {
        KeySpec::Segment(_) | KeySpec::Stride(_) | KeySpec::Uuid { .. } => true,
        KeySpec::Snowflake | KeySpec::Readable(_) => false,
    }
}
