//! What a client and its proxy do in a conversation: one act after another, each of which stands for itself, so that others can be
//! left out.

use std::fmt;

use fastrand::Rng;
use keywright_wire::capability::QUERY_ATTRIBUTES;
use keywright_wire::protocol::{
    COM_CHANGE_USER, COM_INIT_DB, COM_QUERY, COM_RESET_CONNECTION, COM_SET_OPTION, COM_STMT_CLOSE,
    COM_STMT_FETCH, COM_STMT_PREPARE, COM_STMT_RESET, COM_STMT_SEND_LONG_DATA,
};

use crate::circumstances::{Circumstances, Version};
use crate::scenarios::scenario;
use crate::statements;
use crate::{pick, spoil};

/// Parameters that are many.
const MANY: usize = 8;
/// How much of a packet is printed, bytes.
const SHOWN_BYTES_MAX: usize = 1_000;

/// Bytes, readable.
#[derive(Clone)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&shown(&self.0))
    }
}

/// The beginning of bytes, readable.
pub(crate) fn shown(bytes: &[u8]) -> String {
    match bytes.split_at_checked(SHOWN_BYTES_MAX) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} … and {} bytes", first.escape_ascii(), rest.len())
        }
        Some(_) | None => bytes.escape_ascii().to_string(),
    }
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    pub(crate) what: What,
    /// The next one happens before anybody has answered.
    pub(crate) is_pipelined: bool,
    /// Rules that could not be taken before are tried again.
    pub(crate) hears: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A command, in whatever packets.
    Command(Bytes),
    /// COM_STMT_PREPARE.
    Prepare(String),
    /// A command that names one of the statements that were prepared last.
    OnStatement(usize, OnStatement),
    /// Packets of the client's that are no command, or of the server's that nobody has asked for.
    Bytes {
        of_client: bool,
        bytes: Bytes,
    },
    /// Other rules are in force. Whether the connection hears of it.
    Publish(Version, bool),
    /// It has waited too long.
    Waited,
    /// Whether its transaction is still open.
    AskWhetherOpen,
    /// There is no memory for what is gathered.
    MemoryFull,
    /// Another connection has changed tables, or a schema refresh has ended.
    Defined,
    Looked(bool),
}

#[derive(Debug, Clone)]
pub(crate) enum OnStatement {
    /// Out of this seed; with types, without, or as it comes.
    Execute(u64, Option<bool>),
    Bulk(u64),
    LongData(u16),
    Close,
    Reset,
    Fetch,
}

/// Some acts, often with a scenario among them.
pub(crate) fn acts(circumstances: &Circumstances, random: &mut Rng) -> Vec<Act> {
    let count = random.usize(2..12);
    let mut all: Vec<What> = (0..count).map(|_| act(circumstances, random)).collect();
    if random.bool() {
        let mut at = random.usize(..count);
        for what in scenario(circumstances, random) {
            all.insert(at, what);
            at += 1 + usize::from(random.u8(..) < 30 && at + 1 < all.len());
        }
    }
    let acts = all.into_iter().map(|what| Act {
        what,
        is_pipelined: random.u8(..) < 20,
        hears: random.u8(..) < 190,
    });
    acts.collect()
}

fn act(circumstances: &Circumstances, random: &mut Rng) -> What {
    let is_switched = circumstances.begins_with.is_some();
    match random.u8(0..100) {
        0..=44 => any_query(circumstances, random),
        45..=57 => What::Prepare(statements::prepared(random)),
        58..=79 => {
            let of = random.usize(0..3) * usize::from(random.bool());
            What::OnStatement(of, on_statement(circumstances, random))
        }
        80..=87 if is_switched => What::Publish(Version::any(random), random.u8(..) < 230),
        88..=90 if is_switched => What::Waited,
        91 if is_switched => What::AskWhetherOpen,
        92 => What::Defined,
        93 => What::Looked(random.bool()),
        94 if random.bool() => What::MemoryFull,
        95 => bytes(random),
        96..=98 => What::Command(Bytes(command(random))),
        _ => any_query(circumstances, random),
    }
}

fn any_query(circumstances: &Circumstances, random: &mut Rng) -> What {
    let text = match random.u8(..) {
        0 => {
            let bytes = pick(random, &[3_000, 12_000, 40_000, 250_000]);
            statements::long(bytes, random)
        }
        1 => statements::long(40_000, random),
        _ => statements::text(random),
    };
    let sequence = if random.u8(..) < 4 { 5 } else { 0 };
    query(sequence, &text, circumstances, random)
}

/// COM_QUERY, with attributes where they are agreed on.
pub(crate) fn query(
    sequence: u8,
    text: &str,
    circumstances: &Circumstances,
    random: &mut Rng,
) -> What {
    let mut payload = vec![COM_QUERY];
    if circumstances.has(QUERY_ATTRIBUTES) {
        payload.extend(pick(random, ATTRIBUTES));
    }
    // A blank of Latin-1 is no UTF-8.
    for part in text.split_inclusive('\u{a0}') {
        match part.strip_suffix('\u{a0}') {
            Some(before) => payload.extend([before.as_bytes(), b"\xA0"].concat()),
            None => payload.extend(part.as_bytes()),
        }
    }
    let mut command = Vec::new();
    packet(sequence, &payload, &mut command);
    if random.u8(..) < 4 {
        spoil(random, &mut command);
    }
    What::Command(Bytes(command))
}

