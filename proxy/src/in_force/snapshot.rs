//! What connections follow: rules, sources of keys and TLS as they are in force, replaced as a whole.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use keywright_session::{Mode, RuleAdmission, Rules, Traffic};
use keywright_store::{KeySpec, Keys, Source};

use crate::config::Config;
use crate::config::listener::Protection;
use crate::handshake::password::OwnKey;
use crate::metrics::{Counters, Tally};
use crate::port::keys::PortKeys;
use crate::schema::TableFacts;
use crate::switch::Ahead;

/// What new connections follow: it is replaced as a whole, and connections keep what they began with.
pub struct ConfigSnapshot {
    /// By listener.
    pub(crate) rules: Vec<Arc<Rules>>,
    /// By listener.
    pub(crate) protection: Vec<Arc<Protection>>,
    /// What clients without TLS encrypt passwords for, where a listener names no file.
    pub(crate) own_key: Arc<OwnKey>,
    /// By place in the configuration.
    ports: Vec<Arc<PortKeys>>,
    /// By rule.
    pub(crate) sources: Arc<[Option<Source>]>,
    /// By rule: its name, if the keys that it gives are logged. Empty if no rule's are.
    pub(crate) logged: Arc<[Option<String>]>,
    pub(crate) tally: Arc<Tally>,
    traffic: Arc<Traffic>,
    version: u64,
    listed: Vec<ListedRule>,
    has_heard_store: bool,
}

/// What lists show of a rule in force.
pub(crate) struct ListedRule {
    /// Its tables and column.
    pub(crate) name: String,
    /// What it does now.
    pub(crate) mode: Mode,
    /// Where its keys come from.
    pub(crate) key: String,
    /// New statements on its tables wait.
    pub(crate) is_held: bool,
}

impl ConfigSnapshot {
    /// The rules of a configuration, the sources of their keys, and TLS. `seen` is by listener; `own_key` stays the same as long
    /// as the process lives. `held` and `waits_for_store`: the rules whose new statements wait, and whose INSERTs, by their place. Open connections follow whatever has
    /// another version.
    ///
    /// # Errors
    /// A source of keys cannot be made.
    pub fn new(
        config: &Config,
        keys: &Keys,
        seen: &[TableFacts],
        counters: &Counters,
        own_key: &Arc<OwnKey>,
        (version, held, waits_for_store): (u64, &[usize], &[usize]),
        ahead: &Ahead,
    ) -> Result<ConfigSnapshot> {
        let sources = sources_of(config, keys)?;
        let traffic = Arc::clone(&counters.traffic);
        let rules = config.rules.iter().enumerate();
        let admissions: Vec<RuleAdmission> = rules
            .map(|(at, rule)| RuleAdmission {
                name: rule.name(),
                is_held: held.contains(&at),
                waits_for_store: waits_for_store.contains(&at),
                is_switched: rule.is_switched,
                servers: rule.servers.clone(),
            })
            .collect();
        let rules = (0..config.listeners.len())
            .map(|listener| {
                let rules = rules_of(config, seen.get(listener));
                let ahead = ahead.get(&listener).into_iter().flatten();
                let tables = switched_among(ahead, config, &rules);
                let reasons = tables
                    .iter()
                    .filter_map(|(table, reason)| Some((*table, (*reason)?)));
                let rules = rules
                    .with_ahead(tables.iter().map(|(table, _)| *table))
                    .with_reasons(reasons)
                    .with_schema(Arc::clone(&counters.schema))
                    .with_traffic(&traffic, version, &admissions);
                Arc::new(rules)
            })
            .collect();
        let names = admissions.iter().map(|admission| admission.name.as_str());
        let tally = Arc::new(counters.tally(names));
        let protection = config
            .listeners
            .iter()
            .map(|listener| Arc::clone(&listener.protection))
            .collect();
        Ok(ConfigSnapshot {
            rules,
            protection,
            own_key: Arc::clone(own_key),
            ports: Vec::new(),
            sources,
            logged: logged(config),
            tally,
            traffic,
            version,
            listed: listed(config, &admissions),
            has_heard_store: false,
        })
    }

    /// The same, with key ports.
    pub(crate) fn with_ports(self, ports: Vec<Arc<PortKeys>>) -> Self {
        Self { ports, ..self }
    }

    /// The same, of a program that knows from its store, or from what was kept, which tables have keys.
    pub(crate) fn with_heard_store(self, has_heard_store: bool) -> Self {
        Self {
            has_heard_store,
            ..self
        }
    }

    /// Whether the program knows which tables have keys.
    pub(crate) fn has_heard_store(&self) -> bool {
        self.has_heard_store
    }

