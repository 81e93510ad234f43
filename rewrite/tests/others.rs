//! Statements other than INSERT: what they name, and whether they see LAST_INSERT_ID().

use keywright_rewrite::{
    CharsetClass, Flavour, InsertHead, Kind, LastInsertIdChange, LastInsertIdUse, Modes,
    PrepareSource, Server, TableName, Unread, Unsupported, Verb, kind, kind_of_beginning,
    last_insert_id_change, last_insert_id_use, load_target, prepare_source, tables_touched,
    unread_kind, use_target,
};

const MARIA: Modes = Modes {
    no_auto_value_on_zero: Some(false),
    strict: Some(true),
    ..Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    })
};

fn table(name: &str) -> TableName {
    let bytes = |name: &str| name.as_bytes().to_vec();
    match name.split_once('.') {
        Some((schema, table)) => TableName {
            schema: Some(bytes(schema)),
            table: bytes(table),
        },
        None => TableName {
            schema: None,
            table: bytes(name),
        },
    }
}

fn touched(text: &str) -> Option<Vec<TableName>> {
    tables_touched(text.as_bytes(), &MARIA)
}

/// Of a text of which only the beginning is read.
#[test]
fn a_beginning_says_what_a_statement_is_or_may_be_any() {
    for (beginning, expected) in [
        ("INSERT INTO t", Kind::Insert),
        ("INSERT", Kind::Empty),
        ("/* a long comment", Kind::Empty),
        ("BINLOG 'Zm9v", Kind::Other),
        ("BINLOG", Kind::Empty),
        ("here : BEGIN", Kind::Compound),
    ] {
        let kind = kind_of_beginning(beginning.as_bytes(), &MARIA);
        assert_eq!(kind, expected, "{beginning}");
    }
}

/// MySQL's versions read six digits before a text in different ways.
#[test]
fn what_may_bring_rows_says_what_keeps_it_from_being_read() {
    let modes = Modes::plain(Server {
        flavour: Flavour::MySql,
        version: 90_704,
    });
    for (text, is_unread) in [
        (r"/*!080000\- x */ INSERT INTO t (a) VALUES (3)", true),
        ("LOAD /*!080000x */ DATA INFILE 'f' INTO TABLE t", true),
        ("EXECUTE /*!080000x */ s", true),
        ("OPTIMIZE /*!080000x */ TABLE t", false),
        ("SELECT /*!080000x */ 1", false),
        ("/*!080000 INSERT */ INTO t (a) VALUES (3)", false),
        // No version takes part in it.
        (r"/*!999999\- x */ INSERT INTO t (a) VALUES (3)", false),
    ] {
        let unread = unread_kind(text.as_bytes(), &modes);
        let expected = is_unread.then_some(Unsupported::VersionComment);
        assert_eq!(unread, expected, "{text}");
    }
    let dumped = br"/*!999999\- enable the sandbox mode */ INSERT INTO t (a) VALUES (3)";
    assert_eq!(kind(dumped, &modes), Kind::Insert);
}

#[test]
fn ddl_names_its_tables() {
    let some = |names: &[&str]| Some(names.iter().map(|name| table(name)).collect::<Vec<_>>());
    assert_eq!(touched("CREATE TABLE t(id int)"), some(&["t"]));
    assert_eq!(
        touched("CREATE OR REPLACE TEMPORARY TABLE IF NOT EXISTS `d`.`t` LIKE u"),
        some(&["d.t"])
    );
    assert_eq!(
        touched("DROP TABLE IF EXISTS a, d.b , `c`"),
        some(&["a", "d.b", "c"])
    );
    assert_eq!(touched("DROP TEMPORARY TABLE a"), some(&["a"]));
    assert_eq!(touched("TRUNCATE TABLE d.t"), some(&["d.t"]));
    assert_eq!(touched("TRUNCATE t"), some(&["t"]));
    assert_eq!(touched("ALTER TABLE t ADD c int"), some(&["t"]));
    assert_eq!(
        touched("RENAME TABLE a TO b, c TO d.e"),
        some(&["a", "b", "c", "d.e"])
    );
    assert_eq!(touched("RENAME TABLE a NOWAIT TO b"), some(&["a", "b"]));
}

#[test]
fn what_may_touch_any_table_says_so() {
    for text in [
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u",
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
        "DROP TRIGGER x",
        "CREATE INDEX i ON t(a)",
        "DROP DATABASE d",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE",
        "SELECT 1",
    ] {
        assert_eq!(touched(text), None, "{text}");
    }
}

