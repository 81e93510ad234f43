//! `CLUSTER …`: who gives keys of ordered tags. All slots are one group, and belong to the program that is active.

use keywright_core::Cause;
use keywright_resp::command::ClusterQuery;
use keywright_resp::reply::Writer;
use keywright_resp::request::Request;
use keywright_resp::slot::{self, SLOTS};
use keywright_store::{Failure, OrderNode};

use crate::port::issue::{self, Found, Issued, KeyRequest, Wants};
use crate::port::keys::PortKeys;
use crate::port::redis::answer::write_lasts;
use crate::port::redis::held::{Answer, HeldReply};
use crate::port::redis::outcome::Outcome;
use crate::port::redis::refused;
use crate::port::redis::role::{host_and_port, role};
use crate::port::redis::told::{AskedKeys, Form, Moved};

/// Which port of a node its cluster would speak on, if it had one.
const NO_BUS_PORT: u16 = 0;

/// What is asked of the cluster.
pub(super) fn answer(query: ClusterQuery<'_>, keys: &PortKeys, to: &mut Writer<'_>) {
    if let ClusterQuery::KeySlot(name) = query {
        return to.integer(i64::from(slot::of(name)));
    }
    let nodes = keys.cluster.as_ref().and_then(|keys| keys.order_nodes());
    let Some(nodes) = nodes else {
        return refused::write(
            to,
            Cause::CommandRefused,
            "This instance has cluster support disabled",
        );
    };
    match query {
        ClusterQuery::KeySlot(_) => {}
        ClusterQuery::MyId => {
            let own = nodes.iter().find(|node| node.is_self);
            to.bulk(own.map_or("", |node| &node.id).as_bytes());
        }
        ClusterQuery::Slots => slots(&nodes, to),
        ClusterQuery::Shards => shards(&nodes, to),
        ClusterQuery::Nodes => to.text(&text(&nodes)),
        ClusterQuery::Info => to.text(&info(&nodes)),
    }
}

/// The active one first.
fn active_first(nodes: &[OrderNode]) -> Vec<&OrderNode> {
    let mut sorted: Vec<&OrderNode> = nodes.iter().collect();
    sorted.sort_by_key(|node| !node.is_active);
    sorted
}

fn has_active(nodes: &[OrderNode]) -> bool {
    nodes.iter().any(|node| node.is_active)
}

/// Nothing where nobody is active.
fn slots(nodes: &[OrderNode], to: &mut Writer<'_>) {
    if !has_active(nodes) {
        return to.array(0);
    }
    to.array(1);
    to.array(nodes.len().saturating_add(2));
    to.integer(0);
    to.integer(i64::from(SLOTS.saturating_sub(1)));
    for node in active_first(nodes) {
        let (host, port) = host_and_port(node);
        to.array(4);
        to.bulk(host.as_bytes());
        to.integer(i64::from(port));
        to.bulk(node.id.as_bytes());
        to.array(0);
    }
}

fn shards(nodes: &[OrderNode], to: &mut Writer<'_>) {
    to.array(1);
    to.map(2);
    to.bulk(b"slots");
    match has_active(nodes) {
        true => {
            to.array(2);
            to.integer(0);
            to.integer(i64::from(SLOTS.saturating_sub(1)));
        }
        false => to.array(0),
    }
    to.bulk(b"nodes");
    to.array(nodes.len());
    for node in active_first(nodes) {
        let (host, port) = host_and_port(node);
        to.map(7);
        to.bulk(b"id");
        to.bulk(node.id.as_bytes());
        to.bulk(b"port");
        to.integer(i64::from(port));
        for key in ["ip", "endpoint"] {
            to.bulk(key.as_bytes());
            to.bulk(host.as_bytes());
        }
        for (key, value) in [("role", role(node)), ("health", "online")] {
            to.bulk(key.as_bytes());
            to.bulk(value.as_bytes());
        }
        to.bulk(b"replication-offset");
        to.integer(0);
    }
}

