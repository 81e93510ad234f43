//! Install scripts of other extensions: what keywright makes must not become theirs, for it would neither be dumped nor
//! outlive them.

mod common;

use std::fs;

use common::{expect_cause, text_rows};
use keywright_core::cause::Cause;
use keywright_testkit::{PgInstall, PgServer, PgVersion, Result, query_i64};

/// Extensions of SQL only: name, script.
const EXTENSIONS: [(&str, &str); 3] = [
    (
        "shop",
        "CREATE TABLE shop_order (id bigint DEFAULT public.next_biz_id('orders'));",
    ),
    (
        "greedy",
        "SELECT keywright.create_tag('orders'); SELECT public.next_biz_ids('orders', 50);",
    ),
    (
        "catching",
        "CREATE TABLE caught (seen text);
         DO $$ BEGIN PERFORM keywright.create_tag('orders');
         EXCEPTION WHEN OTHERS THEN INSERT INTO caught VALUES (SQLERRM); END $$;",
    ),
];

fn server() -> Result<PgServer> {
    let install = PgInstall::private(PgVersion::under_test()?)?;
    for (name, script) in EXTENSIONS {
        let control = "comment = 'test'\ndefault_version = '1'\nrelocatable = false\nrequires = 'keywright'\n";
        let dir = install.extension_dir();
        fs::write(dir.join(format!("{name}.control")), control)?;
        fs::write(dir.join(format!("{name}--1.sql")), script)?;
    }
    PgServer::builder().install(install.into()).start()
}

#[test]
fn what_manages_ids_is_refused_inside_them() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    let refused = client.batch_execute("CREATE EXTENSION greedy");
    let error = expect_cause(
        refused,
        Cause::InExtensionScript,
        "create_tag() cannot be used in the script of an extension",
    );
    assert!(error.hint.contains("after CREATE EXTENSION"), "{error:#?}");
    let tags = "SELECT count(*) FROM keywright.tag";
    assert_eq!(query_i64(&mut client, tags)?, 0);
    // A script that goes on after the error is an extension's script still.
    client.batch_execute("CREATE EXTENSION catching")?;
    assert_eq!(text_rows(&mut client, "SELECT seen FROM caught")?.len(), 1);
    assert_eq!(query_i64(&mut client, tags)?, 0);
    for call in [
        "alter_tag('orders')",
        "drop_tag('orders')",
        "advance_tag('orders', 1)",
        "grant_tag('orders', 'public')",
        "revoke_tag('orders', 'public')",
        "set_worker_id(1)",
        "set_layout('twitter')",
        "adopt('orders', 'pg_class', 'oid')",
        "adopt_snowflake('pg_class', 'oid')",
        "release('pg_class', 'oid')",
    ] {
        fs::write(
            server.install().extension_dir().join("greedy--1.sql"),
            format!("SELECT keywright.{call};"),
        )?;
        let refused = client.batch_execute("CREATE EXTENSION greedy");
        let name = call.split('(').next().unwrap_or_default();
        expect_cause(
            refused,
            Cause::InExtensionScript,
            &format!("{name}() cannot"),
        );
    }
    // Outside of scripts all is as before.
    client.batch_execute("SELECT keywright.create_tag('orders')")?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('orders')")?, 1);
    Ok(())
}

#[test]
fn a_tag_beside_an_extension_is_dumped_and_outlives_it() -> Result<()> {
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; CREATE EXTENSION shop; SELECT keywright.create_tag('orders');
         INSERT INTO shop_order SELECT FROM generate_series(1, 500)",
    )?;
    client.batch_execute("CREATE DATABASE copy")?;
    let members =
        "SELECT count(*) FROM pg_depend WHERE deptype = 'e' AND classid = 'pg_class'::regclass
                   AND objid IN ('keywright.tag_1'::regclass, 'keywright.tag_1_note'::regclass)";
    assert_eq!(query_i64(&mut client, members)?, 0);
    let issued = query_i64(&mut client, "SELECT next_biz_id('orders')")?;
    server.restore("copy", &server.dump("postgres", &[])?)?;
    let mut copy = server.client("copy")?;
    let restored = query_i64(
        &mut copy,
        "INSERT INTO shop_order DEFAULT VALUES RETURNING id",
    )?;
    assert!(restored > issued, "{restored} comes after {issued}");
    client.batch_execute("DROP EXTENSION shop")?;
    assert_eq!(
        query_i64(&mut client, "SELECT next_biz_id('orders')")?,
        issued + 1
    );
    Ok(())
}
