//! What the proxy counts, and where that is told: over HTTP, and by `SHOW KEYWRIGHT`.

mod counted;
mod family;
mod http;
mod latency;
mod open;
mod page;
pub mod port;
mod render;
mod sources;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use keywright_session::{Event, SchemaChanges, StatementOutcome, Traffic};

use crate::metrics::open::OpenConnection;
use crate::metrics::port::PortFigures;
use crate::schema::NewTables;
use crate::status::clients::ListenerFigures;

pub use counted::Metric;
use counted::{AllSeries, locked};
pub(crate) use http::serve;

/// What happened since the start. All threads add to it.
#[derive(Debug, Default)]
pub struct Counters {
    series: Arc<AllSeries>,
    open: AtomicU64,
    /// Connections of MySQL listeners among them.
    open_at_listeners: Arc<AtomicU64>,
    /// The last reload since the start, and the configuration that was read then.
    reload: Mutex<Option<Reload>>,
    /// By rule; those that were in force earlier stay.
    rules: Mutex<BTreeMap<String, Arc<RuleCounters>>>,
    /// The program's part in switches; `None`: no rule of it is switched.
    switching: Mutex<Option<SwitchFigures>>,
    /// By place in the configuration.
    listeners: Mutex<Vec<Arc<ListenerFigures>>>,
    /// Those of key ports, by address.
    ports: Mutex<BTreeMap<String, Arc<PortFigures>>>,
    /// What connections tell each other of changed tables.
    pub schema: Arc<SchemaChanges>,
    /// Where statements on tables that are new wait for what the servers say of these.
    pub new_tables: Arc<NewTables>,
    /// What connections have under way on the tables of rules.
    pub traffic: Arc<Traffic>,
}

/// How a reload went, or the start, which reads the configuration too.
#[derive(Debug, Clone, Copy)]
pub struct Reload {
    /// Whether what the file says was taken.
    pub is_success: bool,
    /// When it ended.
    pub at: SystemTime,
}

/// How far the switch of tables to what the configuration wants has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchFigures {
    /// Statements on tables wait for an attempt.
    pub in_progress: bool,
    /// What keeps the configuration from being in force, as the log says it.
    pub trouble: Option<String>,
}

/// What became of statements on the tables of one rule.
#[derive(Debug)]
struct RuleCounters {
    rule: String,
    series: Arc<AllSeries>,
    rewritten: Arc<AtomicU64>,
    observed: Arc<AtomicU64>,
    refused: ByConstruct,
    passed: ByConstruct,
    /// Ids that the server made for statements at most, and statements of which nobody knows how many.
    native: AtomicU64,
    native_unknown: AtomicU64,
}

/// Where statements of one rule are counted, by the constructs that were met.
type ByConstruct = Mutex<BTreeMap<&'static str, Arc<AtomicU64>>>;

/// The counters that the connections of one set of rules add to.
#[derive(Debug)]
pub struct Tally {
    rules: Vec<Arc<RuleCounters>>,
    no_rule: Arc<RuleCounters>,
}

/// The label of statements that were refused before their rule was known.
const NO_RULE: &str = "";

impl RuleCounters {
    fn new(series: &Arc<AllSeries>, rule: &str) -> Self {
        let is_rule = rule != NO_RULE;
        for metric in Metric::of_each_rule().filter(|_| is_rule) {
            series.counter(metric, &[rule]);
        }
        let own = |metric| match is_rule {
            true => series.counter(metric, &[rule]),
            // No statement gets keys before its rule is known.
            false => Arc::default(),
        };
        Self {
            rule: rule.to_owned(),
            rewritten: own(Metric::Rewritten),
            observed: own(Metric::Observed),
            series: Arc::clone(series),
            refused: Mutex::default(),
            passed: Mutex::default(),
            native: AtomicU64::new(0),
            native_unknown: AtomicU64::new(0),
        }
    }

