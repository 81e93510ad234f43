//! Query attributes, before texts and behind parameters.

use keywright_rewrite::KeyForm;
use keywright_session::Limits;

use super::rig::*;

/// A string named `a`, and NULL named `b`.
const HEAD: &[u8] = b"\x02\x01\x02\x01\xfe\x00\x01a\x03\x00\x01b\x05value";

fn client() -> Rig {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI | ATTRIBUTES);
    let sent = query(&mut r, b"\x00\x01", "INSERT INTO t (a) VALUES (1)");
    // The session's own question has none.
    assert!(sent[4..].starts_with(b"\x03\x00\x01SELECT CAST("));
    let sent = r.answer(&probe("1"));
    assert!(sent[4..].starts_with(b"\x03\x00\x01INSERT INTO t "));
    r.answer(&ok(1, 100));
    r.output();
    r
}

fn query(r: &mut Rig, head: &[u8], text: &str) -> Vec<u8> {
    r.say(&[b"\x03", head, text.as_bytes()].concat())
}

fn refusal(output: &[u8]) -> Option<u16> {
    (output.get(4) == Some(&0xFF)).then(|| u16::from_le_bytes([output[5], output[6]]))
}

#[test]
fn attributes_stay_before_a_text_that_gets_a_key() {
    let mut r = client();
    let sent = query(&mut r, HEAD, "INSERT INTO t (a) VALUES (2)");
    let text = b"INSERT INTO t (`id`,a) VALUES (LAST_INSERT_ID(101),2)";
    assert_eq!(sent, packet(0, &[b"\x03", HEAD, text].concat()));
    r.answer(&ok(1, 101));
    let sent = query(&mut r, HEAD, "SELECT 1");
    assert_eq!(sent, packet(0, &[b"\x03", HEAD, b"SELECT 1"].concat()));
}

#[test]
fn attributes_go_with_each_of_several_statements() {
    let mut r = client();
    let text = "INSERT INTO t (a) VALUES (2); SELECT 1";
    let sent = query(&mut r, HEAD, text);
    assert!(sent[5..].starts_with(HEAD) && has(&sent, "LAST_INSERT_ID(101)"));
    let sent = r.answer(&ok(1, 101));
    assert_eq!(sent, packet(0, &[b"\x03", HEAD, b" SELECT 1"].concat()));
}

#[test]
fn attributes_go_with_each_try_of_an_insert_select() {
    let mut r = client();
    let sent = query(&mut r, HEAD, "INSERT INTO t (a) SELECT a FROM u");
    assert!(sent[5..].starts_with(HEAD) && has(&sent, "ROWNUM()<=64"));
}

#[test]
fn what_comes_as_attributes_and_is_none_ends_the_connection() {
    for head in [b"\x01".as_slice(), b"\x00\x02", b"\xff"] {
        let mut r = client();
        r.say(&[b"\x03", head].concat());
        assert!(r.closed);
        assert_eq!(refusal(&r.output()), Some(1156));
    }
}

#[test]
fn a_text_behind_an_attribute_of_unknown_length_is_refused() {
    let mut r = client();
    let head = b"\x01\x01\x00\x01\xf3\x00\x00\x00";
    let sent = query(&mut r, head, "INSERT INTO t (a) VALUES (2)");
    assert!(sent.is_empty());
    assert_eq!(refusal(&r.output()), Some(1235));
    assert!(has(&query(&mut r, HEAD, "SELECT 1"), "SELECT 1"));
}

#[test]
fn long_attributes_are_passed_but_not_sent_again() {
    let mut head = b"\x01\x01\x00\x01\xfe\x00\x00\xfd\x00\x00\x02".to_vec();
    head.extend(vec![b'x'; 0x02_0000]);
    let mut r = client();
    let sent = query(&mut r, &head, "SELECT 1");
    assert_eq!(
        sent,
        packet(0, &[b"\x03", head.as_slice(), b"SELECT 1"].concat())
    );
    r.answer(&ok(0, 0));
    r.output();
    let sent = query(&mut r, &head, "INSERT INTO t (a) VALUES (2)");
    assert!(sent.is_empty());
    assert_eq!(refusal(&r.output()), Some(1235));
}

#[test]
fn a_text_too_long_to_be_gathered_is_judged_behind_its_attributes() {
    let limits = Limits {
        rewrite_bytes_max: 10_000,
        ..Limits::default()
    };
    for (table, passes) in [("free", true), ("t", false)] {
        let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF | ATTRIBUTES, limits);
        query(&mut r, HEAD, "INSERT INTO t (a) VALUES (1)");
        r.answer(&probe("1"));
        r.answer(&ok(1, 100));
        r.output();
        let text = format!("INSERT INTO {table} (a) VALUES ('{}')", "x".repeat(20_000));
        let sent = query(&mut r, HEAD, &text);
        assert_eq!(!sent.is_empty(), passes, "{table}");
        assert_eq!(refusal(&r.output()), (!passes).then_some(1153), "{table}");
    }
}

