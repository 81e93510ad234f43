//! INSERTs that hide behind bytes beyond ASCII: blanks and letters of the client's character set.

use keywright_rewrite::KeyForm;
use keywright_session::Limits;

use super::hidden::is_refused;
use super::rig::*;

/// The session's state where this is the client's character set.
pub(crate) fn probe_in_charset(name: &str) -> Vec<u8> {
    const NAME: &[u8] = b"\x07utf8mb4";
    let mut probe = probe("1");
    let at = probe.windows(NAME.len()).position(|part| part == NAME);
    let at = at.expect("there is a name");
    let length = u8::try_from(name.len()).expect("it is short");
    let told = [&[length], name.as_bytes()].concat();
    probe.splice(at..at + NAME.len(), told);
    // Before it the row has an empty sql_mode, and its packet's length.
    probe[at - 5] = probe[at - 5] - 7 + length;
    probe
}

#[test]
fn blanks_beyond_ascii_hide_no_rows() {
    let latin1 = |r: &mut Rig, text: &[u8]| {
        let sent = r.say(&[b"\x03", text].concat());
        assert!(
            has(&sent, "@@session.sql_mode"),
            "the character set is asked for"
        );
        r.answer(&probe_in_charset("latin1"))
    };
    for text in [
        &b"INSERT INTO\xA0t (a) VALUES (1)"[..],
        b"INSERT INTO t (a) VALUES (1); --\xA0 x; INSERT INTO t (a) VALUES (2)",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        assert_eq!(latin1(&mut r, text), b"");
        is_refused(&mut r, "blanks beyond ASCII");
        assert!(r.say(&[b"\x16", text].concat()).is_empty());
        is_refused(&mut r, "blanks beyond ASCII");
    }
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = latin1(&mut r, b"INSERT INTO t (a) VALUES ('\xA0')");
    assert!(has(&sent, "LAST_INSERT_ID(100)"));
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    r.say(b"\x03INSERT INTO t (a) VALUES ('\xC3\xA0')");
    assert!(has(&r.answer(&probe("1")), "LAST_INSERT_ID(100)"));
}

/// What goes out of a text in a character set, once that was asked for.
pub(crate) fn in_charset(r: &mut Rig, name: &str, command: u8, text: &[u8]) -> Vec<u8> {
    let sent = r.say(&[&[command], text].concat());
    match has(&sent, "@@session.sql_mode") {
        true => r.answer(&probe_in_charset(name)),
        false => sent,
    }
}

#[test]
fn characters_that_end_in_a_quote_hide_no_rows() {
    const OF: &str = "may contain a backslash";
    for text in [
        &b"SELECT '\x95\\' -- '; INSERT INTO t(a) VALUES ('x')"[..],
        b"SELECT hex('\x95\\'); INSERT INTO t(a) VALUES ('y')",
        b"SELECT `\x83`` -- `; INSERT INTO t(a) VALUES (1)",
        b"LOAD DATA INFILE '\x95\\' INTO TABLE t",
        b"PREPARE s FROM 'INSERT INTO t(a) VALUES (''\x95\\'')'",
        b"EXECUTE IMMEDIATE 'INSERT INTO t(a) VALUES (''\x95\\'')'",
        b"SET STATEMENT a='\x95\\' FOR INSERT INTO t(a) VALUES ('x')",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
        let sent = in_charset(&mut r, "sjis", 3, text);
        assert_eq!(sent, b"", "{}", text.escape_ascii());
        is_refused(&mut r, OF);
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
        let sent = in_charset(&mut r, "utf8mb4", 3, text);
        assert!(!has(&r.output(), OF) && !sent.is_empty());
    }
    for text in [
        &b"LOAD DATA INFILE '\x95\\' INTO TABLE t"[..],
        b"SET STATEMENT a='\x95\\' FOR INSERT INTO t(a) VALUES ('x')",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        assert_eq!(in_charset(&mut r, "cp932", 0x16, text), b"");
        is_refused(&mut r, OF);
    }
    for text in [
        &b"SELECT '\x95\\'"[..],
        b"UPDATE other SET a = '\x95\\';",
        b"SELECT '\x82\xA0'; UPDATE other SET a = '\x82\xA0'",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
        let sent = in_charset(&mut r, "sjis", 3, text);
        assert!(sent.ends_with(text), "{}", text.escape_ascii());
    }
}

