//! Ordered tags: one program gives their keys, the others send clients to it.

mod divided;
mod followers;
mod groups;
mod hand_over;
mod inversions;
mod refused;
mod rights;
mod standby;
mod strict;

use anyhow::Context;
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    ProxyConfig, ProxyProcess, Result, WAIT_MAX, assert_has, scratch_dir, wait_until,
};
use tempfile::TempDir;

const KEYS: &str = "keys = { orders = \"segment:orders\", more = \"segment:more\", plain = \"segment:plain\", flakes = \"snowflake\" }\n";
/// A slow machine keeps its lease.
const TTL_MS: u64 = 1_000;
/// Where `orders` is.
const SLOT: u16 = 105;

/// Programs with one store, each with one listener that gives keys of ordered tags.
struct Nodes {
    nodes: Vec<ProxyProcess>,
    config: ProxyConfig,
    _scratch: TempDir,
}

impl Nodes {
    /// With a store in a file.
    fn start(count: usize, lines: &str) -> Result<Nodes> {
        let scratch = scratch_dir()?;
        let file = scratch.path().join("store.db");
        let url = ProxyConfig::key_port(&file, "");
        Nodes::start_with("--monotonic", lines, &vec![url; count], scratch)
    }

    /// Of strict tags.
    fn start_strict(count: usize, lines: &str) -> Result<Nodes> {
        let scratch = scratch_dir()?;
        let url = ProxyConfig::key_port(&scratch.path().join("store.db"), "");
        Nodes::start_with("--strict", lines, &vec![url; count], scratch)
    }

    /// Each with its own way to the one store.
    fn start_with(
        order: &str,
        lines: &str,
        ways: &[ProxyConfig],
        scratch: TempDir,
    ) -> Result<Nodes> {
        let ttl = match lines.contains("order_ttl_ms") {
            true => String::new(),
            false => format!("order_ttl_ms = {TTL_MS}\n"),
        };
        let lines = format!("{KEYS}cluster_address = \"127.0.0.1:$PORT\"\n{ttl}{lines}");
        let configs = ways.iter().map(|way| ProxyConfig {
            key_ports: vec![lines.clone()],
            http_ports: vec![KEYS.to_owned()],
            ..way.clone()
        });
        let configs: Vec<ProxyConfig> = configs.collect();
        let config = configs.first().context("no program")?.clone();
        let made = ProxyProcess::said(&config, &["init", order, "orders", order, "more"])?;
        assert_has(&made, &["created tag \"orders\""]);
        let nodes = configs.into_iter().map(ProxyProcess::start);
        Ok(Nodes {
            nodes: nodes.collect::<Result<_>>()?,
            config,
            _scratch: scratch,
        })
    }

    fn ports(&self) -> Result<Vec<u16>> {
        self.nodes.iter().map(ProxyProcess::key_port).collect()
    }

    /// Waits until each knows of all: they tell the store once in a time to live.
    fn are_known(&self) -> Result<()> {
        let known = format!("cluster_known_nodes:{}\r\n", self.nodes.len());
        for node in &self.nodes {
            let mut client = RespClient::connect(node.key_port()?)?;
            wait_until("all programs to be known", WAIT_MAX, || {
                let said = client.say("CLUSTER INFO")?;
                Ok(matches!(said, RespValue::Bulk(info) if info.contains(&known)))
            })?;
        }
        Ok(())
    }

    /// The place of the one that gives keys, once the others say so, too.
    fn active(&self) -> Result<usize> {
        let clients = self
            .nodes
            .iter()
            .map(|node| RespClient::connect(node.key_port()?));
        let mut clients: Vec<RespClient> = clients.collect::<Result<_>>()?;
        self.agreed(&mut clients)
    }

    /// The same, asked by these clients, one of each program.
    fn agreed(&self, clients: &mut [RespClient]) -> Result<usize> {
        let ports = self.ports()?;
        let mut active = None;
        wait_until("one that is active", WAIT_MAX, || {
            let mut found = Vec::new();
            for (client, port) in clients.iter_mut().zip(&ports) {
                found.push(moved_to(&client.say("GET orders")?)?.unwrap_or(*port));
            }
            active = ports.iter().position(|port| *port == found[0]);
            Ok(found.windows(2).all(|pair| pair[0] == pair[1]))
        })?;
        active.context("somebody else is active")
    }
}

/// Where a reply sends its client.
fn moved_to(reply: &RespValue) -> Result<Option<u16>> {
    let RespValue::Error(text) = reply else {
        return Ok(None);
    };
    let Some(place) = text.strip_prefix("MOVED ") else {
        return Ok(None);
    };
    let (_, port) = place.rsplit_once(':').context("no port")?;
    Ok(Some(port.parse()?))
}
