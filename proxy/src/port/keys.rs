//! The names of a key port, and what each gives now.

use std::collections::HashMap;
use std::sync::Arc;

use keywright_core::slot::{SlotGroup, SlotGroups};
use keywright_core::{Cause, Layout, Tag};
use keywright_store::{
    Failure, GIVES_KEYS, KeyKind, KeySpec, Keys, Ordered, Source, TagFacts, TagOrder,
};

use crate::config::port::PortProtocol;
use crate::config::{Config, Port};
use crate::metrics::Counters;
use crate::metrics::port::{NameFigures, PortFigures};
use crate::switch::KeyStandings;
use crate::tags_in_use::TagsInUse;
use crate::users::PortUsers;

/// A key port as it is in force.
#[derive(Debug)]
pub(crate) struct PortKeys {
    /// What the configuration says of it.
    pub(crate) port: Port,
    /// What it counts.
    pub(crate) figures: Arc<PortFigures>,
    /// What tells snowflake ids apart.
    pub(crate) layout: Layout,
    /// Whether the configuration says which worker id the program has.
    pub(crate) has_own_worker_id: bool,
    /// How long a request waits for the store, milliseconds.
    pub(crate) wait_ms_max: u64,
    /// How long it waits for the end of a switch, milliseconds.
    pub(crate) held_ms_max: u64,
    /// Who may take keys; `None`: whoever knows the password, if there is one.
    pub(crate) users: Option<PortUsers>,
    /// Tags that are not the port's alone.
    pub(crate) tags_in_use: Arc<TagsInUse>,
    /// Who gives keys of ordered tags; `None`: this port does not.
    pub(crate) cluster: Option<Keys>,
    names: HashMap<Vec<u8>, Arc<NamedKeys>>,
}

/// A name, and where its keys come from.
#[derive(Debug)]
pub(crate) struct NamedKeys {
    /// As clients write it.
    pub(crate) name: String,
    /// Where they come from.
    pub(crate) spec: KeySpec,
    /// What it gives now.
    pub(crate) gives: Gives,
    /// The slot groups of the name and of its tag, where these are not the same.
    apart: Option<(SlotGroup, SlotGroup)>,
    /// Numbers of one run at most.
    pub(crate) run_max: u64,
    /// Keys of one list at most.
    pub(crate) listed_max: u64,
    /// What it counts.
    pub(crate) figures: Arc<NameFigures>,
}

/// What a name gives now.
#[derive(Debug)]
pub(crate) enum Gives {
    /// Keys.
    Keys(Source),
    /// Nothing until the store has said whether tables have left them.
    Unknown,
    /// Nothing while tables are switched.
    Held,
    /// Nothing: tables have left them, and native ids go on where they ended.
    Left,
}

impl Gives {
    /// What is known of the tag whose numbers it gives.
    pub(super) fn tag_facts(&self) -> Option<TagFacts> {
        match self {
            Self::Keys(source) => source.tag_facts(),
            Self::Unknown | Self::Held | Self::Left => None,
        }
    }
}

impl PortKeys {
    /// All key ports. `standings`: what the store says of keys that tables go over to and leave; `None`: it has not answered yet.
    /// `tags_in_use`: those that others name.
    ///
    /// # Errors
    /// A source of keys cannot be made.
    pub(crate) fn all(
        config: &Config,
        keys: &Keys,
        counters: &Counters,
        standings: Option<&KeyStandings>,
        users: Option<&PortUsers>,
        tags_in_use: &Arc<TagsInUse>,
    ) -> Result<Vec<Arc<PortKeys>>, Failure> {
        let ports = config.ports.iter().map(|port| {
            let figures = counters.port(&port.bind);
            let names = port.keys.iter().map(|(name, spec)| {
                let followed = config.store.followed(spec);
                let gives = match (followed, standings) {
                    (Some(_), None) => Gives::Unknown,
                    (Some(space), Some(its)) if its.held.contains(&space) => Gives::Held,
                    (Some(space), Some(its)) if its.left.contains(&space) => Gives::Left,
                    (Some(_) | None, _) => Gives::Keys(keys.source(spec)?),
                };
                let named = NamedKeys {
                    name: name.clone(),
                    spec: spec.clone(),
                    gives,
                    // By the number that the program began with: a reload does not change it.
                    apart: spec
                        .tag()
                        .and_then(|tag| apart(keys.slot_groups(), name, tag)),
                    run_max: config.store.keys_max(spec),
                    listed_max: config.store.range_ids_max(),
                    figures: figures.name(name),
                };
                Ok((name.clone().into_bytes(), Arc::new(named)))
            });
            Ok(Arc::new(PortKeys {
                names: names.collect::<Result<_, Failure>>()?,
                users: users.filter(|_| port.has_users).cloned(),
                tags_in_use: Arc::clone(tags_in_use),
                cluster: port.order.as_ref().map(|_| keys.clone()),
                port: port.clone(),
                figures,
                layout: config.store.layout(),
                has_own_worker_id: config.store.names_worker_id(),
                wait_ms_max: config.store.wait_ms_max(),
                held_ms_max: config.held_ms_max(),
            }))
        });
        ports.collect()
    }

