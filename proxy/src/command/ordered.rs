//! What a configuration wants of ordered tags and cannot have.

use std::collections::BTreeSet;

use keywright_core::Tag;
use keywright_core::slot::SlotGroups;
use keywright_proxy::config::Config;
use keywright_proxy::config::port::PortProtocol;
use keywright_store::Keys;

/// Why the program cannot start: no table, and no server that is fed, can have ids of an ordered tag. Where the store does not answer now, it
/// refuses them later.
pub(super) async fn in_tables(config: &Config, keys: &Keys) -> Option<String> {
    let ordered = keys.ordered(&config.unordered_tags()).await;
    let tag = ordered.unwrap_or_default().into_iter().next()?;
    Some(format!(
        "tag \"{tag}\" is ordered, so no rule and no [[feed]] can be for it: only a [[listener]] of the Redis protocol with cluster_address gives its ids"
    ))
}

/// Listeners that name ordered tags and refuse them. That the store cannot be asked is told elsewhere.
pub(super) async fn on_ports(config: &Config, keys: &Keys) -> Vec<String> {
    let mut told = Vec::new();
    for port in config.ports.iter().filter(|port| port.order.is_none()) {
        let named: BTreeSet<&Tag> = port.keys.values().filter_map(|spec| spec.tag()).collect();
        let named: Vec<Tag> = named.into_iter().cloned().collect();
        let instead = match port.protocol {
            PortProtocol::Redis(_) => "write its cluster_address, or name another tag",
            PortProtocol::Http(_) => {
                "only a listener of the Redis protocol with cluster_address gives them"
            }
        };
        let ordered = keys.ordered(&named).await.unwrap_or_default();
        told.extend(ordered.iter().map(|tag| {
            format!(
                "listener {} refuses keys of \"{tag}\", which is ordered: {instead}",
                port.bind
            )
        }));
    }
    told
}

/// Names of listeners under which ordered tags are refused, since clients would look for the program of another slot group.
pub(super) async fn under_names(config: &Config, keys: &Keys) -> Vec<String> {
    let groups = config.store.slot_groups();
    let mut told = Vec::new();
    for port in config.ports.iter().filter(|port| port.order.is_some()) {
        for (name, spec) in &port.keys {
            let Some(tag) = spec.tag().filter(|tag| is_apart(groups, name, tag)) else {
                continue;
            };
            let ordered = keys.ordered(std::slice::from_ref(tag)).await;
            if !ordered.unwrap_or_default().is_empty() {
                told.push(format!(
                    "listener {} refuses keys of \"{tag}\", which is ordered, under \"{name}\", whose slot is in another group: name it \"{tag}\"",
                    port.bind
                ));
            }
        }
    }
    told
}

fn is_apart(groups: SlotGroups, name: &str, tag: &Tag) -> bool {
    groups.of(name.as_bytes()) != groups.of(tag.as_str().as_bytes())
}