/// A line for each, as `CLUSTER NODES` has them.
fn text(nodes: &[OrderNode]) -> String {
    let active = nodes.iter().find(|node| node.is_active);
    let lines = active_first(nodes).into_iter().map(|node| {
        let (host, port) = host_and_port(node);
        let own = if node.is_self { "myself," } else { "" };
        let (kind, of, slots) = match node.is_active {
            true => ("master", "-", format!(" 0-{}", SLOTS.saturating_sub(1))),
            false => (
                "slave",
                active.map_or("-", |active| &active.id),
                String::new(),
            ),
        };
        let id = &node.id;
        format!("{id} {host}:{port}@{NO_BUS_PORT} {own}{kind} {of} 0 0 0 connected{slots}\n")
    });
    lines.collect()
}

fn info(nodes: &[OrderNode]) -> String {
    let (state, slots, size) = match has_active(nodes) {
        true => ("ok", SLOTS, 1),
        false => ("fail", 0, 0),
    };
    format!(
        "cluster_enabled:1\r\ncluster_state:{state}\r\ncluster_slots_assigned:{slots}\r\ncluster_slots_ok:{slots}\r\ncluster_slots_pfail:0\r\n\
         cluster_slots_fail:0\r\ncluster_known_nodes:{}\r\ncluster_size:{size}\r\n",
        nodes.len()
    )
}

/// The last numbers of several names. Those of ordered tags are known to the active program alone, which a client finds by one slot.
/// `output_bytes_max`: what a reply may take.
pub(super) fn lasts(
    request: &Request<'_>,
    keys: &PortKeys,
    output_bytes_max: usize,
    to: &mut Writer<'_>,
) -> Outcome {
    let of_ordered = |name: &[u8]| keys.name(name).is_some_and(|named| named.is_ordered());
    if !request.arguments(1).any(of_ordered) {
        crate::port::redis::answer::lasts(request, keys, to);
        return Outcome::Answered;
    }
    let mut slots = request.arguments(1).map(slot::of);
    let first = slots.next();
    if slots.any(|slot| Some(slot) != first) {
        let failure = Failure::new(
            Cause::SlotsCross,
            "Keys in request don't hash to the same slot",
        );
        refused::refuse(keys, "", &failure, to);
        return Outcome::Answered;
    }
    let mut found = Vec::new();
    let mut unconfirmed = Vec::new();
    for name in request.arguments(1) {
        let named = keys.name(name).filter(|named| named.is_number());
        let Some(named) = named else {
            found.push(None);
            continue;
        };
        let there = KeyRequest::new(named, 1, Wants::Last).try_issue();
        let of_name = there.as_ref().and_then(|its| its.unconfirmed);
        unconfirmed.extend(of_name.map(|its| (name, its)));
        match there.map(|Found { issued, .. }| issued) {
            Some(Issued::Last(last)) => found.push(Some(last).filter(|last| *last > 0)),
            Some(Issued::Elsewhere(address)) => {
                let moved = Moved::new(name, address);
                moved.tell(to);
                return Outcome::Moved(moved);
            }
            Some(Issued::BySuccessor) => return Outcome::Gone,
            Some(Issued::Keys(_)) | None => {
                refused::refuse(keys, &named.name, &issue::nobody(), to);
                return Outcome::Answered;
            }
        }
    }
    if let Some(((name, first), others)) = unconfirmed.split_first() {
        let asked = AskedKeys::new(keys, name, (1, Form::Recent), output_bytes_max);
        let is_of_one = others.iter().all(|(_, its)| its == first);
        if let (Ok(asked), true) = (asked, is_of_one) {
            let answer = Answer::Lasts(found);
            return Outcome::Unconfirmed(HeldReply::new(asked, answer, *first, to.protocol()));
        }
        // Somebody else was active while they were looked up.
        refused::refuse(keys, "", &issue::nobody(), to);
        return Outcome::Answered;
    }
    write_lasts(&found, to);
    Outcome::Answered
}
