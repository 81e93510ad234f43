//! The pages of the documentation that follow from the program: configuration, metrics, command line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use keywright_core::slot::SlotGroups;
use keywright_proxy::config::Config;
use keywright_proxy::metrics::{Counters, Metric};
use keywright_session::{Event, StatementOutcome};
use keywright_store::{
    FeedStats, GroupStats, OrderStats, Remaining, SourceStats, StoreUp, WAIT_BOUNDS_US,
};
use keywright_testkit::docs::{generated_part, table};
use serde_json::{Map, Value};

#[test]
fn the_configuration_reference_is_made_of_the_types() -> Result<()> {
    let schema = serde_json::to_value(Config::schema())?;
    let sections = object(&schema, "properties")?;
    let mut text = String::new();
    // As in the sample, which says first where keys come from.
    for name in [
        "store",
        "snowflake",
        "listener",
        "rule",
        "hidden_tag",
        "feed",
        "metrics",
        "status",
        "limits",
    ] {
        let section = sections
            .get(name)
            .with_context(|| format!("no section {name}"))?;
        let is_list = section.get("type").is_some_and(|kind| kind == "array");
        let inner = resolved(&schema, section)?;
        let title = if is_list {
            format!("[[{name}]]")
        } else {
            format!("[{name}]")
        };
        let _ = writeln!(text, "## `{title}`\n\n{}\n", description(inner));
        let required: Vec<&str> = inner
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        // A section's default holds those of its options.
        let whole = section.get("default");
        let rows = object(inner, "properties")?.iter().map(|(option, of)| {
            let default = of.get("default").or_else(|| whole?.get(option));
            let default = match default {
                _ if required.contains(&option.as_str()) => "required".to_owned(),
                None | Some(Value::Null) => String::new(),
                Some(value) => format!("`{value}`"),
            };
            [format!("`{option}`"), kind(of), default, description(of)]
        });
        let _ = writeln!(
            text,
            "{}",
            table(["option", "type", "default", "meaning"], rows)
        );
    }
    assert_eq!(sections.len(), 9, "a section is not documented");
    generated_part("docs/reference/configuration.md", "configuration", &text)
}

/// Where `$ref`, `items` and `anyOf` lead.
fn resolved<'a>(schema: &'a Value, of: &'a Value) -> Result<&'a Value> {
    if let Some(reference) = of.get("$ref").and_then(Value::as_str) {
        let pointer = reference
            .strip_prefix('#')
            .context("a reference elsewhere")?;
        let there = schema.pointer(pointer).context("a reference to nothing")?;
        return resolved(schema, there);
    }
    if let Some(items) = of.get("items").filter(|items| items.get("$ref").is_some()) {
        return resolved(schema, items);
    }
    if let Some([one, _null]) = of.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        return resolved(schema, one);
    }
    Ok(of)
}

fn object<'a>(of: &'a Value, key: &str) -> Result<&'a Map<String, Value>> {
    let found = of.get(key).and_then(Value::as_object);
    found.with_context(|| format!("no object {key}"))
}

fn description(of: &Value) -> String {
    let text = of.get("description").and_then(Value::as_str);
    text.unwrap_or_default().replace('\n', " ")
}

fn kind(of: &Value) -> String {
    let names: Vec<&str> = match of.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let known = names.iter().find(|name| **name != "null");
    match known.copied() {
        Some("array") => "list of strings".to_owned(),
        Some("object") => "table".to_owned(),
        Some("integer") => bounded(of),
        Some(name) => name.to_owned(),
        None => String::new(),
    }
}

/// A number with what it must be between.
fn bounded(of: &Value) -> String {
    let bound = |which: &str| of.get(which).and_then(Value::as_i64);
    match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!("integer, {least} to {most}"),
        (Some(least @ 1..), None) => format!("integer, at least {least}"),
        (Some(_) | None, _) => "integer".to_owned(),
    }
}

/// A family of figures: what it is, and the labels of its series.
#[derive(Default)]
struct Family {
    help: String,
    kind: String,
    labels: Vec<String>,
}

#[test]
fn the_page_of_metrics_lists_what_is_served() -> Result<()> {
    let mut rows = Vec::new();
    for (name, family) in families(&everything()?) {
        let labels = family.labels.iter().map(|label| format!("`{label}`"));
        let labels: Vec<String> = labels.collect();
        rows.push([
            format!("`{name}`"),
            family.kind,
            labels.join(", "),
            family.help,
        ]);
    }
    let text = table(["metric", "type", "labels", "meaning"], rows);
    generated_part("docs/reference/metrics.md", "metrics", &text)
}

