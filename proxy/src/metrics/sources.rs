//! The series of sources of keys.

use std::time::Duration;

use keywright_store::{Remaining, SourceStats, WAIT_BOUNDS_US};
use prometheus::proto::{LabelPair, MetricFamily, MetricType};

use super::family::{counter, family, gauge, histogram, label, number};

/// Milliseconds of a second.
const MS_PER_S: f64 = 1e3;

/// Which source it is, and of which store, where that has a name.
fn labels_of(of: &SourceStats) -> Vec<LabelPair> {
    let mut labels = vec![label("source", &of.name)];
    if !of.store.is_empty() {
        labels.push(label("store", &of.store));
    }
    labels
}

/// Whether a source has all its series: not one that reserves numbers and that nobody has asked for a key yet, of which there may be thousands. Such a
/// source has those that say whether it could give keys, and the one that an alert takes the rate of. Sources whose keys are made of time are few, and
/// what an alert goes by, steps of the clock, happens to them without a request.
fn is_asked(of: &SourceStats) -> bool {
    match of.remaining {
        Remaining::Keys(_) => of.issued > 0 || of.refused > 0 || of.waits > 0,
        Remaining::Ms(_) => true,
    }
}

/// A figure of all sources of keys.
fn each(
    sources: &[SourceStats],
    figure: fn(&SourceStats) -> f64,
) -> impl Iterator<Item = (Vec<LabelPair>, f64)> + '_ {
    let sample = move |of: &SourceStats| (labels_of(of), figure(of));
    sources.iter().map(sample)
}

/// A figure of those that have all series.
fn asked(
    sources: &[SourceStats],
    figure: fn(&SourceStats) -> f64,
) -> impl Iterator<Item = (Vec<LabelPair>, f64)> + '_ {
    let asked = sources.iter().filter(|of| is_asked(of));
    asked.map(move |of| (labels_of(of), figure(of)))
}

/// A figure that only some of them have.
fn some(
    sources: &[SourceStats],
    figure: fn(&SourceStats) -> Option<f64>,
) -> impl Iterator<Item = (Vec<LabelPair>, f64)> + '_ {
    let sample = move |of: &SourceStats| Some((labels_of(of), figure(of)?));
    sources.iter().filter_map(sample)
}

/// The keys of all sources: those that were given and those that are left.
pub(super) fn of_keys(sources: &[SourceStats]) -> [MetricFamily; 7] {
    [
        counter(
            "keys_issued_total",
            "Keys issued.",
            asked(sources, |of| number(of.issued)),
        ),
        gauge(
            "keys_remaining",
            "Keys left in memory, for sources that reserve numbers.",
            some(sources, |of| match of.remaining {
                Remaining::Keys(left) => Some(number(left)),
                Remaining::Ms(_) => None,
            }),
        ),
        gauge(
            "tag_left",
            "Ids of the source's tag, up to its largest, that were not reserved yet at this program's last reservation. Not of ranges out of a key port.",
            some(sources, |of| {
                of.tag_left.filter(|_| is_asked(of)).map(number)
            }),
        ),
        gauge(
            "bound_remaining_seconds",
            "Time left below the durable bound, for sources whose keys are made of time.",
            some(sources, |of| match of.remaining {
                Remaining::Keys(_) => None,
                Remaining::Ms(left) => Some(number(left) / MS_PER_S),
            }),
        ),
        gauge(
            "keys_per_second",
            "Rate over the last reservation.",
            asked(sources, |of| number(of.rate_per_s)),
        ),
        counter(
            "keys_refused_total",
            "Requests for keys that failed.",
            each(sources, |of| number(of.refused)),
        ),
        counter(
            "clock_steps_total",
            "How often the clock was set, forward or back, for sources whose keys are made of time.",
            some(sources, |of| match of.remaining {
                Remaining::Keys(_) => None,
                Remaining::Ms(_) => Some(number(of.clock_steps)),
            }),
        ),
    ]
}

/// How sources get more of them.
pub(super) fn of_refills(sources: &[SourceStats]) -> [MetricFamily; 6] {
    [
        gauge(
            "source_trouble",
            "1 while the source cannot reserve: the store is away or refuses, or the source is suspended; else 0.",
            each(sources, |of| f64::from(u8::from(of.trouble.is_some()))),
        ),
        gauge(
            "step",
            "Size of the next reservation.",
            asked(sources, |of| number(of.step)),
        ),
        counter(
            "refills_total",
            "Reservations made in the store.",
            asked(sources, |of| number(of.refills)),
        ),
        counter(
            "refill_failures_total",
            "Reservations that failed.",
            asked(sources, |of| number(of.refill_failures)),
        ),
        counter(
            "waits_total",
            "Statements that waited for a reservation.",
            asked(sources, |of| number(of.waits)),
        ),
        key_waits(sources),
    ]
}

/// How long statements waited for keys.
fn key_waits(sources: &[SourceStats]) -> MetricFamily {
    let samples = sources.iter().filter(|of| is_asked(of)).map(|of| {
        let labels = labels_of(of);
        let classes: (&[u64], &[u64]) = (&WAIT_BOUNDS_US, &of.waited);
        histogram(labels, classes, Duration::from_micros(of.wait_us))
    });
    family(
        "key_wait_seconds",
        "How long statements waited for a reservation.",
        MetricType::HISTOGRAM,
        samples.collect(),
    )
}

#[cfg(test)]
mod tests {
    use keywright_store::{Remaining, SourceStats, WAIT_BOUNDS_US};

    use super::{of_keys, of_refills};

    fn unused(remaining: Remaining) -> SourceStats {
        SourceStats {
            name: "segment:orders".to_owned(),
            store: String::new(),
            issued: 0,
            is_standby: false,
            remaining,
            step: 100,
            tag_left: Some(1_000),
            refills: 1,
            refill_failures: 0,
            waits: 0,
            wait_us: 0,
            waited: [0; WAIT_BOUNDS_US.len() + 1],
            clock_steps: 0,
            refused: 0,
            rate_per_s: 0,
            worker_id: None,
            trouble: None,
        }
    }

    /// The families in which a source has a series.
    fn names(source: &SourceStats) -> Vec<String> {
        let sources = std::slice::from_ref(source);
        let families = of_keys(sources).into_iter().chain(of_refills(sources));
        let with_series = families.filter(|family| !family.get_metric().is_empty());
        with_series.map(|family| family.name().to_owned()).collect()
    }

    #[test]
    fn a_source_that_nobody_asks_has_few_series() {
        let source = unused(Remaining::Keys(100));
        let few = [
            "keywright_keys_remaining",
            "keywright_keys_refused_total",
            "keywright_source_trouble",
        ];
        assert_eq!(names(&source), few);
        let all = names(&SourceStats {
            issued: 1,
            ..source.clone()
        });
        assert_eq!(all.len(), 11, "{all:?}");
        for asked in [
            SourceStats {
                refused: 1,
                ..source.clone()
            },
            SourceStats { waits: 1, ..source },
        ] {
            assert_eq!(names(&asked), all);
        }
        let of_time = names(&unused(Remaining::Ms(100)));
        assert!(of_time.contains(&"keywright_clock_steps_total".to_owned()));
        assert!(of_time.contains(&"keywright_keys_issued_total".to_owned()));
    }
}
