//! What a configuration wants of ordered tags and cannot have.

use std::collections::BTreeSet;

use keywright_core::Tag;
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