/// COM_STMT_EXECUTE of statement 7 with this behind the iteration count.
fn execute(flags: u8, rest: &[u8]) -> Vec<u8> {
    let mut payload = vec![COM_STMT_EXECUTE, 7, 0, 0, 0, flags, 1, 0, 0, 0];
    payload.extend(rest);
    payload
}

#[test]
fn attributes_stay_behind_parameters_that_were_put_in() {
    let mut r = client();
    let sent = stmt_prepare(&mut r, "INSERT INTO t (a, b) VALUES (?, ?)", "1");
    assert!(
        sent.contains("(`id`,a, b) VALUES (LAST_INSERT_ID(?),?, ?)"),
        "{sent}"
    );
    r.answer(&prepared(7, 3));
    // Two of the statement, the first with a name, and two attributes, the second NULL.
    let types = b"\x01\x03\x00\x01p\xfe\x00\x00\x03\x00\x01n\x03\x00\x01o";
    let values = b"\x07\x00\x00\x00\x01x\x09\x00\x00\x00";
    let rest = [b"\x04\x08".as_slice(), types, values].concat();
    let sent = r.say(&execute(8, &rest));
    let key = 101_u64.to_le_bytes();
    let rest = [
        b"\x05\x10\x01\x08\x80\x00".as_slice(),
        &types[1..],
        &key,
        values,
    ]
    .concat();
    assert_eq!(sent, packet(0, &execute(8, &rest)));
    r.answer(&ok(1, 101));
    // The types of the parameters are remembered, and attributes that come without are NULL.
    let rest = [b"\x03\x04\x00".as_slice(), &values[..6]].concat();
    let sent = r.say(&execute(8, &rest));
    let key = 102_u64.to_le_bytes();
    let types = b"\x01\x08\x80\x00\x03\x00\x00\xfe\x00\x00\x06\x00\x00";
    let rest = [b"\x04\x08".as_slice(), types, &key, &values[..6]].concat();
    assert_eq!(sent, packet(0, &execute(8, &rest)));
}

#[test]
fn a_statement_without_parameters_has_attributes_beside_its_key() {
    let mut r = client();
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&prepared(7, 1));
    let key = |key: u64| key.to_le_bytes();
    for (flags, sent, expected) in [
        // Without attributes, with none, and with one.
        (
            0,
            b"".as_slice(),
            [b"\x01\x00\x01\x08\x80\x00".as_slice(), &key(101)].concat(),
        ),
        (
            8,
            b"\x00",
            [b"\x01\x00\x01\x08\x80\x00".as_slice(), &key(102)].concat(),
        ),
        (
            8,
            b"\x01\x00\x01\x03\x00\x01n\x09\x00\x00\x00",
            [
                b"\x02\x00\x01\x08\x80\x00\x03\x00\x01n".as_slice(),
                &key(103),
                b"\x09\x00\x00\x00",
            ]
            .concat(),
        ),
    ] {
        let sent = r.say(&execute(flags, sent));
        assert_eq!(sent, packet(0, &execute(flags, &expected)));
        r.answer(&ok(1, 101));
    }
}

#[test]
fn an_execution_with_an_attribute_of_unknown_length_is_refused() {
    let mut r = client();
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&prepared(7, 1));
    r.output();
    let sent = r.say(&execute(8, b"\x01\x00\x01\xf3\x00\x00\x00"));
    assert!(sent.is_empty());
    assert_eq!(refusal(&r.output()), Some(1235));
    // Of a statement that no rule is for, nothing is read.
    let sent = r.say(
        &[
            b"\x17\x08\x00\x00\x00\x08\x01\x00\x00\x00".as_slice(),
            b"\x01\x00\x01\xf3\x00\x00\x00",
        ]
        .concat(),
    );
    assert!(!sent.is_empty());
}

#[test]
fn attributes_stay_behind_the_keys_of_a_prepared_insert_select() {
    let mut r = client();
    let text = "INSERT INTO t (a) SELECT a FROM u WHERE b = ?";
    stmt_prepare(&mut r, text, "1");
    r.answer(&prepared(7, 4));
    let named = b"\x03\x00\x01n";
    let rest = [
        b"\x02\x00\x01\x03\x00\x00",
        named.as_slice(),
        b"\x05\x00\x00\x00\x09\x00\x00\x00",
    ]
    .concat();
    let sent = r.say(&execute(8, &rest));
    // Three for the keys, the statement's own and the attribute.
    assert_eq!(sent[14..17], [5, 0, 1], "{sent:?}");
    let types = &sent[17..17 + 4 * 3 + 4];
    assert!(types.ends_with(named), "{types:?}");
    assert!(sent.ends_with(b"\x09\x00\x00\x00"));
}
