//! Columns that are neither adopted nor released: keywright's own, and those of a tag of which nothing says how far it was used.

mod common;

use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{Result, SharedServer, query_i64};

static SERVER: SharedServer = SharedServer::new();

#[test]
fn keywrights_own_tables_are_left_alone() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "CREATE TABLE above (start bigint); CREATE TABLE below () INHERITS (above);
         CREATE TABLE tags_too (id integer NOT NULL, tag text COLLATE \"C\" NOT NULL, generation integer NOT NULL, step bigint NOT NULL,
             step_min bigint NOT NULL, step_max bigint NOT NULL, start bigint NOT NULL, max bigint NOT NULL,
             created_at timestamptz NOT NULL, dropped_at timestamptz);
         ALTER TABLE keywright.tag INHERIT tags_too",
    )?;
    for table in ["keywright.tag", "tags_too"] {
        for call in [
            format!("adopt('orders', '{table}', 'start')"),
            format!("adopt_snowflake('{table}', 'start')"),
            format!("release('{table}', 'start')"),
        ] {
            let refused = client.batch_execute(&format!("SELECT keywright.{call}"));
            let error = expect_cause(refused, Cause::AdoptRefused, "keywright's own");
            assert!(error.hint.contains("table of yours"), "{error:#?}");
        }
    }
    query_i64(
        &mut client,
        "SELECT keywright.adopt('orders', 'above', 'start')",
    )?;
    let defaults = "SELECT count(*) FROM pg_attrdef d JOIN pg_attribute a ON (attrelid, attnum) = (adrelid, adnum) \
                    WHERE adrelid = 'keywright.tag'::regclass AND attname = 'start'";
    assert_eq!(query_i64(&mut client, defaults)?, 0);
    Ok(())
}

#[test]
fn column_of_a_tag_without_a_bound_is_left_alone() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "CREATE TABLE orders (id bigint DEFAULT next_biz_id('order-nr')); INSERT INTO orders VALUES (40)",
    )?;
    for call in [
        "release('orders', 'id')",
        "adopt('other', 'orders', 'id')",
        "adopt_snowflake('orders', 'id')",
    ] {
        let refused = client.batch_execute(&format!("SELECT keywright.{call}"));
        let error = expect_cause(
            refused,
            Cause::AdoptRefused,
            "tag \"order-nr\", which does not exist",
        );
        let create = "SELECT keywright.create_tag('order-nr', start => n)";
        assert!(error.hint.contains(create), "{error:#?}");
    }
    // As the hint says.
    client.batch_execute("SELECT keywright.create_tag('order-nr', start => 500)")?;
    let first = query_i64(&mut client, "SELECT keywright.release('orders', 'id')")?;
    assert!(first > 500, "{first}");
    Ok(())
}
