//! Causes that take a server of their own.

use std::fs;

use keywright_core::cause::Cause;
use keywright_testkit::{PgInstall, PgVersion, Result, SqlError};

use super::refused_by;
use crate::common::{builder, expect_cause};

const WORKER: &str = "SELECT keywright.set_worker_id(1)";

pub(super) fn on_a_server_of_its_own(cause: Cause) -> Result<(SqlError, &'static str)> {
    Ok(match cause {
        Cause::NotPreloaded => {
            let server = builder().preload(false).start()?;
            let error = refused_by(
                &server,
                "",
                "SELECT snowflake_id()",
                cause,
                "is not preloaded",
            )?;
            (error, "shared_preload_libraries")
        }
        Cause::TagsFull => {
            let server = builder().setting("keywright.tags_max", "1").start()?;
            let one = "SELECT keywright.create_tag('a'), keywright.create_tag('b'); SELECT next_biz_id('a')";
            let error = refused_by(
                &server,
                one,
                "SELECT next_biz_id('b')",
                cause,
                "no room in shared memory for tag \"b\"",
            )?;
            assert!(error.hint.contains("rolled back"), "{error:#?}");
            (error, "Raise keywright.tags_max")
        }
        Cause::WorkersFull => {
            let server = builder().setting("keywright.workers_max", "1").start()?;
            let one = format!("{WORKER}; SELECT snowflake_id()");
            let error = refused_by(
                &server,
                &one,
                "SELECT readable_id('a')",
                cause,
                "no room in shared memory",
            )?;
            (error, "Raise keywright.workers_max")
        }
        _ => {
            let server = builder()
                .fake_clock()
                .setting("keywright.clock_policy", "refuse")
                .start()?;
            let one = format!("{WORKER}; SELECT snowflake_id()");
            let mut client = server.client("postgres")?;
            client.batch_execute(&format!("CREATE EXTENSION keywright; {one}"))?;
            server.clock()?.step_to(-3_600)?;
            let outcome = client.batch_execute("SELECT snowflake_id()");
            (
                expect_cause(outcome, Cause::ClockBehind, "earlier than it did"),
                "clock_policy to carry",
            )
        }
    })
}

/// The install script of another extension manages tags.
pub(super) fn in_a_script() -> Result<SqlError> {
    let install = PgInstall::private(PgVersion::under_test()?)?;
    let dir = install.extension_dir();
    fs::write(dir.join("shop.control"), "default_version = '1'\n")?;
    let script = "SELECT keywright.create_tag('t');";
    fs::write(dir.join("shop--1.sql"), script)?;
    let server = builder().install(install.into()).start()?;
    refused_by(
        &server,
        "",
        "CREATE EXTENSION shop",
        Cause::InExtensionScript,
        "create_tag() cannot be used",
    )
}
