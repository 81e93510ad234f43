//! Starts private servers, for the end-to-end tests in `tests/`, for `cargo xtask demo` and for the benchmark.
//!
//! Nothing here touches the system: a server runs as an unprivileged user, in a temporary directory, on a free port,
//! from a private copy of the PostgreSQL installation into which the extension under test is put. Every wait is for
//! a condition and has a limit.
//!
//! ```no_run
//! # fn main() -> keywright_testkit::Result<()> {
//! let mut server = keywright_testkit::PgServer::builder().start()?;
//! server.client("postgres")?.batch_execute("CREATE EXTENSION keywright")?;
//! server.kill9()?;
//! server.start()?;
//! # Ok(()) }
//! ```

pub mod corpus;
pub mod docs;
mod draws;
pub mod etcd;
mod machine;
mod mysql;
mod pg;
mod proxy;
pub mod recipes;
pub mod redis;
pub mod soak;
pub mod statements;
mod wire;

pub use draws::id_log::{Draw, IdFault, IdLog, IdSummary, draw};
pub use draws::load::Load;
pub use machine::account::Account;
pub use machine::apt::{DebianArchive, unpack_packages, unpack_source};
pub use machine::cargo::{cargo, workspace_root};
pub use machine::flood::take_until_refused;
pub use machine::ports::free_port;
pub use machine::relay::Relay;
pub use machine::running::Program;
pub use machine::scratch::{SERVER_DATA_VARIABLE, scratch_dir, server_data_in_memory};
pub use machine::text::assert_has;
pub use machine::wait::{WAIT_MAX, wait_until};
pub use mysql::client::MariaError;
pub use mysql::flavour::{AT_FENCE, Flavour};
pub use mysql::named::{MariaServer, MySqlServer};
pub use mysql::pki::Pki;
pub use mysql::upstream::{Upstream, mysql_tree};
pub use pg::client::{SqlError, copy_ids, expect_sql_error, query_i64, query_text};
pub use pg::clock::FakeClock;
pub use pg::extension::Extension;
pub use pg::install::PgInstall;
pub use pg::pending::{Answer, Pending};
pub use pg::server::{PgServer, PgServerBuilder, Replication, Stop};
pub use pg::shared::{SharedServer, TestDatabase};
pub use pg::suite::{PgSuite, SuiteOutcome};
pub use pg::version::PgVersion;
pub use proxy::config::{NEW_UP_S_MAX, ProxyConfig, make_store};
pub use proxy::process::ProxyProcess;
pub use wire::{
    Attribute, Column, Done, Login, Param, Reply, Rows, SqlFault, Statement, Value, Wire,
    capability, command, status,
};

/// What the harness returns: no caller matches on the error, it is shown.
pub type Result<T> = anyhow::Result<T>;
