//! Key ports: keys over the Redis protocol, of the program as users run it.

mod beside_redis;
mod clients;
mod crash;
mod hostile;
#[path = "../common/killed.rs"]
mod killed;
mod limits;
mod logins;
mod ordered;
mod requests;
mod rights;
#[path = "../common/spoiled.rs"]
mod spoiled;
mod store;
mod tables;
mod tags;

use std::path::Path;

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, WAIT_MAX, scratch_dir, wait_until};
use tempfile::TempDir;

/// A name of each kind.
const KEYS: &str = "keys = { orders = \"segment:orders\", flakes = \"snowflake\", tokens = \"uuid_v7\", bytes = \"uuid_v4:bytes16\", \
                    invoices = \"readable:INV\" }\n";

/// That of all users.
const PASSWORD: &str = "open sesame";

/// The users with what they are granted.
const USERS: [(&str, &[(&str, &str)]); 5] = [
    ("root", &[("administer", "*")]),
    ("app", &[("use", "orders"), ("use", "tok??s")]),
    ("keeper", &[("manage", "ord*"), ("create", "fresh.k*")]),
    ("everything", &[("use", "*")]),
    ("nobody", &[]),
];

/// A program with one key port, and a store in a file.
struct Port {
    config: ProxyConfig,
    proxy: ProxyProcess,
    _scratch: TempDir,
}

impl Port {
    /// With names of every kind and these lines.
    fn start(lines: &str) -> Result<Port> {
        Self::start_with(lines, |config| config)
    }

    fn start_with(lines: &str, more: impl FnOnce(ProxyConfig) -> ProxyConfig) -> Result<Port> {
        let scratch = scratch_dir()?;
        let config = more(config_at(scratch.path(), lines));
        ProxyProcess::said(&config, &["init"])?;
        Self::of(scratch, config)
    }

    fn of(scratch: TempDir, config: ProxyConfig) -> Result<Port> {
        Ok(Port {
            proxy: ProxyProcess::start(config.clone())?,
            config,
            _scratch: scratch,
        })
    }

    fn client(&self) -> Result<RespClient> {
        RespClient::connect(self.proxy.key_port()?)
    }

    /// A figure, by its name and labels without the listener's.
    fn metric(&self, series: &str) -> Result<u64> {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let value = self.proxy.figure(name, &[labels])?;
        Ok(value.map_or(Ok(0), |value| value.parse())?)
    }
}

fn config_at(directory: &Path, lines: &str) -> ProxyConfig {
    ProxyConfig::key_port(&directory.join("store.db"), &format!("{KEYS}{lines}"))
}

/// With [`USERS`], who are there before it starts: a user that is added later has its second grant a moment after it can log in.
fn port_with_users(lines: &str) -> Result<Port> {
    let scratch = scratch_dir()?;
    let config = config_at(scratch.path(), &format!("users = true\n{lines}"));
    ProxyProcess::said(&config, &["init"])?;
    for (name, grants) in USERS {
        ProxyProcess::add_user(&config, name, PASSWORD, grants)?;
    }
    Port::of(scratch, config)
}

fn ok() -> RespValue {
    RespValue::Simple("OK".to_owned())
}

fn bulk(text: &str) -> RespValue {
    RespValue::Bulk(text.to_owned())
}

/// Logged in; a user that was just added may take a moment.
fn client_as(port: u16, user: &str) -> Result<RespClient> {
    let mut client = RespClient::connect(port)?;
    wait_until("a login", WAIT_MAX, || {
        let is_in = client.ask(&["AUTH", user, PASSWORD])? == ok();
        if !is_in {
            client = RespClient::connect(port)?;
        }
        Ok(is_in)
    })?;
    Ok(client)
}
