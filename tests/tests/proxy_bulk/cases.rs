//! Bulk executions as clients send them, and those that are compared.

use keywright_testkit::{Reply, Result, Wire, command};

use Cell::{Default, Ignore, Int, Null, Text};

/// The client sends types.
pub(crate) const SEND_TYPES: u16 = 128;
pub(crate) const INT: [u8; 2] = [3, 0];
pub(crate) const BIGINT: [u8; 2] = [8, 0];
pub(crate) const STRING: [u8; 2] = [253, 0];
pub(crate) const DOUBLE: [u8; 2] = [5, 0];

/// One value of one row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    Null,
    Default,
    Ignore,
    Int(i64),
    Text(&'static str),
}

/// What follows the statement's number.
pub(crate) fn bulk(flags: u16, types: &[[u8; 2]], rows: &[Vec<Cell>]) -> Vec<u8> {
    let mut payload = flags.to_le_bytes().to_vec();
    if flags & SEND_TYPES != 0 {
        payload.extend(types.concat());
    }
    for row in rows {
        for (cell, [kind, _]) in row.iter().zip(types) {
            match cell {
                Null => payload.push(1),
                Default => payload.push(2),
                Ignore => payload.push(3),
                Int(value) => {
                    payload.push(0);
                    let bytes = value.to_le_bytes();
                    payload.extend(if *kind == 3 { &bytes[..4] } else { &bytes });
                }
                Text(text) => {
                    payload.push(0);
                    payload.extend(u8::try_from(text.len()));
                    payload.extend(text.as_bytes());
                }
            }
        }
    }
    payload
}

pub(crate) fn run(wire: &mut Wire, statement: u32, rest: &[u8]) -> Result<Vec<Reply>> {
    wire.binary_command(
        command::STMT_BULK_EXECUTE,
        &[&statement.to_le_bytes(), rest].concat(),
    )
}

/// A statement and its rows.
pub(crate) struct Case {
    pub(crate) before: &'static str,
    pub(crate) text: &'static str,
    pub(crate) types: &'static [[u8; 2]],
    pub(crate) rows: Vec<Vec<Cell>>,
}

pub(crate) fn case(text: &'static str, types: &'static [[u8; 2]], rows: &[&[Cell]]) -> Case {
    Case {
        before: "DO 0",
        text,
        types,
        rows: rows.iter().map(|row| row.to_vec()).collect(),
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let plain = "INSERT INTO orders (a) VALUES (?)";
    let keyed = "INSERT INTO orders (id, a) VALUES (?, ?)";
    let no_zero = |rows: &[&[Cell]]| Case {
        before: "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
        ..case(keyed, &[BIGINT, STRING], rows)
    };
    let (x, y, z) = (Text("x"), Text("y"), Text("z"));
    vec![
        case(plain, &[STRING], &[&[x], &[y], &[z]]),
        case(plain, &[STRING], &[&[x]]),
        case(plain, &[STRING], &[&[Null], &[Null]]),
        case(
            "INSERT INTO orders (a, b) VALUES (?, ?)",
            &[STRING, INT],
            &[&[x, Default], &[y, Int(-7)], &[z, Ignore]],
        ),
        case(
            "INSERT INTO orders (b, a) VALUES (1, ?), (?, ?)",
            &[STRING, INT, STRING],
            &[&[x, Int(2), y], &[Null, Null, z]],
        ),
        case("INSERT INTO orders SET a = ?", &[STRING], &[&[x], &[y]]),
        case(
            "INSERT INTO orders VALUES (NULL, ?, ?)",
            &[STRING, INT],
            &[&[x, Int(1)], &[y, Default]],
        ),
        case(
            "INSERT INTO orders VALUES (?, ?, 3)",
            &[BIGINT, STRING],
            &[&[Null, x], &[Int(0), y]],
        ),
        case(
            "REPLACE INTO orders (a) VALUES (?)",
            &[STRING],
            &[&[x], &[x], &[z]],
        ),
        case(
            "INSERT INTO orders (a) VALUES (?) RETURNING id, a",
            &[STRING],
            &[&[x], &[y]],
        ),
        // The key is bound: nowhere given, given in some rows, in all.
        case(
            keyed,
            &[BIGINT, STRING],
            &[&[Null, x], &[Int(0), y], &[Default, z], &[Ignore, Null]],
        ),
        case(
            keyed,
            &[BIGINT, STRING],
            &[&[Int(100), x], &[Null, y], &[Int(50), z], &[Null, Null]],
        ),
        case(
            keyed,
            &[INT, STRING],
            &[&[Int(100), x], &[Null, y], &[Int(-5), z], &[Int(0), Null]],
        ),
        case(
            keyed,
            &[STRING, STRING],
            &[&[Text("100"), x], &[Null, y], &[Text("0"), z]],
        ),
        case(keyed, &[BIGINT, STRING], &[&[Int(100), x], &[Int(101), y]]),
        case(
            "INSERT INTO orders (a, id) VALUES (?, ?), (?, NULL), (?, ?)",
            &[STRING, BIGINT, STRING, STRING, INT],
            &[&[x, Null, y, z, Int(0)]],
        ),
        no_zero(&[&[Default, x], &[Null, y]]),
        no_zero(&[&[Int(0), x], &[Null, y], &[Null, z]]),
        // The first row fails.
        Case {
            before: "INSERT INTO orders (id, a) VALUES (7, 'x')",
            ..case(plain, &[STRING], &[&[x], &[y]])
        },
        // On a table without rule.
        case(
            "INSERT INTO others (a) VALUES (?)",
            &[STRING],
            &[&[Null], &[Null]],
        ),
    ]
}
