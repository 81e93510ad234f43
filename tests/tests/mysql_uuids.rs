//! `sql/mysql/keywright_uuid.sql` on real servers: what others make of the same names, and moments that do not repeat.

use std::collections::HashSet;
use std::fs;
use std::sync::{Mutex, PoisonError};

use keywright_testkit::{Flavour, Result, Upstream, workspace_root};

keywright_testkit::on_both_flavours!(
    names_have_the_uuids_that_others_give_them,
    what_is_no_namespace_is_refused,
    moments_do_not_repeat,
);

const DNS: &str = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

/// A schema of the shared server with the functions, loaded twice, as an upgrade would.
fn schema(flavour: Flavour, name: &str) -> Result<std::sync::Arc<Upstream>> {
    let server = Upstream::shared(flavour)?;
    has_hashes(flavour, &server)?;
    server.run("mysql", &format!("CREATE DATABASE {name}"))?;
    let script = fs::read_to_string(workspace_root().join("sql/mysql/keywright_uuid.sql"))?;
    server.run(name, &script)?;
    server.run(name, &script)?;
    Ok(server)
}

/// MySQL has MD5 and SHA1 in a component.
fn has_hashes(flavour: Flavour, server: &Upstream) -> Result<()> {
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let _turn = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match flavour {
        Flavour::MariaDb => {}
        Flavour::MySql => {
            let installed =
                "SELECT component_id FROM component WHERE component_urn LIKE '%classic_hashing'";
            if server.run("mysql", installed)?.is_empty() {
                let install = "INSTALL COMPONENT 'file://component_classic_hashing'";
                server.run("mysql", install)?;
            }
        }
    }
    Ok(())
}

fn names_have_the_uuids_that_others_give_them(flavour: Flavour) -> Result<()> {
    let server = schema(flavour, "uuid_names")?;
    for (expression, uuid) in [
        // Java's UUID.nameUUIDFromBytes(new byte[] {10, 20, 30}).
        (
            "uuid_v3_of_bytes(x'0a141e')",
            "7f49b84d-0bbc-38e9-a493-718013baace6",
        ),
        (
            "REPLACE(uuid_v3_of_bytes(x'0a141e'), '-', '')",
            "7f49b84d0bbc38e9a493718013baace6",
        ),
        // The examples of RFC 9562.
        (
            &format!("uuid_v3('{DNS}', 'www.example.com')"),
            "5df41881-3aed-3515-88a7-2f4a814cf09e",
        ),
        (
            &format!("uuid_v5('{DNS}', 'www.example.com')"),
            "2ed6657d-e927-568b-95e1-2665a8aea6a2",
        ),
        // Python's of a name that is not ASCII, in UTF-8 and in another encoding.
        (
            &format!("uuid_v5('{DNS}', _utf8mb4 x'62c3bc636865722e6578616d706c65')"),
            "849d4d8f-6c8e-59fa-9721-89ccba396bf9",
        ),
        (
            &format!("uuid_v5('{DNS}', _latin1 x'62fc636865722e6578616d706c65')"),
            "849d4d8f-6c8e-59fa-9721-89ccba396bf9",
        ),
        (
            &format!("uuid_v3('{DNS}', _latin1 x'62fc636865722e6578616d706c65')"),
            "934d43af-3c3e-3fd6-8d29-da3feb0bbbf3",
        ),
    ] {
        assert_eq!(
            server.run("uuid_names", &format!("SELECT {expression}"))?,
            [[uuid]],
            "{expression}"
        );
    }
    Ok(())
}

fn what_is_no_namespace_is_refused(flavour: Flavour) -> Result<()> {
    let server = schema(flavour, "uuid_refused")?;
    for namespace in [
        "",
        "dns",
        "6ba7b8109dad11d180b400c04fd430c8",
        "6ba7b810-9dad-11d1-80b4-00c04fd430cg",
    ] {
        let refused = server.run(
            "uuid_refused",
            &format!("SELECT uuid_v5('{namespace}', 'x')"),
        );
        let error = format!(
            "{:#}",
            refused
                .err()
                .ok_or_else(|| anyhow::anyhow!("{namespace:?} was taken"))?
        );
        assert!(error.contains("a namespace is a UUID"), "{error}");
    }
    Ok(())
}

fn moments_do_not_repeat(flavour: Flavour) -> Result<()> {
    let server = schema(flavour, "uuid_moments")?;
    let ten = "(SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 \
               UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    let rows = server.run(
        "uuid_moments",
        &format!("SELECT uuid_moments.uuid_v7() FROM {ten} a JOIN {ten} b JOIN {ten} c"),
    )?;
    let uuids: HashSet<String> = rows.concat().into_iter().collect();
    assert_eq!(uuids.len(), 1_000);
    for uuid in &uuids {
        assert_eq!(uuid.len(), 36, "{uuid}");
        assert_eq!(uuid.get(14..15), Some("7"), "{uuid}");
        assert!("89ab".contains(uuid.get(19..20).unwrap_or("-")), "{uuid}");
    }
    // Milliseconds, against the server's clock, in whatever time zone the session is.
    let off = "SET time_zone = '+09:00'; SELECT ABS(CONV(REPLACE(LEFT(uuid_moments.uuid_v7(), 13), '-', ''), 16, 10) - UNIX_TIMESTAMP(SYSDATE(3)) * 1000) < 1000";
    assert_eq!(server.run("uuid_moments", off)?, [["1"]]);
    // Version 1 is the servers' own.
    assert_eq!(
        server.run("uuid_moments", "SELECT SUBSTRING(UUID(), 15, 1)")?,
        [["1"]]
    );
    Ok(())
}
