//! Every kind of statement that gets keys, step by step: what one step too few would let a client or the server see.

use keywright_core::KeyBatch;
use keywright_rewrite::KeyForm;
use keywright_session::{KeyColumnState, Mode, RulesUpdate};

use super::rig::*;
use super::switched::Program;

/// A kind of statement.
struct Kind {
    name: &'static str,
    /// What is prepared before as statement 7, with so many parameters on the server.
    prepared: Option<(&'static str, u16)>,
    /// What is said before, and answered with OK.
    before: Option<&'static str>,
    command: Vec<u8>,
    answer: Vec<u8>,
}

impl Kind {
    fn text(name: &'static str, text: &str) -> Self {
        Self {
            name,
            prepared: None,
            before: None,
            command: [b"\x03", text.as_bytes()].concat(),
            answer: ok(1, 100),
        }
    }

    fn executed(name: &'static str, prepared: (&'static str, u16), command: Vec<u8>) -> Self {
        Self {
            prepared: Some(prepared),
            command,
            ..Self::text(name, "")
        }
    }

    /// Says what comes before it, and answers what is asked.
    fn prepare(&self, r: &mut Rig) {
        if let Some((text, parameters)) = self.prepared {
            let command = [&[COM_STMT_PREPARE], text.as_bytes()].concat();
            said(r, &command);
            r.answer(&prepared(7, parameters));
        }
        if let Some(text) = self.before {
            said(r, &[b"\x03", text.as_bytes()].concat());
            r.answer(&ok(0, 0));
        }
        r.output();
    }

    /// The server answers, as often as it takes for the client to hear of it.
    fn finish(&self, r: &mut Rig) -> Vec<u8> {
        for _ in 0..4 {
            r.answer(&self.answer);
            let told = r.output();
            if !told.is_empty() {
                return told;
            }
        }
        panic!("{}: the client hears nothing", self.name);
    }
}

/// Says a command, and answers what is asked before it goes out, another text of its statement among it. What goes out at last.
fn said(r: &mut Rig, command: &[u8]) -> Vec<u8> {
    let mut sent = r.say(command);
    loop {
        sent = r.tell(sent, &["id", "a"]);
        let is_other_text = sent.get(4) == Some(&COM_STMT_PREPARE);
        if !is_other_text || command.first() == Some(&COM_STMT_PREPARE) {
            return sent;
        }
        sent = r.answer(&prepared(9, 2));
    }
}

/// A session that knows its server's state, before which this was said.
fn begun(kind: &Kind) -> Program {
    let mut program = Program::with(Mode::Rewrite, DEPRECATE_EOF | BULK);
    kind.prepare(&mut program.r);
    program
}

const NEXT: &str = "SELECT NEXT VALUE FOR t";

fn kinds() -> Vec<Kind> {
    let number = [0, 1, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0];
    let numbers = [
        &[0, 1, 8, 0, 8, 0][..],
        &5_u64.to_le_bytes(),
        &6_u64.to_le_bytes(),
    ];
    vec![
        Kind::text("rows", "INSERT INTO t (a) VALUES (1)"),
        Kind::text("a query", "INSERT INTO t (a) SELECT a FROM u"),
        Kind::text("a file", "LOAD DATA INFILE 'f' INTO TABLE t (a)"),
        Kind {
            answer: rows(&["100"]),
            ..Kind::text("keys alone", NEXT)
        },
        Kind {
            before: Some("PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'"),
            ..Kind::text("a text", "EXECUTE s")
        },
        Kind::executed(
            "rows, prepared",
            ("INSERT INTO t (a) VALUES (?)", 2),
            execute(7, &number),
        ),
        Kind::executed(
            "rows of parameters",
            ("INSERT INTO t (a) VALUES (?)", 2),
            [
                &[COM_STMT_BULK_EXECUTE, 7, 0, 0, 0, 128, 0][..],
                b"\xfd\x00\x00\x01x",
            ]
            .concat(),
        ),
        Kind::executed(
            "a query, prepared",
            ("INSERT INTO t (a, b) SELECT ?, a FROM u WHERE a > ?", 5),
            execute(7, &numbers.concat()),
        ),
        Kind {
            answer: rows(&["100"]),
            ..Kind::executed("keys alone, prepared", (NEXT, 1), execute(7, &[]))
        },
    ]
}

fn numbers(count: u64) -> KeyBatch {
    KeyBatch::Numbers {
        first: 100,
        spacing: 1,
        count,
    }
}

#[test]
fn one_that_gets_no_keys_is_refused_and_the_next_command_goes_out() {
    for kind in kinds() {
        for is_pipelined in [false, true] {
            let mut r = begun(&kind).r;
            r.fail_keys = true;
            let next = b"\x03SELECT 1";
            let mut sent = match is_pipelined {
                true => {
                    r.client.extend(packet(0, &kind.command));
                    said(&mut r, next)
                }
                false => said(&mut r, &kind.command),
            };
            assert!(has(&r.output(), "down"), "{}", kind.name);
            if !is_pipelined {
                assert!(sent.is_empty(), "{}: {sent:?}", kind.name);
                sent = r.say(next);
            }
            assert_eq!(sent, packet(0, next), "{}", kind.name);
        }
    }
}

