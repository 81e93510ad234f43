//! Commands as clients send them, put together at random: many mean something, and many almost do.

use fastrand::Rng;

/// What statements are made of.
const TEXTS: &[&str] = &[
    "INSERT INTO t (a) VALUES (1)",
    "INSERT INTO t (a) VALUES (1),(2),('x')",
    "INSERT INTO t (id, a) VALUES (NULL, 1),(0, 2),(7, 3)",
    "INSERT INTO t VALUES (NULL, 1)",
    "INSERT INTO d.t SET a = 'it''s', id = DEFAULT",
    "REPLACE INTO t (a) VALUES ('\\'')",
    "INSERT IGNORE INTO t (a) VALUES (1),(2)",
    "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = LAST_INSERT_ID(a)",
    "INSERT INTO t (a) VALUES (1),(2) RETURNING id",
    "INSERT INTO t (a) SELECT a FROM free",
    "INSERT INTO t (id, a) VALUES (RAND(), 1)",
    "INSERT INTO strict (id, a) VALUES (5, 1)",
    "INSERT IGNORE INTO strict (a) VALUES (1),(2)",
    "INSERT INTO seen (a) VALUES (1)",
    "INSERT INTO free (a) VALUES (1)",
    "SELECT LAST_INSERT_ID()",
    "SELECT 1",
    "SELECT 1; INSERT INTO t (a) VALUES (1)",
    "SELECT 1; SELECT 2",
    "CALL p()",
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET insert_id = 5",
    "SET auto_increment_increment = 3",
    "USE other",
    "USE d; INSERT INTO t (a) VALUES (1)",
    "CREATE TEMPORARY TABLE t (a INT)",
    "DROP TABLE t",
    "PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'",
    "EXECUTE s",
    "EXECUTE s",
    "DEALLOCATE PREPARE s",
    "INSERT INTO t (a) VALUES (1); SELECT LAST_INSERT_ID(); UPDATE free SET a = 1",
    "SET sql_mode = ''; INSERT INTO \"t\" (a) VALUES (1)",
    "SELECT 1; PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'; EXECUTE s;",
    "EXECUTE IMMEDIATE 'INSERT INTO t (a) VALUES (1)'",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE free",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
    "LOAD DATA LOCAL INFILE 'x' IGNORE INTO TABLE t (a) SET b = 1",
    "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE strict",
    "LOAD DATA INFILE 'x' INTO TABLE t (a)",
    "LOAD DATA INFILE 'x' INTO TABLE d.strict (id, a)",
    "BEGIN",
    "COMMIT",
    "",
    "/*! INSERT */ INTO t (a) VALUES (1)",
    "INSERT INTO t (a) VALUES ('",
];

/// Statements that are prepared.
const PREPARED: &[&str] = &[
    "INSERT INTO t (a) VALUES (?)",
    "INSERT INTO t (id, a) VALUES (?, ?)",
    "INSERT INTO t (id, a, b) VALUES (?, ?, ?),(NULL, ?, 1)",
    "INSERT IGNORE INTO t (a) VALUES (?),(?)",
    "INSERT INTO t VALUES (?, ?)",
    "INSERT INTO t (a) VALUES (1)",
    "INSERT INTO strict (id, a) VALUES (?, ?)",
    "INSERT INTO t (a) VALUES (?) RETURNING id",
    "INSERT INTO t (a) SELECT a FROM free WHERE a > ?",
    "INSERT INTO t (a, b) SELECT ?, ?",
    "SELECT ?",
    "SELECT LAST_INSERT_ID()",
    "SET sql_mode = ?",
];

/// What stands before texts where query attributes are agreed on.
const HEADS: &[&[u8]] = &[
    b"\x00\x01",
    b"\x00\x01",
    b"\x01\x01\x00\x01\xfe\x00\x01a\x05value",
    b"\x02\x01\x01\x01\x03\x00\x00\x08\x80\x01n\x07\x00\x00\x00\x00\x00\x00\x00",
    b"\x01\x01\x00\x01\x09\x00\x00\x00\x00\x00",
];

/// The same without what stands before it.
pub(crate) fn without_head(text: &[u8]) -> &[u8] {
    let heads = HEADS.iter();
    heads.fold(text, |text, head| text.strip_prefix(*head).unwrap_or(text))
}

/// A command's packet or packets.
pub(crate) fn packet(sequence: u8, payload: &[u8], out: &mut Vec<u8>) {
    let len = u32::try_from(payload.len()).unwrap_or(0).to_le_bytes();
    out.extend([len[0], len[1], len[2], sequence]);
    out.extend(payload);
}

/// Appends some commands.
pub(crate) fn conversation(has_attributes: bool, random: &mut Rng, out: &mut Vec<u8>) {
    for _ in 0..random.usize(1..8) {
        command(has_attributes, random, out);
    }
}

