//! keywright.health where something is wrong: it tells what, and the rest goes on being told.

mod common;

use common::{builder, database, text_rows};
use keywright_testkit::{PgServer, Result, SharedServer, WAIT_MAX, query_i64, wait_until};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

const ROWS: &str = "SELECT count(*) FROM keywright.health";
/// fsync is off in tests.
const ERRORS: &str = "SELECT name, detail, hint FROM keywright.health WHERE severity = 'error' AND name <> 'fsync' ORDER BY name";

fn severity(client: &mut Client, name: &str) -> Result<String> {
    let sql = format!("SELECT severity FROM keywright.health WHERE name = '{name}'");
    Ok(text_rows(client, &sql)?.concat().concat())
}

/// Runs a statement that changes rows of `keywright.node` by hand.
fn by_hand(client: &mut Client, statement: &str) -> Result<()> {
    client.batch_execute("ALTER TABLE keywright.node DISABLE TRIGGER only_by_functions")?;
    client.batch_execute(statement)?;
    client.batch_execute("ALTER TABLE keywright.node ENABLE TRIGGER only_by_functions")?;
    Ok(())
}

/// Copies a database once the sessions that a test has ended are gone.
fn copy_database(server: &PgServer, from: &str, to: &str) -> Result<()> {
    let mut keeper = server.client("postgres")?;
    let copy = format!("CREATE DATABASE {to} TEMPLATE {from}");
    wait_until("the end of the last session", WAIT_MAX, || {
        match keeper.batch_execute(&copy) {
            Ok(()) => Ok(true),
            // The source database is being accessed by other users.
            Err(error) if error.code().is_some_and(|state| state.code() == "55006") => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

#[test]
fn damaged_row_is_a_finding() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.set_layout('leaf')")?;
    let rows = query_i64(&mut client, ROWS)?;
    for damage in ["layout = 'lace'", "readable_zone = 'the moon'"] {
        client.batch_execute("CREATE TABLE was AS SELECT * FROM keywright.node")?;
        by_hand(&mut client, &format!("UPDATE keywright.node SET {damage}"))?;
        // What a session knows already, and what it must look up.
        for mut session in [database.client()?, database.client()?] {
            let output = text_rows(&mut session, ERRORS)?;
            let names: Vec<&str> = output.iter().map(|row| row[0].as_str()).collect();
            assert_eq!(
                names,
                ["layout", "readable bucket", "worker id"],
                "{damage}"
            );
            for row in &output {
                assert!(
                    row[1].contains("keywright's own tables are damaged"),
                    "{row:?}"
                );
                assert!(row[2].contains("restore them"), "{row:?}");
            }
            assert_eq!(query_i64(&mut session, ROWS)?, rows, "{damage}");
        }
        by_hand(
            &mut client,
            "UPDATE keywright.node n SET layout = was.layout, readable_zone = was.readable_zone FROM was; DROP TABLE was",
        )?;
        assert_eq!(text_rows(&mut client, ERRORS)?.len(), 0);
    }
    Ok(())
}

/// Triggers that do not keep others from keywright's tables, whatever turned them off.
#[test]
fn guards_that_are_off_are_a_finding() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    assert_eq!(severity(&mut client, "guards")?, "ok");
    let found = "SELECT severity, detail, hint FROM keywright.health WHERE name = 'guards'";
    for (statement, named) in [
        (
            "ALTER TABLE keywright.tag DISABLE TRIGGER only_by_functions",
            ": only_by_functions on keywright.tag (disabled)",
        ),
        // As a server without the library turns it on.
        (
            "UPDATE pg_trigger SET tgenabled = 'O' WHERE tgrelid = 'keywright.tag'::regclass AND tgname = 'only_by_functions'",
            ": only_by_functions on keywright.tag (not for a subscription)",
        ),
        (
            "DROP TRIGGER restored ON keywright.node",
            ": restored on keywright.node (missing), only_by_functions on keywright.tag (not for a subscription)",
        ),
    ] {
        client.batch_execute(statement)?;
        let row = text_rows(&mut client, found)?.concat();
        assert_eq!(row[0], "error", "{row:?}");
        assert!(row[1].ends_with(named), "{row:?}");
        assert!(row[2].contains("ENABLE ALWAYS TRIGGER"), "{row:?}");
    }
    client.batch_execute(
        "ALTER TABLE keywright.tag ENABLE ALWAYS TRIGGER only_by_functions;
         CREATE TRIGGER restored BEFORE INSERT ON keywright.node FOR EACH ROW EXECUTE FUNCTION keywright.node_inserted();
         ALTER TABLE keywright.node ENABLE TRIGGER restored",
    )?;
    assert_eq!(severity(&mut client, "guards")?, "ok");
    Ok(())
}

#[test]
fn ids_far_ahead_of_the_clock_are_told() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    // The first ids of a number may run ahead for a while.
    client.batch_execute(
        "SELECT keywright.set_worker_id(599, unused => true); SELECT keywright.set_readable_bucket(199, unused => true)",
    )?;
    for (name, far, id) in [
        (
            "lead over the clock",
            "SELECT keywright.set_worker_id(600, above => now() + interval '300 days')",
            "SELECT snowflake_id()",
        ),
        (
            "lead of readable ids",
            "SELECT keywright.set_readable_bucket(200, above => now() + interval '300 days')",
            "SELECT readable_id('AB')",
        ),
    ] {
        client.batch_execute(id)?;
        assert_eq!(severity(&mut client, name)?, "ok");
        client.batch_execute(far)?;
        client.batch_execute(id)?;
        assert_eq!(severity(&mut client, name)?, "warning", "{name}");
    }
    Ok(())
}

#[test]
fn what_stops_all_snowflake_ids_is_a_finding() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.set_worker_id(610)")?;
    client.batch_execute("SELECT snowflake_id()")?;
    assert_eq!(text_rows(&mut client, ERRORS)?.len(), 0);
    let rename = |from: &str, to: &str| {
        format!("UPDATE pg_class SET relname = '{to}' WHERE relname = '{from}'")
    };
    client.batch_execute(&rename("snowflake_bound", "gone"))?;
    let mut late = database.client()?;
    assert_eq!(severity(&mut late, "worker id")?, "error");
    client.batch_execute(&rename("gone", "snowflake_bound"))?;
    let mut late = database.client()?;
    assert_eq!(severity(&mut late, "worker id")?, "ok");
    late.batch_execute("SET keywright.clock_policy = 'spare_worker'")?;
    assert_eq!(severity(&mut late, "layout")?, "error");
    Ok(())
}

