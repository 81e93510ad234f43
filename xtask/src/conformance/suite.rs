//! The suites that are run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use keywright_testkit::Upstream;

use super::outcome::Outcome;
use super::{applications, node, python, rust};

/// A driver or library with tests of its own, or an application that is used by a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Suite {
    /// Of the last release whose source package has its tests.
    Pymysql,
    /// The tests of its MySQL dialect, with PyMySQL.
    Sqlalchemy,
    /// The unit tests, which talk to a server.
    MysqlAsync,
    /// All of its tests that a MySQL server can run.
    Peewee,
    /// What applications do with it, and what they are given back.
    Sequelize,
    /// The same.
    Typeorm,
    /// What a site does, through WordPress's own functions.
    Wordpress,
    /// Tables are copied, archived and compared while applications insert.
    PerconaToolkit,
}

impl Suite {
    pub(super) fn name(self) -> &'static str {
        match self {
            Suite::Pymysql => "PyMySQL",
            Suite::Sqlalchemy => "SQLAlchemy",
            Suite::MysqlAsync => "mysql_async",
            Suite::Peewee => "Peewee",
            Suite::Sequelize => "Sequelize",
            Suite::Typeorm => "TypeORM",
            Suite::Wordpress => "WordPress",
            Suite::PerconaToolkit => "percona-toolkit",
        }
    }

    /// Tables with rules, and their key columns.
    pub(super) fn rules(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Suite::Pymysql | Suite::Sqlalchemy | Suite::MysqlAsync => &[],
            Suite::Peewee => python::PEEWEE_RULES,
            Suite::Sequelize => node::SEQUELIZE_RULES,
            Suite::Typeorm => node::TYPEORM_RULES,
            Suite::Wordpress => applications::WORDPRESS_RULES,
            Suite::PerconaToolkit => &[("shop.*", "id")],
        }
    }

    /// What the suite expects to be there.
    pub(super) fn schemas(self) -> &'static [&'static str] {
        match self {
            Suite::Pymysql => &["test1", "test2"],
            Suite::Sqlalchemy => &["test", "test_schema", "test_schema_2"],
            Suite::MysqlAsync => &[],
            Suite::Peewee => &["peewee_test", "peewee_before"],
            Suite::Sequelize | Suite::Typeorm => &["orm"],
            Suite::Wordpress => &["wp"],
            Suite::PerconaToolkit => &["shop"],
        }
    }

    /// What is there before the proxy starts: an application that has run without it.
    pub(super) fn install(self, source: &Path, server: &Upstream) -> Result<()> {
        match self {
            Suite::Pymysql | Suite::Sqlalchemy | Suite::MysqlAsync => Ok(()),
            Suite::Peewee => python::make_tables_for_peewee(server),
            Suite::Sequelize => node::make_tables(source, "sequelize.js", server),
            Suite::Typeorm => node::make_tables(source, "typeorm.js", server),
            Suite::Wordpress => applications::install_wordpress(source, server.port()),
            Suite::PerconaToolkit => applications::fill_shop(server),
        }
    }

    pub(super) fn prepare(self, cache: &Path) -> Result<PathBuf> {
        match self {
            Suite::Pymysql => python::prepare_pymysql(cache),
            Suite::Sqlalchemy => python::prepare_sqlalchemy(cache),
            Suite::MysqlAsync => rust::prepare_mysql_async(cache),
            Suite::Peewee => python::prepare_peewee(cache),
            Suite::Sequelize | Suite::Typeorm => node::prepare(cache),
            Suite::Wordpress => applications::unpack(cache, "wordpress", "usr/share/wordpress"),
            Suite::PerconaToolkit => applications::unpack(cache, "percona-toolkit", "usr/bin"),
        }
    }

    /// All of it; or what these of its tests are part of, which are run with as little else as the suite's tool allows.
    pub(super) fn run(self, source: &Path, port: u16, only: &[String]) -> Result<Outcome> {
        match self {
            Suite::Pymysql => python::run_pymysql(source, port, only),
            Suite::Sqlalchemy => python::run_sqlalchemy(source, port, only),
            Suite::MysqlAsync => rust::run_mysql_async(source, port, only),
            Suite::Peewee => python::run_peewee(source, port, only),
            Suite::Sequelize => node::use_tables(source, "sequelize.js", port),
            Suite::Typeorm => node::use_tables(source, "typeorm.js", port),
            Suite::Wordpress => applications::use_wordpress(source, port),
            Suite::PerconaToolkit => applications::use_percona_toolkit(source, port),
        }
    }
}
