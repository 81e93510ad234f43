//! What the proxy finds out about the tables of its rules, at its start and while it runs.

use keywright_testkit::{
    AT_FENCE, Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire,
    assert_has, free_port, make_store, wait_until,
};

keywright_testkit::on_both_flavours!(
    dependents_are_looked_at,
    servers_that_cannot_be_looked_at_are_an_error,
    tables_without_the_column_are_left_alone,
    fences_are_looked_at_while_running,
    fences_outlast_their_server,
    tables_of_one_pattern_are_told_apart,
    triggers_that_come_later_see_what_was_there_before,
    triggers_that_come_later_get_no_keys_of_the_rows_that_fire_them,
);

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

fn tables_without_the_column_are_left_alone(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE wide; CREATE TABLE wide.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE wide.log (line INT, note VARCHAR(9)); CREATE VIEW wide.seen AS SELECT note FROM wide.log",
    )?;
    let store = make_store(&server, "store_wide", &[("t", 300)])?;
    let config = ProxyConfig::before(&server, &store).rule("wide.*", "segment:t");
    let proxy = ProxyProcess::start(config.clone())?;
    let named = "no column \"id\", so that \"wide.*\" is not for them: wide.log, wide.seen";
    assert_has(&proxy.log(), &[named]);
    assert_has(&ProxyProcess::said(&config, &["check"])?, &[named]);
    let mut wire = proxy.wire("wide")?;
    wire.run("INSERT INTO log (line, note) VALUES (1, 'a')")?;
    wire.run("INSERT INTO log VALUES (2, 'b'), (3, 'c')")?;
    wire.run("INSERT INTO seen VALUES ('d')")?;
    wire.run("INSERT INTO log SELECT 4, 'e'")?;
    wire.run("PREPARE s FROM 'INSERT INTO log (line) VALUES (7)'; EXECUTE s")?;
    wire.set_local_file("8,g\n");
    wire.run("LOAD DATA LOCAL INFILE 'f' INTO TABLE log FIELDS TERMINATED BY ','")?;
    let rows = wire.rows("SELECT COUNT(*) FROM log")?;
    assert_eq!(rows, [["7"]]);
    assert_eq!(
        wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id,
        300
    );
    let statement = wire.prepare("INSERT INTO log (line) VALUES (?)")??;
    wire.execute(&statement, &[Param::Signed(5)])?;
    // A column that is added now gets keys at once, though the look was before.
    server.run(
        "wide",
        "ALTER TABLE log ADD COLUMN id BIGINT AUTO_INCREMENT PRIMARY KEY",
    )?;
    let mut key = |sql: &str| Ok::<_, anyhow::Error>(wire.run(sql)?.last_insert_id);
    assert_eq!(key("INSERT INTO log (line) VALUES (4)")?, 301);
    assert_eq!(key("INSERT INTO log VALUES (5, 'f', NULL)")?, 302);
    assert_eq!(
        refused(&wire.execute(&statement, &[Param::Signed(5)])?),
        Some(1235)
    );
    let statement = wire.prepare("INSERT INTO log (line) VALUES (?)")??;
    let replies = wire.execute(&statement, &[Param::Signed(6)])?;
    assert!(matches!(replies.as_slice(), [Reply::Done(done)] if done.last_insert_id == 303));
    tables_that_are_new_are_asked_for(&server, &mut wire)
}

/// The number of the error that is the answer.
fn refused(replies: &[Reply]) -> Option<u16> {
    match replies {
        [Reply::Failed(fault)] => Some(fault.errno),
        _ => None,
    }
}

