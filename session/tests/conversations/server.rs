//! An upstream that answers what it hears, mostly as a server would. Its answer depends on what it hears and on its own state,
//! so a conversation of which something is left out goes on alike.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use fastrand::Rng;
use keywright_wire::capability::{DEPRECATE_EOF, EXTENDED_METADATA};
use keywright_wire::rows::{write_column, write_ok};

use crate::circumstances::{Circumstances, HERE};
use crate::client::{packet, without_attributes};
use crate::{pick, spoil};

const MORE_RESULTS: u8 = 8;
const CURSOR: u8 = 64;
const TOO_FEW: &[u8] =
    b"\xff\x9a\x06#22003BIGINT UNSIGNED value is out of range in 'rownum() * 7046029254386353131'";
const GIVEN: &[u8] = b"\xff\x9a\x06#22003BIGINT value is out of range in 'cast(`d`.`t`.`id` as signed) * 6364136223846793005'";
const AT_FENCE: &[u8] = b"\xff\xa7\x00#22003Out of range value for column 'id' at row 1";
const PROGRESS: &[u8] = b"\xFF\xFF\xFF\x01\x01\x02\x00\x00\x00\x04read";

/// Columns of what is prepared: of the question for the key, for all columns, and of anything else.
const COLUMN: &[&[u8]] = &[b"id"];
const COLUMNS: &[&[&[u8]]] = &[
    &[b"id", b"a"],
    &[b"a", b"id"],
    &[b"a", b"id", b"b"],
    &[b"a"],
];
const OTHER: &[&[u8]] = &[b"x"];

pub(crate) struct Server {
    seed: u64,
    deprecate_eof: bool,
    extended: bool,
    is_maria: bool,
    wrong: u8,
    heard: Vec<u8>,
    /// How often a command was heard.
    before: HashMap<u64, u64>,
    reads_file: bool,
    prepared: u32,
    status: u8,
    sql_mode: &'static str,
    increment: &'static str,
    insert_id: &'static str,
    charset: &'static str,
}

impl Server {
    pub(crate) fn new(seed: u64, circumstances: &Circumstances) -> Self {
        Self {
            seed,
            deprecate_eof: circumstances.has(DEPRECATE_EOF),
            extended: circumstances.has(EXTENDED_METADATA),
            is_maria: circumstances.is_maria(),
            wrong: circumstances.wrong,
            heard: Vec::new(),
            before: HashMap::new(),
            reads_file: false,
            prepared: 0,
            status: 2,
            sql_mode: "",
            increment: "1",
            insert_id: "0",
            charset: "utf8mb4",
        }
    }

    /// Takes what the session sends; appends what is answered.
    pub(crate) fn hear(&mut self, bytes: &[u8], says: &mut Vec<u8>) {
        self.heard.extend(bytes);
        let mut at = 0;
        while let Some([a, b, c, _, rest @ ..]) = self.heard.get(at..) {
            let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            let Some(payload) = rest.get(..len).map(<[u8]>::to_vec) else {
                break;
            };
            at += 4 + len;
            let mut random = self.random_for(&payload);
            let from = says.len();
            self.answer(&payload, &mut random, says);
            if random.u8(..) < self.wrong && says.len() > from {
                let mut answer = says.split_off(from);
                spoil(&mut random, &mut answer);
                says.extend(answer);
            }
        }
        self.heard.drain(..at);
    }

    /// The same for the same command that is heard as often.
    fn random_for(&mut self, payload: &[u8]) -> Rng {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(payload);
        let times = self.before.entry(hash).or_default();
        *times += 1;
        Rng::with_seed(self.seed ^ hash ^ times.rotate_left(32))
    }

