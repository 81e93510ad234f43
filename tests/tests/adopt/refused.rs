//! What is not adopted, and is left as it was.

use keywright_core::cause::Cause;
use keywright_testkit::{Result, expect_sql_error, query_i64};

use crate::common::{column_default, expect_cause, text_rows};
use crate::{database, ids};

#[test]
fn hidden_rows_count_or_the_table_is_refused() -> Result<()> {
    let (database, mut client) = database()?;
    let role = format!("owner_{}", database.name());
    client.batch_execute(&format!(
        "CREATE ROLE {role} LOGIN; GRANT EXECUTE ON FUNCTION keywright.adopt TO {role};
         CREATE SCHEMA own AUTHORIZATION {role}"
    ))?;
    let mut owner = database.server().connect(database.name(), &role)?;
    owner.batch_execute(
        "SET search_path = own, public;
         CREATE TABLE hidden (id bigserial); INSERT INTO hidden VALUES (5000);
         ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; CREATE POLICY nothing ON hidden USING (false);
         CREATE TABLE forced (id bigserial); INSERT INTO forced VALUES (5000);
         ALTER TABLE forced ENABLE ROW LEVEL SECURITY; ALTER TABLE forced FORCE ROW LEVEL SECURITY",
    )?;
    let adopted = query_i64(
        &mut owner,
        "SELECT keywright.adopt('hidden', 'hidden', 'id')",
    )?;
    assert_eq!(adopted, 5001);
    // What the owner may not see could be larger than what is seen.
    let refused = owner.batch_execute("SELECT keywright.adopt('forced', 'forced', 'id')");
    expect_sql_error(
        refused,
        "42501",
        "row-level security policy for table \"forced\"",
    );
    let setting = text_rows(&mut owner, "SHOW row_security")?;
    assert_eq!(setting, [["on"]]);
    Ok(())
}

#[test]
fn what_cannot_be_adopted_is_left_as_it_was() -> Result<()> {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE narrow (id serial); CREATE TABLE words (id text); CREATE TABLE t (id bigserial);
         CREATE VIEW seen AS SELECT 1::bigint AS id; CREATE TABLE full_up (id bigserial);
         INSERT INTO full_up VALUES (9223372036854775806);
         SELECT keywright.create_tag('taken'), keywright.create_tag('short', max => 2); SELECT next_biz_id('taken');
         INSERT INTO t SELECT FROM generate_series(1, 5); DELETE FROM t",
    )?;
    let before = column_default(&mut client, "t")?;
    for (arguments, cause, message_has) in [
        (
            "'n', 'narrow', 'id'",
            Cause::AdoptRefused,
            "it is integer, and ids need bigint",
        ),
        (
            "'n', 'words', 'id'",
            Cause::AdoptRefused,
            "it is text, and ids need bigint",
        ),
        (
            "'n', 'seen', 'id'",
            Cause::AdoptRefused,
            "no table with a column \"id\"",
        ),
        (
            "'n', 't', 'nope'",
            Cause::AdoptRefused,
            "no table with a column \"nope\"",
        ),
        (
            "'n', 't', 'ctid'",
            Cause::AdoptRefused,
            "no table with a column \"ctid\"",
        ),
        (
            "'n', 0::oid::regclass, 'id'",
            Cause::AdoptRefused,
            "no table with a column",
        ),
        (
            "'n', 'full_up', 'id'",
            Cause::AdoptRefused,
            "it is at 9223372036854775806",
        ),
        (
            "'taken', 't', 'id'",
            Cause::TagExists,
            "\"taken\" exists already and has issued ids",
        ),
        (
            "'short', 't', 'id'",
            Cause::ArgumentOutOfRange,
            "\"short\" ends before 6",
        ),
        (
            "'not a tag', 't', 'id'",
            Cause::TagInvalid,
            "must not contain ' '",
        ),
        ("NULL, 't', 'id'", Cause::ArgumentNull, "none may be null"),
        ("'n', NULL, 'id'", Cause::ArgumentNull, "none may be null"),
        ("'n', 't', NULL", Cause::ArgumentNull, "none may be null"),
    ] {
        let refused = client.batch_execute(&format!("SELECT keywright.adopt({arguments})"));
        expect_cause(refused, cause, message_has);
    }
    let repeatable =
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT keywright.adopt('n', 't', 'id')";
    let refused = client.batch_execute(repeatable);
    expect_cause(refused, Cause::AdoptRefused, "above READ COMMITTED");
    client.batch_execute("ROLLBACK")?;
    assert_eq!(column_default(&mut client, "t")?, before);
    // Its own tag is not to be dropped, as for another one.
    client.batch_execute(
        "CREATE TABLE done (id bigserial); SELECT keywright.adopt('done', 'done', 'id'); INSERT INTO done DEFAULT VALUES",
    )?;
    let again = client.batch_execute("SELECT keywright.adopt('done', 'done', 'id')");
    let message = "\"done\" exists already and has issued ids";
    let error = expect_cause(again, Cause::TagExists, message);
    assert!(error.detail.contains("from this tag already"), "{error:?}");
    assert!(!error.hint.contains("drop_tag"), "{error:?}");
    // Changing one's mind leaves nothing behind either.
    client.batch_execute("BEGIN; SELECT keywright.adopt('n', 't', 'id'); ROLLBACK")?;
    assert_eq!(column_default(&mut client, "t")?, before);
    assert_eq!(
        ids(&mut client, "INSERT INTO t DEFAULT VALUES RETURNING id")?,
        [6]
    );
    assert_eq!(
        query_i64(&mut client, "SELECT keywright.adopt('n', 't', 'id')")?,
        7
    );
    Ok(())
}
