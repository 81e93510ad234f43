//! What a proxy is told, and the store that it needs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, Upstream, WAIT_MAX, wait_until, workspace_root};

/// A program that meets a store's server takes it for one that was started just now if it has run for no longer, seconds. It reserves nothing at first.
pub const NEW_UP_S_MAX: u64 = 2;

/// What a proxy is told. The ports it listens on are chosen when it starts.
#[derive(Debug, Clone, Default)]
pub struct ProxyConfig {
    /// The `[store]` table's `url`; see [`make_store`].
    pub store_url: String,
    /// Further lines of it.
    pub store: String,
    /// Lines of each further store; there are several then, and the first is called `main`.
    pub further_stores: Vec<String>,
    /// One listener for each: the ports of the servers behind them.
    pub upstream_ports: Vec<u16>,
    /// The account of every listener's `admin`, without a password; root if there is none.
    pub admin_user: Option<String>,
    /// A server's socket, to be reached by in place of its port.
    pub upstream_socket: Option<PathBuf>,
    /// `[[rule]]` tables, each without its head.
    pub rules: Vec<String>,
    /// Lines of every `[[listener]]`.
    pub listener: String,
    /// Lines of a key port each, which speaks the Redis protocol. `$PORT` in them is the port that it listens on.
    pub key_ports: Vec<String>,
    /// The same of those that speak HTTP.
    pub http_ports: Vec<String>,
    /// Further tables, such as `[limits]`.
    pub more: String,
    /// Variables that its environment has besides ours.
    pub environment: Vec<(String, String)>,
}

impl ProxyConfig {
    /// One listener before one server, without rules.
    #[must_use]
    pub fn before(upstream: &Upstream, store_url: &str) -> ProxyConfig {
        ProxyConfig {
            store_url: store_url.to_owned(),
            upstream_ports: vec![upstream.port()],
            ..ProxyConfig::default()
        }
    }

    /// The same with a rule: a glob of tables, and where the keys of their column `id` come from.
    #[must_use]
    pub fn rule(mut self, table: &str, key: &str) -> ProxyConfig {
        self.rules.push(format!(
            "table = \"{table}\"\ncolumn = \"id\"\nkey = \"{key}\"\n"
        ));
        self
    }

    /// Key ports alone, with a store in a file of a test's, wherever that lies.
    #[must_use]
    pub fn key_port(file: &Path, lines: &str) -> ProxyConfig {
        ProxyConfig {
            store_url: format!("file:{}", file.display()),
            store: "any_file_system = true\n".to_owned(),
            key_ports: vec![lines.to_owned()],
            ..ProxyConfig::default()
        }
    }

    /// How many ports it listens on.
    pub(super) fn listeners(&self) -> usize {
        self.upstream_ports.len() + self.key_ports.len() + self.http_ports.len()
    }

    pub(super) fn text(&self, ports: &[u16], metrics_port: u16) -> String {
        let head = match self.further_stores.is_empty() {
            true => "[store]",
            false => "[[store]]\nname = \"main\"",
        };
        let mut text = format!("{head}\nurl = \"{}\"\n{}", self.store_url, self.store);
        for lines in &self.further_stores {
            let _ = write!(text, "\n[[store]]\n{lines}\n");
        }
        for (bind, upstream) in ports.iter().zip(&self.upstream_ports) {
            let place = match &self.upstream_socket {
                Some(path) => format!("unix:{}", path.display()),
                None => format!("127.0.0.1:{upstream}"),
            };
            let admin = self.admin_user.as_deref().unwrap_or("root");
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n[[listener]]\nbind = \"127.0.0.1:{bind}\"\nupstream = \"{place}\"\n\
                 admin = \"mysql://{admin}@127.0.0.1:{upstream}\"\n{}\n",
                self.listener
            );
        }
        let of_key_ports = ports.iter().skip(self.upstream_ports.len());
        let of_redis = self.key_ports.iter().map(|lines| ("redis", lines));
        let of_http = self.http_ports.iter().map(|lines| ("http", lines));
        for (bind, (protocol, lines)) in of_key_ports.zip(of_redis.chain(of_http)) {
            let lines = lines.replace("$PORT", &bind.to_string());
            let _ = write!(
                text,
                "\n[[listener]]\nprotocol = \"{protocol}\"\nbind = \"127.0.0.1:{bind}\"\n{lines}\n"
            );
        }
        for rule in &self.rules {
            text.push_str("\n[[rule]]\n");
            text.push_str(rule);
        }
        let _ = write!(
            text,
            "\n[metrics]\nbind = \"127.0.0.1:{metrics_port}\"\n\n{}\n",
            self.more
        );
        text
    }
}

/// Makes a schema with the store's tables and these tags, each with its first id; returns the store's URL. Programs reserve from it at once: some are
/// not to wait for as long as they would on a new server.
///
/// # Errors
/// The server refuses.
pub fn make_store(server: &Upstream, schema: &str, tags: &[(&str, u64)]) -> Result<String> {
    server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
    let tables = fs::read_to_string(workspace_root().join("sql/mysql/keywright_store.sql"))?;
    server.run(schema, &tables)?;
    for (tag, first) in tags {
        server.run(
            schema,
            &format!("INSERT INTO keywright_segment (tag, hi) VALUES ('{tag}', {first})"),
        )?;
    }
    wait_until("a server that is not new", WAIT_MAX, || {
        Ok(server.up_s()? > NEW_UP_S_MAX)
    })?;
    Ok(format!("mysql://root@127.0.0.1:{}/{schema}", server.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_has_every_part() {
        let config = ProxyConfig {
            store_url: "mysql://s".to_owned(),
            upstream_ports: vec![3306],
            listener: "tls = \"disabled\"".to_owned(),
            more: "[limits]\nconnections_max = 5".to_owned(),
            ..ProxyConfig::default()
        };
        let text = config.rule("a.b_*", "snowflake").text(&[6033], 9306);
        let expected = "[store]\nurl = \"mysql://s\"\n\n[[listener]]\nbind = \"127.0.0.1:6033\"\n\
            upstream = \"127.0.0.1:3306\"\nadmin = \"mysql://root@127.0.0.1:3306\"\ntls = \"disabled\"\n\n\
            [[rule]]\ntable = \"a.b_*\"\ncolumn = \"id\"\nkey = \"snowflake\"\n\n\
            [metrics]\nbind = \"127.0.0.1:9306\"\n\n[limits]\nconnections_max = 5\n";
        assert_eq!(text, expected);
    }
}
