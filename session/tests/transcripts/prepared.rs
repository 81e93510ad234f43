//! INSERTs that are prepared, and values that are sent as long data of their execution.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use keywright_rewrite::*;
use keywright_session::{Budget, Mode, OnUnsupported, Rule, Rules, Session, StatementOutcome};

use super::rig::*;

#[test]
fn long_data_is_executed_where_it_went() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, "INSERT INTO t (id, b, n) VALUES (?,?,?)", "1");
    r.answer(&prepared(7, 3));
    // id NULL: the variant is prepared, as statement 8.
    let exec = |nulls: u8, values: &[u8]| {
        let mut v = vec![nulls, 1, 8, 0, 252, 0, 253, 0];
        v.extend(values);
        execute(7, &v)
    };
    let sent = r.say(&exec(1, &[1, b'x', 2, b'y', b'z']));
    assert!(has(&sent, "LAST_INSERT_ID(?)"));
    r.answer(&prepared(8, 3));
    r.answer(&ok(1, 100));
    r.output();
    let mut p = vec![0x18];
    p.extend(7u32.to_le_bytes());
    p.extend([1, 0]);
    p.extend(b"BLOB");
    let ahead = r.say(&p);
    let sent = r.say(&exec(1, &[2, b'y', b'z']));
    assert_eq!(
        (ahead[5], sent[5]),
        (7, 7),
        "statement 8 was not sent the value"
    );
    r.answer(&ok(1, 101));
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "last_insert_id=101"));
}

/// As libmariadb does.
#[test]
fn long_data_that_is_said_to_be_null_is_the_value() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, "INSERT INTO t (id, b) VALUES (?,?)", "1");
    r.answer(&prepared(7, 2));
    r.output();
    let ahead = |r: &mut Rig, index: u8| {
        let long_data = [&[0x18, 7, 0, 0, 0, index, 0], b"BLOB".as_slice()].concat();
        assert!(has(&r.say(&long_data), "BLOB"));
    };
    let types = [1, 8, 0, 252, 0];
    let exec = |nulls: u8, values: &[u8]| execute(7, &[&[nulls], &types[..], values].concat());
    // Behind a header: the command, the statement, flags and a count.
    const NULLS_AT: usize = 4 + 10;
    ahead(&mut r, 1);
    let sent = r.say(&exec(3, &[]));
    assert_eq!(
        sent.get(NULLS_AT),
        Some(&0),
        "a key, and the value: {sent:?}"
    );
    r.answer(&ok(1, 100));
    r.output();
    // Nobody knows what was sent as the key.
    ahead(&mut r, 0);
    r.say(&exec(1, &[1, b'x']));
    assert!(has(&r.output(), "cannot fill in a key exactly"));
}

#[test]
fn texts_of_one_statement_do_not_pile_up_on_the_server() {
    const ROWS: u16 = 12;
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = format!(
        "INSERT INTO t (id) VALUES {}",
        vec!["(?)"; ROWS.into()].join(",")
    );
    stmt_prepare(&mut r, &text, "1");
    r.answer(&prepared(7, ROWS));
    let mut closed = Vec::new();
    // Each time another row is the first that asks for a key.
    for row in 0..ROWS {
        let mut rest = (1_u16 << row).to_le_bytes().to_vec();
        rest.push(1);
        rest.extend([8, 0].repeat(ROWS.into()));
        for key in 1..ROWS {
            rest.extend(u64::from(key).to_le_bytes());
        }
        r.say(&execute(7, &rest));
        let sent = r.answer(&prepared(100 + u32::from(row), ROWS));
        let closes = sent
            .windows(9)
            .filter(|part| part.starts_with(&[5, 0, 0, 0, 0x19]));
        closed.extend(closes.map(|part| part[5]));
        r.answer(&ok(1, 100));
    }
    assert_eq!(closed, [100, 101, 102, 103, 104]);
}

#[test]
fn refused_execution_forgets_types() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(7, 2));
    r.fail_keys = true;
    r.say(&execute(7, &[0, 1, 253, 0, 1, b'x']));
    assert!(has(&r.output(), "down"));
    r.fail_keys = false;
    r.say(&execute(7, &[0, 0, 1, b'x']));
    assert!(
        !r.closed,
        "connection closed: {:?}",
        String::from_utf8_lossy(&r.output())
    );
}