#[test]
fn characters_that_end_in_a_quote_hide_no_rows_behind_a_change_of_the_character_set() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let text = b"SET NAMES sjis; SELECT '\x95\\' -- '; INSERT INTO t(a) VALUES ('x')";
    let sent = in_charset(&mut r, "utf8mb4", 3, text);
    assert!(sent.ends_with(b"SET NAMES sjis"));
    assert!(has(&r.answer(&ok(0, 0)), "@@session.sql_mode"));
    assert_eq!(r.answer(&probe_in_charset("sjis")), b"");
    is_refused(&mut r, "may contain a backslash");
}

/// Behind the change `--\xA0` begins a comment: a quote in it opens no string, and a `;` ends no statement.
#[test]
fn blanks_beyond_ascii_hide_no_rows_behind_a_change_of_the_character_set() {
    for text in [
        &b"SET NAMES latin1; SELECT 1 --\xA0'\n; INSERT INTO t(a) VALUES (1) -- '"[..],
        b"SET NAMES latin1; UPDATE u SET a=1 --\xA0;\n WHERE id=1; INSERT INTO t(a) VALUES(1)",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
        let sent = in_charset(&mut r, "utf8mb4", 3, text);
        assert!(
            sent.ends_with(b"SET NAMES latin1"),
            "{}",
            sent.escape_ascii()
        );
        assert!(has(&r.answer(&ok(0, 0)), "@@session.sql_mode"));
        let sent = r.answer(&probe_in_charset("latin1"));
        assert_eq!(sent, b"", "{}", sent.escape_ascii());
        is_refused(&mut r, "blanks beyond ASCII");
    }
}

/// Whatever the login said, the server may have another character set, whose blanks are others.
#[test]
fn each_byte_beyond_ascii_may_be_a_blank_until_the_character_set_is_known() {
    for (name, blank) in [
        ("latin1", 0xA0),
        ("latin7", 0x81),
        ("cp1250", 0x88),
        ("hp8", 0xB1),
        ("macroman", 0xCB),
        ("cp850", 0xFF),
    ] {
        for command in [3, 0x16] {
            let text = [b"INSERT", &[blank][..], b"INTO t (a) VALUES (1)"].concat();
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
            assert_eq!(in_charset(&mut r, name, command, &text), b"", "{name}");
            is_refused(&mut r, "blanks beyond ASCII");
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
            let sent = in_charset(&mut r, "utf8mb4", command, &text);
            assert!(sent.ends_with(&text), "{name}");
        }
    }
    // Nothing is asked where they are in quotes.
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = "SELECT 'à' -- ü";
    assert!(r.query(text).ends_with(text.as_bytes()));
}

/// The database is another one where its name is not in UTF-8.
#[test]
fn a_database_beyond_ascii_is_asked_for() {
    for command in [&b"\x02\xEC\xE0"[..], b"\x03USE \xEC\xE0"] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        r.probed("INSERT INTO t (a) VALUES (1)", "1");
        r.answer(&ok(1, 100));
        r.say(command);
        r.answer(&ok(0, 0));
        r.output();
        let sent = r.query("INSERT INTO t (a) VALUES (1)");
        assert!(has(&sent, "@@session.sql_mode"), "{}", sent.escape_ascii());
        assert!(has(&r.answer(&probe("1")), "LAST_INSERT_ID(101)"));
    }
}