    fn answer(&mut self, payload: &[u8], random: &mut Rng, out: &mut Vec<u8>) {
        if self.reads_file {
            if payload.is_empty() {
                self.reads_file = false;
                match random.u8(0..8) {
                    0 => packet(4, TOO_FEW, out),
                    1 => packet(4, GIVEN, out),
                    2 => packet(4, b"\xff\x26\x04#23000Duplicate entry", out),
                    _ => self.ok_numbered(4, random, out),
                }
            }
            return;
        }
        let Some((command, rest)) = payload.split_first() else {
            return;
        };
        match command {
            0x01 | 0x18 | 0x19 => {}
            0x03 => self.query(without_attributes(rest), random, out),
            0x04 => {
                self.definition(2, random, out);
                self.end(3, 0, out);
            }
            0x09 => packet(1, b"Uptime: 1  Threads: 1", out),
            0x12 | 0x77 => self.error(random, out),
            0x16 => self.prepare(rest, random, out),
            0x17 => {
                let asks_for_cursor = rest.get(4).is_some_and(|flags| flags & 1 != 0);
                self.execute(asks_for_cursor, random, out);
            }
            0xFA => self.execute(false, random, out),
            0x1B => match random.u8(..) {
                0..=10 => self.error(random, out),
                _ => packet(1, &[0xFE, 0, 0, self.status, 0, 0, 0], out),
            },
            0x1C => {
                self.row(1, random, out);
                self.end(2, 128, out);
            }
            0x1F => {
                (self.status, self.sql_mode, self.increment) = (2, "", "1");
                (self.insert_id, self.charset) = ("0", "utf8mb4");
                write_ok(1, 2, out);
            }
            _ => match random.u8(..) {
                0..=10 => self.error(random, out),
                _ => self.ok_numbered(1, random, out),
            },
        }
    }

    fn query(&mut self, text: &[u8], random: &mut Rng, out: &mut Vec<u8>) {
        let has = |part: &str| {
            let part = part.as_bytes();
            text.windows(part.len()).any(|window| window == part)
        };
        if has("@@session.sql_mode") {
            return self.state(random, out);
        }
        if text.starts_with(b"SHOW CREATE TABLE") {
            return match random.u8(0..8) {
                0..=3 => self.table_row(&[b"t", b"CREATE TEMPORARY TABLE `t` ("], random, out),
                4 => self.table_row(&[b"t", b"CREATE TABLE `t` ("], random, out),
                5 => self.table_row(&[b"v", b"CREATE VIEW", b"utf8", b"x"], random, out),
                _ => packet(1, b"\xff\x7a\x04#42S02no such table", out),
            };
        }
        if text.starts_with(b"SHOW WARNINGS") {
            let number: &[u8] = pick(random, &[b"167", b"167", b"1265", b"1062"]);
            return match random.u8(0..12) {
                0 => self.error(random, out),
                _ => self.table_row(&[b"Warning", number, b"text"], random, out),
            };
        }
        if text == b"SELECT LAST_INSERT_ID() LIMIT 1" {
            return match random.u8(0..12) {
                0 => self.error(random, out),
                _ => self.table_row(&[b"17"], random, out),
            };
        }
        if has("LOCAL") && text.starts_with(b"LOAD") && random.u8(..) < 220 {
            if self.is_maria && random.u8(..) < 20 {
                packet(1, PROGRESS, out);
            }
            packet(1, b"\xFBf", out);
            self.reads_file = true;
            return;
        }
        if has("7046029254386353131") && random.u8(..) < 110 {
            return packet(1, TOO_FEW, out);
        }
        if has("6364136223846793005") && random.u8(..) < 60 {
            return packet(1, GIVEN, out);
        }
        let is_insert = has("INSERT ") || has("REPLACE ") || has("LOAD ");
        if random.u8(..) < 24 {
            return self.error(random, out);
        }
        if is_insert && random.u8(..) < 16 {
            return packet(1, AT_FENCE, out);
        }
        self.follow(&has);
        let more = text.split(|byte| *byte == b';').count() - 1;
        let returns = has("RETURNING") || text.starts_with(b"SELECT") || text.starts_with(b"SHOW");
        for at in (0..=more.min(3)).rev() {
            let more = if at > 0 { MORE_RESULTS } else { 0 };
            match returns && random.u8(..) < 240 && !has("INTO @") {
                true => self.rows(1, more, random, out),
                false if has("CALL") && random.bool() => {
                    self.rows(1, MORE_RESULTS, random, out);
                    self.ok(1, more, random, out);
                }
                false => self.ok(1, more, random, out),
            }
        }
        if is_insert {
            self.insert_id = "0";
        }
    }

