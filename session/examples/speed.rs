//! How long a session takes over one statement: `cargo run --release -p keywright-session --example speed`.
//!
//! Prints the best of many short rounds, nanoseconds of one thread per statement and its answer, without sockets.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use keywright_core::KeyBatch;
use keywright_rewrite::{Flavour, KeyForm, Server};
use keywright_session::{Limits, Pattern, Rule, Rules, Session, SessionFacts, Step};
use keywright_wire::capability::{DEPRECATE_EOF, PROTOCOL_41};
use keywright_wire::protocol::{COM_QUERY, COM_STMT_EXECUTE, COM_STMT_PREPARE};

/// An OK packet: one row, no id, autocommit.
const OK: &[u8] = &[7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0];
/// Capabilities of a usual client.
const CAPABILITIES: u64 = PROTOCOL_41 | DEPRECATE_EOF;

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap_or(0).to_le_bytes();
    [&len[..3], &[sequence], body].concat()
}

fn command(code: u8, body: &[u8]) -> Vec<u8> {
    packet(0, &[&[code], body].concat())
}

fn session() -> Result<Session, Box<dyn Error>> {
    let rule = Rule {
        repeatable: true,
        is_steady: true,
        is_signed: true,
        ..Rule::new(Pattern::parse("shop.t")?, "id", KeyForm::Integer)
    };
    let facts = SessionFacts {
        server: Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        },
        capabilities: CAPABILITIES,
        collation: 45,
        user: b"app".to_vec(),
        database: Some(b"shop".to_vec()),
        status: 2,
        limits: Limits::default(),
    };
    Ok(Session::new(Arc::new(Rules::new(vec![rule], false)), facts))
}

/// A connection, and the server's part in it.
struct Talk {
    session: Session,
    next: u64,
}

impl Talk {
    /// Sends a command through the session; its answers come from `server`, which is given what went up.
    fn run(&mut self, command: &[u8], server: &mut dyn FnMut(&[u8]) -> Vec<u8>) {
        let mut rest = command;
        let mut up = Vec::new();
        let mut answer: Vec<u8> = Vec::new();
        let mut answered = 0;
        loop {
            let step = match rest.is_empty() {
                false => self.session.on_client(rest),
                true => Step::Blocked,
            };
            up.append(self.session.to_upstream());
            match step {
                Step::Forward(count) => {
                    up.extend_from_slice(rest.get(..count).unwrap_or_default());
                    rest = rest.get(count..).unwrap_or_default();
                }
                Step::Consumed(count) => rest = rest.get(count..).unwrap_or_default(),
                Step::Keys(request) => {
                    let first = self.next;
                    self.next += request.count;
                    self.session.on_keys(Ok(KeyBatch::Numbers {
                        first,
                        spacing: 1,
                        count: request.count,
                    }));
                    continue;
                }
                Step::More { .. }
                | Step::Blocked
                | Step::Wait
                | Step::Authenticate(_)
                | Step::Show(_)
                | Step::Close => {}
            }
            if !up.is_empty() {
                answer = server(&up);
                answered = 0;
                up.clear();
            }
            while let Some(there) = answer.get(answered..).filter(|there| !there.is_empty()) {
                match self.session.on_upstream(there) {
                    Step::Forward(count) | Step::Consumed(count) => answered += count,
                    Step::More { .. }
                    | Step::Blocked
                    | Step::Wait
                    | Step::Keys(_)
                    | Step::Authenticate(_)
                    | Step::Show(_)
                    | Step::Close => return,
                }
            }
            black_box(self.session.to_client()).clear();
            self.session.events().clear();
            if rest.is_empty() {
                return;
            }
        }
    }
}

/// The row that the session asks for: modes, character set, database, increment, insert_id, which server it is.
fn context() -> Vec<u8> {
    let definition = |sequence| {
        packet(
            sequence,
            b"\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0",
        )
    };
    let mut answer = packet(1, &[6]);
    for sequence in 2..8 {
        answer.extend(definition(sequence));
    }
    answer.extend(packet(
        8,
        b"\x13STRICT_TRANS_TABLES\x07utf8mb4\x04shop\x011\x010\x02id",
    ));
    answer.extend(packet(9, &[0xFE, 0, 0, 2, 0, 0, 0]));
    answer
}

fn prepared() -> Vec<u8> {
    let definition = |sequence| {
        packet(
            sequence,
            b"\x03def\0\0\0\x01?\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0",
        )
    };
    let mut answer = packet(1, &[0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]);
    for sequence in 2..5 {
        answer.extend(definition(sequence));
    }
    answer
}

fn measure(name: &str, rounds: usize, mut work: impl FnMut()) {
    let best = (0..200)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..rounds {
                work();
            }
            start.elapsed().as_secs_f64() / rounds as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<32} {:>10.0} ns", best * 1e9);
}

/// As [`measure`], of a command that must get keys: refusals are quick as well.
fn measure_keyed(
    name: &str,
    rounds: usize,
    talk: &mut Talk,
    mut run: impl FnMut(&mut Talk),
) -> Result<(), Box<dyn Error>> {
    let before = talk.next;
    measure(name, rounds, || run(talk));
    if talk.next == before {
        return Err(format!("{name}: no keys were asked for").into());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let note = "a note. ".repeat(15);
    let row = format!("(4711, '{note}')");
    let mut talk = Talk {
        session: session()?,
        next: 7_200_000_000_000_000_000,
    };
    let mut server = |up: &[u8]| match up.get(4..12) {
        Some(b"\x03SELECT ") if up.get(12..16) == Some(b"CAST") => context(),
        Some([COM_STMT_PREPARE, ..]) => prepared(),
        Some(_) | None => OK.to_vec(),
    };
    let one = command(
        COM_QUERY,
        format!("INSERT INTO t (customer, note) VALUES {row}").as_bytes(),
    );
    let rows = vec![row.clone(); 1000].join(", ");
    let thousand = command(
        COM_QUERY,
        format!("INSERT INTO t (customer, note) VALUES {rows}").as_bytes(),
    );
    let other = command(
        COM_QUERY,
        format!("INSERT INTO other (customer, note) VALUES {row}").as_bytes(),
    );
    let select = command(
        COM_QUERY,
        b"SELECT customer, note FROM read_only WHERE id = 4711",
    );
    let prepare = command(
        COM_STMT_PREPARE,
        b"INSERT INTO t (customer, note) VALUES (?, ?)",
    );
    let mut parameters = vec![
        1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0, 253, 0, 0x67, 0x12, 0, 0, 120,
    ];
    parameters.extend_from_slice(note.as_bytes());
    let execute = command(COM_STMT_EXECUTE, &parameters);

    talk.run(&one, &mut server);
    talk.run(&prepare, &mut server);
    measure_keyed("text insert", 1000, &mut talk, |talk| {
        talk.run(&one, &mut server)
    })?;
    measure_keyed("prepared insert", 1000, &mut talk, |talk| {
        talk.run(&execute, &mut server)
    })?;
    measure_keyed("insert of 1000 rows", 10, &mut talk, |talk| {
        talk.run(&thousand, &mut server)
    })?;
    measure("insert into another table", 1000, || {
        talk.run(&other, &mut server)
    });
    measure("point select", 1000, || talk.run(&select, &mut server));
    println!("{} keys", talk.next - 7_200_000_000_000_000_000);
    Ok(())
}
