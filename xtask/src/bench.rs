//! `cargo xtask bench pg`: what an id costs beside what PostgreSQL has, all in one run on one private server;
//! `cargo xtask bench proxy`: what a statement costs on its way through a proxy; `cargo xtask bench port`: how many ids key
//! ports give; and `cargo xtask bench store`: how many reservations each kind of store carries.

mod calls;
mod cores;
mod fed;
mod headlines;
mod inserts;
mod latency;
mod machine;
mod pgbench;
mod port;
mod proxy;
mod report;
mod rounds;
mod server;
mod sizes;
mod store;
mod together;

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use keywright_testkit::{PgServer, workspace_root};

use crate::shell::step;
use report::{Part, Report, Section};
use sizes::Sizes;

/// Fewest rounds of a run whose figures are kept.
const ROUNDS_TO_WRITE: u16 = 5;

/// Measure what ids cost.
#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Pg(Pg),
    Proxy(Proxy),
    Port(Port),
    Store(Store),
}

/// Compare with nextval, gen_random_uuid and others: CPU per call, ids per second, inserts, latency; and tags that are fed.
///
/// Nothing else should run on the machine meanwhile. A target that is missed is shown, and is no failure of the command.
#[derive(Args)]
struct Pg {
    /// Rounds; figures are medians over them. 7, or 3 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: Option<u16>,
    /// Under a minute and a half, to see that it works; the figures mean little.
    #[arg(long)]
    quick: bool,
    /// Write the result to docs/benchmarks.md.
    #[arg(long, conflicts_with = "quick")]
    write: bool,
    /// Measure this part alone; to be given again for another.
    #[arg(long, value_enum, conflicts_with = "write")]
    only: Vec<PgPart>,
}

/// Parts of the benchmark of the extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PgPart {
    /// CPU per call.
    Calls,
    /// Ids per second, several connections together.
    Together,
    /// Inserts of single rows.
    Inserts,
    /// Latency under load.
    Latency,
    /// Throughput and latency beside published figures.
    Headlines,
    /// Tags that a program feeds: CPU per call, and how long a hand-over takes.
    Fed,
}

impl PgPart {
    const ALL: [PgPart; 6] = [
        PgPart::Calls,
        PgPart::Together,
        PgPart::Inserts,
        PgPart::Latency,
        PgPart::Headlines,
        PgPart::Fed,
    ];

    fn measure(self, server: &PgServer, sizes: Sizes) -> Result<Section> {
        match self {
            PgPart::Calls => {
                step("CPU per call");
                calls::measure(server, sizes)
            }
            PgPart::Together => {
                step("ids per second, several connections together");
                together::measure(server, sizes)
            }
            PgPart::Inserts => {
                step("inserts of single rows");
                inserts::measure(server, sizes)
            }
            PgPart::Latency => {
                step("latency under load");
                latency::measure(server, sizes)
            }
            PgPart::Headlines => {
                step("beside published figures");
                headlines::measure(server, sizes)
            }
            PgPart::Fed => {
                step("tags that a program feeds");
                fed::measure(server, sizes)
            }
        }
    }
}

/// Compare ways to a MySQL server: straight, through HAProxy, through the proxy with and without rules.
///
/// Nothing else should run on the machine meanwhile. A target that is missed is shown, and is no failure of the command.
#[derive(Args)]
struct Proxy {
    /// Rounds; figures are medians over them. 5, or 1 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: Option<u16>,
    /// A minute, to see that it works; the figures mean little.
    #[arg(long)]
    quick: bool,
    /// Write the result to docs/benchmarks.md.
    #[arg(long, conflicts_with = "quick")]
    write: bool,
}

/// Count ids of key ports: over HTTP, and over the Redis protocol beside a server of Redis.
///
/// Nothing else should run on the machine meanwhile. A target that is missed is shown, and is no failure of the command.
#[derive(Args)]
struct Port {
    /// Rounds; figures are medians over them. 7, or 1 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: Option<u16>,
    /// Some seconds, to see that it works; the figures mean little.
    #[arg(long)]
    quick: bool,
    /// Write the result to docs/benchmarks.md.
    #[arg(long, conflicts_with = "quick")]
    write: bool,
}

/// Count reservations in each kind of store: MariaDB, PostgreSQL, etcd and a file.
///
/// Nothing else should run on the machine meanwhile.
#[derive(Args)]
struct Store {
    /// Rounds; figures are medians over them. 7, or 1 with --quick.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: Option<u16>,
    /// Some seconds, to see that it works; the figures mean little.
    #[arg(long)]
    quick: bool,
    /// Write the result to docs/benchmarks.md.
    #[arg(long, conflicts_with = "quick")]
    write: bool,
}

impl Bench {
    pub(crate) fn run(self) -> Result<()> {
        match self.what {
            What::Pg(pg) => pg.run(),
            What::Proxy(proxy) => proxy.run(),
            What::Port(port) => port.run(),
            What::Store(store) => store.run(),
        }
    }
}

impl Pg {
    fn run(self) -> Result<()> {
        let sizes = Sizes::new(self.quick, self.rounds);
        enough_to_write(self.write, sizes.rounds)?;
        show(&measure(sizes, &self.only)?, Part::Pg, self.write)
    }
}

impl Proxy {
    fn run(self) -> Result<()> {
        let sizes = proxy::Sizes {
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 5 }),
            run_s: if self.quick { 1 } else { 3 },
        };
        enough_to_write(self.write, sizes.rounds)?;
        show(&proxy::measure(sizes)?, Part::Proxy, self.write)
    }
}

impl Port {
    fn run(self) -> Result<()> {
        let sizes = port::Sizes {
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 15 }),
            run_ms: if self.quick { 300 } else { 1_000 },
        };
        enough_to_write(self.write, sizes.rounds)?;
        show(&port::measure(sizes)?, Part::Port, self.write)
    }
}

impl Store {
    fn run(self) -> Result<()> {
        let sizes = store::Sizes {
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 7 }),
            run_ms: if self.quick { 500 } else { 2_000 },
        };
        enough_to_write(self.write, sizes.rounds)?;
        show(&store::measure(sizes)?, Part::Store, self.write)
    }
}

/// Before anything is measured.
fn enough_to_write(write: bool, rounds: u16) -> Result<()> {
    if write && rounds < ROUNDS_TO_WRITE {
        bail!("--write needs at least {ROUNDS_TO_WRITE} rounds, not {rounds}");
    }
    Ok(())
}

fn show(report: &Report, part: Part, write: bool) -> Result<()> {
    println!("\n{}", report.text());
    if write {
        let file = workspace_root().join("docs/benchmarks.md");
        let before = fs::read_to_string(&file).unwrap_or_default();
        fs::write(&file, report.merged_into(&before, part))
            .with_context(|| format!("writing {}", file.display()))?;
        step("docs/benchmarks.md is written");
    }
    Ok(())
}

fn measure(sizes: Sizes, only: &[PgPart]) -> Result<Report> {
    let load_before = machine::load()?;
    step("building the extension and starting a private server");
    let server = server::start(sizes)?;
    // After the build, whose time says nothing.
    let started = Instant::now();
    let mut sections = Vec::new();
    for part in PgPart::ALL {
        if only.is_empty() || only.contains(&part) {
            sections.push(part.measure(&server, sizes)?);
        }
    }
    Ok(Report {
        machine: machine::facts(&server, sizes.rounds, load_before, started.elapsed())?,
        sections,
    })
}