#[test]
fn refused_execution_leaves_long_data() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(7, 2));
    let mut p = vec![0x18];
    p.extend(7u32.to_le_bytes());
    p.extend([0, 0]);
    p.extend(b"BLOB");
    r.say(&p);
    r.fail_keys = true;
    let sent = r.say(&execute(7, &[0, 1, 252, 0]));
    assert!(has(&r.output(), "down"));
    assert!(
        sent.get(4) == Some(&0x1A),
        "the upstream keeps BLOB; a retry appends to it (no COM_STMT_RESET was sent)"
    );
}

#[test]
fn increment_changes_after_prepare() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (1),(2),(3)", "3");
    assert!(sent.contains("LAST_INSERT_ID()+6"), "{sent}");
    r.answer(&prepared(7, 2));
    r.query("SET auto_increment_increment=1");
    r.answer(&ok(0, 0));
    let sent = r.say(&execute(7, &[]));
    assert!(has(&sent, "sql_mode"));
    let sent = r.answer(&probe("1"));
    // Three keys reserved; the text in force must not use first+6.
    let asked: u64 = r.requests.iter().map(|q| q.count).sum();
    assert!(
        asked >= 7 || has(&sent, "LAST_INSERT_ID()+2"),
        "reserved {asked} keys, but statement 7 uses first, first+3, first+6; sent {sent:?}"
    );
}

#[test]
fn prepare_answer_split() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let mut p = vec![0x16];
    p.extend(b"SELECT ?");
    r.say(&p);
    let whole = prepared(7, 1);
    for b in &whole {
        r.answer(&[*b]);
    }
    assert_eq!(r.output(), whole);
}

#[test]
fn short_long_data_does_not_eat_the_next_command() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
    r.answer(&prepared(7, 2));
    r.output();
    r.client.extend([5, 0, 0, 0, 0x18, 7, 0, 0, 0]);
    r.client.extend(packet(0, &[0x0E]));
    r.run();
    assert!(
        r.closed || r.to_server.ends_with(&[1, 0, 0, 0, 0x0E]),
        "sent {:?}",
        r.to_server
    );
}

/// MySQL has no number for the statement that was prepared last: it says that there is no such statement.
#[test]
fn minus_one_means_nothing_to_mysql() {
    for flavour_knows in [true, false] {
        let mut r = match flavour_knows {
            true => rig(KeyForm::Integer, DEPRECATE_EOF),
            false => rig_of_mysql(KeyForm::Integer, DEPRECATE_EOF),
        };
        stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (?)", "1");
        r.answer(&prepared(7, 2));
        let command = execute(u32::MAX, b"\0\x01\xFD\0\x01x");
        let sent = r.say(&command);
        if flavour_knows {
            assert_eq!(sent.get(5..9), Some([7, 0, 0, 0].as_slice()));
            continue;
        }
        assert_eq!(sent, packet(0, &command));
        assert!(r.requests.is_empty());
        r.answer(&err());
        // Nor does it close anything.
        let close = b"\x19\xFF\xFF\xFF\xFF";
        assert_eq!(r.say(close), packet(0, close));
        let sent = r.say(&execute(7, b"\0\x01\xFD\0\x01x"));
        assert!(
            has(&sent, "INSERT INTO t (`id`,a)"),
            "it is known: {sent:?}"
        );
    }
}

#[test]
fn keys_that_are_not_one_apart_are_counted_as_they_are() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    // Between them are keys of others: a stride, a layout with the worker id behind the sequence.
    r.apart = 3;
    let text = "INSERT INTO t (a) VALUES (1),(2),(3)";
    let sent = stmt_prepare(&mut r, text, "1");
    assert!(sent.contains("LAST_INSERT_ID()+2"), "{sent}");
    r.answer(&prepared(7, 2));
    let sent = r.say(&execute(7, &[]));
    assert!(has(&sent, "LAST_INSERT_ID(?)+3"), "{sent:?}");
    assert!(has(&sent, "LAST_INSERT_ID()+6"), "{sent:?}");
    let sent = r.answer(&prepared(8, 2));
    assert_eq!((sent[4], sent[5]), (0x17, 8), "the other text is executed");
    r.answer(&ok(3, 109));
    let sent = r.say(&execute(7, &[]));
    assert_eq!((sent[4], sent[5]), (0x17, 8), "and again");
    r.answer(&ok(3, 118));
    let sent = stmt_prepare(&mut r, text, "1");
    assert!(sent.contains("LAST_INSERT_ID()+6"), "it is known: {sent}");
    r.answer(&prepared(9, 2));
    let sent = r.say(&execute(9, &[]));
    assert_eq!((sent[4], sent[5]), (0x17, 9));
    r.answer(&ok(3, 127));
    // Spaced by the source already.
    r.query("SET auto_increment_increment=3");
    r.answer(&ok(0, 0));
    r.say(&execute(9, &[]));
    let sent = r.answer(&probe("3"));
    assert_eq!((sent[4], sent[5]), (0x17, 9), "{sent:?}");
    r.answer(&ok(3, 136));
    r.query("SET auto_increment_increment=2");
    r.answer(&ok(0, 0));
    r.say(&execute(9, &[]));
    let sent = r.answer(&probe("2"));
    assert!(has(&sent, "LAST_INSERT_ID()+12"), "{sent:?}");
}