/// It may be another statement, or of other tables: the server is asked for everything before the next INSERT.
#[test]
fn of_what_blanks_beyond_ascii_are_in_nothing_is_known_afterwards() {
    const INSERT: &str = "INSERT INTO t (a) VALUES (1)";
    const QUESTION: &str = "SHOW CREATE TABLE `d`.`t`";
    for (text, made) in [
        (&b"USE \xA0shop"[..], false),
        (b"SET \xA0sql_mode='ANSI_QUOTES'", false),
        (b"BEGIN \xA0NOT ATOMIC SET sql_mode=''; END", false),
        (b"DROP TABLE \xA0t", true),
        (b"CREATE TEMPORARY TABLE \xA0t (a INT)", false),
        (b"SELECT 1; CREATE TEMPORARY TABLE \xA0t (a INT)", false),
    ] {
        for is_prepared in [false, true] {
            if is_prepared && text.contains(&b';') {
                continue;
            }
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
            in_charset(&mut r, "latin1", 3, b"SELECT \xE9");
            r.answer(&ok(0, 0));
            if made {
                r.query("CREATE TEMPORARY TABLE t (a INT)");
                r.answer(&ok(0, 0));
                assert!(has(&r.query(INSERT), INSERT), "it is hidden");
                r.answer(&ok(1, 0));
            }
            let sent = match is_prepared {
                true => {
                    r.say(&[b"\x16", text].concat());
                    r.answer(&prepared(7, 0));
                    r.say(&execute(7, &[]))
                }
                false => r.say(&[b"\x03", text].concat()),
            };
            assert!(
                is_prepared || sent.ends_with(text),
                "{}",
                text.escape_ascii()
            );
            r.answer(&ok(0, 0));
            r.output();
            let asked = r.query(INSERT);
            let asks = has(&asked, "@@session.sql_mode") || has(&asked, QUESTION);
            assert!(asks, "{}: {}", text.escape_ascii(), asked.escape_ascii());
            if has(&asked, "@@session.sql_mode") {
                let asked = r.answer(&probe_in_charset("latin1"));
                assert!(has(&asked, QUESTION), "{}", text.escape_ascii());
            }
        }
    }
}

/// Neither where the text is not gathered, nor where its beginning has come, are words taken for others.
#[test]
fn blanks_beyond_ascii_hide_no_rows_of_long_texts() {
    let limits = Limits {
        rewrite_bytes_max: 10_000,
        ..Limits::default()
    };
    for (front, is_passed) in [
        (&b"INSERT INTO\xA0t (a) VALUES ('"[..], false),
        (b"INSERT\xA0INTO t (a) VALUES ('", false),
        (b"--\xA0 x\n INSERT INTO t (a) VALUES ('", false),
        (b"INSERT INTO other (a) VALUES ('\xA0", true),
        (b"SELECT ('\xA0", true),
    ] {
        let text = [front, &[b'x'; 200_000], b"')"].concat();
        for command in [0x03, 0x16] {
            let mut r = rig_with(KeyForm::Integer, DEPRECATE_EOF, limits);
            let sent = in_charset(&mut r, "latin1", command, &text);
            let is_there = sent.windows(front.len()).any(|part| part == front);
            assert_eq!(is_there, is_passed, "{}", front.escape_ascii());
            let is_told = has(&r.output(), "longer than rewrite_bytes_max");
            assert_eq!(is_told, !is_passed, "{}", front.escape_ascii());
        }
        // The beginning alone has come, of what may be gathered.
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let whole = packet(0, &[b"\x03", &text[..]].concat());
        r.client.extend(whole.get(..100_000).expect("it is longer"));
        r.run();
        let is_insert = front.starts_with(b"INSERT INTO other");
        assert_eq!(
            !r.to_server.is_empty(),
            is_insert,
            "{}",
            front.escape_ascii()
        );
    }
}

/// One that is no INSERT goes out whole, up to where the server sees its end.
#[test]
fn no_statement_is_cut_at_what_may_be_a_comment() {
    const REST: &[u8] = b" UPDATE u SET a=1 --\xA0;\n WHERE id=1";
    let front = b"SET NAMES latin1; INSERT INTO t(a) VALUES('\xE9');";
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF | MULTI);
    let sent = in_charset(&mut r, "utf8mb4", 3, &[&front[..], REST].concat());
    assert!(
        sent.ends_with(b"SET NAMES latin1"),
        "{}",
        sent.escape_ascii()
    );
    r.answer(&ok(0, 0));
    let sent = r.answer(&probe_in_charset("latin1"));
    assert!(has(&sent, "LAST_INSERT_ID(100)"), "{}", sent.escape_ascii());
    let sent = r.answer(&ok(1, 100));
    assert!(sent.ends_with(REST), "{}", sent.escape_ascii());
    r.answer(&ok(1, 0));
    assert!(has(&r.query("SELECT 2"), "SELECT 2"));
}

