//! Long INSERTs get their keys where they lie in the driver's buffer. The server gets what it gets when they are copied.

use keywright_core::KeyBatch;
use keywright_rewrite::KeyForm;
use keywright_session::{Room, Step};

use super::rig::*;

/// Rows of 40 bytes: so many that the text is long.
const ROWS: usize = 2_000;
const PING: [u8; 5] = [1, 0, 0, 0, 14];

fn values(row: usize) -> String {
    format!("{row}, '{}'", "é".repeat(row % 40))
}

/// The rows as a client sends them, or with keys from one on, the first as LAST_INSERT_ID() of the statement.
fn rows(first: Option<u64>) -> String {
    let row = |index: usize| {
        let Some(first) = first else {
            return format!("({})", values(index));
        };
        let key = match index {
            1 => format!("LAST_INSERT_ID({first})+1"),
            _ => (first + u64::try_from(index).unwrap()).to_string(),
        };
        format!("({key},{})", values(index))
    };
    (0..ROWS).map(row).collect::<Vec<_>>().join(", ")
}

fn asked(behind: &str) -> Vec<u8> {
    format!("INSERT INTO t (a, b) VALUES {}{behind}", rows(None)).into_bytes()
}

fn wanted(first: u64, behind: &str) -> String {
    let rows = rows(Some(first));
    format!("INSERT INTO t (`id`,a, b) VALUES {rows}{behind}")
}

fn query(front: &[u8], text: &[u8]) -> Vec<u8> {
    packet(0, &[&[3], front, text].concat())
}

/// A session that knows the server's state, and gives keys from `first` on.
fn begun(caps: u64, first: u64) -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | caps);
    match caps & ATTRIBUTES {
        0 => r.query("INSERT INTO t (a) VALUES (1)"),
        _ => r.say(b"\x03\0\x01INSERT INTO t (a) VALUES (1)"),
    };
    r.answer(&probe("1"));
    r.answer(&ok(1, 100));
    r.output();
    r.next = first;
    r
}

/// The OK packet of such a statement.
fn done(id: u64) -> Vec<u8> {
    let rows = u16::try_from(ROWS).unwrap().to_le_bytes();
    let body = [
        &[0, 0xFC],
        &rows[..],
        &[0xFE],
        &id.to_le_bytes(),
        &[2, 0, 0, 0],
    ];
    packet(1, &body.concat())
}

/// What the server gets of bytes that the client sends.
fn sent(r: &mut Rig, bytes: &[u8]) -> Vec<u8> {
    r.client.extend_from_slice(bytes);
    r.run();
    std::mem::take(&mut r.to_server)
}

#[test]
fn long_inserts_are_rewritten_in_place_and_copied_alike() {
    // The keys of the second are not as long as each other.
    for first in [1_000_000, 999_000, 7_000_000_000_000_000_000] {
        for behind in ["", " ", " ON DUPLICATE KEY UPDATE b = 'é'", " ; ", "\0 "] {
            let bytes = query(&[], &asked(behind));
            let mut alone = begun(0, first);
            let alone_sent = sent(&mut alone, &bytes);
            assert!(alone.client.is_empty());
            assert_eq!(alone.answer(&done(first)), b"");
            assert_eq!(alone.output(), done(first));
            // Another command behind it is not moved.
            let mut followed = begun(0, first);
            let both = [bytes, PING.to_vec()].concat();
            assert!(sent(&mut followed, &both) == alone_sent);
            assert_eq!(followed.client, PING);
            assert_eq!(followed.answer(&done(first)), PING);
            let literal = format!("({},{})", first + 1, values(1));
            let wrapped = format!("(LAST_INSERT_ID({first})+1,{})", values(1));
            let wanted = wanted(first, behind.strip_suffix("\0 ").unwrap_or(behind));
            let wanted = match behind.contains("UPDATE") {
                true => wanted.replace(&wrapped, &literal),
                false => wanted,
            };
            assert!(alone_sent == query(&[], wanted.as_bytes()), "{behind}");
        }
    }
}

#[test]
fn attributes_stay_before_a_text_that_is_rewritten_in_place() {
    let mut r = begun(ATTRIBUTES, 1_000_000);
    let front = b"\x01\x01\0\x01\xfe\0\x04name\x05value";
    let bytes = query(front, &asked(""));
    let wanted = wanted(1_000_000, "");
    assert!(sent(&mut r, &bytes) == query(front, wanted.as_bytes()));
}

#[test]
fn long_inserts_among_others_in_one_text_are_copied() {
    let mut r = begun(MULTI, 1_000_000);
    let text = [asked(""), asked("")].join(&b';');
    let first = wanted(1_000_000, "");
    assert!(sent(&mut r, &query(&[], &text)) == query(&[], first.as_bytes()));
    let next = r.answer(&done(1_000_000));
    let second = wanted(1_000_000 + ROWS as u64, "");
    assert!(next == query(&[], second.as_bytes()));
}

/// A buffer that must not grow.
struct Full(Vec<u8>);

impl Room for Full {
    fn there(&self) -> &[u8] {
        &self.0
    }

    fn stretch(&mut self, bytes: usize) -> &mut [u8] {
        panic!("no memory was taken for {bytes} bytes")
    }
}

/// The text before the rows that move is copied: where that is most of it, no memory was taken for both.
#[test]
fn inserts_that_are_mostly_their_first_rows_are_copied_whole() {
    let row = |bytes: usize| format!("(1, '{}')", "x".repeat(bytes));
    let rows = [vec![row(10_000); 16], vec![row(1); 5]].concat();
    let text = format!("INSERT INTO t (a, b) VALUES {}", rows.join(","));
    let mut session = begun(0, 1_000_000).s;
    let mut bytes = Full(query(&[], text.as_bytes()));
    let step = session.on_client_in_place(&mut bytes);
    assert!(matches!(step, Step::Keys(request) if request.count == 21));
    session.on_keys(Ok(KeyBatch::Numbers {
        first: 1_000_000,
        spacing: 1,
        count: 21,
    }));
    let step = session.on_client_in_place(&mut bytes);
    assert_eq!(step, Step::Consumed(bytes.0.len()));
    assert!(has(session.to_upstream(), "(1000020,1, 'x')"));
}

/// A driver that shows other bytes next, which may not be written to.
#[test]
fn bytes_are_written_to_where_the_driver_says_so_only() {
    // It has shown the first statement in place.
    let mut r = begun(0, 1_000_000);
    let command = query(&[], &asked(""));
    let Step::Keys(request) = r.s.on_client(&command) else {
        panic!("no keys were asked for");
    };
    r.s.on_keys(Ok(KeyBatch::Numbers {
        first: 1_000_000,
        spacing: 1,
        count: request.count,
    }));
    assert_eq!(r.s.on_client(&command), Step::Consumed(command.len()));
    let wanted = query(&[], wanted(1_000_000, "").as_bytes());
    assert!(*r.s.to_upstream() == wanted, "another text");
}
