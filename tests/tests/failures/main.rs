//! Every cause in core's table is produced once, as a user would meet it: SQLSTATE, words, and what to do.

#[path = "../common/mod.rs"]
mod common;
mod databases;
mod servers;

use anyhow::bail;
use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{PgServer, Result, SharedServer, SqlError, TestDatabase};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

fn client() -> Result<(TestDatabase, Client)> {
    let database = SERVER.database(builder)?;
    let client = database.client()?;
    Ok((database, client))
}

/// Prepares, then expects the statement to be refused.
fn refused(prepare: &str, statement: &str, cause: Cause, message_has: &str) -> Result<SqlError> {
    let (_database, mut client) = client()?;
    client.batch_execute(prepare)?;
    let outcome = client.batch_execute(statement);
    Ok(expect_cause(outcome, cause, message_has))
}

/// As [`refused`], on a server of its own.
fn refused_by(
    server: &PgServer,
    prepare: &str,
    statement: &str,
    cause: Cause,
    message_has: &str,
) -> Result<SqlError> {
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    client.batch_execute(prepare)?;
    Ok(expect_cause(
        client.batch_execute(statement),
        cause,
        message_has,
    ))
}

/// Produces the cause: the error, and a word that its hint must have. No `_`: a new cause does not compile untested.
fn produce(cause: Cause) -> Result<(SqlError, &'static str)> {
    Ok(match cause {
        Cause::NotPreloaded | Cause::TagsFull | Cause::WorkersFull | Cause::ClockBehind => {
            servers::on_a_server_of_its_own(cause)?
        }
        Cause::Suspended | Cause::WorkerIdUnset | Cause::WorkerIdInUse => {
            databases::of_identity(cause)?
        }
        Cause::RefillTimeout => (databases::held_up()?, "pg_locks"),
        Cause::Serialization => (databases::overtaken()?, "Retry the transaction"),
        Cause::Privilege => (without_privilege()?, "grant_tag('t', 'role')"),
        Cause::TagUnknown => {
            let statement = "SELECT next_biz_id('orders')";
            let error = refused("", statement, cause, "tag \"orders\" does not exist")?;
            (error, "create_tag('orders')")
        }
        Cause::TagExists => {
            let create = "SELECT keywright.create_tag('t')";
            (
                refused(create, create, cause, "tag \"t\" exists already")?,
                "alter_tag",
            )
        }
        Cause::TagInvalid => {
            let error = refused(
                "",
                "SELECT next_biz_id('a b')",
                cause,
                "must not contain ' '",
            )?;
            (error, "1 to 128 ASCII letters")
        }
        Cause::TagExhausted => {
            let create = "SELECT keywright.create_tag('t', max => 3); SELECT next_biz_ids('t', 3)";
            let message = "tag \"t\" is exhausted at 3";
            (
                refused(create, "SELECT next_biz_id('t')", cause, message)?,
                "alter_tag('t', max => n)",
            )
        }
        Cause::ReadOnly => {
            let statement = "BEGIN READ ONLY; SELECT snowflake_id()";
            (
                refused("", statement, cause, "in a read-only transaction")?,
                "primary",
            )
        }
        Cause::LayoutInvalid => {
            let statement = "SELECT snowflake_decode(1, 'nonsense')";
            (
                refused("", statement, cause, "\"nonsense\" is neither a preset")?,
                "twitter, leaf",
            )
        }
        Cause::LayoutRanOut => {
            let statement = "SELECT keywright.set_layout('baidu')";
            (
                refused("", statement, cause, "ran out at 1732109056000")?,
                "baidu,epoch=",
            )
        }
        Cause::LayoutOverlap => {
            let statement = "SELECT keywright.set_layout('twitter,epoch=2020-01-01')";
            let error = refused(
                "SELECT snowflake_id()",
                statement,
                cause,
                "could repeat ids of layout \"twitter\"",
            )?;
            (error, "earlier epoch")
        }
        Cause::ZoneInvalid => {
            let statement = "SELECT keywright.set_readable_zone('Europe/Berlin')";
            (
                refused("", statement, cause, "is not a fixed offset from UTC")?,
                "'+08:00'",
            )
        }
        Cause::LeadExceeded => {
            let tiny =
                "DROP EXTENSION keywright; CREATE EXTENSION keywright;
                        SELECT keywright.set_layout('time=41,worker=10,sequence=1,epoch=2025-01-01');
                        SET keywright.lead_ms_max = 100";
            let statement = "SELECT snowflake_ids(10000)";
            (
                refused(tiny, statement, cause, "10000 snowflake ids take 5000 ms")?,
                "Ask for fewer ids per call",
            )
        }
        Cause::ArgumentOutOfRange => {
            let error = refused(
                "",
                "SELECT snowflake_ids(0)",
                cause,
                "1 to 10000 ids in one call, not 0",
            )?;
            (error, "1 or more, up to keywright.ids_per_call_max")
        }
        Cause::ArgumentNull => {
            let error = refused("", "SELECT next_biz_id(NULL)", cause, "must not be null")?;
            (error, "next_biz_id('orders')")
        }
        Cause::IdForeign => {
            let error = refused(
                "",
                "SELECT snowflake_decode(-5)",
                cause,
                "id -5 is negative",
            )?;
            assert!(error.hint.contains("negative"), "{error:#?}");
            let error = refused(
                "",
                "SELECT snowflake_decode(9007199254740993, 'js53')",
                cause,
                "bits set that the layout does not use",
            )?;
            (error, "Name the layout")
        }
        Cause::VersionMismatch => {
            let future = "UPDATE pg_extension SET extversion = '99.0' WHERE extname = 'keywright'";
            let error = refused(future, "SELECT readable_id('a')", cause, "version \"99.0\"")?;
            assert!(error.detail.contains("serves 0.1.0"), "{error:#?}");
            (error, "ALTER EXTENSION keywright UPDATE")
        }
        Cause::AdoptRefused => {
            let table = "CREATE TABLE t (id serial)";
            let statement = "SELECT keywright.adopt('t', 't', 'id')";
            (
                refused(table, statement, cause, "it is integer")?,
                "TYPE bigint",
            )
        }
        Cause::InExtensionScript => (servers::in_a_script()?, "after CREATE EXTENSION"),
        Cause::InParallelQuery => (databases::in_a_parallel_query()?, "PARALLEL UNSAFE"),
        Cause::NotPromoted => {
            let used = "SELECT keywright.create_tag('t'); SELECT next_biz_id('t')";
            let statement = "SELECT keywright.promoted(lost => interval '3 s')";
            (
                refused(used, statement, cause, "nothing before a promotion")?,
                "keywright.health",
            )
        }
        Cause::BoundDamaged => {
            let damage = "SELECT keywright.set_layout('leaf'); \
                ALTER TABLE keywright.node DISABLE TRIGGER only_by_functions; \
                UPDATE keywright.node SET layout = 'nonsense'";
            (
                refused(damage, "SELECT snowflake_id()", cause, "damaged")?,
                "restore",
            )
        }
        Cause::OwnTables => {
            let statement = "UPDATE keywright.tag SET increment = 2";
            let create = "SELECT keywright.create_tag('t')";
            let message = "only keywright's functions change the rows of its tables";
            (
                refused(create, statement, cause, message)?,
                "publish your own tables only",
            )
        }
        Cause::IdentityUncommitted => {
            let change = "BEGIN; SELECT keywright.set_worker_id(998)";
            let message = "the worker id or readable bucket was changed by this transaction";
            let (_database, mut client) = client()?;
            client.batch_execute("SELECT snowflake_id()")?;
            client.batch_execute(change)?;
            let outcome = client.batch_execute("SELECT snowflake_id()");
            (expect_cause(outcome, cause, message), "COMMIT")
        }
        Cause::NotFed => {
            let create =
                "SELECT keywright.create_fed_tag('t'); SET keywright.refill_wait_ms_max = 50";
            let message = "tag \"t\" has no ids left, and was handed none within 50 ms";
            (
                refused(create, "SELECT next_biz_id('t')", cause, message)?,
                "[[feed]] section",
            )
        }
        Cause::HandOverRefused => {
            let statement = "SELECT keywright.feed_tag(repeat('0', 32), 1, 1, 1, 1, 't', repeat('a', 32), 1, 2)";
            (
                refused("", statement, cause, "has started anew since")?,
                "await_demand",
            )
        }
        Cause::TagMoved => {
            let server = builder().setting("keywright.source", "fed:1").start()?;
            let statement = "SELECT keywright.create_tag('t')";
            let message = "tag \"t\" issues no ids of its own on this server";
            (
                refused_by(&server, "", statement, cause, message)?,
                "keywright tag move t --to fed",
            )
        }
        Cause::HideKeyMismatch => {
            let create = "SELECT keywright.create_tag('t', hide_bits => 53); \
                ALTER TABLE keywright.tag_secret DISABLE TRIGGER only_by_functions; \
                DELETE FROM keywright.tag_secret";
            let message = "the key that hides the volume of tag \"t\" is missing";
            (
                refused(create, "SELECT next_biz_id('t')", cause, message)?,
                "set_hide_key('t', that_key)",
            )
        }
        Cause::StatementUnsupported
        | Cause::KeyExplicit
        | Cause::StoreUnavailable
        | Cause::TableAhead
        | Cause::TableUnshown
        | Cause::TableUnanswered
        | Cause::UpstreamUnreachable
        | Cause::ConnectionsFull
        | Cause::MemoryFull
        | Cause::PacketTooLarge
        | Cause::PacketMalformed
        | Cause::AuthUnsupported
        | Cause::TlsRequired
        | Cause::UpstreamTls
        | Cause::SocketAccount
        | Cause::LoginTimeout
        | Cause::Draining
        | Cause::CommandRefused
        | Cause::KeyKind
        | Cause::PasswordMissing
        | Cause::PasswordWrong
        | Cause::KeysLeft
        | Cause::TagOrdered
        | Cause::TagHomeUnknown
        | Cause::NobodyActive
        | Cause::SlotsCross
        | Cause::SlotGroupsDiffer
        | Cause::StoreMayLose
        | Cause::PathUnknown
        | Cause::MethodRefused
        | Cause::RequestTimeout
        | Cause::BrowserRefused
        | Cause::RightsMissing
        | Cause::UsersUnknown
        | Cause::LoginsFull
        | Cause::UserExists
        | Cause::UserUnknown
        | Cause::UserInvalid
        | Cause::TagInUse => bail!("{} is the proxy's", cause.name()),
    })
}

fn without_privilege() -> Result<SqlError> {
    let statement = "SET ROLE failures_visitor; SELECT next_biz_id('t')";
    let prepare = "CREATE ROLE failures_visitor; SELECT keywright.create_tag('t');
                   SELECT keywright.revoke_tag('t', 'public')";
    refused(
        prepare,
        statement,
        Cause::Privilege,
        "permission denied for tag \"t\"",
    )
}

#[test]
fn every_cause_is_told_of_and_what_to_do() -> Result<()> {
    let (_keeps_the_server, mut client) = client()?;
    for cause in Cause::OF_POSTGRES {
        let (error, hint_has) = produce(cause)?;
        assert!(
            error.hint.contains(hint_has),
            "{}: {error:#?}",
            cause.name()
        );
        assert!(
            error
                .message
                .starts_with(|first: char| !first.is_uppercase()),
            "{error:#?}"
        );
    }
    client.batch_execute("SELECT snowflake_id()")?;
    Ok(())
}
