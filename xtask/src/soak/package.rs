//! `cargo xtask soak package`.

mod cgroup;
mod extension;
mod figure;
mod in_place;
mod machine;
mod misconfigured;
mod mysql;
mod next;
mod page;
mod postgres;
mod root;
mod says;
mod servers;
mod switching_on;
mod unit;
mod walk;
mod writers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use keywright_testkit::{Flavour, IdLog, workspace_root};
use tempfile::TempDir;

use self::figure::Figure;
use self::machine::Machine;
use self::root::Root;
use crate::install::PG_CONFIG;
use crate::needs::{self, Rights};
use crate::package::make;
use crate::shell::{run, step};
use crate::tree::Tree;

/// The pages whose blocks are carried out.
#[cfg(test)]
const PAGES: [&str; 6] = [
    "README.md",
    "docs/postgres/quick-start.md",
    "docs/mysql/quick-start.md",
    "docs/mysql/switching-on.md",
    unit::SECURITY,
    unit::ROLLING,
];

/// Follow the quick starts word by word in bare Debian roots, from the packages on, and put a later version over each.
///
/// The commands are those of the code blocks of README.md, docs/postgres/quick-start.md, docs/mysql/quick-start.md and
/// docs/mysql/switching-on.md, and what these show is compared with what is said. Each walk has a machine of its own: a root
/// made by debootstrap, with a service manager, in namespaces. Needs root.
#[derive(Args)]
pub(crate) struct Package {
    /// These walks alone; without, all.
    #[arg(value_enum)]
    walks: Vec<Which>,
    /// Keep the bare root with the packages that it downloaded in target/roots/bare, and use it where it is there.
    #[arg(long)]
    keep_root: bool,
}

/// Walks, each on a machine of its own.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// README.md on PostgreSQL; then the package is taken away.
    PostgresReadme,
    /// docs/postgres/quick-start.md; then a later version comes.
    PostgresPage,
    /// README.md on MariaDB; then credentials, reloads, a later version, removal.
    MariadbReadme,
    /// docs/mysql/quick-start.md on MariaDB.
    MariadbPage,
    /// docs/mysql/switching-on.md on MariaDB, while writers go on.
    MariadbSwitchingOn,
    /// docs/mysql/quick-start.md on MySQL.
    MysqlPage,
    /// docs/mysql/switching-on.md on MySQL, while writers go on.
    MysqlSwitchingOn,
    /// What the installed program says of configurations that are wrong.
    Misconfigured,
}

/// The packages of a version.
struct Debs {
    extension: PathBuf,
    program: PathBuf,
    version: String,
}

impl Debs {
    fn of(tree: &Tree) -> Result<Debs> {
        let [extension, program] = make(tree, Path::new(PG_CONFIG))?;
        Ok(Debs {
            extension: extension.deb,
            program: program.deb,
            version: tree.version.clone(),
        })
    }
}

impl Package {
    pub(crate) fn run(self) -> Result<()> {
        if Rights::ours() != Some(Rights::Root) {
            bail!("roots and namespaces are made by root; run this as root");
        }
        needs::install(&needs::to_walk())?;
        // Whatever is under way ends with Ctrl-C as well, and fails; then roots are removed as after any failure.
        ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed))
            .context("watching for Ctrl-C")?;
        let walks = self.walks();
        let ours = Tree::ours()?;
        let debs = Debs::of(&ours)?;
        lintian(&debs.extension)?;
        lintian(&debs.program)?;
        let later = if walks.iter().any(|which| which.needs_later()) {
            step("a later version of the same tree");
            Some(Debs::of(&next::version(&ours)?)?)
        } else {
            None
        };
        let within = directory()?;
        let (figures, failed) = self.carry_out(&walks, within.path(), &debs, later.as_ref())?;
        within.close().context("removing the roots")?;
        for Figure { what, took } in figures {
            println!("{:7.1} s  {what}", took.as_secs_f64());
        }
        if !failed.is_empty() {
            bail!("not walked to the end: {}", failed.join(", "));
        }
        Ok(())
    }

    fn walks(&self) -> Vec<Which> {
        let all = Which::value_variants().iter().copied();
        all.filter(|which| self.walks.is_empty() || self.walks.contains(which))
            .collect()
    }

    /// All of them, also where one fails. Returns what they took, and which failed.
    fn carry_out(
        &self,
        walks: &[Which],
        within: &Path,
        debs: &Debs,
        later: Option<&Debs>,
    ) -> Result<(Vec<Figure>, Vec<String>)> {
        step(
            "a bare root, by debootstrap, with what the packages and the servers of the pages need",
        );
        let began = Instant::now();
        let packages = [postgres::PACKAGES, servers::PACKAGES].concat();
        let bare = if self.keep_root {
            Root::kept(
                within,
                &workspace_root().join("target/roots/bare"),
                &packages,
            )?
        } else {
            let root = Root::bare(within)?;
            root.fetch(&packages)?;
            root
        };
        let mut figures = vec![Figure::new("a bare root, with downloads", began.elapsed())];
        let mut roots = Roots::of(bare, within);
        let mut failed = Vec::new();
        for which in walks {
            let name = which.to_possible_value().context("a walk without a name")?;
            step(&format!("walk {}", name.get_name()));
            let walked = roots.with(which.servers()).and_then(|root| {
                let machine = Machine::boot(root, within, name.get_name())?;
                which.walk(&machine, debs, later)
            });
            match walked {
                Ok(took) => figures.extend(took),
                Err(error) => {
                    println!("    failed: {error:#}");
                    failed.push(name.get_name().to_owned());
                }
            }
            if INTERRUPTED.load(Ordering::Relaxed) {
                bail!("ended in the middle of {}", name.get_name());
            }
        }
        Ok((figures, failed))
    }
}

