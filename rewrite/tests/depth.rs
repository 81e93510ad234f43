//! Texts nested so deeply that following each level by a call would use the stack up, which nothing survives.

use std::thread;

use keywright_rewrite::{
    Flavour, Insert, InsertHead, KeyColumn, KeyForm, Load, Modes, Server, ViewText,
    behind_set_statement, kind, last_insert_id_change, last_insert_id_use, load_target,
    prepare_source, split, tables_filled, tables_of_documents, tables_read, tables_touched,
};

const DEPTH: usize = 20_000;
/// Bytes: far less than a thread of the proxy's has.
const STACK_BYTES: usize = 256 << 10;

fn read_in_all_ways(text: &[u8], flavour: Flavour) {
    let modes = Modes {
        no_auto_value_on_zero: Some(false),
        ..Modes::plain(Server {
            flavour,
            version: 101_119,
        })
    };
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[b"id".to_vec(), b"a".to_vec()],
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let insert = InsertHead::read(text, &modes).and_then(|head| Insert::read(head, text, &modes));
    if let Ok(insert) = insert {
        let _ = insert.plan(text, &modes, &key);
        let _ = insert.plan_query(text, &modes, &key, &insert.read_again(text, &modes), None);
    }
    let _ = Load::read(text, &modes).and_then(|load| load.plan(text, &modes, &key));
    let _ = (
        kind(text, &modes),
        last_insert_id_use(text, &modes),
        last_insert_id_change(text, &modes),
    );
    let _ = (
        tables_touched(text, &modes),
        load_target(text, &modes),
        split(text, &modes),
    );
    let _ = (tables_filled(text, &modes), tables_read(text, &modes));
    let _ = tables_of_documents(text, &modes);
    let _ = (prepare_source(text, &modes), ViewText::read(text, &modes));
    let _ = behind_set_statement(text, &modes);
}

#[test]
fn depth_does_not_use_the_stack_up() {
    let nested = |front: &str, open: &str, middle: &str, close: &str, end: &str| {
        [
            front,
            &open.repeat(DEPTH),
            middle,
            &close.repeat(DEPTH),
            end,
        ]
        .concat()
    };
    let texts = [
        nested("", "SET STATEMENT a=1 FOR ", "SELECT 1", "", ""),
        nested(
            "SET STATEMENT a=",
            "(",
            "1",
            ")",
            " FOR INSERT INTO t (a) VALUES (1)",
        ),
        nested("INSERT INTO t (id) VALUES (", "(", "0", ")", ")"),
        nested("INSERT INTO t (id) VALUES (", "- ", "0", "", ")"),
        nested("INSERT INTO t (id) VALUES (", "DEFAULT(", "id", ")", ")"),
        nested("INSERT INTO t (id) VALUES (", "{d ", "1", "}", ")"),
        nested("INSERT INTO t (a) VALUES (", "(", "0", ")", ")"),
        nested(
            "INSERT INTO t (a) VALUES (",
            "CASE WHEN 1 THEN ",
            "1",
            " END",
            ")",
        ),
        nested("INSERT INTO t VALUES ", "ROW(", "1", ")", ""),
        nested("INSERT INTO t (a) ", "(", "SELECT 1", ")", ""),
        nested(
            "INSERT INTO t (a) SELECT * FROM ",
            "(SELECT * FROM ",
            "u",
            ") x",
            "",
        ),
        nested("INSERT INTO t (a) ", "SELECT 1 UNION ", "SELECT 2", "", ""),
        nested(
            "INSERT INTO t (a) ",
            "SELECT 1 UNION (",
            "SELECT 2",
            ")",
            "",
        ),
        nested(
            "INSERT INTO t (a) ",
            "WITH a AS (",
            "SELECT 2",
            ") SELECT 1",
            "",
        ),
        nested(
            "WITH ",
            "a AS (WITH ",
            "b AS (SELECT 1) SELECT 1",
            ") SELECT 1",
            "",
        ),
        nested("", "/*!", " INSERT INTO t (a) VALUES (1)", "*/", ""),
        nested("", "/*!99999 ", " INSERT INTO t (a) VALUES (1)", "*/", ""),
        nested("", "ANALYZE ", "INSERT INTO t (a) VALUES (1)", "", ""),
        nested("", "EXPLAIN ", "INSERT INTO t (a) VALUES (1)", "", ""),
        nested("BEGIN NOT ATOMIC ", "BEGIN ", "SELECT 1;", "END;", ""),
        nested(
            "CREATE PROCEDURE p() ",
            "BEGIN ",
            "SELECT 1;",
            "END;",
            "; SELECT 1",
        ),
        nested("CREATE ", "OR REPLACE ", "TABLE t (a int)", "", ""),
        nested("CREATE VIEW v AS ", "(", "SELECT 1", ")", ""),
        nested("CREATE VIEW v AS SELECT ", "(", "a", ")", " FROM t"),
        nested("select ", "(", "`a`", ")", " AS `a` from `d`.`t`"),
        nested("select `a` AS `a` from ", "(", "`d`.`t`", ")", ""),
        nested("select `a` AS `a` from `d`.`t` where ", "(", "1", ")", ""),
        nested(
            "LOAD DATA INFILE 'f' INTO TABLE t (a) SET b=",
            "(",
            "1",
            ")",
            "",
        ),
        nested(
            "PREPARE s FROM 'INSERT INTO t (id) VALUES (",
            "(",
            "0",
            ")",
            ")'",
        ),
        nested(
            "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=",
            "(",
            "1",
            ")",
            "",
        ),
        nested("", "a: ", "BEGIN END", "", ""),
    ];
    let reader = thread::Builder::new().stack_size(STACK_BYTES);
    let reading = reader.spawn(move || {
        for text in &texts {
            for flavour in [Flavour::MariaDb, Flavour::MySql] {
                read_in_all_ways(text.as_bytes(), flavour);
            }
        }
    });
    assert!(reading.unwrap().join().is_ok());
}
