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

mod account;
mod apt;
mod cargo;
mod client;
mod clock;
pub mod corpus;
pub mod docs;
mod extension;
mod id_log;
mod install;
mod load;
mod maria;
mod mysql;
mod pending;
mod pg_suite;
mod pki;
mod process;
mod proxy_process;
mod scratch;
mod server;
mod shared;
pub mod soak;
pub mod statements;
mod upstream;
mod wait;
mod wheel;
mod wire;

pub use account::Account;
pub use apt::DebianArchive;
pub use cargo::cargo;
pub use client::{SqlError, copy_ids, expect_sql_error, query_i64, query_text};
pub use clock::FakeClock;
pub use extension::{Extension, workspace_root};
pub use id_log::{Draw, IdFault, IdLog, IdSummary};
pub use install::{PgInstall, PgVersion};
pub use load::Load;
pub use maria::{MariaError, MariaServer};
pub use mysql::MySqlServer;
pub use pending::{Answer, Pending};
pub use pg_suite::{PgSuite, SuiteOutcome};
pub use pki::Pki;
pub use proxy_process::{ProxyConfig, ProxyProcess, assert_has, make_store};
pub use server::{PgServer, PgServerBuilder, Replication, Stop, free_port};
pub use shared::{SharedServer, TestDatabase};
pub use upstream::{AT_FENCE, Flavour, Upstream};
pub use wait::{WAIT_MAX, wait_until};
pub use wire::{
    Attribute, Column, Done, Login, Param, Reply, Rows, SqlFault, Statement, Value, Wire,
    capability, command, status,
};

/// What the harness returns: no caller matches on the error, it is shown.
pub type Result<T> = anyhow::Result<T>;
