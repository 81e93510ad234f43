//! UUIDs as SQL on PostgreSQL: what others make of the same names, and moments that neither repeat nor go back.

mod common;

use std::collections::HashSet;

use common::builder;
use keywright_testkit::{Result, SharedServer, query_i64, query_text};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

const DNS: &str = "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'";

fn text(client: &mut Client, expression: &str) -> Result<String> {
    Ok(query_text(client, &format!("SELECT ({expression})::text"))?)
}

#[test]
fn names_have_the_uuids_that_others_give_them() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    for (expression, uuid) in [
        // Java's UUID.nameUUIDFromBytes(new byte[] {10, 20, 30}).
        (
            "uuid_v3('\\x0a141e')",
            "7f49b84d-0bbc-38e9-a493-718013baace6",
        ),
        // The examples of RFC 9562.
        (
            &format!("uuid_v3({DNS}, 'www.example.com')"),
            "5df41881-3aed-3515-88a7-2f4a814cf09e",
        ),
        (
            &format!("uuid_v5({DNS}, 'www.example.com')"),
            "2ed6657d-e927-568b-95e1-2665a8aea6a2",
        ),
        (
            &format!("uuid_v5({DNS}, '\\x7777772e6578616d706c652e636f6d'::bytea)"),
            "2ed6657d-e927-568b-95e1-2665a8aea6a2",
        ),
        // Python's uuid.uuid5 of a name that is not ASCII.
        (
            &format!("uuid_v5({DNS}, 'bücher.example')"),
            "849d4d8f-6c8e-59fa-9721-89ccba396bf9",
        ),
    ] {
        assert_eq!(text(&mut client, expression)?, uuid, "{expression}");
    }
    // An index on an expression of them is allowed.
    client.batch_execute(&format!(
        "CREATE TABLE t (name text); CREATE INDEX ON t (uuid_v5({DNS}, name))"
    ))?;
    Ok(())
}

#[test]
fn functions_go_on_in_a_schema_that_was_renamed() -> Result<()> {
    let server = builder().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE SCHEMA \"My Schema\"; CREATE EXTENSION keywright SCHEMA \"My Schema\"; \
         ALTER SCHEMA \"My Schema\" RENAME TO other",
    )?;
    for (version, uuid) in [
        ("v3", "5df41881-3aed-3515-88a7-2f4a814cf09e"),
        ("v5", "2ed6657d-e927-568b-95e1-2665a8aea6a2"),
    ] {
        let expression = format!("other.uuid_{version}({DNS}, 'www.example.com'::text)");
        assert_eq!(text(&mut client, &expression)?, uuid);
    }
    Ok(())
}

/// A name is hashed in UTF-8 whatever the database is in.
#[test]
fn names_of_another_encoding_are_the_same_names() -> Result<()> {
    let database = SERVER.database(builder)?;
    database.client()?.batch_execute(
        "CREATE DATABASE uuids_latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )?;
    let mut client = database.server().client("uuids_latin1")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    let uuid = text(&mut client, &format!("uuid_v5({DNS}, 'bücher.example')"))?;
    assert_eq!(uuid, "849d4d8f-6c8e-59fa-9721-89ccba396bf9");
    Ok(())
}

#[test]
fn moments_neither_repeat_nor_go_back() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut seen = HashSet::new();
    for mut client in [database.client()?, database.client()?] {
        for (version, function) in [("1", "uuid_v1()"), ("7", "uuid_v7()")] {
            let rows = client.query(
                &format!("SELECT {function}::text FROM generate_series(1, 10000)"),
                &[],
            )?;
            let uuids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            for uuid in &uuids {
                assert_eq!(uuid.get(14..15), Some(version), "{uuid}");
                assert!("89ab".contains(uuid.get(19..20).unwrap_or("-")), "{uuid}");
                assert!(seen.insert(uuid.clone()), "{uuid} came twice");
            }
            assert!(version == "1" || uuids.is_sorted(), "version 7 went back");
        }
        // Milliseconds of version 7, against the server's clock.
        let off = "SELECT abs(('x' || lpad(translate(left(uuid_v7()::text, 13), '-', ''), 16, '0'))::bit(64)::bigint
                   - (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";
        assert!(query_i64(&mut client, off)? < 1_000);
        // Nothing is written, so a read-only transaction may.
        client.batch_execute("BEGIN READ ONLY; SELECT uuid_v1(), uuid_v7(); COMMIT")?;
    }
    assert_eq!(seen.len(), 40_000);
    Ok(())
}
