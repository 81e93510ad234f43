//! Tables without the column of a rule that is for all of a schema, and those that are new.

use keywright_testkit::{
    Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Wire, assert_has,
    make_store,
};

use super::refused;

pub(super) fn tables_without_the_column_are_left_alone(flavour: Flavour) -> Result<()> {
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
