//! Where a suite's connections go, and what must run for that.

use anyhow::Result;
use keywright_testkit::{Flavour, ProxyConfig, ProxyProcess, Upstream, make_store};

use super::suite::Suite;

/// Where a suite's connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leg {
    Direct,
    Passthrough,
    Watching,
}

impl Leg {
    pub(super) fn name(self) -> &'static str {
        match self {
            Leg::Direct => "direct",
            Leg::Passthrough => "proxy without rules",
            Leg::Watching => "proxy that watches all tables",
        }
    }

    /// The rules of the leg's proxy. Suites expect the first key of each of their tables to be 1, so nothing can be
    /// rewritten under them; a rule that only observes takes every statement all the way except for the change itself.
    fn config(self, server: &Upstream, store_url: &str) -> Option<ProxyConfig> {
        let config = ProxyConfig::before(server, store_url);
        match self {
            Leg::Direct => None,
            Leg::Passthrough => Some(config),
            Leg::Watching => {
                let mut config = config.rule("*.*", "segment:conformance");
                for rule in &mut config.rules {
                    rule.push_str("mode = \"observe\"\n");
                }
                Some(config)
            }
        }
    }
}

/// A server with what a suite expects to be there, and the leg's proxy.
pub(super) struct WorkDir {
    // Dropped first.
    proxy: Option<ProxyProcess>,
    server: Upstream,
}

impl WorkDir {
    pub(super) fn start(suite: Suite, flavour: Flavour, leg: Leg) -> Result<WorkDir> {
        let options = ["--max-allowed-packet=64M", "--max-connections=500"];
        let server = Upstream::start_with(flavour, &options)?;
        for schema in suite.schemas() {
            server.run(
                "mysql",
                &format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4"),
            )?;
        }
        let store_url = make_store(&server, "keywright", &[("conformance", 1)])?;
        // A rule must be for some table when the proxy starts; the suites make theirs later.
        server.run(
            "keywright",
            "CREATE TABLE watched (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
        )?;
        let config = leg.config(&server, &store_url);
        let proxy = config.map(ProxyProcess::start).transpose()?;
        Ok(WorkDir { proxy, server })
    }

    pub(super) fn port(&self) -> u16 {
        let proxy = self.proxy.as_ref().map(ProxyProcess::port);
        proxy.unwrap_or_else(|| self.server.port())
    }
}