/// Set by Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What machines are made of; those with servers are made when the first walk needs them.
struct Roots<'a> {
    within: &'a Path,
    bare: Root,
    mariadb: Option<Root>,
    mysql: Option<Root>,
}

impl<'a> Roots<'a> {
    fn of(bare: Root, within: &'a Path) -> Roots<'a> {
        Roots {
            within,
            bare,
            mariadb: None,
            mysql: None,
        }
    }

    fn with(&mut self, servers: Option<Flavour>) -> Result<&Root> {
        let Some(flavour) = servers else {
            return Ok(&self.bare);
        };
        let made = match flavour {
            Flavour::MariaDb => &mut self.mariadb,
            Flavour::MySql => &mut self.mysql,
        };
        if made.is_none() {
            step(&format!("the two {} servers of the pages", flavour.name()));
            *made = Some(servers::with_servers(&self.bare, self.within, flavour)?);
        }
        made.as_ref().context("a root that was just made")
    }
}

impl Which {
    fn servers(self) -> Option<Flavour> {
        match self {
            Which::PostgresReadme | Which::PostgresPage => None,
            Which::MariadbReadme
            | Which::MariadbPage
            | Which::MariadbSwitchingOn
            | Which::Misconfigured => Some(Flavour::MariaDb),
            Which::MysqlPage | Which::MysqlSwitchingOn => Some(Flavour::MySql),
        }
    }

    fn needs_later(self) -> bool {
        match self {
            Which::PostgresPage | Which::MariadbReadme => true,
            Which::PostgresReadme
            | Which::MariadbPage
            | Which::MariadbSwitchingOn
            | Which::MysqlPage
            | Which::MysqlSwitchingOn
            | Which::Misconfigured => false,
        }
    }

    fn walk(self, machine: &Machine, debs: &Debs, later: Option<&Debs>) -> Result<Vec<Figure>> {
        let later = || later.context("no later version was made");
        let program = &debs.program;
        Ok(match self {
            Which::PostgresReadme => {
                let figure = postgres::of_readme(machine, &debs.extension)?;
                step("the package is removed while the server preloads it");
                let preloads = "/var/lib/postgresql/15/main/postgresql.auto.conf";
                extension::removal(machine, &debs.extension, preloads)?;
                vec![figure]
            }
            Which::PostgresPage => vec![
                postgres::of_its_page(machine, &debs.extension)?,
                later_extension(machine, debs, later()?)?,
            ],
            Which::MariadbReadme => vec![
                mysql::of_readme(machine, program)?,
                life_of_the_unit(machine, later()?)?,
            ],
            Which::MariadbPage => vec![mysql::of_its_page(machine, Flavour::MariaDb, program)?],
            Which::MariadbSwitchingOn => {
                vec![switching_on::walk(machine, Flavour::MariaDb, program)?]
            }
            Which::MysqlPage => vec![mysql::of_its_page(machine, Flavour::MySql, program)?],
            Which::MysqlSwitchingOn => vec![switching_on::walk(machine, Flavour::MySql, program)?],
            Which::Misconfigured => vec![misconfigured::walk(machine, program)?],
        })
    }
}

/// A directory for the roots of this run. Those of runs that were killed are removed.
fn directory() -> Result<TempDir> {
    let within = workspace_root().join("target/roots");
    fs::create_dir_all(&within)?;
    for entry in fs::read_dir(&within)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_run = name.split('-').next().and_then(|id| id.parse::<u32>().ok());
        if of_run.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            fs::remove_dir_all(entry.path())
                .with_context(|| format!("removing {}", entry.path().display()))?;
        }
    }
    tempfile::Builder::new()
        .prefix(&format!("{}-", std::process::id()))
        .tempdir_in(within)
        .context("making a directory for roots")
}

fn later_extension(machine: &Machine, debs: &Debs, later: &Debs) -> Result<Figure> {
    step(&format!("{} in place of {}", later.version, debs.version));
    let began = Instant::now();
    let count = extension::upgrade(machine, &later.extension, &later.version)?;
    Ok(Figure::new(
        format!("the extension's upgrade: {count} ids, none twice"),
        began.elapsed(),
    ))
}

/// What becomes of the unit of a program that runs, until its package is gone.
fn life_of_the_unit(machine: &Machine, later: &Debs) -> Result<Figure> {
    let began = Instant::now();
    let ids = IdLog::new();
    unit::verify(machine)?;
    step("passwords as credentials");
    unit::credentials(machine, &ids)?;
    step("a reload that is refused, and one that is not");
    unit::reload(machine, &ids)?;
    step(&format!("{} in its place", later.version));
    unit::upgrade(machine, &later.program, &later.version, &ids)?;
    unit::removal(machine)?;
    let count = ids.check()?.count;
    Ok(Figure::new(
        format!("the unit: credentials, reloads, upgrade, removal; {count} keys, none twice"),
        began.elapsed(),
    ))
}

/// Debian's checker of packages finds no error.
fn lintian(deb: &Path) -> Result<()> {
    step(&format!("lintian {}", deb.display()));
    run(Command::new("lintian")
        .args(["--fail-on", "error"])
        .arg(deb))
}
