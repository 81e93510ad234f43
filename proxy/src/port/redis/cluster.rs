//! `CLUSTER …`: who gives keys of ordered tags. The slots of each group belong to the program that is active for it.

use keywright_core::Cause;
use keywright_core::slot::{self, SlotGroup};
use keywright_resp::command::ClusterQuery;
use keywright_resp::reply::Writer;
use keywright_resp::request::Request;
use keywright_store::{Failure, OrderNode};

use crate::port::issue::{self, Found, Issued, KeyRequest, Wants};
use crate::port::keys::PortKeys;
use crate::port::redis::answer::write_lasts;
use crate::port::redis::client::Client;
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
        let message = "This instance has cluster support disabled";
        return refused::write(keys, Cause::CommandRefused, message, to);
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

/// Programs that are active, those of earlier slots first.
fn actives(nodes: &[OrderNode]) -> Vec<&OrderNode> {
    let mut actives: Vec<&OrderNode> = nodes.iter().filter(|node| node.is_active()).collect();
    actives.sort_by_key(|node| node.groups.first().map(|group| group.number()));
    actives
}

/// Programs that only stand by: any of them may be the next one for any slots.
fn standbys(nodes: &[OrderNode]) -> impl Iterator<Item = &OrderNode> {
    nodes.iter().filter(|node| !node.is_active())
}

/// The slot groups that have an active program, in their order, with that.
fn held(nodes: &[OrderNode]) -> Vec<(SlotGroup, &OrderNode)> {
    let mut held: Vec<(SlotGroup, &OrderNode)> = Vec::new();
    for node in nodes {
        held.extend(node.groups.iter().map(|group| (*group, node)));
    }
    held.sort_by_key(|(group, _)| group.number());
    held
}

/// Groups that lie side by side and have the same program, as first and last slot.
fn runs(groups: &[SlotGroup]) -> Vec<(u16, u16)> {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for group in groups {
        match runs.last_mut() {
            Some((_, last)) if last.saturating_add(1) == group.first() => *last = group.last(),
            Some(_) | None => runs.push((group.first(), group.last())),
        }
    }
    runs
}

/// Nothing of slots for which nobody is active.
fn slots(nodes: &[OrderNode], to: &mut Writer<'_>) {
    let held = held(nodes);
    to.array(held.len());
    for (group, active) in held {
        to.array(standbys(nodes).count().saturating_add(3));
        to.integer(i64::from(group.first()));
        to.integer(i64::from(group.last()));
        for node in std::iter::once(active).chain(standbys(nodes)) {
            let (host, port) = host_and_port(node);
            to.array(4);
            to.bulk(host.as_bytes());
            to.integer(i64::from(port));
            to.bulk(node.id.as_bytes());
            to.array(0);
        }
    }
}

/// The slots of a shard, as first and last, and its programs.
type Shard<'a> = (Vec<(u16, u16)>, Vec<&'a OrderNode>);

/// One for each program that is active; the first has those that stand by.
fn shards(nodes: &[OrderNode], to: &mut Writer<'_>) {
    let actives = actives(nodes);
    let by_active = actives.iter().enumerate().map(|(at, active)| {
        let standbys = standbys(nodes).filter(|_| at == 0);
        let of_shard: Vec<&OrderNode> = std::iter::once(*active).chain(standbys).collect();
        (runs(&active.groups), of_shard)
    });
    let mut shards: Vec<Shard<'_>> = by_active.collect();
    if shards.is_empty() {
        shards.push((Vec::new(), nodes.iter().collect()));
    }
    to.array(shards.len());
    for (runs, of_shard) in shards {
        to.map(2);
        to.bulk(b"slots");
        to.array(runs.len().saturating_mul(2));
        for (first, last) in runs {
            to.integer(i64::from(first));
            to.integer(i64::from(last));
        }
        to.bulk(b"nodes");
        to.array(of_shard.len());
        of_shard.iter().for_each(|node| of_shards(node, to));
    }
}

/// A node, as `CLUSTER SHARDS` has it.
fn of_shards(node: &OrderNode, to: &mut Writer<'_>) {
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

/// A line for each, as `CLUSTER NODES` has them.
fn text(nodes: &[OrderNode]) -> String {
    let actives = actives(nodes);
    let first = actives.first().map_or("-", |active| &active.id);
    let all = actives.iter().copied().chain(standbys(nodes));
    let lines = all.map(|node| {
        let (host, port) = host_and_port(node);
        let own = if node.is_self { "myself," } else { "" };
        let (kind, of) = match node.is_active() {
            true => ("master", "-"),
            false => ("slave", first),
        };
        let runs = runs(&node.groups).into_iter();
        let slots: String = runs
            .map(|(first, last)| format!(" {first}-{last}"))
            .collect();
        let id = &node.id;
        format!("{id} {host}:{port}@{NO_BUS_PORT} {own}{kind} {of} 0 0 0 connected{slots}\n")
    });
    lines.collect()
}

/// While some slots have no active program keys of the others are given, as in a cluster of Redis that does not require full coverage.
fn info(nodes: &[OrderNode]) -> String {
    let of_group = |(group, _): &(SlotGroup, &OrderNode)| {
        u32::from(group.last().saturating_sub(group.first())).saturating_add(1)
    };
    let slots: u32 = held(nodes).iter().map(of_group).sum();
    let state = if slots > 0 { "ok" } else { "fail" };
    format!(
        "cluster_enabled:1\r\ncluster_state:{state}\r\ncluster_slots_assigned:{slots}\r\ncluster_slots_ok:{slots}\r\ncluster_slots_pfail:0\r\n\
         cluster_slots_fail:0\r\ncluster_known_nodes:{}\r\ncluster_size:{}\r\n",
        nodes.len(),
        actives(nodes).len()
    )
}

/// The last numbers of several names. Those of ordered tags are known to the active program alone, which a client finds by one slot.
/// `output_bytes_max`: what a reply may take.
pub(super) fn lasts(
    request: &Request<'_>,
    (keys, client): (&PortKeys, &Client),
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
        refused::refuse(keys, b"", &failure, to);
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
                let why = named.misplaced().or_else(|| named.order_trouble());
                let why = why.unwrap_or_else(issue::nobody);
                refused::refuse(keys, name, &why, to);
                return Outcome::Answered;
            }
        }
    }
    if let Some(((name, first), others)) = unconfirmed.split_first() {
        let asked = AskedKeys::new(keys, name, (1, Form::Recent), output_bytes_max);
        let is_of_one = others.iter().all(|(_, its)| its == first);
        if let (Ok(asked), true) = (asked, is_of_one) {
            let answer = Answer::Lasts(found);
            return Outcome::Unconfirmed(HeldReply::new(asked, answer, *first, client));
        }
        // Somebody else was active while they were looked up.
        refused::refuse(keys, b"", &issue::nobody(), to);
        return Outcome::Answered;
    }
    write_lasts(&found, to);
    Outcome::Answered
}
