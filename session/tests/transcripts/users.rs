//! What COM_CHANGE_USER leaves, done or refused.

use keywright_rewrite::KeyForm;

use super::rig::*;

/// The driver has run the exchange; whether the server was content.
fn change_user(r: &mut Rig, is_done: bool) {
    match is_done {
        true => r.s.reset(facts(MARIADB, DEPRECATE_EOF)),
        false => r.s.refused(),
    }
}

/// Servers keep what COM_SET_OPTION has said, whoever is logged in.
#[test]
fn several_statements_stay_allowed_to_another_user() {
    const TWO: &str = "SELECT 1; INSERT INTO t (a) VALUES (1)";
    for is_done in [true, false] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let on = packet(0, b"\x1B\0\0");
        assert_eq!(r.say(b"\x1B\0\0"), on);
        r.answer(&packet(1, &[0xFE, 0, 0, 2, 0, 0, 0]));
        change_user(&mut r, is_done);
        let sent = r.probed(TWO, "1");
        assert!(sent.ends_with("SELECT 1"), "{sent}");
        let sent = r.answer(&ok(0, 0));
        assert!(has(&sent, "t (`id`,a) VALUES ("), "it has a key: {sent:?}");
        r.answer(&ok(1, 100));
        // And stay forbidden.
        r.say(b"\x1B\x01\0");
        r.answer(&packet(1, &[0xFE, 0, 0, 2, 0, 0, 0]));
        change_user(&mut r, is_done);
        assert!(has(&r.query(TWO), TWO), "it is the server's to refuse");
    }
}

/// MariaDB has started the session over before it looked at who wants in.
#[test]
fn nothing_that_was_made_outlasts_a_user_who_is_refused() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    stmt_prepare(&mut r, "INSERT INTO t (a) VALUES (1)", "1");
    r.answer(&prepared(7, 1));
    r.query("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2");
    r.answer(&ok(1, 100));
    change_user(&mut r, false);
    r.output();
    assert!(r.s.is_between_commands());
    let command = execute(7, &[]);
    assert_eq!(r.say(&command), packet(0, &command), "it is nobody's");
    r.answer(&err());
    let sent = r.query("SELECT LAST_INSERT_ID()");
    assert!(has(&sent, "SELECT LAST_INSERT_ID()"), "{sent:?}");
    r.answer(&ok(0, 0));
    let sent = r.query("INSERT INTO t (a) VALUES (1)");
    assert!(has(&sent, "@@session.sql_mode"), "it is asked: {sent:?}");
    let sent = r.answer(&probe("2"));
    let sent = String::from_utf8_lossy(&sent).into_owned();
    // Failing it could not go back to what is not known.
    assert!(sent.contains("(`id`,a) VALUES (101,1)"), "{sent}");
}
