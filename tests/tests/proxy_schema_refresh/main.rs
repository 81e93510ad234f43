//! What the proxy finds out about the tables of its rules, at its start and while it runs.

mod columns;
mod fences;
mod unshown;

use columns::tables_without_the_column_are_left_alone;
use fences::{fences_are_looked_at_while_running, fences_outlast_their_server};
use keywright_testkit::{
    Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire, assert_has,
    free_port, make_store, wait_until,
};
use unshown::{
    accounts_without_rights_keep_nobody_from_new_tables, answers_do_not_wait_behind_an_alter_table,
    names_of_tables_make_no_lines_of_the_log, new_tables_get_no_keys_unasked,
    tables_that_admin_may_not_see_get_no_keys,
};

keywright_testkit::on_both_flavours!(
    dependents_are_looked_at,
    servers_that_cannot_be_looked_at_are_an_error,
    tables_without_the_column_are_left_alone,
    fences_are_looked_at_while_running,
    fences_outlast_their_server,
    tables_that_admin_may_not_see_get_no_keys,
    new_tables_get_no_keys_unasked,
    answers_do_not_wait_behind_an_alter_table,
    accounts_without_rights_keep_nobody_from_new_tables,
    names_of_tables_make_no_lines_of_the_log,
    tables_of_one_pattern_are_told_apart,
    triggers_that_come_later_see_what_was_there_before,
    triggers_that_come_later_get_no_keys_of_the_rows_that_fire_them,
);

/// The number of the error that is the answer.
fn refused(replies: &[Reply]) -> Option<u16> {
    match replies {
        [Reply::Failed(fault)] => Some(fault.errno),
        _ => None,
    }
}

fn dependents_are_looked_at(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE looked; USE looked;
         CREATE TABLE narrow (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE t (id CHAR(36) PRIMARY KEY, a INT);
         CREATE TABLE child (t CHAR(20), FOREIGN KEY (t) REFERENCES t (id));
         CREATE VIEW seen AS SELECT * FROM t;
         CREATE VIEW hidden AS SELECT a FROM t;
         CREATE VIEW counted AS SELECT COUNT(*) FROM t;
         CREATE TABLE wide (nr BIGINT AUTO_INCREMENT PRIMARY KEY); CREATE VIEW narrow_not AS SELECT nr AS id FROM wide;
         CREATE EVENT once ON SCHEDULE AT NOW() + INTERVAL 1 DAY DO REPLACE looked.t (a) VALUES (1);
         CREATE USER app@'10.1.2.%', everywhere@'%', blind@'%';
         GRANT SELECT, ALTER ON looked.* TO blind@'%'; GRANT SELECT (User, Host) ON mysql.user TO blind@'%';
         DELIMITER //
         CREATE PROCEDURE fill() BEGIN INSERT INTO t (a) VALUES (1); END//
         CREATE PROCEDURE quote() BEGIN SELECT 'INSERT INTO t (a) VALUES (1)'; END//
         CREATE TRIGGER copied AFTER INSERT ON narrow FOR EACH ROW INSERT INTO looked.t (a) VALUES (NEW.a)//
         CREATE TRIGGER named BEFORE INSERT ON narrow FOR EACH ROW SET NEW.a = NEW.id//",
    )?;
    let store = make_store(&server, "store_looked", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store)
        .rule("looked.t", "uuid_v7")
        .rule("looked.narrow*", "segment:t");
    let output = ProxyProcess::command(&config, &["check"])?;
    let report = String::from_utf8(output.stdout)?;
    assert!(!output.status.success(), "{report}");
    assert_has(
        &report,
        &[
            "error: looked.narrow.id is int",
            "error: looked.child.t, which refers to looked.t.id, is char(20), and keys have 36 characters\n",
            "warning: procedure looked.fill inserts into looked.t: ",
            "warning: trigger looked.copied inserts into looked.t: ",
            "warning: event looked.once inserts into looked.t: ",
            "warning: trigger looked.named names NEW.id before a row goes into looked.narrow: ",
            "warning: an INSERT through looked.hidden, a view that does not show the key, gets no key and is refused\n",
            "warning: looked.narrow_not matches a rule and is a view, of no table with one: ",
            "app@10.1.2.%",
        ],
    );
    for innocent in ["quote", "counted", "looked.seen", "everywhere"] {
        assert!(!report.contains(innocent), "{innocent} is in\n{report}");
    }
    let port = server.port();
    let blind = ProxyConfig {
        more: format!(
            "[[listener]]\nbind = \"127.0.0.1:2\"\nupstream = \"127.0.0.1:{port}\"\nadmin = \"mysql://blind@127.0.0.1:{port}\""
        ),
        ..config.clone()
    };
    let output = ProxyProcess::command(&blind, &["check"])?;
    assert_has(
        &String::from_utf8(output.stdout)?,
        &[
            "127.0.0.1:2: warning: looked.counted and 3 more views may not be seen, which takes SHOW VIEW",
        ],
    );
    // Both are told aloud, and the other tables are served.
    let proxy = ProxyProcess::start(config)?;
    assert_has(
        &proxy.log(),
        &["ERROR", "looked.narrow.id", "looked.child.t"],
    );
    Ok(())
}

