//! Tables that no schema refresh has shown, and that the program's own account may not see.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::{Mode, Rules, SchemaChanges, Session};

use super::rig::*;

const INSERT: &str = "INSERT INTO t (a) VALUES (1)";
const QUESTION: &str = "SHOW CREATE TABLE `d`.`t`";
const TOLD: &str = "may not see it";
const NOT_YET: &str = "has not said in time";
/// Whether the client's account may insert.
const INSERT_QUESTION: &str = "INSERT INTO `t` () VALUES ()";
const NO_SELECT: &[u8] = b"\xFF\x76\x04#42000SELECT command denied";
const NO_INSERT: &[u8] = b"\xFF\x76\x04#42000INSERT command denied";
const NAME_TOO_LONG: &[u8] = b"\xFF\x23\x04#42000Identifier name is too long";

/// No table was shown. `is_refreshed`: a refresh has seen none.
fn connected(is_refreshed: bool) -> (Rig, Arc<SchemaChanges>) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let schema = Arc::clone(&r.schema);
    let rules = Rules::new(vec![r.rule_in(Mode::Rewrite)], false);
    let rules = rules.with_tables(&[], is_refreshed);
    let rules = rules.with_schema(Arc::clone(&schema));
    r.s = Session::new(Arc::new(rules), r.facts());
    (r, schema)
}

/// A refresh has shown no table. One has the rule's column all the same, and got a key, since the account may see it.
fn met() -> (Rig, Arc<SchemaChanges>) {
    let (mut r, schema) = connected(true);
    assert!(r.probed(INSERT, "1").contains("SELECT `id` FROM"));
    assert!(has(&r.answer(&described(&["id"])), "INSERT INTO t"));
    r.answer(&ok(1, 100));
    r.output();
    (r, schema)
}

/// The same, before anybody has asked: this statement waits.
fn waiting(text: &str) -> (Rig, Arc<SchemaChanges>) {
    let (mut r, schema) = connected(true);
    r.holds_answers = true;
    let sent = r.query(text);
    r.tell(sent, &["id"]);
    waits(&mut r, text);
    (r, schema)
}

/// Neither the server nor the client hears of a statement, nor does it get a key, before there is another answer.
fn waits(r: &mut Rig, text: &str) {
    assert_eq!(r.s.awaited_answer(), Some(r.schema.answers()), "{text}");
    assert!(r.requests.is_empty(), "{text}");
    assert_eq!(r.output(), b"", "{text}");
}

/// What goes out once somebody has looked at the statement that waits.
fn looked_at(r: &mut Rig) -> Vec<u8> {
    r.answer(b"")
}

/// The program has asked by its own account.
fn asked(schema: &SchemaChanges, is_shown: bool) {
    for table in schema.tables_to_ask(true) {
        assert_eq!(
            (&*table.schema, &*table.name, &*table.column),
            ("d", "t", "id")
        );
        assert_eq!(*table.server, *SERVER.as_bytes());
        assert_eq!(schema.note_shown(&table, is_shown), !is_shown);
    }
}

fn is_refused(r: &mut Rig, text: &str) {
    assert!(has(&r.query(text), QUESTION), "{text}");
    let sent = r.answer(&rows(&["t", "CREATE TABLE"]));
    assert!(sent.is_empty(), "{text}: {sent:?}");
    assert!(has(&r.output(), TOLD), "{text}");
}

#[test]
fn one_that_the_account_may_not_see_gets_no_keys() {
    let (mut r, schema) = met();
    asked(&schema, false);
    is_refused(&mut r, INSERT);
    is_refused(&mut r, "INSERT INTO t (id, a) VALUES (NULL, 1)");
    is_refused(&mut r, "SELECT NEXT VALUE FOR t");
    assert_eq!(r.requests.len(), 1);
    // It is the client's own business which key it brings.
    let own = "INSERT INTO t (id, a) VALUES (5, 1)";
    assert!(has(&r.query(own), own));
}

#[test]
fn one_that_it_may_see_gets_keys() {
    let (mut r, schema) = met();
    asked(&schema, true);
    assert!(has(&r.query(INSERT), "LAST_INSERT_ID(101)"));
}

#[test]
fn it_waits_until_the_account_was_asked() {
    for text in [
        INSERT,
        "INSERT INTO t (id, a) VALUES (NULL, 1)",
        "SELECT NEXT VALUE FOR t",
        "LOAD DATA INFILE 'f' INTO TABLE t (a)",
    ] {
        let (mut r, schema) = waiting(text);
        asked(&schema, false);
        assert!(has(&looked_at(&mut r), QUESTION), "{text}");
        r.answer(&rows(&["t", "CREATE TABLE"]));
        assert!(has(&r.output(), TOLD), "{text}");
        assert!(r.requests.is_empty(), "{text}");
        assert_eq!(r.s.awaited_answer(), None, "{text}");
    }
    let (mut r, schema) = waiting(INSERT);
    asked(&schema, true);
    assert!(has(&looked_at(&mut r), "INSERT INTO t"));
    assert_eq!(r.requests.len(), 1);
}

