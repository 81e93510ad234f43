//! The suites that are run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;

use super::outcome::Outcome;
use super::{python, rust};

/// A driver or library with tests of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Suite {
    /// Of the last release whose source package has its tests.
    Pymysql,
    /// The tests of its MySQL dialect, with PyMySQL.
    Sqlalchemy,
    /// The unit tests, which talk to a server.
    MysqlAsync,
}

impl Suite {
    pub(super) fn name(self) -> &'static str {
        match self {
            Suite::Pymysql => "PyMySQL",
            Suite::Sqlalchemy => "SQLAlchemy",
            Suite::MysqlAsync => "mysql_async",
        }
    }

    /// What the suite expects to be there.
    pub(super) fn schemas(self) -> &'static [&'static str] {
        match self {
            Suite::Pymysql => &["test1", "test2"],
            Suite::Sqlalchemy => &["test", "test_schema", "test_schema_2"],
            Suite::MysqlAsync => &[],
        }
    }

    pub(super) fn prepare(self, cache: &Path) -> Result<PathBuf> {
        match self {
            Suite::Pymysql => python::prepare_pymysql(cache),
            Suite::Sqlalchemy => python::prepare_sqlalchemy(cache),
            Suite::MysqlAsync => rust::prepare_mysql_async(cache),
        }
    }

    /// All of it; or what these of its tests are part of, which are run with as little else as the suite's tool allows.
    pub(super) fn run(self, source: &Path, port: u16, only: &[String]) -> Result<Outcome> {
        match self {
            Suite::Pymysql => python::run_pymysql(source, port, only),
            Suite::Sqlalchemy => python::run_sqlalchemy(source, port, only),
            Suite::MysqlAsync => rust::run_mysql_async(source, port, only),
        }
    }
}