/// Figures of a program to which everything has happened that is counted.
fn everything() -> Result<String> {
    let counters = Counters::default();
    counters.opened();
    counters.set(Metric::FenceMissing, ["127.0.0.1:6033"], 1);
    counters.certificates([("127.0.0.1:6033".to_owned(), 1)].into_iter());
    let port = "127.0.0.1:6399";
    counters.set(Metric::PortConnections, [port], 1);
    counters.add(Metric::PortRequests, [port], 1);
    counters.add(Metric::PortKeys, [port, "orders"], 1);
    counters.add(Metric::PortRefused, [port, "orders", "tag_exhausted"], 1);
    counters.add(Metric::PortCutOff, [port, "idle"], 1);
    counters
        .listens("127.0.0.1:6033", "127.0.0.1:3306")
        .tried(true);
    counters.reloaded(true, UNIX_EPOCH);
    counters.switching(false, None);
    let tally = counters.tally(["shop.orders.id"].into_iter());
    let all = [
        StatementOutcome::Rewritten,
        StatementOutcome::Observed,
        StatementOutcome::Refused("x"),
        StatementOutcome::Passed("x"),
    ];
    let event = |outcome| Event {
        rule: Some(0),
        outcome,
    };
    tally.note(&mut all.map(event).to_vec());
    let port = counters.port("127.0.0.1:6399");
    port.name("orders").took(1, Duration::from_millis(1));
    let source = |remaining| SourceStats {
        name: format!("{remaining:?}"),
        issued: 1,
        store: "main".to_owned(),
        is_standby: false,
        remaining,
        step: 1,
        tag_left: Some(1),
        refills: 1,
        refill_failures: 1,
        waits: 1,
        wait_us: 1,
        waited: [1; WAIT_BOUNDS_US.len() + 1],
        clock_steps: 1,
        refused: 1,
        rate_per_s: 1,
        worker_id: None,
        trouble: None,
    };
    let sources = [source(Remaining::Keys(1)), source(Remaining::Ms(1))];
    let feeds = [FeedStats {
        server: "127.0.0.1:5432".to_owned(),
        is_up: true,
        ranges: 1,
        ids: 1,
        lost: 1,
        trouble: None,
    }];
    let stores = [StoreUp {
        name: "main".to_owned(),
        address: String::new(),
        is_up: Some(true),
    }];
    let order = OrderStats {
        groups: vec![GroupStats {
            group: SlotGroups::ONE.of(b"orders"),
            is_active: true,
            epoch: 1,
        }],
        confirmations: 1,
        confirm_us: 1,
        confirmed: 1,
        unconfirmed: 1,
    };
    Ok(counters.render((&sources, &feeds), Some(&order), (&stores, Some(false)))?)
}

fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, help)) = line
            .strip_prefix("# HELP ")
            .and_then(|of| of.split_once(' '))
        {
            families.entry(name.to_owned()).or_default().help = help.to_owned();
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|of| of.split_once(' '))
        {
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((name, rest)) = line.split_once('{')
            && let Some((labels, _)) = rest.split_once('}')
        {
            let names = labels
                .split(',')
                .filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
            // A histogram is three series, one of them by the bounds of its classes.
            let family = name.strip_suffix("_bucket").unwrap_or(name);
            if let Some(family) = families.get_mut(family) {
                family.labels = names.filter(|name| name != "le").collect();
            }
        }
    }
    families
}

#[test]
fn the_page_of_the_command_line_is_the_programs_help() -> Result<()> {
    let mut text = format!("```text\n{}\n```\n", help(&[])?);
    let commands: [&[&str]; 30] = [
        &["run"],
        &["check"],
        &["init"],
        &["advance"],
        &["tag"],
        &["tag", "alter"],
        &["tag", "drop"],
        &["tag", "move"],
        &["tag", "number"],
        &["tag", "key"],
        &["store"],
        &["store", "restored"],
        &["worker"],
        &["worker", "assign"],
        &["worker", "list"],
        &["worker", "release"],
        &["worker", "advance"],
        &["user"],
        &["user", "add"],
        &["user", "set-password"],
        &["user", "grant"],
        &["user", "revoke"],
        &["user", "remove"],
        &["user", "list"],
        &["explain"],
        &["release"],
        &["decode"],
        &["generate"],
        &["generate", "completions"],
        &["generate", "man"],
    ];
    for command in commands {
        let _ = write!(
            text,
            "\n## keywright {}\n\n```text\n{}\n```\n",
            command.join(" "),
            help(command)?
        );
    }
    let groups = commands.iter().filter(|command| command.len() == 1);
    for group in groups.copied().chain([&[] as &[&str]]) {
        let listed = help(group)?;
        let Some((_, listed)) = listed.split_once("Commands:\n") else {
            continue;
        };
        let (listed, _) = listed.split_once("\n\n").context("no options")?;
        let documented = commands
            .iter()
            .filter(|command| command.len() == group.len() + 1 && command.starts_with(group));
        assert_eq!(
            listed.lines().count(),
            documented.count() + 1,
            "a command behind {group:?} is not documented"
        );
    }
    generated_part("docs/reference/command-line.md", "help", &text)
}

fn help(command: &[&str]) -> Result<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_keywright"))
        .args(command)
        .arg("--help")
        .output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    Ok(lines.join("\n"))
}