fn servers_that_cannot_be_looked_at_are_an_error(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_unseen", &[("t", 1)])?;
    let config = ProxyConfig {
        // Nobody listens there.
        upstream_ports: vec![free_port()?],
        ..ProxyConfig::before(&server, &store).rule("unseen.*", "segment:t")
    };
    let refused = format!(
        "{:#}",
        ProxyProcess::start(config.clone()).map(drop).unwrap_err()
    );
    assert_has(&refused, &["1 problem(s)", "tables could not be looked at"]);
    let warned = ProxyConfig {
        listener: "check = \"warn\"".to_owned(),
        ..config
    };
    let proxy = ProxyProcess::start(warned)?;
    assert_has(
        &proxy.log(),
        &["tables could not be looked at", "with case"],
    );
    Ok(())
}

/// How many rows an INSERT … SELECT may have is each table's own, as far as its trigger and its engine go.
fn tables_of_one_pattern_are_told_apart(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE apart; USE apart;
         CREATE TABLE post (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE seen LIKE post;
         CREATE TABLE old (id BIGINT PRIMARY KEY, a INT) ENGINE = MyISAM;
         CREATE TABLE log (a INT);
         CREATE TRIGGER noted AFTER INSERT ON seen FOR EACH ROW INSERT INTO log VALUES (NEW.a);
         CREATE TABLE n200 (a INT);
         INSERT INTO n200 WITH RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 200) SELECT a FROM n;",
    )?;
    let store = make_store(&server, "apart_store", &[("rows", 1_000_000)])?;
    let config = ProxyConfig::before(&server, &store).rule("apart.*", "segment:rows");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("apart")?;
    for table in ["post", "seen", "old"] {
        let replies = wire.query(format!(
            "INSERT INTO {table} (a) SELECT a FROM n200 LIMIT 150"
        ))?;
        let expected = (table != "post").then_some(1235);
        assert_eq!(refused(&replies), expected, "{table}: {replies:?}");
        let few = wire.query(format!(
            "INSERT INTO {table} (a) SELECT a FROM n200 LIMIT 10"
        ))?;
        assert_eq!(refused(&few), None, "{table}: {few:?}");
    }
    // Of one that nobody has looked at, what holds for all of the rule.
    wire.run("CREATE TABLE later LIKE post")?;
    let replies = wire.query("INSERT INTO later (a) SELECT a FROM n200")?;
    assert_eq!(refused(&replies), Some(1235), "{replies:?}");
    Ok(())
}

/// A trigger that may read LAST_INSERT_ID() is made past the program, while connections are open.
fn triggers_that_come_later_see_what_was_there_before(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE later; USE later;
         CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE log (seen BIGINT);",
    )?;
    let store = make_store(&server, "later_store", &[("rows", 1_000_000)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("later.t", "segment:rows");
    config.more = "[limits]\nschema_refresh_s = 1".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("later")?;
    let insert = "INSERT INTO t (a) VALUES (?)";
    let prepared = wire.prepare(insert)??;
    wire.run("INSERT INTO t (a) VALUES (1)")?;
    wire.execute(&prepared, &[Param::Signed(2)])?;
    server.run(
        "later",
        "CREATE TRIGGER noted AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (LAST_INSERT_ID())",
    )?;
    let is_seen = |wire: &mut Wire| -> Result<bool> {
        wire.run("DELETE FROM log")?;
        wire.run("DO LAST_INSERT_ID(42)")?;
        wire.run("INSERT INTO t (a) VALUES (3)")?;
        let by_text = wire.rows("SELECT seen FROM log")?;
        wire.run("DO LAST_INSERT_ID(43)")?;
        wire.execute(&prepared, &[Param::Signed(4)])?;
        let both = wire.rows("SELECT seen FROM log ORDER BY seen")?;
        Ok(by_text == [["42"]] && both == [["42"], ["43"]])
    };
    let what = "the trigger sees what was there before";
    wait_until(what, WAIT_MAX, || is_seen(&mut wire))
}

/// The server would number rows with IGNORE exactly from a number that it is told (MariaDB's `SET STATEMENT insert_id`). A trigger that
/// nobody has seen yet would take from it as many as it likes, past the fence, and others have those.
fn triggers_that_come_later_get_no_keys_of_the_rows_that_fire_them(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE eats; USE eats;
         CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
         CREATE TABLE u (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);",
    )?;
    let store = make_store(&server, "eats_store", &[("rows", 1_000_000)])?;
    let mut config = ProxyConfig::before(&server, &store)
        .rule("eats.t", "segment:rows")
        .rule("eats.u", "segment:rows");
    // It does not look again.
    config.more = "[limits]\nschema_refresh_s = 3600".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("eats")?;
    wire.run("INSERT INTO t (a) VALUES (1)")?;
    server.run(
        "eats",
        "CREATE TRIGGER eats BEFORE INSERT ON t FOR EACH ROW INSERT INTO u (a) VALUES (1), (2), (3), (4), (5)",
    )?;
    let several = "INSERT IGNORE INTO t (a) VALUES (1), (2), (3)";
    let prepared = wire.prepare(several)??;
    for replies in [wire.query(several)?, wire.execute(&prepared, &[])?] {
        let rows = server.run("eats", "SELECT id FROM u")?;
        assert!(rows.is_empty(), "{replies:?} left {rows:?}");
    }
    Ok(())
}
