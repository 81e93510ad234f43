//! Metrics that are counted where something happens. Each has its row here, and is counted with [`Counters::add`](super::Counters::add);
//! nothing else has to know of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::proto::MetricFamily;

use super::family::{counter, gauge, label, number};

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Clients that were accepted.
    Accepted,
    /// Clients that were turned away.
    TurnedAway,
    /// Schema refreshes that failed, each of one server.
    SchemaRefreshFailures,
    /// Ids of a rule's tables that came by no program.
    IdsUnseen,
    /// Tables of a rule that came late, with ids that may be keys.
    LateTables,
    /// Statements that got keys.
    Rewritten,
    /// Statements that would have got keys.
    Observed,
    /// Statements that were refused.
    Refused,
    /// Statements that were passed without keys.
    Passed,
    /// Tables without fence that should have one.
    FenceMissing,
    /// When a listener's certificate expires.
    CertificateExpiry,
    /// Clients of a key port.
    PortConnections,
    /// Requests that a key port read.
    PortRequests,
    /// Keys of a name that it gave.
    PortKeys,
    /// Requests that it refused.
    PortRefused,
    /// Connections that it ended.
    PortCutOff,
}

/// What Prometheus is told of a metric.
struct Row {
    name: &'static str,
    help: &'static str,
    /// Whether it can fall.
    is_gauge: bool,
    /// The names of its labels. With `rule` alone, every rule has its series from the start.
    labels: &'static [&'static str],
}

/// The label that a rule's name is the value of.
const RULE: &[&str] = &["rule"];

const fn total(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Row {
    Row {
        name,
        help,
        is_gauge: false,
        labels,
    }
}

impl Metric {
    /// All of them, in the order in which they are served.
    const ALL: [Self; 16] = [
        Self::Accepted,
        Self::TurnedAway,
        Self::SchemaRefreshFailures,
        Self::IdsUnseen,
        Self::LateTables,
        Self::Rewritten,
        Self::Observed,
        Self::Refused,
        Self::Passed,
        Self::FenceMissing,
        Self::CertificateExpiry,
        Self::PortConnections,
        Self::PortRequests,
        Self::PortKeys,
        Self::PortRefused,
        Self::PortCutOff,
    ];

    const fn row(self) -> Row {
        match self {
            Self::Accepted => total("connections_total", &[], "Clients that were accepted."),
            Self::TurnedAway => total(
                "connections_refused_total",
                &[],
                "Clients turned away at connections_max.",
            ),
            Self::SchemaRefreshFailures => total(
                "schema_refresh_failures_total",
                &[],
                "Schema refreshes that failed, each of one server.",
            ),
            Self::IdsUnseen => total(
                "ids_unseen_total",
                RULE,
                "Ids of tables whose rule observes, and that came by no INSERT through a program.",
            ),
            Self::LateTables => total(
                "late_tables_total",
                RULE,
                "Tables that came while their rule gives keys, with ids of their own that keys may have, too.",
            ),
            Self::Rewritten => total(
                "statements_rewritten_total",
                RULE,
                "Statements that got keys.",
            ),
            Self::Observed => total(
                "statements_observed_total",
                RULE,
                "Statements that would have got keys.",
            ),
            Self::Refused => total(
                "statements_refused_total",
                &["rule", "construct"],
                "Statements that were refused; without a rule where it was not known yet.",
            ),
            Self::Passed => total(
                "statements_passed_total",
                &["rule", "construct"],
                "Statements that passed without keys, as the rule says.",
            ),
            Self::FenceMissing => Row {
                name: "fence_missing",
                help: "Tables that should have a fence and have none, at the last schema refresh.",
                is_gauge: true,
                labels: &["listener"],
            },
            Self::CertificateExpiry => Row {
                name: "certificate_expiry_timestamp_seconds",
                help: "When the certificate of the listener expires, seconds since 1970.",
                is_gauge: true,
                labels: &["listener"],
            },
            Self::PortConnections => Row {
                name: "port_connections",
                help: "Clients that are connected to a key port.",
                is_gauge: true,
                labels: &["listener"],
            },
            Self::PortRequests => total(
                "port_requests_total",
                &["listener"],
                "Requests that a key port read, of every kind.",
            ),
            Self::PortKeys => total(
                "port_keys_total",
                &["listener", "name"],
                "Keys that a key port issued under a name.",
            ),
            Self::PortRefused => total(
                "port_refused_total",
                &["listener", "name", "cause"],
                "Requests that a key port refused, of every kind, by cause; without a name where they name none that the port has, or where the command was refused first.",
            ),
            Self::PortCutOff => total(
                "port_cut_off_total",
                &["listener", "why"],
                "Connections that a key port ended, by reason: no valid request, too long, silent, replies not read, no password, too many wrong passwords, user removed, too many connections.",
            ),
        }
    }

    /// Those that each rule has from the start.
    pub(super) fn of_each_rule() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|metric| metric.row().labels == RULE)
    }
}

/// What is counted is never half written: whoever panicked with it left it whole.
pub(super) fn locked<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// By the values of a metric's labels.
type Series = BTreeMap<Vec<String>, Arc<AtomicU64>>;

/// The values of all metrics.
#[derive(Debug)]
pub(super) struct AllSeries(Mutex<BTreeMap<Metric, Series>>);

impl Default for AllSeries {
    fn default() -> Self {
        let made = Self(Mutex::default());
        for metric in Metric::ALL {
            if metric.row().labels.is_empty() {
                made.counter(metric, &[]);
            }
        }
        made
    }
}

impl AllSeries {
    /// Where a series is counted; it begins at 0.
    pub(super) fn counter(&self, metric: Metric, labels: &[&str]) -> Arc<AtomicU64> {
        debug_assert_eq!(labels.len(), metric.row().labels.len(), "{metric:?}");
        let labels = labels.iter().map(ToString::to_string).collect();
        let mut all = locked(&self.0);
        let series = all.entry(metric).or_default();
        Arc::clone(series.entry(labels).or_default())
    }

    /// These are the series of a metric with one label from now on, and no others.
    pub(super) fn replace(&self, metric: Metric, values: impl Iterator<Item = (String, u64)>) {
        let series = values.map(|(of, value)| (vec![of], Arc::new(AtomicU64::new(value))));
        let series: Series = series.collect();
        locked(&self.0).insert(metric, series);
    }

    /// The value of a series; 0 where it is not there.
    pub(super) fn read(&self, metric: Metric, labels: &[&str]) -> u64 {
        let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
        let all = locked(&self.0);
        let value = all.get(&metric).and_then(|series| series.get(&labels));
        value.map_or(0, |value| value.load(Ordering::Relaxed))
    }

    /// The values of a metric that are there, by those of its labels.
    fn values(&self, metric: Metric) -> BTreeMap<Vec<String>, u64> {
        let all = locked(&self.0);
        let series = all.get(&metric).into_iter().flatten();
        let value = |of: &AtomicU64| of.load(Ordering::Relaxed);
        series
            .map(|(labels, of)| (labels.clone(), value(of)))
            .collect()
    }

    /// As Prometheus reads them.
    pub(super) fn families(&self) -> impl Iterator<Item = MetricFamily> + '_ {
        Metric::ALL.into_iter().map(|metric| {
            let row = metric.row();
            let samples = self.values(metric).into_iter().map(|(labels, value)| {
                let labels = row.labels.iter().zip(&labels);
                let labels = labels.map(|(name, value)| label(name, value)).collect();
                (labels, number(value))
            });
            match row.is_gauge {
                true => gauge(row.name, row.help, samples),
                false => counter(row.name, row.help, samples),
            }
        })
    }
}
