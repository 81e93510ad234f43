//! The configuration file: as written, then validated with all problems at once.

mod address;
mod bounds;
pub mod certificates;
mod configured;
mod further_stores;
mod hidden;
pub mod hosts;
mod layout_time;
mod limits;
pub mod listener;
mod no_toml;
mod place;
pub mod port;
mod problems;
mod ranges_only;
mod raw;
mod relisten;
mod rule;
mod rules;
pub mod secret_files;
pub mod tls;
mod written;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use crate::config::certificates::CertificateFile;
pub use crate::config::configured::Configured;
use crate::config::hosts::Hosts;
pub use crate::config::layout_time::LayoutTime;
use crate::config::listener::RawListener;
pub use crate::config::listener::{Listener, Unchecked};
use crate::config::place::{Place, place};
pub use crate::config::port::Port;
use crate::config::port::http;
pub use crate::config::problems::Problems;
use crate::config::secret_files::SecretFile;
use anyhow::{Context, Result};
use keywright_core::Tag;
use keywright_session::{Limits, Mode};
use keywright_store::{FeedSettings, HiddenTags, OrderSettings, RawFeed, StoreSettings};
use raw::{Raw, RawMetrics};
use rule::configured;
use rules::{settle, too_many_bits, unlike_rules};
use schemars::Schema;
use sha2::{Digest, Sha256};

/// A validated configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The store, and the layout of snowflake keys.
    pub store: StoreSettings,
    /// Where clients find servers.
    pub listeners: Vec<Listener>,
    /// Where clients find keys.
    pub ports: Vec<Port>,
    /// The rules of all listeners.
    pub rules: Vec<Configured>,
    /// PostgreSQL servers whose tags are fed.
    pub feeds: Vec<FeedSettings>,
    /// Connections at most, over all listeners that lead to servers.
    pub connections_max: u64,
    /// Sizes that every session keeps to.
    pub limits: Limits,
    /// What statements that are gathered may take of memory, over all connections, bytes.
    pub memory_bytes_max: usize,
    /// How long connecting to an upstream may take, milliseconds.
    pub connect_ms_max: u64,
    /// How long it may take from the greeting to the end of authentication, milliseconds.
    pub login_ms_max: u64,
    /// How long a client may take for each packet of its login, milliseconds.
    pub answer_ms_max: u64,
    /// How long a peer may be silent before the system asks whether it is there, seconds; 0: for ever.
    pub keepalive_s: u32,
    /// How long connections may go on after SIGTERM, milliseconds.
    pub drain_ms_max: u64,
    /// How long a program that takes over may take until it serves clients, milliseconds.
    pub take_over_wait_ms_max: u64,
    /// How often fences and triggers are looked at while the proxy runs, seconds.
    pub schema_refresh_s: u64,
    /// How long an attempt to switch tables over to keys, or back, may take, milliseconds.
    pub switch_wait_ms_max: u64,
    /// A program that the store has not heard of for so long holds no switch up, seconds.
    pub switch_peer_wait_s: u64,
    /// How long users of key ports stay in force while the store does not answer, seconds; 0: without end.
    pub users_stale_s_max: u64,
    /// Where metrics are served.
    pub metrics: Option<String>,
    /// Which hosts requests for metrics may name.
    pub metrics_hosts: Hosts,
    /// Users who get an answer to `SHOW KEYWRIGHT …`.
    pub status_users: Vec<String>,
    /// Files with passwords and keys.
    pub secret_files: Vec<SecretFile>,
    /// Files with certificates of listeners.
    pub certificates: Vec<CertificateFile>,
    /// What tells it from configurations with another text.
    pub digest: String,
}

/// How much longer than an attempt to switch tables a statement waits for its end, milliseconds: another program may have to end it,
/// and to lift fences.
const HELD_LONGER_MS: u64 = 5_000;

impl Config {
    /// What is to be said of files that it names: passwords and keys that others of the machine may read, certificates that expire.
    pub fn file_warnings(&self) -> Vec<String> {
        let exposed = self.secret_files.iter().filter_map(SecretFile::warning);
        let certificates = self.certificates.iter();
        let expiring = certificates.filter_map(CertificateFile::warning);
        exposed.chain(expiring).collect()
    }

