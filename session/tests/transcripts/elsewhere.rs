//! Another database is chosen after a statement was prepared: what it names without one stays where it was.

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::*;

use super::rig::*;

const ROWS: &str = "INSERT INTO t (id, a) VALUES (?, 1)";
const NAMED: &str = "INSERT INTO d.t (id, a) VALUES (?, 1)";
const QUERY: &str = "INSERT INTO t (a) SELECT 1";
const BY_ORDER: &str = "INSERT INTO t VALUES (NULL, 1)";
const GIVEN: &str = "INSERT INTO t SELECT 7, 1";

/// What the program knows, with a rule for these tables.
fn before(tables: &str) -> (Rig, Arc<SchemaChanges>) {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let schema = Arc::new(SchemaChanges::default());
    let rule = Rule {
        table: Pattern::parse(tables).unwrap(),
        ..r.rule_in(Mode::Rewrite)
    };
    let rules = Rules::new(vec![rule], false).with_schema(Arc::clone(&schema));
    r.s = Session::new(Arc::new(rules), r.facts());
    (r, schema)
}

/// Prepares it as number 7.
fn prepare(r: &mut Rig, text: &str, parameters: u16) {
    let asked = stmt_prepare(r, text, "1");
    let sent = r.tell(asked.into_bytes(), &["id", "a"]);
    assert!(sent.contains(&COM_STMT_PREPARE), "{sent:?}");
    r.answer(&prepared(7, parameters));
    r.output();
}

fn choose(r: &mut Rig, database: &str) {
    const COM_INIT_DB: u8 = 2;
    let command = [&[COM_INIT_DB], database.as_bytes()].concat();
    assert_eq!(r.say(&command), packet(0, &command));
    r.answer(&ok(0, 0));
    r.output();
}

/// A prepared USE, which only MariaDB has, chooses a database too.
#[test]
fn a_temporary_table_is_where_an_executed_use_leads() {
    let (mut r, _) = before("*.t");
    r.probed("INSERT INTO t (id, a) VALUES (5, 1)", "1");
    r.answer(&ok(1, 0));
    stmt_prepare(&mut r, "USE e", "1");
    r.answer(&prepared(7, 0));
    r.say(&execute(7, &[]));
    r.answer(&ok(0, 0));
    r.query("CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT)");
    r.answer(&ok(0, 0));
    let sent = r.query("INSERT INTO e.t (a) VALUES (1)");
    let sent = match has(&sent, "@@session.sql_mode") {
        true => r.answer(&rows(&["", "utf8mb4", "e", "1", "0", SERVER])),
        false => sent,
    };
    assert!(has(&sent, "INSERT INTO e.t (a) VALUES (1)"), "{sent:?}");
}

/// An execution whose one parameter is NULL.
fn with_null() -> Vec<u8> {
    execute(7, &[1, 1, 6, 0])
}

#[test]
fn no_other_text_is_prepared_where_its_names_mean_other_tables() {
    let (mut r, _) = before("*.t");
    prepare(&mut r, ROWS, 1);
    choose(&mut r, "e");
    for _ in 0..2 {
        let sent = r.say(&with_null());
        assert!(!has(&sent, "INSERT"), "{}", String::from_utf8_lossy(&sent));
        assert!(has(&r.output(), "another database"));
    }
    choose(&mut r, "d");
    assert!(has(&r.say(&with_null()), "LAST_INSERT_ID(?)"));
}

#[test]
fn a_text_that_names_its_database_is_prepared_anywhere() {
    let (mut r, _) = before("*.t");
    prepare(&mut r, NAMED, 1);
    choose(&mut r, "e");
    assert!(has(&r.say(&with_null()), "LAST_INSERT_ID(?)"));
}

#[test]
fn nor_is_its_own_text() {
    for (text, parameters, rest) in [(ROWS, 1, &[1, 1, 6, 0][..]), (QUERY, 1, &[])] {
        let (mut r, _) = before("*.t");
        prepare(&mut r, text, parameters);
        choose(&mut r, "e");
        r.query("SET insert_id = 77");
        r.answer(&ok(0, 0));
        r.output();
        r.say(&execute(7, rest));
        let sent = r.answer(&rows(&["", "utf8mb4", "e", "1", "77", SERVER]));
        assert!(!has(&sent, "INSERT"), "{}", String::from_utf8_lossy(&sent));
        assert!(has(&r.output(), "another database"), "{text}");
    }
}

/// A table that changes is looked at where it is.
#[test]
fn it_is_judged_by_its_own_table() {
    for tables in ["d.t", "*.t"] {
        for (text, parameters) in [(QUERY, 1), (BY_ORDER, 1), (GIVEN, 0)] {
            let (mut r, schema) = before(tables);
            prepare(&mut r, text, parameters);
            choose(&mut r, "e");
            schema.note_defined();
            let mut sent = r.say(&execute(7, &[]));
            while has(&sent, " FROM `") {
                assert!(has(&sent, " FROM `d`.`t`"), "{text}: {sent:?}");
                sent = r.tell_once(&sent, &["id", "a"]).expect(text);
            }
            let execution = [COM_STMT_EXECUTE, 7, 0, 0, 0];
            let is_it = |part: &[u8]| part == execution;
            assert!(sent.windows(5).any(is_it), "{tables} {text}: {sent:?}");
            assert_eq!(r.requests.len(), usize::from(text != GIVEN), "{text}");
        }
    }
}

/// In the connection's character set the bytes of that database's name are another name.
#[test]
fn what_cannot_be_asked_of_its_own_table_is_refused() {
    let (mut r, schema) = before("*.t");
    let asked = r.say(&[&[COM_STMT_PREPARE], BY_ORDER.as_bytes()].concat());
    assert!(has(&asked, "@@session.sql_mode"));
    let sent = r.answer(&rows(&["", "latin1 latin1", "größe", "1", "0", SERVER]));
    let sent = r.tell(sent, &["id", "a"]);
    assert!(sent.contains(&COM_STMT_PREPARE), "{sent:?}");
    r.answer(&prepared(7, 1));
    r.output();
    choose(&mut r, "e");
    schema.note_defined();
    assert_eq!(r.say(&execute(7, &[])), b"");
    assert!(has(&r.output(), "another database"));
}