/// The next key is 304, and the next look is a minute away.
fn tables_that_are_new_are_asked_for(server: &Upstream, wire: &mut Wire) -> Result<()> {
    let with_key = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    server.run(
        "wide",
        &format!(
            "CREATE TABLE later (line INT); CREATE TABLE keyed {with_key};
             CREATE TABLE hidden (id BIGINT INVISIBLE AUTO_INCREMENT PRIMARY KEY, a INT)"
        ),
    )?;
    wire.run("INSERT INTO later (line) VALUES (1)")?;
    wire.run("INSERT INTO wide.later SET line = 2")?;
    wire.run("INSERT INTO later SELECT 3")?;
    wire.set_local_file("4\n");
    wire.run("LOAD DATA LOCAL INFILE 'f' INTO TABLE later")?;
    let statement = wire.prepare("INSERT INTO later VALUES (?)")??;
    wire.execute(&statement, &[Param::Signed(5)])?;
    assert_eq!(wire.rows("SELECT COUNT(*) FROM later")?, [["5"]]);
    let mut key = |sql: &str| Ok::<_, anyhow::Error>(wire.run(sql)?.last_insert_id);
    assert_eq!(key("INSERT INTO keyed (a) VALUES (1)")?, 304);
    assert_eq!(key("INSERT INTO keyed VALUES (NULL, 2)")?, 305);
    assert_eq!(key("INSERT INTO hidden (a) VALUES (1)")?, 306);
    server.run(
        "wide",
        "ALTER TABLE later ADD COLUMN id BIGINT AUTO_INCREMENT PRIMARY KEY",
    )?;
    assert_eq!(key("INSERT INTO later (line) VALUES (6)")?, 307);
    assert_eq!(
        refused(&wire.execute(&statement, &[Param::Signed(5)])?),
        Some(1235)
    );
    let mut key = |sql: &str| Ok::<_, anyhow::Error>(wire.run(sql)?.last_insert_id);
    // What was known of a table is forgotten with it.
    key("DROP TABLE keyed")?;
    key("CREATE TABLE keyed (a INT)")?;
    key("INSERT INTO keyed (a) VALUES (1)")?;
    key("DROP TABLE keyed")?;
    key(&format!("CREATE TABLE keyed {with_key}"))?;
    assert_eq!(key("INSERT INTO keyed (a) VALUES (1)")?, 308);
    // So it is if it goes by a prepared statement.
    wire.run(format!("CREATE TABLE again {with_key}"))?;
    wire.run("INSERT INTO again (a) VALUES (1)")?;
    for sql in ["DROP TABLE again", "CREATE TABLE again (a INT)"] {
        let statement = wire.prepare(sql)??;
        wire.execute(&statement, &[])?;
    }
    wire.run("INSERT INTO again (a) VALUES (1)")?;
    let errno = |wire: &mut Wire, sql: &str| Ok::<_, anyhow::Error>(refused(&wire.query(sql)?));
    assert_eq!(
        errno(wire, "INSERT INTO nowhere (a) VALUES (1)")?,
        Some(1146)
    );
    // Without strict mode the server would store another number than the key.
    wire.run("SET sql_mode = ''")?;
    server.run(
        "wide",
        "CREATE TABLE narrow (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    for sql in [
        "INSERT INTO narrow (a) VALUES (1)",
        "INSERT INTO narrow SELECT NULL, 1",
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE narrow (a)",
    ] {
        assert_eq!(errno(wire, sql)?, Some(1235), "{sql}");
    }
    let prepared = wire.prepare("INSERT INTO narrow (a) VALUES (?)")?;
    assert!(matches!(prepared, Err(fault) if fault.errno == 1235));
    wire.run("INSERT INTO narrow (id, a) VALUES (5, 1)")?;
    // With it the server says when a key is too large, unless it is told to IGNORE that.
    wire.run("SET sql_mode = 'STRICT_ALL_TABLES'")?;
    let ignoring = errno(wire, "INSERT IGNORE INTO narrow (a) VALUES (1)")?;
    assert_eq!(ignoring, Some(1235));
    wire.run("INSERT INTO narrow (a) VALUES (1)")?;
    Ok(())
}

