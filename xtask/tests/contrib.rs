//! Alerts and the dashboard name metrics that the program serves.

use std::collections::BTreeSet;
use std::fs;

use keywright_testkit::{Result, workspace_root};

const PREFIX: &str = "keywright_";

/// The metrics that a text names.
fn metrics(text: &str) -> BTreeSet<String> {
    let name = |(at, _)| {
        let is_part = |char: &char| char.is_ascii_lowercase() || *char == '_';
        text[at..].chars().take_while(is_part).collect()
    };
    text.match_indices(PREFIX).map(name).collect()
}

#[test]
fn metrics_of_alerts_and_dashboard_exist() -> Result<()> {
    let root = workspace_root();
    let served = metrics(&fs::read_to_string(root.join("docs/reference/metrics.md"))?);
    assert!(served.len() > 15, "{served:?}");
    for file in [
        "contrib/prometheus/keywright.rules.yml",
        "contrib/grafana/keywright.json",
    ] {
        let named = metrics(&fs::read_to_string(root.join(file))?);
        assert!(named.len() > 5, "{named:?}");
        let is_served = |name: &&String| {
            // The series of a histogram.
            let parts = ["_bucket", "_sum", "_count"];
            let family = parts.iter().find_map(|part| name.strip_suffix(part));
            served.contains(*name) || family.is_some_and(|family| served.contains(family))
        };
        let unknown: Vec<_> = named.iter().filter(|name| !is_served(name)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    Ok(())
}
