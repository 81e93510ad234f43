//! An upstream that answers what it hears, mostly as a server would.

use fastrand::Rng;

use crate::client::{packet, pick, without_head};
use crate::drive::Upstream;

const MORE_RESULTS: u8 = 8;
const CURSOR: u8 = 64;

/// Its answers are the same for the same seed and the same commands.
pub(crate) struct Server {
    random: Rng,
    deprecate_eof: bool,
    /// In how many of 256 answers something is wrong.
    wrong: u8,
    heard: Vec<u8>,
    /// The client sends a file.
    reads_file: bool,
    prepared: u32,
    /// Everything that was answered.
    pub(crate) said: Vec<u8>,
}

impl Server {
    pub(crate) fn new(seed: u64, deprecate_eof: bool, wrong: u8) -> Server {
        Server {
            random: Rng::with_seed(seed),
            deprecate_eof,
            wrong,
            heard: Vec::new(),
            reads_file: false,
            prepared: 0,
            said: Vec::new(),
        }
    }

    fn answer(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.reads_file {
            if payload.is_empty() {
                self.reads_file = false;
                self.ok(2, 0, &mut out);
            }
            return out;
        }
        let Some((command, rest)) = payload.split_first() else {
            return out;
        };
        match command {
            0x01 | 0x18 | 0x19 => {}
            0x03 => self.query(rest, &mut out),
            0x04 => {
                self.definition(1, &mut out);
                self.end(2, 0, &mut out);
            }
            0x09 => packet(1, b"Uptime: 1  Threads: 1", &mut out),
            0x16 => self.prepare(rest, &mut out),
            0x17 | 0xFA => match self.random.u8(0..4) {
                0 => self.error(&mut out),
                1 => self.rows(1, 0, &mut out),
                2 if !self.deprecate_eof => self.cursor(&mut out),
                _ => self.ok(1, 0, &mut out),
            },
            0x1C => {
                self.row(1, &mut out);
                self.end(2, 128, &mut out);
            }
            _ => self.ok(1, 0, &mut out),
        }
        out
    }

    fn query(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let text = without_head(text);
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        if has(b"@@session.sql_mode") {
            self.probe(out);
        } else if has(b"LOCAL") {
            packet(1, b"\xFBx", out);
            self.reads_file = true;
        } else if has(b"; SELECT") {
            self.rows(1, MORE_RESULTS, out);
            self.rows(1, 0, out);
        } else if has(b"RETURNING") || text.starts_with(b"SELECT") {
            self.rows(1, 0, out);
        } else if self.random.u8(..) < 32 {
            self.error(out);
        } else {
            self.ok(1, 0, out);
        }
    }

    fn probe(&mut self, out: &mut Vec<u8>) {
        packet(1, &[6], out);
        for sequence in 2..8 {
            self.definition(sequence, out);
        }
        if !self.deprecate_eof {
            self.end(8, 0, out);
        }
        let mode = pick(
            &mut self.random,
            &["", "ANSI_QUOTES", "NO_AUTO_VALUE_ON_ZERO"],
        );
        let charset = pick(&mut self.random, &["utf8mb4", "utf8mb4", "gbk"]);
        let increment = pick(
            &mut self.random,
            &[
                "1", "1", "1", "1", "1", "3", "3", "3", "65535", "65535", "0", "x",
            ],
        );
        let insert_id = pick(&mut self.random, &["0", "0", "0", "0", "0", "0", "0", "5"]);
        let mut row = Vec::new();
        for text in [mode, charset, "d", increment, insert_id, "uuid=here"] {
            row.extend(u8::try_from(text.len()));
            row.extend(text.as_bytes());
        }
        packet(8, &row, out);
        self.end(9, 0, out);
    }

    fn prepare(&mut self, text: &[u8], out: &mut Vec<u8>) {
        self.prepared = self.prepared % 4 + 1;
        let marks = text.iter().filter(|byte| **byte == b'?').count();
        let parameters = u8::try_from(marks).unwrap_or(0);
        let columns = self.random.u8(0..3);
        let mut first = vec![0];
        first.extend(self.prepared.to_le_bytes());
        first.extend([columns, 0, parameters, 0, 0, 0, 0]);
        packet(1, &first, out);
        for block in [parameters, columns] {
            for _ in 0..block {
                self.definition(2, out);
            }
            if block > 0 && !self.deprecate_eof {
                self.end(3, 0, out);
            }
        }
    }

    fn cursor(&mut self, out: &mut Vec<u8>) {
        packet(1, &[1], out);
        self.definition(2, out);
        self.end(3, CURSOR, out);
    }

    fn rows(&mut self, sequence: u8, more: u8, out: &mut Vec<u8>) {
        packet(sequence, &[1], out);
        self.definition(2, out);
        if !self.deprecate_eof {
            self.end(3, 0, out);
        }
        for _ in 0..self.random.u8(0..3) {
            self.row(4, out);
        }
        if self.random.u8(..) < 16 {
            self.error(out);
        } else {
            self.end(5, more, out);
        }
    }

    fn row(&mut self, sequence: u8, out: &mut Vec<u8>) {
        let row: &[u8] = pick(&mut self.random, &[b"\x03abc", b"\xFB", b"\x00", b""]);
        packet(sequence, row, out);
    }

    fn definition(&mut self, sequence: u8, out: &mut Vec<u8>) {
        let mut definition = Vec::new();
        for text in ["def", "d", "t", "t", "id", "id"] {
            definition.extend(u8::try_from(text.len()));
            definition.extend(text.as_bytes());
        }
        definition.extend([12, 63, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        packet(sequence, &definition, out);
    }

    fn end(&mut self, sequence: u8, status: u8, out: &mut Vec<u8>) {
        if self.deprecate_eof {
            packet(sequence, &[0xFE, 0, 0, 2 | status, 0, 0, 0], out);
        } else {
            packet(sequence, &[0xFE, 0, 0, 2 | status, 0], out);
        }
    }

    fn ok(&mut self, sequence: u8, more: u8, out: &mut Vec<u8>) {
        let (affected, id) = (self.random.u8(0..4), self.random.u8(0..200));
        let status = 2 | more | self.random.u8(0..2);
        packet(sequence, &[0, affected, id, status, 0, 0, 0], out);
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        let number = pick(&mut self.random, &[1062_u16, 1146, 1049, 1142]);
        let mut payload = vec![0xFF];
        payload.extend(number.to_le_bytes());
        payload.extend(b"#23000refused");
        packet(1, &payload, out);
    }
}

impl Upstream for Server {
    fn hear(&mut self, bytes: &[u8], says: &mut Vec<u8>) {
        self.heard.extend(bytes);
        loop {
            let [a, b, c, _, rest @ ..] = self.heard.as_slice() else {
                return;
            };
            let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            let Some(payload) = rest.get(..len).map(<[u8]>::to_vec) else {
                return;
            };
            self.heard.drain(..4 + len);
            let mut answer = self.answer(&payload);
            if self.random.u8(..) < self.wrong {
                super::spoil(&mut self.random, &mut answer);
            }
            self.said.extend(&answer);
            says.extend(answer);
        }
    }
}