    /// One more statement with a construct.
    fn count_construct(&self, metric: Metric, counts: &ByConstruct, construct: &'static str) {
        let mut counts = locked(counts);
        let count = counts
            .entry(construct)
            .or_insert_with(|| self.series.counter(metric, &[&self.rule, construct]));
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for Tally {
    /// For connections without rules, whose figures nobody reads.
    fn default() -> Self {
        Counters::default().tally(std::iter::empty())
    }
}

impl Tally {
    /// What became of statements; leaves `events` empty.
    #[inline]
    pub fn note(&self, events: &mut Vec<Event>) {
        // There are none of most statements.
        if !events.is_empty() {
            self.note_all(events);
        }
    }

    fn note_all(&self, events: &mut Vec<Event>) {
        for Event { rule, outcome } in events.drain(..) {
            let counters = rule
                .and_then(|rule| self.rules.get(rule))
                .unwrap_or(&self.no_rule);
            let add = |count: &AtomicU64, more| {
                count.fetch_add(more, Ordering::Relaxed);
            };
            match outcome {
                StatementOutcome::Rewritten => add(&counters.rewritten, 1),
                StatementOutcome::Observed => add(&counters.observed, 1),
                StatementOutcome::Native(Some(ids)) => add(&counters.native, ids),
                StatementOutcome::Native(None) => add(&counters.native_unknown, 1),
                StatementOutcome::Refused(construct) => {
                    counters.count_construct(Metric::Refused, &counters.refused, construct);
                }
                StatementOutcome::Passed(construct) => {
                    counters.count_construct(Metric::Passed, &counters.passed, construct);
                }
            }
        }
    }
}

/// What went by natively on the tables of one rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Native {
    /// Ids that the server made for it at most.
    pub ids_max: u64,
    /// Statements of which nobody knows how many.
    pub unknown: u64,
}

/// The figures of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFigures {
    /// The rule's tables and column.
    pub name: String,
    /// Statements that got keys.
    pub rewritten: u64,
    /// Statements that would have got keys.
    pub observed: u64,
    /// Statements that were refused.
    pub refused: u64,
    /// The same, by construct.
    pub refused_constructs: BTreeMap<&'static str, u64>,
    /// Statements that were passed without keys, as the rule says.
    pub passed: u64,
    /// Ids of its tables that came by no program.
    pub unseen: u64,
}

impl Counters {
    /// A client has connected.
    pub fn opened(&self) {
        self.add(Metric::Accepted, [], 1);
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    /// A client has gone.
    pub fn closed(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Clients that are connected, of every kind.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }

    /// A client of a MySQL listener has come; how many of these there are with it. A key port counts its own: who fills
    /// it without a login must keep nobody from the servers.
    pub(crate) fn opened_at_listener(&self) -> (OpenConnection, u64) {
        OpenConnection::count(&self.open_at_listeners)
    }

    /// Counts something, by the values of its labels.
    pub fn add<const LABELS: usize>(&self, metric: Metric, labels: [&str; LABELS], more: u64) {
        let value = self.series.counter(metric, &labels);
        value.fetch_add(more, Ordering::Relaxed);
    }

    /// How much of something there is now.
    pub fn set<const LABELS: usize>(&self, metric: Metric, labels: [&str; LABELS], value: u64) {
        let series = self.series.counter(metric, &labels);
        series.store(value, Ordering::Relaxed);
    }

    /// When certificates expire, by their listeners, seconds since 1970. Of all others nothing is told any more.
    pub fn certificates(&self, expiries: impl Iterator<Item = (String, u64)>) {
        self.series.replace(Metric::CertificateExpiry, expiries);
    }

    /// What was counted of it since the start, or is there now.
    pub fn value<const LABELS: usize>(&self, metric: Metric, labels: [&str; LABELS]) -> u64 {
        self.series.read(metric, &labels)
    }

    /// A place where clients come in, and the server behind it.
    pub fn listens(&self, bind: &str, upstream: &str) -> Arc<ListenerFigures> {
        let listener = Arc::new(ListenerFigures::new(bind, upstream));
        locked(&self.listeners).push(Arc::clone(&listener));
        listener
    }

    /// These places.
    pub(crate) fn listeners(&self) -> Vec<Arc<ListenerFigures>> {
        locked(&self.listeners).clone()
    }

    /// A key port. It goes on where it was after another reading of the configuration.
    pub fn port(&self, bind: &str) -> Arc<PortFigures> {
        let mut ports = locked(&self.ports);
        let figures = ports
            .entry(bind.to_owned())
            .or_insert_with(|| Arc::new(PortFigures::new(&self.series, bind)));
        Arc::clone(figures)
    }

    /// All of them.
    fn ports(&self) -> Vec<Arc<PortFigures>> {
        locked(&self.ports).values().cloned().collect()
    }

    /// The configuration was read, at the start or by SIGHUP.
    pub fn reloaded(&self, is_success: bool, at: SystemTime) {
        *locked(&self.reload) = Some(Reload { is_success, at });
    }

    /// The last time that the configuration was read.
    pub fn last_reload(&self) -> Option<Reload> {
        *locked(&self.reload)
    }

    /// A step of a switch was done, or there was none to do.
    pub fn switching(&self, in_progress: bool, trouble: Option<String>) {
        *locked(&self.switching) = Some(SwitchFigures {
            in_progress,
            trouble,
        });
    }

    /// How far the switch has come; `None`: no rule is switched.
    pub fn switch(&self) -> Option<SwitchFigures> {
        locked(&self.switching).clone()
    }

    /// Where the connections that follow these rules count. A rule of the same name goes on counting where it was.
    pub fn tally<'a>(&self, rules: impl Iterator<Item = &'a str>) -> Tally {
        let mut there = locked(&self.rules);
        let mut of = |name: &str| {
            let counters = there
                .entry(name.to_owned())
                .or_insert_with(|| Arc::new(RuleCounters::new(&self.series, name)));
            Arc::clone(counters)
        };
        Tally {
            rules: rules.map(&mut of).collect(),
            no_rule: of(NO_RULE),
        }
    }

