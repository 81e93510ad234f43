//! `cargo xtask bench store`: how many reservations each kind of store carries, all in one run.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use keywright_testkit::etcd::EtcdCluster;
use keywright_testkit::{Flavour, PgServer, Upstream};
use tempfile::TempDir;

use super::machine;
use super::report::{Report, Section, Table};
use super::rounds::{Rounds, interleave};
use crate::needs;
use crate::shell::{cargo, output, run, step};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) rounds: u16,
    /// Duration of one run, milliseconds.
    pub(super) run_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Engine {
    MariaDb,
    Postgres,
    Etcd,
    File,
}

impl Engine {
    const ALL: [Engine; 4] = [
        Engine::MariaDb,
        Engine::Postgres,
        Engine::Etcd,
        Engine::File,
    ];

    fn name(self) -> &'static str {
        match self {
            Engine::MariaDb => "MariaDB",
            Engine::Postgres => "PostgreSQL",
            Engine::Etcd => "etcd, three members",
            Engine::File => "a file",
        }
    }
}

/// Programs that reserve at the same time.
const PROGRAMS: [usize; 2] = [1, 4];

/// One run: where, and how many programs reserve.
type Contender = (Engine, usize);

/// All of them; each keeps what it commits.
struct Stores {
    mariadb: Upstream,
    postgres: PgServer,
    etcd: EtcdCluster,
    dir: TempDir,
}

impl Stores {
    fn start() -> Result<Stores> {
        let mariadb =
            Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
        mariadb.run("", "CREATE DATABASE keywright")?;
        let postgres = PgServer::builder().preload(false).fsync(true).start()?;
        let create = "CREATE DATABASE keywright";
        postgres.client("postgres")?.batch_execute(create)?;
        Ok(Stores {
            mariadb,
            postgres,
            etcd: EtcdCluster::start(3)?,
            dir: TempDir::new()?,
        })
    }

    fn url(&self, engine: Engine) -> String {
        match engine {
            Engine::MariaDb => format!("mysql://root@127.0.0.1:{}/keywright", self.mariadb.port()),
            Engine::Postgres => self.postgres.url("keywright"),
            Engine::Etcd => format!("etcd://{}/keywright", self.etcd.hosts()),
            Engine::File => format!("file:{}", file_in(self.dir.path())),
        }
    }
}

fn file_in(dir: &Path) -> String {
    dir.join("store.db").display().to_string()
}

/// Measures everything.
///
/// # Errors
/// A server is missing or fails; a reservation is refused.
pub(super) fn measure(sizes: Sizes) -> Result<Report> {
    let mut needs = needs::to_build();
    needs.extend(needs::to_build_program());
    needs.extend(needs::to_serve());
    needs.extend(needs::to_serve_mysql());
    needs::install(&needs)?;
    let load_before = machine::load()?;
    step("building, and starting MariaDB, PostgreSQL and etcd");
    let bench = |arguments: &[&str]| {
        let mut command = cargo(["bench", "--quiet", "--package", "keywright-store"]);
        command.args(["--bench", "reservations"]).args(arguments);
        command
    };
    run(&mut bench(&["--no-run"]))?;
    let stores = Stores::start()?;
    let started = Instant::now();
    let contenders: Vec<Contender> = Engine::ALL
        .into_iter()
        .flat_map(|engine| PROGRAMS.map(|programs| (engine, programs)))
        .collect();
    step("reservations");
    let figures = interleave(&contenders, sizes.rounds, |(engine, programs)| {
        let (url, programs, ms) = (
            stores.url(engine),
            programs.to_string(),
            sizes.run_ms.to_string(),
        );
        let said = output(&mut bench(&["--", &url, &programs, &ms]))?;
        let count: u64 = said.trim().parse().context("a count of reservations")?;
        Ok(count as f64 / (sizes.run_ms as f64 / 1e3))
    })?;
    Ok(Report {
        machine: machine::facts_of_stores(sizes.rounds, load_before, started.elapsed())?,
        sections: vec![section(&figures, &contenders, sizes)],
    })
}

fn section(figures: &Rounds<Contender, f64>, contenders: &[Contender], sizes: Sizes) -> Section {
    let mut table = Table::new(&["store, programs", "reservations/s", "× MariaDB"]);
    for &(engine, programs) in contenders {
        let per_s = figures.spread(move |round| round[&(engine, programs)]);
        let ratio = figures
            .spread(move |round| round[&(engine, programs)] / round[&(Engine::MariaDb, programs)]);
        table.row(vec![
            format!("{}, {programs}", engine.name()),
            format!("{per_s:.0}"),
            ratio.to_string(),
        ]);
    }
    Section {
        title: "Reservations by kind of store",
        text: vec![
            format!(
                "Each program reserves one key after the other of a tag whose step is 1, for {} ms a run: `store/benches/reservations.rs`. \
                 Every reservation is a transaction that waits for the disk.\nServers and programs share the machine, and all members of etcd its disk.",
                sizes.run_ms
            ),
            "A tag is reserved from a few times an hour, once its step has followed the demand."
                .to_owned(),
        ],
        table,
        targets: Vec::new(),
    }
}