fn fences_are_looked_at_while_running(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE fenced; CREATE TABLE fenced.first (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
    )?;
    let store = make_store(&server, "store_fenced", &[("t", 1000)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("fenced.*", "segment:t");
    for rule in &mut config.rules {
        rule.push_str("fence = true\n");
    }
    config.more = "[limits]\nschema_refresh_s = 1".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let port = proxy.port();
    let missing = |count: u64| {
        let line = format!("keywright_fence_missing{{listener=\"127.0.0.1:{port}\"}} {count}\n");
        wait_until("the look", WAIT_MAX, || {
            Ok(proxy.http_get("/metrics")?.1.contains(&line))
        })
    };
    missing(0)?;
    let table = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    let mut wire = proxy.wire("fenced")?;
    wire.run(format!("CREATE TABLE fresh {table}"))?;
    let mut direct = server.wire("fenced")?;
    wait_until("the fence", WAIT_MAX, || {
        let replies = direct.query("INSERT INTO fresh (a) VALUES (1)")?;
        Ok(matches!(replies.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)))
    })?;
    wire.run("INSERT INTO fresh (a) VALUES (2)")?;
    // A table that can have no fence is told.
    wire.run(format!("CREATE TABLE old {table} ENGINE = MyISAM"))?;
    wait_until("the look", WAIT_MAX, || {
        Ok(proxy.log().contains("`fenced`.`old` is MyISAM"))
    })?;
    missing(1)?;
    // So is one whose column is too small, and of new connections no key is asked for it.
    wire.run("CREATE TABLE narrow (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")?;
    wire.run("CREATE VIEW shown AS SELECT a, id FROM narrow")?;
    let output = "fenced.narrow.id is int";
    wait_until("the look", WAIT_MAX, || Ok(proxy.log().contains(output)))?;
    let mut new = proxy.wire("fenced")?;
    new.run("SET sql_mode = ''")?;
    for table in ["narrow", "shown"] {
        let insert = format!("INSERT INTO {table} (a) VALUES (1)");
        assert_eq!(refused(&new.query(insert)?), Some(1235), "{table}");
    }
    // Until there is room.
    wire.run("ALTER TABLE narrow MODIFY id BIGINT AUTO_INCREMENT")?;
    for table in ["narrow", "shown"] {
        new.run(format!("INSERT INTO {table} (a) VALUES (1)"))?;
    }
    wire.run("DROP VIEW shown")?;
    wire.run("DROP TABLE narrow")?;
    wire.run("DROP TABLE old")?;
    missing(0)?;
    // A trigger that is made now is known to connections that come then.
    wire.run(
        "CREATE TRIGGER seen BEFORE INSERT ON fresh FOR EACH ROW SET NEW.a = LAST_INSERT_ID()",
    )?;
    wait_until("the trigger", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("the servers' tables and views as they are now"))
    })?;
    let mut later = proxy.wire("fenced")?;
    later.run("SET @a = LAST_INSERT_ID(5)")?;
    let id = later
        .run("INSERT INTO fresh (a) VALUES (0)")?
        .last_insert_id;
    let rows = later.rows(format!(
        "SELECT a, LAST_INSERT_ID() FROM fresh WHERE id = {id}"
    ))?;
    assert_eq!(rows, [["5".to_owned(), id.to_string()]]);
    // So is one that reads it behind the rows.
    wire.run("DROP TRIGGER seen")?;
    wire.run("CREATE TABLE noted (a BIGINT, b BIGINT)")?;
    wire.run(
        "CREATE TRIGGER seen AFTER INSERT ON fresh FOR EACH ROW INSERT INTO noted VALUES (Last_Insert_Id(), NEW.id)",
    )?;
    wait_until("the other trigger", WAIT_MAX, || {
        let mut later = proxy.wire("fenced")?;
        later.run("SET @a = LAST_INSERT_ID(77)")?;
        let id = later
            .run("INSERT INTO fresh (a) VALUES (0), (0)")?
            .last_insert_id;
        let rows = later.rows(format!("SELECT a FROM noted WHERE b >= {id}"))?;
        Ok(rows == [["77"], ["77"]])
    })?;
    Ok(())
}

fn fences_outlast_their_server(flavour: Flavour) -> Result<()> {
    const TYPES: [&str; 6] = [
        "TINYINT",
        "MEDIUMINT UNSIGNED",
        "INT",
        "INT UNSIGNED",
        "BIGINT",
        "BIGINT UNSIGNED",
    ];
    let mut server = Upstream::start_with(flavour, &["--innodb-flush-log-at-trx-commit=1"])?;
    server.run("mysql", "CREATE DATABASE walled")?;
    for (number, data_type) in TYPES.iter().enumerate() {
        server.run("walled", &format!("CREATE TABLE t{number} (id {data_type} AUTO_INCREMENT PRIMARY KEY, a INT); INSERT INTO t{number} (a) VALUES (1)"))?;
    }
    let store = make_store(&server, "store_walled", &[("t", 10)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("walled.*", "segment:t");
    for rule in &mut config.rules {
        rule.push_str("fence = true\nbits_max = 7\n");
    }
    // It switches the tables over to keys.
    ProxyProcess::start(config.clone())?.stop()?;
    for life in 0..3 {
        match life {
            0 => {}
            1 => {
                server.stop()?;
                server.restart()?;
            }
            _ => {
                server.kill9()?;
                server.restart()?;
            }
        }
        for (number, data_type) in TYPES.iter().enumerate() {
            let mut wire = server.wire("walled")?;
            wire.run(format!(
                "INSERT INTO t{number} (id) VALUES (LAST_INSERT_ID({}))",
                20 + life
            ))?;
            for sql in ["INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO"] {
                let replies = wire.query(format!("{sql} t{number} (a) VALUES (2)"))?;
                let is_refused = match replies.as_slice() {
                    [Reply::Failed(fault)] => AT_FENCE.contains(&fault.errno),
                    // MariaDB leaves the row out, and warns.
                    [Reply::Done(done)] => sql.contains("IGNORE") && done.affected_rows == 0,
                    _ => false,
                };
                assert!(is_refused, "{data_type} in life {life}: {sql}: {replies:?}");
            }
        }
        let output = ProxyProcess::said(&config, &["check"])?;
        assert!(!output.contains("no fence"), "{output}");
    }
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
