//! PostgreSQL's own regression suite. Its files are in Debian's source package, which is older than the security update that is
//! installed; so the server, its test driver and its headers of the source's very version are fetched along with it. All of it is
//! kept below `target/`, and a copy in a temporary directory is what runs.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::machine::account;
use crate::machine::apt::Apt;
use crate::machine::process::run;
use crate::machine::scratch::Scratch;
use crate::{Account, Extension, Result, workspace_root};

const SOURCE: &str = "postgresql-15";
const PACKAGES: &[&str] = &[
    SOURCE,
    "postgresql-client-15",
    "postgresql-server-dev-15",
    "postgresql-15-pgaudit",
];
const LIB: &str = "usr/lib/postgresql/15";
const HEADERS: &str = "usr/include/postgresql/15/server";

/// What the packages leave to libpq-dev, which building the extension needs as well.
const HEADERS_OF_CLIENTS: &str = "/usr/include/postgresql";

/// The suite with the server that it belongs to, in a directory of its own.
#[derive(Debug)]
pub struct PgSuite {
    account: Account,
    scratch: Scratch,
}

/// What became of the suite's tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteOutcome {
    /// All that ran.
    pub tests: usize,
    /// Those that failed, by name.
    pub failed: BTreeSet<String>,
    /// Where they differ from what is expected.
    pub differences: String,
}

impl PgSuite {
    /// Fetches it unless it is there, and puts the extension into a copy.
    ///
    /// # Errors
    /// It cannot be fetched or copied, or its test functions do not compile.
    pub fn with(extension: &Extension) -> Result<PgSuite> {
        let kept = kept()?;
        let account = Account::for_servers(account::POSTGRES)?;
        let scratch = Scratch::new("suite", account)?;
        for part in ["root", "regress", "functions"] {
            run(Command::new("cp")
                .arg("--archive")
                .arg(kept.join(part))
                .arg(scratch.path()))?;
        }
        let root = scratch.path().join("root");
        extension.install(
            &root.join(LIB).join("lib"),
            &root.join("usr/share/postgresql/15"),
        )?;
        Ok(PgSuite { account, scratch })
    }

    /// Runs it on a server of its own with these libraries preloaded.
    ///
    /// # Errors
    /// It does not run to its end.
    pub fn run(&self, preload: &str) -> Result<SuiteOutcome> {
        let dir = self.scratch.path();
        let output_dir = dir.join("output");
        if output_dir.exists() {
            fs::remove_dir_all(&output_dir).context("removing the output of an earlier run")?;
        }
        fs::create_dir(&output_dir).context("making a directory for the output")?;
        self.account.own(&output_dir)?;
        // Query ids are computed for whoever counts by them, and not shown, because the suite compares what is shown.
        let settings = format!(
            "fsync = off\ncompute_query_id = regress\nshared_preload_libraries = '{preload}'\n"
        );
        fs::write(dir.join("settings"), settings).context("writing the server's settings")?;
        let lib = dir.join("root").join(LIB);
        let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
        let mut command = self
            .account
            .command(lib.join("lib/pgxs/src/test/regress/pg_regress"));
        let printed = command
            .current_dir(&output_dir)
            .arg(option("bindir", &lib.join("bin")))
            .arg(option("dlpath", &dir.join("functions")))
            .arg(option("inputdir", &dir.join("regress")))
            .arg(option("outputdir", &output_dir))
            .arg(option("temp-instance", &output_dir.join("instance")))
            .arg(option("temp-config", &dir.join("settings")))
            .arg(option("schedule", &dir.join("regress/parallel_schedule")))
            .args([
                "--no-locale",
                "--encoding=UTF8",
                "--max-concurrent-tests=20",
            ])
            .env_remove("PGOPTIONS")
            .output()
            .context("running pg_regress")?;
        let text = String::from_utf8_lossy(&printed.stdout);
        let mut outcome = SuiteOutcome::read(&text).with_context(|| {
            format!(
                "pg_regress: {text}{}",
                String::from_utf8_lossy(&printed.stderr)
            )
        })?;
        outcome.differences =
            fs::read_to_string(output_dir.join("regression.diffs")).unwrap_or_default();
        Ok(outcome)
    }
}