/// Whoever has an alert on the view hears nothing of a database that has tags only, and hears of one that has lost its worker id.
#[test]
fn a_worker_id_is_missed_where_snowflake_ids_were_issued() -> Result<()> {
    let shared = SERVER.database(builder)?;
    let server = shared.server();
    let tag = "SELECT keywright.create_tag('orders'); SELECT next_biz_id('orders')";
    let mut original = database(server, "tags_only", tag)?;
    let wrong =
        "SELECT name, severity, detail FROM keywright.health WHERE NOT ok AND name <> 'fsync'";
    let found = text_rows(&mut original, wrong)?;
    assert!(found.is_empty(), "{found:?}");
    let worker = "SELECT severity, detail, hint FROM keywright.health WHERE name = 'worker id'";
    let row = text_rows(&mut original, worker)?.concat();
    assert_eq!(row[0], "info", "{row:?}");
    assert!(row[1].starts_with("this database has no worker id"));
    assert!(row[2].contains("keywright.set_worker_id"), "{row:?}");
    // One copy of a database that has its worker id and no snowflake ids yet, and one of it with both.
    original.batch_execute("SELECT keywright.set_worker_id(620, unused => true)")?;
    drop(original);
    copy_database(server, "tags_only", "early_copy")?;
    let mut original = server.client("tags_only")?;
    original.batch_execute("SELECT snowflake_id()")?;
    assert_eq!(severity(&mut original, "worker id")?, "ok");
    drop(original);
    copy_database(server, "tags_only", "late_copy")?;
    let mut original = server.client("tags_only")?;
    original.batch_execute("SECURITY LABEL FOR keywright ON DATABASE tags_only IS NULL")?;
    for name in ["tags_only", "early_copy", "late_copy"] {
        let row = text_rows(&mut server.client(name)?, worker)?.concat();
        assert_eq!(row[0], "warning", "{name}: {row:?}");
        assert_eq!(row[1], "this database has no worker id", "{name}");
    }
    Ok(())
}