    /// When certificates expire, by the addresses of their listeners, seconds since 1970.
    pub fn certificate_expiries(&self) -> impl Iterator<Item = (String, u64)> {
        self.certificates.iter().filter_map(CertificateFile::expiry)
    }

    /// How long a statement waits at most while tables are switched, milliseconds.
    pub fn held_ms_max(&self) -> u64 {
        self.switch_wait_ms_max.saturating_add(HELD_LONGER_MS)
    }

    /// How long a program holds a switch up of which the store hears nothing, milliseconds.
    pub fn peer_wait_ms(&self) -> u64 {
        self.switch_peer_wait_s.saturating_mul(1_000)
    }

    /// Whether it differs in what only a start takes.
    pub fn needs_restart(&self, newer: &Config) -> bool {
        let taken_at_start = |of: &Config| {
            (
                (of.connections_max, of.limits, of.memory_bytes_max),
                (of.connect_ms_max, of.login_ms_max, of.answer_ms_max),
                (of.keepalive_s, of.drain_ms_max, of.switch_wait_ms_max),
                (of.take_over_wait_ms_max, of.users_stale_s_max),
                (of.metrics.clone(), of.metrics_hosts.clone()),
                of.status_users.clone(),
            )
        };
        let mut feeds = self.feeds.iter().zip(&newer.feeds);
        taken_at_start(self) != taken_at_start(newer)
            || self.store.needs_restart(&newer.store)
            || self.feeds.len() != newer.feeds.len()
            || !feeds.all(|(old, new)| old.is_as_written(new))
    }

    /// What a running program goes by that reads a newer file: what only a start takes stays as it is.
    #[must_use]
    pub fn reloaded(&self, newer: Config) -> Config {
        Config {
            store: self.store.connected_by(&newer.store),
            listeners: newer.listeners,
            ports: newer.ports,
            rules: newer.rules,
            schema_refresh_s: newer.schema_refresh_s,
            switch_peer_wait_s: newer.switch_peer_wait_s,
            secret_files: newer.secret_files,
            certificates: newer.certificates,
            digest: newer.digest,
            ..self.clone()
        }
    }

    /// Rules that only observe.
    pub fn observing(&self) -> impl Iterator<Item = &Configured> {
        let rules = self.rules.iter();
        rules.filter(|configured| configured.rule.mode == Mode::Observe)
    }

    /// How the program stands for the lease of those who give keys of ordered tags, if it does.
    pub fn order(&self) -> Option<&OrderSettings> {
        self.ports.iter().find_map(|port| port.order.as_ref())
    }

    /// Tags whose keys go where no order can be kept: into tables, and to servers that are fed.
    pub fn unordered_tags(&self) -> Vec<Tag> {
        let of_rules = self.rules.iter().filter_map(|rule| rule.spec.tag());
        let of_feeds = self.feeds.iter().flat_map(FeedSettings::tags);
        let tags: BTreeSet<&Tag> = of_rules.chain(of_feeds).collect();
        tags.into_iter().cloned().collect()
    }

    /// All addresses that clients connect to: those of servers, then those of key ports.
    pub fn binds(&self) -> impl Iterator<Item = &str> {
        let listeners = self.listeners.iter().map(|of| of.bind.as_str());
        listeners.chain(self.ports.iter().map(|of| of.bind.as_str()))
    }

    /// Whether the store says of any keys that are given whether they may be.
    pub fn follows_the_switch(&self) -> bool {
        let mut specs = self.ports.iter().flat_map(|port| port.keys.values());
        self.rules.iter().any(|rule| rule.is_switched)
            || specs.any(|spec| self.store.followed(spec).is_some())
    }

    /// Whether a key port has users.
    pub fn has_users(&self) -> bool {
        self.ports.iter().any(|port| port.has_users)
    }

