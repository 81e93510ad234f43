//! A tag keeps the permutation that it has issued with, whatever is done to it: dropped, rolled back, edited, restored without its key.

use std::collections::HashSet;

use keywright_core::cause::Cause;
use keywright_testkit::{PgServer, Result, query_i64, query_text};
use postgres::Client;

use crate::common::{expect_cause, text_rows};
use crate::{KEY, OTHER_KEY, TAKE, client, create, ids, number};

/// Dropped and created again: only with what it had, and above what it issued.
#[test]
fn a_dropped_tag_comes_back_with_its_key_alone() -> Result<()> {
    let (_database, mut client) = client()?;
    create(&mut client, &format!("step => 1, hide_bits => 53, {KEY}"))?;
    let mut seen: HashSet<_> = ids(&mut client, "SELECT next_biz_ids('t', 20)")?
        .into_iter()
        .collect();
    client.batch_execute("SELECT keywright.drop_tag('t')")?;
    for (arguments, message_has) in [
        ("step => 1".to_owned(), "had hide_bits => 53"),
        (format!("hide_bits => 31, {KEY}"), "had hide_bits => 53"),
        (
            format!("hide_bits => 53, {OTHER_KEY}"),
            "had another hide_key",
        ),
    ] {
        let error = expect_cause(
            create(&mut client, &arguments),
            Cause::HideKeyMismatch,
            message_has,
        );
        assert!(error.hint.contains("forget_issued => true"), "{error:?}");
    }
    create(&mut client, "step => 1, hide_bits => 53")?;
    let next = query_i64(&mut client, TAKE)?;
    assert!(seen.insert(next) && number(&mut client, next)? > 20);
    client.batch_execute("SELECT keywright.drop_tag('t')")?;
    create(&mut client, &format!("hide_bits => 53, {KEY}"))?;
    let next = query_i64(&mut client, TAKE)?;
    assert!(seen.insert(next));
    // A plain one stays plain.
    client.batch_execute(
        "SELECT keywright.create_tag('plain'); SELECT keywright.drop_tag('plain')",
    )?;
    let hidden = client.batch_execute("SELECT keywright.create_tag('plain', hide_bits => 63)");
    expect_cause(hidden, Cause::HideKeyMismatch, "had no hide_bits");
    // Who says that no such id is kept gets another tag.
    let before = query_text(&mut client, "SELECT keywright.hide_key('t')::text")?;
    client.batch_execute("SELECT keywright.drop_tag('t')")?;
    create(&mut client, "hide_bits => 63, forget_issued => true")?;
    let first = query_i64(&mut client, TAKE)?;
    assert_eq!(number(&mut client, first)?, 1);
    assert_ne!(
        query_text(&mut client, "SELECT keywright.hide_key('t')::text")?,
        before
    );
    assert_eq!(
        query_i64(&mut client, "SELECT count(*) FROM keywright.tag_secret")?,
        1
    );
    Ok(())
}

/// What a transaction issued before it was rolled back may have been shown to somebody.
#[test]
fn a_creation_that_was_rolled_back_is_done_again_with_its_key_alone() -> Result<()> {
    let (_database, mut client) = client()?;
    let with_key = format!("step => 1, hide_bits => 53, {KEY}");
    client.batch_execute("BEGIN")?;
    create(&mut client, &with_key)?;
    let mut seen: HashSet<_> = ids(&mut client, "SELECT next_biz_ids('t', 20)")?
        .into_iter()
        .collect();
    client.batch_execute("ROLLBACK")?;
    for arguments in [
        "step => 1".to_owned(),
        "hide_bits => 53".to_owned(),
        format!("hide_bits => 31, {KEY}"),
    ] {
        let error = expect_cause(
            create(&mut client, &arguments),
            Cause::HideKeyMismatch,
            "has issued ids with another hide key",
        );
        assert!(error.hint.contains("forget_issued => true"), "{error:?}");
    }
    // In a transaction of the same, too.
    client.batch_execute("BEGIN; SAVEPOINT s")?;
    create(&mut client, &with_key)?;
    seen.extend(ids(&mut client, "SELECT next_biz_ids('t', 20)")?);
    client.batch_execute("ROLLBACK TO s")?;
    expect_cause(
        create(&mut client, "step => 1"),
        Cause::HideKeyMismatch,
        "has issued ids with another hide key",
    );
    client.batch_execute("ROLLBACK")?;
    create(&mut client, &with_key)?;
    seen.extend(ids(&mut client, "SELECT next_biz_ids('t', 20)")?);
    assert_eq!(seen.len(), 60);
    // The other way round: plain first.
    client.batch_execute(
        "BEGIN; SELECT keywright.create_tag('p'); SELECT next_biz_id('p'); ROLLBACK",
    )?;
    let hidden = client.batch_execute("SELECT keywright.create_tag('p', hide_bits => 53)");
    expect_cause(
        hidden,
        Cause::HideKeyMismatch,
        "has issued ids with another hide key",
    );
    client.batch_execute("SELECT keywright.create_tag('p', hide_bits => 53, forget_issued => true); SELECT next_biz_id('p')")?;
    Ok(())
}