impl SuiteOutcome {
    /// Reads what pg_regress of PostgreSQL 15 prints.
    fn read(printed: &str) -> Result<SuiteOutcome> {
        let mut tests = 0;
        let mut failed = BTreeSet::new();
        for line in printed.lines() {
            let Some((name, outcome)) = line.split_once(" ... ") else {
                continue;
            };
            let name = name.trim_start_matches("test ").trim();
            tests += 1;
            if !outcome.starts_with("ok") {
                failed.insert(name.to_owned());
            }
        }
        let is_whole = printed.contains(&format!("All {tests} tests passed."))
            || printed.contains(&format!("{} of {tests} tests failed.", failed.len()));
        ensure!(is_whole, "the suite did not run to its end");
        Ok(SuiteOutcome {
            tests,
            failed,
            differences: String::new(),
        })
    }
}

/// The directory below `target/` with the server (`root`), the suite (`regress`) and its compiled functions (`functions`).
fn kept() -> Result<PathBuf> {
    let cache = workspace_root().join("target/postgres");
    let tree = cache.join("15-suite");
    if tree.exists() {
        return Ok(tree);
    }
    fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
    let lock = File::create(cache.join("15-suite.lock")).context("making a lock")?;
    lock.lock().context("locking target/postgres")?;
    if !tree.exists() {
        eprintln!(
            "fetching PostgreSQL's regression suite from Debian (lists 20 MB, packages 50 MB)"
        );
        let unpacked = tempfile::tempdir_in(&cache).context("making a directory to unpack in")?;
        fetch_into(unpacked.path())?;
        // In one step, so that an interrupted unpacking is never taken for a tree.
        fs::rename(unpacked.keep(), &tree)
            .with_context(|| format!("putting {} into place", tree.display()))?;
    }
    Ok(tree)
}

fn fetch_into(dir: &Path) -> Result<()> {
    let apt = Apt::new(None, true, "")?;
    apt.run(&[&["download"], PACKAGES].concat())?;
    apt.run(&["source", "--download-only", SOURCE])?;
    let root = dir.join("root");
    fs::create_dir(&root)?;
    apt.unpack(&root)?;
    run(Command::new("tar")
        .args(["--extract", "--bzip2", "--wildcards"])
        .args(["--strip-components=3", "--directory"])
        .arg(dir)
        .arg("--file")
        .arg(apt.downloaded(".orig.tar.bz2")?)
        .arg("*/src/test/regress"))?;
    let functions = dir.join("functions");
    fs::create_dir(&functions)?;
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-w", "-I"])
        .arg(root.join(HEADERS))
        .args(["-I", HEADERS_OF_CLIENTS, "-o"])
        .arg(functions.join("regress.so"))
        .arg(dir.join("regress/regress.c")))?;
    for library in ["refint.so", "autoinc.so"] {
        let from = root.join(LIB).join("lib").join(library);
        fs::copy(&from, functions.join(library))
            .with_context(|| format!("copying {}", from.display()))?;
    }
    if !dir.join("regress/parallel_schedule").exists() {
        bail!("the source package of {SOURCE} has no src/test/regress/parallel_schedule");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_outcome_is_read() -> Result<()> {
        let printed = "test tablespace                   ... ok          489 ms\n\
            parallel group (2 tests):  char boolean\n     boolean                      ... ok          121 ms\n     \
            char                         ... FAILED      100 ms\n\n 1 of 3 tests failed. \n";
        let outcome = SuiteOutcome::read(printed)?;
        assert_eq!(outcome.tests, 3);
        assert_eq!(outcome.failed, BTreeSet::from(["char".to_owned()]));
        let cut = printed.split_once("     char").map_or("", |(head, _)| head);
        assert!(SuiteOutcome::read(cut).is_err());
        Ok(())
    }
}
