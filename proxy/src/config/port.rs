//! A key port's options, validated: what all have here, what only those of one protocol have in modules of their own.

pub mod http;
pub mod redis;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use keywright_core::Tag;
use keywright_store::{KEY_SPECS, KeySpec, KeySpecError, OrderSettings, PasswordFrom};
use rustls::ServerConfig;

use crate::config::address;
use crate::config::bounds::at_least_one;
use crate::config::hosts::Hosts;
use crate::config::listener::{RawListener, towards_clients};
use crate::config::port::http::HttpLimits;
use crate::config::port::redis::RedisLimits;

/// Longest name of a key, bytes.
const NAME_BYTES_MAX: usize = 512;
/// A place where any program gets keys.
#[derive(Clone)]
pub struct Port {
    /// `address:port` or `unix:/path`.
    pub bind: String,
    /// Where the keys of each name come from.
    pub keys: BTreeMap<String, KeySpec>,
    /// TLS from the first byte.
    pub tls: Option<Arc<ServerConfig>>,
    /// What clients must know.
    pub password: Option<Arc<str>>,
    /// Whether clients log in as users.
    pub has_users: bool,
    /// Over HTTP: which hosts requests may name.
    pub hosts: Hosts,
    /// What is bounded, and by how much.
    pub limits: PortLimits,
    /// How it is asked.
    pub protocol: PortProtocol,
    /// How the program stands for the lease of those who give keys of ordered tags; `None`: this port gives none.
    pub order: Option<OrderSettings>,
}

/// How clients ask, and what is bounded of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortProtocol {
    /// By the Redis protocol.
    Redis(RedisLimits),
    /// By HTTP.
    Http(HttpLimits),
}

/// What is bounded of a key port's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortLimits {
    /// Connections.
    pub connections_max: u64,
    /// Silence of a client, seconds; 0: without end.
    pub idle_s_max: u64,
    /// How long it may read none of its replies, milliseconds.
    pub unread_ms_max: u64,
}

/// Without the password.
impl fmt::Debug for Port {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Port")
            .field("bind", &self.bind)
            .field("keys", &self.keys)
            .field("tls", &self.tls.is_some())
            .field("password", &self.password.is_some())
            .field("has_users", &self.has_users)
            .field("hosts", &self.hosts)
            .field("limits", &self.limits)
            .field("protocol", &self.protocol)
            .field("order", &self.order)
            .finish()
    }
}

impl Port {
    /// The tags that its names need.
    pub fn tags(&self) -> impl Iterator<Item = &Tag> {
        self.keys.values().filter_map(KeySpec::tag)
    }
}