/// What stands before texts where query attributes are agreed on.
const ATTRIBUTES: &[&[u8]] = &[
    b"\x00\x01",
    b"\x00\x01",
    b"\x00\x01",
    b"\x01\x01\x00\x01\xfe\x00\x01a\x05value",
    b"\x02\x01\x01\x01\x03\x00\x00\x08\x80\x01n\x07\x00\x00\x00\x00\x00\x00\x00",
    b"\x01\x01\x00\x01\x09\x00\x00\x00\x00\x00",
];

/// The same without what stands before it.
pub(crate) fn without_attributes(text: &[u8]) -> &[u8] {
    let known = ATTRIBUTES.iter();
    known.fold(text, |text, known| {
        text.strip_prefix(*known).unwrap_or(text)
    })
}

fn on_statement(circumstances: &Circumstances, random: &mut Rng) -> OnStatement {
    match random.u8(0..20) {
        0 => OnStatement::Close,
        1 => OnStatement::Reset,
        2 => OnStatement::Fetch,
        3 | 4 => OnStatement::LongData(random.u16(0..3)),
        5..=9 if circumstances.is_maria() => OnStatement::Bulk(random.u64(..)),
        _ => OnStatement::Execute(random.u64(..), None),
    }
}

/// A command without a statement.
fn command(random: &mut Rng) -> Vec<u8> {
    let mut payload = Vec::new();
    match random.u8(0..12) {
        0 | 1 => {
            payload.push(COM_INIT_DB);
            payload.extend(pick(random, &["d", "other", "nosuch"]).as_bytes());
        }
        2 | 3 => payload.extend([COM_SET_OPTION, random.u8(0..2), 0]),
        4 | 5 => payload.push(COM_RESET_CONNECTION),
        6 | 7 => {
            payload.push(COM_CHANGE_USER);
            payload.extend(b"root\0\0d\0\x2d\0");
        }
        8 => payload.extend(b"\x04t\0%"),
        // QUIT, STATISTICS, PROCESS_INFO, DEBUG, PING, BINLOG_DUMP, MULTI, BULK_EXECUTE, EXECUTE, nothing known.
        _ => payload.push(pick(
            random,
            &[
                0x01, 0x09, 0x09, 0x0A, 0x0D, 0x0E, 0x0E, 0x12, 0xFE, 0xFA, 0x17, 0x77,
            ],
        )),
    }
    let mut out = Vec::new();
    packet(pick(random, &[0, 0, 0, 0, 5]), &payload, &mut out);
    out
}

fn bytes(random: &mut Rng) -> What {
    let of_client = random.bool();
    let mut bytes = Vec::new();
    match random.u8(0..4) {
        0 => packet(random.u8(0..3), b"", &mut bytes),
        1 => packet(random.u8(0..3), b"\x00\x01\x05\x02\x00\x00\x00", &mut bytes),
        2 => packet(0, b"\xff\x17\x10#70100Killed", &mut bytes),
        _ => {
            let count = random.usize(1..20);
            bytes.extend((0..count).map(|_| random.u8(..)));
            // Short packets, or nothing but their lengths is ever read.
            for at in [1, 2] {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = 0;
                }
            }
        }
    }
    What::Bytes {
        of_client,
        bytes: Bytes(bytes),
    }
}

/// A packet.
pub(crate) fn packet(sequence: u8, payload: &[u8], out: &mut Vec<u8>) {
    let len = u32::try_from(payload.len()).unwrap_or(0).to_le_bytes();
    out.extend([len[0], len[1], len[2], sequence]);
    out.extend(payload);
}

/// COM_STMT_PREPARE.
pub(crate) fn prepare(text: &str) -> Vec<u8> {
    let mut payload = vec![COM_STMT_PREPARE];
    payload.extend(text.bytes());
    let mut out = Vec::new();
    packet(0, &payload, &mut out);
    out
}

/// A file of the client's, out of a seed.
pub(crate) fn file(sequence: u8, seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let mut out = Vec::new();
    let mut sequence = sequence;
    for _ in 0..random.usize(0..4) {
        let lines = pick(&mut random, &[1, 1, 3, 50, 300]);
        packet(sequence, b"1\tline\n".repeat(lines).as_slice(), &mut out);
        sequence = sequence.wrapping_add(1);
    }
    packet(sequence, b"", &mut out);
    out
}

