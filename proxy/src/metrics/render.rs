//! Figures as Prometheus reads them. What happens is counted in atomics of our own; families and their text are the client crate's.

use std::time::SystemTime;

use keywright_store::{FeedStats, GroupStats, OrderStats, SourceStats, StoreUp};
use prometheus::TextEncoder;
use prometheus::proto::{MetricFamily, MetricType};

use super::family::{counter, family, gauge, label, number};
use super::sources::{of_keys, of_refills};
use super::{Counters, Reload, SwitchFigures};
use crate::status::VERSION;
use crate::status::clients::{Follows, ListenerFigures};

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
fn of_order(order: Option<&OrderStats>) -> [MetricFamily; 8] {
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
        counter(
            "order_unconfirmed_total",
            "Confirmations that the store did not give, because it did not answer, or may lose what it acknowledges: replies with keys of strict tags wait, or end with an error.",
            each(|of| number(of.unconfirmed)),
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
            "1 while the server cannot be reached, or a tag or a database that needs ids gets none; else 0. The log says why.",
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