/// Options that only a key port has, and whether they are there.
pub(super) fn options_given(raw: &RawListener) -> [(&'static str, bool); 9] {
    [
        ("keys", raw.keys.is_some()),
        ("password_file", raw.password_file.is_some()),
        ("password_env", raw.password_env.is_some()),
        ("users", raw.users.is_some()),
        ("users_without_tls", raw.users_without_tls.is_some()),
        (
            "open_to_the_network_without_users",
            raw.open_to_the_network_without_users.is_some(),
        ),
        ("connections_max", raw.connections_max.is_some()),
        ("idle_s_max", raw.idle_s_max.is_some()),
        ("unread_ms_max", raw.unread_ms_max.is_some()),
    ]
}

pub(super) fn port(
    (name, raw): (&str, RawListener),
    protocol: PortProtocol,
    problems: &mut Vec<String>,
) -> Option<Port> {
    let keys = keys(name, &raw, problems);
    let password = PasswordFrom {
        in_url: false,
        file: raw.password_file.as_deref().map(Path::new),
        env: raw.password_env.as_deref(),
    };
    let password = password.read().unwrap_or_else(|(option, what)| {
        problems.push(format!("{option}: {what}"));
        None
    });
    let has_users = raw.users.unwrap_or(false);
    who_may_connect(&raw, has_users, problems);
    let limits = limits(&raw, protocol, problems);
    let order = redis::order(&raw, problems);
    let tls = towards_clients(&raw, problems)?;
    let is_guarded = tls.settings().is_some() || has_users || password.is_some();
    let hosts = Hosts::new(raw.host_names.as_deref(), &raw.bind, is_guarded);
    let hosts = hosts.map_err(|problem| problems.push(problem)).ok()?;
    Some(Port {
        bind: raw.bind,
        keys,
        tls: tls.settings().cloned(),
        password: password.map(Arc::from),
        has_users,
        hosts,
        limits,
        protocol,
        order,
    })
}

/// Looks at what lets in others than this machine's users, and in which way they say who they are.
fn who_may_connect(raw: &RawListener, has_users: bool, problems: &mut Vec<String>) {
    let is_local = address::is_of_this_machine(&raw.bind);
    let is_open = raw.open_to_the_network_without_users.unwrap_or(false);
    let is_clear = raw.users_without_tls.unwrap_or(false);
    let bind = &raw.bind;
    match has_users {
        true => {
            for (option, _) in [
                ("password_file", raw.password_file.is_some()),
                ("password_env", raw.password_env.is_some()),
                ("open_to_the_network_without_users", is_open),
            ]
            .iter()
            .filter(|(_, is_given)| *is_given)
            {
                problems.push(format!("{option} has no meaning with users = true"));
            }
            if !is_local && raw.tls != "required" && !is_clear {
                problems.push(format!(
                    "bind \"{bind}\" is no loopback address and no UNIX socket: without TLS users' passwords go over the network in clear. Say \
                     tls = \"required\" with certificate and key or, if that is meant, users_without_tls = true"
                ));
            }
        }
        false => {
            if is_clear {
                problems.push("users_without_tls has no meaning without users = true".to_owned());
            }
            if !is_local && !is_open {
                problems.push(format!(
                    "bind \"{bind}\" is no loopback address and no UNIX socket: without users whoever can connect takes keys. Say users = true or, if \
                     that is meant, open_to_the_network_without_users = true"
                ));
            }
        }
    }
}

fn keys(
    protocol: &str,
    raw: &RawListener,
    problems: &mut Vec<String>,
) -> BTreeMap<String, KeySpec> {
    let Some(given) = raw.keys.as_ref().filter(|keys| !keys.is_empty()) else {
        problems.push(format!(
            "protocol = \"{protocol}\" needs keys, such as keys = {{ orders = \"segment:orders\" }}"
        ));
        return BTreeMap::new();
    };
    let mut keys = BTreeMap::new();
    for (name, text) in given {
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && !name.contains(|char: char| char.is_control());
        if !is_name {
            problems.push(format!(
                "keys: a name has 1 to {NAME_BYTES_MAX} bytes and no control characters, not {name:?}"
            ));
        }
        match KeySpec::parse(text, None, None) {
            Ok(spec) => {
                keys.insert(name.clone(), spec);
            }
            Err(_) if text.starts_with("stride:") => problems.push(format!(
                "keys: \"{name}\" cannot be \"{text}\": a client of a key port takes its keys to be consecutive"
            )),
            Err(KeySpecError::Unknown { text }) => {
                problems.push(format!("keys: key \"{text}\" is none of {KEY_SPECS}"));
            }
            Err(error) => problems.push(format!("keys: {error}")),
        }
    }
    keys
}

fn limits(raw: &RawListener, protocol: PortProtocol, problems: &mut Vec<String>) -> PortLimits {
    let idle_s_max = match protocol {
        PortProtocol::Redis(_) => raw.idle_s_max.unwrap_or(0),
        PortProtocol::Http(_) => raw.idle_s_max.unwrap_or(75),
    };
    let limits = PortLimits {
        connections_max: raw.connections_max.unwrap_or(10_000),
        idle_s_max,
        unread_ms_max: raw.unread_ms_max.unwrap_or(60_000),
    };
    at_least_one(
        &[
            ("connections_max", limits.connections_max),
            ("unread_ms_max", limits.unread_ms_max),
        ],
        problems,
    );
    limits
}
