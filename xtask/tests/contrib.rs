//! Alerts and the dashboard name metrics that the program serves, and say what they show. The forge's workflow names what it runs of others by digest.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context;
use keywright_testkit::{Result, workspace_root};
use serde_json::Value;

const PREFIX: &str = "keywright_";
const ALERTS: &str = "contrib/prometheus/keywright.rules.yml";
const DASHBOARD: &str = "contrib/grafana/keywright.json";
const WORKFLOW: &str = ".github/workflows/ci.yml";

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
    for file in ["contrib/prometheus/keywright.rules.yml", DASHBOARD] {
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

#[test]
fn the_runbook_goes_by_alert() -> Result<()> {
    let root = workspace_root();
    let rules = fs::read_to_string(root.join(ALERTS))?;
    let runbook = fs::read_to_string(root.join("docs/operations/runbook.md"))?;
    let alerts: Vec<_> = rules
        .lines()
        .filter_map(|line| line.split_once("- alert: ").map(|(_, name)| name.trim()))
        .collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    let is_named = |alert: &&str| runbook.contains(&format!("`{alert}`"));
    let missing: Vec<_> = alerts.iter().filter(|alert| !is_named(alert)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Its table names no alert that is gone.
    let rows = runbook
        .lines()
        .filter(|line| line.starts_with("| `Keywright"));
    for row in rows {
        let names = row.split('|').nth(1).context("no first cell")?;
        for name in names.split('`').skip(1).step_by(2) {
            assert!(alerts.contains(&name), "{name}");
        }
    }
    Ok(())
}

/// An alert goes by the name of the job, which whoever scrapes chooses.
#[test]
fn the_job_of_alerts_is_the_one_that_the_page_shows() -> Result<()> {
    let root = workspace_root();
    let rules = fs::read_to_string(root.join(ALERTS))?;
    let page = fs::read_to_string(root.join("docs/reference/metrics.md"))?;
    let jobs: BTreeSet<_> = rules
        .split("job=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    for job in jobs {
        assert!(page.contains(&format!("job_name: {job} ")), "{job}");
    }
    Ok(())
}

/// The columns and rows of a panel's place that it covers.
fn place(panel: &Value) -> BTreeSet<(u64, u64)> {
    let of = |name: &str| panel["gridPos"][name].as_u64().unwrap_or(0);
    let columns = of("x")..of("x") + of("w");
    let rows = move || of("y")..of("y") + of("h");
    columns.flat_map(|x| rows().map(move |y| (x, y))).collect()
}

#[test]
fn panels_say_what_they_show() -> Result<()> {
    let text = fs::read_to_string(workspace_root().join(DASHBOARD))?;
    let dashboard: Value = serde_json::from_str(&text)?;
    let is_said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let (mut ids, mut covered) = (BTreeSet::new(), BTreeSet::new());
    let panels = dashboard["panels"].as_array().context("no panels")?;
    for panel in panels {
        let title = &panel["title"];
        for said in [
            title,
            &panel["description"],
            &panel["fieldConfig"]["defaults"]["unit"],
        ] {
            assert!(is_said(said), "{panel:#}");
        }
        let targets = panel["targets"].as_array().context("no targets")?;
        assert!(!targets.is_empty(), "{title}");
        for target in targets {
            for said in [&target["refId"], &target["expr"], &target["legendFormat"]] {
                assert!(is_said(said), "{title}: {target:#}");
            }
        }
        assert!(
            ids.insert(panel["id"].as_u64()),
            "{title}: another panel has its id"
        );
        for square in place(panel) {
            assert!(square.0 < 24, "{title} is wider than the page");
            assert!(covered.insert(square), "{title} covers another panel");
        }
    }
    assert!(ids.len() > 10, "{ids:?}");
    Ok(())
}

#[test]
fn actions_of_others_are_named_by_digest() -> Result<()> {
    let text = fs::read_to_string(workspace_root().join(WORKFLOW))?;
    let used: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once("uses: ").map(|(_, action)| action))
        .collect();
    assert!(used.len() > 3, "{used:?}");
    for action in used {
        let (digest, version) = action
            .split_once('@')
            .and_then(|(_, digest)| digest.split_once(" # v"))
            .with_context(|| format!("{action}: no digest, with its version behind it"))?;
        let is_digest = digest.len() == 40 && digest.chars().all(|of| of.is_ascii_hexdigit());
        assert!(is_digest && !version.is_empty(), "{action}");
    }
    Ok(())
}
