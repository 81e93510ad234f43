//! What programs that give keys of ordered tags are to clients that know replication: those that are active masters, the others their replicas.

use keywright_store::OrderNode;

use crate::port::keys::PortKeys;

/// What the program itself is, as `HELLO` says.
pub(super) fn own_role(keys: &PortKeys) -> &'static str {
    let nodes = keys.cluster.as_ref().and_then(|keys| keys.order_nodes());
    match nodes.iter().flatten().find(|node| node.is_self) {
        Some(own) => role(own),
        None => "master",
    }
}

/// The part `Replication` of `INFO`.
pub(super) fn replication(keys: &PortKeys) -> String {
    let nodes = keys.cluster.as_ref().and_then(|keys| keys.order_nodes());
    let nodes = nodes.unwrap_or_default();
    let is_standby = nodes.iter().any(|node| node.is_self && !node.is_active());
    if !is_standby {
        let others = nodes.iter().filter(|node| !node.is_self);
        let lines = others.enumerate().map(|(at, node)| {
            let (host, port) = host_and_port(node);
            format!("slave{at}:ip={host},port={port},state=online,offset=0,lag=0\r\n")
        });
        let lines: Vec<String> = lines.collect();
        return format!(
            "role:master\r\nconnected_slaves:{}\r\n{}",
            lines.len(),
            lines.concat()
        );
    }
    let active = nodes.iter().find(|node| node.is_active());
    let (host, port) = active.map_or(("", 0), host_and_port);
    let link = if active.is_some() { "up" } else { "down" };
    format!(
        "role:slave\r\nmaster_host:{host}\r\nmaster_port:{port}\r\nmaster_link_status:{link}\r\nmaster_sync_in_progress:0\r\n\
         slave_read_only:1\r\nconnected_slaves:0\r\n"
    )
}

/// Where a program is reached. An address of IPv6 has no brackets then.
pub(super) fn host_and_port(node: &OrderNode) -> (&str, u16) {
    let (host, port) = node.address.rsplit_once(':').unwrap_or((&node.address, ""));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (host, port.parse().unwrap_or(0))
}

/// What `CLUSTER SHARDS` and `HELLO` say.
pub(super) fn role(node: &OrderNode) -> &'static str {
    match node.is_active() {
        true => "master",
        false => "replica",
    }
}
