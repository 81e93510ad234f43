//! `cargo xtask soak package`.

mod cgroup;
mod extension;
mod figure;
mod machine;
mod mysql;
mod next;
mod page;
mod postgres;
mod root;
mod says;
mod switching_on;
mod unit;
mod walk;
mod writers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use keywright_testkit::{IdLog, workspace_root};
use tempfile::TempDir;

use self::figure::Figure;
use self::machine::Machine;
use self::root::Root;
use crate::install::PG_CONFIG;
use crate::needs::{self, Rights};
use crate::package::{Made, make};
use crate::shell::{run, step};
use crate::tree::Tree;

/// The pages whose blocks are carried out.
#[cfg(test)]
const PAGES: [&str; 5] = [
    "README.md",
    "docs/postgres/quick-start.md",
    "docs/mysql/quick-start.md",
    "docs/mysql/switching-on.md",
    unit::SECURITY,
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
}

/// Walks, each on a machine of its own.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// README.md on PostgreSQL; then the package is taken away.
    PostgresReadme,
    /// docs/postgres/quick-start.md; then a later version comes.
    PostgresPage,
    /// README.md on MariaDB; then credentials, reloads, a later version, removal.
    MysqlReadme,
    /// docs/mysql/quick-start.md.
    MysqlPage,
    /// docs/mysql/switching-on.md, while writers go on.
    SwitchingOn,
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
        for Made { deb, .. } in [&extension, &program] {
            lintian(deb)?;
        }
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
        ctrlc::set_handler(|| {}).context("watching for Ctrl-C")?;
        let ours = Tree::ours()?;
        let debs = Debs::of(&ours)?;
        step("a later version of the same tree");
        let later = Debs::of(&next::version(&ours)?)?;
        let within = directory()?;
        let figures = self.walk(within.path(), &debs, &later)?;
        within.close().context("removing the roots")?;
        for Figure { what, took } in figures {
            println!("{:7.1} s  {what}", took.as_secs_f64());
        }
        Ok(())
    }

    fn walk(&self, within: &Path, debs: &Debs, later: &Debs) -> Result<Vec<Figure>> {
        step("a bare root, by debootstrap");
        let began = Instant::now();
        let root = Root::bare(within)?;
        let mut figures = vec![Figure::new("a bare root, by debootstrap", began.elapsed())];
        step("downloading what the packages and the servers of the pages need");
        root.fetch(&[postgres::PACKAGES, mysql::PACKAGES].concat())?;
        let mut root_with_servers = None;
        for which in Which::value_variants() {
            if !self.walks.is_empty() && !self.walks.contains(which) {
                continue;
            }
            let name = which.to_possible_value().context("a walk without a name")?;
            step(&format!("walk {}", name.get_name()));
            if which.needs_servers() && root_with_servers.is_none() {
                step("the two MariaDB servers of the pages");
                root_with_servers = Some(mysql::with_servers(&root)?);
            }
            let of = root_with_servers.as_ref().filter(|_| which.needs_servers());
            let machine = Machine::boot(of.unwrap_or(&root), name.get_name())?;
            figures.extend(which.walk(&machine, debs, later)?);
        }
        Ok(figures)
    }
}

impl Which {
    fn needs_servers(self) -> bool {
        match self {
            Which::PostgresReadme | Which::PostgresPage => false,
            Which::MysqlReadme | Which::MysqlPage | Which::SwitchingOn => true,
        }
    }

    fn walk(self, machine: &Machine, debs: &Debs, later: &Debs) -> Result<Vec<Figure>> {
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
                later_extension(machine, debs, later)?,
            ],
            Which::MysqlReadme => vec![
                mysql::of_readme(machine, &debs.program)?,
                life_of_the_unit(machine, later)?,
            ],
            Which::MysqlPage => vec![mysql::of_its_page(machine, &debs.program)?],
            Which::SwitchingOn => vec![switching_on::walk(machine, &debs.program)?],
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
