//! Fences before tables that come while the program runs, and after a server's end.

use keywright_testkit::{
    AT_FENCE, Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, make_store,
    wait_until,
};

use super::refused;

pub(super) fn fences_are_looked_at_while_running(flavour: Flavour) -> Result<()> {
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

pub(super) fn fences_outlast_their_server(flavour: Flavour) -> Result<()> {
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
