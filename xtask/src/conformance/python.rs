//! Suites from the Python package index, in an environment of their own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::outcome::Outcome;
use crate::shell::run_loudly;

/// The last release whose source package has the tests.
const PYMYSQL: &str = "PyMySQL==0.10.1";
const SQLALCHEMY: &str = "SQLAlchemy==2.0.44";

/// What the suites run with. The driver under SQLAlchemy is a current one.
const TOOLS: [&str; 5] = [
    "pytest==8.4.2",
    "PyMySQL==1.1.2",
    "greenlet",
    "typing_extensions",
    "cryptography",
];

/// The longest a suite may take, in seconds.
const SUITE_S_MAX: &str = "1800";

pub(super) fn prepare_pymysql(cache: &Path) -> Result<PathBuf> {
    source(cache, PYMYSQL)
}

pub(super) fn prepare_sqlalchemy(cache: &Path) -> Result<PathBuf> {
    source(cache, SQLALCHEMY)
}

fn python(cache: &Path) -> PathBuf {
    cache.join("python/bin/python")
}

fn environment(cache: &Path) -> Result<()> {
    if cache.join("python/ready").exists() {
        return Ok(());
    }
    run_loudly(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(cache.join("python")),
    )?;
    run_loudly(
        Command::new(python(cache))
            .args(["-m", "pip", "install", "--quiet"])
            .args(TOOLS),
    )?;
    fs::write(cache.join("python/ready"), "").context("noting that the environment is whole")
}

/// The unpacked source package.
fn source(cache: &Path, requirement: &str) -> Result<PathBuf> {
    environment(cache)?;
    let (name, version) = requirement
        .split_once("==")
        .context("a version is pinned")?;
    let wanted = cache.join(format!("{}-{version}", name.to_lowercase()));
    if wanted.exists() {
        return Ok(wanted);
    }
    let scratch = cache.join("unpacking");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    run_loudly(
        Command::new(python(cache))
            .args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--no-binary", name, "--dest"])
            .arg(&scratch)
            .arg(requirement),
    )?;
    let only_entry = |what: &str, wanted: fn(&Path) -> bool| -> Result<PathBuf> {
        let mut entries = fs::read_dir(&scratch)?.flatten().map(|entry| entry.path());
        entries
            .find(|path| wanted(path))
            .with_context(|| format!("pip brought no {what} of {requirement}"))
    };
    let archive = only_entry("archive", Path::is_file)?;
    run_loudly(
        Command::new("tar")
            .arg("-xzf")
            .arg(&archive)
            .arg("-C")
            .arg(&scratch),
    )?;
    fs::rename(only_entry("directory", Path::is_dir)?, &wanted)?;
    Ok(wanted)
}

pub(super) fn run_pymysql(source: &Path, port: u16, only: &[String]) -> Result<Outcome> {
    let databases = format!(
        r#"[{{"host": "127.0.0.1", "port": {port}, "user": "root", "passwd": "", "db": "test1", "use_unicode": true, "local_infile": true}},
            {{"host": "127.0.0.1", "port": {port}, "user": "root", "passwd": "", "db": "test2"}}]"#
    );
    fs::write(source.join("pymysql/tests/databases.json"), databases)?;
    pytest(source, "", &[], &["pymysql/tests"], only)
}

pub(super) fn run_sqlalchemy(source: &Path, port: u16, only: &[String]) -> Result<Outcome> {
    let url = format!("mysql+pymysql://root@127.0.0.1:{port}/test");
    let files = [
        "test/dialect/mysql",
        "test/dialect/test_suite.py",
        "test/engine",
        "test/sql/test_insert_exec.py",
        "test/sql/test_returning.py",
        "test/orm/test_unitofwork.py",
    ];
    pytest(source, "lib", &["--dburi", &url], &files, only)
}

/// Runs these files; or those that some tests are in, as SQLAlchemy gives its tests names that cannot be asked for.
fn pytest(
    source: &Path,
    path: &str,
    options: &[&str],
    files: &[&str],
    only: &[String],
) -> Result<Outcome> {
    let file_of = |test: &String| test.split("::").next().map(str::to_owned);
    let mut wanted: BTreeSet<String> = only.iter().filter_map(file_of).collect();
    if only.is_empty() {
        wanted.extend(files.iter().map(|&file| file.to_owned()));
    }
    let cache = source.parent().context("a suite lies in the cache")?;
    let output = Command::new("timeout")
        .args(["--kill-after=5", SUITE_S_MAX])
        .arg(python(cache))
        .args(["-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA"])
        .args(["--tb=no", "--no-header", "--show-capture=no"])
        .args(options)
        .args(wanted)
        .current_dir(source)
        .env("PYTHONPATH", source.join(path))
        .output()
        .context("running pytest")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // 0: all passed, 1: some failed; anything else: they were not run to the end.
    match output.status.code() {
        Some(0 | 1) => Ok(Outcome::of_pytest(&text)),
        _ => bail!(
            "pytest ended with {}:\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}