    /// A key port, by its place in the configuration.
    pub(crate) fn port(&self, at: usize) -> Option<Arc<PortKeys>> {
        self.ports.get(at).cloned()
    }

    /// What its rules and key ports give keys of, also those that wait for a switch to end: it may fail.
    pub(crate) fn used(&self) -> HashSet<KeySpec> {
        let of_rules = self.sources.iter().flatten().map(Source::spec);
        let of_ports = self.ports.iter().flat_map(|port| port.used());
        of_rules.chain(of_ports).cloned().collect()
    }

    pub(crate) fn rules(&self, listener: usize) -> Option<Arc<Rules>> {
        self.rules.get(listener).cloned()
    }

    pub(crate) fn sources(&self) -> Arc<[Option<Source>]> {
        Arc::clone(&self.sources)
    }

    pub(crate) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// The rules, in the order of the configuration.
    pub(crate) fn listed(&self) -> &[ListedRule] {
        &self.listed
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

/// The sources of keys, by rule.
fn sources_of(config: &Config, keys: &Keys) -> Result<Arc<[Option<Source>]>> {
    let sources = config.rules.iter();
    // Nothing is reserved ahead for tables that are native: it would be worthless after the switch.
    let sources = sources.map(|of| match of.is_switched && of.rule.mode == Mode::Observe {
        true => Ok(None),
        false => keys.source(&of.spec).map(Some),
    });
    sources
        .collect::<std::result::Result<Arc<[Option<Source>]>, _>>()
        .map_err(|failure| anyhow::anyhow!("{failure}"))
}

/// The rules as lists show them.
fn listed(config: &Config, admissions: &[RuleAdmission]) -> Vec<ListedRule> {
    let rules = config.rules.iter().zip(admissions);
    let listed = rules.map(|(of, admission)| ListedRule {
        name: admission.name.clone(),
        mode: of.rule.mode,
        key: of.spec.to_string(),
        is_held: admission.is_held,
    });
    listed.collect()
}

/// A listener whose server was not inspected knows of nothing.
fn rules_of(config: &Config, seen: Option<&TableFacts>) -> Rules {
    let rules = config.rules.iter().map(|configured| &configured.rule);
    match seen {
        Some(seen) => seen.rules(rules.cloned()),
        None => TableFacts::default().rules(rules.cloned()),
    }
}

/// A table by schema and name that gets no keys, and what its clients are told where no switch puts it right.
type AheadTable<'a> = ((&'a str, &'a str), Option<&'a str>);

/// Those of the tables whose rules follow the switch. One that has left it gives its tables other keys, and no switch comes that would put them
/// right.
fn switched_among<'a>(
    ahead: impl Iterator<Item = (&'a (String, String), &'a Option<String>)>,
    config: &Config,
    rules: &Rules,
) -> Vec<AheadTable<'a>> {
    let is_switched = |schema: &str, name: &str| {
        let found = rules.find(schema.as_bytes(), name.as_bytes());
        let rule = found.and_then(|(rule, _)| config.rules.get(rules.configured(rule)));
        rule.is_some_and(|rule| rule.is_switched)
    };
    let switched = ahead.filter(|((schema, name), _)| is_switched(schema, name));
    switched
        .map(|((schema, name), reason)| ((schema.as_str(), name.as_str()), reason.as_deref()))
        .collect()
}

/// The names of the rules whose keys are logged, by rule.
fn logged(config: &Config) -> Arc<[Option<String>]> {
    let rules = &config.rules;
    match rules.iter().any(|rule| rule.log_keys) {
        true => {
            let names = rules.iter().map(|rule| rule.log_keys.then(|| rule.name()));
            names.collect()
        }
        false => Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{rules_of, switched_among};
    use crate::config::Config;

    #[test]
    fn a_table_whose_rule_has_left_the_switch_waits_for_none() {
        let config = Config::parse(
            "[store]\nurl = \"mysql://root@127.0.0.1:1/s\"\n\
             [[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:3\"\n\
             [[rule]]\ntable = \"a.left\"\ncolumn = \"id\"\nkey = \"stride:b\"\noffset = 1\nincrement = 2\n\
             [[rule]]\ntable = \"a.*\"\ncolumn = \"id\"\nkey = \"segment:a\"\n",
        )
        .unwrap();
        let reason = Some("it has no fence".to_owned());
        let table = |name: &str| ("a".to_owned(), name.to_owned());
        let ahead = BTreeMap::from([(table("left"), None), (table("stays"), reason)]);
        let found = switched_among(ahead.iter(), &config, &rules_of(&config, None));
        assert_eq!(found, [(("a", "stays"), Some("it has no fence"))]);
    }
}
