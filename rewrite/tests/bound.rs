//! What is known beside a key that is bound to a parameter: whether the server certainly refuses what does not fit.

use keywright_rewrite::{
    Care, Flavour, Insert, InsertHead, KeyColumn, KeyForm, Modes, Plan, Server,
};

fn modes(strict: Option<bool>) -> Modes {
    Modes {
        strict,
        no_auto_value_on_zero: Some(true),
        ..Modes::plain(Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        })
    }
}

fn plan(text: &str, is_strict: bool) -> Plan {
    let (text, modes) = (text.as_bytes(), modes(Some(true)));
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[],
        watched: false,
        is_signed: true,
        is_strict,
    };
    let head = InsertHead::read(text, &modes).expect("it has a head");
    let insert = Insert::read(head, text, &modes).expect("it can be read");
    insert.plan(text, &modes, &key).expect("it can be planned")
}

fn is_strict(plan: &Plan, strict: Option<bool>, row: u32) -> bool {
    let Care {
        is_signed,
        zero_is_value,
        is_strict,
        is_lax,
        empty_is_null,
    } = plan.care(&modes(strict), row);
    assert!(!empty_is_null && is_signed && zero_is_value == Some(true));
    assert!(!(is_strict && is_lax));
    assert_eq!(is_lax, strict == Some(false) || plan.ignore());
    is_strict
}

#[test]
fn only_a_strict_server_refuses_what_does_not_fit() {
    const ROWS: &str = "INSERT INTO t (id, a) VALUES (?, 1), (?, 2)";
    // The engine is strict in all rows, or perhaps in the first alone.
    for in_all_rows in [true, false] {
        let plan = plan(ROWS, in_all_rows);
        for (strict, row, wanted) in [
            (Some(true), 0, true),
            (Some(true), 1, in_all_rows),
            (Some(true), u32::MAX, in_all_rows),
            (Some(false), 0, false),
            (None, 0, false),
            (Some(false), 1, false),
        ] {
            let found = is_strict(&plan, strict, row);
            assert_eq!(found, wanted, "{in_all_rows} {strict:?} {row}");
        }
    }
}

#[test]
fn it_may_only_warn_behind_ignore_and_calls() {
    for text in [
        "INSERT IGNORE INTO t (id, a) VALUES (?, 1)",
        "INSERT INTO t (id, a) VALUES (?, f(1))",
        "INSERT INTO t (id, a) VALUES (?, LAST_INSERT_ID())",
        "INSERT INTO t (id, a) VALUES (?, (SELECT 1))",
        "INSERT IGNORE INTO t (id, a) VALUES (?, f(1))",
    ] {
        let plan = plan(text, true);
        assert!(!is_strict(&plan, Some(true), 0), "{text}");
        assert!(!is_strict(&plan, Some(false), 0), "{text}");
    }
}
