//! `cargo xtask bench port`: how many ids key ports give, over HTTP and beside a server of Redis, all in one run.

mod load;
mod served;

use std::time::Instant;

use anyhow::Result;
use keywright_testkit::redis::RedisTools;
use tempfile::TempDir;

use super::machine;
use super::report::{Limit, Report, Section, Table, Target};
use super::rounds::{Rounds, interleave};
use crate::shell::step;
use load::{CLIENTS, Load};
use served::{Served, Servers};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) rounds: u16,
    /// Duration of one run, milliseconds.
    pub(super) run_ms: u64,
}

/// One run: who serves, and what is asked.
type Contender = (Served, Load);

/// What one run showed.
struct Figures {
    ids_per_s: f64,
    /// CPU seconds of the server per million ids.
    cpu_s: f64,
    /// Of strict tags: how long the store took to commit, milliseconds, and ids that each commit let go.
    commit: Option<(f64, f64)>,
}

/// Ids per second over HTTP that are wanted on two cores, client included.
const WANTED_PER_S: f64 = 50_000.0;

/// Measures everything.
///
/// # Errors
/// A program is missing or fails; a request is refused.
pub(super) fn measure(sizes: Sizes) -> Result<Report> {
    let load_before = machine::load()?;
    step("building the program, starting it and servers of Redis");
    let tools = RedisTools::get()?;
    let dir = TempDir::new()?;
    let servers = Servers::start(&tools, dir.path())?;
    let started = Instant::now();
    let contenders: Vec<Contender> = Served::ALL
        .into_iter()
        .flat_map(|served| served.loads().iter().map(move |&load| (served, load)))
        .collect();
    step("ids");
    let figures = interleave(&contenders, sizes.rounds, |(served, load)| {
        let before = servers.confirmations(served)?;
        let before_ns = servers.cpu_ns(served)?;
        let ids_per_s = load::run(servers.port(served), load, sizes.run_ms)?;
        let used_ns = servers.cpu_ns(served)?.saturating_sub(before_ns);
        let ids = ids_per_s * sizes.run_ms as f64 / 1e3;
        Ok(Figures {
            ids_per_s,
            cpu_s: used_ns as f64 / 1e9 / ids * 1e6,
            commit: before
                .zip(servers.confirmations(served)?)
                .map(|(before, after)| {
                    let count = after.count - before.count;
                    let ms = (after.seconds - before.seconds) * 1e3;
                    (ms / count, ids / count)
                }),
        })
    })?;
    Ok(Report {
        machine: machine::facts_of_ports(&tools, sizes.rounds, load_before, started.elapsed())?,
        sections: vec![
            section(&figures, &contenders, sizes),
            strict(&figures, &contenders),
        ],
    })
}

fn section(
    figures: &Rounds<Contender, Figures>,
    contenders: &[Contender],
    sizes: Sizes,
) -> Section {
    let mut table = Table::new(&[
        "load, server",
        "ids/s",
        "× redis-server, in memory",
        "CPU s per million ids",
    ]);
    for &(served, load) in contenders {
        let of = |figure: fn(&Figures) -> f64| {
            figures.spread(move |round| figure(&round[&(served, load)]))
        };
        let ratio = match load.is_http() {
            true => String::new(),
            false => ratio(figures, (served, load)).to_string(),
        };
        table.row(vec![
            format!("{}, {}", load.name(), served.name()),
            format!("{:.0}", of(|f| f.ids_per_s)),
            ratio,
            format!("{:.2}", of(|f| f.cpu_s)),
        ]);
    }
    Section {
        title: "Ids of key ports",
        text: vec![
            format!(
                "{CLIENTS} connections for {} ms a run, from threads of the benchmark itself, which writes its requests and counts ends of \
                 answers; client and server share the machine.\nThe store is a file of this machine. redis-server keeps nothing (in memory), \
                 or each number before it answers (appendfsync always).",
                sizes.run_ms
            ),
            "A key port gives no number twice after a crash, as redis-server does with appendfsync always only.".to_owned(),
        ],
        table,
        targets: targets(figures),
    }
}

/// What replies of strict tags wait for.
fn strict(figures: &Rounds<Contender, Figures>, contenders: &[Contender]) -> Section {
    let mut table = Table::new(&["load, server", "ids/s", "ms per commit", "ids per commit"]);
    let is_strict = |served: Served| Served::STRICT.contains(&served);
    for &(served, load) in contenders.iter().filter(|(served, _)| is_strict(*served)) {
        let of = |figure: fn(&Figures) -> f64| {
            figures.spread(move |round| figure(&round[&(served, load)]))
        };
        table.row(vec![
            format!("{}, {}", load.name(), served.name()),
            format!("{:.0}", of(|f| f.ids_per_s)),
            format!("{:.2}", of(|f| f.commit.map_or(f64::NAN, |(ms, _)| ms))),
            format!("{:.1}", of(|f| f.commit.map_or(f64::NAN, |(_, ids)| ids))),
        ]);
    }
    Section {
        title: "Ids of strict tags",
        text: vec![
            "Each reply waits for a commit of the store that began behind its request; one commit lets go of all that came while the one before was \
             under way. etcd has one member, on the same disk."
                .to_owned(),
        ],
        table,
        targets: Vec::new(),
    }
}

fn ratio(figures: &Rounds<Contender, Figures>, (served, load): Contender) -> super::rounds::Spread {
    figures.spread(move |round| {
        round[&(served, load)].ids_per_s / round[&(Served::RedisInMemory, load)].ids_per_s
    })
}

fn targets(figures: &Rounds<Contender, Figures>) -> Vec<Target> {
    let over_http = |load: Load| Target {
        what: format!("over HTTP, {}: ids/s", load.name()),
        seen: figures.spread(move |round| round[&(Served::KeysOverHttp, load)].ids_per_s),
        limit: Limit::AtLeast(WANTED_PER_S),
    };
    let beside_redis = |load: Load| Target {
        what: format!("{}: ids/s × redis-server, in memory", load.name()),
        seen: ratio(figures, (Served::KeysOverRedis, load)),
        limit: Limit::AtLeast(1.0),
    };
    vec![
        over_http(Load::Http100),
        over_http(Load::HttpPipeline),
        beside_redis(Load::Incr),
        beside_redis(Load::IncrPipeline),
    ]
}