fn command(has_attributes: bool, random: &mut Rng, out: &mut Vec<u8>) {
    let statement = statement(random);
    let mut payload = Vec::new();
    match random.u8(0..25) {
        0..=8 => query(has_attributes, random, &mut payload),
        9..=11 => {
            payload.push(0x16);
            payload.extend(pick(random, PREPARED).as_bytes());
        }
        12..=15 => execute(has_attributes, random, statement, &mut payload),
        16 => {
            payload.push(0x18);
            payload.extend(statement.to_le_bytes());
            payload.extend(random.u16(0..4).to_le_bytes());
            payload.extend(b"sent as long data");
        }
        17 => {
            payload.push(pick(random, &[0x19, 0x1A]));
            payload.extend(statement.to_le_bytes());
        }
        18 => {
            payload.push(0x1C);
            payload.extend(statement.to_le_bytes());
            payload.extend(5_u32.to_le_bytes());
        }
        19 => {
            payload.push(0x02);
            payload.extend(pick(random, &["d", "other"]).as_bytes());
        }
        24 if !has_attributes => bulk(random, statement, &mut payload),
        20 => payload.extend([0x1B, random.u8(0..2), 0]),
        21 => payload.extend(b"\x11root\0\0d\0\x2d\0"),
        22 => payload.push(pick(
            random,
            &[0x01, 0x09, 0x0A, 0x0E, 0x1F, 0xFA, 0xFE, 0x12],
        )),
        _ => payload.extend(b"\x04t\0%"),
    }
    packet(0, &payload, out);
    if payload.windows(5).any(|part| part == b"LOCAL") && random.u8(..) < 240 {
        file(random, out);
    }
}

/// A file, now and then longer than what is gathered.
fn file(random: &mut Rng, out: &mut Vec<u8>) {
    let mut sequence = 2;
    for _ in 0..random.usize(0..4) {
        let lines = pick(random, &[1, 3, 50, 300]);
        packet(sequence, b"1\tline\n".repeat(lines).as_slice(), out);
        sequence += 1;
    }
    packet(sequence, b"", out);
}

fn query(has_attributes: bool, random: &mut Rng, payload: &mut Vec<u8>) {
    payload.push(0x03);
    if has_attributes {
        payload.extend(pick(random, HEADS));
    }
    let text = pick(random, TEXTS);
    payload.extend(text.as_bytes());
    // Now and then longer than what is gathered.
    if random.u8(..) < 8 && text.ends_with(')') {
        while payload.len() < crate::drive::REWRITE_BYTES_MAX + 100 {
            payload.extend(b",('long')");
        }
    }
}

fn execute(has_attributes: bool, random: &mut Rng, statement: u32, payload: &mut Vec<u8>) {
    payload.push(0x17);
    payload.extend(statement.to_le_bytes());
    let count = random.usize(0..5);
    let is_counted = has_attributes && random.u8(..) < 200;
    payload.extend([u8::from(is_counted) << 3, 1, 0, 0, 0]);
    if is_counted || (has_attributes && count > 0) {
        payload.extend(u8::try_from(count));
    }
    if count == 0 {
        return;
    }
    payload.push(random.u8(..) & random.u8(..));
    let kinds: Vec<u8> = (0..count)
        .map(|_| pick(random, &[1, 3, 4, 5, 6, 8, 10, 252, 253]))
        .collect();
    let bound = random.u8(..) < 200;
    payload.push(u8::from(bound));
    if bound {
        for kind in &kinds {
            payload.extend([*kind, 0]);
            if has_attributes {
                payload.extend(pick(random, &[b"\x00".as_slice(), b"\x01n"]));
            }
        }
    }
    for kind in kinds {
        let value: &[u8] = match kind {
            6 => &[],
            1 => &[0],
            3 | 4 => &[0, 0, 0, 0],
            5 | 8 => &[5, 0, 0, 0, 0, 0, 0, 0],
            10 => &[4, 1, 2, 3, 4],
            _ => b"\x010",
        };
        payload.extend(value);
    }
}

/// Rows of parameters for one execution.
fn bulk(random: &mut Rng, statement: u32, payload: &mut Vec<u8>) {
    payload.push(0xFA);
    payload.extend(statement.to_le_bytes());
    let flags = pick(random, &[128, 128, 128, 192, 0_u16]);
    payload.extend(flags.to_le_bytes());
    let count = random.usize(0..4);
    if flags & 128 != 0 {
        payload.extend([253, 0].repeat(count));
    }
    for _ in 0..random.usize(0..5) * count {
        payload.extend(pick(
            random,
            &[
                b"\x01".as_slice(),
                b"\x02",
                b"\x03",
                b"\x00\x010",
                b"\x00\x015",
            ],
        ));
    }
}

/// Numbers as the upstream of these tests gives them, and that of the last one prepared.
fn statement(random: &mut Rng) -> u32 {
    if random.u8(..) < 16 {
        u32::MAX
    } else {
        random.u32(1..5)
    }
}

pub(crate) fn pick<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}