    /// The tags that rules, key ports and feeds name, each once.
    pub fn tags(&self) -> Vec<Tag> {
        let mut tags: Vec<Tag> = Vec::new();
        let mut known: BTreeSet<&Tag> = BTreeSet::new();
        let of_rules = self.rules.iter().filter_map(|rule| rule.spec.tag());
        let of_feeds = self.feeds.iter().flat_map(FeedSettings::tags);
        let of_others = self.ports.iter().flat_map(Port::tags).chain(of_feeds);
        for tag in of_rules.chain(of_others) {
            if known.insert(tag) {
                tags.push(tag.clone());
            }
        }
        tags
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or has [`Problems`].
    pub fn load(file: &Path) -> Result<Config> {
        let text = std::fs::read_to_string(file).map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::PermissionDenied => {
                    " (the user that the program runs as must be able to: chmod a+r it, with passwords in files of their own)"
                }
                _ => "",
            };
            anyhow::anyhow!("reading {}: {error}{hint}", file.display())
        })?;
        Self::of_text(&text, Some(file)).with_context(|| format!("in {}", file.display()))
    }

    /// What may be written into a file: sections, options, their types, defaults and meaning.
    #[must_use]
    pub fn schema() -> Schema {
        schemars::schema_for!(Raw)
    }

    /// Validates a text.
    ///
    /// # Errors
    /// It is no TOML, or has [`Problems`].
    pub fn parse(text: &str) -> Result<Config> {
        Self::of_text(text, None)
    }

    /// `file`: where it stands.
    fn of_text(text: &str, file: Option<&Path>) -> Result<Config> {
        let (raw, mut problems) = written::read(text)?;
        let secret_files = secret_files::secret_files(&raw, file);
        let certificates = certificates::certificates(&raw);
        let store = store_settings(&raw, &mut problems);
        // A store that only assigns worker ids to databases, or feeds them, needs none.
        let serves_databases = raw.snowflake.assigned_worker_ids.is_some() || !raw.feed.is_empty();
        if raw.listener.is_empty() && !serves_databases {
            problems.push("there is no [[listener]], and no [[feed]]".to_owned());
        }
        let binds = raw.listener.iter().map(|listener| listener.bind.clone());
        let binds: Vec<String> = binds.collect();
        let (listeners, ports) = places(raw.listener, store.as_ref(), &mut problems);
        problems.extend(order_problems(&ports, store.as_ref()));
        let metrics_hosts = metrics_hosts(raw.metrics.as_ref(), &mut problems);
        let metrics = raw.metrics.map(|metrics| metrics.bind);
        let of_metrics = metrics.as_deref();
        let of_bind = ("metrics.bind", "127.0.0.1:9306");
        problems.extend(of_metrics.and_then(|bind| address::bind_problem(of_bind, bind)));
        problems.extend(address::bound_twice(&binds, of_metrics));
        problems.extend(limits::problems(&raw.limits));
        let (mut rules, fences): (Vec<Configured>, Vec<Option<bool>>) = raw
            .rule
            .iter()
            .enumerate()
            .filter_map(|(index, rule)| Some((configured(index, rule, &mut problems)?, rule.fence)))
            .unzip();
        let feeds = feeds(&raw.feed, store.as_ref(), &mut problems);
        if let Some(store) = &store {
            problems.extend(too_many_bits(&rules, &store.layout()));
            settle(&mut rules, &fences, store, &mut problems);
            problems.extend(hidden::settle(&mut rules, &fences, &feeds, store));
            problems.extend(further_stores::problems(store, &feeds));
        }
        problems.extend(unlike_rules(&rules));
        if store.as_ref().is_some_and(StoreSettings::gives_ranges_only) {
            problems.extend(ranges_only::problems(&rules, &ports, &raw.snowflake));
        }
        match store {
            Some(store) if problems.is_empty() => Ok(Config {
                store,
                listeners,
                ports,
                rules,
                feeds,
                connections_max: raw.limits.connections_max,
                limits: Limits {
                    rewrite_bytes_max: raw.limits.rewrite_bytes_max,
                    statements_max: raw.limits.statements_max,
                    select_rows_max: raw.limits.select_rows_max,
                },
                memory_bytes_max: raw.limits.memory_bytes_max,
                connect_ms_max: raw.limits.connect_ms_max,
                login_ms_max: raw.limits.login_ms_max,
                answer_ms_max: raw.limits.answer_ms_max,
                keepalive_s: raw.limits.keepalive_s,
                drain_ms_max: raw.limits.drain_ms_max,
                take_over_wait_ms_max: raw.limits.take_over_wait_ms_max,
                schema_refresh_s: raw.limits.schema_refresh_s,
                switch_wait_ms_max: raw.limits.switch_wait_ms_max,
                switch_peer_wait_s: raw.limits.switch_peer_wait_s,
                users_stale_s_max: raw.limits.users_stale_s_max,
                status_users: raw.status.users,
                metrics,
                metrics_hosts,
                secret_files,
                certificates,
                digest: digest(text),
            }),
            Some(_) | None => Err(Problems(problems).into()),
        }
    }
}

