//! Figures as Prometheus reads them. What happens is counted in atomics of our own; families and their text are the client crate's.

use std::time::{Duration, SystemTime};

use keywright_store::{
    FeedStats, GroupStats, OrderStats, Remaining, SourceStats, StoreUp, WAIT_BOUNDS_US,
};
use prometheus::TextEncoder;
use prometheus::proto::{LabelPair, MetricFamily, MetricType};

use super::family::{counter, family, gauge, histogram, label, number};
use super::{Counters, Reload, SwitchFigures};
use crate::status::VERSION;
use crate::status::clients::{Follows, ListenerFigures};

/// Milliseconds of a second.
const MS_PER_S: f64 = 1e3;
/// Microseconds of a second.
const US_PER_S: f64 = 1e6;

impl Counters {
    /// All of it, what the sources of keys and the servers that are fed count, how the program stands for the lease of ordered tags if it does,
    /// whether each store answers where that is known, and whether the program goes on without it with what was kept, as Prometheus reads it.
    ///
    /// # Errors
    /// The encoder refuses a family: a fault of this program.
    pub fn render(
        &self,
        (sources, feeds): (&[SourceStats], &[FeedStats]),
        order: Option<&OrderStats>,
        (stores, is_on_kept_ranges): (&[StoreUp], Option<bool>),
    ) -> prometheus::Result<String> {
        let mut families = vec![of_build()];
        families.push(self.of_open());
        families.extend(self.series.families());
        families.push(self.of_port_latencies());
        families.extend(self.of_listeners());
        families.extend(self.of_reload());
        families.extend(self.of_switch());
        families.push(of_stores(stores));
        families.push(of_kept_ranges(is_on_kept_ranges));
        families.extend(of_keys(sources));
        families.extend(of_refills(sources));
        families.extend(of_feeds(feeds));
        families.extend(of_order(order));
        // The format has no family without a series.
        families.retain(|family| !family.get_metric().is_empty());
        TextEncoder::new().encode_to_string(&families)
    }

    fn of_open(&self) -> MetricFamily {
        let open = [(Vec::new(), number(self.open()))];
        gauge("connections", "Clients that are connected.", open)
    }

    fn of_port_latencies(&self) -> MetricFamily {
        let ports = self.ports();
        let latencies = ports.iter().flat_map(|port| port.latencies());
        family(
            "port_request_seconds",
            "How long requests for keys of a name took at a key port, from their turn to their answer, with keys or without.",
            MetricType::HISTOGRAM,
            latencies.collect(),
        )
    }

    fn of_listeners(&self) -> [MetricFamily; 2] {
        let listeners = self.listeners();
        let in_force = self.traffic.version();
        let labelled = |of: &ListenerFigures| label("listener", &of.bind);
        let up = listeners.iter().filter_map(|of| {
            let is_up = of.is_up()?;
            Some((vec![labelled(of)], f64::from(u8::from(is_up))))
        });
        let clients = listeners.iter().flat_map(|of| {
            let mut by = [0; Follows::ALL.len()];
            for client in of.clients() {
                let follows = client.follows(in_force);
                let counts = Follows::ALL.iter().zip(&mut by);
                counts
                    .filter(|(of, _)| **of == follows)
                    .for_each(|(_, count)| *count += 1);
            }
            let samples = Follows::ALL.into_iter().zip(by);
            samples.map(|(follows, count)| {
                let labels = vec![labelled(of), label("rules", follows.name())];
                (labels, number(count))
            })
        });
        [
            gauge(
                "upstream_up",
                "1 if the server greeted at the last attempt to connect; else 0.",
                up,
            ),
            gauge(
                "clients",
                "Clients that have logged in, by the rules that they follow: current, earlier, or none.",
                clients,
            ),
        ]
    }

    fn of_reload(&self) -> [MetricFamily; 2] {
        let last = self.last_reload();
        let success = last.map(|reload| (Vec::new(), f64::from(u8::from(reload.is_success))));
        let since = |reload: Reload| reload.at.duration_since(SystemTime::UNIX_EPOCH);
        let at = last.and_then(|reload| since(reload).ok());
        [
            gauge(
                "last_reload_success",
                "1 if the configuration was applied when it was last read, at the start or by SIGHUP; else 0.",
                success,
            ),
            gauge(
                "last_reload_timestamp_seconds",
                "When the configuration was last read, seconds since 1970.",
                at.map(|at| (Vec::new(), at.as_secs_f64())),
            ),
        ]
    }

    fn of_switch(&self) -> [MetricFamily; 2] {
        let figures = self.switch();
        let either = |is: bool| [(Vec::new(), f64::from(u8::from(is)))];
        let figure = |of: fn(&SwitchFigures) -> bool| figures.as_ref().map(of).map(either);
        [
            gauge(
                "switch_in_progress",
                "1 while statements wait for tables to go over to keys, or back; else 0.",
                figure(|of| of.in_progress).into_iter().flatten(),
            ),
            gauge(
                "switch_trouble",
                "1 while rules cannot be brought into force; else 0. The log and the status page say why.",
                figure(|of| of.trouble.is_some()).into_iter().flatten(),
            ),
        ]
    }
}

fn of_build() -> MetricFamily {
    gauge(
        "build_info",
        "1. The label is the program's version.",
        [(vec![label("version", VERSION)], 1.0)],
    )
}

fn of_stores(stores: &[StoreUp]) -> MetricFamily {
    let up = stores.iter().filter_map(|of| {
        let labels = match of.name.as_str() {
            "" => Vec::new(),
            name => vec![label("store", name)],
        };
        Some((labels, f64::from(u8::from(of.is_up?))))
    });
    gauge(
        "store_up",
        "1 if the store accepted the program's last login and answered its last request; else 0.",
        up,
    )
}

