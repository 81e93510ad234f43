//! Rows that a query copies with their keys, where a 0 or NULL would ask for one: the statement goes out so that it fails for such a row.

use keywright_rewrite::KeyForm;
use keywright_session::{KeyColumnState, Mode, OnExplicit, OnUnsupported};

use super::rig::*;
use super::select::cut_off;

const COPY: &str = "INSERT INTO t (id, a) SELECT id, a FROM u";
const GUARDED: &str = "INSERT INTO t (id, a) SELECT CASE WHEN id<>0 THEN id ELSE \
    3935559000370003845*(id IS NULL OR id=0)*3935559000370003845 END, a FROM u";

/// The server says that a row has no key.
fn no_key() -> Vec<u8> {
    let mut payload = vec![0xFF, 0x9A, 0x06];
    payload
        .extend(b"#22003BIGINT value is out of range in '`d`.`u`.`id` = 0 * 3935559000370003845'");
    packet(1, &payload)
}

/// What goes out once the server has said what the query's result is.
fn asked(r: &mut Rig, text: &str, columns: &[&str]) -> String {
    let sent = r.probed(text, "1");
    let sent = r.tell(sent.into_bytes(), columns);
    assert!(
        has(&sent, "\x16SELECT"),
        "{}",
        String::from_utf8_lossy(&sent)
    );
    String::from_utf8_lossy(&r.answer(&described(columns))).into_owned()
}

#[test]
fn a_row_without_a_key_makes_it_fail() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let sent = asked(&mut r, COPY, &["id", "a"]);
    assert!(sent.ends_with(GUARDED), "{sent}");
    assert!(r.answer(&ok(3, 0)).is_empty());
    assert_eq!(r.output(), ok(3, 0));
    assert!(asked(&mut r, COPY, &["id", "a"]).ends_with(GUARDED));
    r.answer(&no_key());
    let told = r.output();
    assert!(has(&told, "with a 0 or NULL in it"), "{told:?}");
    assert_eq!(told.get(3..7), Some(&[1, 0xFF, 0xD3, 4][..]), "1235");
    asked(&mut r, COPY, &["id", "a"]);
    r.answer(&cut_off(""));
    assert!(has(&r.output(), "character_set_results"));
    // Other errors are the server's.
    asked(&mut r, COPY, &["id", "a"]);
    r.answer(&err());
    assert_eq!(r.output(), err());
    assert!(r.requests.is_empty());
}

/// Of an UNSIGNED column the server would store 0.
#[test]
fn a_number_below_0_makes_it_fail_where_the_key_may_be_unsigned() {
    for mut r in [
        rig_of_rule(|rule| rule.is_signed = false),
        // Made since the program has looked at the tables.
        rig_of_table(KeyColumnState::NoTable),
    ] {
        let sent = asked(&mut r, COPY, &["id", "a"]);
        assert!(sent.contains("SELECT CASE WHEN id>0 THEN id"), "{sent}");
        r.answer(&no_key());
        let told = String::from_utf8_lossy(&r.output()).into_owned();
        assert!(
            told.contains("a number below 0, where the key may be UNSIGNED"),
            "{told}"
        );
    }
}

/// The client has said `SET character_set_results = utf16`.
#[test]
fn a_star_is_written_out_whatever_character_set_its_columns_come_in() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let columns = ["\0i\0d", "\0a"];
    let sent = asked(
        &mut r,
        "INSERT INTO t (id, a) SELECT x.* FROM u AS x",
        &columns,
    );
    assert!(sent.contains("@@session.character_set_results"), "{sent}");
    let sent = r.answer(&rows(&["utf16"]));
    assert!(has(&sent, "\x16SELECT x.* FROM u AS x"));
    let sent = r.answer(&described(&columns));
    assert!(has(&sent, "SELECT CASE WHEN x.`id`<>0 THEN x.`id` ELSE"));
}

#[test]
fn a_star_is_written_out() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = "INSERT INTO t (a, id) SELECT x.* FROM u AS x";
    let sent = asked(&mut r, text, &["a", "i`d"]);
    assert!(
        sent.contains("SELECT x.`a`,CASE WHEN x.`i``d`<>0 THEN x.`i``d` ELSE 3935559000370003845*(x.`i``d` IS NULL"),
        "{sent}"
    );
}

