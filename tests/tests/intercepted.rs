//! A superuser's rules and triggers on keywright's own tables: what they keep from being written is refused, and never said to be done.

mod common;

use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{Result, SharedServer, query_i64};

static SERVER: SharedServer = SharedServer::new();

/// What is kept from happening, to which table, and a statement that needs it.
const CASES: [(&str, &str, &str); 9] = [
    ("INSERT", "tag", "SELECT keywright.create_tag('new')"),
    ("UPDATE", "tag", "SELECT keywright.create_tag('old')"),
    (
        "DELETE",
        "tag",
        "SELECT keywright.create_tag('old', forget_issued => true)",
    ),
    (
        "UPDATE",
        "tag",
        "SELECT keywright.alter_tag('orders', refill_threshold_percent => 30)",
    ),
    ("UPDATE", "tag", "SELECT keywright.drop_tag('orders')"),
    (
        "INSERT",
        "tag_secret",
        "SELECT keywright.create_tag('new', hide_bits => 53)",
    ),
    (
        "DELETE",
        "tag_secret",
        "SELECT keywright.create_tag('hidden', forget_issued => true)",
    ),
    (
        "INSERT",
        "node",
        "SELECT keywright.set_readable_zone('+08:00')",
    ),
    (
        "UPDATE",
        "node",
        "SELECT keywright.set_readable_zone('+08:00')",
    ),
];

#[test]
fn what_a_rule_or_trigger_keeps_from_being_written_is_refused() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders'); SELECT keywright.create_tag('old'); SELECT keywright.drop_tag('old');
         SELECT keywright.create_tag('hidden', hide_bits => 53); SELECT keywright.drop_tag('hidden');
         CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    )?;
    for (event, table, statement) in CASES {
        let of = format!("ON {event} TO keywright.{table} DO INSTEAD NOTHING");
        let before = format!("BEFORE {event} ON keywright.{table}");
        for (kind, obstacle) in [
            ("RULE", format!("CREATE RULE obstacle AS {of}")),
            (
                "TRIGGER",
                format!("CREATE TRIGGER obstacle {before} FOR EACH ROW EXECUTE FUNCTION swallow()"),
            ),
        ] {
            client.batch_execute(&obstacle)?;
            // At each level: to try again would not help.
            for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
                let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT 1");
                client.batch_execute(&begin)?;
                let refused = client.batch_execute(statement);
                let message = format!("keeps keywright from changing keywright.{table}");
                let error = expect_cause(refused, Cause::OwnTables, &message);
                assert!(error.hint.contains("drop it"), "{level}: {error:#?}");
                client.batch_execute("ROLLBACK")?;
            }
            client.batch_execute(&format!("DROP {kind} obstacle ON keywright.{table}"))?;
            // As the hint says.
            client.batch_execute(&format!("BEGIN; {statement}; ROLLBACK"))?;
        }
    }
    assert!(query_i64(&mut client, "SELECT next_biz_id('orders')")? > 0);
    Ok(())
}