impl OnStatement {
    /// The command for a statement with so many parameters.
    pub(crate) fn packet(&self, id: u32, parameters: usize, has_attributes: bool) -> Vec<u8> {
        let mut payload = Vec::new();
        let simple = |command: u8, rest: &[u8]| {
            let id = id.to_le_bytes();
            [&[command], id.as_slice(), rest].concat()
        };
        match self {
            Self::Execute(seed, is_typed) => {
                let mut random = Rng::with_seed(*seed);
                let count = miscounted(parameters, &mut random);
                let ways = (has_attributes, *is_typed);
                execute(ways, count, id, &mut random, &mut payload);
            }
            Self::Bulk(seed) => {
                let mut random = Rng::with_seed(*seed);
                let count = miscounted(parameters, &mut random);
                bulk(count, id, &mut random, &mut payload);
            }
            Self::LongData(index) => {
                payload = simple(COM_STMT_SEND_LONG_DATA, &index.to_le_bytes());
                payload.extend(b"sent as long data");
            }
            Self::Close => payload = simple(COM_STMT_CLOSE, &[]),
            Self::Reset => payload = simple(COM_STMT_RESET, &[]),
            Self::Fetch => payload = simple(COM_STMT_FETCH, &[5, 0, 0, 0]),
        }
        let mut out = Vec::new();
        packet(0, &payload, &mut out);
        out
    }
}

/// The number of parameters, now and then another.
fn miscounted(parameters: usize, random: &mut Rng) -> usize {
    match random.u8(..) {
        0..=7 => random.usize(0..4),
        _ => parameters,
    }
}

fn execute(
    (has_attributes, is_typed): (bool, Option<bool>),
    count: usize,
    id: u32,
    random: &mut Rng,
    payload: &mut Vec<u8>,
) {
    payload.push(0x17);
    payload.extend(id.to_le_bytes());
    let is_counted = has_attributes && random.u8(..) < 100;
    let cursor = u8::from(random.u8(..) < 24);
    payload.extend([u8::from(is_counted) << 3 | cursor, 1, 0, 0, 0]);
    // One attribute behind the parameters.
    let all = count + usize::from(is_counted && random.bool());
    if is_counted || (has_attributes && count > 0) {
        payload.extend(u8::try_from(all));
    }
    if all == 0 {
        return;
    }
    let mut nulls = vec![0; all.div_ceil(8)];
    // Of many values few ask for a key.
    let is_many = all > MANY;
    let (nulls_of_256, zeros_of_256) = if is_many { (10, 10) } else { (60, 80) };
    let is_null: Vec<bool> = (0..all).map(|_| random.u8(..) < nulls_of_256).collect();
    for (at, _) in is_null.iter().enumerate().filter(|(_, is)| **is) {
        nulls[at / 8] |= 1 << (at % 8);
    }
    payload.extend(nulls);
    let kinds: &[u8] = match is_many {
        true => &[8],
        false => &[1, 3, 8, 8, 8, 253, 253, 252, 4, 5, 6, 10, 246],
    };
    let kinds: Vec<u8> = (0..all).map(|_| pick(random, kinds)).collect();
    let bound = is_typed.unwrap_or(random.u8(..) < 210);
    payload.push(u8::from(bound));
    if bound {
        for kind in &kinds {
            payload.extend([*kind, 0]);
            if has_attributes {
                payload.extend(pick(random, &[b"\x00".as_slice(), b"\x01n"]));
            }
        }
    }
    for (kind, is_null) in kinds.iter().zip(is_null) {
        if is_null {
            continue;
        }
        let is_zero = random.u8(..) < zeros_of_256;
        payload.extend(match (kind, is_zero) {
            (6, _) => &[][..],
            (1, true) => &[0],
            (1, false) => &[9],
            (3 | 4, true) => &[0, 0, 0, 0],
            (3 | 4, false) => &[7, 0, 0, 0],
            (5 | 8, true) => &[0; 8],
            (5 | 8, false) => &[5, 0, 0, 0, 0, 0, 0, 0],
            (10, _) => &[4, 1, 2, 3, 4],
            (_, true) => b"\x010",
            (_, false) => b"\x0212",
        });
    }
}

/// Rows of parameters for one execution.
fn bulk(count: usize, id: u32, random: &mut Rng, payload: &mut Vec<u8>) {
    payload.push(0xFA);
    payload.extend(id.to_le_bytes());
    let flags = pick(random, &[128, 128, 128, 128, 192, 0_u16]);
    payload.extend(flags.to_le_bytes());
    let kinds: Vec<u8> = (0..count)
        .map(|_| pick(random, &[253, 253, 3, 8]))
        .collect();
    if flags & 128 != 0 {
        payload.extend(kinds.iter().flat_map(|kind| [*kind, 0]));
    }
    for _ in 0..random.usize(0..4) {
        for kind in &kinds {
            // NULL, DEFAULT, and a value.
            let value: &[u8] = match (random.u8(0..8), kind) {
                (0, _) => b"\x01",
                (1, _) => b"\x02",
                (2, 3) => b"\x00\x00\x00\x00\x00",
                (2, 8) => b"\x00\x00\x00\x00\x00\x00\x00\x00\x00",
                (_, 3) => b"\x00\x05\x00\x00\x00",
                (_, 8) => b"\x00\x05\x00\x00\x00\x00\x00\x00\x00",
                (2, _) => b"\x00\x010",
                (3, _) => b"\x03",
                (_, _) => b"\x00\x02ab",
            };
            payload.extend(value);
        }
    }
}
