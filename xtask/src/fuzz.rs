//! `cargo xtask fuzz`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::workspace_root;

use crate::needs;
use crate::shell::{cargo, output, step};
use crate::suites::packages;

/// How long each target runs among all tests: what was found once is run again, and a little is tried.
pub(crate) const SECONDS: u64 = 10;

/// Longest input, bytes.
const INPUT_BYTES_MAX: u32 = 4_096;
/// An input that takes longer has found an endless loop, seconds.
const INPUT_S_MAX: u32 = 10;

/// What makes the compiler count which ways inputs take, and a sum that overflows a panic. None of it needs a nightly one.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Coverflow-checks",
    "-Cdebug-assertions",
];

/// Feed statements and packets to what reads them, guided by the ways they take (libFuzzer).
#[derive(Args)]
pub(crate) struct Fuzz {
    /// Run only this target, such as read, rewrite or packets.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

impl Fuzz {
    pub(crate) fn run(self) -> Result<()> {
        needs::install(&needs::to_fuzz())?;
        each(self.seconds, self.target.as_deref())
    }
}

/// Runs all targets, or the one that is wanted, for so long.
pub(crate) fn each(seconds: u64, wanted: Option<&str>) -> Result<()> {
    let host = host()?;
    let mut any = false;
    for place in crates()? {
        let seeds = seeds(&place);
        for package in packages(&place.join("Cargo.toml"))? {
            let targets = package.targets.iter().map(|target| target.name.as_str());
            for target in targets.filter(|target| wanted.is_none_or(|wanted| wanted == *target)) {
                any = true;
                step(&format!("fuzzing {target} for {seconds} s"));
                run(&place, target, &seeds, &host, seconds)?;
            }
        }
    }
    if !any {
        bail!("there is no target to fuzz of the name {wanted:?}");
    }
    Ok(())
}

/// The crates of fuzzers: `fuzz/` in that of what they feed.
///
/// # Errors
/// Cargo does not understand the workspace.
pub(crate) fn crates() -> Result<Vec<PathBuf>> {
    let packages = packages(&workspace_root().join("Cargo.toml"))?;
    let dirs = packages
        .iter()
        .filter_map(|package| package.manifest_path.parent());
    let crates = dirs.map(|dir| dir.join("fuzz").into_std_path_buf());
    Ok(crates
        .filter(|dir| dir.join("Cargo.toml").is_file())
        .collect())
}

/// What targets begin with: seeds of their own, or else the corpus of the crate's tests.
fn seeds(place: &Path) -> PathBuf {
    let own = place.join("seeds");
    if own.is_dir() {
        return own;
    }
    place.with_file_name("tests").join("corpus")
}

/// Named to cargo, the host is a target like any other: its flags are not those of build scripts.
fn host() -> Result<String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

fn run(place: &Path, target: &str, seeds: &Path, host: &str, seconds: u64) -> Result<()> {
    let build_dir = target_dir().join("fuzz");
    let mut build = cargo(["build", "--quiet", "--release", "--bin", target]);
    build
        .arg("--manifest-path")
        .arg(place.join("Cargo.toml"))
        .args(["--target", host, "--target-dir"])
        .arg(&build_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    crate::shell::run(&mut build)?;
    // What is found goes into the first directory; the seeds are only read.
    let corpus = build_dir.join("corpus").join(target);
    let found = build_dir.join("found");
    for dir in [&corpus, &found] {
        fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    let mut fuzz = Command::new(build_dir.join(host).join("release").join(target));
    fuzz.arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_S_MAX}"))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .arg("-print_final_stats=1")
        .args([corpus.as_path(), seeds]);
    let ran = fuzz.output().context("running the fuzzer")?;
    let said = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        bail!(
            "{target} found something; its input is in {}:\n{said}",
            found.display()
        );
    }
    for line in said
        .lines()
        .filter(|line| line.starts_with("stat::number_of_executed_units"))
    {
        println!("{line}");
    }
    Ok(())
}

fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace_root().join("target"), PathBuf::from)
}