    /// What a statement changes of the session.
    fn follow(&mut self, has: &impl Fn(&str) -> bool) {
        for mode in [
            "ANSI_QUOTES",
            "NO_AUTO_VALUE_ON_ZERO",
            "STRICT_TRANS_TABLES",
            "NO_BACKSLASH_ESCAPES",
        ] {
            if has("SET sql_mode") && has(mode) {
                self.sql_mode = mode;
            }
        }
        if has("SET sql_mode = ''") {
            self.sql_mode = "";
        } else if has("SET insert_id") || has("sets_insert_id") {
            self.insert_id = "77";
        } else if has("auto_increment_increment = 3") {
            self.increment = "3";
        } else if has("auto_increment_increment = 1") {
            self.increment = "1";
        } else if has("SET NAMES latin1") {
            self.charset = "latin1";
        } else if has("autocommit = 0") {
            self.status &= !2;
        } else if has("autocommit = 1") {
            self.status = 2;
        } else if has("COMMIT") || has("ROLLBACK") {
            self.status &= !1;
        } else if has("BEGIN") || has("XA START") {
            self.status |= 1;
        }
    }

    fn state(&mut self, random: &mut Rng, out: &mut Vec<u8>) {
        if random.u8(..) < 6 {
            return self.error(random, out);
        }
        let increment = match random.u8(..) {
            0..=3 => pick(random, &["0", "65535", "x"]),
            _ => self.increment,
        };
        let charset = match random.u8(..) {
            0..=5 => "gbk",
            _ => self.charset,
        };
        let here = pick(random, &[HERE, HERE, HERE, HERE, "uuid=other"]);
        let row = [self.sql_mode, charset, "d", increment, self.insert_id, here];
        self.table_row(&row.map(str::as_bytes), random, out);
    }

    fn prepare(&mut self, text: &[u8], random: &mut Rng, out: &mut Vec<u8>) {
        let is_question = text.starts_with(b"SELECT `") || text.starts_with(b"SELECT * FROM");
        let fails = if is_question { 60 } else { 10 };
        if random.u8(..) < fails {
            // Of tables, columns and privileges.
            let number = pick(random, &[1054_u16, 1054, 1146, 1142, 1143, 1049, 1064]);
            let error = [&[0xFF][..], &number.to_le_bytes(), b"#42000no"].concat();
            return packet(1, &error, out);
        }
        self.prepared += 1;
        let marks = text.iter().filter(|byte| **byte == b'?').count();
        let parameters = u16::try_from(marks).unwrap_or(0);
        let names = if text.starts_with(b"SELECT `") {
            COLUMN
        } else if text.starts_with(b"SELECT *") {
            pick(random, COLUMNS)
        } else if text.starts_with(b"SELECT") {
            OTHER
        } else {
            &[]
        };
        let mut first = vec![0];
        first.extend(self.prepared.to_le_bytes());
        first.extend(u16::try_from(names.len()).unwrap_or(0).to_le_bytes());
        first.extend(parameters.to_le_bytes());
        first.extend([0, 0, 0]);
        packet(1, &first, out);
        let mut sequence = 2;
        let unnamed: Vec<&[u8]> = vec![b"?"; marks];
        for block in [unnamed.as_slice(), names] {
            for name in block {
                sequence = self.column(name, sequence, random, out);
            }
            if !block.is_empty() && !self.deprecate_eof {
                self.end(sequence, 0, out);
                sequence = sequence.wrapping_add(1);
            }
        }
    }