#[test]
fn names_are_read_without_their_quotes() {
    let target = |text: &str| use_target(text.as_bytes(), &MARIA);
    assert_eq!(target("USE d"), Some(b"d".to_vec()));
    assert_eq!(target("use /* c */ `d``e` ;"), Some(b"d`e".to_vec()));
    assert_eq!(target("SELECT 1"), None);
    assert_eq!(target("USE"), None);
    let load = |text: &str| load_target(text.as_bytes(), &MARIA);
    assert_eq!(
        load(
            "LOAD DATA LOCAL INFILE 'INTO TABLE x' REPLACE INTO TABLE d.t FIELDS TERMINATED BY ','"
        ),
        Some(table("d.t"))
    );
    assert_eq!(load("LOAD DATA INFILE 'x'"), None);
}

#[test]
fn the_text_of_a_prepare_is_unescaped() {
    let source = |text: &str| prepare_source(text.as_bytes(), &MARIA);
    let text = |name: &str, text: &str| PrepareSource::Text {
        name: name.into(),
        text: text.into(),
    };
    assert_eq!(
        source("PREPARE s FROM 'INSERT INTO t VALUES (''a'', \"\\n\\'\")'"),
        text("s", "INSERT INTO t VALUES ('a', \"\n'\")")
    );
    assert_eq!(
        source("PREPARE `s` FROM 'SELECT' ' 1';"),
        text("s", "SELECT 1")
    );
    assert_eq!(
        source("EXECUTE IMMEDIATE \"SELECT 1\" USING @a"),
        text("", "SELECT 1")
    );
    assert_eq!(
        source("PREPARE s FROM @text"),
        PrepareSource::Computed {
            name: b"s".to_vec()
        }
    );
    assert_eq!(
        source("EXECUTE IMMEDIATE CONCAT('SELECT', ' 1')"),
        PrepareSource::Computed { name: Vec::new() }
    );
    assert_eq!(
        source("EXECUTE IMMEDIATE 'SELECT' || ' 1'"),
        PrepareSource::Computed { name: Vec::new() }
    );
    assert_eq!(source("PREPARE s"), PrepareSource::Unreadable);
}

#[test]
fn who_sees_the_last_id() {
    let of = |text: &str| last_insert_id_use(text.as_bytes(), &MARIA);
    for text in [
        "SELECT 1",
        "COMMIT",
        "BEGIN",
        "SET autocommit = 1",
        "SET NAMES utf8mb4",
        "USE d",
        "SELECT NOW(), 'last_insert_id()'",
        "SHOW WARNINGS",
        "SELECT ROW_COUNT()",
        "SELECT @@sql_mode",
        "KILL 5",
        "",
        "DO SLEEP(1)",
        "ROLLBACK",
        "CREATE PROCEDURE p() SELECT LAST_INSERT_ID()",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
    ] {
        assert_eq!(of(text), LastInsertIdUse::Nothing, "{text}");
    }
    for text in [
        "SELECT a FROM t",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "INSERT INTO t VALUES (1)",
        "WITH c AS (SELECT 1) SELECT 1",
        "SELECT 1 FROM dual",
        "INSERT INTO t (a, b) VALUES (1, NOW()) ON DUPLICATE KEY UPDATE a = VALUES (a)",
        "SELECT a FROM t JOIN u USING (a) WHERE (b) IN (1)",
        "SET @a = (SELECT a FROM t)",
        "SELECT identity FROM t",
        "TABLE t",
        "LOAD DATA INFILE 'x' INTO TABLE t",
    ] {
        assert_eq!(of(text), LastInsertIdUse::Perhaps, "{text}");
    }
    for text in [
        "SELECT LAST_INSERT_ID()",
        "SELECT last_insert_id ( )",
        "SELECT @@identity",
        "SELECT @@session.last_insert_id",
        "SELECT @@session . identity",
        "SELECT @@session. identity",
        "SELECT @@local./**/identity",
        "SELECT @@session#\n.identity",
        "SELECT @@session-- \n.identity",
        "SELECT my_function()",
        "SELECT d.now()",
        "CALL p()",
        "EXECUTE s",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "SET @a = LAST_INSERT_ID()",
        "SET last_insert_id = 5",
        "SET identity = 5",
        "SET a = 1, SESSION Identity = 5",
        "SET `identity` = 5, LOCAL `last_insert_id` = 6",
        "SHOW SESSION VARIABLES LIKE 'x'",
        "IF 1 THEN SELECT 1; END IF",
        "SELECT 'open",
        "UPDATE t SET a = LAST_INSERT_ID(a + 1)",
        "SELECT /*! LAST_INSERT_ID() */",
        "GRANT SELECT ON t TO u",
        "INSERT INTO t VALUES (LAST_INSERT_ID())",
        "CREATE EVENT e ON SCHEDULE AT NOW() + INTERVAL (LAST_INSERT_ID() > 0) DAY DO SELECT 1",
        "ALTER DEFINER = u@h EVENT e ON SCHEDULE EVERY LAST_INSERT_ID() DAY",
    ] {
        assert_eq!(of(text), LastInsertIdUse::Sees, "{text}");
    }
}

