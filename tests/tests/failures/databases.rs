//! Causes that take other databases, or other sessions of the same.

use keywright_core::cause::Cause;
use keywright_testkit::{Result, SqlError};

use super::client;
use crate::common::expect_cause;

pub(super) fn of_identity(cause: Cause) -> Result<(SqlError, &'static str)> {
    let (database, mut client) = client()?;
    Ok(match cause {
        Cause::WorkerIdUnset => {
            let clear = format!(
                "SECURITY LABEL FOR keywright ON DATABASE {} IS NULL",
                database.name()
            );
            client.batch_execute(&clear)?;
            let outcome = client.batch_execute("SELECT snowflake_id()");
            (
                expect_cause(outcome, cause, "has no worker id"),
                "set_worker_id(n)",
            )
        }
        Cause::Suspended => {
            // What a restore of another server's dump brings.
            let foreign = "worker=5 system=1 database=1";
            let label = format!(
                "SECURITY LABEL FOR keywright ON DATABASE {} IS '{foreign}'",
                database.name()
            );
            client.batch_execute(&label)?;
            let outcome = client.batch_execute("SELECT snowflake_id()");
            (
                expect_cause(outcome, cause, "worker id 5 was given to another"),
                "set_worker_id(n)",
            )
        }
        _ => {
            let (other, mut other_client) = self::client()?;
            other_client.batch_execute("SELECT keywright.set_worker_id(999)")?;
            let outcome = client.batch_execute("SELECT keywright.set_worker_id(999)");
            let owner = format!("belongs to database \"{}\"", other.name());
            (
                expect_cause(outcome, Cause::WorkerIdInUse, &owner),
                "no other database has",
            )
        }
    })
}

/// Another transaction keeps keywright's table locked.
pub(super) fn held_up() -> Result<SqlError> {
    let (database, mut holder) = client()?;
    holder.batch_execute("SELECT keywright.create_tag('t'); BEGIN; LOCK TABLE keywright.tag")?;
    let mut client = database.client()?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 50")?;
    let outcome = client.batch_execute("SELECT next_biz_id('t')");
    Ok(expect_cause(
        outcome,
        Cause::RefillTimeout,
        "timed out after 50 ms",
    ))
}

/// The tag becomes another after this transaction's snapshot was taken.
pub(super) fn overtaken() -> Result<SqlError> {
    let (database, mut client) = client()?;
    client.batch_execute("SELECT keywright.create_tag('t')")?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")?;
    database.client()?.batch_execute(
        "SELECT keywright.drop_tag('t'); SELECT keywright.create_tag('t', forget_issued => true)",
    )?;
    let outcome = client.batch_execute("SELECT keywright.alter_tag('t', step => 2000)");
    Ok(expect_cause(
        outcome,
        Cause::Serialization,
        "tag \"t\" was changed",
    ))
}

/// A function of somebody's says that it may run in parallel, and does what may not. The session has used none of ours yet, so that it makes
/// no difference whether the server finds a worker for it.
pub(super) fn in_a_parallel_query() -> Result<SqlError> {
    let (_database, mut client) = client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('t');
         CREATE FUNCTION wrapped(call text) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
             'DECLARE answer text; BEGIN EXECUTE ''SELECT '' || call INTO answer; RETURN answer; END';
         SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
    )?;
    let mut refused = |call: &str| {
        let outcome = client.execute("SELECT wrapped($1)", &[&call]);
        expect_cause(outcome, Cause::InParallelQuery, "in a parallel query")
    };
    for call in [
        "snowflake_id()",
        "snowflake_ids(2)",
        "readable_id('AB')",
        "next_biz_ids('t', 2)",
        "keywright.create_tag('u')",
        "keywright.drop_tag('t')",
        "keywright.advance_tag('t', 5)",
        "keywright.set_worker_id(997)",
        "keywright.acknowledge_promotion()",
    ] {
        refused(call);
    }
    Ok(refused("next_biz_id('t')"))
}