/// It would be a syntax error by itself.
#[test]
fn an_operator_is_no_column_with_an_alias() {
    for key in ["NOT a", "binary a", "NOT a AS k"] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let text = format!("INSERT INTO t (id, a) SELECT {key}, 1 FROM u");
        assert_eq!(r.probed(&text, "1"), "", "{key}");
        assert!(has(&r.output(), "as key"), "{key}");
    }
    // In quotes it is one.
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = "INSERT INTO t (id, a) SELECT `not` a, 1 FROM u";
    let sent = asked(&mut r, text, &["not", "a"]);
    assert!(sent.contains("SELECT CASE WHEN `not`<>0 THEN"), "{sent}");
}

#[test]
fn names_that_mean_two_columns_keep_a_star_from_being_written_out() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = "INSERT INTO t (id, a) SELECT  * FROM u JOIN v";
    assert!(!asked(&mut r, text, &["id", "ID"]).contains("INSERT"));
    assert!(has(&r.output(), "takes keys out of *"));
}

#[test]
fn where_a_row_may_be_left_behind_it_is_refused() {
    let mut r = rig_of_rule(|rule| rule.repeatable = false);
    assert!(!asked(&mut r, COPY, &["id", "a"]).contains("INSERT"));
    assert!(has(&r.output(), "may leave something behind"));
}

#[test]
fn the_rule_says_what_becomes_of_it() {
    let mut r = rig_of_rule(|rule| rule.on_explicit = OnExplicit::Refuse);
    assert!(!asked(&mut r, COPY, &["id", "a"]).contains("INSERT"));
    assert!(has(&r.output(), "may not be given"));
    let mut r = rig_of_rule(|rule| rule.on_unsupported = OnUnsupported::Pass);
    assert!(asked(&mut r, COPY, &["id", "a"]).ends_with(COPY));
    let mut r = rig_of_rule(|rule| rule.mode = Mode::Observe);
    assert!(asked(&mut r, COPY, &["id", "a"]).ends_with(COPY));
}

#[test]
fn prepared_it_fails_in_the_same_way() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = format!("{COPY} WHERE id < ?");
    let sent = stmt_prepare(&mut r, &text, "1");
    assert!(sent.ends_with("SELECT id, a FROM u WHERE id < ?"), "{sent}");
    let sent = r.answer(&described(&["id", "a"]));
    assert!(has(&sent, &format!("{GUARDED} WHERE id < ?")));
    r.answer(&prepared(7, 1));
    assert_eq!(r.output(), prepared(7, 1));
    let execution = execute(7, &[0, 1, 3, 0, 9, 0, 0, 0]);
    assert_eq!(r.say(&execution), packet(0, &execution));
    r.answer(&ok(2, 0));
    assert_eq!(r.output(), ok(2, 0));
    r.say(&execution);
    r.answer(&no_key());
    assert!(has(&r.output(), "with a 0 or NULL in it"));
}

/// Of what type a parameter or a variable makes a column is known when the statement is executed.
#[test]
fn a_query_in_place_of_a_table_has_no_parameters() {
    for tables in [
        "(SELECT DISTINCT 700 UNION ALL SELECT ?) d",
        "u JOIN ((SELECT 1) UNION SELECT ?) d",
        "(SELECT @a) d",
        "u JOIN v ON u.`where` = v.where JOIN (VALUES (?)) d",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let text = format!("INSERT INTO t (id) SELECT * FROM {tables}");
        assert!(!stmt_prepare(&mut r, &text, "1").contains("INSERT INTO t"));
        assert!(has(&r.output(), "takes keys out of *"), "{tables}");
    }
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = "INSERT INTO t (id) WITH d AS (SELECT ? AS id) SELECT id FROM d";
    assert!(!stmt_prepare(&mut r, text, "1").contains("INSERT INTO t"));
    let told = String::from_utf8_lossy(&r.output()).into_owned();
    assert!(told.contains("in an expression as key"), "{told}");
}

