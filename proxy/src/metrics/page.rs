//! The page at `/`, and the figures that it shows, as JSON.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use keywright_store::{Remaining, SourceStats};
use serde::Serialize;

use super::{Metric, RuleFigures};
use crate::status::clients::Follows;
use crate::status::{Status, VERSION};

/// One file without outside assets; it asks for `/status.json` again and again.
pub(super) const HTML: &str = include_str!("page.html");

#[derive(Serialize)]
struct Page<'a> {
    version: &'a str,
    uptime_s: u64,
    ready: bool,
    /// Why not.
    trouble: &'a str,
    connections: u64,
    connections_total: u64,
    reload: Option<LastReload>,
    switch_in_progress: bool,
    switch_trouble: Option<String>,
    stores: Vec<Store<'a>>,
    listeners: Vec<Listener<'a>>,
    sources: Vec<Source<'a>>,
    rules: Vec<Rule<'a>>,
}

#[derive(Serialize)]
struct LastReload {
    success: bool,
    ago_s: u64,
}

#[derive(Serialize)]
struct Store<'a> {
    name: &'a str,
    address: &'a str,
    up: Option<bool>,
}

#[derive(Serialize)]
struct Listener<'a> {
    bind: &'a str,
    upstream: &'a str,
    upstream_up: Option<bool>,
    clients: usize,
    /// Of these, those that follow earlier rules.
    clients_earlier: usize,
    fences_missing: u64,
}

#[derive(Serialize)]
struct Source<'a> {
    name: &'a str,
    store: &'a str,
    issued: u64,
    rate_per_s: u64,
    step: u64,
    remaining_keys: Option<u64>,
    remaining_ms: Option<u64>,
    /// How long that lasts at the last rate.
    cover_s: Option<u64>,
    refills: u64,
    refill_failures: u64,
    refused: u64,
    worker_id: Option<u32>,
    trouble: Option<&'a str>,
}

#[derive(Serialize)]
struct Rule<'a> {
    name: &'a str,
    rewritten: u64,
    observed: u64,
    refused: u64,
    passed: u64,
    unseen: u64,
    constructs: &'a BTreeMap<&'static str, u64>,
}

/// All that the page shows, with whether the program is ready, and why not.
pub(super) fn status(
    status: &Status,
    (ready, trouble): (bool, &str),
) -> Result<String, serde_json::Error> {
    let counters = status.counters();
    let (sources, rules, stores) = (status.sources(), counters.rules(), status.stores());
    let in_force = status.snapshot().version();
    let listeners = counters.listeners();
    let switch = counters.switch();
    let switch_in_progress = switch.as_ref().is_some_and(|of| of.in_progress);
    let page = Page {
        version: VERSION,
        uptime_s: status.uptime_s(),
        ready,
        trouble: if ready { "" } else { trouble.trim_end() },
        connections: counters.open(),
        connections_total: counters.value(Metric::Accepted, []),
        reload: counters.last_reload().map(|reload| LastReload {
            success: reload.is_success,
            ago_s: ago(reload.at).as_secs(),
        }),
        switch_in_progress,
        switch_trouble: switch.and_then(|of| of.trouble),
        stores: stores
            .iter()
            .map(|of| Store {
                name: &of.name,
                address: &of.address,
                up: of.is_up,
            })
            .collect(),
        listeners: listeners
            .iter()
            .map(|of| {
                let clients = of.clients();
                let earlier = clients
                    .iter()
                    .filter(|client| client.follows(in_force) == Follows::Earlier);
                Listener {
                    bind: &of.bind,
                    upstream: &of.upstream,
                    upstream_up: of.is_up(),
                    clients: clients.len(),
                    clients_earlier: earlier.count(),
                    fences_missing: counters.value(Metric::FenceMissing, [&of.bind]),
                }
            })
            .collect(),
        sources: sources.iter().map(of_source).collect(),
        rules: rules.iter().map(of_rule).collect(),
    };
    serde_json::to_string(&page)
}

fn ago(at: SystemTime) -> Duration {
    SystemTime::now().duration_since(at).unwrap_or_default()
}

fn of_source(of: &SourceStats) -> Source<'_> {
    let (keys, ms) = match of.remaining {
        Remaining::Keys(left) => (Some(left), None),
        Remaining::Ms(left) => (None, Some(left)),
    };
    Source {
        name: &of.name,
        store: &of.store,
        issued: of.issued,
        rate_per_s: of.rate_per_s,
        step: of.step,
        remaining_keys: keys,
        remaining_ms: ms,
        cover_s: keys.and_then(|left| left.checked_div(of.rate_per_s)),
        refills: of.refills,
        refill_failures: of.refill_failures,
        refused: of.refused,
        worker_id: of.worker_id,
        trouble: of.trouble.as_deref(),
    }
}

fn of_rule(of: &RuleFigures) -> Rule<'_> {
    Rule {
        name: &of.name,
        rewritten: of.rewritten,
        observed: of.observed,
        refused: of.refused,
        passed: of.passed,
        unseen: of.unseen,
        constructs: &of.refused_constructs,
    }
}
