//! `cargo xtask bench port`: how many ids key ports give, over HTTP and beside a server of Redis, all in one run.

mod idle;
mod load;
mod served;

use std::time::Instant;

use anyhow::Result;
use keywright_testkit::redis::RedisTools;
use tempfile::TempDir;

use super::cores::Cores;
use super::machine;
use super::report::{Limit, Report, Section, Table, Target};
use super::rounds::{Rounds, interleave};
use crate::shell::step;
use load::{Ask, Load};
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
    p99_us: f64,
    p999_us: f64,
    /// Of strict tags: how long the store took to commit, milliseconds, and ids that each commit let go.
    commit: Option<(f64, f64)>,
}

/// Ids per second over HTTP that are wanted on two cores, client included.
const WANTED_PER_S: f64 = 50_000.0;

/// Why fewer ids may come over HTTP.
const ABSOLUTE: &str =
    "An absolute figure: it depends on the machine, whose cores clients and server share.";
/// Why a port may be slower than a server of Redis in memory.
const FEW_PER_CENT: &str = "Both servers do little more than read and write sockets, so a few per cent either way are what the machine gives or takes \
    from one run to the next.";
/// Why a port may have less of an advantage over a server of Redis that syncs.
const SYNC: &str = "With appendfsync always, redis-server syncs the disk before it replies, once for all requests that it has read. So the \
    ratio is that of a sync and a round trip. Where the disk is fast, redis-server in memory itself does not reach ten times that with one client.";
/// Why the slowest replies may be slower than wanted.
const SLOWEST_REPLIES: &str = "The slowest per mille waits while the machine runs something else, or for the disk at a refill. \
    The rows of redis-server in memory, and of keywright where ranges grow, show how slow it is without refills.";