#[test]
fn parameters_that_make_no_column_of_a_table_do_no_harm() {
    for query in [
        "SELECT id, (SELECT ?) FROM u JOIN v ON u.a = v.a + ?",
        "SELECT id, a FROM u WHERE (id, a) IN (SELECT ?, b FROM v)",
        "SELECT id, a FROM (SELECT * FROM v WHERE a < @@max_error_count) u",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let sent = stmt_prepare(&mut r, &format!("INSERT INTO t (id, a) {query}"), "1");
        assert!(sent.ends_with(query), "{sent}");
        let sent = r.answer(&described(&["id", "a"]));
        assert!(has(&sent, "SELECT CASE WHEN id<>0"));
    }
}

/// The guard names the key more than once, and a server computes a column of a query in FROM or WITH wherever it is named.
#[test]
fn a_key_that_may_be_another_once_more_is_refused() {
    for query in [
        "SELECT d.k, d.a FROM (SELECT nx() AS k, a FROM u) d",
        "SELECT k, a FROM (SELECT NEXTVAL(sq) AS k, a FROM u) d",
        "WITH d AS (SELECT NEXT VALUE FOR sq AS k, a FROM u) SELECT k, a FROM d",
        "SELECT k, a FROM (SELECT CAST(FLOOR(RAND()*2) AS SIGNED) AS k, a FROM u) d",
        "SELECT * FROM (SELECT UUID_SHORT() AS k, a FROM u) d",
        // In ORACLE mode it is no column.
        "SELECT sq.nextval, a FROM u",
        // The statement may fail when these have been called.
        "SELECT id, nx() FROM u",
        "SELECT id, GET_LOCK('a', 1) FROM u",
    ] {
        let text = format!("INSERT INTO t (id, a) {query}");
        for is_prepared in [false, true] {
            let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
            let sent = match is_prepared {
                true => stmt_prepare(&mut r, &text, "1"),
                false => r.probed(&text, "1"),
            };
            assert_eq!(sent, "", "{query}");
            let told = String::from_utf8_lossy(&r.output()).into_owned();
            let is_told = told.contains("as key") || told.contains("keys out of *");
            assert!(is_told, "{query}: {told}");
        }
    }
}

#[test]
fn a_key_that_is_the_same_once_more_is_guarded() {
    for query in [
        "SELECT k, a FROM (SELECT IFNULL(id, 0) AS k, UPPER(a) AS a FROM u WHERE b < NOW()) d",
        "SELECT k, a FROM (SELECT MAX(id) AS k, a FROM u GROUP BY a) d",
        "SELECT id, a FROM u FORCE INDEX(`PRIMARY`) WHERE b < DATE_SUB(NOW(), INTERVAL 1 DAY)",
        "SELECT id, RAND() FROM u WHERE a > RAND()",
    ] {
        let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
        let sent = asked(
            &mut r,
            &format!("INSERT INTO t (id, a) {query}"),
            &["k", "a"],
        );
        assert!(sent.contains("SELECT CASE WHEN "), "{sent}");
    }
}

#[test]
fn a_table_that_changed_is_asked_for_again() {
    let mut r = rig(KeyForm::Integer, DEPRECATE_EOF);
    let text = "INSERT INTO t SELECT * FROM u";
    let mut p = vec![COM_STMT_PREPARE];
    p.extend(text.as_bytes());
    let sent = r.say(&p);
    let mut sent = r.tell_once(&sent, &[]).unwrap_or(sent);
    for _ in 0..2 {
        sent = r.answer(&described(&["id", "a"]));
    }
    assert!(has(&sent, "CASE WHEN `id`<>0"), "{sent:?}");
    r.answer(&prepared(7, 0));
    r.output();
    r.query("ALTER TABLE t ADD b INT FIRST");
    r.answer(&ok(0, 0));
    r.output();
    // The key is another column of the query now.
    let mut sent = r.say(&execute(7, &[]));
    for _ in 0..6 {
        sent = match sent {
            sent if has(&sent, "@@session.sql_mode") => r.answer(&probe("1")),
            sent if has(&sent, "SHOW CREATE TABLE") => r.answer(&rows(&["t", "CREATE TABLE"])),
            sent if has(&sent, "SELECT `id` FROM") => r.answer(&described(&["id"])),
            sent if has(&sent, "FROM `t`") => r.answer(&described(&["b", "id"])),
            sent if has(&sent, "FROM u") => r.answer(&described(&["id", "a"])),
            sent => sent,
        };
    }
    assert!(has(&r.output(), "prepared before its table was changed"));
}
