//! What changes something says read_only where nothing may be changed, and leaves everything as it was.

mod common;

use common::{builder, expect_cause, text_rows};
use keywright_core::cause::Cause;
use keywright_testkit::{PgServer, Replication, Result};
use postgres::Client;

const CALLS: [&str; 13] = [
    "keywright.create_tag('new')",
    "keywright.create_tag('dropped')",
    "keywright.alter_tag('t', step => 2000)",
    "keywright.drop_tag('t')",
    "keywright.advance_tag('t', 500)",
    "keywright.grant_tag('t', 'public')",
    "keywright.revoke_tag('t', 'public')",
    "keywright.set_worker_id(7)",
    "keywright.set_worker_id(3)",
    "keywright.set_layout('leaf')",
    "keywright.adopt('new', 'plain', 'id')",
    "keywright.adopt_snowflake('plain', 'id')",
    "keywright.release('adopted', 'id')",
];

/// Everything that those functions change.
const STATE: &str = "
    SELECT 'tag', (SELECT json_agg(t ORDER BY id)::text FROM keywright.tag t)
    UNION ALL SELECT 'reserved', (SELECT json_agg(reserved_to ORDER BY tag)::text FROM keywright.tags)
    UNION ALL SELECT 'layout', (SELECT json_agg(n)::text FROM keywright.node n)
    UNION ALL SELECT 'worker', (SELECT string_agg(provider || label, ',' ORDER BY label) FROM pg_shseclabel)
    UNION ALL SELECT 'bound', (SELECT last_value || ' ' || is_called FROM keywright.snowflake_bound)
    UNION ALL SELECT 'rights', (SELECT string_agg(relname || relacl::text, ',' ORDER BY relname) FROM pg_class WHERE relname LIKE 'tag%')
    UNION ALL SELECT 'defaults', (SELECT string_agg(pg_get_expr(adbin, adrelid), ',' ORDER BY adrelid) FROM pg_attrdef)";

fn all_refused(client: &mut Client, begin: &str) -> Result<()> {
    for call in CALLS {
        let refused = client.batch_execute(&format!("{begin}; SELECT {call}"));
        let function = call
            .trim_start_matches("keywright.")
            .split('(')
            .next()
            .unwrap_or_default();
        let error = expect_cause(
            refused,
            Cause::ReadOnly,
            &format!("cannot execute {function}() in a read-only transaction"),
        );
        assert!(error.hint.contains("primary"), "{error:#?}");
        client.batch_execute("ROLLBACK")?;
    }
    Ok(())
}

#[test]
fn managing_is_refused_in_read_only_transactions_and_on_standbys() -> Result<()> {
    let primary: PgServer = builder().start()?;
    let mut client = primary.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SET keywright.lead_ms_max = 100; SELECT keywright.set_worker_id(3);
         SELECT keywright.create_tag('t'), keywright.create_tag('dropped'); SELECT next_biz_id('t'), snowflake_id();
         SELECT keywright.drop_tag('dropped');
         CREATE TABLE plain (id bigserial); CREATE TABLE adopted (id bigserial); SELECT keywright.adopt('adopted', 'adopted', 'id')",
    )?;
    let before = text_rows(&mut client, STATE)?;
    all_refused(&mut client, "BEGIN READ ONLY")?;
    assert_eq!(text_rows(&mut client, STATE)?, before);
    let standby = primary.standby("reader", Replication::Asynchronous)?;
    all_refused(&mut standby.client("postgres")?, "BEGIN")
}