    /// What went by natively on a rule's tables since the start.
    pub fn native(&self, rule: &str) -> Native {
        let rules = locked(&self.rules);
        let load = |name: &str, of: fn(&RuleCounters) -> &AtomicU64| {
            rules
                .get(name)
                .map_or(0, |its| of(its).load(Ordering::Relaxed))
        };
        Native {
            ids_max: load(rule, |of| &of.native),
            unknown: load(rule, |of| &of.native_unknown) + load(NO_RULE, |of| &of.native_unknown),
        }
    }

    /// The figures of all rules.
    pub fn rules(&self) -> Vec<RuleFigures> {
        let load = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let each = |counts: &ByConstruct| -> BTreeMap<&'static str, u64> {
            let counts = locked(counts);
            counts.iter().map(|(name, of)| (*name, load(of))).collect()
        };
        locked(&self.rules)
            .iter()
            .map(|(name, counters)| {
                let refused_constructs = each(&counters.refused);
                RuleFigures {
                    name: name.clone(),
                    rewritten: load(&counters.rewritten),
                    observed: load(&counters.observed),
                    refused: refused_constructs.values().sum(),
                    refused_constructs,
                    passed: each(&counters.passed).values().sum(),
                    unseen: self.series.read(Metric::IdsUnseen, &[name]),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_listeners_and_of_each_key_port_are_counted_apart() {
        let counters = Counters::default();
        let (one, other) = (counters.port("127.0.0.1:1"), counters.port("127.0.0.1:2"));
        let (first, open) = one.opened();
        assert_eq!(open, 1);
        let (second, open) = one.opened();
        assert_eq!(open, 2);
        let (third, open) = other.opened();
        assert_eq!(open, 1);
        let (fourth, open) = counters.opened_at_listener();
        assert_eq!(open, 1);
        drop((second, fourth));
        let (_fifth, open) = counters.opened_at_listener();
        assert_eq!((open, one.open(), other.open()), (1, 1, 1));
        drop((first, third));
        assert_eq!((one.open(), other.open()), (0, 0));
    }

    #[test]
    fn rules_and_constructs_are_counted_apart() {
        let counters = Counters::default();
        counters.opened();
        let event = |rule, outcome| Event { rule, outcome };
        for _ in 0..2 {
            // Also after the rules were read again.
            let tally = counters.tally(["a.b", "c.d"].into_iter());
            let mut events = vec![
                event(Some(1), StatementOutcome::Rewritten),
                event(Some(1), StatementOutcome::Rewritten),
                event(Some(0), StatementOutcome::Refused("insert … select")),
                event(None, StatementOutcome::Refused("load \"data\"")),
                event(Some(0), StatementOutcome::Passed("charset")),
            ];
            tally.note(&mut events);
            assert!(events.is_empty());
        }
        counters.set(Metric::FenceMissing, ["127.0.0.1:6033"], 3);
        let text = counters.render((&[], &[]), None, (&[], None)).unwrap();
        for expected in [
            "# HELP keywright_connections Clients that are connected.\n\
             # TYPE keywright_connections gauge\n\
             keywright_connections 1\n\
             # HELP keywright_connections_total Clients that were accepted.\n\
             # TYPE keywright_connections_total counter\n\
             keywright_connections_total 1\n",
            "keywright_statements_rewritten_total{rule=\"a.b\"} 0\n",
            "keywright_statements_rewritten_total{rule=\"c.d\"} 4\n",
            "keywright_statements_refused_total{rule=\"a.b\",construct=\"insert … select\"} 2\n",
            "keywright_statements_refused_total{rule=\"\",construct=\"load \\\"data\\\"\"} 2\n",
            "keywright_statements_passed_total{rule=\"a.b\",construct=\"charset\"} 2\n",
            "keywright_fence_missing{listener=\"127.0.0.1:6033\"} 3\n",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
