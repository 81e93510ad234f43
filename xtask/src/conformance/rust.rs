//! mysql_async from crates.io: its package has its unit tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::outcome::Outcome;
use crate::shell::{output, run, run_loudly};

const VERSION: &str = "0.37.1";

/// The longest the suite may take, in seconds.
const SUITE_S_MAX: &str = "1800";

/// Fetches the package with cargo, by way of a package that depends on it.
pub(super) fn prepare_mysql_async(cache: &Path) -> Result<PathBuf> {
    let wanted = cache.join(format!("mysql_async-{VERSION}"));
    if wanted.exists() {
        return Ok(wanted);
    }
    let asks = cache.join("asks");
    fs::create_dir_all(asks.join("src"))?;
    fs::write(asks.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"asks\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         mysql_async = {{ version = \"={VERSION}\", default-features = false, features = [\"minimal-rust\"] }}\n\n[workspace]\n"
    );
    fs::write(asks.join("Cargo.toml"), manifest)?;
    run_loudly(Command::new("cargo").arg("fetch").current_dir(&asks))?;
    let tree = output(
        Command::new("cargo")
            .args(["metadata", "--format-version=1", "--offline"])
            .current_dir(&asks),
    )?;
    let ending = format!("/mysql_async-{VERSION}/Cargo.toml");
    let path = tree
        .split('"')
        .find_map(|word| word.strip_suffix(&ending))
        .context("cargo does not say where mysql_async lies")?;
    let scratch = cache.join("copying");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    run(Command::new("cp")
        .arg("-r")
        .arg(format!("{path}/mysql_async-{VERSION}"))
        .arg(&scratch))?;
    // It lies below our workspace and is no part of it.
    let manifest = scratch.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, format!("{text}\n[workspace]\n"))?;
    fs::rename(&scratch, &wanted)?;
    Ok(wanted)
}

pub(super) fn run_mysql_async(source: &Path, port: u16, only: &[String]) -> Result<Outcome> {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", SUITE_S_MAX, "cargo", "test", "--lib"])
        .args(["--no-default-features", "--features", "default-rustls-ring"])
        .args(["--no-fail-fast", "--", "--test-threads=4"])
        .args((!only.is_empty()).then_some("--exact"))
        .args(only)
        .current_dir(source)
        .env_remove("CARGO_TARGET_DIR")
        .env("RUST_BACKTRACE", "0")
        .env(
            "DATABASE_URL",
            format!("mysql://root@127.0.0.1:{port}/mysql"),
        );
    let output = command.output().context("running cargo test")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // 0: all passed, 101: some failed, or it did not build and no test is there.
    match output.status.code() {
        Some(0 | 101) if text.contains("test result:") => Ok(Outcome::of_cargo(&text)),
        _ => bail!(
            "the tests of mysql_async ended with {}:\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}