#[test]
fn a_head_is_enough_to_know_the_table() {
    let head = |text: &str| InsertHead::read(text.as_bytes(), &MARIA);
    let read = head("REPLACE LOW_PRIORITY INTO d.t (a, b) VALUES (1, 'unfinis")
        .expect("the head is whole");
    assert!(!read.ends_text);
    assert_eq!((read.verb, read.table), (Verb::Replace, table("d.t")));
    assert!(head("INSERT INTO d").is_ok_and(|head| head.ends_text));
    assert_eq!(head("INSERT INTO d /* ").err(), Some(Unread::Refused));
    assert_eq!(head("INSERT INTO").err(), Some(Unread::Refused));
    assert_eq!(head("INSERT INTO `unfinis").err(), Some(Unread::Refused));
    assert_eq!(head("SELECT 1").err(), Some(Unread::Refused));
}

#[test]
fn character_sets_are_told_apart() {
    use CharsetClass::{Blanks, Letters, NoAscii, Safe, TrailByteMayBeBackslash};
    assert_eq!(CharsetClass::of_name(b"GBK"), TrailByteMayBeBackslash);
    for utf8 in ["utf8mb4", "utf8mb3", "UTF8", "binary"] {
        assert_eq!(CharsetClass::of_name(utf8.as_bytes()), Safe);
    }
    assert_eq!(CharsetClass::of_name(b"cp1251"), Letters);
    assert_eq!(CharsetClass::of_name(b"latin1"), Blanks(b"\xA0"));
    assert_eq!(CharsetClass::of_name(b"Swe7"), NoAscii);
    assert_eq!(CharsetClass::of_collation_id(10), NoAscii);
    assert_eq!(CharsetClass::of_collation_id(28), TrailByteMayBeBackslash);
    assert_eq!(CharsetClass::of_collation_id(45), Safe);
    assert_eq!(CharsetClass::of_collation_id(255), Safe);
}

#[test]
fn ascii_is_the_same_in_all_character_sets_but_one() {
    use CharsetClass::{Blanks, Letters, NoAscii, Safe, TrailByteMayBeBackslash};
    let classes = [
        Blanks(b"\xA0"),
        Letters,
        NoAscii,
        Safe,
        TrailByteMayBeBackslash,
    ];
    for one in classes {
        for other in classes {
            let is_plain = one != NoAscii && other != NoAscii;
            let expected = is_plain || one == other;
            assert_eq!(one.reads_ascii_as(other), expected, "{one:?}, {other:?}");
        }
    }
}

#[test]
fn what_is_made_of_the_last_id() {
    let of = |text: &str| last_insert_id_change(text.as_bytes(), &MARIA);
    for text in [
        "SELECT LAST_INSERT_ID()",
        "SELECT last_insert_id ( ), @@identity, @@session.last_insert_id",
        "SELECT my_function(1)",
        "SELECT `last_insert_id`(), 1 AS `last_insert_id`",
        "SET @a = LAST_INSERT_ID()",
        "SELECT 'LAST_INSERT_ID(5)' AS last_insert_id",
        "INSERT INTO t VALUES (LAST_INSERT_ID())",
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
        "UPDATE t SET a = 1 WHERE id = LAST_INSERT_ID()",
    ] {
        assert_eq!(of(text), LastInsertIdChange::Keeps, "{text}");
    }
    for text in [
        "SELECT LAST_INSERT_ID(5)",
        " do last_insert_id ( 5 ) ; ",
        "SELECT /* five */ LAST_INSERT_ID(5)",
    ] {
        assert_eq!(of(text), LastInsertIdChange::To(5), "{text}");
    }
    for text in [
        "SELECT LAST_INSERT_ID(5) FROM t",
        "SELECT LAST_INSERT_ID(-5)",
        "SELECT `last_insert_id`(5)",
        "SELECT LAST_INSERT_ID(5), LAST_INSERT_ID(6)",
        "SELECT IF(a, LAST_INSERT_ID(5), 1) FROM t",
        "UPDATE t SET a = LAST_INSERT_ID(a + 1)",
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
        "SET last_insert_id = 5",
        "SET @@identity = 5",
        "SET SESSION identity = 5",
        "SET SESSION `last_insert_id` = 5",
        "SET @@session.last_insert_id = 5",
        "SELECT /*! LAST_INSERT_ID(a) */ FROM t",
        "SELECT 'open",
    ] {
        assert_eq!(of(text), LastInsertIdChange::Unknown, "{text}");
    }
}

#[test]
fn prefixes_in_prefixes_are_not_looked_into() {
    let modes = Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    });
    for inside in ["SELECT 1", "INSERT INTO t (a) VALUES (1)"] {
        let text = format!("{}{inside}", "SET STATEMENT a=1 FOR ".repeat(100_000));
        assert_eq!(kind(text.as_bytes(), &modes), Kind::SetStatement);
    }
}
