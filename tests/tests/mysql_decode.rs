//! `sql/mysql/keywright_decode.sql` on a real MariaDB: the ids that PostgreSQL decodes, decoded to the same.

#[path = "common/vectors.rs"]
mod vectors;

use std::fs;

use keywright_testkit::{MariaError, MariaServer, Result, workspace_root};

fn server() -> Result<MariaServer> {
    let server = MariaServer::start()?;
    server.run("mysql", "CREATE DATABASE shop")?;
    let script = fs::read_to_string(workspace_root().join("sql/mysql/keywright_decode.sql"))?;
    server.run("shop", &script)?;
    // Again, as an upgrade would.
    server.run("shop", &script)?;
    Ok(server)
}

fn decodes_the_fixed_ids(server: &MariaServer) -> Result<()> {
    for vector in vectors::snowflake() {
        let (id, preset) = (vector.id, vector.preset);
        let sql = format!(
            "SELECT snowflake_timestamp({id}, '{preset}'), snowflake_unix_ms({id}, '{preset}'),
                    snowflake_datacenter({id}, '{preset}'), snowflake_worker({id}, '{preset}'),
                    snowflake_sequence({id}, '{preset}'),
                    snowflake_floor(snowflake_timestamp({id}, '{preset}'), '{preset}')"
        );
        let expected = [
            vector.issued_at,
            vector.unix_ms,
            vector.datacenter,
            vector.worker_id,
            vector.sequence,
            vector.floor,
        ];
        assert_eq!(server.run("shop", &sql)?, [expected], "{preset} {id}");
    }
    for vector in vectors::readable() {
        let id = vector.id;
        let sql = format!("SELECT readable_timestamp('{id}'), readable_biz('{id}')");
        assert_eq!(
            server.run("shop", &sql)?,
            [[vector.issued_at, vector.biz]],
            "{id}"
        );
    }
    Ok(())
}

/// What cannot be decoded is an error, never a wrong answer or NULL.
fn refuses_what_is_no_id(server: &MariaServer) -> Result<()> {
    let too_many = "9".repeat(10_000);
    for (call, sqlstate, message_has) in [
        ("snowflake_timestamp(-1, 'twitter')", "22003", "negative"),
        ("snowflake_worker(-1, 'twitter')", "22003", "negative"),
        ("snowflake_datacenter(-1, 'twitter')", "22003", "negative"),
        (
            "snowflake_sequence(9007199254740992, 'js53')",
            "22003",
            "bits set",
        ),
        (
            "snowflake_timestamp(1, 'nonsense')",
            "22023",
            "unknown layout",
        ),
        ("snowflake_timestamp(1, '')", "22023", "unknown layout"),
        ("snowflake_timestamp(1, NULL)", "22023", "unknown layout"),
        (
            "snowflake_layout('twitter', 'colour')",
            "22023",
            "unknown property",
        ),
        ("snowflake_field(1, 60, 4)", "22023", "63 bits"),
        ("snowflake_field(1, -1, 4)", "22023", "63 bits"),
        (
            "snowflake_floor('2000-01-01', 'twitter')",
            "22003",
            "no ids of that moment",
        ),
        (
            "snowflake_floor('2024-12-01', 'baidu')",
            "22003",
            "no ids of that moment",
        ),
        ("readable_timestamp('')", "22003", "not a readable id"),
        (
            "readable_timestamp('260102030405006a_b_00000000')",
            "22003",
            "not a readable id",
        ),
        (
            "readable_timestamp('261302030405006abcd00000000')",
            "22003",
            "not a moment",
        ),
        (
            "readable_timestamp('260102030405006abcd67108864')",
            "22003",
            "67108863",
        ),
        ("readable_biz('hello')", "22003", "not a readable id"),
        (&format!("readable_biz('{too_many}')"), "22001", "too long"),
        (
            &format!("snowflake_worker({too_many}, 'twitter')"),
            "22003",
            "Out of range",
        ),
    ] {
        let error = server.run("shop", &format!("SELECT {call}")).err();
        let error = error.as_ref().and_then(|e| e.downcast_ref::<MariaError>());
        assert!(
            error.is_some_and(|e| e.sqlstate == sqlstate && e.message.contains(message_has)),
            "{:.80}: {error:?}",
            call
        );
    }
    let nulls = "SELECT snowflake_timestamp(NULL, 'leaf'), snowflake_worker(NULL, 'leaf'), readable_biz(NULL)";
    assert_eq!(server.run("shop", nulls)?, [["NULL"; 3]]);
    Ok(())
}

/// The range of a day is found by the primary key, as in PostgreSQL.
fn floor_uses_the_primary_key(server: &MariaServer) -> Result<()> {
    let plan = server.run(
        "shop",
        "CREATE TABLE event (id BIGINT PRIMARY KEY);
         INSERT INTO event SELECT snowflake_floor('2026-01-01', 'twitter') + (seq << 32) FROM seq_1_to_5000;
         ANALYZE TABLE event;
         EXPLAIN SELECT * FROM event WHERE id >= snowflake_floor('2026-01-01', 'twitter') + (4990 << 32)",
    )?;
    let access = plan.last().map(|row| (row[3].as_str(), row[5].as_str()));
    assert_eq!(access, Some(("range", "PRIMARY")), "{plan:?}");
    Ok(())
}

#[test]
fn maria_reads_ids_as_postgres_does() -> Result<()> {
    let server = server()?;
    decodes_the_fixed_ids(&server)?;
    refuses_what_is_no_id(&server)?;
    floor_uses_the_primary_key(&server)
}