/// The store, with the tags that hide how many keys there are.
fn store_settings(raw: &Raw, problems: &mut Vec<String>) -> Option<StoreSettings> {
    let store = StoreSettings::of_all(&raw.store, &raw.snowflake)
        .map_err(|error| {
            problems.extend(error.problems.iter().map(ToString::to_string));
        })
        .ok();
    let hidden = HiddenTags::new(&raw.hidden_tag).unwrap_or_else(|error| {
        problems.extend(error.problems.iter().map(ToString::to_string));
        HiddenTags::default()
    });
    store.map(|store| store.hiding(hidden))
}

/// What clients find behind each listener.
fn places(
    raw: Vec<RawListener>,
    store: Option<&StoreSettings>,
    problems: &mut Vec<String>,
) -> (Vec<Listener>, Vec<Port>) {
    let (mut listeners, mut ports) = (Vec::new(), Vec::new());
    for (index, raw) in raw.into_iter().enumerate() {
        let too_long = store.and_then(|store| http::too_long_segments(&raw, store));
        problems.extend(too_long.map(|problem| format!("listener {}: {problem}", index + 1)));
        match place(index, raw, problems) {
            Some(Place::Server(listener)) => listeners.push(*listener),
            Some(Place::Port(port)) => ports.push(port),
            None => {}
        }
    }
    (listeners, ports)
}

/// Whoever reaches the metrics reads them: they have no password.
fn metrics_hosts(raw: Option<&RawMetrics>, problems: &mut Vec<String>) -> Hosts {
    let hosts = raw.map(|raw| Hosts::new(raw.host_names.as_deref(), &raw.bind, false));
    hosts.unwrap_or(Ok(Hosts::Any)).unwrap_or_else(|problem| {
        problems.push(format!("metrics.{problem}"));
        Hosts::Any
    })
}

/// What tells a text from others.
fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Who gives keys of ordered tags: one listener of a program, where tags are Keywright's own.
fn order_problems(ports: &[Port], store: Option<&StoreSettings>) -> Vec<String> {
    let mut problems = Vec::new();
    let ordered = ports.iter().filter(|port| port.order.is_some()).count();
    if ordered > 1 {
        problems.push("cluster_address is for one [[listener]] of a program".to_owned());
    }
    if ordered > 0 && store.is_some_and(has_others_tags) {
        problems.push("cluster_address needs a store with dialect = \"keywright\"".to_owned());
    }
    problems
}

/// Whether its tags are in a table of another system.
fn has_others_tags(store: &StoreSettings) -> bool {
    !store.has_own_tags() && !store.gives_ranges_only()
}

/// The servers that are fed. Only tags of Keywright's own say which key space they are.
fn feeds(
    raw: &[RawFeed],
    store: Option<&StoreSettings>,
    problems: &mut Vec<String>,
) -> Vec<FeedSettings> {
    if !raw.is_empty() && store.is_some_and(has_others_tags) {
        problems.push("[[feed]] needs a store with dialect = \"keywright\"".to_owned());
    }
    if !raw.is_empty() && store.is_some_and(StoreSettings::gives_ranges_only) {
        problems.push(ranges_only::problem("[[feed]]"));
    }
    let has_numbers = store.is_none_or(|store| store.worker_ids().fed.is_some());
    if raw.iter().any(|feed| feed.snowflake) && !has_numbers {
        problems
            .push("snowflake = true in [[feed]] needs fed_worker_ids in [snowflake]".to_owned());
    }
    let mut feeds: Vec<FeedSettings> = Vec::new();
    for (index, raw) in raw.iter().enumerate() {
        match FeedSettings::new(raw, &format!("feed {}", index + 1)) {
            Ok(feed) => feeds.push(feed),
            Err(error) => problems.extend(error.problems.iter().map(ToString::to_string)),
        }
    }
    feeds
}