    /// What the lists of names say of one, as far as is known without asking the store.
    pub(super) fn state(&self, named: &NamedKeys) -> &'static str {
        match &named.gives {
            Gives::Keys(_) if self.cluster.is_none() && named.order_refusal().is_some() => {
                "is ordered, and not given here"
            }
            Gives::Keys(source) if source.gives_nothing() => "has no keys, and cannot reserve",
            Gives::Keys(_) => GIVES_KEYS,
            Gives::Unknown => "waits for the store",
            Gives::Held => "waits for a switch",
            Gives::Left => "was left by its tables",
        }
    }

    /// What clients ask for the names.
    pub(super) fn listed_by(&self) -> &'static str {
        match self.port.protocol {
            PortProtocol::Redis(_) => "KEYWRIGHT LIST",
            PortProtocol::Http(_) => "GET /v1/keys",
        }
    }

    /// What a client means by a name.
    pub(crate) fn name(&self, name: &[u8]) -> Option<&Arc<NamedKeys>> {
        self.names.get(name)
    }

    /// What the names give keys of, or may give again when a switch is over or the store has answered.
    pub(crate) fn used(&self) -> impl Iterator<Item = &KeySpec> {
        let named = self.names.values();
        named.filter_map(|named| match &named.gives {
            Gives::Keys(_) | Gives::Unknown | Gives::Held => Some(&named.spec),
            Gives::Left => None,
        })
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> Vec<&Arc<NamedKeys>> {
        let mut names: Vec<_> = self.names.values().collect();
        names.sort_by(|one, other| one.name.cmp(&other.name));
        names
    }
}

impl NamedKeys {
    /// Where its keys come from; with the order of its tag, once it is known to have one, and that its keys hide how many there are.
    pub(crate) fn source(&self) -> String {
        let facts = self.gives.tag_facts().unwrap_or_default();
        match (
            facts.order.filter(|order| order.is_ordered()),
            facts.hide_bits,
        ) {
            (Some(order), _) => format!("{} {}", self.spec, order.name()),
            (None, Some(bits)) => format!("{} hidden:{}", self.spec, bits.get()),
            (None, None) => self.spec.to_string(),
        }
    }

    /// Whether its keys are of an ordered tag, or may be.
    pub(crate) fn is_ordered(&self) -> bool {
        match &self.gives {
            Gives::Keys(source) => source.try_last_ordered() != Ordered::Distinct,
            Gives::Unknown | Gives::Held | Gives::Left => false,
        }
    }

    /// Why nothing is told of its keys on a port that gives none of ordered tags.
    pub(crate) fn order_refusal(&self) -> Option<Failure> {
        match &self.gives {
            Gives::Keys(source) => source.order_refusal(),
            Gives::Unknown | Gives::Held | Gives::Left => None,
        }
    }

    /// Why keys of its tag, which is ordered, are not given under this name: clients would look for the program of another slot group.
    pub(crate) fn misplaced(&self) -> Option<Failure> {
        let (of_name, of_tag) = self.apart.filter(|_| self.is_known_as_ordered())?;
        let tag = self.spec.tag()?;
        Some(misplaced((&self.name, of_name), (tag, of_tag)))
    }

    /// Whether there is such a reason.
    pub(crate) fn is_misplaced(&self) -> bool {
        self.apart.is_some() && self.is_known_as_ordered()
    }

    fn is_known_as_ordered(&self) -> bool {
        let order = self.gives.tag_facts().and_then(|facts| facts.order);
        order.is_some_and(TagOrder::is_ordered)
    }

    /// Why nobody is known who gives its keys, which are of an ordered tag, where that does not pass by itself.
    pub(crate) fn order_trouble(&self) -> Option<Failure> {
        match &self.gives {
            Gives::Keys(source) => source.order_trouble(),
            Gives::Unknown | Gives::Held | Gives::Left => None,
        }
    }

    /// Whether its keys are numbers.
    pub(crate) fn is_number(&self) -> bool {
        match self.spec.kind() {
            KeyKind::Number => true,
            KeyKind::Text { chars: _ } | KeyKind::Bytes16 => false,
        }
    }
}

/// The slot groups of a name and of its tag, where these are not the same.
fn apart(groups: SlotGroups, name: &str, tag: &Tag) -> Option<(SlotGroup, SlotGroup)> {
    let of_name = groups.of(name.as_bytes());
    let of_tag = groups.of(tag.as_str().as_bytes());
    (of_name != of_tag).then_some((of_name, of_tag))
}

/// Why keys of an ordered tag are not given under a name.
fn misplaced((name, of_name): (&str, SlotGroup), (tag, of_tag): (&Tag, SlotGroup)) -> Failure {
    let message = format!(
        "\"{name}\" is in slot group {}, and its tag \"{tag}\", which is ordered, in slot group {}",
        of_name.number(),
        of_tag.number()
    );
    Failure::new(Cause::TagOrdered, message).hint(format!(
        "give it under the name \"{tag}\", or one that has \"{{{tag}}}\" in it"
    ))
}
