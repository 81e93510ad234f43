//! Where a suite's connections go, and what must run for that.

use std::path::Path;

use anyhow::Result;
use keywright_testkit::{Flavour, ProxyConfig, ProxyProcess, Upstream, make_store};

use super::suite::Suite;

/// Where a suite's connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leg {
    Direct,
    Passthrough,
    Watching,
    Rewriting,
}

impl Leg {
    /// The ways through the proxy that are compared with the direct one. Suites of drivers expect the first key of each of their tables
    /// to be 1, so nothing can be rewritten under them; Peewee's and applications take any.
    pub(super) fn of(suite: Suite) -> &'static [Leg] {
        match suite {
            Suite::Pymysql | Suite::Sqlalchemy | Suite::MysqlAsync => {
                &[Leg::Passthrough, Leg::Watching]
            }
            Suite::Peewee
            | Suite::Sequelize
            | Suite::Typeorm
            | Suite::Wordpress
            | Suite::PerconaToolkit => &[Leg::Rewriting],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Leg::Direct => "direct",
            Leg::Passthrough => "proxy without rules",
            Leg::Watching => "proxy that watches all tables",
            Leg::Rewriting => "proxy with rules on all tables",
        }
    }

    /// The rules of the leg's proxy. One that only observes takes every statement all the way except for the change itself.
    fn config(self, suite: Suite, server: &Upstream, store_url: &str) -> Option<ProxyConfig> {
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
            Leg::Rewriting => {
                let mut config = config;
                // Most of the tables have keys of INT.
                for (table, column) in suite.rules() {
                    config.rules.push(format!(
                        "table = \"{table}\"\ncolumn = \"{column}\"\nkey = \"segment:conformance\"\nbits_max = 31\nfence = true\n"
                    ));
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
    pub(super) fn start(
        suite: Suite,
        source: &Path,
        flavour: Flavour,
        leg: Leg,
    ) -> Result<WorkDir> {
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
        suite.install(source, &server)?;
        let config = leg.config(suite, &server, &store_url);
        let proxy = config.map(ProxyProcess::start).transpose()?;
        Ok(WorkDir { proxy, server })
    }

    pub(super) fn port(&self) -> u16 {
        let proxy = self.proxy.as_ref().map(ProxyProcess::port);
        proxy.unwrap_or_else(|| self.server.port())
    }
}