/// The memory may be gone when its keys have come.
#[test]
fn one_that_there_is_no_memory_for_any_more_gets_no_keys() {
    for kind in kinds() {
        let mut r = begun(&kind).r;
        r.holds_keys = true;
        let sent = said(&mut r, &kind.command);
        assert!(sent.is_empty(), "{}: {sent:?}", kind.name);
        r.s.memory_full();
        r.s.on_keys(Ok(numbers(64)));
        r.run();
        let sent = std::mem::take(&mut r.to_server);
        // Where no rows can go in it is passed on as it is.
        match kind.command == [b"\x03", NEXT.as_bytes()].concat() {
            true => assert!(has(&sent, NEXT), "{sent:?}"),
            false => {
                assert!(sent.is_empty(), "{}: {sent:?}", kind.name);
                assert!(has(&r.output(), "memory_bytes_max"), "{}", kind.name);
                assert!(r.closed, "{}", kind.name);
            }
        }
    }
}

#[test]
fn other_rules_wait_for_its_answer_and_it_is_under_way_until_then() {
    for kind in kinds() {
        let mut program = begun(&kind);
        let mut sent = said(&mut program.r, &kind.command);
        // A text is prepared with its keys, and then executed.
        loop {
            assert!(!sent.is_empty(), "{}", kind.name);
            assert_eq!(program.traffic.under_way("t"), 1, "{}", kind.name);
            let update = program.publish(Mode::Rewrite, false);
            assert_eq!(update, RulesUpdate::AfterCommand, "{}", kind.name);
            if program.r.client.is_empty() || !has(&sent, "PREPARE") {
                break;
            }
            sent = program.r.answer(&ok(0, 0));
        }
        assert!(!kind.finish(&mut program.r).is_empty());
        assert_eq!(program.traffic.under_way("t"), 0, "{}", kind.name);
    }
}

/// What is known of a table that had no such column is what the server said before this statement, not before another.
#[test]
fn the_next_statement_asks_anew_about_its_table() {
    for kind in kinds() {
        let mut r = rig_of_table(KeyColumnState::Missing);
        kind.prepare(&mut r);
        let sent = said(&mut r, &kind.command);
        assert!(!sent.is_empty(), "{}", kind.name);
        kind.finish(&mut r);
        asks(&mut r, kind.name);
        if let Some((text, parameters)) = kind.prepared {
            let command = [&[COM_STMT_PREPARE], text.as_bytes()].concat();
            said(&mut r, &command);
            r.answer(&prepared(8, parameters));
            asks(&mut r, text);
        }
    }
}

/// Whether the next INSERT asks; it gets its keys and is answered.
fn asks(r: &mut Rig, after: &str) {
    let sent = r.query("INSERT INTO t (a) VALUES (2)");
    let sent = match has(&sent, "SET last_insert_id") {
        true => r.answer(&ok(0, 0)),
        false => sent,
    };
    assert!(has(&sent, "SELECT `id` FROM"), "after {after}: {sent:?}");
    let sent = r.tell(sent, &["id", "a"]);
    assert!(has(&sent, "INSERT"), "{sent:?}");
    r.answer(&ok(1, 200));
    r.output();
}

#[test]
fn fewer_keys_than_were_asked_for_are_given_to_nobody() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.holds_keys = true;
    assert!(r.probed("SELECT NEXT 3 VALUES FOR t", "1").is_empty());
    r.s.on_keys(Ok(numbers(2)));
    r.run();
    assert!(r.to_server.is_empty());
    assert!(has(&r.output(), "keywright"));
}

/// A text that the server does not prepare with its keys is not executed.
#[test]
fn what_the_server_does_not_prepare_is_its_answer() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'", "1");
    r.answer(&ok(0, 0));
    r.output();
    assert!(has(
        &r.query("EXECUTE s"),
        "PREPARE `keywright execute` FROM"
    ));
    assert!(r.answer(&err()).is_empty());
    assert_eq!(r.output(), err());
    assert!(has(&r.query("SELECT 1"), "SELECT 1"));
}

/// The key that was left out is in LAST_INSERT_ID() on the server.
#[test]
fn a_text_whose_row_was_left_out_leaves_last_insert_id() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.probed("PREPARE s FROM 'INSERT IGNORE INTO t (a) VALUES (1)'", "1");
    r.answer(&ok(0, 0));
    r.output();
    let sent = r.query("EXECUTE s");
    r.tell(sent, &[]);
    assert!(has(&r.answer(&ok(0, 0)), "EXECUTE `keywright execute`"));
    r.answer(&ok(0, 100));
    assert_eq!(r.output(), ok(0, 0));
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SET last_insert_id=0"), "{sent:?}");
}
