//! What a key port counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use keywright_core::Cause;
use prometheus::proto;

use super::counted::{AllSeries, Metric, locked};
use super::family::{histogram, label};
use super::latency::{BOUNDS_US, Latency};
use super::open::OpenConnection;

/// Names of one key port that have a latency, the first that are asked for: each is more than a dozen of series.
const LATENCY_NAMES_MAX: usize = 1_000;

/// The figures of one key port.
#[derive(Debug)]
pub struct PortFigures {
    of: Arc<PortSeries>,
    requests: Arc<AtomicU64>,
    open: Arc<AtomicU64>,
    names: Mutex<BTreeMap<String, Arc<NameFigures>>>,
}

/// Where a key port has its series.
#[derive(Debug)]
struct PortSeries {
    bind: String,
    all: Arc<AllSeries>,
    /// Names that were asked for.
    asked: AtomicUsize,
}

/// The figures of one name. It has series from its first request on: a port may have thousands of names that nobody asks for.
#[derive(Debug)]
pub struct NameFigures {
    name: String,
    of: Arc<PortSeries>,
    /// Keys that were given, once there were any.
    given: OnceLock<Arc<AtomicU64>>,
    /// How long requests took, once there were any; inside: the name is one of those that have it.
    latency: OnceLock<Option<Latency>>,
    /// The number that was given last; 0: none was.
    last: AtomicU64,
    /// Whether the log says why its clients get nothing, which they are not told.
    logged: AtomicBool,
}

/// Why the program ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutOff {
    /// What it sent is no request, or too long.
    Protocol,
    /// It was silent.
    Idle,
    /// It read nothing of its replies.
    Unread,
    /// It did not say the password, or speak TLS, in time, or asked again and again without.
    Login,
    /// It said wrong passwords again and again.
    Guesses,
    /// Its user was removed, or has another password.
    User,
    /// The head of a request did not come in time.
    Head,
    /// There are as many as may be.
    Full,
}

impl CutOff {
    const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Idle => "idle",
            Self::Unread => "unread",
            Self::Login => "login",
            Self::Guesses => "guesses",
            Self::User => "user",
            Self::Head => "head",
            Self::Full => "full",
        }
    }
}

impl PortFigures {
    pub(super) fn new(series: &Arc<AllSeries>, bind: &str) -> Self {
        let of = PortSeries {
            bind: bind.to_owned(),
            all: Arc::clone(series),
            asked: AtomicUsize::new(0),
        };
        Self {
            of: Arc::new(of),
            requests: series.counter(Metric::PortRequests, &[bind]),
            open: series.counter(Metric::PortConnections, &[bind]),
            names: Mutex::default(),
        }
    }

    /// Those of a name. They go on where they were after another reading of the configuration.
    pub fn name(&self, name: &str) -> Arc<NameFigures> {
        let mut names = locked(&self.names);
        let figures = names.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(NameFigures {
                name: name.to_owned(),
                of: Arc::clone(&self.of),
                given: OnceLock::new(),
                latency: OnceLock::new(),
                last: AtomicU64::new(0),
                logged: AtomicBool::new(false),
            })
        });
        Arc::clone(figures)
    }

    /// A client has come; how many there are with it.
    pub(crate) fn opened(&self) -> (OpenConnection, u64) {
        OpenConnection::count(&self.open)
    }

    /// Clients that are connected.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }

    /// So many requests were read.
    pub(crate) fn requests(&self, more: u64) {
        self.requests.fetch_add(more, Ordering::Relaxed);
    }

    /// A request was refused; without a name where it names none that there is.
    pub(crate) fn refused(&self, name: &str, cause: Cause) {
        let labels = [self.of.bind.as_str(), name, cause.name()];
        let refused = self.of.all.counter(Metric::PortRefused, &labels);
        refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was ended.
    pub(crate) fn cut_off(&self, why: CutOff) {
        let labels = [self.of.bind.as_str(), why.name()];
        let ended = self.of.all.counter(Metric::PortCutOff, &labels);
        ended.fetch_add(1, Ordering::Relaxed);
    }

    /// How long requests for keys of each name took.
    pub(super) fn latencies(&self) -> Vec<proto::Metric> {
        let names = locked(&self.names);
        let latencies = names.iter().filter_map(|(name, figures)| {
            let latency = figures.latency.get()?.as_ref()?;
            let labels = vec![label("listener", &self.of.bind), label("name", name)];
            let classes = latency.classes();
            Some(histogram(labels, (&BOUNDS_US, &classes), latency.sum()))
        });
        latencies.collect()
    }
}

impl NameFigures {
    /// So many requests for its keys took so long each, from when their turn came until they were answered, with keys or without.
    pub fn took(&self, count: u64, each: Duration) {
        let latency = self.latency.get_or_init(|| {
            let before = self.of.asked.fetch_add(1, Ordering::Relaxed);
            (before < LATENCY_NAMES_MAX).then(Latency::default)
        });
        if let Some(latency) = latency {
            latency.add(count, each);
        }
    }

    /// Whether the log is still to say why its clients get nothing. It says so once.
    pub(crate) fn is_to_be_logged(&self) -> bool {
        !self.logged.swap(true, Ordering::Relaxed)
    }

    /// So many keys were given.
    pub(crate) fn gave(&self, count: u64) {
        let given = self.given.get_or_init(|| {
            let labels = [self.of.bind.as_str(), self.name.as_str()];
            self.of.all.counter(Metric::PortKeys, &labels)
        });
        given.fetch_add(count, Ordering::Relaxed);
    }

    /// This number is the last of them.
    pub(crate) fn gave_last(&self, number: u64) {
        self.last.store(number, Ordering::Relaxed);
    }

    /// The number that was given last.
    pub(crate) fn last(&self) -> Option<u64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|last| *last != 0)
    }

    /// How many keys were given.
    pub(crate) fn given(&self) -> u64 {
        let given = self.given.get();
        given.map_or(0, |given| given.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{AllSeries, LATENCY_NAMES_MAX, PortFigures};

    #[test]
    fn names_have_series_from_their_first_request_on() {
        let series = Arc::new(AllSeries::default());
        let figures = PortFigures::new(&series, "127.0.0.1:6399");
        let names: Vec<_> = (0..10_000)
            .map(|name| figures.name(&format!("name-{name}")))
            .collect();
        let with_keys = || {
            let mut families = series.families();
            let keys = families.find(|family| family.name() == "keywright_port_keys_total");
            keys.map_or(0, |keys| keys.get_metric().len())
        };
        assert_eq!((with_keys(), figures.latencies().len()), (0, 0));
        // The last of them is one of the first that are asked for.
        let last = names.last().unwrap();
        last.took(1, Duration::ZERO);
        assert_eq!((with_keys(), figures.latencies().len()), (0, 1));
        assert_eq!(last.given(), 0);
        last.gave(2);
        last.gave(3);
        assert_eq!((with_keys(), last.given()), (1, 5));
    }

    #[test]
    fn so_many_names_have_a_latency_and_no_more() {
        let figures = PortFigures::new(&Arc::new(AllSeries::default()), "127.0.0.1:6399");
        for name in 0..LATENCY_NAMES_MAX + 10 {
            figures
                .name(&format!("name-{name}"))
                .took(1, Duration::ZERO);
        }
        // As often as it is read.
        figures.name("name-0").took(1, Duration::ZERO);
        let latencies = figures.latencies();
        assert_eq!(latencies.len(), LATENCY_NAMES_MAX);
        let counts = latencies
            .iter()
            .map(|of| of.get_histogram().get_sample_count());
        assert_eq!(counts.max(), Some(2));
    }
}
