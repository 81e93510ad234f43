//! Key ports that speak HTTP, of the program as users run it.

mod causes;
mod client;
mod clients;
mod compatible;
mod crash;
mod hostile;
#[path = "../common/killed.rs"]
mod killed;
mod layouts;
mod limits;
mod requests;
#[path = "../common/spoiled.rs"]
mod spoiled;
mod tables;
mod users;

use std::path::Path;

use keywright_testkit::{ProxyConfig, ProxyProcess, Result, scratch_dir};
use tempfile::TempDir;

use client::HttpClient;

/// A name of each kind.
const KEYS: &str = "keys = { orders = \"segment:orders\", flakes = \"snowflake\", tokens = \"uuid_v7\", bytes = \"uuid_v4:bytes16\", \
                    invoices = \"readable:INV\" }\n";

/// A program with one key port that speaks HTTP, one that speaks the Redis protocol, and a store in a file.
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
        Ok(Port {
            proxy: ProxyProcess::start(config.clone())?,
            config,
            _scratch: scratch,
        })
    }

    /// With the password `sesame`.
    fn with_password(lines: &str) -> Result<Port> {
        let lines = format!("password_env = \"PORT_PASSWORD\"\n{lines}");
        Self::start_with(&lines, |mut config| {
            let password = ("PORT_PASSWORD".to_owned(), "sesame".to_owned());
            config.environment.push(password);
            config
        })
    }

    fn client(&self) -> Result<HttpClient> {
        HttpClient::connect(self.proxy.http_port()?)
    }

    /// A figure of the port, by its name and labels without the listener's.
    fn metric(&self, series: &str) -> Result<u64> {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let bind = format!("127.0.0.1:{}\"", self.proxy.http_port()?);
        let value = self.proxy.figure(name, &[&bind, labels])?;
        Ok(value.map_or(Ok(0), |value| value.parse())?)
    }
}

fn config_at(directory: &Path, lines: &str) -> ProxyConfig {
    let mut config = ProxyConfig::key_port(&directory.join("store.db"), KEYS);
    config.http_ports = vec![format!("{KEYS}{lines}")];
    config
}
