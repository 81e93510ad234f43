//! A session between two peers of whom anything may come: drives it as the proxy does, and asserts at every step what must
//! hold whatever they send. The fuzz target uses it too.

use std::fmt;
use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_rewrite::{Flavour, KeyForm, Server};
use keywright_session::{
    KeyFailure, KeyRequest, Limits, Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, Rule,
    Rules, Session, SessionFacts, SeveralRows, StatementOutcome, Step,
};

/// Longest statement that is gathered here: short, so that longer ones come often.
pub(crate) const REWRITE_BYTES_MAX: usize = 6_000;
/// Prepared statements on rules' tables.
const STATEMENTS_MAX: usize = 3;
/// A packet and the byte behind it: more is never asked for.
const MORE_BYTES_MAX: usize = (1 << 24) + 4;
/// Steps in a row that take no byte of either side: a question for the server, the columns, LAST_INSERT_ID(), keys.
const IDLE_STEPS_MAX: usize = 8;
/// What the session says itself, per byte that came: a key in place of `0,` with the condition around it.
const OWN_PER_BYTE_MAX: usize = 64;
/// And per step: the questions it asks.
const OWN_PER_STEP_MAX: usize = 512;

/// Who answers the session.
pub(crate) trait Upstream {
    /// Takes what the session sends; appends to `says` what is answered.
    fn hear(&mut self, bytes: &[u8], says: &mut Vec<u8>);
}

/// An upstream that has said everything before it is asked.
pub(crate) struct Recorded;

impl Upstream for Recorded {
    fn hear(&mut self, _: &[u8], _: &mut Vec<u8>) {}
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) to_upstream: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
    pub(crate) requests: Vec<KeyRequest>,
    pub(crate) rewritten: u64,
    pub(crate) refused: Vec<&'static str>,
    pub(crate) closed: bool,
}

impl fmt::Display for Heard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "upstream: {}", self.to_upstream.escape_ascii())?;
        writeln!(out, "client: {}", self.to_client.escape_ascii())?;
        write!(out, "{:?} closed {}", self.requests, self.closed)
    }
}

/// One side's bytes: those that were shown to the session, and those that are still to come.
struct Side {
    bytes: Vec<u8>,
    start: usize,
    shown: usize,
}

impl Side {
    fn new(bytes: Vec<u8>) -> Side {
        Side {
            bytes,
            start: 0,
            shown: 0,
        }
    }

    fn there(&self) -> &[u8] {
        &self.bytes[self.start..self.shown]
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        assert!(
            count <= self.shown - self.start,
            "{count} bytes taken of {}",
            self.shown - self.start
        );
        let taken = self.bytes[self.start..self.start + count].to_vec();
        self.start += count;
        taken
    }

    /// Shows the next chunk; false when there is none.
    fn show(&mut self, chunk: usize) -> bool {
        let before = self.shown;
        self.shown = before.saturating_add(chunk.max(1)).min(self.bytes.len());
        self.shown > before
    }
}

/// Rules and capabilities out of a byte, so that a fuzzer finds them all.
fn setup(choice: u8) -> (KeyForm, Rules, SessionFacts) {
    let bit = |bit: u8| choice & (1 << bit) != 0;
    let form = match choice >> 6 {
        0 => KeyForm::Text,
        1 => KeyForm::Bytes,
        _ => KeyForm::Integer,
    };
    let rule = |table: &str, refuse: bool| Rule {
        table: Pattern::parse(table).expect("a pattern"),
        column: "id".to_owned(),
        form,
        on_explicit: if refuse {
            OnExplicit::Refuse
        } else {
            OnExplicit::Keep
        },
        on_unsupported: if bit(3) {
            OnUnsupported::Pass
        } else {
            OnUnsupported::Refuse
        },
        on_ambiguous_id: if refuse {
            OnAmbiguousId::Refuse
        } else {
            OnAmbiguousId::First
        },
        several_rows: SeveralRows::Spaced,
        mode: Mode::Rewrite,
        bits_max: 53,
        keys_max: u64::MAX,
        watched: bit(4),
        repeatable: bit(5),
        is_steady: bit(5),
        is_signed: bit(6),
        is_auto_increment: bit(5),
    };
    let observed = Rule {
        mode: Mode::Observe,
        ..rule("*.seen", false)
    };
    let rules = vec![rule("*.t", false), rule("d.strict", true), observed];
    let server = if bit(2) {
        Server {
            flavour: Flavour::MySql,
            version: 90_704,
        }
    } else {
        Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        }
    };
    let facts = SessionFacts {
        server,
        capabilities: u64::from(!bit(0)) << 24
            | u64::from(!bit(1)) << 16
            | u64::from(has_attributes(choice)) << 27
            | u64::from(has_bulk(choice)) << 34,
        collation: 45,
        user: Vec::new(),
        database: (!bit(5)).then(|| b"d".to_vec()),
        status: 2,
        limits: Limits {
            rewrite_bytes_max: REWRITE_BYTES_MAX,
            select_rows_max: 200,
            statements_max: STATEMENTS_MAX,
        },
    };
    (form, Rules::new(rules, bit(2)), facts)
}

