//! `cargo xtask package`.

mod contents;
mod debian;
mod extension;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use self::contents::{Contents, empty, relative, stage_files};
use crate::install::{PG_CONFIG, Server};
use crate::needs;
use crate::shell::{output, run, step};
use crate::tree::Tree;

/// Make Debian packages and tarballs of the extension and the program in target/package.
#[derive(Args)]
pub(crate) struct Package {
    /// The `pg_config` of the installation that the extension's package is for.
    #[arg(long, value_name = "PATH", default_value = PG_CONFIG)]
    pg_config: PathBuf,
    /// One of the two packages alone; without, both.
    #[arg(long, value_enum)]
    only: Option<Half>,
}

/// One of the two packages.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Half {
    /// The extension for PostgreSQL.
    Postgres,
    /// The program for MySQL, MariaDB and key ports.
    Mysql,
}

impl Package {
    pub(crate) fn run(self) -> Result<()> {
        let tree = Tree::ours()?;
        let all = match self.only {
            None => Vec::from(make(&tree, &self.pg_config)?),
            Some(Half::Postgres) => {
                needs::install(&needs::to_pack())?;
                vec![of_extension(&tree, &self.pg_config)?]
            }
            Some(Half::Mysql) => {
                needs::install(&needs::to_package())?;
                vec![of_program(&tree)?]
            }
        };
        for made in all {
            println!("{}\n{}", made.deb.display(), made.listed_deb);
            println!("{}\n{}", made.tarball.display(), made.listed_tarball);
        }
        Ok(())
    }
}

/// A package in both forms, and what they hold.
pub(crate) struct Made {
    pub(crate) deb: PathBuf,
    listed_deb: String,
    tarball: PathBuf,
    listed_tarball: String,
}

/// The extension's package for that installation, and the program's, in `target/package` of the checkout.
pub(crate) fn make(tree: &Tree, pg_config: &Path) -> Result<[Made; 2]> {
    needs::install(&needs::to_package())?;
    Ok([of_extension(tree, pg_config)?, of_program(tree)?])
}

fn of_extension(tree: &Tree, pg_config: &Path) -> Result<Made> {
    let server = Server::built_of(tree, pg_config)?;
    pack(&extension::contents(tree, &server)?, &directory(tree)?)
}

fn of_program(tree: &Tree) -> Result<Made> {
    let dir = directory(tree)?;
    pack(&program::contents(tree, &dir)?, &dir)
}

fn directory(tree: &Tree) -> Result<PathBuf> {
    let dir = tree.root.join("target/package");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir)
}

fn pack(contents: &Contents, dir: &Path) -> Result<Made> {
    let stage = empty(&dir.join("stage"))?;
    stage_files(contents, &stage)?;
    let deb = debian::build(contents, &stage, dir)?;
    let tarball = tarball(contents, &stage, dir)?;
    fs::remove_dir_all(&stage).context("removing what was staged")?;
    let listed_deb = output(Command::new("dpkg-deb").arg("--contents").arg(&deb))?;
    see_that_all_is_there(&deb, &listed_deb, contents)?;
    let listed_tarball = output(Command::new("tar").arg("-tzvf").arg(&tarball))?;
    see_that_all_is_there(&tarball, &listed_tarball, contents)?;
    Ok(Made {
        deb,
        listed_deb,
        tarball,
        listed_tarball,
    })
}

fn see_that_all_is_there(package: &Path, listed: &str, contents: &Contents) -> Result<()> {
    for file in &contents.files {
        let inside = relative(&file.to).display().to_string();
        if !listed.contains(&inside) {
            bail!("{} lacks {inside}", package.display());
        }
    }
    Ok(())
}

/// The same files as in the Debian package, to be unpacked over `/`.
fn tarball(contents: &Contents, stage: &Path, dir: &Path) -> Result<PathBuf> {
    let Contents { name, version, .. } = contents;
    let arch = std::env::consts::ARCH;
    let file = dir.join(format!("{name}-{version}-{arch}.tar.gz"));
    step(&format!("making {}", file.display()));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--exclude=./DEBIAN", "-czf"]);
    run(tar.arg(&file).arg("-C").arg(stage).arg("."))?;
    Ok(file)
}
