//! Suites of Python's libraries, in an environment of their own. Peewee's is in no package of the index, but in Debian's source package.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use keywright_testkit::{Upstream, unpack_source};

use super::outcome::Outcome;
use crate::shell::run_loudly;

/// The last release whose source package has the tests.
const PYMYSQL: &str = "PyMySQL==0.10.1";
const SQLALCHEMY: &str = "SQLAlchemy==2.0.44";
/// Debian's number of the release.
const PEEWEE: &str = "3.14.10+dfsg-1";

/// How it asks MySQL for a table's columns, which come by one index or by another, as the server's statistics are.
const PEEWEE_COLUMNS: &str = "WHERE table_name = %s AND table_schema = DATABASE()";
/// As later releases ask; some of its tests expect that order.
const PEEWEE_COLUMNS_IN_ORDER: &str =
    "WHERE table_name = %s AND table_schema = DATABASE() ORDER BY ordinal_position";

/// Tables of Peewee's tests, and their key columns. Some tables have no key that a server numbers, or one of text.
pub(super) const PEEWEE_RULES: &[(&str, &str)] = &[
    ("peewee_*.underscores", "_id"),
    ("peewee_*.col_types", "f11"),
    ("peewee_*.big_model", "pk"),
    ("peewee_*.t1", "pk"),
    ("peewee_*.*", "id"),
];

/// A rule must be for some table when the proxy starts, and the tests begin with an empty schema.
const PEEWEE_TABLES: &str = "
    CREATE TABLE underscores (_id INT AUTO_INCREMENT PRIMARY KEY);
    CREATE TABLE col_types (f11 INT AUTO_INCREMENT PRIMARY KEY);
    CREATE TABLE big_model (pk BIGINT AUTO_INCREMENT PRIMARY KEY);
    CREATE TABLE t1 (pk INT AUTO_INCREMENT PRIMARY KEY);
    CREATE TABLE others (id INT AUTO_INCREMENT PRIMARY KEY)";

/// What Peewee tests with any server; the other files are about SQLite, PostgreSQL and other drivers.
const PEEWEE_FILES: [&str; 28] = [
    "tests/db_tests.py",
    "tests/expressions.py",
    "tests/fields.py",
    "tests/keys.py",
    "tests/manytomany.py",
    "tests/models.py",
    "tests/model_save.py",
    "tests/model_sql.py",
    "tests/prefetch_tests.py",
    "tests/queries.py",
    "tests/regressions.py",
    "tests/results.py",
    "tests/schema.py",
    "tests/sql.py",
    "tests/transactions.py",
    "tests/dataset.py",
    "tests/db_url.py",
    "tests/extra_fields.py",
    "tests/hybrid.py",
    "tests/kv.py",
    "tests/migrations.py",
    "tests/pool.py",
    "tests/pwiz_integration.py",
    "tests/reflection.py",
    "tests/returning.py",
    "tests/shortcuts.py",
    "tests/signals.py",
    "tests/test_utils.py",
];

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

pub(super) fn prepare_peewee(cache: &Path) -> Result<PathBuf> {
    environment(cache)?;
    let wanted = cache.join(format!("peewee-{PEEWEE}-in-order"));
    if !wanted.exists() {
        let scratch = empty(cache, "unpacking-source")?;
        unpack_source("peewee", PEEWEE, &scratch)?;
        let library = scratch.join("peewee.py");
        let text = fs::read_to_string(&library)?;
        if !text.contains(PEEWEE_COLUMNS) {
            bail!("Peewee asks for columns in another way");
        }
        let mended = text.replace(PEEWEE_COLUMNS, PEEWEE_COLUMNS_IN_ORDER);
        fs::write(&library, mended)?;
        fs::rename(&scratch, &wanted)?;
    }
    Ok(wanted)
}

/// In a schema beside that of the tests.
pub(super) fn make_tables_for_peewee(server: &Upstream) -> Result<()> {
    server.run("peewee_before", PEEWEE_TABLES)?;
    Ok(())
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

/// A directory for what may break off.
fn empty(cache: &Path, name: &str) -> Result<PathBuf> {
    let scratch = cache.join(name);
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    Ok(scratch)
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
    let scratch = empty(cache, "unpacking")?;
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
    let suite = Pytest {
        path: "",
        options: &[],
        environment: &[],
        files: &["pymysql/tests"],
    };
    suite.run(source, only)
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
    let suite = Pytest {
        path: "lib",
        options: &["--dburi", &url],
        environment: &[],
        files: &files,
    };
    suite.run(source, only)
}

pub(super) fn run_peewee(source: &Path, port: u16, only: &[String]) -> Result<Outcome> {
    let port = port.to_string();
    let suite = Pytest {
        path: "",
        options: &[],
        environment: &[
            ("PEEWEE_TEST_BACKEND", "mysql"),
            ("PEEWEE_MYSQL_HOST", "127.0.0.1"),
            ("PEEWEE_MYSQL_PORT", &port),
            ("PEEWEE_MYSQL_USER", "root"),
        ],
        files: &PEEWEE_FILES,
    };
    suite.run(source, only)
}

/// How a suite is run.
struct Pytest<'a> {
    /// Where its library lies in the source package.
    path: &'a str,
    options: &'a [&'a str],
    environment: &'a [(&'a str, &'a str)],
    files: &'a [&'a str],
}

impl Pytest<'_> {
    /// Runs its files; or those that some tests are in, as SQLAlchemy gives its tests names that cannot be asked for.
    fn run(&self, source: &Path, only: &[String]) -> Result<Outcome> {
        let file_of = |test: &String| test.split("::").next().map(str::to_owned);
        let mut wanted: BTreeSet<String> = only.iter().filter_map(file_of).collect();
        if only.is_empty() {
            wanted.extend(self.files.iter().map(|&file| file.to_owned()));
        }
        let cache = source.parent().context("a suite lies in the cache")?;
        let output = Command::new("timeout")
            .args(["--kill-after=5", SUITE_S_MAX])
            .arg(python(cache))
            .args(["-m", "pytest", "-p", "no:cacheprovider", "-q", "-rA"])
            .args(["--tb=no", "--no-header", "--show-capture=no"])
            .args(self.options)
            .args(wanted)
            .current_dir(source)
            .envs(self.environment.iter().copied())
            .env("PYTHONPATH", source.join(self.path))
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
}
