//! Texts that are nearly statements, and settings to read them in.

use keywright_rewrite::{CharsetClass, Flavour, Modes, Server};
use proptest::prelude::*;

/// Every setting that changes how a text is read.
pub(crate) fn modes() -> impl Strategy<Value = Modes> {
    let zero = prop_oneof![Just(None), Just(Some(false)), Just(Some(true))];
    let charset = prop_oneof![
        3 => Just(CharsetClass::Safe),
        1 => prop::sample::select(&["big5", "gbk", "sjis", "latin1"][..])
            .prop_map(|name| CharsetClass::of_name(name.as_bytes())),
    ];
    (
        any::<bool>(),
        any::<bool>(),
        zero,
        any::<bool>(),
        charset,
        any::<bool>(),
    )
        .prop_map(
            |(ansi_quotes, no_backslash_escapes, no_auto_value_on_zero, strict, charset, maria)| {
                Modes {
                    ansi_quotes,
                    no_backslash_escapes,
                    no_auto_value_on_zero,
                    strict: Some(strict),
                    empty_is_null: false,
                    charset,
                    server: if maria {
                        Server {
                            flavour: Flavour::MariaDb,
                            version: 101_119,
                        }
                    } else {
                        Server {
                            flavour: Flavour::MySql,
                            version: 90_704,
                        }
                    },
                }
            },
        )
}

/// Pieces that statements are made of, so that many of the texts mean something and many almost do.
pub(crate) fn pieces() -> impl Strategy<Value = Vec<u8>> {
    so_many_pieces(40)
}

/// Few of them, of which many are a value or two.
pub(crate) fn few_pieces() -> impl Strategy<Value = Vec<u8>> {
    so_many_pieces(5)
}

fn so_many_pieces(most: usize) -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&str] = &[
        "INSERT",
        "REPLACE",
        "INTO",
        "t",
        "(",
        ")",
        ",",
        "a",
        "id",
        "`id`",
        "\"id\"",
        "VALUES",
        "VALUE",
        "SET",
        "=",
        ":=",
        "NULL",
        "DEFAULT",
        "0",
        "1",
        "'0'",
        "'x''y'",
        "'\\''",
        "'\\",
        "\"q\"",
        "?",
        "@a",
        "@@identity",
        "/*",
        "*/",
        "/*!",
        "/*!50000",
        "/*M!",
        "/*!99999",
        "--",
        "-- ",
        "#",
        "\n",
        ";",
        " ",
        "ON DUPLICATE KEY UPDATE",
        "RETURNING",
        "AS n",
        "SELECT",
        "IGNORE",
        "PARTITION",
        "ROW",
        "LAST_INSERT_ID",
        "x'00'",
        "0x",
        "1e5",
        ".5",
        "b'1'",
        "_utf8mb4",
        "N'x'",
        "\\N",
        "{",
        "}",
        "TABLE",
        "WITH",
        "ANALYZE",
        "FORMAT",
        "SET STATEMENT",
        "FOR",
        "CREATE",
        "PROCEDURE",
        "DEFINER",
        "BEGIN",
        "END",
        "DROP",
        "RENAME",
        "TO",
        "PREPARE",
        "FROM",
        "EXECUTE IMMEDIATE",
        "USE",
        "LOAD DATA",
        "\u{fc}",
        "`",
        "'",
        "\"",
        "+",
        "-",
        "*",
        ".",
        "now()",
        "f (",
    ];
    let piece = prop_oneof![
        9 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    (prop::collection::vec(piece, 0..most), any::<bool>()).prop_map(|(pieces, blanks)| {
        let blank: &[u8] = if blanks { b" " } else { b"" };
        pieces.join(blank)
    })
}