/// A drop that forgets, rolled back: the tag is what it was.
#[test]
fn a_change_that_was_rolled_back_leaves_the_tag_as_it_was() -> Result<()> {
    let (_database, mut client) = client()?;
    create(&mut client, &format!("step => 1, hide_bits => 53, {KEY}"))?;
    let mut seen: HashSet<_> = ids(&mut client, "SELECT next_biz_ids('t', 20)")?
        .into_iter()
        .collect();
    client.batch_execute("BEGIN; SELECT keywright.drop_tag('t')")?;
    create(&mut client, "hide_bits => 31, forget_issued => true")?;
    let other = ids(&mut client, "SELECT next_biz_ids('t', 20)")?;
    client.batch_execute("ROLLBACK")?;
    for _ in 0..20 {
        assert!(seen.insert(query_i64(&mut client, TAKE)?));
    }
    // Again, with another key than the one rolled back: that one's numbers are forgotten, too.
    client.batch_execute("SELECT keywright.drop_tag('t')")?;
    create(&mut client, "hide_bits => 31, forget_issued => true")?;
    let first = query_i64(&mut client, TAKE)?;
    assert_eq!(number(&mut client, first)?, 1);
    assert_eq!(other.len(), 20);
    Ok(())
}

#[test]
fn rows_that_were_edited_issue_nothing() -> Result<()> {
    let edits = [
        "UPDATE keywright.tag SET hide_bits = 63",
        "UPDATE keywright.tag SET hide_fingerprint = '00'",
        "UPDATE keywright.tag_secret SET hide_key = '\\x000102030405060708090a0b0c0d0e0f'",
        "UPDATE keywright.tag SET hide_bits = NULL, hide_fingerprint = NULL",
        "DELETE FROM keywright.tag_secret",
    ];
    for edit in edits {
        let (database, mut client) = client()?;
        create(&mut client, "hide_bits => 53")?;
        query_i64(&mut client, TAKE)?;
        client.batch_execute(
            "ALTER TABLE keywright.tag DISABLE TRIGGER only_by_functions;
             ALTER TABLE keywright.tag_secret DISABLE TRIGGER only_by_functions",
        )?;
        client.batch_execute(edit)?;
        // A session that has not looked the tag up yet.
        let mut late = database.client()?;
        expect_cause(
            late.batch_execute(TAKE),
            Cause::HideKeyMismatch,
            "tag \"t\"",
        );
    }
    Ok(())
}

#[test]
fn dumps_carry_keys_unless_they_leave_them_out() -> Result<()> {
    let server = PgServer::builder().start()?;
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE shop")?;
    let mut shop = server.client("shop")?;
    shop.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('t', hide_bits => 63, step => 100, step_max => 100); \
         SELECT keywright.create_tag('gone', hide_bits => 53); SELECT keywright.drop_tag('gone')",
    )?;
    let mut seen: HashSet<_> = ids(&mut shop, "SELECT next_biz_ids('t', 500)")?
        .into_iter()
        .collect();
    let key = query_text(&mut shop, "SELECT keywright.hide_key('t')::text")?;
    let mut whole = restored(&server, "whole", &[])?;
    seen.extend(ids(&mut whole, "SELECT next_biz_ids('t', 500)")?);
    assert_eq!(seen.len(), 1_000);
    let mut without = restored(
        &server,
        "without",
        &["--exclude-table-data=keywright.tag_secret"],
    )?;
    let error = expect_cause(
        without.batch_execute(TAKE),
        Cause::HideKeyMismatch,
        "is missing",
    );
    assert!(
        error.hint.contains("keywright.set_hide_key('t', that_key)"),
        "{error:?}"
    );
    let wrong = without
        .batch_execute("SELECT keywright.set_hide_key('t', '\\x000102030405060708090a0b0c0d0e0f')");
    expect_cause(wrong, Cause::HideKeyMismatch, "was made with another key");
    let health = "SELECT ARRAY[severity, detail] FROM keywright.health WHERE name = 'hide keys'";
    let finding = text_rows(&mut without, health)?;
    assert_eq!(
        finding,
        [["{error,\"the key that hides their volume is missing for 1 tags: t\"}"]]
    );
    without.batch_execute(&format!("SELECT keywright.set_hide_key('t', '{key}')"))?;
    let next = query_i64(&mut without, TAKE)?;
    assert!(number(&mut without, next)? > 500);
    // A dropped one gets its key back where it is created again.
    let gone = query_text(&mut shop, "SELECT keywright.hide_key('gone')::text")?;
    let create = "SELECT keywright.create_tag('gone', hide_bits => 53";
    expect_cause(
        without.batch_execute(&format!("{create})")),
        Cause::HideKeyMismatch,
        "is missing",
    );
    without.batch_execute(&format!(
        "{create}, hide_key => '{gone}'); SELECT next_biz_id('gone')"
    ))?;
    Ok(())
}

/// A new database with a dump of `shop`.
fn restored(server: &PgServer, database: &str, arguments: &[&str]) -> Result<Client> {
    let script = server.dump("shop", arguments)?;
    server
        .client("postgres")?
        .batch_execute(&format!("CREATE DATABASE {database}"))?;
    server.restore(database, &script)?;
    server.client(database)
}