/// Whether answers end without EOF packets with that choice.
pub(crate) fn deprecates_eof(choice: u8) -> bool {
    choice & 1 == 0
}

/// Whether statements come with query attributes with that choice.
pub(crate) fn has_attributes(choice: u8) -> bool {
    choice >> 6 == 3
}

/// Whether statements may be executed with many rows of parameters with that choice.
fn has_bulk(choice: u8) -> bool {
    choice >> 6 != 3
}

/// Every seventh request finds no keys.
fn keys(form: KeyForm, request: KeyRequest, before: u64) -> Result<KeyBatch, KeyFailure> {
    if before % 7 == 6 || request.count > 100_000 {
        return Err(KeyFailure {
            cause: Cause::StoreUnavailable,
            message: "the store is away".to_owned(),
        });
    }
    let first = 1_000 * (before + 1);
    Ok(match form {
        KeyForm::Integer => KeyBatch::Numbers {
            first,
            spacing: 1,
            count: request.count,
        },
        KeyForm::Text => KeyBatch::Texts((0..request.count).map(|key| format!("k{key}")).collect()),
        KeyForm::Bytes => KeyBatch::Bytes((0..request.count).map(|_| [7; 16]).collect()),
    })
}

/// Lets both sides come in chunks, and asks the session until nobody has anything to say. The upstream is listened to when
/// the client has to wait, or has said everything: so what comes of it depends on what was said only.
pub(crate) fn drive(
    choice: u8,
    client: &[u8],
    upstream: &[u8],
    server: &mut dyn Upstream,
    mut chunk: impl FnMut() -> usize,
) -> Heard {
    let (form, rules, facts) = setup(choice);
    let mut session = Session::new(Arc::new(rules), facts.clone());
    let mut sides = [Side::new(client.to_vec()), Side::new(upstream.to_vec())];
    let mut heard = Heard::default();
    let (mut idle, mut own, mut steps) = (0, 0, 0);
    'said: loop {
        for side in [0, 1] {
            let there = sides[side].there();
            let step = match side {
                0 => session.on_client(there),
                _ => session.on_upstream(there),
            };
            let len = there.len();
            steps += 1;
            let said = [
                std::mem::take(session.to_upstream()),
                std::mem::take(session.to_client()),
            ];
            own += said[0].len() + said[1].len();
            heard.to_client.extend(&said[1]);
            let mut output = said[0].clone();
            idle += 1;
            let mut moved = true;
            match step {
                Step::Forward(count) => {
                    assert!(count > 0, "nothing is forwarded for ever");
                    idle = 0;
                    let taken = sides[side].take(count);
                    match side {
                        0 => output.extend(taken),
                        _ => heard.to_client.extend(taken),
                    }
                }
                Step::Consumed(count) => {
                    if count > 0 {
                        idle = 0;
                    }
                    sides[side].take(count);
                }
                Step::More { at_least } => {
                    assert!(
                        at_least > len && at_least <= MORE_BYTES_MAX,
                        "{at_least} bytes wanted when {len} were there"
                    );
                    moved = sides[side].show(chunk());
                    idle = if moved { 0 } else { idle };
                }
                Step::Blocked => moved = false,
                Step::Wait => panic!("there is one version of the rules"),
                Step::Keys(request) => {
                    assert!(request.count > 0, "no keys are asked for");
                    let before = heard.requests.len() as u64;
                    heard.requests.push(request);
                    session.on_keys(keys(form, request, before));
                }
                Step::Authenticate(count) => {
                    output.extend(sides[side].take(count));
                    session.reset(facts.clone());
                }
                Step::Show(_) => panic!("nobody is allowed to see it"),
                Step::Close => {
                    heard.closed = true;
                    break 'said;
                }
            }
            if !output.is_empty() {
                server.hear(&output, &mut sides[1].bytes);
                heard.to_upstream.extend(output);
            }
            let events = session.events();
            for event in events.drain(..) {
                match event.outcome {
                    StatementOutcome::Rewritten => heard.rewritten += 1,
                    StatementOutcome::Refused(construct) => heard.refused.push(construct),
                    StatementOutcome::Observed
                    | StatementOutcome::Native(_)
                    | StatementOutcome::Passed(_) => {}
                }
            }
            if moved {
                assert!(idle <= IDLE_STEPS_MAX, "steps without end");
                continue 'said;
            }
        }
        break;
    }
    let came = sides[0].shown + sides[1].shown;
    assert!(
        own <= OWN_PER_BYTE_MAX * came + OWN_PER_STEP_MAX * steps,
        "{own} bytes of the session's own after {came} bytes"
    );
    heard
}
