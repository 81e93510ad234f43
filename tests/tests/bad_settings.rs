//! Settings that are wrong are told of, and the server goes on with what it had.

mod common;

use common::{builder, expect_unknown_setting, text_rows};
use keywright_testkit::{
    PgServer, Result, SharedServer, Stop, WAIT_MAX, expect_sql_error, wait_until,
};

static SERVER: SharedServer = SharedServer::new();

#[test]
fn wrong_settings_of_a_session_are_refused() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    for (statement, sqlstate, message_has) in [
        (
            "SET keywright.lead_ms_max = 1",
            "22023",
            "1 ms is outside the valid range",
        ),
        (
            "SET keywright.refill_threshold_percent = 100",
            "22023",
            "outside the valid range",
        ),
        (
            "SET keywright.clock_policy = 'hope'",
            "22023",
            "invalid value for parameter",
        ),
        (
            "SET keywright.ids_per_call_max = 'many'",
            "22023",
            "invalid value for parameter",
        ),
        (
            "SET keywright.refill_wait_ms_max = '10 bananas'",
            "22023",
            "invalid value for parameter",
        ),
        (
            "ALTER SYSTEM SET keywright.tags_max = 0",
            "22023",
            "outside the valid range",
        ),
    ] {
        expect_sql_error(client.batch_execute(statement), sqlstate, message_has);
    }
    // The next start would end with it.
    for wrong in ["foo", "parcels=fed:x"] {
        let set = client.batch_execute(&format!("ALTER SYSTEM SET keywright.source = '{wrong}'"));
        let message = "invalid value for parameter \"keywright.source\"";
        let error = expect_sql_error(set, "22023", message);
        assert!(error.detail.contains("TAG=fed:N"), "{error:?}");
    }
    client.batch_execute("ALTER SYSTEM SET keywright.source = 'orders=fed:1, parcels=fed:2'")?;
    client.batch_execute("ALTER SYSTEM RESET keywright.source")?;
    let unknown = client.batch_execute("SET keywright.no_such_setting = 1");
    expect_unknown_setting(unknown, "keywright.no_such_setting")?;
    client.batch_execute("SELECT snowflake_id()")?;
    Ok(())
}

/// In `postgresql.conf`: the server starts, says what it did not take, and goes on with the default.
#[test]
fn wrong_settings_of_the_server_are_logged() -> Result<()> {
    let mut server: PgServer = builder()
        .setting("keywright.lead_ms_max", "5")
        .setting("keywright.clock_policy", "hope")
        .setting("keywright.workers_max", "100000")
        .setting("keywright.no_such_setting", "1")
        .start()?;
    let log = server.log()?;
    for name in [
        "lead_ms_max",
        "clock_policy",
        "workers_max",
        "no_such_setting",
    ] {
        let output = log.contains(&format!("parameter \"keywright.{name}\""))
            || log.contains(&format!("parameter name \"keywright.{name}\""));
        assert!(output, "{name}:\n{log}");
    }
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1); SELECT snowflake_id()",
    )?;
    let settings = "SELECT setting FROM pg_settings WHERE name IN
        ('keywright.lead_ms_max', 'keywright.clock_policy', 'keywright.workers_max') ORDER BY name";
    assert_eq!(
        text_rows(&mut client, settings)?.concat(),
        ["carry", "10000", "64"]
    );

    // At a reload the value in force stays.
    server.set("keywright.lead_ms_max", "20000");
    server.set("keywright.clock_policy", "carry");
    server.set("keywright.workers_max", "64");
    server.restart(Stop::Fast)?;
    let auto = server.data_dir().join("postgresql.auto.conf");
    std::fs::write(
        auto,
        "keywright.lead_ms_max = 'soon'\nkeywright.source = 'fed'\n",
    )?;
    let mut client = server.client("postgres")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    wait_until("the server to complain", WAIT_MAX, || {
        Ok(server
            .log_contains("invalid value for parameter \"keywright.lead_ms_max\": \"soon\"")?
            && server.log_contains("invalid value for parameter \"keywright.source\": \"fed\"")?)
    })?;
    assert_eq!(
        text_rows(&mut client, "SHOW keywright.lead_ms_max")?.concat(),
        ["20s"]
    );
    Ok(())
}
