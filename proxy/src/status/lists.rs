//! The lists.

use keywright_session::{List, Mode};
use keywright_store::{Remaining, SourceStats};

use super::{Status, VERSION};
use crate::metrics::{Metric, RuleFigures};

type Row = Vec<Option<String>>;

const FIGURES: &[&str] = &["Variable_name", "Value"];
const RULES: &[&str] = &[
    "Rule",
    "Mode",
    "Key",
    "Held",
    "Rewritten",
    "Observed",
    "Passed",
    "Refused",
    "Unseen_ids",
];
const SOURCES: &[&str] = &[
    "Source",
    "Issued",
    "Rate_per_s",
    "Remaining_keys",
    "Bound_remaining_ms",
    "Step",
    "Refills",
    "Refill_failures",
    "Waits",
    "Wait_us",
    "Refused",
    "Worker_id",
    "Store",
    "Trouble",
];
const CONNECTIONS: &[&str] = &["Connection", "Listener", "Client", "User", "Age_s", "Rules"];

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn yes_or_no(is: bool) -> Option<String> {
    text(if is { "yes" } else { "no" })
}

impl Status {
    /// Names and values of everything.
    pub(super) fn figures(&self) -> List {
        let mut rows: Vec<Row> = Vec::new();
        let mut tell = |name: String, value: String| rows.push(vec![Some(name), Some(value)]);
        let counters = self.counters();
        tell("version".to_owned(), VERSION.to_owned());
        tell("uptime_s".to_owned(), self.uptime_s().to_string());
        tell("connections".to_owned(), counters.open().to_string());
        tell(
            "connections_total".to_owned(),
            counters.value(Metric::Accepted, []).to_string(),
        );
        for store in self.stores() {
            let figure = match store.name.as_str() {
                "" => "store_up".to_owned(),
                name => format!("store.{name}.up"),
            };
            if let Some(is_up) = store.is_up {
                tell(figure, u8::from(is_up).to_string());
            }
        }
        if let Some(is_on) = self.is_on_kept_ranges() {
            tell("on_kept_ranges".to_owned(), u8::from(is_on).to_string());
        }
        for rule in counters.rules() {
            for (figure, value) in [
                ("rewritten", rule.rewritten),
                ("refused", rule.refused),
                ("passed", rule.passed),
                ("observed", rule.observed),
            ] {
                let name = if rule.name.is_empty() {
                    format!("no_rule.{figure}")
                } else {
                    format!("rule.{}.{figure}", rule.name)
                };
                tell(name, value.to_string());
            }
        }
        for source in self.sources() {
            for (figure, value) in of_source(&source) {
                tell(format!("source.{}.{figure}", source.name), value);
            }
        }
        List {
            columns: FIGURES,
            rows,
        }
    }

    /// The rules in force, and what became of statements on their tables.
    pub(super) fn rules(&self) -> List {
        let figures = self.counters().rules();
        let of = |name: &str| figures.iter().find(|figures| figures.name == name);
        let count = |figures: Option<&RuleFigures>, read: fn(&RuleFigures) -> u64| {
            text(figures.map_or(0, read))
        };
        let snapshot = self.snapshot();
        let rows = snapshot.listed().iter().map(|rule| {
            let figures = of(&rule.name);
            vec![
                text(&rule.name),
                text(match rule.mode {
                    Mode::Rewrite => "rewrite",
                    Mode::Observe => "observe",
                }),
                text(&rule.key),
                yes_or_no(rule.is_held),
                count(figures, |of| of.rewritten),
                count(figures, |of| of.observed),
                count(figures, |of| of.passed),
                count(figures, |of| of.refused),
                count(figures, |of| of.unseen),
            ]
        });
        List {
            columns: RULES,
            rows: rows.collect(),
        }
    }

    /// Clients that have logged in.
    pub(super) fn connections(&self) -> List {
        let in_force = self.snapshot().version();
        let mut rows: Vec<Row> = Vec::new();
        for listener in self.counters().listeners() {
            rows.extend(listener.clients().iter().map(|client| {
                vec![
                    text(client.number),
                    text(&listener.bind),
                    client.address.map_or_else(|| text("unix"), text),
                    text(client.user()),
                    text(client.since.elapsed().as_secs()),
                    text(client.follows(in_force).name()),
                ]
            }));
        }
        List {
            columns: CONNECTIONS,
            rows,
        }
    }

    /// Where keys come from.
    pub(super) fn source_list(&self) -> List {
        let rows = self.sources().into_iter().map(|of| {
            let (keys, ms) = match of.remaining {
                Remaining::Keys(left) => (text(left), None),
                Remaining::Ms(left) => (None, text(left)),
            };
            vec![
                text(&of.name),
                text(of.issued),
                text(of.rate_per_s),
                keys,
                ms,
                text(of.step),
                text(of.refills),
                text(of.refill_failures),
                text(of.waits),
                text(of.wait_us),
                text(of.refused),
                of.worker_id.and_then(text),
                text(of.store),
                of.trouble,
            ]
        });
        List {
            columns: SOURCES,
            rows: rows.collect(),
        }
    }
}

fn of_source(source: &SourceStats) -> Vec<(&'static str, String)> {
    let remaining = match source.remaining {
        Remaining::Keys(left) => ("remaining", left),
        Remaining::Ms(left) => ("bound_remaining_ms", left),
    };
    let figures = [
        remaining,
        ("issued", source.issued),
        ("rate_per_s", source.rate_per_s),
        ("refills", source.refills),
        ("waits", source.waits),
        ("wait_us", source.wait_us),
        ("refused", source.refused),
    ];
    let mut all: Vec<_> = figures
        .map(|(name, value)| (name, value.to_string()))
        .into();
    all.extend(source.worker_id.map(|id| ("worker_id", id.to_string())));
    all.extend(source.trouble.clone().map(|trouble| ("trouble", trouble)));
    all
}