#[test]
fn long_data_stays_with_a_text_that_counts_otherwise() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.apart = 3;
    stmt_prepare(&mut r, "INSERT INTO t (b) VALUES (?),('x')", "1");
    r.answer(&prepared(7, 3));
    let mut ahead = vec![0x18];
    ahead.extend(7u32.to_le_bytes());
    ahead.extend([0, 0]);
    ahead.extend(b"BLOB");
    r.say(&ahead);
    let sent = r.say(&execute(7, &[0, 1, 252, 0]));
    assert!(has(&r.output(), "not one apart"), "{sent:?}");
    assert_eq!(sent.get(4), Some(&0x1A), "and are taken back");
}

#[test]
fn a_key_that_sql_mode_decides_is_refused_under_another() {
    for (text, mode, other) in [
        (
            "INSERT INTO t (id, b) VALUES (0, ?)",
            "NO_AUTO_VALUE_ON_ZERO",
            "",
        ),
        (
            "INSERT INTO t (id, b) VALUES ('abc', ?)",
            "STRICT_TRANS_TABLES",
            "",
        ),
        (
            "INSERT INTO t (id, b) VALUES ('', ?)",
            "STRICT_TRANS_TABLES",
            "EMPTY_STRING_IS_NULL,STRICT_TRANS_TABLES",
        ),
        (
            "INSERT INTO t (id, b) SELECT 0, ?",
            "NO_AUTO_VALUE_ON_ZERO",
            "",
        ),
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let mut prepare = vec![0x16];
        prepare.extend(text.as_bytes());
        r.say(&prepare);
        let sent = r.answer(&probe_in(mode, "1"));
        assert!(has(&sent, text), "it is passed on");
        r.answer(&prepared(7, 1));
        r.output();
        let exec = execute(7, &[0, 1, 253, 0, 1, b'x']);
        assert!(!r.say(&exec).is_empty(), "{text}");
        r.answer(&ok(1, 0));
        r.output();
        r.query("SET sql_mode = 'another'");
        r.answer(&ok(0, 0));
        r.output();
        r.say(&exec);
        assert!(r.answer(&probe_in(other, "1")).is_empty(), "{text}");
        assert!(has(&r.output(), "another sql_mode"), "{text}");
    }
}

/// How much of an endless memory is taken, bytes.
#[derive(Debug, Default)]
pub(crate) struct Memory(AtomicUsize);

