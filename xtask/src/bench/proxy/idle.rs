//! What a connection costs a proxy on which nothing is sent: its memory, beside HAProxy's.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use keywright_testkit::{Login, MariaServer, Wire};

use super::ways::{Hop, Way};
use crate::bench::cores::Cores;
use crate::bench::machine::dirty_kb;
use crate::bench::report::{Limit, Section, Table, Target};
use crate::bench::rounds::{Rounds, interleave};

/// Connections that are held at once.
const CONNECTIONS: usize = 500;
/// How long they are left alone before it is looked, seconds: longer than a proxy keeps buffers of such.
const LEFT_ALONE_S: u64 = 3;
/// What one may cost behind rules, kB.
const KB_MAX: f64 = 6.0;

const WAYS: [Way; 3] = [Way::Haproxy, Way::NoRule, Way::Segment];

/// Kilobytes per connection.
struct Figures {
    logged_in_kb: f64,
    used_kb: f64,
}

/// Measures processes of its own, which have served nobody.
pub(super) fn measure(
    server: &MariaServer,
    dir: &Path,
    rounds: u16,
    cores: &Cores,
) -> Result<Section> {
    let figures = interleave(&WAYS, rounds.min(3), |way| {
        let table = way.table();
        server.run("bench", &format!("TRUNCATE {table}"))?;
        let hop = Hop::start(way, server, dir, cores)?;
        let before = dirty_kb(of(&hop)?)?;
        let per_connection = |now: f64| (now - before) / CONNECTIONS as f64;
        let login = Login::root("bench");
        let connect = |_| Wire::connect_tcp(hop.port(), &login);
        let mut crowd = (0..CONNECTIONS)
            .map(connect)
            .collect::<Result<Vec<Wire>>>()?;
        sleep(Duration::from_secs(LEFT_ALONE_S));
        let logged_in_kb = per_connection(dirty_kb(of(&hop)?)?);
        let insert = format!("INSERT INTO {table} (customer, note) VALUES (1, 'a')");
        for wire in &mut crowd {
            wire.run(&insert)?;
            wire.rows("SELECT customer, note FROM read_only WHERE id = 7")?;
        }
        sleep(Duration::from_secs(LEFT_ALONE_S));
        Ok(Figures {
            logged_in_kb,
            used_kb: per_connection(dirty_kb(of(&hop)?)?),
        })
    })?;
    Ok(section(&figures))
}

fn section(figures: &Rounds<Way, Figures>) -> Section {
    let mut table = Table::new(&["way", "logged in, kB", "after statements, kB"]);
    for way in WAYS {
        table.row(vec![
            way.name().to_owned(),
            format!("{:.1}", figures.spread(|round| round[&way].logged_in_kb)),
            format!("{:.1}", figures.spread(|round| round[&way].used_kb)),
        ]);
    }
    let target = |what: &str, figure: fn(&Figures) -> f64| Target {
        what: format!("idle connection, segment keys, {what}: kB"),
        seen: figures.spread(move |round| figure(&round[&Way::Segment])),
        limit: Limit::AtMost(KB_MAX),
        why: None,
    };
    Section {
        title: "Idle connections",
        text: vec![format!(
            "{CONNECTIONS} connections over plain TCP, {LEFT_ALONE_S} s after they logged in, and {LEFT_ALONE_S} s after an insert and a \
             select on each.\nMemory of the proxy's process that nobody shares (`Private_Dirty` of `/proc/<pid>/smaps_rollup`) beyond \
             that before the first, per connection.\nThe kernel's memory for sockets is not in it."
        )],
        table,
        targets: vec![
            target("logged in", |figures| figures.logged_in_kb),
            target("after statements", |figures| figures.used_kb),
        ],
    }
}

fn of(hop: &Hop) -> Result<u32> {
    hop.pid().context("nothing stands on this way")
}