#[test]
fn so_does_one_that_is_to_be_prepared() {
    let (mut r, schema) = connected(true);
    r.holds_answers = true;
    let sent = stmt_prepare(&mut r, "INSERT INTO t (id, a) VALUES (?, 1)", "1");
    r.tell(sent.into_bytes(), &["id", "a"]);
    waits(&mut r, "PREPARE");
    asked(&schema, false);
    assert!(has(&looked_at(&mut r), QUESTION));
    r.answer(&rows(&["t", "CREATE TABLE"]));
    assert!(has(&r.output(), TOLD));
}

/// A client that tries again is not refused for ever by a server that answers later.
#[test]
fn without_an_answer_it_is_refused_for_now() {
    let (mut r, schema) = waiting(INSERT);
    let asked = schema.tables_to_ask(false);
    assert_eq!(asked.len(), 1);
    r.s.on_waited();
    assert!(has(&looked_at(&mut r), QUESTION));
    assert!(r.answer(&rows(&["t", "CREATE TABLE"])).is_empty());
    let told = r.output();
    assert!(has(&told, NOT_YET) && has(&told, "#HY000"), "{told:?}");
    schema.note_asked(&asked);
    let sent = r.query(INSERT);
    r.tell(sent, &["id"]);
    waits(&mut r, INSERT);
    let again = schema.tables_to_ask(false);
    assert_eq!(again.len(), 1);
    for table in again {
        schema.note_shown(&table, true);
    }
    assert!(has(&looked_at(&mut r), "INSERT INTO t"));
    assert_eq!(r.requests.len(), 1);
}

/// A question may end without an answer while a statement waits for it.
#[test]
fn while_it_waits_it_is_asked_about_again() {
    let (r, schema) = waiting(INSERT);
    let asked = schema.tables_to_ask(false);
    assert_eq!(asked.len(), 1);
    assert_eq!(r.s.still_awaits(), Some(schema.answers()));
    assert!(schema.tables_to_ask(false).is_empty(), "somebody asks");
    schema.note_asked(&asked);
    assert_eq!(r.s.still_awaits(), Some(schema.answers()));
    let again = schema.tables_to_ask(false);
    assert_eq!(again, asked);
    for table in &again {
        schema.note_shown(table, true);
    }
    assert_eq!(r.s.still_awaits(), None);
}

#[test]
fn a_temporary_table_does_not_need_the_answer() {
    let (mut r, _) = waiting(INSERT);
    r.s.on_waited();
    assert!(has(&looked_at(&mut r), QUESTION));
    let sent = r.answer(&rows(&["t", "CREATE TEMPORARY TABLE"]));
    assert!(has(&sent, INSERT), "{sent:?}");
    assert!(r.requests.is_empty());
}

/// Others' tables are to have room, and nobody asks about what the client could not fill.
#[test]
fn an_account_that_may_not_insert_gets_the_servers_own_error() {
    for text in [
        INSERT,
        "INSERT INTO t (id, a) VALUES (NULL, 1)",
        "LOAD DATA INFILE 'f' INTO TABLE t (a)",
    ] {
        for (untold, refused) in [(NO_SELECT, NO_INSERT), (NAME_TOO_LONG, NAME_TOO_LONG)] {
            let (mut r, schema) = connected(true);
            r.holds_answers = true;
            let sent = r.probed(text, "1");
            assert!(sent.contains("SELECT `id` FROM"), "{text}: {sent}");
            let sent = r.answer(&packet(1, untold));
            assert!(has(&sent, INSERT_QUESTION), "{text}: {sent:?}");
            assert!(r.answer(&packet(1, refused)).is_empty(), "{text}");
            assert_eq!(r.output(), packet(1, refused), "{text}");
            assert_eq!(r.s.awaited_answer(), None, "{text}");
            assert!(r.requests.is_empty(), "{text}");
            assert!(schema.tables_to_ask(true).is_empty(), "{text}");
        }
    }
}

#[test]
fn an_account_that_may_only_insert_waits_as_others_do() {
    let (mut r, schema) = connected(true);
    r.holds_answers = true;
    r.probed(INSERT, "1");
    assert!(has(&r.answer(&packet(1, NO_SELECT)), INSERT_QUESTION));
    r.answer(&prepared(9, 0));
    waits(&mut r, INSERT);
    asked(&schema, true);
    assert!(has(&looked_at(&mut r), "LAST_INSERT_ID(100)"));
    r.answer(&ok(1, 100));
    r.output();
    // It is known by now.
    assert!(has(&r.query(INSERT), "SELECT `id` FROM"));
    let sent = r.answer(&packet(1, NO_SELECT));
    assert!(has(&sent, "LAST_INSERT_ID(101)"), "{sent:?}");
}