impl Memory {
    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Budget for Memory {
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[test]
fn what_is_kept_of_each_row_counts_as_memory() {
    const ROWS: usize = 1_000;
    let memory = Arc::new(Memory::default());
    let taken = || memory.taken();
    let mut r = rig_with_budget(Arc::<Memory>::clone(&memory));
    let text = format!("INSERT INTO t (a) VALUES {}", vec!["(1)"; ROWS].join(","));
    stmt_prepare(&mut r, &text, "1");
    let of_one_row = taken().saturating_sub(text.len()) / ROWS;
    assert!(of_one_row >= size_of::<u64>(), "{of_one_row} bytes");
    r.answer(&prepared(7, 1));
    r.say(&[&[0x19][..], &7_u32.to_le_bytes()].concat());
    assert_eq!(taken(), 0, "closed");
}

/// A 0 that was a key when it was prepared asks for one now, and the server would number it among the rule's keys.
#[test]
fn another_sql_mode_lets_nothing_go_to_a_table_that_is_ahead() {
    for (is_ahead, is_passed) in [(false, true), (true, false)] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let rule = Rule {
            on_unsupported: OnUnsupported::Pass,
            ..r.rule_in(Mode::Rewrite)
        };
        let ahead = [("d", "t")].into_iter().filter(|_| is_ahead);
        let rules = Rules::new(vec![rule], false).with_ahead(ahead);
        r.s = Session::new(Arc::new(rules), r.facts());
        let text = b"INSERT INTO t (id, a) VALUES (0, 1)";
        let asked = r.say(&[&[COM_STMT_PREPARE], text.as_slice()].concat());
        assert!(has(&asked, "@@session.sql_mode"));
        let sent = r.answer(&probe_in("NO_AUTO_VALUE_ON_ZERO", "1"));
        assert!(has(&sent, "INSERT"));
        r.answer(&prepared(7, 0));
        r.query("SET sql_mode = ''");
        r.answer(&ok(0, 0));
        r.output();
        let asked = r.say(&execute(7, &[]));
        assert!(has(&asked, "@@session.sql_mode"));
        let sent = r.answer(&probe("1"));
        assert_eq!(sent == packet(0, &execute(7, &[])), is_passed);
        let is_refused = has(&r.output(), "another sql_mode");
        assert_eq!(is_refused, !is_passed);
    }
}

/// A string that may or may not ask for a key goes to the server as it is, in the client's own text, and is counted.
#[test]
fn a_rule_that_passes_on_what_it_cannot_do_does_so_at_an_execution() {
    let mut r = rig_of_rule(|rule| rule.on_unsupported = OnUnsupported::Pass);
    let text = "INSERT INTO t (id, a) VALUES (?, 1)";
    stmt_prepare(&mut r, text, "1");
    r.answer(&prepared(7, 1));
    r.output();
    r.s.events().clear();
    let unclear = [&[0, 1, 0xFD, 0][..], &[2, b'0', b' ']].concat();
    let asked = r.say(&execute(7, &unclear));
    let as_it_is = packet(0, &[&[COM_STMT_PREPARE], text.as_bytes()].concat());
    assert_eq!(asked, as_it_is);
    let sent = r.answer(&prepared(8, 1));
    assert_eq!(sent, packet(0, &execute(8, &unclear)));
    r.answer(&ok(1, 9));
    assert_eq!(r.output(), ok(1, 9));
    let what = Unsupported::Key(KeyExpression::NotNumber).label();
    let outcomes: Vec<_> = r.s.events().iter().map(|event| event.outcome).collect();
    let native = StatementOutcome::Native(None);
    assert_eq!(outcomes, [StatementOutcome::Passed(what), native]);
    assert!(r.requests.is_empty());
    // Where the rule refuses it nothing goes out.
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, text, "1");
    r.answer(&prepared(7, 1));
    r.output();
    assert!(!has(&r.say(&execute(7, &unclear)), "INSERT"));
    assert!(has(&r.output(), "a string that is no number"));
}

/// Where words are stored as 0, which asks for a key.
#[test]
fn a_bound_word_asks_outside_strict_mode() {
    for (sql_mode, asks) in [
        ("", true),
        ("STRICT_TRANS_TABLES", false),
        ("NO_AUTO_VALUE_ON_ZERO", false),
    ] {
        for word in ["", "abc"] {
            let mut r = with_bound_key(sql_mode);
            let value = [&[word.len() as u8], word.as_bytes()].concat();
            let sent = r.say(&execute(7, &[&[0, 1, 0xFD, 0][..], &value].concat()));
            if has(&sent, "LAST_INSERT_ID(?)") {
                r.answer(&prepared(8, 1));
            }
            assert_eq!(r.requests.len() == 1, asks, "{sql_mode} {word}");
        }
    }
}

/// The application's own keys of columns that hold text.
#[test]
fn a_written_text_is_a_key_of_its_own() {
    let mut r = rig(KeyForm::Text, DEPRECATE_EOF);
    let given = "INSERT INTO t (id, a) VALUES ('x' 'y', 1), ('', 2)";
    assert!(r.probed(given, "1").contains(given));
    r.answer(&ok(2, 0));
    assert!(r.requests.is_empty());
    let sent = r.query("INSERT INTO t (id, a) VALUES ('x', 1), (NULL, 2)");
    assert!(has(&sent, "('x', 1), ('k0', 2)"), "{sent:?}");
}