/// Measures everything.
///
/// # Errors
/// A program is missing or fails; a request is refused.
pub(super) fn measure(sizes: Sizes) -> Result<Report> {
    let load_before = machine::load()?;
    step("building the program, starting it and servers of Redis");
    let tools = RedisTools::get()?;
    let dir = TempDir::new()?;
    let cores = Cores::get()?;
    let servers = Servers::start(&tools, dir.path(), cores)?;
    let started = Instant::now();
    let contenders: Vec<Contender> = Served::ALL
        .into_iter()
        .flat_map(|served| served.loads().iter().map(move |&load| (served, load)))
        .collect();
    // So that those that are compared run one after the other.
    let mut in_turn = contenders.clone();
    in_turn.sort_by_key(|&(served, load)| (load, served));
    step("ids");
    let figures = interleave(&in_turn, sizes.rounds, |(served, load)| {
        let before = servers.confirmations(served)?;
        let before_ns = servers.cpu_ns(served)?;
        let run = load::run(servers.port(served), load, sizes.run_ms, cores)?;
        let used_ns = servers.cpu_ns(served)?.saturating_sub(before_ns);
        let ids = run.ids_per_s * sizes.run_ms as f64 / 1e3;
        Ok(Figures {
            ids_per_s: run.ids_per_s,
            p99_us: run.percentile_us(0.99),
            p999_us: run.percentile_us(0.999),
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
    drop(servers);
    step("connections that are idle");
    let idle = idle::measure(&tools, sizes.rounds)?;
    Ok(Report {
        machine: machine::facts_of_ports(&tools, sizes.rounds, load_before, started.elapsed())?,
        sections: vec![
            section(&figures, &contenders, sizes),
            strict(&figures, &contenders),
            idle,
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
        "p99 µs",
        "p99.9 µs",
    ]);
    for &(served, load) in contenders {
        let of = |figure: fn(&Figures) -> f64| {
            figures.spread(move |round| figure(&round[&(served, load)]))
        };
        let ratio = match load.ask.is_http() {
            true => String::new(),
            false => ratio(figures, (served, load), Served::RedisInMemory).to_string(),
        };
        table.row(vec![
            format!("{}, {}", load.name(), served.name()),
            format!("{:.0}", of(|f| f.ids_per_s)),
            ratio,
            format!("{:.2}", of(|f| f.cpu_s)),
            of(|f| f.p99_us).short(0),
            of(|f| f.p999_us).short(0),
        ]);
    }
    Section {
        title: "Ids of key ports",
        text: vec![
            format!(
                "Each client is a connection, for {} ms a run, from one thread of the benchmark itself, which writes requests and counts ends of \
                 answers. Latencies are those of a whole pipeline.\nEvery server has one core, and so one thread of keywright. The clients have the \
                 others; a client that is alone shares the server's core, since the two take turns.\nThe store is a file of this machine. \
                 redis-server keeps nothing (in memory), or each number before it answers (appendfsync always).",
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

/// Ids per second, beside another server that is asked the same.
fn ratio(
    figures: &Rounds<Contender, Figures>,
    (served, load): Contender,
    beside: Served,
) -> super::rounds::Spread {
    figures.spread(move |round| round[&(served, load)].ids_per_s / round[&(beside, load)].ids_per_s)
}

fn targets(figures: &Rounds<Contender, Figures>) -> Vec<Target> {
    let over_http = |ask: Ask| {
        let load = Load::of(ask, served::HTTP_CLIENTS);
        Target {
            what: format!("over HTTP, {}: ids/s", load.name()),
            seen: figures.spread(move |round| round[&(Served::KeysOverHttp, load)].ids_per_s),
            limit: Limit::AtLeast(WANTED_PER_S),
            why: Some(ABSOLUTE),
        }
    };
    let beside = |load: Load, served: Served, (wanted, why): (f64, &'static str)| Target {
        what: format!("{}: ids/s × {}", load.name(), served.name()),
        seen: ratio(figures, (Served::KeysOverRedis, load), served),
        limit: Limit::AtLeast(wanted),
        why: Some(why),
    };
    let cpu = |load: Load| Target {
        what: format!("{}: CPU per id × redis-server, in memory", load.name()),
        seen: figures.spread(move |round| {
            round[&(Served::KeysOverRedis, load)].cpu_s
                / round[&(Served::RedisInMemory, load)].cpu_s
        }),
        limit: Limit::AtMost(1.0),
        why: Some(FEW_PER_CENT),
    };
    let refilled = Target {
        what: format!(
            "{}, while ranges of 1000 are refilled: p99.9 × p99",
            Served::REFILLED.name()
        ),
        seen: figures.spread(|round| {
            let its = &round[&(Served::KeysRefilled, Served::REFILLED)];
            its.p999_us / its.p99_us
        }),
        limit: Limit::AtMost(2.0),
        why: Some(SLOWEST_REPLIES),
    };
    let slowest = |served: Served, name: &str| Target {
        what: format!(
            "{}: p99.9 while ranges of 1000 are refilled × p99.9 {name}",
            Served::REFILLED.name()
        ),
        seen: figures.spread(move |round| {
            let of = |served| round[&(served, Served::REFILLED)].p999_us;
            of(Served::KeysRefilled) / of(served)
        }),
        limit: Limit::AtMost(2.0),
        why: Some(SLOWEST_REPLIES),
    };
    let mut targets = vec![over_http(Ask::Http100), over_http(Ask::HttpPipeline)];
    let in_memory =
        Served::INCR.map(|load| beside(load, Served::RedisInMemory, (0.95, FEW_PER_CENT)));
    targets.extend(in_memory);
    targets.extend(Served::INCR.map(cpu));
    targets.push(beside(
        Load::of(Ask::Incr, 1),
        Served::RedisOnDisk,
        (10.0, SYNC),
    ));
    targets.push(beside(
        Load::of(Ask::Incr, 8),
        Served::RedisOnDisk,
        (3.0, SYNC),
    ));
    targets.push(refilled);
    targets.push(slowest(Served::KeysOverRedis, "where ranges grow"));
    targets.push(slowest(Served::RedisInMemory, "of redis-server, in memory"));
    targets
}
