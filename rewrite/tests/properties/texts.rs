//! Texts that are nearly statements, and settings to read them in.

use keywright_rewrite::{CharsetClass, Flavour, Modes, Server};
use proptest::prelude::*;

/// Every setting that changes how a text is read.
pub(crate) fn modes() -> impl Strategy<Value = Modes> {
    let zero = prop_oneof![Just(None), Just(Some(false)), Just(Some(true))];
    (
        any::<bool>(),
        any::<bool>(),
        zero,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(ansi_quotes, no_backslash_escapes, no_auto_value_on_zero, strict, maria)| Modes {
                ansi_quotes,
                no_backslash_escapes,
                no_auto_value_on_zero,
                strict: Some(strict),
                charset: CharsetClass::Safe,
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
            },
        )
}

/// Pieces that statements are made of, so that many of the texts mean something and many almost do.
pub(crate) fn pieces() -> impl Strategy<Value = Vec<u8>> {
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
    (prop::collection::vec(piece, 0..40), any::<bool>()).prop_map(|(pieces, blanks)| {
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