/// Nobody could be asked about its tables: the listener has no `admin`.
#[test]
fn on_a_server_that_no_refresh_has_looked_at_none_is_met() {
    let (mut r, schema) = connected(false);
    assert!(r.probed(INSERT, "1").contains("INSERT INTO t"));
    r.answer(&ok(1, 100));
    r.output();
    assert_eq!(r.requests.len(), 1);
    assert!(schema.tables_to_ask(true).is_empty());
}

#[test]
fn a_temporary_table_of_its_name_is_the_servers() {
    let (mut r, schema) = met();
    asked(&schema, false);
    assert!(has(&r.query(INSERT), QUESTION));
    let sent = r.answer(&rows(&["t", "CREATE TEMPORARY TABLE"]));
    assert!(has(&sent, INSERT), "{sent:?}");
    assert_eq!(r.requests.len(), 1);
}

/// Another, with ids, may have its name a moment later.
#[test]
fn one_that_is_not_there_any_more_gets_no_keys() {
    let no_table = packet(1, b"\xFF\x7A\x04#42S02Table 'd.t' doesn't exist");
    let (mut r, schema) = met();
    asked(&schema, false);
    assert!(has(&r.query(INSERT), QUESTION));
    assert!(r.answer(&no_table).is_empty());
    assert!(has(&r.output(), TOLD));
}

/// The server's own word for that needs nobody's answer, and takes no key.
#[test]
fn one_that_is_not_there_is_not_waited_for() {
    let no_table = packet(1, b"\xFF\x7A\x04#42S02Table 'd.t' doesn't exist");
    let missed = || {
        let (mut r, schema) = connected(true);
        r.holds_answers = true;
        assert!(r.probed(INSERT, "1").contains("SELECT `id` FROM"));
        assert!(has(&r.answer(&no_table), "SELECT 1 FROM"));
        (r, schema)
    };
    let (mut r, schema) = missed();
    assert!(r.answer(&no_table).is_empty());
    assert_eq!(r.output(), no_table);
    assert!(r.requests.is_empty());
    assert!(schema.tables_to_ask(true).is_empty());
    // One that comes meanwhile is a new one, and is asked for its column.
    let (mut r, schema) = missed();
    let sent = r.answer(&described(&["1"]));
    assert!(has(&sent, "SELECT `id` FROM"), "{sent:?}");
    r.tell(sent, &[]);
    waits(&mut r, INSERT);
    asked(&schema, true);
    assert!(has(&looked_at(&mut r), "INSERT INTO t"));
}

/// Nor is it asked for for ever, whatever the server says.
#[test]
fn one_that_comes_and_goes_is_asked_for_twice() {
    let no_table = packet(1, b"\xFF\x7A\x04#42S02Table 'd.t' doesn't exist");
    let (mut r, _) = connected(true);
    r.holds_answers = true;
    assert!(r.probed(INSERT, "1").contains("SELECT `id` FROM"));
    for is_first in [true, false] {
        assert!(has(&r.answer(&no_table), "SELECT 1 FROM"));
        let sent = r.answer(&described(&["1"]));
        assert_eq!(has(&sent, "SELECT `id` FROM"), is_first, "{sent:?}");
        assert_eq!(has(&sent, "INSERT INTO"), !is_first, "{sent:?}");
    }
    r.answer(&prepared(9, 0));
    assert_eq!(r.s.awaited_answer(), Some(r.schema.answers()));
    assert!(r.requests.is_empty());
}

#[test]
fn a_prepared_statement_is_judged_again() {
    let (mut r, schema) = met();
    let with_null = execute(7, &[1, 1, 6, 0]);
    let asked_of = stmt_prepare(&mut r, "INSERT INTO t (id, a) VALUES (?, 1)", "1");
    r.tell(asked_of.into_bytes(), &["id", "a"]);
    r.answer(&prepared(7, 1));
    // What is executed with a key is prepared by the session.
    assert!(has(&r.say(&with_null), "LAST_INSERT_ID(?)"));
    r.answer(&prepared(8, 1));
    r.answer(&ok(1, 101));
    r.output();
    asked(&schema, false);
    let sent = r.say(&with_null);
    assert!(has(&sent, QUESTION), "{sent:?} {:?}", r.output());
    assert!(r.answer(&rows(&["t", "CREATE TABLE"])).is_empty());
    assert!(has(&r.output(), TOLD));
}
