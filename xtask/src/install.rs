//! `cargo xtask install`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::{Extension, PgVersion};

use crate::needs::{self, Rights};
use crate::shell::{output, run, step};
use crate::tree::Tree;

/// Debian's, the version that is tested most.
pub(crate) const PG_CONFIG: &str = "/usr/lib/postgresql/15/bin/pg_config";

/// Build the extension in release mode and put it into a PostgreSQL installation.
#[derive(Args)]
pub(crate) struct Install {
    /// The `pg_config` of the installation; its version decides what is built.
    #[arg(long, value_name = "PATH", default_value = PG_CONFIG)]
    pg_config: PathBuf,
}

impl Install {
    pub(crate) fn run(self) -> Result<()> {
        let server = Server::built_for(&self.pg_config)?;
        step(&format!(
            "putting it into {} and {}",
            server.pkglibdir.display(),
            server.sharedir.display()
        ));
        for file in put(&server)? {
            println!("    {}", file.display());
        }
        println!(
            "Now: add keywright to shared_preload_libraries in postgresql.conf, restart the server, and run\n    \
             CREATE EXTENSION keywright;\nin each database that needs it."
        );
        Ok(())
    }
}

/// An installation, and the extension built for it.
pub(crate) struct Server {
    pub(crate) version: PgVersion,
    pub(crate) pkglibdir: PathBuf,
    pub(crate) sharedir: PathBuf,
    pub(crate) extension: Extension,
}

impl Server {
    /// Asks `pg_config` where things are, and builds; installs what that needs.
    pub(crate) fn built_for(pg_config: &Path) -> Result<Server> {
        Server::built_of(&Tree::ours()?, pg_config)
    }

    /// As [`Server::built_for`], with the extension of this checkout.
    pub(crate) fn built_of(tree: &Tree, pg_config: &Path) -> Result<Server> {
        let needs = if pg_config == Path::new(PG_CONFIG) {
            needs::to_build()
        } else {
            needs::to_compile()
        };
        needs::install(&needs)?;
        let pg_config = &absolute(pg_config)?;
        let ask = |what: &str| output(Command::new(pg_config).arg(what));
        let said = ask("--version")?;
        let version = parse_version(&said)?;
        step(&format!(
            "building the extension {} for {said}",
            tree.version
        ));
        Ok(Server {
            version,
            pkglibdir: ask("--pkglibdir")?.into(),
            sharedir: ask("--sharedir")?.into(),
            extension: Extension::build_of(&tree.root, &tree.target, version, pg_config, true)?,
        })
    }
}

/// Builds run in directories of their own, so a relative path would not lead there; a bare name is looked up on the PATH.
fn absolute(pg_config: &Path) -> Result<PathBuf> {
    if pg_config.components().count() == 1 {
        return Ok(pg_config.to_path_buf());
    }
    std::path::absolute(pg_config).with_context(|| format!("finding {}", pg_config.display()))
}

/// `PostgreSQL 15.20 (Debian 15.20-0+deb12u1)`
fn parse_version(said: &str) -> Result<PgVersion> {
    let number = said.split_whitespace().nth(1);
    let number = number.with_context(|| format!("{said:?} has no version"))?;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next();
    PgVersion::parse(digits.unwrap_or(number))
}

/// With our own rights if they suffice, else with sudo.
fn put(server: &Server) -> Result<Vec<PathBuf>> {
    let error = match server
        .extension
        .install(&server.pkglibdir, &server.sharedir)
    {
        Ok(written) => return Ok(written),
        Err(error) => error,
    };
    let kind = error
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind);
    if kind != Some(ErrorKind::PermissionDenied) {
        return Err(error);
    }
    match Rights::ours() {
        Some(Rights::Sudo) => put_with_sudo(server),
        Some(Rights::Root) | None => Err(error.context("we may not write there; run this as root")),
    }
}

fn put_with_sudo(server: &Server) -> Result<Vec<PathBuf>> {
    let extension_dir = server.sharedir.join("extension");
    let mut files = vec![(
        server.extension.library().to_path_buf(),
        server.pkglibdir.join("keywright.so"),
    )];
    for file in server.extension.sql() {
        let Some(name) = file.file_name() else {
            bail!("{} has no name", file.display());
        };
        files.push((file.clone(), extension_dir.join(name)));
    }
    let mut written = Vec::new();
    for (from, to) in files {
        // Beside, then renamed: writing into a mapped library would crash the server that uses it.
        let beside = to.with_added_extension("new");
        let sudo = Rights::Sudo;
        run(sudo
            .command("install")
            .args(["-m", "644"])
            .arg(&from)
            .arg(&beside))?;
        run(sudo.command("mv").arg(&beside).arg(&to))?;
        written.push(to);
    }
    Ok(written)
}