/// Statements that servers would accept.
pub(crate) fn statements() -> impl Strategy<Value = String> {
    let value = prop::sample::select(
        &[
            "1",
            "'x'",
            "'it''s'",
            "'a\\\\b'",
            "NULL",
            "DEFAULT",
            "now()",
            "(1 + 2)",
            "-1.5e3",
            "x'41'",
            "'),('",
            "'/*'",
            "concat('(', a)",
            "@v",
            "'\u{e4}'",
        ][..],
    );
    let key = prop::sample::select(
        &[
            "NULL", "DEFAULT", "0", "'0'", "5", "'7'", "0.4", "(NULL)", "null",
        ][..],
    );
    let row = (key, value.clone(), value);
    let list = prop::sample::select(
        &[
            "",
            "(a, b)",
            "(id, a, b)",
            "(a, id, b)",
            "(`a`, b, `id`)",
            "(b)",
        ][..],
    );
    let verb = prop::sample::select(
        &[
            "INSERT INTO",
            "INSERT IGNORE INTO",
            "REPLACE INTO",
            "insert",
            "INSERT /* c */ INTO",
        ][..],
    );
    let tail = prop::sample::select(
        &[
            "",
            "",
            " ON DUPLICATE KEY UPDATE a = VALUES(a)",
            ";",
            " -- x\n",
        ][..],
    );
    (verb, list, prop::collection::vec(row, 1..5), tail).prop_map(|(verb, list, rows, tail)| {
        let rows: Vec<String> = rows
            .iter()
            .map(|(key, a, b)| match list {
                "(a, b)" => format!("({a}, {b})"),
                "(a, id, b)" => format!("({a}, {key}, {b})"),
                "(`a`, b, `id`)" => format!("({a},{b},{key})"),
                "(b)" => format!("({b})"),
                _ => format!("({key}, {a}, {b})"),
            })
            .collect();
        let tail = if verb.starts_with("REPLACE") && tail.contains("DUPLICATE") {
            ""
        } else {
            tail
        };
        format!("{verb} t {list} VALUES {}{tail}", rows.join(", "))
    })
}

/// What may stand around a value.
fn blanks() -> impl Strategy<Value = &'static str> + Clone {
    prop::sample::select(
        &[
            "",
            "",
            "",
            " ",
            "/**/",
            "/* ), ( */",
            "\n",
            "-- x\n",
            "# '\n",
            "/*!99999 ( */",
        ][..],
    )
}

/// Values as an INSERT or a SET of LOAD DATA may have them.
pub(crate) fn values() -> impl Strategy<Value = String> {
    const VALUES: &[&str] = &[
        "1",
        "-1.5e3",
        ".5",
        "NULL",
        "'x'",
        "'it''s'",
        "'),('",
        "'/*'",
        "'\u{e4}'",
        "N'x'",
        "_utf8mb4'x'",
        "x'41'",
        "b'1'",
        "@v",
        "@'x)'",
        "@`x,`",
        "now()",
        "concat('(', 'b')",
        "(1 + 2)",
        "CASE WHEN 1 THEN ')' ELSE 2 END",
        "CAST('1' AS SIGNED)",
        "(SELECT 1)",
        "a",
        "t.a",
        "`a`",
        "/*!50000 2 */",
    ];
    let value = (blanks(), prop::sample::select(VALUES), blanks())
        .prop_map(|(before, value, behind)| format!("{before}{value}{behind}"));
    let operator = prop::sample::select(&["+", "*", " OR ", " AND ", " DIV ", "<>"][..]);
    (value.clone(), prop::option::of((operator, value))).prop_map(|(one, more)| match more {
        Some((operator, other)) => format!("{one}{operator}{other}"),
        None => one,
    })
}

/// Constants in the place of a key, which is theirs or is asked for.
pub(crate) fn keys_as_written() -> impl Strategy<Value = String> {
    const KEYS: &[&str] = &[
        "NULL",
        "null",
        "DEFAULT",
        "DEFAULT(id)",
        "(NULL)",
        "0",
        "'0'",
        "0.4",
        "-0",
        "0e5",
        "'0' '0'",
        "5",
        "'7'",
        "5e-1",
        "0x01",
        "/*! NULL */",
        "/*!50000 5 */",
    ];
    (blanks(), prop::sample::select(KEYS), blanks())
        .prop_map(|(before, key, behind)| format!("{before}{key}{behind}"))
}