fn of_kept_ranges(is_on: Option<bool>) -> MetricFamily {
    gauge(
        "on_kept_ranges",
        "1 while the program uses kept ranges, because the store has not answered since its start; else 0.",
        is_on.map(|is_on| (Vec::new(), f64::from(u8::from(is_on)))),
    )
}

/// The leases of those who give keys of ordered tags, where the program stands for them.
fn of_order(order: Option<&OrderStats>) -> [MetricFamily; 7] {
    let each = |figure: fn(&OrderStats) -> f64| order.map(|of| (Vec::new(), figure(of)));
    let groups = || order.into_iter().flat_map(|of| &of.groups);
    let of_group = |figure: fn(&GroupStats) -> f64| {
        let group = |of: &GroupStats| vec![label("group", &of.group.number().to_string())];
        groups().map(move |of| (group(of), figure(of)))
    };
    [
        gauge(
            "order_active",
            "Number of slot groups for which this program issues keys of ordered tags; 1 or 0 where slots are not divided.",
            each(|of| {
                let active = of.groups.iter().map(|of| u64::from(of.is_active));
                number(active.sum())
            }),
        ),
        gauge(
            "order_epoch",
            "Take-overs of ordered tags by programs of the store, as far as this program has seen, of all slot groups together.",
            each(|of| {
                let epochs = of.groups.iter().map(|of| of.epoch);
                number(epochs.fold(0, u64::saturating_add))
            }),
        ),
        gauge(
            "order_group_active",
            "1 while this program issues keys of ordered tags of the slot group; else 0.",
            of_group(|of| f64::from(u8::from(of.is_active))),
        ),
        gauge(
            "order_group_epoch",
            "Take-overs of ordered tags of the slot group by programs of the store, as far as this program has seen.",
            of_group(|of| number(of.epoch)),
        ),
        counter(
            "order_confirmations_total",
            "Confirmations: writes in the store that released replies with keys of strict tags.",
            each(|of| number(of.confirmations)),
        ),
        counter(
            "order_confirm_seconds_total",
            "Time of all confirmations together.",
            each(|of| number(of.confirm_us) / US_PER_S),
        ),
        counter(
            "order_confirmed_total",
            "Replies that confirmations released: of one request, or of all requests of a connection that were read together.",
            each(|of| number(of.confirmed)),
        ),
    ]
}

/// The PostgreSQL servers whose tags are fed.
fn of_feeds(feeds: &[FeedStats]) -> [MetricFamily; 5] {
    let each = |figure: fn(&FeedStats) -> f64| {
        let sample = move |of: &FeedStats| (vec![label("server", &of.server)], figure(of));
        feeds.iter().map(sample)
    };
    [
        gauge(
            "feed_up",
            "1 if the server answered the last request for its demand; else 0.",
            each(|of| f64::from(u8::from(of.is_up))),
        ),
        gauge(
            "feed_trouble",
            "1 while a tag or a database that needs ids gets none; else 0. The log says why.",
            each(|of| f64::from(u8::from(of.trouble.is_some()))),
        ),
        counter(
            "fed_ranges_total",
            "Ranges of ids and of time that the server accepted.",
            each(|of| number(of.ranges)),
        ),
        counter(
            "fed_ids_total",
            "Ids in the ranges that the server accepted.",
            each(|of| number(of.ids)),
        ),
        counter(
            "fed_ranges_lost_total",
            "Reserved ranges that the server did not accept, or whose acceptance is unknown.",
            each(|of| number(of.lost)),
        ),
    ]
}

/// Which source it is, and of which store, where that has a name.
fn labels_of(of: &SourceStats) -> Vec<LabelPair> {
    let mut labels = vec![label("source", &of.name)];
    if !of.store.is_empty() {
        labels.push(label("store", &of.store));
    }
    labels
}

/// A figure of all sources of keys.
fn each(
    sources: &[SourceStats],
    figure: fn(&SourceStats) -> f64,
) -> impl Iterator<Item = (Vec<LabelPair>, f64)> + '_ {
    let sample = move |of: &SourceStats| (labels_of(of), figure(of));
    sources.iter().map(sample)
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
fn of_keys(sources: &[SourceStats]) -> [MetricFamily; 7] {
    [
        counter(
            "keys_issued_total",
            "Keys issued.",
            each(sources, |of| number(of.issued)),
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
            some(sources, |of| of.tag_left.map(number)),
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
            each(sources, |of| number(of.rate_per_s)),
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
fn of_refills(sources: &[SourceStats]) -> [MetricFamily; 6] {
    [
        gauge(
            "source_trouble",
            "1 while the source cannot reserve: the store is away or refuses, or the source is suspended; else 0.",
            each(sources, |of| f64::from(u8::from(of.trouble.is_some()))),
        ),
        gauge(
            "step",
            "Size of the next reservation.",
            each(sources, |of| number(of.step)),
        ),
        counter(
            "refills_total",
            "Reservations made in the store.",
            each(sources, |of| number(of.refills)),
        ),
        counter(
            "refill_failures_total",
            "Reservations that failed.",
            each(sources, |of| number(of.refill_failures)),
        ),
        counter(
            "waits_total",
            "Statements that waited for a reservation.",
            each(sources, |of| number(of.waits)),
        ),
        key_waits(sources),
    ]
}

/// How long statements waited for keys.
fn key_waits(sources: &[SourceStats]) -> MetricFamily {
    let samples = sources.iter().map(|of| {
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
