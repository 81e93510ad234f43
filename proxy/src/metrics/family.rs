//! Families of series, as Prometheus's client crate has them.

use std::time::Duration;

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

/// A series of how long things took: how many there are in each class, by upper bounds in microseconds, of which the last class has none;
/// and all of it together.
pub(super) fn histogram(
    labels: Vec<LabelPair>,
    (bounds_us, classes): (&[u64], &[u64]),
    sum: Duration,
) -> Metric {
    let mut up_to = 0;
    let mut buckets = Vec::with_capacity(bounds_us.len());
    for (bound_us, count) in bounds_us.iter().zip(classes) {
        up_to += count;
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(Duration::from_micros(*bound_us).as_secs_f64());
        bucket.set_cumulative_count(up_to);
        buckets.push(bucket);
    }
    let mut histogram = proto::Histogram::default();
    histogram.set_bucket(buckets);
    histogram.set_sample_count(classes.iter().sum());
    histogram.set_sample_sum(sum.as_secs_f64());
    let mut metric = Metric::from_label(labels);
    metric.set_histogram(histogram);
    metric
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