/// An INSERT without a column list, from when the session's state is known: what goes out at last, and how often the character set of the
/// results was asked for, in which the columns come.
fn listed(
    r: &mut Rig,
    mut sent: Vec<u8>,
    results: Option<&str>,
    columns: &[&str],
) -> (Vec<u8>, usize) {
    let answer = match results {
        Some(name) => rows(&[name]),
        None => [
            packet(1, &[1]),
            def(2),
            packet(3, &[0xFB]),
            packet(4, &[0xFE, 0, 0, 2, 0, 0, 0]),
        ]
        .concat(),
    };
    let mut asked = 0;
    loop {
        sent = if has(&sent, "character_set_results") {
            asked += 1;
            r.answer(&answer)
        } else if let Some(next) = r.tell_once(&sent, columns) {
            next
        } else {
            return (sent, asked);
        };
    }
}

/// The server tells them in the character set of the results.
#[test]
fn columns_are_listed_in_the_character_set_of_the_text() {
    const INSERT: &str = "INSERT INTO t VALUES (NULL, 1)";
    for (client, results, columns, list) in [
        (
            "utf8mb4",
            Some("utf16"),
            ["\0i\0d", "\0a"],
            Some("(`id`,`a`)"),
        ),
        (
            "utf8mb4",
            Some("ucs2"),
            ["\0i\0d", "\0aNa"],
            Some("(`id`,`a乡`)"),
        ),
        (
            "utf8mb4",
            Some("utf8mb3"),
            ["id", "pré"],
            Some("(`id`,`pré`)"),
        ),
        ("utf8mb4", None, ["id", "pré"], Some("(`id`,`pré`)")),
        (
            "latin1",
            Some("utf16le"),
            ["i\0d\0", "a\0"],
            Some("(`id`,`a`)"),
        ),
        // Bytes of theirs, whatever letters those are.
        (
            "latin1",
            Some("latin1"),
            ["id", "prÃ©"],
            Some("(`id`,`prÃ©`)"),
        ),
        ("latin1", None, ["id", "pré"], None),
        ("utf8mb4", Some("latin1"), ["id", "prÃ©"], None),
        ("utf8mb4", Some("ascii"), ["id", "pr?"], None),
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let sent = in_charset(&mut r, client, 3, INSERT.as_bytes());
        let (sent, asked) = listed(&mut r, sent, results, &columns);
        assert_eq!(asked, 1, "{client} {results:?}");
        let Some(list) = list else {
            assert!(!has(&sent, "INSERT"), "{client} {results:?}: {sent:?}");
            is_refused(&mut r, "columns are not known");
            assert!(r.requests.is_empty(), "a key is lost");
            continue;
        };
        assert!(has(&sent, list), "{client} {}", sent.escape_ascii());
        assert!(has(&sent, "LAST_INSERT_ID(100)"));
        r.answer(&ok(1, 100));
        // It is the same until the session's state may be another one.
        let sent = r.query(INSERT);
        let (sent, asked) = listed(&mut r, sent, results, &columns);
        assert!(has(&sent, list) && asked == 0, "{client} {results:?}");
        r.answer(&ok(1, 101));
        r.query("SET character_set_results = DEFAULT");
        r.answer(&ok(0, 0));
        let sent = in_charset(&mut r, client, 3, INSERT.as_bytes());
        let (_, asked) = listed(&mut r, sent, results, &columns);
        assert_eq!(asked, 1, "{client} {results:?}");
    }
    // Of plain names nobody asks.
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = r.query(INSERT);
    let (sent, asked) = listed(&mut r, sent, None, &["id", "a"]);
    assert!(has(&sent, "(`id`,`a`)") && asked == 0);
}
