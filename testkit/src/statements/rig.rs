//! A server with the tables, and a proxy before their twins.

use std::fs;

use anyhow::Context;

use super::changes::procedure;
use super::copies::sources;
use super::side::{Session, reset};
use super::sides::Sessions;
use super::tables::TABLES;
use crate::corpus::{KEY_FIRST, KEY_SPACE_SIZE, KEY_SPACES};
use crate::{Flavour, Login, ProxyConfig, ProxyProcess, Result, Upstream, Wire, make_store};

/// As long on both sides: lengths are in what is compared.
const SCHEMAS: [&str; 2] = ["twin_n", "twin_p"];

/// Lines of a log that are shown of a connection that broke.
const LAST_LINES: usize = 40;

/// A server, and a proxy before it.
pub(super) struct Rig {
    server: Upstream,
    proxy: ProxyProcess,
}

impl Rig {
    pub(super) fn start(flavour: Flavour) -> Result<Rig> {
        let server = Upstream::start(flavour)?;
        for schema in SCHEMAS {
            server.run(
                "mysql",
                &format!("CREATE DATABASE {schema} CHARACTER SET utf8mb4"),
            )?;
            server.run(
                schema,
                "CREATE TABLE u (a INT PRIMARY KEY, b VARCHAR(60), n INT, minus INT, `offset` INT);
                 INSERT INTO u VALUES (1, 'one', NULL, 0, 4), (2, 'two', 760, 1, 3), (3, 'one', 0, 2, 2), (4, '5', NULL, 3, 1);
                 CREATE TABLE u3 (n INT, a INT, b VARCHAR(60)); INSERT INTO u3 VALUES (NULL, 1, 'x'), (770, 2, 'y'), (0, 3, 'z')",
            )?;
            server.run(schema, &sources(&TABLES))?;
            for table in &TABLES {
                server.run(
                    schema,
                    &format!("CREATE TABLE {} ({}", table.name, table.definition),
                )?;
                server.run(schema, &procedure(table))?;
            }
        }
        let spaces = || {
            let firsts = (KEY_FIRST..).step_by(KEY_SPACE_SIZE as usize);
            KEY_SPACES
                .iter()
                .zip(firsts)
                .filter(|((schema, table), _)| {
                    schema.is_empty() && TABLES.iter().any(|known| known.name == *table)
                })
        };
        let tags: Vec<(&str, u64)> = spaces()
            .map(|((_, table), first)| (*table, first))
            .collect();
        let store = make_store(&server, "twin_store", &tags)?;
        let mut config = ProxyConfig::before(&server, &store);
        for ((_, table), _) in spaces() {
            config = config.rule(
                &format!("{}.{table}", SCHEMAS[1]),
                &format!("segment:{table}"),
            );
        }
        for rule in &mut config.rules {
            // All key spaces fit INT. Counters are set by hand, between cases.
            rule.push_str("bits_max = 31\nfence = false\n");
        }
        // It says why a connection ends.
        let log = ("KEYWRIGHT_LOG", "info,keywright_proxy=debug");
        config.environment = vec![(log.0.to_owned(), log.1.to_owned())];
        let proxy = ProxyProcess::start(config)?;
        let rig = Rig { server, proxy };
        for (side, schema) in SCHEMAS.into_iter().enumerate() {
            let mut direct = rig.server.wire(schema)?;
            for table in &TABLES {
                reset(&mut direct, table.name, side)?;
            }
        }
        Ok(rig)
    }

    /// What server and proxy logged last: a connection that broke may be the server's own end.
    pub(super) fn last_words(&self) -> String {
        let server = fs::read_to_string(self.server.log_file()).unwrap_or_default();
        let last = |name: &str, log: &str| {
            let lines: Vec<&str> = log.lines().collect();
            let from = lines.len().saturating_sub(LAST_LINES);
            format!("{name} logged last:\n{}", lines[from..].join("\n"))
        };
        [
            last("the server", &server),
            last("the proxy", &self.proxy.log()),
        ]
        .join("\n")
    }

    /// A session on either side that has run these.
    pub(super) fn sessions(&self, prelude: &[String]) -> Result<Sessions> {
        let open = |port: u16, schema: &'static str, side: usize| {
            let mut wire = Wire::connect_tcp(port, &Login::root(schema))?;
            for sql in prelude {
                wire.run(sql).with_context(|| format!("{sql:?}"))?;
            }
            let direct = self.server.wire(schema)?;
            Ok::<_, anyhow::Error>(Session::new(wire, direct, schema, side))
        };
        Ok(Sessions::new(
            open(self.server.port(), SCHEMAS[0], 0)?,
            open(self.proxy.port(), SCHEMAS[1], 1)?,
        ))
    }
}