    fn execute(&mut self, asks_for_cursor: bool, random: &mut Rng, out: &mut Vec<u8>) {
        match random.u8(0..24) {
            0..=2 => self.error(random, out),
            3..=7 => packet(1, TOO_FEW, out),
            8 => packet(1, AT_FENCE, out),
            9 | 10 if asks_for_cursor => {
                packet(1, &[1], out);
                self.definition(2, random, out);
                self.end(3, CURSOR, out);
            }
            9..=11 => self.rows(1, 0, random, out),
            _ => self.ok(1, 0, random, out),
        }
    }

    fn table_row(&self, row: &[&[u8]], random: &mut Rng, out: &mut Vec<u8>) {
        let columns = u8::try_from(row.len()).unwrap_or(0);
        packet(1, &[columns], out);
        let mut sequence = 2;
        for _ in 0..columns {
            sequence = self.column(b"c", sequence, random, out);
        }
        if !self.deprecate_eof {
            self.end(sequence, 0, out);
            sequence = sequence.wrapping_add(1);
        }
        let mut values = Vec::new();
        for value in row {
            values.extend(u8::try_from(value.len()));
            values.extend(*value);
        }
        packet(sequence, &values, out);
        self.end(sequence.wrapping_add(1), 0, out);
    }

    fn rows(&self, sequence: u8, more: u8, random: &mut Rng, out: &mut Vec<u8>) {
        packet(sequence, &[1], out);
        self.definition(2, random, out);
        if !self.deprecate_eof {
            self.end(3, more, out);
        }
        for _ in 0..random.u8(0..3) {
            self.row(4, random, out);
        }
        match random.u8(..) {
            0..=11 => self.error(random, out),
            _ => self.end(5, more, out),
        }
    }

    fn row(&self, sequence: u8, random: &mut Rng, out: &mut Vec<u8>) {
        let row: &[u8] = pick(random, &[b"\x03abc", b"\xFB", b"\x00", b""]);
        packet(sequence, row, out);
    }

    fn definition(&self, sequence: u8, random: &mut Rng, out: &mut Vec<u8>) {
        self.column(b"id", sequence, random, out);
    }

    /// A column of text, or one that holds integers; the number after it.
    fn column(&self, name: &[u8], sequence: u8, random: &mut Rng, out: &mut Vec<u8>) -> u8 {
        let from = out.len();
        let after = write_column(name, 45, self.extended, sequence, out);
        // The type stands before flags, decimals and two bytes that are always 0.
        let at = out.len() - 6;
        if let Some(kind) = out[from..].len().checked_sub(6).and(out.get_mut(at)) {
            *kind = pick(random, &[8, 8, 8, 3, 253]);
        }
        after
    }

    fn end(&self, sequence: u8, status: u8, out: &mut Vec<u8>) {
        let status = self.status | status;
        if self.deprecate_eof {
            packet(sequence, &[0xFE, 0, 0, status, 0, 0, 0], out);
        } else {
            packet(sequence, &[0xFE, 0, 0, status, 0], out);
        }
    }

    fn ok_numbered(&self, sequence: u8, random: &mut Rng, out: &mut Vec<u8>) {
        self.ok(sequence, 0, random, out);
    }

    fn ok(&self, sequence: u8, more: u8, random: &mut Rng, out: &mut Vec<u8>) {
        if self.is_maria && random.u8(..) < 4 {
            packet(sequence, PROGRESS, out);
        }
        let affected = pick(random, &[0, 1, 1, 1, 2, 3, 4]);
        let id = pick(random, &[0, 0, 7, 100, 101, 102, 200]);
        let warnings = pick(random, &[0, 0, 0, 1]);
        let status = self.status | more;
        packet(sequence, &[0, affected, id, status, 0, warnings, 0], out);
    }

    fn error(&self, random: &mut Rng, out: &mut Vec<u8>) {
        let number = pick(random, &[1062_u16, 1146, 1049, 1142, 1054, 1213, 1467]);
        let error = [&[0xFF][..], &number.to_le_bytes(), b"#23000refused"].concat();
        packet(1, &error, out);
    }
}
