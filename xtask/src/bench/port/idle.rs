//! What a connection costs a key port on which nothing is sent: its memory, beside a server of Redis.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use keywright_testkit::redis::{RedisServer, RedisTools, RespClient};
use tempfile::TempDir;

use super::super::machine::dirty_kb;
use super::super::report::{Limit, Section, Table, Target};
use super::super::rounds::{Rounds, interleave};
use super::served::{Its, Keywright};

/// Connections that are held at once.
const CONNECTIONS: usize = 5_000;
/// How long they are left alone before it is looked, seconds: longer than buffers of such are kept.
const LEFT_ALONE_S: u64 = 3;

/// Kilobytes per connection.
struct Figures {
    connected_kb: f64,
    used_kb: f64,
}

/// Who is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Redis,
    Keywright,
}

/// A process of its own, which has served nobody. It is ended when dropped.
enum Server {
    Redis(RedisServer),
    Keywright(Keywright),
}

impl To {
    const ALL: [To; 2] = [To::Redis, To::Keywright];

    fn name(self) -> &'static str {
        match self {
            To::Redis => "redis-server",
            To::Keywright => "keywright",
        }
    }

    fn start(self, tools: &RedisTools, dir: &Path) -> Result<Server> {
        Ok(match self {
            To::Redis => Server::Redis(RedisServer::start(tools, &["--appendonly", "no"])?),
            To::Keywright => Server::Keywright(Keywright::start(dir, "idle", Its::Distinct, None)?),
        })
    }
}

impl Server {
    fn port(&self) -> u16 {
        match self {
            Server::Redis(server) => server.port(),
            Server::Keywright(server) => server.redis,
        }
    }

    fn pid(&self) -> u32 {
        match self {
            Server::Redis(server) => server.pid(),
            Server::Keywright(server) => server.process.id(),
        }
    }
}

/// The program was built before.
///
/// # Errors
/// A server does not start, or refuses a connection.
pub(super) fn measure(tools: &RedisTools, rounds: u16) -> Result<Section> {
    let figures = interleave(&To::ALL, rounds.min(3), |to| {
        let dir = TempDir::new()?;
        let server = to.start(tools, dir.path())?;
        let before = dirty_kb(server.pid())?;
        let per_connection = |now: f64| (now - before) / CONNECTIONS as f64;
        let connect = |_| RespClient::connect(server.port());
        let mut crowd = (0..CONNECTIONS)
            .map(connect)
            .collect::<Result<Vec<RespClient>>>()?;
        sleep(Duration::from_secs(LEFT_ALONE_S));
        let connected_kb = per_connection(dirty_kb(server.pid())?);
        for client in &mut crowd {
            client.say("INCR id")?.integer()?;
        }
        sleep(Duration::from_secs(LEFT_ALONE_S));
        Ok(Figures {
            connected_kb,
            used_kb: per_connection(dirty_kb(server.pid())?),
        })
    })?;
    Ok(section(&figures))
}

fn section(figures: &Rounds<To, Figures>) -> Section {
    let mut table = Table::new(&["server", "connected, kB", "after an INCR, kB"]);
    for to in To::ALL {
        table.row(vec![
            to.name().to_owned(),
            format!("{:.1}", figures.spread(|round| round[&to].connected_kb)),
            format!("{:.1}", figures.spread(|round| round[&to].used_kb)),
        ]);
    }
    Section {
        title: "Idle connections of key ports",
        text: vec![format!(
            "{CONNECTIONS} connections, {LEFT_ALONE_S} s after they were made, and {LEFT_ALONE_S} s after an INCR on each.\nMemory of the \
             server's process that nobody shares (`Private_Dirty` of `/proc/<pid>/smaps_rollup`) beyond that before the first, per \
             connection.\nThe kernel's memory for sockets is not in it."
        )],
        table,
        targets: vec![Target {
            what: "idle connection, after an INCR: memory × redis-server".to_owned(),
            seen: figures.spread(|round| round[&To::Keywright].used_kb / round[&To::Redis].used_kb),
            limit: Limit::AtMost(1.0),
            why: None,
        }],
    }
}
