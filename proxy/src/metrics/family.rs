//! Families of series, as Prometheus's client crate has them.

use prometheus::proto::{self, LabelPair, Metric, MetricFamily, MetricType};

/// Values are doubles to Prometheus: exact below 2^53.
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

/// A label with its value.
pub(super) fn label(name: &str, value: &str) -> LabelPair {
    let mut label = LabelPair::default();
    label.set_name(name.to_owned());
    label.set_value(value.to_owned());
    label
}

/// Values that only grow, with their labels.
pub(super) fn counter(
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (Vec<LabelPair>, f64)>,
) -> MetricFamily {
    let samples = samples.into_iter().map(|(labels, value)| {
        let mut count = proto::Counter::default();
        count.set_value(value);
        let mut metric = Metric::from_label(labels);
        metric.set_counter(count);
        metric
    });
    family(name, help, MetricType::COUNTER, samples.collect())
}

/// Values that rise and fall, with their labels.
pub(super) fn gauge(
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (Vec<LabelPair>, f64)>,
) -> MetricFamily {
    let samples = samples.into_iter().map(|(labels, value)| {
        let mut level = proto::Gauge::default();
        level.set_value(value);
        let mut metric = Metric::from_label(labels);
        metric.set_gauge(level);
        metric
    });
    family(name, help, MetricType::GAUGE, samples.collect())
}

/// A metric with all its series.
pub(super) fn family(
    name: &str,
    help: &str,
    kind: MetricType,
    samples: Vec<Metric>,
) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(format!("keywright_{name}"));
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(samples);
    family
}
